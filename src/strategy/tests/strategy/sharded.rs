//! Sharded variables: which server stores which rows, what moves, and that the results are those of unsharded ones.

use std::collections::HashSet;

use crate::steps::{bits, placed, pushed, trained, weights};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor};
use proptest::prelude::*;
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, Origin, ParameterServerStrategy, Partitioner, PlacementReport,
    Replicas, VariableKind, VariableRecord,
};

use crate::encoder::Encoder;

fn servers(workers: usize, servers: usize) -> ParameterServerStrategy {
    ParameterServerStrategy::logical(workers, servers).expect("logical devices")
}

fn cut(workers: usize, count: usize, partitioner: Partitioner) -> ParameterServerStrategy {
    let strategy = servers(workers, count).variable_partitioner(partitioner);
    strategy.expect("a size above 0")
}

/// The shapes of a module's variables.
fn shapes(module: &Encoder) -> Vec<Vec<usize>> {
    struct Shapes(Vec<Vec<usize>>);
    impl ModuleVisitor for Shapes {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().dims().to_vec());
        }
    }
    let mut shapes = Shapes(Vec::new());
    module.visit(&mut shapes);
    shapes.0
}

/// 11 × 4 embeddings, a 4 × 4 kernel and its bias, and so on, over two servers: each has rows of its own and
/// nothing else. The bias of three goes to one of them whole by its size.
#[test]
fn a_server_keeps_its_rows_alone() {
    let replicas = placed(&cut(2, 2, Partitioner::MinSize(8)));
    let found = replicas.records().iter().filter(|record| {
        record.name.ends_with("word_embeddings.weight") || record.name.starts_with("classifier")
    });
    let found: Vec<_> = found
        .map(|it| (it.name.as_str(), it.kind, it.homes.clone(), it.rows.clone()))
        .collect();
    let (sharded, central) = (VariableKind::Sharded, VariableKind::Central);
    let embeddings = "bert.embeddings.word_embeddings.weight";
    assert_eq!(
        found,
        [
            (embeddings, sharded, vec![2, 3], vec![0..6, 6..11]),
            ("classifier.weight", sharded, vec![2, 3], vec![0..2, 2..4]),
            ("classifier.bias", central, vec![2], vec![]),
        ]
    );
    assert_eq!((replicas.copies(), replicas.modules().len()), (1, 2));
    let [first, second] = replicas.modules() else {
        unreachable!("two servers");
    };
    assert_eq!(shapes(first)[0], [6, 4]);
    assert_eq!(shapes(second)[0], [5, 4]);
    assert_eq!(shapes(first).last(), Some(&vec![3]));
    assert_eq!(shapes(second).last(), Some(&vec![0]), "it is not here");
    let original = weights(placed(&servers(2, 2)).first());
    let kept = weights(first).len() + weights(second).len();
    assert_eq!(kept, original.len(), "every number once");
    assert_eq!(bits(&weights(replicas.first())), bits(&original));
    assert_eq!(replicas.unsharded().len(), 1);
    let why = &replicas.records()[0].why;
    assert!(
        why.contains("`Partitioner::MinSize(8)` splits it by rows into 2 shards"),
        "{why}"
    );
}

/// Where a partitioner leaves everything whole, and without one, variables go to the servers in turn.
#[test]
fn small_variables_stay_whole() {
    for strategy in [servers(2, 2), cut(2, 2, Partitioner::MinSize(1 << 20))] {
        let replicas = placed(&strategy);
        let homes: Vec<_> = replicas
            .records()
            .iter()
            .map(|it| it.homes.clone())
            .collect();
        assert_eq!(homes[..3], [[2], [3], [2]]);
        assert!(
            replicas
                .records()
                .iter()
                .all(|it| it.kind == VariableKind::Central)
        );
        assert!(!replicas.is_sharded());
    }
}

