//! Rows that are like no other: the distance to the near ones of a sample. Sources: Ramaswamy, Rastogi and Shim 2000, "Efficient
//! algorithms for mining outliers" (the distance to the k-th neighbor); Sugiyama and Borgwardt 2013, "Rapid distance-based
//! outlier detection via sampling" (a sample of fixed size suffices). Linear in the rows.

use rayon::prelude::*;
use stratoscope_data::permutation;

/// Rows that all others are compared with.
const SAMPLE: usize = 512;
/// The neighbor whose distance counts: a few rows that are alike are not outliers together.
const NEIGHBOR: usize = 5;
/// From this modified z-score on a row is an outlier. Source: Iglewicz and Hoaglin 1993, "How to detect and handle outliers".
const Z_SCORE: f64 = 3.5;
/// The median of the deviations of a normal distribution, in standard deviations.
const DEVIATION_OF_NORMAL: f64 = 0.6745;

/// A row and how far it is from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Its row, counted from 0.
    pub row: usize,
    /// One minus the cosine of the angle to its fifth neighbor in the sample: 0 for the same direction.
    pub distance: f64,
    /// How far that is above the median of all rows, in robust standard deviations of the upper half.
    pub z_score: f64,
}

impl Outlier {
    /// Whether it is unusually far from the others.
    pub fn is_outlier(&self) -> bool {
        self.z_score > Z_SCORE
    }
}

/// All rows with the distance of their vectors from those of other rows, the farthest first. Of fewer than 20 rows there are
/// none: a spread cannot be measured.
pub fn by_distance(vectors: &[Vec<f32>]) -> Vec<Outlier> {
    const MIN_ROWS: usize = 20;
    if vectors.len() < MIN_ROWS {
        return Vec::new();
    }
    let distances = distances(vectors);
    let middle = median(&distances);
    // Distances have a longer tail above the median than below it: the spread is that of the upper half.
    let above: Vec<f64> = (distances.iter().map(|it| it - middle))
        .filter(|it| *it >= 0.0)
        .collect();
    // Where most rows are equal, the spread is zero, and any row that differs is an outlier.
    let spread = median(&above).max(1e-9);
    let rows = distances
        .iter()
        .enumerate()
        .map(|(row, &distance)| Outlier {
            row,
            distance,
            z_score: DEVIATION_OF_NORMAL * (distance - middle) / spread,
        });
    let mut found: Vec<Outlier> = rows.collect();
    found.sort_by(|a, b| b.distance.total_cmp(&a.distance));
    found
}

/// One minus the cosine to the fifth neighbor in the sample, for each row.
fn distances(vectors: &[Vec<f32>]) -> Vec<f64> {
    let sample: Vec<usize> = permutation(vectors.len(), 0, 0)
        .into_iter()
        .take(SAMPLE)
        .collect();
    let directions: Vec<Vec<f32>> = vectors.par_iter().map(|row| direction(row)).collect();
    let distance = |(row, own): (usize, &Vec<f32>)| {
        let others = sample.iter().filter(|&&other| other != row);
        let mut near: Vec<f64> = others
            .map(|&other| 1.0 - cosine(own, &directions[other]))
            .collect();
        let at = NEIGHBOR.min(near.len()) - 1;
        *near.select_nth_unstable_by(at, f64::total_cmp).1
    };
    directions.par_iter().enumerate().map(distance).collect()
}

fn direction(row: &[f32]) -> Vec<f32> {
    let length = row
        .iter()
        .map(|x| f64::from(*x).powi(2))
        .sum::<f64>()
        .sqrt()
        .max(1e-12);
    row.iter()
        .map(|x| (f64::from(*x) / length) as f32)
        .collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    f64::from(a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>())
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    let at = sorted.len() / 2;
    *sorted.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use stratoscope_data::random;

    use super::*;

    fn outliers(vectors: &[Vec<f32>]) -> Vec<Outlier> {
        let all = by_distance(vectors).into_iter();
        all.filter(Outlier::is_outlier).collect()
    }

    fn noise(row: usize, at: usize) -> f32 {
        ((random::mix((row * 31 + at) as u64) >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.3
    }

    #[test]
    fn planted_rows_are_found_and_few_others() {
        let base = |row: usize| {
            if row.is_multiple_of(2) {
                [1.0, 0.0, 0.0, 0.0]
            } else {
                [0.0, 1.0, 0.0, 0.0]
            }
        };
        let mut rows: Vec<Vec<f32>> = (0..800)
            .map(|row| (0..4).map(|at| base(row)[at] + noise(row, at)).collect())
            .collect();
        rows[17] = vec![0.0, 0.1, 1.0, 0.0];
        rows[600] = vec![-1.0, 0.0, 0.1, 0.2];
        let found = outliers(&rows);
        let mut first: Vec<usize> = found.iter().take(2).map(|it| it.row).collect();
        first.sort_unstable();
        assert_eq!(first, [17, 600]);
        assert!(found.len() < 40, "{}", found.len());
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].distance >= pair[1].distance)
        );
    }

    #[test]
    fn few_rows_or_equal_rows_have_no_outliers() {
        assert!(outliers(&vec![vec![1.0, 0.0]; 5]).is_empty());
        assert!(outliers(&vec![vec![1.0, 0.0]; 50]).is_empty());
    }
}
