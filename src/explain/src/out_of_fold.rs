//! [`out_of_fold`]: each row answered by a model that was trained without it.

use std::fmt;

use stratoscope_audit::{Folds, classes_of};
use stratoscope_data::Dataset;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, problem};
use stratoscope_evaluation::{Answer, Assessment};
use stratoscope_models::Predictions;
use stratoscope_render::text;

/// Out-of-sample probabilities of each row.
#[derive(Clone, PartialEq)]
pub struct OutOfFold {
    /// A row for each example with a number for each class, in the order of `data.label_names`.
    pub probabilities: Vec<Vec<f64>>,
    /// How many models were trained.
    pub folds: usize,
    answers: Vec<Answer>,
    label_names: Vec<String>,
}

/// Cross-validates: calls `run` for each fold with the other folds and with the fold itself, which `run` predicts with a model
/// that it trains on the former. Each fold has the classes in the same proportion.
///
/// ```no_run
/// # use stratoscope_data::debian_sections;
/// # use stratoscope_explain::out_of_fold;
/// # use stratoscope_models::{AdamW, BertForSequenceClassification, CompileArgs, FitArgs};
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let (train, _) = debian_sections()?;
/// let answers = out_of_fold(&train, 5, |others, fold| {
///     let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
///     model.compile(CompileArgs::new().optimizer(AdamW::new(5e-5)).loss("sparse_categorical_crossentropy"))?;
///     model.fit(others, FitArgs::new().epochs(2))?;
///     model.predict(fold)
/// })?;
/// println!("{:?}", answers.probabilities[0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// SC0722 for data without a class for each row; SC0723 for a class with fewer rows than folds; SC0103 if `run` answers other
/// rows or other classes; what `run` ends with.
pub fn out_of_fold(
    data: &Dataset,
    folds: usize,
    mut run: impl FnMut(&Dataset, &Dataset) -> Result<Predictions>,
) -> Result<OutOfFold> {
    let labels = classes_of("out_of_fold", data)?;
    let parts = Folds::stratified("out_of_fold", &labels, &data.label_names, folds, 0)?;
    let mut work = Work::begin(("training", "trained"), folds, Unit::Things("fold"));
    let mut probabilities = vec![Vec::new(); data.len()];
    for fold in 0..folds {
        work.reached(fold)?;
        let held_out = parts.held_out(fold);
        let predictions = run(
            &data.rows(parts.rest(fold))?,
            &data.rows(held_out.iter().copied())?,
        )?;
        let own = in_order_of(data, &predictions, held_out.len())?;
        held_out
            .into_iter()
            .zip(own)
            .for_each(|(row, own)| probabilities[row] = own);
    }
    work.finished();
    let answer = |(row, own): (usize, &Vec<f64>)| Answer {
        row,
        text: data.examples[row].text.clone(),
        pair: data.examples[row].pair.clone(),
        label: labels[row],
        predicted: crate::view::largest(own),
        probabilities: own.clone(),
    };
    let answers = probabilities.iter().enumerate().map(answer).collect();
    Ok(OutOfFold {
        answers,
        probabilities,
        folds,
        label_names: data.label_names.clone(),
    })
}

/// The probabilities of each prediction in the order of the data's classes, which are found by name; by number where the model
/// has no names of its own.
fn in_order_of(data: &Dataset, predictions: &Predictions, rows: usize) -> Result<Vec<Vec<f64>>> {
    let names = &predictions.label_names;
    let bad = |given: String| {
        let expects = format!(
            "{}, with a probability for each of the {} classes",
            text::count(rows, "prediction"),
            data.num_labels()
        );
        Box::new(problem::bad_value("out_of_fold", "run", given, expects))
    };
    let wrong = predictions
        .rows
        .iter()
        .find(|row| row.probabilities.len() != data.num_labels());
    if predictions.len() != rows || wrong.is_some() {
        let classes = wrong.map_or(names.len(), |row| row.probabilities.len());
        return Err(bad(format!(
            "{} of {classes} classes",
            text::count(predictions.len(), "prediction")
        )));
    }
    let place = |name: &String| names.iter().position(|own| own == name);
    let places: Vec<Option<usize>> = data.label_names.iter().map(place).collect();
    let by_number = places.iter().all(Option::is_none);
    let places = places
        .into_iter()
        .enumerate()
        .map(|(at, place)| if by_number { Some(at) } else { place });
    let Some(places) = places.collect::<Option<Vec<usize>>>() else {
        return Err(bad(format!(
            "predictions of the classes {}",
            text::names(names, 8)
        )));
    };
    let ordered = |own: &Vec<f64>| places.iter().map(|&at| own[at]).collect();
    Ok(predictions
        .rows
        .iter()
        .map(|row| ordered(&row.probabilities))
        .collect())
}

