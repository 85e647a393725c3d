//! Metrics of one's own: a function from the outputs for an example and its label to a number, of which the mean over the
//! split is shown. Keras takes such a function in `metrics`, too.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_data::{Label, Labels};
use stratoscope_diagnostics::panics::panicked;
use stratoscope_diagnostics::{Diagnostic, Severity, problem};

use super::applicability::{Answers, Fit};
use super::exact_sum::ExactSum;
use super::measure::Measure;
use super::{Metric, Tally};

/// A function as a metric, by [`Metric::mean_of`]. A copy is the same function, which is kept to the end of the program.
#[derive(Clone, Copy)]
pub struct OwnMetric(&'static Kept);

struct Kept {
    name: String,
    is_low_good: bool,
    of_example: OfExample,
    /// What it said when it panicked, until that is shown. From then on it is not called any more.
    panicked: Mutex<Option<Option<String>>>,
}

type OfExample = Arc<dyn Fn(&[f32], Label) -> f64 + Send + Sync>;

impl Metric {
    /// A metric of one's own: the mean over the split of what `of_example` makes of the outputs for an example and its
    /// label. A model of classes gives an output a class, one of numbers a single one; of tagged words each word with a tag
    /// is an example. Higher is better for early stopping; [`lower_is_better`](Self::lower_is_better) says otherwise.
    ///
    /// ```
    /// use stratoscope_metrics::Metric;
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
        OwnMetric::keep(name.into(), false, Arc::new(of_example))
    }

    /// The same, of which low values are good, such as a distance.
    #[must_use]
    pub fn lower_is_better(self) -> Self {
        match self {
            Self::Own(OwnMetric(kept)) => {
                OwnMetric::keep(kept.name.clone(), true, Arc::clone(&kept.of_example))
            }
            other => other,
        }
    }
}

impl OwnMetric {
    fn keep(name: String, is_low_good: bool, of_example: OfExample) -> Metric {
        // Metrics are copied into every run and its history; one that is never freed is a few bytes.
        Metric::Own(Self(Box::leak(Box::new(Kept {
            name,
            is_low_good,
            of_example,
            panicked: Mutex::default(),
        }))))
    }

    /// What it makes of an example; not a number from the first panic on.
    fn of_example(self, outputs: &[f32], label: Label) -> f64 {
        let mut failed = self
            .0
            .panicked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return f64::NAN;
        }
        let call = AssertUnwindSafe(|| (self.0.of_example)(outputs, label));
        catch_unwind(call).unwrap_or_else(|panic| {
            *failed = Some(Some(panicked(panic.as_ref()).to_owned()));
            f64::NAN
        })
    }

    /// Why it cannot be measured, by what it makes of a label and so many outputs.
    pub fn objection(self, outputs: usize, label: Label) -> Option<String> {
        let numbers = vec![0.5; outputs];
        let call = AssertUnwindSafe(|| (self.0.of_example)(&numbers, label));
        let panic = catch_unwind(call).err()?;
        Some(format!(
            "of an example it panicked: {}",
            panicked(panic.as_ref())
        ))
    }
}

impl Measure for OwnMetric {
    fn name(&self) -> &'static str {
        &self.0.name
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        tally.own.iter().find_map(|own| own.mean(*self))
    }

    fn fit(&self, answers: Answers) -> Fit {
        match answers {
            Answers::Set | Answers::Tokens | Answers::Span => Fit::Instead(
                "a metric of this head: `Metric::mean_of` is of classes, numbers, and tags of words",
            ),
            _ => Fit::Yes,
        }
    }

    fn prepare(&self, tally: &mut Tally) {
        tally.own.push(Means::of(*self));
    }

    fn needs_the_split(&self) -> bool {
        false
    }

    fn is_of_classes(&self) -> bool {
        false
    }

    fn is_low_good(&self) -> bool {
        self.0.is_low_good
    }
}

