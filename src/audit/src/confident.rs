//! Wrong labels by confident learning: a label is wrong if a classifier that has not seen the row is as sure of another class
//! as it usually is of rows of that class. Source: Northcutt, Jiang and Chuang 2021, "Confident Learning: Estimating Uncertainty
//! in Dataset Labels". Details follow cleanlab 2.9 (`count.compute_confident_joint`, `filter.find_label_issues`), so that the
//! numbers are its numbers; `tests/parity/cleanlab` has them.

/// What cleanlab takes for equal.
const TOLERANCE: f64 = 1e-6;

/// Labels beside out-of-sample probabilities. Dimensions: N rows, K classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfidentLearning {
    /// For each class the mean of its probability over the rows with this label; 2 for a class that no row has.
    pub thresholds: Vec<f64>,
    /// Rows by label (first index) and by the class that they confidently belong to; [K, K]. Rows that belong to none
    /// are not counted.
    pub counted: Vec<Vec<usize>>,
    /// The same scaled to all rows, so that each label has its number of rows: an estimate of how many rows of each label
    /// belong to each class.
    pub joint: Vec<Vec<usize>>,
    /// The probability of its label, for each row.
    pub quality: Vec<f64>,
    labels: Vec<usize>,
    probabilities: Vec<Vec<f64>>,
    /// The class that each row confidently belongs to.
    confident: Vec<Option<usize>>,
}

impl ConfidentLearning {
    /// `labels` has a class below K for each row, `probabilities` K numbers for each row.
    ///
    /// # Panics
    /// If a row has fewer probabilities than its label needs.
    pub fn of(labels: &[usize], probabilities: &[Vec<f64>]) -> Self {
        let classes = probabilities.first().map_or(0, Vec::len);
        let thresholds = thresholds(labels, probabilities, classes);
        let confident: Vec<Option<usize>> = probabilities
            .iter()
            .map(|row| confident_class(row, &thresholds))
            .collect();
        let mut counted = vec![vec![0; classes]; classes];
        for (&label, class) in labels.iter().zip(&confident) {
            if let Some(class) = class {
                counted[label][*class] += 1;
            }
        }
        // Each class has at least one row that is right.
        for (class, row) in counted.iter_mut().enumerate() {
            row[class] = row[class].max(1);
        }
        let joint = calibrated(&counted, labels);
        let quality = labels.iter().zip(probabilities);
        Self {
            thresholds,
            counted,
            joint,
            quality: quality.map(|(&label, row)| row[label]).collect(),
            labels: labels.to_vec(),
            probabilities: probabilities.to_vec(),
            confident,
        }
    }

    /// Rows whose label is probably wrong, the least probable label first: for each label and each other class as many rows
    /// as [`joint`](Self::joint) estimates, those with the largest difference of both probabilities. Rows whose label is
    /// also the most probable class are not among them. cleanlab's `prune_by_noise_rate`, its default.
    pub fn wrong_labels(&self) -> Vec<usize> {
        let classes = self.joint.len();
        let mut is_wrong = vec![false; self.labels.len()];
        let counts = self.removed();
        for label in 0..classes {
            let rows = (0..self.labels.len()).filter(|&row| self.labels[row] == label);
            let rows: Vec<usize> = rows.collect();
            // One row of each class has to stay.
            if rows.len() <= 1 {
                continue;
            }
            for class in (0..classes).filter(|&class| class != label) {
                let margin = |row: usize| {
                    let own = &self.probabilities[row];
                    own[class] - own[label]
                };
                let mut order = rows.clone();
                order.sort_by(|&a, &b| margin(b).total_cmp(&margin(a)));
                for &row in order.iter().take(counts[label][class]) {
                    is_wrong[row] = true;
                }
            }
        }
        self.ranked(|row| is_wrong[row])
    }

    /// Rows that confidently belong to another class than their label, the least probable label first. cleanlab's
    /// `confident_learning`. Rows that belong to no class are never among them.
    pub fn confidently_other(&self) -> Vec<usize> {
        self.ranked(|row| self.confident[row].is_some_and(|class| class != self.labels[row]))
    }

