//! The results of a run as numbers with names, which trials are compared by.

use stratoscope_evaluation::{IntoScores, Scores};

use super::{Evaluation, History, Measured};

/// A result: its name, its value, and whether a smaller one is better.
type Score = (String, Option<f64>, bool);

/// The metrics, then the loss.
fn scores(prefix: &str, metrics: &[Measured], low_is_good: &[&str], loss: f64) -> Vec<Score> {
    let name = |name: &str| format!("{prefix}{name}");
    let own = metrics
        .iter()
        .map(|it| (name(it.name), it.value, low_is_good.contains(&it.name)));
    own.chain([(name("loss"), Some(loss), true)]).collect()
}

fn gathered(all: Vec<Score>) -> Scores {
    // Of the others their names decide.
    let low = all.iter().filter(|(.., is_low)| *is_low);
    let directions = low.map(|(name, ..)| (name.clone(), true)).collect();
    let values = all.into_iter().map(|(name, value, _)| (name, value));
    Scores::from(values.collect::<Vec<_>>()).with_directions(directions)
}

impl IntoScores for Evaluation {
    fn into_scores(self) -> Scores {
        gathered(scores("", &self.metrics, &self.low_is_good, self.loss))
    }
}

impl IntoScores for History {
    /// Of the epoch whose weights the model has: the best one where its weights were restored, else the last. `val_` stands
    /// before the names of its validation. Nothing without a whole epoch.
    fn into_scores(self) -> Scores {
        let best = self.best_epoch.filter(|_| self.restored_best);
        let best = best.and_then(|best| self.epochs.iter().find(|it| it.epoch == best));
        let Some(record) = best.or(self.epochs.last()) else {
            return Scores::default();
        };
        let low = &self.low_is_good;
        let validation = record.validation.iter();
        let mut all: Vec<Score> = validation
            .flat_map(|it| scores("val_", &it.metrics, low, it.loss))
            .collect();
        all.extend(scores("", &record.metrics, low, record.loss));
        gathered(all)
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_evaluation::{Axis, Search, sweep};
    use stratoscope_metrics::metric::Predicted;

    use super::super::EpochRecord;
    use super::*;

    fn history(low_is_good: Vec<&'static str>) -> History {
        let epoch = |epoch: u64, loss: f64| {
            let metrics = vec![Measured {
                name: "far",
                value: Some(2.0 * loss),
            }];
            EpochRecord {
                epoch,
                loss,
                metrics: metrics.clone(),
                validation: Some(Evaluation {
                    loss: loss + 0.5,
                    metrics,
                    examples: 4,
                    predictions: Predicted::default(),
                    seconds: 0.1,
                    low_is_good: low_is_good.clone(),
                    cut: None,
                    other_length: None,
                }),
                learning_rate: 1e-3,
                seconds: 1.0,
                sequences_per_second: 4.0,
            }
        };
        let mut history = History::new("cpu:0".to_owned());
        history.epochs = vec![epoch(3, 0.25), epoch(4, 1.0)];
        history.low_is_good = low_is_good;
        history
    }

    /// A history is judged by the weights that the model has.
    #[test]
    fn the_scores_of_a_run_are_those_of_the_epoch_that_stays() {
        let value = |history: &History, name: &str| history.clone().into_scores().get(name);
        let mut run = history(Vec::new());
        run.best_epoch = Some(3);
        assert_eq!(value(&run, "loss"), Some(1.0));
        assert_eq!(value(&run, "val_loss"), Some(1.5));
        run.restored_best = true;
        assert_eq!(value(&run, "loss"), Some(0.25));
        assert_eq!(value(&run, "val_far"), Some(0.5));
    }

    #[test]
    fn a_score_says_whether_a_smaller_one_is_better() {
        let best = |low_is_good: Vec<&'static str>, name: &str| {
            let axes = vec![Axis::new("epoch", &[0, 1])];
            let trial = |chosen: &[usize]| {
                let mut run = history(low_is_good.clone());
                run.epochs.truncate(1 + chosen[0]);
                Ok(run)
            };
            let found = sweep(&Search::grid(), axes, trial).expect("two trials");
            found.best(name).map(|trial| trial.number)
        };
        for name in ["far", "val_far"] {
            assert_eq!(best(Vec::new(), name), Some(2), "{name}");
            assert_eq!(best(vec!["far"], name), Some(1), "{name}");
        }
        assert_eq!(best(Vec::new(), "val_loss"), Some(1));
    }
}
