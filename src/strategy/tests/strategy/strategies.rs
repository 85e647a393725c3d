//! Every strategy at work on the same tiny module: patterns of sums, where variables are, what moves, and
//! that all synchronous ones train alike.

use crate::steps::{bits, flat, gradients, near, placed, pushed, trained, weights};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;
use stratoscope_strategy::{
    Aggregation, AsStrategy, CentralStorageStrategy, CrossDeviceOps, MirroredStrategy,
    OneDeviceStrategy, ParameterServerStrategy, Partitioner, Synchronization, TpuStrategy,
    VariableKind, cpu,
};

/// Every pattern on 1 to 8 replicas with uneven weights: the plain weighted sum, the same bits on every replica and
/// in every run, and the transfers that were planned.
#[test]
fn patterns_give_the_plain_sum() {
    for ops in CrossDeviceOps::ALL {
        for count in 1..=8_usize {
            let strategy = MirroredStrategy::logical(count).expect("logical devices");
            let replicas = placed(&strategy.cross_device_ops(ops));
            let samples: Vec<usize> = (1..=count).collect();
            let reduce = || {
                let given = |(index, module)| gradients(module, index);
                let given = replicas.modules().iter().enumerate().map(given);
                let results = replicas.all_reduce(given.collect(), &samples);
                let results = results.expect("one set each");
                let flat = |(module, result)| flat(module, result);
                replicas
                    .modules()
                    .iter()
                    .zip(&results)
                    .map(flat)
                    .collect::<Vec<_>>()
            };
            let found = reduce();
            let total: usize = samples.iter().sum();
            let mut expected = vec![0.0_f64; found[0].len()];
            for (index, module) in replicas.modules().iter().enumerate() {
                let weight = samples[index] as f64 / total as f64;
                let given = flat(module, &gradients(module, index));
                for (sum, number) in expected.iter_mut().zip(given) {
                    *sum += weight * f64::from(number);
                }
            }
            let expected: Vec<f32> = expected.into_iter().map(|sum| sum as f32).collect();
            for result in &found {
                near(result, &expected);
                assert_eq!(bits(result), bits(&found[0]), "{ops:?} on {count}");
            }
            assert_eq!(reduce(), found, "the same again");

            replicas.begin_step();
            reduce();
            let done = replicas.collectives().last_step();
            assert_eq!(done, replicas.planned_collectives(), "{ops:?} on {count}");
            if let [done] = done.as_slice() {
                let (payload, others) = (done.payload_bytes, count as u64 - 1);
                assert_eq!((done.name.as_str(), done.ops), ("gradients", ops));
                assert_eq!(payload, 4 * expected.len() as u64);
                assert_eq!(done.moved_bytes(), 2 * others * payload);
            } else {
                assert_eq!((count, done.len()), (1, 0));
            }
        }
    }
}

#[test]
fn synchronous_strategies_train_alike() {
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let alone = trained(&mut placed(&one));
    assert_ne!(alone, weights(placed(&one).first()), "it did train");

    let mirrored = MirroredStrategy::logical(2).expect("logical devices");
    let expected = trained(&mut placed(&mirrored));
    near(&expected, &alone);
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 3).expect("logical devices");
    for strategy in [central.strategy(), servers.synchronous().strategy()] {
        let mut replicas = placed(&strategy);
        let found = trained(&mut replicas);
        assert_eq!(
            bits(&found),
            bits(&expected),
            "{strategy}: the same sums in the same order"
        );
        assert_eq!((replicas.len(), replicas.copies()), (2, 1));
        assert_eq!(
            replicas.collectives().last_step(),
            replicas.planned_collectives()
        );
    }
    for ops in [CrossDeviceOps::Ring, CrossDeviceOps::Tree] {
        let strategy = MirroredStrategy::logical(5).expect("logical devices");
        near(
            &trained(&mut placed(&strategy.cross_device_ops(ops))),
            &alone,
        );
    }
    let tpu = TpuStrategy::simulated().expect("logical devices");
    let mut cores = placed(&tpu);
    near(&trained(&mut cores), &alone);
    let last = cores.collectives().last_step();
    assert_eq!((last[0].ops, last[0].hops()), (CrossDeviceOps::Ring, 14));
    let sums = cores.checksums().expect("the processor answers");
    assert!(sums.iter().all(|row| row.iter().all(|sum| *sum == row[0])));
}

/// What a step moves where there is one copy: everything out to the replicas and gradients back.
#[test]
fn one_copy_is_fetched_and_sent_gradients() {
    let strategy = CentralStorageStrategy::logical(3).expect("logical devices");
    let mut replicas = placed(&strategy);
    trained(&mut replicas);
    let last = replicas.collectives().last_step();
    let pairs = |index: usize| -> Vec<_> {
        let transfers = last[index].transfers.iter();
        transfers.map(|t| (t.hop, t.from, t.to)).collect()
    };
    let names: Vec<&str> = last.iter().map(|done| done.name.as_str()).collect();
    assert_eq!(names, ["parameters", "gradients"]);
    assert_eq!(pairs(0), [(0, 0, 1), (0, 0, 2)]);
    assert_eq!(pairs(1), [(0, 1, 0), (0, 2, 0)]);
    assert_eq!(last[0].moved_bytes(), 2 * last[0].payload_bytes);
}

