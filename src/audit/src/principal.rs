//! Principal components by power iteration on several vectors at once (orthogonal iteration: Golub and Van Loan, "Matrix
//! Computations", section 8.2.4). Linear in the rows: they are read once, for the covariance.

use rayon::prelude::*;
use stratoscope_data::random;

/// Iterations at most.
const MAX_ITERATIONS: usize = 300;
/// A component has converged if none of its numbers changes by more.
const CONVERGED: f64 = 1e-9;
/// Rows that are added up by one thread. A fixed number, so that the sum has the same order with any number of threads.
const ROWS_OF_A_PART: usize = 256;

/// The directions in which rows of numbers differ most. Dimensions: N rows of D numbers, K components.
#[derive(Clone, Debug, PartialEq)]
pub struct Principal {
    /// The mean row, `[D]`.
    pub mean: Vec<f64>,
    /// The directions, each of length 1, the one with the largest variance first, [K, D]. The largest number of a direction is
    /// positive.
    pub components: Vec<Vec<f64>>,
    /// The variance of the rows in each direction, `[K]`.
    pub variances: Vec<f64>,
    /// The variance in all directions.
    pub total: f64,
}

impl Principal {
    /// The first `count` components, or fewer where the rows have fewer numbers.
    pub fn of(rows: &[Vec<f32>], count: usize) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let mean = mean(rows, width);
        let covariance = covariance(rows, &mean);
        let total = (0..width).map(|at| covariance[at * width + at]).sum();
        let count = count.min(width);
        let mut components: Vec<Vec<f64>> = (0..count).map(|at| start(width, at)).collect();
        orthogonalize(&mut components);
        for _ in 0..MAX_ITERATIONS {
            let before = components.clone();
            for component in &mut components {
                *component = product(&covariance, component);
            }
            orthogonalize(&mut components);
            let pairs = components.iter().flatten().zip(before.iter().flatten());
            if pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < CONVERGED {
                break;
            }
        }
        let variances = components
            .iter()
            .map(|it| dot(it, &product(&covariance, it)).max(0.0));
        let variances = variances.collect();
        components.iter_mut().for_each(|it| point_up(it));
        Self {
            mean,
            components,
            variances,
            total,
        }
    }

    /// A row in the directions of the components, `[K]`.
    pub fn project(&self, row: &[f32]) -> Vec<f64> {
        let along = |component: &Vec<f64>| {
            let terms = component.iter().zip(row).zip(&self.mean);
            terms.map(|((c, &x), m)| c * (f64::from(x) - m)).sum()
        };
        self.components.iter().map(along).collect()
    }

    /// The share of the variance in the first `count` directions.
    pub fn explained(&self, count: usize) -> f64 {
        let own: f64 = self.variances.iter().take(count).sum();
        if self.total > 0.0 {
            (own / self.total).min(1.0)
        } else {
            0.0
        }
    }
}

fn mean(rows: &[Vec<f32>], width: usize) -> Vec<f64> {
    let mut mean = vec![0.0; width];
    for row in rows {
        mean.iter_mut()
            .zip(row)
            .for_each(|(sum, &x)| *sum += f64::from(x));
    }
    mean.iter_mut()
        .for_each(|sum| *sum /= rows.len().max(1) as f64);
    mean
}

