//! Weights in 8 bits: a scale for each row, symmetric about 0, so that 0 stays 0. Source: ONNX's `QuantizeLinear`, and
//! Krishnamoorthi 2018, "Quantizing deep convolutional networks for efficient inference", section 3.1.2 (per channel).

/// The largest integer of a table, of which a range that is symmetric makes full use.
pub const TABLE: i8 = 127;
/// The largest integer of the weight of a product with unsigned integers of 8 bits. Processors without VNNI add pairs of such products
/// in 16 bits (x86's `VPMADDUBSW`), and 2 · 255 · 64 fits, so that no processor saturates. onnxruntime calls it `reduce_range`.
pub const WEIGHT: i8 = 64;

/// Rows of integers with the scale of each: `value ≈ scale · integer`, off by at most half a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// From −`largest` to `largest`, as many as there were values.
    pub integers: Vec<i8>,
    /// One for each row; of a row of zeros 1.
    pub scales: Vec<f32>,
}

impl Rows {
    /// Rounds rows of `width` values each, half to even, to integers of at most `largest`.
    ///
    /// # Panics
    /// If `width` is 0, or the values are not whole rows.
    pub fn of(values: &[f32], width: usize, largest: i8) -> Self {
        let largest = f32::from(largest);
        let rows = values.chunks_exact(width);
        assert!(rows.remainder().is_empty(), "rows of {width} values");
        let mut integers = Vec::with_capacity(values.len());
        let mut scales = Vec::with_capacity(rows.len());
        for row in rows {
            let farthest = (row.iter()).fold(0.0, |farthest, value| value.abs().max(farthest));
            let scale = match farthest / largest {
                0.0 => 1.0,
                scale => scale,
            };
            // A value below the smallest normal number may round beyond the range.
            let integer =
                |value: &f32| (value / scale).round_ties_even().clamp(-largest, largest) as i8;
            integers.extend(row.iter().map(integer));
            scales.push(scale);
        }
        Self { integers, scales }
    }
}

/// A matrix the other way round.
///
/// # Shapes
/// [R, C] → [C, R]
///
/// # Panics
/// If there are not `rows · columns` values.
pub fn transposed<T: Copy>(values: &[T], [rows, columns]: [usize; 2]) -> Vec<T> {
    assert_eq!(
        values.len(),
        rows * columns,
        "a matrix of {rows} × {columns}"
    );
    let column = |column: usize| (0..rows).map(move |row| values[row * columns + column]);
    (0..columns).flat_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_the_scale_of_its_largest_value() {
        let rows = Rows::of(
            &[1.27, -0.635, 0.005, 0.0, 0.0, 0.0, -254.0, 3.0, 1.0],
            3,
            TABLE,
        );
        assert_eq!(rows.integers, [127, -64, 0, 0, 0, 0, -127, 2, 0]);
        assert_eq!(rows.scales[1..], [1.0, 2.0]);
        assert!((rows.scales[0] - 0.01).abs() < 1e-8, "{rows:?}");
    }

    #[test]
    fn no_value_is_off_by_more_than_half_a_scale() {
        let values: Vec<f32> = (0..4000)
            .map(|at| ((at * 7919 % 4001) as f32 / 1000.0 - 2.0).powi(3))
            .collect();
        for width in [1, 8, 400] {
            let rows = Rows::of(&values, width, TABLE);
            for (at, (value, integer)) in values.iter().zip(&rows.integers).enumerate() {
                let scale = rows.scales[at / width];
                let off = (value - scale * f32::from(*integer)).abs();
                assert!(off <= scale * 0.5001, "{value} is off by {off}");
            }
        }
        let tiny = Rows::of(&[f32::from_bits(1), -f32::from_bits(3)], 2, WEIGHT);
        assert!(
            tiny.integers.iter().all(|it| (-64..=64).contains(it)),
            "{tiny:?}"
        );
        assert!(Rows::of(&[], 4, WEIGHT).scales.is_empty());
    }

    #[test]
    fn a_matrix_is_transposed() {
        assert_eq!(transposed(&[1, 2, 3, 4, 5, 6], [2, 3]), [1, 4, 2, 5, 3, 6]);
    }
}
