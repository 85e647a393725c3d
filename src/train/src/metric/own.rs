//! Metrics of one's own: a function from the outputs for an example and its label to a number, of which the mean over the
//! split is shown. Keras takes such a function in `metrics`, too.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use stratoscope_data::{Label, Labels};

use super::Metric;
use crate::panics::panicked;

/// A function as a metric, by [`Metric::mean_of`]. A copy is the same function, which is kept to the end of the program.
#[derive(Clone, Copy)]
pub struct OwnMetric(&'static Kept);

struct Kept {
    name: String,
    of_example: Box<dyn Fn(&[f32], Label) -> f64 + Send + Sync>,
}

/// The names of those whose low values are good.
static LOW: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Metric {
    /// A metric of one's own: the mean over the split of what `of_example` makes of the outputs for an example and its
    /// label. A model of classes gives an output a class, one of numbers a single one; of tagged words each word with a tag
    /// is an example. Higher is better for early stopping; [`lower_is_better`](Self::lower_is_better) says otherwise.
    ///
    /// ```
    /// use stratoscope_train::Metric;
    /// use stratoscope_data::Label;
    ///
    /// let close = Metric::mean_of("within_half", |outputs: &[f32], label: Label| match label {
    ///     Label::Value(value) => f64::from(u8::from((outputs[0] - value).abs() <= 0.5)),
    ///     Label::Class(_) => f64::NAN,
    /// });
    /// assert_eq!(close.name(), "within_half");
    /// ```
    pub fn mean_of(
        name: impl Into<String>,
        of_example: impl Fn(&[f32], Label) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        LOW.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&name);
        // Metrics are copied into every run and its history; one that is never freed is a few bytes.
        Self::Own(OwnMetric(Box::leak(Box::new(Kept {
            name,
            of_example: Box::new(of_example),
        }))))
    }

    /// The same, of which low values are good, such as a distance.
    #[must_use]
    pub fn lower_is_better(self) -> Self {
        if let Self::Own(OwnMetric(kept)) = self {
            let mut low = LOW.lock().unwrap_or_else(PoisonError::into_inner);
            low.insert(kept.name.clone());
        }
        self
    }
}

impl OwnMetric {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        &self.0.name
    }

    /// What it makes of an example; not a number where it panics, which Rust reports.
    fn of_example(self, outputs: &[f32], label: Label) -> f64 {
        let call = AssertUnwindSafe(|| (self.0.of_example)(outputs, label));
        catch_unwind(call).unwrap_or(f64::NAN)
    }

    /// Why it cannot be measured, by what it makes of a label and so many outputs.
    pub(crate) fn objection(self, outputs: usize, label: Label) -> Option<String> {
        let numbers = vec![0.5; outputs];
        let call = AssertUnwindSafe(|| (self.0.of_example)(&numbers, label));
        let panic = catch_unwind(call).err()?;
        Some(format!(
            "of an example it panicked: {}",
            panicked(panic.as_ref())
        ))
    }
}

/// Whether low values of the metric of a name are good, as far as it is of one's own.
pub(crate) fn is_low_better(name: &str) -> bool {
    let low = LOW.lock().unwrap_or_else(PoisonError::into_inner);
    low.contains(name)
}

impl PartialEq for OwnMetric {
    /// The same function, not another one that does the same.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for OwnMetric {}

impl Hash for OwnMetric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl fmt::Debug for OwnMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnMetric({})", self.0.name)
    }
}

/// What a metric of one's own has made of the examples so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Means {
    metric: OwnMetric,
    /// One number an example. They are added up in the order of their size, whoever has counted which.
    values: Vec<f64>,
}

impl Means {
    /// Of no example yet, for each of these that is of one's own.
    pub(super) fn of(metrics: &[Metric]) -> Vec<Self> {
        let own = metrics.iter().filter_map(|metric| match metric {
            Metric::Own(metric) => Some(*metric),
            _ => None,
        });
        let empty = |metric| Self {
            metric,
            values: Vec::new(),
        };
        own.map(empty).collect()
    }

