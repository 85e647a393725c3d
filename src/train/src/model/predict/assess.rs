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
    /// `data` is the data set that was predicted, or one of as many examples in the same order.
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
        let rows = data.examples.iter().zip(&self.rows);
        let answers = rows.map(|(example, row)| {
            let label = self
                .class_of(example, data)
                .filter(|&label| label < classes);
            let (Some(label), Some(predicted)) = (label, row.class) else {
                let given = format!("row {} with the label {:?}", example.row, example.label);
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

    /// The class of an example among those of the model: by its name where the data has the names of the model, whatever
    /// their order there.
    pub(super) fn class_of(&self, example: &Example, data: &Dataset) -> Option<usize> {
        match (example.class(), example.label) {
            (Some(class), _) => {
                let name = data.label_names.get(class);
                let by_name =
                    name.and_then(|name| self.label_names.iter().position(|it| it == name));
                by_name.or(Some(class))
            }
            (None, Some(Label::Value(value))) => Some(usize::from(value > 0.5)),
            (None, _) => None,
        }
    }
}

/// The metrics, then the loss.
fn scores(prefix: &str, metrics: &[Measured], loss: f64) -> Vec<(String, Option<f64>)> {
    let name = |name: &str| format!("{prefix}{name}");
    let own = metrics.iter().map(|it| (name(it.name), it.value));
    own.chain([(name("loss"), Some(loss))]).collect()
}

impl IntoScores for Evaluation {
    fn into_scores(self) -> Scores {
        Scores(scores("", &self.metrics, self.loss))
    }
}

impl IntoScores for History {
    /// Of the last epoch, with `val_` before the names of its validation. Nothing without a whole epoch.
    fn into_scores(self) -> Scores {
        let Some(last) = self.epochs.last() else {
            return Scores::default();
        };
        let validation = last.validation.iter();
        let mut all: Vec<_> = validation
            .flat_map(|it| scores("val_", &it.metrics, it.loss))
            .collect();
        all.extend(scores("", &last.metrics, last.loss));
        Scores(all)
    }
}