    /// The estimated share of rows with a wrong label.
    pub fn noise(&self) -> f64 {
        let all: usize = self.joint.iter().flatten().sum();
        let right: usize = (0..self.joint.len())
            .map(|class| self.joint[class][class])
            .sum();
        match all {
            0 => 0.0,
            all => 1.0 - right as f64 / all as f64,
        }
    }

    /// The most probable class of a row, its label where both are equal within a millionth.
    pub fn predicted(&self, row: usize) -> usize {
        let label = self.labels[row];
        let shifted = self.probabilities[row].iter().enumerate();
        let shifted = shifted.map(|(class, &p)| p + if class == label { TOLERANCE } else { 0.0 });
        largest(shifted)
    }

    /// Those rows whose label is not the most probable class, by the probability of their label.
    fn ranked(&self, keep: impl Fn(usize) -> bool) -> Vec<usize> {
        let rows = (0..self.labels.len()).filter(|&row| keep(row));
        let mut rows: Vec<usize> = rows
            .filter(|&row| self.predicted(row) != self.labels[row])
            .collect();
        rows.sort_by(|&a, &b| self.quality[a].total_cmp(&self.quality[b]));
        rows
    }

    /// How many rows to take out by label (first index) and class: the joint with at least one right row for each label,
    /// which the other classes give up in equal parts.
    fn removed(&self) -> Vec<Vec<usize>> {
        let of_label = |(label, counts): (usize, &Vec<usize>)| {
            let missing = 1_usize.saturating_sub(counts[label]) as f64;
            let others = counts.iter().filter(|&&count| count > 0).count();
            let part = missing / (others as f64 - 1.0).max(1.0);
            let rest = |count: &usize| (*count as f64 - part).max(0.0) as usize;
            counts.iter().map(rest).collect()
        };
        self.joint.iter().enumerate().map(of_label).collect()
    }
}

/// The mean probability of a class over the rows that have its label.
fn thresholds(labels: &[usize], probabilities: &[Vec<f64>], classes: usize) -> Vec<f64> {
    // No probability reaches it.
    const ABSENT: f64 = 2.0;
    let of_class = |class: usize| {
        let own = labels.iter().zip(probabilities);
        let own = own
            .filter(|(label, _)| **label == class)
            .map(|(_, row)| row[class]);
        let (sum, count) = own.fold((0.0, 0_usize), |(sum, count), p| (sum + p, count + 1));
        match count {
            0 => ABSENT,
            count => (sum / count as f64).max(2.0 * TOLERANCE),
        }
    };
    (0..classes).map(of_class).collect()
}

/// The class whose threshold the row reaches; the most probable one if it reaches several.
fn confident_class(row: &[f64], thresholds: &[f64]) -> Option<usize> {
    let reached = |&class: &usize| row[class] >= thresholds[class] - TOLERANCE;
    let mut classes = (0..row.len()).filter(reached);
    let first = classes.next()?;
    match classes.next() {
        None => Some(first),
        Some(_) => Some(largest(row.iter().copied())),
    }
}

/// The place of the largest number, the first one of equal ones.
fn largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (at, number) in numbers.enumerate() {
        if number > best.1 {
            best = (at, number);
        }
    }
    best.0
}

/// Counts scaled so that each label has its number of rows, rounded with their sums.
fn calibrated(counted: &[Vec<usize>], labels: &[usize]) -> Vec<Vec<usize>> {
    let rows_of = |class: usize| labels.iter().filter(|&&label| label == class).count() as f64;
    let scaled: Vec<Vec<f64>> = counted
        .iter()
        .enumerate()
        .map(|(label, row)| {
            let sum: usize = row.iter().sum();
            let factor = rows_of(label) / sum.max(1) as f64;
            row.iter().map(|&count| count as f64 * factor).collect()
        })
        .collect();
    let sum: f64 = scaled.iter().flatten().sum();
    let factor = if sum > 0.0 {
        labels.len() as f64 / sum
    } else {
        1.0
    };
    scaled
        .iter()
        .map(|row| rounded(&row.iter().map(|it| it * factor).collect::<Vec<f64>>()))
        .collect()
}

