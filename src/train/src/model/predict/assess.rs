//! `predictions.assess(&dev)?` and `predictions.difference(&others, &dev)?`: predictions of classes beside their labels.

use stratoscope_data::{Dataset, Example, Label};
use stratoscope_diagnostics::rules::SingleSeed;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_evaluation::{Answer, Assessment, Difference, IntoScores, Scores};
use stratoscope_render::text;

use super::Predictions;
use crate::context::warnings::notice;
use crate::prepare;
use crate::problem;
use crate::report::history::{Evaluation, History, Measured};

impl Predictions {
    /// What the predictions say about the model, by the labels of `data`: accuracy and macro F1 with intervals, every
    /// class, calibration, and the errors that the model is surest of.
    ///
    /// `data` is the data set that was predicted, or one of as many examples in the same order. Probabilities that were
    /// edited count as they are, and so does the class that is the most probable by them.
    ///
    /// # Errors
    /// SC0103 for predictions that are no classes of texts, for data of another length, and for an example whose label is
    /// none of the classes; SC0520 if it is interrupted.
    pub fn assess(&self, data: &Dataset) -> Result<Assessment> {
        Assessment::of(self.answers("assess", data)?, &self.label_names)
    }

    /// Whether the model of these predictions is better than that of `other`, by the labels of `data`: McNemar's test and
    /// the difference in accuracy and macro F1 with intervals.
    ///
    /// # Errors
    /// As [`Self::assess`], and SC0103 for other classes.
    pub fn difference(&self, other: &Self, data: &Dataset) -> Result<Difference> {
        // A model that was never trained has no names of its own for its classes.
        let has_names = |names: &[String]| !prepare::are_generic(names);
        let differ = self.label_names != other.label_names
            && has_names(&self.label_names)
            && has_names(&other.label_names);
        if differ || self.label_names.len() != other.label_names.len() {
            let given = format!("the classes {}", text::names(&other.label_names, 8));
            let expects = format!("the classes {}", text::names(&self.label_names, 8));
            let problem = problem::bad_value("difference", "other", given, expects);
            return Err(Box::new(problem));
        }
        let answers = [self, other].map(|predictions| predictions.answers("difference", data));
        let [first, second] = answers;
        let found = Difference::of(&first?, &second?, self.label_names.len())?;
        let rule = SingleSeed {
            examples: found.examples,
        };
        if let Some(note) = rule.check() {
            notice(note)?;
        }
        Ok(found)
    }

    /// Each prediction beside its label.
    fn answers(&self, call: &str, data: &Dataset) -> Result<Vec<Answer>> {
        let bad = |given: String, expects: String| {
            Box::new(problem::bad_value(call, "data", given, expects))
        };
        let classes = self.label_names.len();
        if self.are_words() || self.are_answers() || self.are_sets() || classes == 0 {
            let expects = "predictions of one class for each example";
            return Err(bad(
                "predictions of another kind".to_owned(),
                expects.to_owned(),
            ));
        }
        if data.len() != self.len() {
            let given = text::count(data.len(), "example");
            return Err(bad(
                given,
                format!("{}, one for each prediction", self.len()),
            ));
        }
        let class_of = self.classes_of(data);
        let rows = data.examples.iter().zip(&self.rows);
        let answers = rows.map(|(example, row)| {
            let label = class_of(example).filter(|&label| label < classes);
            let (Some(label), Some(predicted)) = (label, row.decided()) else {
                let given = row_and_label(example, data);
                return Err(bad(given, format!("a label of the {classes} classes")));
            };
            Ok(Answer {
                row: example.row,
                text: row.text.clone(),
                pair: row.pair.clone(),
                label,
                predicted,
                probabilities: row.probabilities.clone(),
            })
        });
        answers.collect()
    }

    /// What says the class of an example of `data` among those of the model: by its name, whatever their order in the
    /// data; by its number where the model or the data has no names. A name that the model does not know is no class.
    pub(super) fn classes_of(&self, data: &Dataset) -> impl Fn(&Example) -> Option<usize> {
        let (own, names) = (&self.label_names, &data.label_names);
        let place = |name: &String| own.iter().position(|it| it == name);
        let places: Vec<Option<usize>> = names.iter().map(place).collect();
        let is_by_number =
            places.iter().all(Option::is_none) && (are_no_names(own) || are_no_names(names));
        move |example| match (example.class(), example.label) {
            (Some(class), _) if is_by_number => Some(class),
            (Some(class), _) => places.get(class).copied().flatten(),
            (None, Some(Label::Value(value))) => Some(usize::from(value > 0.5)),
            (None, _) => None,
        }
    }
}

/// Whether nobody gave the classes names: they are transformers' `LABEL_3`, or numbers.
fn are_no_names(names: &[String]) -> bool {
    let is_number = |name: &String| name.parse::<i64>().is_ok();
    prepare::are_generic(names) || names.iter().all(is_number)
}

/// A row and its label, for a message.
pub(super) fn row_and_label(example: &Example, data: &Dataset) -> String {
    let name = example
        .class()
        .and_then(|class| data.label_names.get(class));
    match name {
        Some(name) => format!("row {} with the label {name:?}", example.row),
        None => format!("row {} with the label {:?}", example.row, example.label),
    }
}

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
    use super::*;
    use stratoscope_evaluation::{Axis, Search, sweep};

    use crate::metric::Predicted;
    use crate::report::history::EpochRecord;

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

    /// Edited probabilities say what is predicted; a class that was edited beside them is taken as it is.
    #[test]
    fn what_was_edited_counts() {
        let data = Dataset::from_rows(["a", "b", "c"], ["no", "yes", "yes"]).expect("three rows");
        let row = |probabilities: [f64; 2]| {
            let class = usize::from(probabilities[1] > probabilities[0]);
            crate::model::predict::Prediction {
                label: ["no", "yes"][class].to_owned(),
                class: Some(class),
                score: probabilities[class],
                probabilities: probabilities.to_vec(),
                ..Default::default()
            }
        };
        let mut predictions = Predictions {
            rows: [[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]].map(row).to_vec(),
            label_names: vec!["no".to_owned(), "yes".to_owned()],
            cut: None,
        };
        let right = |predictions: &Predictions| {
            let answers = predictions.answers("assess", &data).expect("classes");
            answers
                .iter()
                .map(|it| it.label == it.predicted)
                .collect::<Vec<_>>()
        };
        assert_eq!(right(&predictions), [true, false, false]);
        // The mean with another model.
        predictions.rows[1].probabilities = vec![0.35, 0.65];
        assert_eq!(right(&predictions), [true, true, false]);
        let matrix = predictions.confusion_matrix(&data).expect("classes");
        assert_eq!(matrix.counts, [[1, 0], [1, 1]]);
        // Another threshold.
        predictions.rows[2].class = Some(1);
        assert_eq!(right(&predictions), [true, true, true]);
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
