//! Matrices for lesson 13: lists of rows, without a library, so that a lesson can show every number.
//!
//! The weight of a linear layer is [outputs, inputs], as checkpoints store it.

use std::ops::Range;

use crate::random::Random;

/// Rows of numbers.
pub type Matrix = Vec<Vec<f64>>;

/// How far a number may be from the true one: sums are made in another order.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// The product of two matrices: [m, k] by [k, n].
///
/// # Panics
/// If a row of the first one has another length than the second one has rows.
pub fn product(first: &[Vec<f64>], second: &[Vec<f64>]) -> Matrix {
    let columns = second.first().map_or(0, Vec::len);
    let row = |row: &Vec<f64>| {
        assert!(
            row.len() == second.len(),
            "a product of rows with {} numbers by a matrix with {} rows",
            row.len(),
            second.len()
        );
        let at = |column: usize| {
            row.iter()
                .zip(second)
                .map(|(x, other)| x * other[column])
                .sum()
        };
        (0..columns).map(at).collect()
    };
    first.iter().map(row).collect()
}

/// A matrix with rows and columns exchanged.
///
/// # Panics
/// If a row is shorter than the first one.
pub fn transposed(matrix: &[Vec<f64>]) -> Matrix {
    let columns = 0..matrix.first().map_or(0, Vec::len);
    columns
        .map(|column| matrix.iter().map(|row| row[column]).collect())
        .collect()
}

/// A linear layer without a bias: rows of inputs [examples, inputs] by a weight [outputs, inputs] are [examples, outputs].
///
/// # Panics
/// If the sizes do not fit.
pub fn linear(inputs: &[Vec<f64>], weight: &[Vec<f64>]) -> Matrix {
    product(inputs, &transposed(weight))
}

/// Negative numbers become 0.
pub fn relu(matrix: &[Vec<f64>]) -> Matrix {
    let row = |row: &Vec<f64>| row.iter().map(|x| x.max(0.0)).collect();
    matrix.iter().map(row).collect()
}

/// The gradient by the input of [`relu`], of the gradient by its output: 0 where the input was not above 0.
pub fn relu_backward(gradient: &[Vec<f64>], input: &[Vec<f64>]) -> Matrix {
    let row = |(gradient, input): (&Vec<f64>, &Vec<f64>)| {
        let pairs = gradient.iter().zip(input);
        pairs
            .map(|(&g, &x)| if x > 0.0 { g } else { 0.0 })
            .collect()
    };
    gradient.iter().zip(input).map(row).collect()
}

/// Some columns of a matrix.
///
/// # Panics
/// If it has fewer columns.
pub fn columns_of(matrix: &[Vec<f64>], columns: Range<usize>) -> Matrix {
    matrix
        .iter()
        .map(|row| row[columns.clone()].to_vec())
        .collect()
}

/// The sum of two matrices.
pub fn added(one: &[Vec<f64>], other: &[Vec<f64>]) -> Matrix {
    let row =
        |(one, other): (&Vec<f64>, &Vec<f64>)| one.iter().zip(other).map(|(x, y)| x + y).collect();
    one.iter().zip(other).map(row).collect()
}

/// The attention of tokens to each other, [tokens, hidden], with so many heads of equal size: for each head softmax(Q Kᵀ / √D) V.
/// Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
///
/// # Panics
/// If the number of heads does not divide the columns.
pub fn attention(query: &[Vec<f64>], key: &[Vec<f64>], value: &[Vec<f64>], heads: usize) -> Matrix {
    let hidden = query.first().map_or(0, Vec::len);
    assert!(
        heads > 0 && hidden.is_multiple_of(heads),
        "{heads} heads do not divide {hidden} numbers"
    );
    let size = hidden / heads;
    let mut all: Matrix = vec![Vec::new(); query.len()];
    for head in 0..heads {
        let columns = head * size..(head + 1) * size;
        let [q, k, v] = [query, key, value].map(|it| columns_of(it, columns.clone()));
        let scores = product(&q, &transposed(&k));
        let weights: Matrix = scores
            .iter()
            .map(|row| softmax(row, (size as f64).sqrt()))
            .collect();
        for (row, own) in all.iter_mut().zip(product(&weights, &v)) {
            row.extend(own);
        }
    }
    all
}