/// Whole numbers with the rounded sum of `numbers`: those whose rounding error is largest give way.
fn rounded(numbers: &[f64]) -> Vec<usize> {
    let mut whole: Vec<f64> = numbers.iter().map(|it| it.round_ties_even()).collect();
    let wanted = numbers.iter().sum::<f64>().round_ties_even();
    loop {
        let missing = wanted - whole.iter().sum::<f64>().round_ties_even();
        if missing.abs() < 0.5 {
            return whole.into_iter().map(|it| it.max(0.0) as usize).collect();
        }
        let mut order: Vec<usize> = (0..whole.len()).collect();
        let error = |at: usize| numbers[at] - whole[at];
        order.sort_by(|&a, &b| error(a).total_cmp(&error(b)));
        if missing > 0.0 {
            order.reverse();
        }
        for &at in order.iter().take(missing.abs() as usize) {
            whole[at] += missing.signum();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cases() -> Vec<Value> {
        let text = include_str!("../../../tests/parity/cleanlab/cases.json");
        let file: Value = serde_json::from_str(text).expect("the fixture is JSON");
        file["cases"].as_array().expect("a list").clone()
    }

    fn rows(value: &Value) -> Vec<usize> {
        let numbers = value.as_array().expect("a list").iter();
        numbers
            .map(|it| it.as_u64().expect("a count") as usize)
            .collect()
    }

    fn floats(value: &Value) -> Vec<f64> {
        let numbers = value.as_array().expect("a list").iter();
        numbers.map(|it| it.as_f64().expect("a number")).collect()
    }

    /// Counts and rows are equal, numbers within 1e-12: the means are added in another order.
    #[test]
    fn the_numbers_are_those_of_cleanlab() {
        for case in cases() {
            let name = &case["name"];
            let probabilities = case["probabilities"].as_array().expect("rows");
            let probabilities: Vec<Vec<f64>> = probabilities.iter().map(floats).collect();
            let found = ConfidentLearning::of(&rows(&case["labels"]), &probabilities);
            for (own, expected) in [
                (&found.thresholds, floats(&case["thresholds"])),
                (&found.quality, floats(&case["quality"])),
            ] {
                assert_eq!(own.len(), expected.len());
                let largest = own
                    .iter()
                    .zip(&expected)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                assert!(largest < 1e-12, "{name}: {largest}");
            }
            let matrix = |value: &Value| {
                value
                    .as_array()
                    .expect("rows")
                    .iter()
                    .map(rows)
                    .collect::<Vec<_>>()
            };
            assert_eq!(found.counted, matrix(&case["counted_joint"]), "{name}");
            assert_eq!(found.joint, matrix(&case["joint"]), "{name}");
            let issues = &case["issues"];
            assert_eq!(
                found.wrong_labels(),
                rows(&issues["prune_by_noise_rate"]),
                "{name}"
            );
            assert_eq!(
                found.confidently_other(),
                rows(&issues["confident_learning"]),
                "{name}"
            );
        }
    }

    #[test]
    fn a_sure_classifier_contradicts_nothing() {
        let labels = [0, 1, 0, 1];
        let probabilities: Vec<Vec<f64>> = labels
            .map(|it| {
                if it == 0 {
                    vec![0.9, 0.1]
                } else {
                    vec![0.1, 0.9]
                }
            })
            .to_vec();
        let found = ConfidentLearning::of(&labels, &probabilities);
        assert!(found.wrong_labels().is_empty() && found.noise() == 0.0);
        assert_eq!(found.joint, [[2, 0], [0, 2]]);
    }

    #[test]
    fn rounding_keeps_the_sum() {
        for numbers in [
            vec![1.4, 1.4, 1.2],
            vec![0.6, 0.6, 0.8],
            vec![2.5, 3.5],
            vec![],
        ] {
            let sum: usize = rounded(&numbers).iter().sum();
            assert_eq!(
                sum as f64,
                numbers.iter().sum::<f64>().round_ties_even(),
                "{numbers:?}"
            );
        }
    }
}