impl OutOfFold {
    /// Accuracy and macro F1 of the answers, with intervals, and every class.
    ///
    /// # Errors
    /// SC0520 if it is interrupted.
    pub fn assess(&self) -> Result<Assessment> {
        Assessment::of(self.answers.clone(), &self.label_names)
    }

    /// A sentence as static HTML.
    pub fn to_html(&self) -> String {
        stratoscope_evaluation::page::sentence(&self.sentence())
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.sentence()
    }

    fn sentence(&self) -> String {
        let right = self
            .answers
            .iter()
            .filter(|answer| answer.is_right())
            .count();
        let rows = self.answers.len().max(1);
        format!(
            "{}, each answered by one of {} models that had not seen it: {:.1} % agree with their label",
            text::count(self.answers.len(), "row"),
            self.folds,
            100.0 * right as f64 / rows as f64
        )
    }
}

impl fmt::Debug for OutOfFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_models::Prediction;

    use super::*;

    fn data() -> Dataset {
        let labels = (0..12).map(|row| ["cat", "dog"][row % 2]);
        Dataset::from_rows((0..12).map(|row| format!("row {row}")), labels).expect("rows")
    }

    /// A "model" that is sure of the label of each row, with its classes in this order.
    fn answered(fold: &Dataset, names: [&str; 2]) -> Predictions {
        let row = |example: &stratoscope_data::Example| {
            let own = names.iter().map(|name| {
                if example.label_name.as_deref() == Some(*name) {
                    0.9
                } else {
                    0.1
                }
            });
            Prediction {
                text: example.text.clone(),
                probabilities: own.collect(),
                ..Prediction::default()
            }
        };
        Predictions {
            rows: fold.examples.iter().map(row).collect(),
            label_names: names.map(str::to_owned).to_vec(),
            cut: None,
        }
    }

    #[test]
    fn each_row_is_answered_once_by_who_has_not_seen_it() {
        let data = data();
        let mut sizes = Vec::new();
        // Classes are found by name, whatever their order.
        let found = out_of_fold(&data, 3, |others, fold| {
            assert!(
                others
                    .examples
                    .iter()
                    .all(|it| fold.examples.iter().all(|own| own.text != it.text))
            );
            sizes.push((others.len(), fold.len()));
            Ok(answered(fold, ["dog", "cat"]))
        });
        let found = found.expect("classes");
        assert_eq!(sizes, [(8, 4); 3]);
        for (row, own) in found.probabilities.iter().enumerate() {
            assert_eq!(*own, if row % 2 == 0 { [0.9, 0.1] } else { [0.1, 0.9] });
        }
        assert!(found.to_plain().contains("100.0 % agree"));
        assert_eq!(found.assess().expect("no interrupt").accuracy().value, 1.0);
    }

    #[test]
    fn other_rows_and_classes_are_refused() {
        let data = data();
        let code =
            |folds: usize, run: &mut dyn FnMut(&Dataset, &Dataset) -> Result<Predictions>| {
                out_of_fold(&data, folds, run)
                    .expect_err("bad answers")
                    .code
            };
        assert_eq!(
            code(3, &mut |_, fold| Ok(answered(
                &fold.take(1),
                ["cat", "dog"]
            ))),
            "SC0103"
        );
        assert_eq!(
            code(3, &mut |_, fold| Ok(answered(fold, ["cat", "cow"]))),
            "SC0103"
        );
        assert_eq!(
            code(7, &mut |_, fold| Ok(answered(fold, ["cat", "dog"]))),
            "SC0723"
        );
        assert_eq!(
            out_of_fold(&Dataset::from_texts(["a"]), 2, |_, _| unreachable!())
                .expect_err("no class")
                .code,
            "SC0722"
        );
    }
}
