//! What metrics are computed from: answers, counted or kept, over a whole split.

use serde::Serialize;
use stratoscope_data::Labels;

/// How often each class is a label, and how often it was predicted; empty for numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// Labels by class.
    pub labels: Vec<u64>,
    /// Predictions by class.
    pub predictions: Vec<u64>,
}

/// Labels beside predictions. Classes are counted in a confusion matrix, numbers are kept in pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    classes: usize,
    /// Row = label, column = predicted class.
    confusion: Vec<u64>,
    /// Label and output.
    pairs: Vec<(f64, f64)>,
    /// Where one output decides between two classes: above this it is class 1.
    threshold: Option<f64>,
}

impl Tally {
    /// For labels that are classes.
    pub fn of_classes(classes: usize) -> Self {
        Self {
            classes,
            confusion: vec![0; classes * classes],
            ..Self::default()
        }
    }

    /// For labels of 0 and 1 and one output, which is class 1 above `threshold`.
    pub fn of_two_classes_by_one_output(threshold: f64) -> Self {
        Self {
            threshold: Some(threshold),
            ..Self::of_classes(2)
        }
    }

    /// For labels that are numbers.
    pub fn of_numbers() -> Self {
        Self::default()
    }

    /// What several tallies of the same kind have counted together. Pairs come in the order of their values,
    /// so that it does not matter who counted which.
    pub(crate) fn sum(tallies: &[Self]) -> Self {
        let mut tallies = tallies.iter();
        let mut sum = tallies.next().cloned().unwrap_or_default();
        for tally in tallies {
            for (count, other) in sum.confusion.iter_mut().zip(&tally.confusion) {
                *count += other;
            }
            sum.pairs.extend_from_slice(&tally.pairs);
        }
        sum.pairs.sort_by(|(label, output), (other_label, other)| {
            let by_label = label.total_cmp(other_label);
            by_label.then(output.total_cmp(other))
        });
        sum
    }

    /// What is kept, as it lies in memory.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let counts = self.confusion.iter().flat_map(|count| count.to_le_bytes());
        let pairs = self
            .pairs
            .iter()
            .flat_map(|(label, output)| [label, output]);
        counts
            .chain(pairs.flat_map(|number| number.to_le_bytes()))
            .collect()
    }

    /// Adds a batch: `outputs` has the rows of the batch, [B, C], row-major.
    pub fn add(&mut self, labels: &Labels, outputs: &[f32]) {
        if let Some(threshold) = self.threshold {
            let labels: Vec<bool> = match labels {
                Labels::Classes(labels) => labels.iter().map(|&label| label == 1).collect(),
                Labels::Values(labels) => labels.iter().map(|&label| label > 0.5).collect(),
                Labels::Absent => return,
            };
            for (label, &output) in labels.into_iter().zip(outputs) {
                self.add_class(label.into(), (f64::from(output) > threshold).into());
            }
            return;
        }
        match labels {
            Labels::Classes(labels) if self.classes > 0 => {
                for (&label, row) in labels.iter().zip(outputs.chunks_exact(self.classes)) {
                    self.add_class(label as usize, largest(row));
                }
            }
            Labels::Classes(labels) => {
                for (&label, &output) in labels.iter().zip(outputs) {
                    self.add_number(f64::from(label), f64::from(output));
                }
            }
            Labels::Values(labels) => {
                for (&label, &output) in labels.iter().zip(outputs) {
                    self.add_number(f64::from(label), f64::from(output));
                }
            }
            Labels::Absent => {}
        }
    }

    /// Adds one classified example. A label outside the classes is not counted.
    pub fn add_class(&mut self, label: usize, predicted: usize) {
        if label < self.classes && predicted < self.classes {
            self.confusion[label * self.classes + predicted] += 1;
        }
    }

    /// Adds one predicted number.
    pub fn add_number(&mut self, label: f64, output: f64) {
        self.pairs.push((label, output));
    }

    /// How many classes there are; 0 for numbers.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Examples of class `label` that were taken for `predicted`.
    pub fn count(&self, label: usize, predicted: usize) -> u64 {
        self.confusion
            .get(label * self.classes + predicted)
            .copied()
            .unwrap_or(0)
    }

    /// Examples of a class.
    pub fn labelled(&self, class: usize) -> u64 {
        (0..self.classes)
            .map(|predicted| self.count(class, predicted))
            .sum()
    }

    /// Examples that were taken for a class.
    pub fn predicted(&self, class: usize) -> u64 {
        (0..self.classes)
            .map(|label| self.count(label, class))
            .sum()
    }

    /// How often each class is a label, and how often it was predicted.
    pub fn predictions(&self) -> Predicted {
        let count = |of: fn(&Self, usize) -> u64| {
            let classes = 0..self.classes;
            classes.map(|class| of(self, class)).collect()
        };
        Predicted {
            labels: count(Self::labelled),
            predictions: count(Self::predicted),
        }
    }

    /// Examples in all.
    pub fn examples(&self) -> u64 {
        self.confusion.iter().sum::<u64>() + self.pairs.len() as u64
    }

    /// Labels and outputs that are numbers.
    pub fn pairs(&self) -> &[(f64, f64)] {
        &self.pairs
    }
}

/// The index of the largest output, the first of equals: argmax as PyTorch and NumPy have it.
pub(crate) fn largest(row: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    best
}
