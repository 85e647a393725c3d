//! What labels tell before the first step: numbers for classes, classes for numbers, other orders, and
//! one class that is nearly all; labels without an output. SC0301, SC0307, SC0308, SC0314, SC0703.

use std::collections::BTreeSet;

use stratoscope_data::{Data, Dataset, Example, Label, similar_labels};
use stratoscope_diagnostics::rules::{
    ClassOrderDiffers, ClassesAsNumbers, FloatClassLabels, HeadWritten, LabelOutOfRange,
    MajorityBaseline, SimilarLabels,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::Metric;

/// Numbers as labels of a regression that are fewer than this are suspicious if they are two.
const TWO: usize = 2;
/// Examples below which a share says nothing.
const ENOUGH: usize = 20;

/// The labels that a head has outputs for.
pub(super) struct LabelRange<'a> {
    /// The head, as `compile!` knows it.
    pub head: &'a HeadWritten,
    /// The outputs of the network.
    pub outputs: usize,
    /// The largest label of an example.
    pub largest: fn(&Example) -> Option<usize>,
    /// The call that is checked.
    pub call: &'a str,
}

impl LabelRange<'_> {
    /// Whether an example has a label without an output.
    pub(super) fn is_exceeded_by(&self, example: &Example) -> bool {
        (self.largest)(example).is_some_and(|label| label >= self.outputs)
    }

    /// Whether each label has an output.
    ///
    /// # Errors
    /// SC0301 for one without.
    pub(super) fn check(&self, data: &Dataset) -> Result<()> {
        let mut exceeding = data.examples.iter().filter(|it| self.is_exceeded_by(it));
        let Some(first) = exceeding.next() else {
            return Ok(());
        };
        let rows = 1 + exceeding.count();
        let most = data.examples.iter().filter_map(self.largest).max();
        let least = data.examples.iter().filter_map(Example::class).min();
        let extremes = (least, most.unwrap_or_default());
        Err(self.exceeded(&data.source, first, rows, extremes))
    }

    /// SC0301: `rows` examples have a label without an output, and `first` is the first of them. `least` and `most`: the
    /// smallest label, where it is known, and the largest.
    pub(super) fn exceeded(
        &self,
        source: &str,
        first: &Example,
        rows: usize,
        (least, most): (Option<usize>, usize),
    ) -> Box<Diagnostic> {
        let rule = LabelOutOfRange {
            label: (self.largest)(first).unwrap_or_default() as i64,
            row: first.row,
            rows,
            largest: most as i64,
            smallest: least.map(|least| least as i64),
            classes: self.outputs,
            head: Some(self.head.clone()),
            source: source.to_owned(),
            text: Some(first.text.clone()),
            call: self.call.to_owned(),
        };
        rule.error()
    }
}

/// SC0316: classes whose names differ only in blanks or case.
pub(super) fn similar(names: &[String], source: &str, call: &str) -> Option<Diagnostic> {
    let rule = SimilarLabels {
        sentence: similar_labels(names)?,
        classes: names.len(),
        source: source.to_owned(),
        call: call.to_owned(),
    };
    (call == "fit").then(|| rule.diagnostic())
}

/// SC0307: all labels are numbers, and the head has classes.
pub(super) fn floats(data: &Dataset, classes: usize, call: &str) -> Option<Diagnostic> {
    let numbers: Vec<(usize, f32)> = data
        .examples
        .iter()
        .filter_map(|example| match example.label {
            Some(Label::Value(value)) => Some((example.row, value)),
            _ => None,
        })
        .collect();
    let rule = FloatClassLabels {
        first: numbers.iter().take(5).copied().collect(),
        rows: numbers.len(),
        classes,
        whole: numbers
            .iter()
            .all(|(_, value)| value.fract() == 0.0 && *value >= 0.0),
        source: data.source.clone(),
        call: call.to_owned(),
    };
    (!numbers.is_empty()).then(|| rule.diagnostic())
}

/// SC0308: a regression whose labels have names, or take two values.
pub(super) fn classes_as_numbers(data: &Dataset, loss: Option<Loss>) -> Option<Diagnostic> {
    if !loss.is_some_and(|loss| loss.is_regression()) {
        return None;
    }
    let labels = data.examples.iter().filter_map(|example| example.label);
    let mut classes = BTreeSet::new();
    let mut values = Vec::new();
    for label in labels {
        match label {
            Label::Class(class) => {
                classes.insert(class);
            }
            Label::Value(value) if values.len() <= TWO && !values.contains(&value) => {
                values.push(value);
            }
            Label::Value(_) => {}
        }
    }
    let name = |class: &usize| match data.label_names.get(*class) {
        Some(name) => name.clone(),
        None => class.to_string(),
    };
    let names: Vec<String> = classes.iter().map(name).collect();
    let has_words = names.iter().any(|name| name.parse::<f64>().is_err());
    let whole = values.iter().all(|value| value.fract() == 0.0);
    // Few rows take few values, whatever they mean.
    let labels = if classes.len() == TWO && data.len() > TWO || has_words {
        names
    } else if values.len() == TWO && whole && data.len() >= ENOUGH {
        values.iter().map(f32::to_string).collect()
    } else {
        return None;
    };
    let rule = ClassesAsNumbers {
        labels,
        rows: data.len(),
        source: data.source.clone(),
    };
    Some(rule.diagnostic())
}