/// The steps of a sharded model are those of a whole one, bit for bit; as many bytes move, elsewhere.
fn trains_alike(strategy: &ParameterServerStrategy, whole: &ParameterServerStrategy) {
    let (mut sharded, mut expected) = (placed(strategy), placed(whole));
    let asynchronous = strategy.strategy().is_asynchronous();
    let train = |replicas: &mut Replicas<Encoder>| match asynchronous {
        true => pushed(replicas),
        false => trained(replicas),
    };
    assert_eq!(
        bits(&train(&mut sharded)),
        bits(&train(&mut expected)),
        "{strategy}"
    );
    let (found, whole) = (sharded.collectives(), expected.collectives());
    assert_eq!(found.totals(), whole.totals());
    if !asynchronous {
        assert_eq!(found.last_step(), sharded.planned_collectives());
    }
    let sums = sharded.checksums().expect("the processor answers");
    for (record, sums) in sharded.records().iter().zip(sums) {
        assert_eq!(record.homes.len(), sums.len(), "a checksum per home");
        assert!(record.rows.is_empty() || record.rows.len() == sums.len());
    }
}

#[test]
fn shards_train_as_one() {
    let fixed = || cut(2, 3, Partitioner::FixedShards(3));
    trains_alike(&fixed().synchronous(), &servers(2, 3).synchronous());
    trains_alike(&fixed(), &servers(2, 3));
    let mirrored = MirroredStrategy::logical(2).expect("logical devices");
    assert_eq!(
        bits(&trained(&mut placed(&fixed().synchronous()))),
        bits(&trained(&mut placed(&mirrored))),
        "the same sums in the same order"
    );
}

/// What goes to a server in a step: the gradients of its rows.
#[test]
fn a_server_gets_the_gradients_of_its_rows() {
    let mut replicas = placed(&cut(2, 2, Partitioner::FixedShards(2)).synchronous());
    trained(&mut replicas);
    let last = replicas.collectives().last_step();
    let [fetch, reduce] = last.as_slice() else {
        unreachable!("a fetch and a reduce: {last:?}");
    };
    let on = |server: usize| 4 * weights(&replicas.modules()[server]).len() as u64;
    let pairs = |index: usize| -> Vec<_> {
        let transfers = last[index].transfers.iter();
        transfers.map(|t| (t.hop, t.from, t.to, t.bytes)).collect()
    };
    let (first, second) = (on(0), on(1));
    assert_eq!(
        pairs(0),
        [
            (0, 2, 0, first),
            (0, 2, 1, first),
            (0, 3, 0, second),
            (0, 3, 1, second)
        ]
    );
    assert_eq!(
        pairs(1),
        [
            (0, 0, 2, first),
            (0, 0, 3, second),
            (0, 1, 2, first),
            (0, 1, 3, second)
        ]
    );
    assert_eq!((fetch.hops(), reduce.hops()), (1, 1));
    assert_eq!(fetch.payload_bytes, first + second);
}

#[test]
fn values_and_flags_reach_every_shard() {
    let mut replicas = placed(&cut(1, 3, Partitioner::FixedShards(3)));
    let other = {
        let mut other = placed(&servers(1, 1).synchronous());
        trained(&mut other);
        other.first().clone()
    };
    assert_ne!(weights(replicas.first()), weights(&other));
    replicas.replace(&other).expect("the same variables");
    assert_eq!(bits(&weights(replicas.first())), bits(&weights(&other)));
    let one = replicas.records()[0].param;
    replicas.set_trainable(&HashSet::from([one]), false);
    assert!(!replicas.records()[0].trainable);
    let embeddings = |module: &Encoder| module.word_embeddings.weight.val().is_require_grad();
    assert!(!embeddings(replicas.first()));
    assert!(replicas.modules().iter().all(|module| !embeddings(module)));
}

