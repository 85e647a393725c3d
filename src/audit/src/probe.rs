//! A classifier that is trained in a second: softmax regression on vectors. Its out-of-sample probabilities show which labels
//! do not fit.

use rayon::prelude::*;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use crate::folds::Folds;

/// Steps at most.
const MAX_STEPS: usize = 400;
/// Training ends when no number of the gradient is larger.
const CONVERGED: f32 = 1e-4;
/// The weight of the squared parameters for each row: weak, so that a class may be predicted with confidence.
const REGULARIZATION: f32 = 0.1;
/// Rows that are added up by one thread, so that the sums have one order with any number of threads.
const ROWS_OF_A_PART: usize = 256;

/// Softmax regression with a squared penalty. Dimensions: N rows of D numbers, C classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    mean: Vec<f32>,
    scale: f32,
    classes: usize,
    /// [C, D + 1]; the last number of a class is its bias.
    weights: Vec<f32>,
}

impl Probe {
    /// Trains on these rows of `vectors`: accelerated gradient descent (Nesterov 1983, with the restart of O'Donoghue and
    /// Candès 2015), from zero, on all rows at once. Equal rows give equal bits.
    ///
    /// `labels` has a class below `classes` for each vector.
    pub fn train(vectors: &[Vec<f32>], labels: &[usize], rows: &[usize], classes: usize) -> Self {
        let width = rows.first().map_or(0, |&row| vectors[row].len());
        let (mean, scale) = spread(vectors, rows, width);
        let mut probe = Self {
            mean,
            scale,
            classes,
            weights: vec![0.0; (width + 1) * classes],
        };
        let inputs: Vec<Vec<f32>> = rows.iter().map(|&row| probe.input(&vectors[row])).collect();
        let labels: Vec<usize> = rows.iter().map(|&row| labels[row]).collect();
        let penalty = REGULARIZATION / rows.len().max(1) as f32;
        // The mean squared length of an input is 2 with its bias, and the curvature of a softmax at most a half.
        let step = 1.0 / (1.0 + penalty);
        let (mut ahead, mut momentum) = (probe.weights.clone(), 1.0_f32);
        for _ in 0..MAX_STEPS {
            let gradient = gradient(&ahead, &inputs, &labels, classes, penalty);
            if gradient.iter().all(|it| it.abs() < CONVERGED) {
                break;
            }
            let next: Vec<f32> = ahead
                .iter()
                .zip(&gradient)
                .map(|(w, g)| w - step * g)
                .collect();
            let moved = next.iter().zip(&probe.weights).map(|(new, old)| new - old);
            let moved: Vec<f32> = moved.collect();
            // Uphill: the momentum begins again.
            let uphill = gradient.iter().zip(&moved).map(|(g, m)| g * m).sum::<f32>() > 0.0;
            let grown = if uphill {
                1.0
            } else {
                0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt())
            };
            let share = if uphill {
                0.0
            } else {
                (momentum - 1.0) / grown
            };
            ahead = next
                .iter()
                .zip(&moved)
                .map(|(w, m)| w + share * m)
                .collect();
            probe.weights = next;
            momentum = grown;
        }
        probe
    }

    /// The probability of each class, `[C]`.
    pub fn probabilities(&self, vector: &[f32]) -> Vec<f64> {
        let logits = logits(&self.weights, &self.input(vector), self.classes);
        softmax(&logits).into_iter().map(f64::from).collect()
    }

    /// The probabilities of each row by a probe of the other folds, [N, C].
    ///
    /// # Errors
    /// SC0520 if it is interrupted.
    pub fn out_of_fold(
        vectors: &[Vec<f32>],
        labels: &[usize],
        classes: usize,
        folds: &Folds,
    ) -> Result<Vec<Vec<f64>>> {
        let mut work = Work::begin(
            ("cross-validating", "cross-validated"),
            folds.count(),
            Unit::Things("fold"),
        );
        let mut probabilities = vec![Vec::new(); labels.len()];
        for fold in 0..folds.count() {
            work.reached(fold)?;
            let probe = Self::train(vectors, labels, &folds.rest(fold), classes);
            for row in folds.held_out(fold) {
                probabilities[row] = probe.probabilities(&vectors[row]);
            }
        }
        work.finished();
        Ok(probabilities)
    }

    /// Centered, with a mean squared length of 1, and a 1 for the bias, [D + 1].
    fn input(&self, vector: &[f32]) -> Vec<f32> {
        let scaled = vector
            .iter()
            .zip(&self.mean)
            .map(|(x, m)| (x - m) * self.scale);
        scaled.chain(std::iter::once(1.0)).collect()
    }
}

