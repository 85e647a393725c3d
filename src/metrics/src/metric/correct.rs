//! Which answer is given, and whether it is right.

use stratoscope_data::Labels;

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// The share of right answers; `None` of none.
fn accuracy_of(tally: &Tally) -> Option<f64> {
    if let Some(pieces) = &tally.pieces {
        return pieces.accuracy();
    }
    if let Some(sets) = &tally.sets {
        return sets.accuracy();
    }
    let right: u64 = (0..tally.classes())
        .map(|class| tally.count(class, class))
        .sum();
    ratio(right as f64, tally.examples() as f64)
}

/// How many rows of a batch are answered right: `outputs` are [B, C], row-major. `None` where the outputs are numbers.
/// `threshold` is that of one output which decides between two classes.
pub fn correct(
    labels: &Labels,
    outputs: &[f32],
    classes: Option<usize>,
    threshold: Option<f64>,
) -> Option<usize> {
    match (labels, classes, threshold) {
        (Labels::Classes(labels), Some(classes), _) => {
            let rows = labels.iter().zip(outputs.chunks_exact(classes));
            Some(
                rows.filter(|(label, row)| usize::try_from(**label) == Ok(largest(row)))
                    .count(),
            )
        }
        (Labels::Classes(labels), None, Some(threshold)) => {
            let rows = labels.iter().zip(outputs);
            Some(
                rows.filter(|(label, output)| (**label > 0) == (f64::from(**output) > threshold))
                    .count(),
            )
        }
        (Labels::Values(labels), None, Some(threshold)) => {
            let rows = labels.iter().zip(outputs);
            Some(
                rows.filter(|(label, output)| (**label > 0.5) == (f64::from(**output) > threshold))
                    .count(),
            )
        }
        _ => None,
    }
}

/// The index of the largest output, the first of equals: argmax as PyTorch and NumPy have it.
pub fn largest(row: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    best
}

/// [`accuracy`](super::accuracy()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Accuracy;

impl Measure for Accuracy {
    fn name(&self) -> &'static str {
        "accuracy"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        accuracy_of(tally)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(!matches!(answers, Answers::Number | Answers::Span))
    }

    fn needs_the_split(&self) -> bool {
        false
    }
}
