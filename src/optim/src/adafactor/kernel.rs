//! Adafactor on slices: what is kept moves first, then two norms decide how far the weights go.

use std::ops::Range;

use rayon::prelude::*;

use crate::AdafactorRule;
use crate::change::{Change, updated};
use crate::kernel::{BLOCK, Pass, Prepare};

/// Elements whose directions are there at a time.
const PIECE: usize = 1024;
/// Sums that are added up side by side.
const LANES: usize = 8;
/// The groups of rows whose columns are summed side by side: their number does not depend on that of the threads.
const GROUPS: usize = 64;

/// Adafactor at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdafactorStep {
    /// The share of the old means in the new ones.
    pub beta: f32,
    /// The rest, stepᵇ.
    pub others: f32,
    /// Added to squared gradients.
    pub epsilon_1: f32,
    /// 1 − rate · weight decay.
    pub keep: f32,
    /// The least root mean square of the weights that counts.
    pub epsilon_2: f64,
    /// The root mean square from which on directions are shortened.
    pub clip_threshold: f64,
    /// The rate after its limit.
    pub rate: f64,
}

impl AdafactorStep {
    /// Step `time`, counted from 1.
    pub fn new(rule: &AdafactorRule, rate: f64, decay: f64, time: u64) -> Self {
        let time = time as f64;
        let others = time.powf(rule.beta_2_decay);
        Self {
            beta: (1.0 - others) as f32,
            others: others as f32,
            epsilon_1: rule.epsilon_1 as f32,
            keep: (1.0 - rate * decay) as f32,
            epsilon_2: rule.epsilon_2,
            clip_threshold: rule.clip_threshold,
            rate: match rule.relative_step {
                true => rate.min(1.0 / time.sqrt()),
                false => rate,
            },
        }
    }

    /// What directions are multiplied with, by the root mean squares of the weights, after their decay, and of the directions.
    fn size(self, weights: f64, directions: f64) -> f32 {
        let shortened = (directions / self.clip_threshold).max(1.0);
        (weights.max(self.epsilon_2) * self.rate / shortened) as f32
    }

    /// The new mean of squares.
    fn moved(self, old: f32, square: f32) -> f32 {
        self.beta * old + self.others * square
    }
}

/// What is kept beside a variable.
#[derive(Debug)]
pub(crate) enum AdafactorState<'a> {
    /// A vector: the mean square of each element.
    Vector(&'a mut [f32]),
    /// Matrices: the mean squares of the rows and of the columns, one matrix after the other.
    Matrices {
        rows: &'a mut [f32],
        columns: &'a mut [f32],
        /// The rows and columns of each.
        sizes: [usize; 2],
    },
}

/// Slices of equal length. Returns the change, if it is measured.
pub(crate) fn adafactor(
    weights: &mut [f32],
    state: AdafactorState<'_>,
    gradients: &[f32],
    pass: Pass,
    step: AdafactorStep,
) -> Change {
    if weights.is_empty() {
        return Change::default();
    }
    let Pass {
        prepare,
        is_measured,
    } = pass;
    let scales = state.moved(gradients, prepare, step);
    let blocks = weights.par_chunks(BLOCK).zip(gradients.par_chunks(BLOCK));
    let sums = blocks.enumerate().map(|(block, (weights, gradients))| {
        let mut sums = [sum_of_squares(weights), 0.0];
        scales.each_piece(block * BLOCK, gradients, prepare, |_, directions| {
            sums[1] += sum_of_squares(directions);
        });
        sums
    });
    let sums: Vec<[f64; 2]> = sums.collect();
    let count = weights.len() as f64;
    let size = |at: usize| (sums.iter().map(|it| it[at]).sum::<f64>() / count).sqrt();
    let size = step.size(size(0) * f64::from(step.keep).abs(), size(1));
    let blocks = weights.par_chunks_mut(BLOCK);
    let blocks = blocks.zip(gradients.par_chunks(BLOCK)).enumerate();
    let changes = blocks.map(|(block, (weights, gradients))| {
        updated(weights, is_measured, |weights, at| {
            let start = block * BLOCK + at.start;
            scales.each_piece(start, &gradients[at], prepare, |place, directions| {
                for (weight, direction) in weights[place].iter_mut().zip(directions) {
                    *weight = *weight * step.keep - size * direction;
                }
            });
        })
    });
    let changes: Vec<Change> = changes.collect();
    changes.into_iter().sum()
}