/// SC0314: the same classes in another order.
pub(super) fn other_order(
    model: &[String],
    names: &[String],
    source: &str,
    call: &str,
) -> Option<Diagnostic> {
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    if names == model || names.len() != model.len() || sorted(names) != sorted(model) {
        return None;
    }
    let rule = ClassOrderDiffers {
        model: model.to_vec(),
        data: names.to_vec(),
        source: source.to_owned(),
        call: call.to_owned(),
    };
    Some(rule.diagnostic())
}

/// SC0703: nearly all examples have one class, and accuracy is all that is measured.
pub(super) fn majority(
    data: Data<'_>,
    split: &'static str,
    metrics: &[Metric],
) -> Option<Diagnostic> {
    if metrics != [Metric::Accuracy] {
        return None;
    }
    let counts = data.class_counts();
    let (class, &count) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let rule = MajorityBaseline {
        class: data.label_names().get(class)?.clone(),
        count,
        // Words are counted where words have classes.
        total: match data {
            Data::Held(data) if data.is_tagged() => counts.iter().sum(),
            Data::Streamed(stream) if stream.is_tagged() => counts.iter().sum(),
            _ => data.len(),
        },
        classes: counts.len(),
        split,
    };
    rule.check()
}

/// The number that a label is, for a binary loss.
pub fn label_value(label: Option<Label>) -> f64 {
    match label {
        Some(Label::Class(class)) => class as f64,
        Some(Label::Value(value)) => f64::from(value),
        None => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_metrics::IntoLoss;
    use stratoscope_metrics::loss::{MeanSquaredError, SparseCategoricalCrossentropy};

    fn values(values: &[f32], times: usize) -> Dataset {
        let all = values.iter().cycle().take(values.len() * times);
        let rows = all.map(|&value| Example::new("a text").with_label(Label::Value(value)));
        Dataset::from_examples(rows, Vec::new(), "numbers")
    }

    fn classes(counts: &[(&str, usize)]) -> Dataset {
        let rows = counts
            .iter()
            .flat_map(|(name, count)| vec![("a text", *name); *count]);
        Dataset::from_labelled(rows)
    }

    #[test]
    fn floats_are_distinguished_from_whole_numbers() {
        let finding = floats(&values(&[1.0, 0.0], 3), 2, "fit").expect("floats");
        assert_eq!(finding.code, "SC0307");
        assert!(
            format!("{finding:?}").contains("1.0 at row 0, 0.0 at row 1"),
            "{finding:?}"
        );
        assert!(format!("{finding:?}").contains("Label::Class(1)"));
        let finding = floats(&values(&[0.5], 3), 2, "fit").expect("floats");
        assert!(!format!("{finding:?}").contains("Label::Class(1)"));
        assert!(floats(&classes(&[("a", 2)]), 2, "fit").is_none());
    }

    #[test]
    fn a_regression_on_classes_is_reported_and_ratings_are_not() {
        let mse = MeanSquaredError.into_loss().ok();
        let check = |data: Dataset, loss, expected: bool| {
            let finding = classes_as_numbers(&data, loss);
            assert_eq!(finding.is_some(), expected, "{data}");
        };
        check(classes(&[("yes", 2), ("no", 2)]), mse, true);
        check(classes(&[("0", 2), ("1", 2)]), mse, true);
        check(classes(&[("good", 1), ("bad", 1), ("ugly", 1)]), mse, true);
        check(values(&[0.0, 1.0], 20), mse, true);
        // Ratings are numbers, and so is what happens to be whole or rare.
        check(classes(&[("1", 2), ("2", 2), ("3", 2)]), mse, false);
        check(values(&[1.0, 2.0, 3.0, 4.0, 5.0], 20), mse, false);
        check(values(&[0.25, 0.75], 20), mse, false);
        check(values(&[0.0, 1.0], 2), mse, false);
        let entropy = SparseCategoricalCrossentropy { from_logits: true };
        check(
            classes(&[("yes", 2), ("no", 2)]),
            entropy.into_loss().ok(),
            false,
        );
    }

    #[test]
    fn only_another_order_of_the_same_classes_is_reported() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|&n| n.into()).collect() };
        let data = classes(&[("a", 1), ("b", 1), ("c", 1)]);
        let finding = other_order(&names(&["a", "c", "b"]), &data.label_names, "data", "fit");
        let finding = finding.expect("another order");
        assert!(
            format!("{finding:?}").contains("1: `c`, in the data `b`"),
            "{finding:?}"
        );
        let other = |own: &[&str]| other_order(&names(own), &data.label_names, "data", "fit");
        assert!(other(&["a", "b", "c"]).is_none());
        assert!(other(&["a", "c", "b", "d"]).is_none());
        assert!(other(&["x", "y", "z"]).is_none());
    }

    #[test]
    fn a_majority_is_reported_where_accuracy_stands_alone() {
        let check = |data: Dataset, metrics: &[Metric], expected: Option<&str>| {
            let finding =
                majority(Data::Held(&data), "training", metrics).map(|finding| finding.message);
            assert_eq!(finding.as_deref(), expected);
        };
        let rare = || classes(&[("ham", 92), ("spam", 8)]);
        let message = "92 % of the examples are of one class: accuracy 0.92 is the baseline";
        check(rare(), &[Metric::Accuracy], Some(message));
        check(rare(), &[Metric::Accuracy, Metric::Mcc], None);
        check(rare(), &[], None);
        check(
            classes(&[("ham", 68), ("spam", 32)]),
            &[Metric::Accuracy],
            None,
        );
        check(
            classes(&[("ham", 9), ("spam", 1)]),
            &[Metric::Accuracy],
            None,
        );
        check(classes(&[("ham", 50)]), &[Metric::Accuracy], None);
    }
}