fn softmax(scores: &[f64], scale: f64) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores
        .iter()
        .map(|it| ((it - most) / scale).exp())
        .collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|it| it / sum).collect()
}

/// Random numbers, the same in every session.
pub fn random_matrix(rows: usize, columns: usize, seed: u64) -> Matrix {
    let mut random = Random::new(seed);
    matrix(&mut random, rows, columns)
}

pub(crate) fn matrix(random: &mut Random, rows: usize, columns: usize) -> Matrix {
    let row = |random: &mut Random| (0..columns).map(|_| random.short(-1.0, 1.0)).collect();
    (0..rows).map(|_| row(random)).collect()
}

/// The largest difference of two matrices; infinite where their shapes differ or a number is none.
pub fn difference(one: &[Vec<f64>], other: &[Vec<f64>]) -> f64 {
    if shape(one) != shape(other) || shape(one).is_none() {
        return f64::INFINITY;
    }
    let pairs = one.iter().flatten().zip(other.iter().flatten());
    pairs.map(|(x, y)| (x - y).abs()).fold(0.0, |most, it| {
        if it.is_nan() {
            f64::INFINITY
        } else {
            f64::max(most, it)
        }
    })
}

pub(crate) fn are_equal(one: &[Vec<f64>], other: &[Vec<f64>]) -> bool {
    difference(one, other) <= TOLERANCE
}

/// Rows and columns; `None` where the rows have different lengths.
pub(crate) fn shape(matrix: &[Vec<f64>]) -> Option<(usize, usize)> {
    let columns = matrix.first().map_or(0, Vec::len);
    let is_even = matrix.iter().all(|row| row.len() == columns);
    is_even.then_some((matrix.len(), columns))
}

pub(crate) fn in_words(matrix: &[Vec<f64>]) -> String {
    match shape(matrix) {
        Some((rows, columns)) => format!("[{rows}, {columns}]"),
        None => "rows of different lengths".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_matrices() {
        let (a, b) = (
            vec![vec![1.0, 2.0], vec![3.0, 4.0]],
            vec![vec![5.0, 6.0], vec![7.0, 8.0]],
        );
        assert_eq!(product(&a, &b), [[19.0, 22.0], [43.0, 50.0]]);
        assert_eq!(linear(&a, &b), [[17.0, 23.0], [39.0, 53.0]]);
        assert_eq!(transposed(&[vec![1.0, 2.0, 3.0]]), [[1.0], [2.0], [3.0]]);
        assert_eq!(transposed(&[]), Vec::<Vec<f64>>::new());
        assert_eq!(difference(&a, &[vec![1.0]]), f64::INFINITY);
        assert_eq!(difference(&[vec![f64::NAN]], &[vec![1.0]]), f64::INFINITY);
    }

    #[test]
    fn whole_heads_can_be_computed_apart_and_halves_cannot() {
        let [q, k, v] = [1, 2, 3].map(|seed| random_matrix(5, 8, seed));
        let whole = attention(&q, &k, &v, 2);
        let apart = |devices: usize, heads: usize| {
            let each = 8 / devices;
            let mut all: Matrix = vec![Vec::new(); 5];
            for device in 0..devices {
                let own = device * each..(device + 1) * each;
                let [q, k, v] = [&q, &k, &v].map(|it| columns_of(it, own.clone()));
                for (row, part) in all.iter_mut().zip(attention(&q, &k, &v, heads)) {
                    row.extend(part);
                }
            }
            difference(&all, &whole)
        };
        assert!(apart(2, 1) <= TOLERANCE);
        assert!(apart(4, 1) > 1e-3);
    }
}