impl<'a> AdafactorState<'a> {
    /// Moves it, and says what the gradients are divided by.
    fn moved(self, gradients: &[f32], prepare: Prepare, step: AdafactorStep) -> Scales<'a> {
        match self {
            Self::Vector(means) => {
                let blocks = means.par_chunks_mut(BLOCK);
                let blocks = blocks.zip(gradients.par_chunks(BLOCK));
                blocks.for_each(|(means, gradients)| {
                    for (mean, &gradient) in means.iter_mut().zip(gradients) {
                        let gradient = prepare.of::<true>(gradient);
                        *mean = step.moved(*mean, gradient * gradient + step.epsilon_1);
                    }
                });
                Scales::Vector(means)
            }
            Self::Matrices {
                rows,
                columns,
                sizes,
            } => {
                let [height, width] = sizes;
                let gradients = gradients.chunks(height * width);
                let kept = rows.chunks_mut(height).zip(columns.chunks_mut(width));
                let mut scales = (Vec::new(), Vec::new());
                for (gradients, (rows, columns)) in gradients.zip(kept) {
                    move_matrix(gradients, rows, columns, prepare, step);
                    let sum: f64 = rows.iter().copied().map(f64::from).sum();
                    let mean = sum / height as f64;
                    let inverse = |square: f64| (1.0 / square.sqrt()) as f32;
                    let of_rows = rows.iter().map(|&row| inverse(f64::from(row) / mean));
                    scales.0.extend(of_rows);
                    let of_columns = columns.iter().map(|&column| inverse(f64::from(column)));
                    scales.1.extend(of_columns);
                }
                Scales::Matrices {
                    rows: scales.0,
                    columns: scales.1,
                    sizes,
                }
            }
        }
    }
}

/// Moves the means of the rows and of the columns of a matrix. Sums are in f64; those of columns are of groups of rows, which
/// are added in their order.
fn move_matrix(
    gradients: &[f32],
    rows: &mut [f32],
    columns: &mut [f32],
    prepare: Prepare,
    step: AdafactorStep,
) {
    let (height, width) = (rows.len(), columns.len());
    let group = height.div_ceil(GROUPS);
    let groups = gradients.par_chunks(group * width);
    let sums = groups
        .zip(rows.par_chunks_mut(group))
        .map(|(gradients, rows)| {
            let mut sums = vec![0.0_f64; width];
            for (row, gradients) in rows.iter_mut().zip(gradients.chunks(width)) {
                let mut lanes = [0.0_f64; LANES];
                let parts = gradients.chunks(LANES).zip(sums.chunks_mut(LANES));
                for (gradients, sums) in parts {
                    for (lane, (sum, &gradient)) in sums.iter_mut().zip(gradients).enumerate() {
                        let gradient = prepare.of::<true>(gradient);
                        let square = f64::from(gradient * gradient + step.epsilon_1);
                        *sum += square;
                        lanes[lane] += square;
                    }
                }
                *row = step.moved(*row, (lanes.iter().sum::<f64>() / width as f64) as f32);
            }
            sums
        });
    let sums: Vec<Vec<f64>> = sums.collect();
    for (at, column) in columns.iter_mut().enumerate() {
        let sum: f64 = sums.iter().map(|sums| sums[at]).sum();
        *column = step.moved(*column, (sum / height as f64) as f32);
    }
}

/// What makes directions of gradients.
enum Scales<'a> {
    /// The mean squares.
    Vector(&'a [f32]),
    /// The inverse roots of rows, as a share of their mean, and of columns. Products of their squares can be smaller than any
    /// float32, so that one is applied after the other.
    Matrices {
        rows: Vec<f32>,
        columns: Vec<f32>,
        sizes: [usize; 2],
    },
}

