//! Replicas and collectives: copies that share nothing, sums with fixed order, training that keeps copies
//! equal.

use std::collections::HashSet;

use crate::encoder::{Encoder, constant_gradients, named};
use burn::backend::DispatchTensorKind;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Int, Tensor, TensorData};
use proptest::prelude::*;
use stratoscope_strategy::collective::{CrossDeviceOps, Operation};
use stratoscope_strategy::{MirroredStrategy, Origin, Replicas, scope};

fn placed(replicas: usize, layers: usize) -> Replicas<Encoder> {
    let strategy = MirroredStrategy::logical(replicas).expect("at most 64");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let module = Encoder::new(layers, &scope::device().expect("a processor"));
    let names = named(&module);
    Replicas::place(module, &names, Origin::current()).expect("the processor takes copies")
}

/// Rows of token ids, four tokens each, and a label per row.
fn rows(count: usize, seed: usize) -> (Vec<i32>, Vec<i32>) {
    let number = |i: usize| i32::try_from((i * 7 + seed * 13 + i * i) % 11).unwrap_or(0);
    let ids = (0..count * 4).map(number).collect();
    (ids, (0..count).map(|i| number(i + seed) % 3).collect())
}

/// The gradients of the mean loss over some rows.
fn gradients(module: &Encoder, ids: &[i32], labels: &[i32]) -> GradientsParams {
    let device = module
        .devices()
        .first()
        .cloned()
        .expect("a device")
        .autodiff();
    let ids =
        Tensor::<2, Int>::from_data(TensorData::new(ids.to_vec(), [labels.len(), 4]), &device);
    let labels =
        Tensor::<1, Int>::from_data(TensorData::new(labels.to_vec(), [labels.len()]), &device);
    let loss = burn::nn::loss::CrossEntropyLossConfig::new().init(&device);
    let loss = loss.forward(module.forward(ids), labels);
    GradientsParams::from_grads(loss.backward(), module)
}

/// All numbers of all gradients, in the order of the module's fields.
fn numbers(module: &Encoder, gradients: &GradientsParams) -> Vec<f32> {
    struct Read<'a>(&'a GradientsParams, Vec<f32>);
    impl ModuleVisitor for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("every parameter has one");
            self.1.extend(gradient.into_data().iter::<f32>());
        }
    }
    let mut read = Read(gradients, Vec::new());
    module.visit(&mut read);
    read.1
}

fn split(ids: &[i32], labels: &[i32], sizes: &[usize]) -> Vec<(Vec<i32>, Vec<i32>)> {
    let mut start = 0;
    let shard = |&size: &usize| {
        let rows = start..start + size;
        start += size;
        (
            ids[rows.start * 4..rows.end * 4].to_vec(),
            labels[rows].to_vec(),
        )
    };
    sizes.iter().map(shard).collect()
}

/// A step's gradients: computed on each replica's thread, reduced.
fn reduced(
    replicas: &Replicas<Encoder>,
    shards: Vec<(Vec<i32>, Vec<i32>)>,
) -> Vec<GradientsParams> {
    let samples: Vec<usize> = shards.iter().map(|(_, labels)| labels.len()).collect();
    let gradients = replicas
        .for_each_replica(shards, |_, module, (ids, labels)| {
            if labels.is_empty() {
                GradientsParams::new()
            } else {
                gradients(module, &ids, &labels)
            }
        })
        .expect("one shard per replica");
    replicas
        .all_reduce(gradients, &samples)
        .expect("one set of gradients per replica")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the shards' sizes (0 too), the reduced gradient is that of the whole batch.
    #[test]
    fn uneven_shards_reduce_to_the_gradient_of_the_batch(
        sizes in prop::collection::vec(0_usize..6, 2..5),
        seed in 0_usize..1000,
    ) {
        let total: usize = sizes.iter().sum();
        prop_assume!(total > 0);
        let replicas = placed(sizes.len(), 2);
        let (ids, labels) = rows(total, seed);
        let whole = numbers(replicas.first(), &gradients(replicas.first(), &ids, &labels));
        let results = reduced(&replicas, split(&ids, &labels, &sizes));
        let first = numbers(replicas.first(), &results[0]);
        // The same sum in another order: the error is of float32's rounding, relative to the largest.
        let largest = whole.iter().fold(1e-3_f32, |most, x| most.max(x.abs()));
        for (found, expected) in first.iter().zip(&whole) {
            prop_assert!((found - expected).abs() <= 1e-5 * largest, "{found} is not {expected}");
        }
        for (module, result) in replicas.modules().iter().zip(&results) {
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&numbers(module, result)), bits(&first), "equal bit for bit");
        }
    }
}

