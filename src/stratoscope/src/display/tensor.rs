//! The display of a tensor: shape, type and device, statistics of its numbers, and a corner of them.

use std::fmt::Write;

use burn::tensor::{Tensor, TensorData, kind};
use stratoscope_strategy::device::name_of;
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, plain};

/// Rows and columns of the corner. Of longer dimensions the first and the last half of this number are shown.
const CORNER: usize = 6;

impl<const D: usize, K: kind::Basic> IntoBundle for Tensor<D, K> {
    fn bundle(&self) -> MimeBundle {
        describe(&self.to_data(), &name_of(&self.device()))
    }
}

impl IntoBundle for TensorData {
    fn bundle(&self) -> MimeBundle {
        plain(described(self, "TensorData", ""))
    }
}

/// A variable of a model with its name, as `variables()` returns it.
impl IntoBundle for (String, TensorData) {
    fn bundle(&self) -> MimeBundle {
        plain(described(&self.1, &self.0, ""))
    }
}

/// Not generic: compiled once, in the facade.
fn describe(data: &TensorData, device: &str) -> MimeBundle {
    plain(described(data, "Tensor", &format!(" on {device}")))
}

/// The name, the shape and the type in a line, then the numbers.
fn described(data: &TensorData, name: &str, device: &str) -> String {
    let shape: Vec<usize> = data.shape().to_vec();
    let dtype = format!("{:?}", data.dtype()).to_lowercase();
    let values: Vec<f64> = data.iter::<f64>().collect();
    let is_whole = !dtype.starts_with('f') && !dtype.starts_with("bf");
    let mut text = format!("{name} {shape:?} {dtype}{device}\n");
    if !dtype.starts_with("bool") {
        text += &statistics(&values);
    }
    let mut position = 0;
    corner(&shape, &values, &mut position, 0, is_whole, &mut text);
    text.trim_end().to_owned()
}

/// The statistics in one line. NaN values are counted and left out of the rest.
pub(crate) fn statistics(values: &[f64]) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|it| it.is_finite()).collect();
    let mut line = String::new();
    if !finite.is_empty() {
        let count = finite.len() as f64;
        let mean = finite.iter().sum::<f64>() / count;
        let variance = finite.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
        let smallest = finite.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let _ = write!(
            line,
            "min {}, mean {}, max {}, standard deviation {}",
            number(smallest),
            number(mean),
            number(largest),
            number(variance.sqrt())
        );
    }
    let undefined = values.iter().filter(|it| it.is_nan()).count();
    let infinite = values.len() - finite.len() - undefined;
    for (count, name) in [(undefined, "NaN"), (infinite, "infinite")] {
        if count > 0 {
            let comma = if line.is_empty() { "" } else { ", " };
            let _ = write!(line, "{comma}{count} {name}");
        }
    }
    if !line.is_empty() {
        line.push('\n');
    }
    line
}

/// The numbers of one dimension in brackets, with the inner dimensions inside.
fn corner(
    shape: &[usize],
    values: &[f64],
    position: &mut usize,
    depth: usize,
    is_whole: bool,
    text: &mut String,
) {
    let Some((&length, inner)) = shape.split_first() else {
        if let Some(value) = values.get(*position) {
            *text += &match is_whole {
                true => format!("{value}"),
                false => number(*value),
            };
        }
        return;
    };
    let stride: usize = inner.iter().product();
    let start = *position;
    text.push('[');
    for index in 0..length {
        if length > CORNER && index == CORNER / 2 {
            *text += if inner.is_empty() { ", …" } else { ",\n…" };
        }
        if length > CORNER && (CORNER / 2..length - CORNER / 2).contains(&index) {
            continue;
        }
        if index > 0 {
            match inner.is_empty() {
                true => *text += ", ",
                false => {
                    *text += ",\n";
                    *text += &" ".repeat(depth + 1);
                }
            }
        }
        *position = start + index * stride;
        corner(inner, values, position, depth + 1, is_whole, text);
    }
    text.push(']');
}

/// Four significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => format!("{value}"),
        0.0 => "0".to_owned(),
        size if !(1e-3..1e5).contains(&size) => format!("{value:.3e}"),
        size => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{value:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(data: TensorData) -> String {
        let bundle = describe(&data, "cpu:0");
        bundle["text/plain"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn shape_type_device_statistics_and_a_corner() {
        assert_eq!(
            text(TensorData::from([[1.0_f32, 2.0], [3.0, 4.5]])),
            "Tensor [2, 2] f32 on cpu:0\n\
             min 1, mean 2.625, max 4.5, standard deviation 1.293\n[[1, 2],\n [3, 4.5]]"
        );
        assert!(text(TensorData::from([1_i64, 2])).ends_with("[1, 2]"));
        let with_undefined = text(TensorData::from([f32::NAN, 1.0, f32::INFINITY]));
        assert!(
            with_undefined.contains("1 NaN, 1 infinite"),
            "{with_undefined}"
        );
    }

    #[test]
    fn of_many_numbers_both_ends_are_shown() {
        let data = TensorData::new((0..100).collect::<Vec<i32>>(), [10, 10]);
        let text = text(data);
        assert!(text.contains("[0, 1, 2, …, 7, 8, 9]"), "{text}");
        assert!(text.ends_with("[90, 91, 92, …, 97, 98, 99]]"), "{text}");
        assert_eq!(text.matches('…').count(), 7, "{text}");
    }
}