/// The mean of the rows, and one over the root of their mean squared length without it.
fn spread(vectors: &[Vec<f32>], rows: &[usize], width: usize) -> (Vec<f32>, f32) {
    let count = rows.len().max(1) as f64;
    let mut mean = vec![0.0_f64; width];
    for &row in rows {
        mean.iter_mut()
            .zip(&vectors[row])
            .for_each(|(sum, &x)| *sum += f64::from(x) / count);
    }
    let squares = rows.iter().map(|&row| {
        let centered = vectors[row]
            .iter()
            .zip(&mean)
            .map(|(&x, m)| (f64::from(x) - m).powi(2));
        centered.sum::<f64>() / count
    });
    let scale = 1.0 / squares.sum::<f64>().sqrt().max(1e-12);
    (mean.into_iter().map(|m| m as f32).collect(), scale as f32)
}

/// [C]
fn logits(weights: &[f32], input: &[f32], classes: usize) -> Vec<f32> {
    let lines = weights.chunks_exact(input.len()).take(classes);
    lines.map(|line| dot(line, input)).collect()
}

/// In sixteen sums, which the processor adds at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (parts_a, parts_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = parts_a.remainder().iter().zip(parts_b.remainder());
    let rest: f32 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in parts_a.zip(parts_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|it| (it - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|it| it / sum).collect()
}

/// Of the mean cross-entropy and the penalty, [C, D + 1]. The bias has no penalty.
fn gradient(
    weights: &[f32],
    inputs: &[Vec<f32>],
    labels: &[usize],
    classes: usize,
    penalty: f32,
) -> Vec<f32> {
    let share = 1.0 / inputs.len().max(1) as f32;
    let of_part = |(inputs, labels): (&[Vec<f32>], &[usize])| {
        let mut sum = vec![0.0; weights.len()];
        for (input, &label) in inputs.iter().zip(labels) {
            let mut error = softmax(&logits(weights, input, classes));
            error[label] -= 1.0;
            for (&e, line) in error.iter().zip(sum.chunks_exact_mut(input.len())) {
                line.iter_mut()
                    .zip(input)
                    .for_each(|(sum, x)| *sum += e * x);
            }
        }
        sum
    };
    let parts = inputs
        .par_chunks(ROWS_OF_A_PART)
        .zip(labels.par_chunks(ROWS_OF_A_PART));
    let parts: Vec<Vec<f32>> = parts.map(of_part).collect();
    let width = weights.len() / classes.max(1);
    let pulled = weights.iter().enumerate().map(|(at, w)| {
        let is_bias = at % width.max(1) + 1 == width;
        if is_bias { 0.0 } else { penalty * w }
    });
    let mut whole: Vec<f32> = pulled.collect();
    for part in parts {
        whole
            .iter_mut()
            .zip(part)
            .for_each(|(sum, x)| *sum += share * x);
    }
    whole
}

#[cfg(test)]
mod tests {
    use stratoscope_data::random;

    use super::*;

    /// Three clouds in a plane.
    fn clouds(rows: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
        let noise =
            |seed: usize| (random::mix(seed as u64 + 1) >> 40) as f32 / (1 << 24) as f32 - 0.5;
        let labels: Vec<usize> = (0..rows).map(|row| row % 3).collect();
        let center = [[3.0, 0.0], [0.0, 3.0], [-3.0, -3.0]];
        let rows = labels.iter().enumerate();
        let rows = rows.map(|(row, &class)| {
            (0..2)
                .map(|at| center[class][at] + noise(2 * row + at))
                .collect()
        });
        (rows.collect(), labels)
    }

    #[test]
    fn clouds_are_separated_and_equal_rows_give_equal_bits() {
        let (rows, labels) = clouds(300);
        let all: Vec<usize> = (0..300).collect();
        let probe = Probe::train(&rows, &labels, &all, 3);
        for (row, &label) in rows.iter().zip(&labels) {
            let probabilities = probe.probabilities(row);
            assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            assert!(probabilities[label] > 0.8, "{probabilities:?}");
        }
        assert_eq!(probe, Probe::train(&rows, &labels, &all, 3));
    }

    /// At the minimum the gradient is zero: the residuals of each class add up to zero, as the bias has no penalty.
    #[test]
    fn training_ends_at_the_minimum() {
        let (rows, labels) = clouds(90);
        let all: Vec<usize> = (0..90).collect();
        let probe = Probe::train(&rows, &labels, &all, 3);
        for class in 0..3 {
            let sum: f64 = rows.iter().map(|row| probe.probabilities(row)[class]).sum();
            assert!((sum - 30.0).abs() < 0.02, "{sum}");
        }
    }

    #[test]
    fn a_planted_label_is_improbable_out_of_fold() {
        let (rows, mut labels) = clouds(120);
        labels[33] = 1;
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let folds = Folds::stratified("audit", &labels, &names, 5, 0).expect("enough rows");
        let probabilities = Probe::out_of_fold(&rows, &labels, 3, &folds).expect("no interrupt");
        let own = |row: usize| probabilities[row][labels[row]];
        let least = (0..120)
            .min_by(|&a, &b| own(a).total_cmp(&own(b)))
            .expect("rows");
        assert_eq!(least, 33);
        let found = crate::ConfidentLearning::of(&labels, &probabilities);
        assert_eq!(found.wrong_labels(), [33]);
    }
}