/// Workers push in turn and fetch at once: in the first round worker i finds i updates, later R − 1.
#[test]
fn staleness_has_a_closed_formula() {
    for workers in 1..=4_u64 {
        let run = || {
            let strategy = ParameterServerStrategy::logical(workers, 2).expect("logical devices");
            let mut replicas = placed(&strategy);
            pushed(&mut replicas);
            replicas
        };
        let replicas = run();
        let totals = replicas.collectives().totals();
        let expected = workers * (workers - 1) / 2 + 2 * workers * (workers - 1);
        assert_eq!((totals.pushes, totals.staleness), (3 * workers, expected));
        assert_eq!(totals.all_reduces, 0);
        assert_eq!(replicas.collectives().last_step().len() as u64, 2 * workers);
        let again = run();
        assert_eq!(
            bits(&weights(replicas.first())),
            bits(&weights(again.first()))
        );
    }
}

/// Replicas that went apart: the mean by samples, equal bits, and the originals untouched by a look.
#[test]
fn parameters_are_averaged() {
    let strategy = MirroredStrategy::logical(2).expect("logical devices");
    let mut replicas = placed(&strategy);
    let before = weights(replicas.first());
    replicas
        .update_each_replica(vec![0.0, 4.0], |_, module, shift: f32| {
            struct Shift(f32);
            impl ModuleMapper for Shift {
                fn map_float<const D: usize>(&mut self, p: Param<Tensor<D>>) -> Param<Tensor<D>> {
                    let shift = self.0;
                    p.map(|value| Tensor::from_inner(value.inner() + shift).require_grad())
                }
            }
            *module = module.clone().map(&mut Shift(shift));
        })
        .expect("one each");
    let expected: Vec<f32> = before.iter().map(|number| number + 3.0).collect();
    let look = replicas.averaged(&[1, 3]).expect("two counts");
    near(&weights(look.first()), &expected);
    assert_eq!(
        bits(&weights(replicas.first())),
        bits(&before),
        "only looked at"
    );
    replicas.average(&[1, 3]).expect("two counts");
    near(&weights(replicas.first()), &expected);
    let sums = replicas.checksums().expect("the processor answers");
    assert!(sums.iter().all(|row| row[0] == row[1]));
    let totals = replicas.collectives().totals();
    assert_eq!((totals.all_reduces, totals.parameter_averages), (0, 1));
    assert_eq!(replicas.collectives().last_step()[0].name, "parameters");
    assert_eq!(
        replicas.average(&[1]).expect_err("one count").code,
        "SC0915"
    );
}

/// Strategy → kind, homes of the first two variables, what the reason ends with.
#[test]
fn who_keeps_a_models_variables() {
    let check = |strategy: &dyn Fn() -> stratoscope_strategy::Strategy, expected| {
        let replicas = placed(&strategy());
        let found = replicas.records().iter().take(2);
        let found: Vec<_> = found.map(|r| (r.kind, r.homes.clone())).collect();
        assert_eq!(found, expected, "{:?}", replicas.records()[0].why);
        for (record, sums) in replicas
            .records()
            .iter()
            .zip(replicas.checksums().expect("the processor answers"))
        {
            assert_eq!(record.homes.len(), sums.len(), "a checksum per home");
        }
    };
    let (local, mirrored, central) = (
        VariableKind::Local,
        VariableKind::Mirrored,
        VariableKind::Central,
    );
    check(
        &|| {
            OneDeviceStrategy::new(cpu(0))
                .expect("a processor")
                .strategy()
        },
        vec![(local, vec![0]), (local, vec![0])],
    );
    check(
        &|| MirroredStrategy::logical(2).expect("two").strategy(),
        vec![(mirrored, vec![0, 1]), (mirrored, vec![0, 1])],
    );
    check(
        &|| CentralStorageStrategy::logical(2).expect("two").strategy(),
        vec![(central, vec![0]), (central, vec![0])],
    );
    check(
        &|| {
            ParameterServerStrategy::logical(2, 2)
                .expect("four")
                .strategy()
        },
        vec![(central, vec![2]), (central, vec![3])],
    );
    let cores: Vec<usize> = (0..8).collect();
    check(
        &|| TpuStrategy::simulated().expect("eight").strategy(),
        vec![(mirrored, cores.clone()), (mirrored, cores.clone())],
    );
}

