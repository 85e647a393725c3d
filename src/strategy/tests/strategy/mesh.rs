//! A mesh: replicas of two devices that have slices of variables, or stages of a pipeline. Who keeps what, what moves, and that the
//! weights are those of mirrored training.

use crate::encoder::Encoder;
use crate::steps::{bits, placed, trained, weights};
use stratoscope_strategy::{
    Aggregation, AsStrategy, CrossDeviceOps, DeviceMesh, LayoutMap, MirroredStrategy,
    ModelParallel, PipelineStrategy, Replicas, Synchronization, VariableKind,
};

/// Rows of the matrices of attention in two slices, columns of its table; all else is whole.
fn meshed(replicas: usize) -> ModelParallel {
    let mesh = DeviceMesh::logical([replicas, 2], ["batch", "model"]).expect("devices");
    let layout = LayoutMap::new(&mesh)
        .cut("attention.weight", [Some("model"), None])
        .and_then(|it| it.cut("word_embeddings.weight", [None, Some("model")]));
    ModelParallel::new(layout.expect("axes of the mesh")).expect("two axes")
}

/// The first layer with what is before it on one device, the second one with the classifier on another.
fn in_stages(replicas: usize) -> PipelineStrategy {
    let mesh = DeviceMesh::logical([replicas, 2], ["batch", "stage"]).expect("devices");
    PipelineStrategy::over(&mesh).expect("two axes")
}

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

/// The numbers that the stored modules have.
fn stored(replicas: &Replicas<Encoder>) -> Vec<Vec<u32>> {
    let modules = replicas.modules().iter();
    modules.map(|it| bits(&weights(it))).collect()
}

fn copies_are_equal(replicas: &Replicas<Encoder>) -> bool {
    let stored = stored(replicas);
    let each = replicas.modules_of_a_copy();
    (each..stored.len()).all(|index| stored[index] == stored[index % each])
}

/// Three steps, in every pattern: the bits of mirrored training, in each replica, and as many bytes as were planned.
#[test]
fn the_weights_are_those_of_mirrored_training() {
    for ops in CrossDeviceOps::ALL {
        for count in [2, 3] {
            let mut expected = placed(&mirrored(count).cross_device_ops(ops));
            let mut replicas = placed(&meshed(count).cross_device_ops(ops));
            assert_eq!((replicas.len(), replicas.copies()), (count, count));
            assert_eq!(replicas.modules().len(), 2 * count);
            let (found, wanted) = (trained(&mut replicas), trained(&mut expected));
            assert!(bits(&found) == bits(&wanted), "{count} replicas, {ops:?}");
            assert!(copies_are_equal(&replicas), "{count} replicas, {ops:?}");
            let moved = replicas.collectives().last_step();
            assert_eq!(moved, replicas.planned_collectives(), "{ops:?}");
            // Between the first devices of the replicas.
            let theirs = expected.collectives().last_step();
            let pairs = moved[0].transfers.iter().zip(&theirs[0].transfers);
            for (own, other) in pairs {
                assert_eq!((own.from, own.to), (2 * other.from, 2 * other.to));
                assert_eq!(own.bytes, other.bytes);
            }
        }
    }
}

/// The same with stages: each pair of like stages sends the gradients of its variables, and together as many bytes as mirrored
/// replicas.
#[test]
fn stages_exchange_with_their_like() {
    for ops in CrossDeviceOps::ALL {
        for count in [2, 3] {
            let mut expected = placed(&mirrored(count).cross_device_ops(ops));
            let mut replicas = placed(&in_stages(count).cross_device_ops(ops));
            assert_eq!((replicas.len(), replicas.copies()), (count, count));
            assert_eq!(replicas.modules().len(), 2 * count);
            let (found, wanted) = (trained(&mut replicas), trained(&mut expected));
            assert!(bits(&found) == bits(&wanted), "{count} replicas, {ops:?}");
            assert!(copies_are_equal(&replicas), "{count} replicas, {ops:?}");
            let moved = replicas.collectives().last_step();
            assert_eq!(moved, replicas.planned_collectives(), "{ops:?}");
            let theirs = expected.collectives().last_step();
            assert_eq!(moved[0].moved_bytes(), theirs[0].moved_bytes());
            assert_eq!(moved[0].hops(), theirs[0].hops());
            for sent in &moved[0].transfers {
                assert_eq!(sent.from % 2, sent.to % 2, "{sent:?}");
            }
        }
    }
}

