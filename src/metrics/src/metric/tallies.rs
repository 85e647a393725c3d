//! The state of a model's metrics: a variable that is synchronized when it is read, as metrics' totals are in
//! Keras. Where each replica has a copy of every variable, each counts in a tally of its own (kind OnRead),
//! and nothing goes between replicas until somebody reads: then the tallies are added up. Where a strategy
//! keeps one copy of each variable, there is one tally.
//!
//! Counts are whole numbers, so that any number of replicas gives the same sums. All metrics of a model are
//! computed from the same tally.

use burn::tensor::DType;
use stratoscope_data::Labels;
use stratoscope_render::text;
use stratoscope_strategy::{
    Origin, PlacementReport, Strategy, StrategyKind, VariableKind, VariableRecord,
};

use super::{Metric, Tally};

/// One tally per copy.
#[derive(Clone, Debug)]
pub struct Tallies {
    pub(super) copies: Vec<Tally>,
    strategy: Option<Strategy>,
    /// The `compile!` that made it.
    origin: Origin,
}

impl Tallies {
    /// Nothing counted yet, by copies of `tally`, in the scope of the model's strategy.
    pub fn new(tally: Tally, strategy: Option<&Strategy>, origin: Origin) -> Self {
        let record = VariableRecord::on_read("", &[], DType::U64, strategy, Origin::default());
        Self {
            copies: vec![tally; record.homes.len()],
            strategy: strategy.cloned(),
            origin,
        }
    }

    /// The same at the begin of another split.
    pub fn emptied(&self, tally: Tally) -> Self {
        Self::new(tally, self.strategy.as_ref(), self.origin.clone())
    }

    /// A replica counts its part of a batch. See [`Tally::add`].
    pub fn add(&mut self, replica: usize, labels: &Labels, outputs: &[f32]) {
        // One copy is everybody's.
        let copy = replica % self.copies.len();
        self.copies[copy].add(labels, outputs);
    }

    /// What all replicas have counted.
    pub fn read(&self) -> Tally {
        Tally::sum(&self.copies)
    }

