//! Transposes a matrix in memory.
//!
//! The product of rows with a weight [O, I] reads the weight column by column. Transposing it once
//! costs less than these strided reads for every block of rows.

use super::in_blocks;
use super::vectorized::vectorized;

/// Side of the square tiles that are transposed in the first-level cache.
const TILE: usize = 32;

vectorized! {
    /// Writes columns `first..` of `data`, as many as `result` has rows.
    fn turn(data: &[f32], columns: usize, first: usize, result: &mut [f32]) {
        let rows = data.len() / columns;
        let wide = result.len() / rows;
        for top in (0..rows).step_by(TILE) {
            let bottom = rows.min(top + TILE);
            for column in 0..wide {
                let target = &mut result[column * rows + top..column * rows + bottom];
                let source = &data[top * columns + first + column..];
                for (target, source) in target.iter_mut().zip(source.iter().step_by(columns)) {
                    *target = *source;
                }
            }
        }
    }
}

/// `[rows, columns]` → `[columns, rows]`
pub(in crate::ops) fn transpose(data: &[f32], columns: usize) -> Vec<f32> {
    let rows = data.len().checked_div(columns).unwrap_or(0);
    let ([result], _) = in_blocks(data.len(), TILE * rows, |block, [result]| {
        turn(data, columns, block * TILE, result);
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        for (rows, columns) in [(1, 1), (3, 5), (32, 32), (33, 65), (100, 7), (0, 3), (3, 0)] {
            let data: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
            let turned = transpose(&data, columns);
            for row in 0..rows {
                for column in 0..columns {
                    assert_eq!(turned[column * rows + row], data[row * columns + column]);
                }
            }
        }
    }
}