/// docs/keras-semantics.md §4: +0 and +1 on 1.0, by aggregation.
#[test]
fn aggregations_are_tensorflows() {
    let check = |aggregation, expected: Result<[f32; 2], &str>| {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let v = strategy.variable("v", 1.0, Synchronization::Auto, aggregation);
        let v = v.expect("one number");
        let outcome = v.replica_update(|replica| replica.0 as f32);
        match expected {
            Ok(copies) => {
                outcome.expect("it has an aggregation");
                assert_eq!(v.copies().concat(), copies, "{aggregation:?}");
                assert_eq!(v.read().expect("equal copies"), copies[..1]);
                assert_eq!(v.record().kind, VariableKind::Mirrored);
            }
            Err(message) => {
                let error = outcome.expect_err("no aggregation");
                assert_eq!(
                    (error.code.as_str(), error.message.as_str()),
                    ("SC0515", message)
                );
                assert_eq!(v.copies().concat(), [1.0, 1.0], "nothing has changed");
            }
        }
    };
    check(Aggregation::Mean, Ok([1.5, 1.5]));
    check(Aggregation::Sum, Ok([2.0, 2.0]));
    check(Aggregation::OnlyFirstReplica, Ok([1.0, 1.0]));
    let message = "`v` has no aggregation and 2 replicas update it: its copies would become 1, 2";
    check(Aggregation::None, Err(message));
}

#[test]
fn on_read_variables_are_aggregated_when_read() {
    let check = |aggregation, before: f32, after: f32| {
        let strategy = MirroredStrategy::logical(3).expect("three logical devices");
        let v = strategy.variable("total", [6.0, 0.0], Synchronization::OnRead, aggregation);
        let v = v.expect("two numbers");
        assert_eq!(v.record().kind, VariableKind::OnRead);
        assert_eq!(v.read().expect("an aggregation")[0], before);
        v.replica_update(|replica| [replica.0 as f32, 1.0])
            .expect("its own copy");
        assert!(v.collectives().is_empty(), "nothing moves until it is read");
        assert_eq!(
            v.read().expect("an aggregation")[0],
            after,
            "{aggregation:?}"
        );
        v.collectives()
    };
    let moved = check(Aggregation::Sum, 6.0, 9.0);
    assert_eq!(
        (moved[0].name.as_str(), moved[0].moved_bytes()),
        ("OnRead totals", 16)
    );
    check(Aggregation::Mean, 6.0, 7.0);
    assert!(check(Aggregation::OnlyFirstReplica, 6.0, 6.0).is_empty());

    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let v = strategy.variable("v", 1, Synchronization::OnRead, Aggregation::None);
    let error = v.expect("one number").read().expect_err("no aggregation");
    assert_eq!(error.code, "SC0515");
}

/// One copy, in one place or in parts: the update is applied once.
#[test]
fn where_there_is_one_copy() {
    let auto = Synchronization::Auto;
    let central = CentralStorageStrategy::logical(2).expect("two logical devices");
    let v = central
        .variable("v", 1.0, auto, Aggregation::Sum)
        .expect("one number");
    v.replica_update(|replica| replica.0 as f32 + 1.0)
        .expect("an aggregation");
    assert_eq!(
        (v.record().kind, v.copies()),
        (VariableKind::Central, vec![vec![4.0]])
    );
    assert_eq!(v.collectives()[0].moved_bytes(), 4);

    let servers = ParameterServerStrategy::logical(2, 2).expect("four logical devices");
    let table = vec![0.0, 1.0, 2.0, 3.0, 4.0];
    let v = servers.variable("whole", table.clone(), auto, Aggregation::Mean);
    let v = v.expect("numbers");
    assert_eq!(
        (v.record().kind, v.copies()),
        (VariableKind::Central, vec![table.clone()])
    );
    let servers = servers.variable_partitioner(Partitioner::FixedShards(2));
    let v = servers
        .expect("two shards")
        .variable("table", table, auto, Aggregation::Mean)
        .expect("numbers");
    assert_eq!(
        (v.record().kind, v.record().homes.as_slice()),
        (VariableKind::Sharded, &[2, 3][..])
    );
    assert_eq!(v.copies(), [vec![0.0, 1.0, 2.0], vec![3.0, 4.0]]);
    v.replica_update(|replica| [2.0 * replica.0 as f32; 5])
        .expect("an aggregation");
    let transfers = &v.collectives()[0].transfers;
    let found: Vec<_> = transfers.iter().map(|t| (t.from, t.to, t.bytes)).collect();
    assert_eq!(found, [(0, 2, 12), (0, 3, 8), (1, 2, 12), (1, 3, 8)]);
    assert_eq!(v.read().expect("parts"), [1.0, 2.0, 3.0, 4.0, 5.0]);
    let shown = v.to_string();
    assert!(
        shown.contains("  ps:1 (logical) rows 3–4: [4, 5]\n"),
        "{shown}"
    );

    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let v = one
        .variable("v", 1.0, auto, Aggregation::None)
        .expect("one number");
    v.replica_update(|_| 1.0)
        .expect("one replica needs no aggregation");
    assert_eq!(
        (v.record().kind, v.copies()),
        (VariableKind::Local, vec![vec![2.0]])
    );
    let error = v
        .replica_update(|_| [1.0, 2.0])
        .expect_err("two numbers for one");
    assert_eq!(
        error.message,
        "the number of values in the update is 2, but must be 1, as the value has"
    );
}