    /// A row for each variable of the state of these metrics.
    pub fn shown(&self, report: PlacementReport, metrics: &[Metric]) -> PlacementReport {
        if metrics.is_empty() {
            return report;
        }
        let states: Vec<_> = match self.is_of_the_chief() {
            true => vec![self.read().state()],
            false => self.copies.iter().map(Tally::state).collect(),
        };
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name()).collect();
        let counted = format!("the counts for {}, kept on the host", names.join(", "));
        let variables = 0..states[0].len();
        variables.fold(report, |report, index| {
            // The copies of pairs are as long as what each has seen.
            let copies = states.iter().map(|state| &state[index]);
            let Some((name, shape, _)) = copies.clone().max_by_key(|(_, _, bytes)| bytes.len())
            else {
                return report;
            };
            let dtype = match *name {
                "metrics.pairs" | "metrics.answer_scores" | "metrics.own" => DType::F64,
                _ => DType::U64,
            };
            let bytes: Vec<Vec<u8>> = copies.map(|(_, _, bytes)| bytes.clone()).collect();
            report.with_variable(&self.record(name, shape, dtype, &counted), &bytes)
        })
    }

    /// Worker processes send the chief what they compute, which counts it for all of them.
    fn is_of_the_chief(&self) -> bool {
        let strategy = self.strategy.as_ref();
        strategy.is_some_and(|it| it.kind() == StrategyKind::MultiWorkerMirrored)
    }

    fn record(&self, name: &str, shape: &[usize], dtype: DType, counted: &str) -> VariableRecord {
        let strategy = self.strategy.as_ref();
        let mut record = VariableRecord::on_read(name, shape, dtype, strategy, self.origin.clone());
        if let (true, Some(strategy)) = (self.is_of_the_chief(), strategy) {
            record.kind = VariableKind::Central;
            record.homes.truncate(1);
            record.why = format!(
                "made by `compile!` in the scope of `{}`: {counted} of the chief: workers send it the outputs of their \
                 examples, have no counts of their own, and nothing is read from them",
                strategy.label()
            );
            return record;
        }
        record.why = match (record.kind, strategy) {
            (VariableKind::OnRead, Some(strategy)) => format!(
                "made by `compile!` in the scope of `{}`: {counted}; each of {} has its own, and reading a metric adds them up",
                strategy.label(),
                text::count(self.copies.len(), "replica")
            ),
            _ => format!("made by `compile!`: {counted}"),
        };
        record
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{
        AsStrategy, CentralStorageStrategy, MirroredStrategy, ParameterServerStrategy,
    };

    use super::*;

    /// 12 examples of 3 classes in batches of 5, 5 and 2, split as `fit!` splits them.
    fn counted(mut tallies: Tallies, replicas: usize, as_classes: bool) -> Tallies {
        let examples: Vec<(i32, f32)> =
            (0..12).map(|i| (i % 3, 0.1 * (i * i % 7) as f32)).collect();
        for batch in [&examples[..5], &examples[5..10], &examples[10..]] {
            let mut start = 0;
            for replica in 0..replicas.min(batch.len()) {
                let size = batch.len() / replicas + usize::from(replica < batch.len() % replicas);
                let part = &batch[start..start + size];
                start += size;
                match as_classes {
                    true => {
                        let labels = part.iter().map(|&(label, _)| label).collect();
                        let outputs = part.iter().flat_map(|&(_, x)| [0.2, x, 0.35]);
                        let outputs: Vec<f32> = outputs.collect();
                        tallies.add(replica, &Labels::Classes(labels), &outputs);
                    }
                    false => {
                        let labels = part.iter().map(|&(label, _)| label as f32).collect();
                        let outputs: Vec<f32> = part.iter().map(|&(_, x)| x).collect();
                        tallies.add(replica, &Labels::Values(labels), &outputs);
                    }
                }
            }
        }
        tallies
    }

    #[test]
    fn any_number_of_replicas_counts_the_same() {
        let one = |tally| Tallies::new(tally, None, Origin::default());
        for replicas in 1..=7 {
            let strategy = MirroredStrategy::logical(replicas).expect("logical devices");
            let strategy = strategy.strategy();
            let top = [Metric::TopKAccuracy { k: 2 }];
            let classes = Tally::of_classes(3).measuring(&top, true);
            let two = Tally::of_two_classes_by_one_output(0.3);
            let two = two.measuring(&[Metric::Auc, Metric::KerasAuc, Metric::Rmse], true);
            for (tally, as_classes) in [(classes, true), (two, false), (Tally::of_numbers(), false)]
            {
                let made = Tallies::new(tally.clone(), Some(&strategy), Origin::default());
                assert_eq!(made.copies.len(), replicas);
                let many = counted(made, replicas, as_classes);
                let alone = counted(one(tally.clone()), 1, as_classes);
                assert_eq!(many.read(), alone.read(), "{replicas} replicas");
                assert_eq!(many.read().examples(), 12);
                if replicas > 1 {
                    assert!(many.copies[1].examples() > 0, "the second counted too");
                    assert_ne!(many.copies[0], many.read(), "before it is read: a part");
                }
                for metric in Metric::ALL {
                    let value = |tallies: &Tallies| metric.value(&tallies.read()).map(f64::to_bits);
                    assert_eq!(value(&many), value(&alone), "{metric} on {replicas}");
                }
                let state = alone.read().state();
                assert!(
                    state
                        .iter()
                        .all(|(.., bytes)| bytes.iter().any(|&it| it > 0))
                );
                assert_eq!(many.emptied(tally).read().examples(), 0);
            }
        }
    }

    #[test]
    fn where_there_is_one_copy_there_is_one_tally() {
        let central = CentralStorageStrategy::logical(3).expect("logical devices");
        let servers = ParameterServerStrategy::logical(3, 2).expect("logical devices");
        for strategy in [central.strategy(), servers.strategy()] {
            let tallies = Tallies::new(Tally::of_classes(3), Some(&strategy), Origin::default());
            let tallies = counted(tallies, 3, true);
            assert_eq!((tallies.copies.len(), tallies.read().examples()), (1, 12));
        }
    }
}
