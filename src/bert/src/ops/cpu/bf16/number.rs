//! The number format, and matrices that are held in it.

use super::super::unwritten::in_blocks_of;
use super::super::vectorized::vectorized;

/// The nearest bfloat16, ties to even; beyond the largest finite number infinity. A NaN stays a NaN.
#[inline(always)]
pub(super) fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    let even = (bits >> 16) & 1;
    let nearest = (bits.wrapping_add(0x7fff + even) >> 16) as u16;
    // The upper half of a NaN could be that of an infinity, so one bit is set.
    let nan = (bits >> 16) as u16 | 0x40;
    if x.is_nan() { nan } else { nearest }
}

/// The same number as a float32.
#[inline(always)]
pub(super) fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

vectorized! {
    /// Rounds all numbers.
    fn encode(from: &[f32], into: &mut [u16]) {
        for (into, from) in into.iter_mut().zip(from) {
            *into = round(*from);
        }
    }
}

vectorized! {
    /// Widens all numbers.
    fn decode(from: &[u16], into: &mut [f32]) {
        for (into, from) in into.iter_mut().zip(from) {
            *into = widen(*from);
        }
    }
}

vectorized! {
    /// Rounds the products `a · b`.
    fn encode_products(a: &[f32], b: &[u16], into: &mut [u16]) {
        for ((into, a), b) in into.iter_mut().zip(a).zip(b) {
            *into = round(a * widen(*b));
        }
    }
}

vectorized! {
    /// `into += row` for every row of `stride` numbers, of which the first are added.
    fn add_rows(rows: &[u16], stride: usize, into: &mut [f32]) {
        for row in rows.chunks_exact(stride) {
            for (sum, value) in into.iter_mut().zip(row) {
                *sum += widen(*value);
            }
        }
    }
}

/// Rows of a block of a pass over a matrix.
pub(super) const ROWS: usize = 32;

/// A matrix of bfloat16 numbers. Each row has an even number of elements in memory; the last of an odd row is 0.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Rows {
    data: Vec<u16>,
    rows: usize,
    columns: usize,
}

impl Rows {
    /// The matrix around elements in memory, of rows of [`stride`] elements.
    pub(super) fn new(data: Vec<u16>, rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * stride(columns), "all rows are there");
        Self {
            data,
            rows,
            columns,
        }
    }

    /// Rounds a matrix [rows, columns].
    pub fn encode(from: &[f32], rows: usize, columns: usize) -> Self {
        Self::encoded(rows, columns, |row, into| {
            encode(&from[row * columns..(row + 1) * columns], into);
        })
    }

    /// Rounds the products `gradient · derivative`, element by element; `derivative` has the shape of the result.
    pub fn products(gradient: &[f32], derivative: &Self) -> Self {
        let columns = derivative.columns;
        Self::encoded(derivative.rows, columns, |row, into| {
            let gradient = &gradient[row * columns..(row + 1) * columns];
            encode_products(gradient, derivative.row(row), into);
        })
    }

    fn encoded(rows: usize, columns: usize, write: impl Fn(usize, &mut [u16]) + Sync) -> Self {
        let stride = stride(columns).max(1);
        let ([data], _) = in_blocks_of(rows * stride, ROWS * stride, |block, [part]| {
            for (index, row) in part.chunks_exact_mut(stride).enumerate() {
                write(block * ROWS + index, &mut row[..columns]);
            }
        });
        let data = if columns == 0 { Vec::new() } else { data };
        Self::new(data, rows, columns)
    }

    /// The elements as float32, [rows, columns].
    pub fn decode(&self) -> Vec<f32> {
        let block = ROWS * self.columns;
        let ([data], _) = in_blocks_of(self.rows * self.columns, block, |block, [part]| {
            for (index, into) in part.chunks_exact_mut(self.columns).enumerate() {
                decode(self.row(block * ROWS + index), into);
            }
        });
        data
    }

    /// The sum of all rows, in blocks that are added in order.
    pub fn sum(&self) -> Vec<f32> {
        use rayon::prelude::*;
        let stride = self.stride().max(1);
        let partial: Vec<Vec<f32>> = self
            .data
            .par_chunks(ROWS * stride)
            .map(|block| {
                let mut sum = vec![0.0; self.columns];
                add_rows(block, stride, &mut sum);
                sum
            })
            .collect();
        super::super::sums::in_order(partial, self.columns)
    }

    /// The elements of a row.
    pub(super) fn row(&self, row: usize) -> &[u16] {
        &self.data[row * self.stride()..][..self.columns]
    }

    /// All elements in memory.
    pub(super) fn data(&self) -> &[u16] {
        &self.data
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Elements from one row to the next.
    pub(super) fn stride(&self) -> usize {
        stride(self.columns)
    }
}

/// Elements of a row in memory.
pub(super) fn stride(columns: usize) -> usize {
    columns.next_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition: no bfloat16 is nearer, and of two that are equally near the even one is taken.
    #[test]
    fn rounds_to_the_nearest_and_ties_to_even() {
        let mut bits = 1_u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15);
            for bits in [bits, bits & 0xFFFF_8000, bits & 0x0080_FFFF] {
                let x = f32::from_bits(bits);
                let found = round(x);
                if x.is_nan() {
                    assert!(widen(found).is_nan());
                    continue;
                }
                let down = (bits >> 16) as u16;
                let distance = |it: u16| {
                    (i64::from(bits & 0x7fff_ffff) - (i64::from(it & 0x7fff) << 16)).abs()
                };
                let (below, above) = (distance(down), distance(down.wrapping_add(1)));
                let nearest = match below.cmp(&above) {
                    std::cmp::Ordering::Less => down,
                    std::cmp::Ordering::Greater => down + 1,
                    std::cmp::Ordering::Equal => down + (down & 1),
                };
                assert_eq!(found, nearest, "{x:e}");
            }
        }
    }

    #[test]
    fn special_numbers_stay() {
        for x in [0.0, -0.0, 1.0, -2.5, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(widen(round(x)).to_bits(), x.to_bits());
        }
        assert_eq!(widen(round(f32::MAX)), f32::INFINITY);
        // A NaN whose upper half alone would be an infinity.
        assert!(widen(round(f32::from_bits(0x7f80_0001))).is_nan());
        assert!(widen(round(f32::from_bits(0xffff_ffff))).is_nan());
    }

    #[test]
    fn matrices_come_back_with_even_rows() {
        for (rows, columns) in [(0, 3), (1, 1), (3, 5), (70, 8), (33, 7), (4, 0)] {
            let numbers: Vec<f32> = (0..rows * columns).map(|i| i as f32 * 0.5 - 7.0).collect();
            let matrix = Rows::encode(&numbers, rows, columns);
            let expected: Vec<f32> = numbers.iter().map(|x| widen(round(*x))).collect();
            assert_eq!(matrix.decode(), expected, "{rows} × {columns}");
            assert_eq!(matrix.data().len(), rows * stride(columns));
            let sums: Vec<f32> = (0..columns)
                .map(|column| (0..rows).map(|row| expected[row * columns + column]).sum())
                .collect();
            for (found, expected) in matrix.sum().iter().zip(&sums) {
                assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0));
            }
            let doubled = Rows::products(&vec![2.0; numbers.len()], &matrix).decode();
            let twice: Vec<f32> = expected.iter().map(|x| 2.0 * x).collect();
            assert_eq!(doubled, twice);
        }
    }
}