/// The rows of docs/keras-semantics.md §4: five samples as 3 + 2. A plain mean of means would give 101.0.
#[test]
fn three_and_two_are_five() {
    let replicas = placed(2, 0);
    let module = replicas.first();
    let constant = |value: f32| constant_gradients(module, value);
    let results = replicas
        .all_reduce(vec![constant(15.0), constant(-5.0)], &[3, 2])
        .expect("two of each");
    for number in numbers(module, &results[1]) {
        assert!(
            (number - 7.0).abs() < 1e-6,
            "(3·15 − 2·5) / 5 is 7, not {number}"
        );
    }
    // A replica without samples has no say, not even with NaN.
    let results = replicas
        .all_reduce(vec![constant(1.5), constant(f32::NAN)], &[4, 0])
        .expect("two of each");
    assert!(
        numbers(module, &results[0])
            .iter()
            .all(|&number| number == 1.5)
    );

    let log = replicas.collectives();
    let recent = log.recent();
    let found: Vec<_> = recent
        .iter()
        .map(|r| {
            (
                r.operation,
                r.ops,
                r.number,
                r.replicas,
                r.tensors,
                r.bytes,
                r.moved_bytes,
            )
        })
        .collect();
    let row = |number| {
        (
            Operation::AllReduce,
            CrossDeviceOps::Centralized,
            number,
            2,
            3,
            236,
            472,
        )
    };
    assert_eq!(found, [row(1), row(2)]);
    let totals = log.totals();
    assert_eq!(
        (totals.all_reduces, totals.bytes, totals.moved_bytes),
        (2, 472, 944)
    );
}

#[test]
fn one_replica_reduces_nothing() {
    let replicas = placed(1, 0);
    let (ids, labels) = rows(3, 1);
    let results = reduced(&replicas, vec![(ids, labels)]);
    assert_eq!(results.len(), 1);
    assert_eq!(replicas.collectives().totals().all_reduces, 0);
}

#[test]
fn what_does_not_fit_is_a_diagnostic() {
    let replicas = placed(2, 0);
    let check = |gradients: usize, samples: &[usize], message: &str| {
        let gradients = (0..gradients).map(|_| GradientsParams::new()).collect();
        let error = replicas
            .all_reduce(gradients, samples)
            .expect_err("it does not fit");
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("SC0915", message)
        );
    };
    check(
        1,
        &[1, 1],
        "the number of sets of gradients is 1, but must be 2, one per replica",
    );
    check(
        2,
        &[1],
        "the number of sample counts is 1, but must be 2, one per replica",
    );
    check(
        2,
        &[0, 0],
        "the number of samples is 0, but must be at least 1",
    );
    let error = replicas
        .for_each_replica(vec![1], |_, _, x: i32| x)
        .expect_err("one input");
    assert_eq!(
        error.message,
        "`inputs` is 1, but must be 2, one per replica"
    );
}

/// burn clones share storage until one of them is written: replicas must not.
#[test]
fn storages_are_not_shared() {
    let mut replicas = placed(3, 1);
    let before = replicas.checksums().expect("the processor answers");
    // The classifier's bias of replica 1, written in place.
    let changed = replicas.modules()[1].clone().with_other_bias();
    replicas.modules_mut()[1] = changed;
    let after = replicas.checksums().expect("the processor answers");
    for (row, (before, after)) in before.iter().zip(&after).enumerate() {
        let last = row + 1 == replicas.records().len();
        assert_eq!(before[0], after[0], "replica 0 is as it was");
        assert_eq!(before[2], after[2], "replica 2 is as it was");
        assert_eq!(
            before[1] != after[1],
            last,
            "only the bias of replica 1 has changed"
        );
    }
    // And the buffers are three: the addresses of what each replica holds.
    let address = |module: &Encoder| address(module.classifier.weight.val());
    let addresses: Vec<usize> = replicas.modules().iter().map(address).collect();
    let distinct: HashSet<usize> = addresses.iter().copied().collect();
    assert_eq!(distinct.len(), 3, "{addresses:?}");
    let clone = replicas.modules()[0].clone();
    assert_eq!(
        address(&clone),
        addresses[0],
        "a clone does share: the check can fail"
    );
}