impl Scales<'_> {
    /// Hands out the directions of gradients that begin at the element `start`, piece by piece with their place.
    fn each_piece(
        &self,
        start: usize,
        gradients: &[f32],
        prepare: Prepare,
        mut work: impl FnMut(Range<usize>, &[f32]),
    ) {
        let mut directions = [0.0_f32; PIECE];
        for (index, gradients) in gradients.chunks(PIECE).enumerate() {
            let at = index * PIECE;
            let directions = &mut directions[..gradients.len()];
            self.directions(start + at, gradients, prepare, directions);
            work(at..at + directions.len(), directions);
        }
    }

    fn directions(&self, start: usize, gradients: &[f32], prepare: Prepare, found: &mut [f32]) {
        match self {
            Self::Vector(means) => {
                let means = &means[start..start + gradients.len()];
                for ((found, &gradient), mean) in found.iter_mut().zip(gradients).zip(means) {
                    *found = prepare.of::<true>(gradient) / mean.sqrt();
                }
            }
            Self::Matrices {
                rows,
                columns,
                sizes: [height, width],
            } => {
                let mut done = 0;
                while done < gradients.len() {
                    let (row, column) = ((start + done) / width, (start + done) % width);
                    let end = gradients.len().min(done + width - column);
                    let of_matrix = row / height * width + column;
                    let columns = &columns[of_matrix..of_matrix + end - done];
                    let row = rows[row];
                    let parts = found[done..end].iter_mut().zip(&gradients[done..end]);
                    for ((found, &gradient), column) in parts.zip(columns) {
                        *found = prepare.of::<true>(gradient) * row * column;
                    }
                    done = end;
                }
            }
        }
    }
}