#[test]
fn records_name_the_stage_of_each_replica() {
    let replicas = placed(&in_stages(3));
    for record in replicas.records() {
        let is_later = record.name.contains("layer.1") || record.name.contains("classifier");
        let homes = if is_later { [1, 3, 5] } else { [0, 2, 4] };
        assert_eq!(record.homes, homes, "{}", record.name);
        assert_eq!(record.kind, VariableKind::Mirrored, "{}", record.name);
    }
    let sums = replicas.checksums().expect("the devices answer");
    assert!(
        sums.iter()
            .all(|sums| sums.len() == 3 && sums[0] == sums[2])
    );
}

#[test]
fn records_name_the_devices_of_all_replicas() {
    let replicas = placed(&meshed(3));
    for record in replicas.records() {
        assert_eq!(record.copies(), 3, "{}", record.name);
        let is_cut = record.name.ends_with("attention.weight")
            || record.name.ends_with("word_embeddings.weight");
        match is_cut {
            true => {
                assert_eq!(record.kind, VariableKind::Sharded);
                assert_eq!(record.homes, [0, 1, 2, 3, 4, 5]);
                assert_eq!(record.rows[0], record.rows[4]);
            }
            false => {
                assert_eq!(record.kind, VariableKind::Mirrored, "{}", record.name);
                assert_eq!(record.homes, [0, 2, 4]);
            }
        }
    }
    let sums = replicas.checksums().expect("the devices answer");
    for (record, sums) in replicas.records().iter().zip(sums) {
        assert_eq!(record.homes.len(), sums.len(), "a checksum per home");
    }
}

#[test]
fn values_are_saved_restored_replaced_broadcast_and_forked() {
    for mut replicas in [placed(&meshed(2)), placed(&in_stages(2))] {
        let before = replicas.saved_values();
        let first = weights(replicas.first());
        let later = trained(&mut replicas);
        assert!(bits(&later) != bits(&first));
        let fork = replicas.forked().expect("room");
        let module = replicas.first().clone();
        replicas.restore_values(&before).expect("of this model");
        assert!(bits(&weights(replicas.first())) == bits(&first));
        assert!(bits(&weights(fork.first())) == bits(&later));
        replicas.replace(&module).expect("of this model");
        assert!(bits(&weights(replicas.first())) == bits(&later));
        assert!(copies_are_equal(&replicas));
        replicas.broadcast().expect("room");
        replicas.equalize().expect("room");
        assert!(copies_are_equal(&replicas));
        assert!(bits(&weights(replicas.first())) == bits(&later));
    }
}

/// As under a mirrored strategy, with the copies on the first devices of the replicas.
#[test]
fn a_variable_has_a_copy_for_each_replica() {
    let strategy = meshed(2);
    let mean = strategy.variable("v", 1.0, Synchronization::Auto, Aggregation::Mean);
    let mean = mean.expect("a number");
    assert_eq!(mean.record().homes, [0, 2]);
    mean.replica_update(|replica| replica.0 as f32 + 1.0)
        .expect("an aggregation");
    assert_eq!(mean.copies(), [[2.5], [2.5]]);
    let transfers = mean.collectives()[0].transfers.clone();
    assert!(
        transfers
            .iter()
            .all(|it| it.from % 2 == 0 && it.to % 2 == 0)
    );
    let total = strategy.variable("t", 0.0, Synchronization::OnRead, Aggregation::Sum);
    let total = total.expect("a number");
    total
        .replica_update(|replica| replica.0 as f32 + 1.0)
        .expect("each its own");
    assert_eq!(total.read().expect("a sum"), [3.0]);
    assert_eq!(strategy.strategy().replicas().len(), 2);
}