/// SC0103, as a warning, for each metric of one's own that has panicked, once.
pub fn failures(metrics: &[Metric]) -> Vec<Diagnostic> {
    let failed = metrics.iter().filter_map(|metric| {
        let Metric::Own(OwnMetric(kept)) = metric else {
            return None;
        };
        let mut panicked = kept.panicked.lock().unwrap_or_else(PoisonError::into_inner);
        let said = panicked.as_mut()?.take()?;
        let expects = "a function that returns a number for every example";
        let found = problem::bad_value("compile", "metrics", &kept.name, expects);
        let why = format!("it panicked for an example: {said}; from there on it is undefined");
        Some(Diagnostic {
            severity: Severity::Warning,
            ..found.why(why)
        })
    });
    failed.collect()
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
        let low = match self.0.is_low_good {
            true => ", lower is better",
            false => "",
        };
        write!(f, "OwnMetric({}{low})", self.0.name)
    }
}

/// What a metric of one's own has made of the examples so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Means {
    metric: OwnMetric,
    examples: u64,
    sum: ExactSum,
}

impl Means {
    /// Of no example yet.
    fn of(metric: OwnMetric) -> Self {
        Self {
            metric,
            examples: 0,
            sum: ExactSum::default(),
        }
    }

    /// Adds the examples of a batch: `outputs` have a row for each label.
    pub(super) fn add(&mut self, labels: &Labels, outputs: &[f32]) {
        let of_class = |&class: &i32| Some(Label::Class(usize::try_from(class).ok()?));
        let labels: Vec<Option<Label>> = match labels {
            Labels::Classes(classes) => classes.iter().map(of_class).collect(),
            Labels::Values(values) => values.iter().map(|&it| Some(Label::Value(it))).collect(),
            // Those that are not asked for are negative.
            Labels::Tokens(tokens) => tokens.classes.iter().map(of_class).collect(),
            Labels::Absent | Labels::Spans(_) | Labels::Sets(_) | Labels::Apart { .. } => return,
        };
        let width = outputs.len() / labels.len().max(1);
        if width == 0 {
            return;
        }
        let rows = labels.into_iter().zip(outputs.chunks_exact(width));
        for value in rows.filter_map(|(label, row)| Some(self.metric.of_example(row, label?))) {
            self.examples += 1;
            self.sum.add(value);
        }
    }

    /// Adds what another replica has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.examples += other.examples;
        self.sum.merge(&other.sum);
    }

    /// The mean for a metric; `None` if it is another one's, of no example, or no number.
    pub(super) fn mean(&self, metric: OwnMetric) -> Option<f64> {
        if self.metric != metric || self.examples == 0 {
            return None;
        }
        let mean = self.sum.value() / self.examples as f64;
        Some(mean).filter(|mean| mean.is_finite())
    }

    /// The number of examples, that of the numbers after it, and these.
    pub(super) fn state(&self) -> Vec<f64> {
        let parts = self.sum.parts();
        let mut state = vec![self.examples as f64, parts.len() as f64];
        state.extend(parts);
        state
    }

    /// The same metric with what [`state`](Self::state) gave at the begin of some numbers, and the others; `None` for numbers
    /// that are no such state.
    pub(super) fn with_state<'s>(&self, state: &'s [f64]) -> Option<(Self, &'s [f64])> {
        let (&[examples, count], rest) = state.split_first_chunk()?;
        let (parts, rest) = rest.split_at_checked(count as usize)?;
        let restored = Self {
            metric: self.metric,
            examples: examples as u64,
            sum: ExactSum::of(parts),
        };
        Some((restored, rest))
    }
}

#[cfg(test)]
mod tests {
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
    fn which_values_are_good_is_said() {
        let metric = distance();
        let low = metric.lower_is_better();
        assert!(!metric.is_low_good() && low.is_low_good());
        assert_eq!(
            (low.name(), format!("{low:?}")),
            (
                "distance",
                "Own(OwnMetric(distance, lower is better))".to_owned()
            )
        );
        assert_eq!(Metric::Accuracy.lower_is_better(), Metric::Accuracy);
        assert!(Metric::Mae.is_low_good());
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
        tally.add(&Labels::Classes(vec![1]), &[0.0, 1.0]);
        assert_eq!(panics.value(&tally), None);
        let failed = own.0.panicked.lock().expect("nobody holds it").clone();
        assert!(failed.is_some_and(|said| said.is_some_and(|it| it.contains("index out of"))));
    }
}