/// Where the bytes of a tensor of the flex backend are.
fn address(tensor: Tensor<2>) -> usize {
    match tensor.without_autodiff().into_dispatch().kind {
        DispatchTensorKind::Flex(tensor) => tensor.as_float().bytes().as_ptr().addr(),
        _ => panic!("the processor's tensors are of the flex backend"),
    }
}

/// A checkpoint that was read again has the values but other identities.
#[test]
fn replaced_values_keep_their_identities() {
    let (mut replicas, other) = (placed(2, 1), placed(1, 1));
    let before: Vec<_> = replicas
        .records()
        .iter()
        .map(|record| record.param)
        .collect();
    replicas.replace(other.first()).expect("the same variables");
    let sums = replicas.checksums().expect("the processor answers");
    let expected = other.checksums().expect("the processor answers");
    for (index, (found, expected)) in sums.iter().zip(&expected).enumerate() {
        assert_eq!(
            found.as_slice(),
            [expected[0], expected[0]],
            "variable {index}"
        );
    }
    let after: Vec<_> = named(replicas.first())
        .into_iter()
        .map(|(_, id)| id)
        .collect();
    assert_eq!(before, after);
    let error = replicas
        .replace(placed(1, 2).first())
        .expect_err("it has a layer more");
    assert_eq!(error.code, "SC0915");
    assert_eq!(
        replicas.checksums().expect("the processor answers"),
        sums,
        "nothing has changed"
    );
}

/// What was frozen since the values were copied stays frozen, and what was unfrozen is trained.
#[test]
fn replaced_values_are_trained_as_those_before() {
    let mut replicas = placed(2, 1);
    let records = replicas.records().iter();
    let ids: Vec<_> = records.map(|record| record.param).collect();
    let of = |index: usize| HashSet::from([ids[index]]);
    replicas.set_trainable(&of(0), false);
    let kept = replicas.independent_copy(replicas.first());
    replicas.set_trainable(&of(0), true);
    replicas.set_trainable(&of(1), false);
    replicas.replace(&kept).expect("the same variables");
    let trained = |module: &Encoder| -> Vec<bool> {
        let copy = Replicas::place(module.clone(), &[], Origin::current());
        let copy = copy.expect("the processor takes copies");
        let records = copy.records().iter();
        records.map(|record| record.trainable).collect()
    };
    let expected: Vec<bool> = (0..ids.len()).map(|index| index != 1).collect();
    for module in replicas.modules() {
        assert_eq!(trained(module), expected);
    }
}

#[test]
fn an_update_reaches_every_replica_and_survives_a_panic() {
    let mut replicas = placed(2, 1);
    let updated = replicas.update_each_replica(vec![10, 20], |id, module, x: i32| {
        *module = module.clone().with_other_bias();
        (id.0, x)
    });
    assert_eq!(updated.expect("one input per replica"), [(0, 10), (1, 20)]);
    let sums = replicas.checksums().expect("the processor answers");
    assert!(sums.iter().all(|row| row[0] == row[1]));

    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        replicas.update_each_replica(vec![false, true], |_, _, fails| {
            assert!(!fails, "on purpose")
        })
    }));
    assert!(panic.is_err());
    assert_eq!(replicas.len(), 2, "the modules are still there");
    assert_eq!(replicas.checksums().expect("the processor answers"), sums);
}

/// Three steps of AdamW with uneven batches: the copies stay equal bit for bit, and a second run gives the
/// same bits.
#[test]
fn training_keeps_replicas_equal_and_repeats_itself() {
    let start = placed(2, 2);
    let train = || {
        let mut replicas = placed(2, 2);
        replicas.replace(start.first()).expect("the same module");
        let optimizers = || AdamWConfig::new().init();
        let mut optimizers = vec![optimizers(), optimizers()];
        for step in 0..3 {
            let (ids, labels) = rows(5, step);
            let gradients = reduced(&replicas, split(&ids, &labels, &[3, 2]));
            for ((module, gradients), optimizer) in replicas
                .modules_mut()
                .iter_mut()
                .zip(gradients)
                .zip(&mut optimizers)
            {
                *module = optimizer.step(1e-2, module.clone(), gradients);
            }
        }
        replicas.checksums().expect("the processor answers")
    };
    let first = train();
    assert!(first.iter().all(|row| row[0] == row[1]), "copies are equal");
    assert_eq!(first, train(), "bit for bit");
    assert_ne!(
        first,
        start.checksums().expect("the processor answers"),
        "it did train"
    );
}
