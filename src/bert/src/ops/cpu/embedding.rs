//! Looking up vectors in a table, and adding up their gradients. H columns.

use super::in_blocks;
use super::vectorized::vectorized;

/// Vectors copied by one block.
const ROWS: usize = 64;
/// Entries of a table whose gradients one block adds up.
const ENTRIES: usize = 512;

vectorized! {
    fn add(row: &[f32], into: &mut [f32]) {
        for (into, value) in into.iter_mut().zip(row) {
            *into += value;
        }
    }
}

/// Entry `index` of each of the indices.
pub(in crate::ops) fn forward(table: &[f32], columns: usize, indices: &[usize]) -> Vec<f32> {
    let ([y], _) = in_blocks(indices.len() * columns, ROWS * columns, |block, [y]| {
        let indices = &indices[block * ROWS..];
        for (row, &index) in y.chunks_exact_mut(columns).zip(indices) {
            row.copy_from_slice(&table[index * columns..(index + 1) * columns]);
        }
    });
    y
}

/// The table's gradient, [entries, H]: the gradients of each entry's uses, added in their order.
/// The entry `padding` gets none.
pub(in crate::ops) fn backward(
    gradient: &[f32],
    entries: usize,
    columns: usize,
    indices: &[usize],
    padding: Option<usize>,
) -> Vec<f32> {
    if columns == 0 {
        return Vec::new();
    }
    // Most entries are not used in a batch: what takes time is to write their zeros.
    let ([result], _) = in_blocks(entries * columns, ENTRIES * columns, |block, [part]| {
        let first = block * ENTRIES;
        let of_block = first..first + part.len() / columns;
        for (row, &index) in gradient.chunks_exact(columns).zip(indices) {
            if of_block.contains(&index) && Some(index) != padding {
                let start = (index - first) * columns;
                add(row, &mut part[start..start + columns]);
            }
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_indices_add_up_and_padding_gets_nothing() {
        let table = [0.0, 1.0, 10.0, 11.0, 20.0, 21.0];
        let indices = [2, 0, 2, 1];
        assert_eq!(
            forward(&table, 2, &indices),
            [20.0, 21.0, 0.0, 1.0, 20.0, 21.0, 10.0, 11.0]
        );
        let gradient = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(
            backward(&gradient, 3, 2, &indices, None),
            [3.0, 4.0, 7.0, 8.0, 6.0, 8.0]
        );
        assert_eq!(
            backward(&gradient, 3, 2, &indices, Some(1)),
            [3.0, 4.0, 0.0, 0.0, 6.0, 8.0]
        );
        assert!(backward(&[], 3, 0, &[], None).is_empty());
    }

    #[test]
    fn every_block_of_a_table_gets_its_gradients() {
        let (entries, columns) = (2 * ENTRIES + 3, 5);
        let indices: Vec<usize> = (0..700).map(|at| at * 37 % entries).collect();
        let gradient: Vec<f32> = (0..indices.len() * columns).map(|at| at as f32).collect();
        let mut expected = vec![0.0; entries * columns];
        for (at, index) in indices.iter().enumerate() {
            for column in 0..columns {
                expected[index * columns + column] += gradient[at * columns + column];
            }
        }
        let found = backward(&gradient, entries, columns, &indices, None);
        assert_eq!(found, expected);
    }
}