fn sum_of_squares(values: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    for values in values.chunks(LANES) {
        for (lane, &value) in lanes.iter_mut().zip(values) {
            *lane += f64::from(value) * f64::from(value);
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: AdafactorRule = AdafactorRule {
        beta_2_decay: -0.8,
        epsilon_1: 1e-30,
        epsilon_2: 1e-3,
        clip_threshold: 1.0,
        relative_step: true,
        weight_decay: 0.1,
    };

    const PASS: Pass = Pass {
        prepare: Prepare {
            factor: 1.0,
            limit: f32::INFINITY,
        },
        is_measured: true,
    };

    fn numbers(count: usize, factor: usize, shift: f32) -> Vec<f32> {
        let one = |at: usize| ((at * factor) % 101) as f32 * 2e-2 - shift;
        (0..count).map(one).collect()
    }

    fn rms(values: &[f64]) -> f64 {
        (values.iter().map(|it| it * it).sum::<f64>() / values.len() as f64).sqrt()
    }

    /// `update_step` of `keras.optimizers.Adafactor` in f64, with Keras's decay before it, for matrices of these sizes one
    /// after the other; `sizes` of no rows: a vector.
    fn expected(
        weights: &mut [f64],
        kept: &mut [Vec<f64>; 2],
        gradients: &[f32],
        [height, width]: [usize; 2],
        rate: f64,
        time: u64,
    ) {
        let others = (time as f64).powf(RULE.beta_2_decay);
        let rho = rate.min(1.0 / (time as f64).sqrt());
        let square = |at: usize| f64::from(gradients[at]).powi(2) + RULE.epsilon_1;
        let moved = |old: f64, new: f64| (1.0 - others) * old + others * new;
        for weight in weights.iter_mut() {
            *weight -= rate * RULE.weight_decay * *weight;
        }
        let mut v = vec![0.0; weights.len()];
        let [rows, columns] = kept;
        if height == 0 {
            for (at, v) in v.iter_mut().enumerate() {
                columns[at] = moved(columns[at], square(at));
                *v = columns[at];
            }
        } else {
            for matrix in 0..weights.len() / (height * width) {
                let at = |row: usize, column: usize| (matrix * height + row) * width + column;
                for row in 0..height {
                    let sum: f64 = (0..width).map(|column| square(at(row, column))).sum();
                    let kept = &mut rows[matrix * height + row];
                    *kept = moved(*kept, sum / width as f64);
                }
                for column in 0..width {
                    let sum: f64 = (0..height).map(|row| square(at(row, column))).sum();
                    let kept = &mut columns[matrix * width + column];
                    *kept = moved(*kept, sum / height as f64);
                }
                let of_matrix = &rows[matrix * height..][..height];
                let mean = of_matrix.iter().sum::<f64>() / height as f64;
                for row in 0..height {
                    for column in 0..width {
                        let share = of_matrix[row] / mean;
                        v[at(row, column)] = share * columns[matrix * width + column];
                    }
                }
            }
        }
        let direction = |at: usize| f64::from(gradients[at]) / v[at].sqrt();
        let directions: Vec<f64> = (0..weights.len()).map(direction).collect();
        let size = rho * rms(weights).max(RULE.epsilon_2)
            / (rms(&directions) / RULE.clip_threshold).max(1.0);
        for (weight, direction) in weights.iter_mut().zip(directions) {
            *weight -= size * direction;
        }
    }

    #[track_caller]
    fn check(count: usize, [height, width]: [usize; 2], rate: f64) {
        let mut found = numbers(count, 17, 1.0);
        let mut weights: Vec<f64> = found.iter().map(|&it| f64::from(it)).collect();
        let is_vector = height == 0;
        let matrices = if is_vector {
            0
        } else {
            count / (height * width)
        };
        let lengths = match is_vector {
            true => [0, count],
            false => [matrices * height, matrices * width],
        };
        let mut kept = lengths.map(|length| vec![0.0_f64; length]);
        let mut own = lengths.map(|length| vec![0.0_f32; length]);
        for time in 1..=6 {
            let gradients = numbers(count, 7 + 6 * time as usize, 1.03 - 0.1 * time as f32);
            expected(
                &mut weights,
                &mut kept,
                &gradients,
                [height, width],
                rate,
                time,
            );
            let [rows, columns] = &mut own;
            let state = match is_vector {
                true => AdafactorState::Vector(columns),
                false => AdafactorState::Matrices {
                    rows,
                    columns,
                    sizes: [height, width],
                },
            };
            let step = AdafactorStep::new(&RULE, rate, RULE.weight_decay, time);
            adafactor(&mut found, state, &gradients, PASS, step);
        }
        for (found, expected) in found.iter().zip(weights) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error < 1e-5, "{count}, {height}: {found} {expected}");
        }
    }

    #[test]
    fn a_step_is_that_of_keras() {
        for count in [1, 9, 1500, BLOCK + 13] {
            check(count, [0, 0], 1e-2);
        }
        check(6, [2, 3], 1e-2);
        check(6, [6, 1], 1e-2);
        check(70 * 301, [70, 301], 1e-2);
        // Two matrices in one variable.
        check(2 * 70 * 301, [70, 301], 1e-2);
        check(20_000, [10_000, 2], 1e-2);
        // From step 5 on the rate is 1/√step.
        check(6, [2, 3], 0.5);
    }

    /// By hand: all squares are 1 but for the first row, whose are 4. Means of rows 4 and 1, of columns 2.5, of rows 2.5, and
    /// so all directions are ± 1; rms(w) = 5, and the step is 0.1 · 5.
    #[test]
    fn the_first_step_of_a_matrix_is_the_rate_times_the_size_of_its_weights() {
        let (mut rows, mut columns) = ([0.0; 2], [0.0; 2]);
        let mut weights = [1.0, 7.0, -1.0, -7.0];
        let step = AdafactorStep::new(&RULE, 0.1, 0.0, 1);
        let state = AdafactorState::Matrices {
            rows: &mut rows,
            columns: &mut columns,
            sizes: [2, 2],
        };
        let gradients = [2.0, -2.0, 1.0, 1.0];
        let change = adafactor(&mut weights, state, &gradients, PASS, step);
        assert_eq!((rows, columns), ([4.0, 1.0], [2.5, 2.5]));
        for (found, expected) in weights.iter().zip([0.5, 7.5, -1.5, -7.5]) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
        assert!((change.change - 1.0).abs() < 1e-5, "{change:?}");
    }

    #[test]
    fn rows_and_columns_without_a_gradient_stay_and_an_update_is_measured_the_same() {
        let made = |is_measured: bool| {
            let (mut rows, mut columns) = (vec![0.0; 300], vec![0.0; 100]);
            let mut weights = numbers(30_000, 17, 1.0);
            let mut gradients = numbers(30_000, 13, 0.5);
            gradients[..100].fill(0.0);
            gradients.iter_mut().step_by(100).for_each(|it| *it = 0.0);
            let state = AdafactorState::Matrices {
                rows: &mut rows,
                columns: &mut columns,
                sizes: [300, 100],
            };
            let step = AdafactorStep::new(&RULE, 0.1, 0.0, 1);
            let pass = Pass {
                is_measured,
                ..PASS
            };
            let change = adafactor(&mut weights, state, &gradients, pass, step);
            (weights, change)
        };
        let ((weights, change), (plain, none)) = (made(true), made(false));
        assert_eq!(weights, plain);
        assert_eq!(none, Change::default());
        assert!(change.change > 0.0 && change.change.is_finite());
        assert_eq!(weights[..101], numbers(101, 17, 1.0));
    }
}
