//! `predictions.assess(&dev)?` and `predictions.difference(&others, &dev)?`: predictions of classes beside their labels.

use stratoscope_data::{Dataset, Example, Label};
use stratoscope_diagnostics::rules::SingleSeed;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_evaluation::{Answer, Assessment, Difference};
use stratoscope_render::text;

use super::Predictions;
use crate::problem;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_step::prepare;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
