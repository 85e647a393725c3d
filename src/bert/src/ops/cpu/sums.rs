//! Sums over the rows of a matrix, as the gradients of biases and of scales need them.

use rayon::prelude::*;

use super::vectorized::vectorized;

/// Rows summed by one block; the blocks' sums are added in order.
pub(in crate::ops) const ROWS: usize = 32;

vectorized! {
    /// `into += row` for every row.
    fn add_rows(rows: &[f32], into: &mut [f32]) {
        for row in rows.chunks_exact(into.len()) {
            for (sum, value) in into.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

/// The sum of all rows of a matrix with `columns` columns.
pub(in crate::ops) fn over_rows(rows: &[f32], columns: usize) -> Vec<f32> {
    if columns == 0 {
        return Vec::new();
    }
    let partial: Vec<Vec<f32>> = rows
        .par_chunks(ROWS * columns)
        .map(|block| {
            let mut sum = vec![0.0; columns];
            add_rows(block, &mut sum);
            sum
        })
        .collect();
    in_order(partial, columns)
}

/// The sum of the blocks' sums, first to last.
pub(in crate::ops) fn in_order(partial: Vec<Vec<f32>>, columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; columns];
    for block in &partial {
        add_rows(block, &mut sums);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_every_row() {
        for (rows, columns) in [(1, 1), (5, 3), (33, 7), (100, 17), (0, 4), (4, 0)] {
            let data: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
            let expected: Vec<f32> = (0..columns)
                .map(|c| (0..rows).map(|r| (r * columns + c) as f32).sum())
                .collect();
            assert_eq!(over_rows(&data, columns), expected, "{rows} × {columns}");
        }
    }
}
