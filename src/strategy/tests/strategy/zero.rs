//! Replicas that divide the state of training among them: who keeps which rows, what moves, and that the weights are those of
//! mirrored training.

use crate::steps::{bits, placed, trained, weights};
use proptest::prelude::*;
use stratoscope_strategy::{CrossDeviceOps, MirroredStrategy, Replicas, Shard, VariableKind};

use crate::encoder::Encoder;

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

fn divided(replicas: usize, shard: Shard) -> MirroredStrategy {
    mirrored(replicas).shard(shard).expect("several replicas")
}

/// The numbers that the stored modules have.
fn stored(replicas: &Replicas<Encoder>) -> Vec<usize> {
    replicas
        .modules()
        .iter()
        .map(|it| weights(it).len())
        .collect()
}

#[test]
fn each_replica_updates_its_rows_and_no_others() {
    let whole = weights(placed(&mirrored(2)).first());
    for shard in Shard::ALL {
        let replicas = placed(&divided(3, shard));
        let sizes = stored(&replicas);
        assert_eq!(
            sizes.iter().sum::<usize>(),
            whole.len(),
            "every number once"
        );
        let (least, most) = (sizes.iter().min(), sizes.iter().max());
        let (least, most) = (least.expect("three"), most.expect("three"));
        assert!(
            most - least <= 8,
            "{sizes:?}: two rows of the widest variable"
        );
        assert_eq!(bits(&weights(replicas.first())), bits(&whole));
        let copies = match shard {
            Shard::Optimizer | Shard::Gradients => (3, VariableKind::Mirrored),
            Shard::Parameters => (1, VariableKind::Sharded),
        };
        assert_eq!(
            (replicas.unsharded().len(), replicas.records()[0].kind),
            copies
        );
    }
}

/// Three steps, in every pattern: the same weights, on every copy, and as many bytes as were planned.
#[test]
fn the_weights_are_those_of_mirrored_training() {
    for ops in CrossDeviceOps::ALL {
        for count in [2, 3, 4] {
            let mut expected = placed(&mirrored(count).cross_device_ops(ops));
            let expected = trained(&mut expected);
            for shard in Shard::ALL {
                let mut replicas = placed(&divided(count, shard).cross_device_ops(ops));
                let found = trained(&mut replicas);
                assert!(
                    bits(&found) == bits(&expected),
                    "{count} replicas, {shard}, {ops:?}"
                );
                for copy in replicas.unsharded() {
                    assert!(
                        bits(&weights(copy)) == bits(&found),
                        "{shard}: a copy is stale"
                    );
                }
                let (found, planned) = (
                    replicas.collectives().last_step(),
                    replicas.planned_collectives(),
                );
                assert_eq!(found, planned, "{shard}, {ops:?}");
            }
        }
    }
}

/// P bytes through each device for a reduce-scatter, P for an all-gather, 2 P for an all-reduce; each (R − 1) / R of it.
#[test]
fn a_step_moves_what_the_paper_says() {
    let moved = |strategy: &MirroredStrategy| -> u64 {
        let mut replicas = placed(strategy);
        trained(&mut replicas);
        let step = replicas.collectives().last_step();
        step.iter().map(|done| done.moved_bytes()).sum()
    };
    let all = 2 * moved(&mirrored(4));
    assert_eq!(2 * moved(&divided(4, Shard::Optimizer)), 3 * all / 2);
    assert_eq!(2 * moved(&divided(4, Shard::Gradients)), all);
    assert_eq!(2 * moved(&divided(4, Shard::Parameters)), all);
}

#[test]
fn values_are_saved_restored_replaced_and_forked() {
    for shard in Shard::ALL {
        let mut replicas = placed(&divided(3, shard));
        let before = replicas.saved_values();
        let first = weights(replicas.first());
        let later = trained(&mut replicas);
        assert!(bits(&later) != bits(&first));
        let mut fork = replicas.forked().expect("room");
        let module = replicas.first().clone();
        replicas.restore_values(&before).expect("of this model");
        assert!(bits(&weights(replicas.first())) == bits(&first), "{shard}");
        let again = trained(&mut replicas);
        assert!(
            bits(&again) == bits(&later),
            "{shard}: the same steps again"
        );
        assert!(bits(&weights(fork.first())) == bits(&later), "{shard}");
        trained(&mut fork);
        assert!(
            bits(&weights(replicas.first())) == bits(&later),
            "{shard}: a fork is apart"
        );
        let mut other = placed(&divided(3, shard));
        other.replace(&module).expect("the same shapes");
        assert!(bits(&weights(other.first())) == bits(&later), "{shard}");
        let sums = other.checksums().expect("the processor answers");
        for (record, sums) in other.records().iter().zip(sums) {
            assert_eq!(
                record.homes.len(),
                sums.len(),
                "{shard}: a checksum per home"
            );
        }
    }
}

/// What is frozen is not updated, and stays as it is on every copy.
#[test]
fn frozen_variables_stay() {
    for shard in Shard::ALL {
        let run = |strategy: &MirroredStrategy| {
            let mut replicas = placed(strategy);
            let frozen = replicas.records()[0].param;
            replicas.set_trainable(&[frozen].into(), false);
            let first = weights(replicas.first());
            let width = replicas.records()[0].shape.iter().product::<usize>();
            trained(&mut replicas);
            for copy in replicas.unsharded() {
                assert_eq!(
                    bits(&weights(copy)[..width]),
                    bits(&first[..width]),
                    "{shard}"
                );
            }
            weights(replicas.first())
        };
        assert!(
            bits(&run(&divided(2, shard))) == bits(&run(&mirrored(2))),
            "{shard}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_number_of_replicas(count in 2..9_usize, level in 0..3_usize) {
        let expected = trained(&mut placed(&mirrored(count)));
        let found = trained(&mut placed(&divided(count, Shard::ALL[level])));
        prop_assert!(bits(&found) == bits(&expected));
    }
}