#[test]
fn the_report_tells_the_rows() {
    let replicas = placed(&cut(1, 2, Partitioner::FixedShards(2)));
    let report = PlacementReport::of(&replicas).expect("the processor answers");
    let report = report.planned("gradients").titled("Encoder");
    let all = report.variables.len();
    assert_eq!(
        report.verdict(),
        format!("{all} variables, {all} of them split by rows over servers")
    );
    assert!(report.copies_are_equal());
    let weights: Vec<u64> = (0..3)
        .map(|device| report.device_totals(device).weights)
        .collect();
    let on = |server: usize| 4 * crate::steps::weights(&replicas.modules()[server]).len() as u64;
    assert_eq!(weights, [0, on(0), on(1)]);
    assert_eq!(
        report.device_totals(1).slots,
        [on(0)],
        "a gradient for every row"
    );
    let text = report.to_plain();
    let line = text.lines().find(|line| line.contains("classifier.weight"));
    let line = line.expect("a line a variable");
    assert!(
        line.contains("Sharded") && line.contains("rows 0–1") && line.contains("rows 2–3"),
        "{text}"
    );
    assert!(text.contains("split by rows, a shard on each"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = report.to_json();
    let of = |name: &str| {
        let rows = json["variables"].as_array().expect("an array");
        rows.iter()
            .find(|row| row["name"] == name)
            .expect(name)
            .clone()
    };
    let row = of("classifier.weight");
    assert_eq!(row["kind"], "Sharded");
    assert_eq!(row["rows"], serde_json::json!([null, [0, 2], [2, 4]]));
}

/// Before and after: shards are compared where both are cut alike.
#[test]
fn shards_are_compared_with_shards() {
    let report = |replicas: &Replicas<Encoder>| PlacementReport::of(replicas).expect("readable");
    let mut replicas = placed(&cut(2, 2, Partitioner::FixedShards(2)));
    let all = replicas.records().len();
    let before = report(&replicas);
    let same = before.diff(&report(&replicas));
    assert_eq!((same.moved(), same.changed()), (0, 0));
    pushed(&mut replicas);
    let stepped = before.diff(&report(&replicas));
    assert_eq!((stepped.moved(), stepped.changed()), (0, all));
    let whole = report(&placed(&servers(2, 2)));
    let other = before.diff(&whole);
    assert_eq!(
        (other.moved(), other.changed()),
        (all, 0),
        "not to be compared"
    );
}

/// What is no part of the module is shown with it and counted with nothing.
#[test]
fn the_state_of_metrics_stands_beside_the_module() {
    let strategy = MirroredStrategy::logical(2).expect("logical devices");
    let replicas = placed(&strategy);
    let module = PlacementReport::of(&replicas).expect("readable");
    let strategy = strategy.strategy();
    let origin = Origin::current();
    let record =
        VariableRecord::on_read("metrics.counts", &[2], DType::U64, Some(&strategy), origin);
    assert_eq!((record.kind, record.bytes), (VariableKind::OnRead, 16));
    let with = module
        .clone()
        .planned("gradients")
        .with_variable(&record, &[vec![1; 16], vec![2; 16]]);
    assert_eq!(with.verdict(), module.verdict());
    assert_eq!(
        with.device_totals(0).weights,
        module.device_totals(0).weights
    );
    assert!(with.copies_are_equal(), "these may differ");
    assert_eq!(with.diff(&module).moved(), 0);
    let text = with.to_plain();
    let parameters = |text: &str| {
        text.lines()
            .find(|it| it.contains("parameters"))
            .map(str::to_owned)
    };
    assert_eq!(parameters(&text), parameters(&module.to_plain()));
    let line = text.lines().find(|line| line.starts_with("metrics.counts"));
    assert!(
        line.is_some_and(|line| line.contains("OnRead ")),
        "no star: {text}"
    );
    let json = with.to_json();
    let last = json["variables"].as_array().and_then(|rows| rows.last());
    assert_eq!(last.expect("rows")["of_metrics"], true);
}

fn partitioners() -> impl Strategy<Value = Partitioner> {
    prop_oneof![
        (1..8_usize).prop_map(Partitioner::FixedShards),
        (1..200_u64).prop_map(Partitioner::MinSize),
        (1..200_u64).prop_map(Partitioner::MaxSize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any partitioner over any number of servers and workers: every number is on one server, they are
    /// put together as they were, and training goes on as without.
    #[test]
    fn any_cut_trains_as_none(
        partitioner in partitioners(),
        workers in 1..4_usize,
        count in 1..6_usize,
        synchronous in any::<bool>(),
    ) {
        let way = |strategy: ParameterServerStrategy| match synchronous {
            true => strategy.synchronous(),
            false => strategy,
        };
        let strategy = way(cut(workers, count, partitioner));
        let replicas = placed(&strategy);
        let original = weights(placed(&servers(1, 1)).first());
        prop_assert_eq!(bits(&weights(replicas.first())), bits(&original));
        if replicas.is_sharded() {
            let kept: usize = replicas.modules().iter().map(|it| weights(it).len()).sum();
            prop_assert_eq!(kept, original.len());
        }
        trains_alike(&strategy, &way(servers(workers, count)));
    }
}