    /// Adds the examples of a batch: `outputs` have a row for each label.
    pub(super) fn add(&mut self, labels: &Labels, outputs: &[f32]) {
        let of_class = |&class: &i32| Some(Label::Class(usize::try_from(class).ok()?));
        let labels: Vec<Option<Label>> = match labels {
            Labels::Classes(classes) => classes.iter().map(of_class).collect(),
            Labels::Values(values) => values.iter().map(|&it| Some(Label::Value(it))).collect(),
            // Those that are not asked for are negative.
            Labels::Tokens(tokens) => tokens.classes.iter().map(of_class).collect(),
            Labels::Absent | Labels::Spans(_) | Labels::Sets(_) => return,
        };
        let width = outputs.len() / labels.len().max(1);
        if width == 0 {
            return;
        }
        let rows = labels.into_iter().zip(outputs.chunks_exact(width));
        let values = rows.filter_map(|(label, row)| Some(self.metric.of_example(row, label?)));
        self.values.extend(values);
    }

    /// Adds what another replica has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.values.extend_from_slice(&other.values);
        self.values.sort_by(f64::total_cmp);
    }

    /// The mean for a metric; `None` if it is another one's, of no example, or no number.
    pub(super) fn mean(&self, metric: OwnMetric) -> Option<f64> {
        if self.metric != metric || self.values.is_empty() {
            return None;
        }
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(mean).filter(|mean| mean.is_finite())
    }

    /// A number an example.
    pub(super) fn state(&self) -> &[f64] {
        &self.values
    }

    /// The same metric with what [`state`](Self::state) gave.
    pub(super) fn with_state(&self, values: &[f64]) -> Self {
        Self {
            values: values.to_vec(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tally;
    use super::*;

    /// How far apart class and largest output are.
    fn distance() -> Metric {
        Metric::mean_of("distance", |outputs, label| {
            let (mut best, mut at) = (f32::NEG_INFINITY, 0);
            for (place, &output) in outputs.iter().enumerate() {
                if output > best {
                    (best, at) = (output, place);
                }
            }
            match label {
                Label::Class(class) => class.abs_diff(at) as f64,
                Label::Value(value) => f64::from((value - outputs[0]).abs()),
            }
        })
    }

    #[test]
    fn the_mean_is_over_the_split_whoever_counts() {
        let metric = distance();
        let empty = Tally::of_classes(3).measuring(&[metric, Metric::Accuracy], true);
        let outputs = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0];
        let labels = [2, 2, 0, 1];
        let mut whole = empty.clone();
        whole.add(&Labels::Classes(labels.to_vec()), &outputs);
        assert_eq!(metric.value(&whole), Some(1.0));
        assert_eq!(Metric::Accuracy.value(&whole), Some(0.25));
        let mut parts = [empty.clone(), empty.clone()];
        parts[1].add(&Labels::Classes(labels[..1].to_vec()), &outputs[..3]);
        parts[0].add(&Labels::Classes(labels[1..].to_vec()), &outputs[3..]);
        assert_eq!(metric.value(&Tally::sum(&parts)), Some(1.0));
        assert_eq!(metric.value(&empty), None);
        // Another metric of the same name is another metric.
        assert_eq!(distance().value(&whole), None);
        let mut numbers = Tally::of_numbers().measuring(&[metric], true);
        numbers.add(&Labels::Values(vec![1.0, 2.0]), &[0.5, 4.0]);
        assert_eq!(metric.value(&numbers), Some(1.25));
    }

    #[test]
    fn which_values_are_good_is_known_by_name() {
        let metric = distance();
        assert!(!is_low_better("distance"));
        let metric = metric.lower_is_better();
        assert!(is_low_better("distance") && metric.name() == "distance");
        assert_eq!(Metric::Accuracy.lower_is_better(), Metric::Accuracy);
        let _again = distance();
        assert!(!is_low_better("distance"), "the newest of a name counts");
    }

    #[test]
    fn one_that_panics_is_found_before_training() {
        let panics = Metric::mean_of("panics", |outputs, _| f64::from(outputs[2]));
        let Metric::Own(own) = panics else {
            panic!("{panics}");
        };
        let said = own.objection(2, Label::Class(0)).expect("it panics");
        assert!(said.contains("index out of bounds"), "{said}");
        assert_eq!(own.objection(3, Label::Class(0)), None);
        let mut tally = Tally::of_classes(2).measuring(&[panics], true);
        tally.add(&Labels::Classes(vec![0]), &[0.0, 1.0]);
        assert_eq!(panics.value(&tally), None);
    }
}