/// Σ (x − m)·(x − m)ᵀ / N, row by row, [D·D].
fn covariance(rows: &[Vec<f32>], mean: &[f64]) -> Vec<f64> {
    let width = mean.len();
    let of_part = |part: &[Vec<f32>]| {
        let mut sum = vec![0.0; width * width];
        for row in part {
            let centered: Vec<f64> = row
                .iter()
                .zip(mean)
                .map(|(&x, m)| f64::from(x) - m)
                .collect();
            for (at, &own) in centered.iter().enumerate() {
                let line = &mut sum[at * width..(at + 1) * width];
                line.iter_mut()
                    .zip(&centered)
                    .for_each(|(sum, x)| *sum += own * x);
            }
        }
        sum
    };
    let parts: Vec<Vec<f64>> = rows.par_chunks(ROWS_OF_A_PART).map(of_part).collect();
    let mut whole = vec![0.0; width * width];
    for part in parts {
        whole.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    whole
        .iter_mut()
        .for_each(|sum| *sum /= rows.len().max(1) as f64);
    whole
}

/// Numbers between −1 and 1 that depend on the place alone.
fn start(width: usize, component: usize) -> Vec<f64> {
    let number = |at: usize| {
        let bits = random::mix((component * width + at + 1) as u64) >> 11;
        2.0 * bits as f64 / (1_u64 << 53) as f64 - 1.0
    };
    (0..width).map(number).collect()
}

fn product(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix
        .par_chunks(vector.len().max(1))
        .map(|line| dot(line, vector))
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gram and Schmidt: each vector without its part in the earlier ones, of length 1. Nothing is left of a vector in a direction
/// without variance, which becomes zero.
fn orthogonalize(vectors: &mut [Vec<f64>]) {
    for at in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(at);
        let own = &mut rest[0];
        // Twice, as once leaves rounding errors of the size of what is left.
        for _ in 0..2 {
            for other in before.iter() {
                let part = dot(own, other);
                own.iter_mut().zip(other).for_each(|(x, o)| *x -= part * o);
            }
        }
        let length = dot(own, own).sqrt();
        let factor = if length > 1e-150 { 1.0 / length } else { 0.0 };
        own.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Turns a direction so that its largest number is positive.
fn point_up(vector: &mut [f64]) {
    let largest = vector
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    if largest.is_some_and(|it| it < 0.0) {
        vector.iter_mut().for_each(|x| *x = -*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows along (3, 4)/5 with the variance 4, across with 1, and nothing in the third direction.
    #[test]
    fn directions_and_variances_are_those_of_the_rows() {
        let rows: Vec<Vec<f32>> = [(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)]
            .iter()
            .map(|(a, b)| vec![10.0 + 0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b, 5.0])
            .collect();
        let found = Principal::of(&rows, 2);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
        for (own, expected) in found
            .components
            .iter()
            .zip([[0.6, 0.8, 0.0], [0.8, -0.6, 0.0]])
        {
            own.iter().zip(expected).for_each(|(&a, b)| close(a, b));
        }
        close(found.variances[0], 4.0);
        close(found.variances[1], 1.0);
        close(found.explained(1), 0.8);
        let place = found.project(&rows[1]);
        close(place[0], 2.0);
        close(place[1], 1.0);
    }

    #[test]
    fn components_are_orthogonal_and_no_others_have_more_variance() {
        let rows: Vec<Vec<f32>> = (0..200)
            .map(|row| {
                start(12, row)
                    .iter()
                    .enumerate()
                    .map(|(at, x)| (x * (at + 1) as f64) as f32)
                    .collect()
            })
            .collect();
        let found = Principal::of(&rows, 12);
        for a in 0..12 {
            for b in 0..=a {
                let expected = f64::from(u8::from(a == b));
                assert!((dot(&found.components[a], &found.components[b]) - expected).abs() < 1e-9);
            }
        }
        assert!(
            found
                .variances
                .windows(2)
                .all(|pair| pair[0] >= pair[1] - 1e-6),
            "{:?}",
            found.variances
        );
        assert!((found.explained(12) - 1.0).abs() < 1e-9);
        assert_eq!(found, Principal::of(&rows, 12));
    }

    #[test]
    fn rows_without_numbers_or_differences_have_no_variance() {
        assert!(Principal::of(&[], 2).components.is_empty());
        let same = Principal::of(&[vec![1.0, 2.0], vec![1.0, 2.0]], 2);
        assert_eq!((same.explained(2), same.variances), (0.0, vec![0.0, 0.0]));
    }
}
