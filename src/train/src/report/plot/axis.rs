//! The range of an axis and the numbers at it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::schedule::short;

/// An axis: its ends and where it has numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<f64>,
}

/// About as many numbers stand at an axis.
const TICKS: f64 = 5.0;

impl Axis {
    /// For values that are measured. One value alone is a number of the axis, which then begins at 0.
    pub(super) fn of_values(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        if low == high {
            return Self::of_a_constant(low);
        }
        let room = 0.05 * (high - low);
        Self::between(low - room, high + room, nice_step(low, high))
    }

    /// For values that cannot be negative and whose distance from 0 counts.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        if low == high {
            return Self::of_a_constant(low);
        }
        let low = low.min(0.0);
        let room = 0.05 * (high - low);
        Self::between(low - room, high + room, nice_step(low, high))
    }

    /// For counts: whole numbers only.
    pub(super) fn of_steps(steps: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(steps);
        let (low, high) = match low == high {
            true => ((low - 1.0).max(0.0), high + 1.0),
            false => (low, high),
        };
        Self::between(low, high, nice_step(low, high).max(1.0))
    }

    fn of_a_constant(value: f64) -> Self {
        let end = if value == 0.0 { 1.0 } else { 1.4 * value };
        let (low, high) = (end.min(0.0), end.max(0.0));
        let room = 0.05 * (high - low);
        let mut ticks = vec![0.0];
        ticks.extend((value != 0.0).then_some(value));
        Self {
            low: low - room,
            high: high + room,
            ticks,
        }
    }

    fn between(low: f64, high: f64, step: f64) -> Self {
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        let ticks = (first..=last).map(|index| index as f64 * step);
        Self {
            low,
            high,
            ticks: ticks.collect(),
        }
    }

    /// A number of this axis, with as many digits as tell it from the next.
    pub(super) fn number(&self, value: f64) -> String {
        let largest = self.low.abs().max(self.high.abs());
        let step = match self.ticks.as_slice() {
            [first, second, ..] => (second - first).abs(),
            _ => largest,
        };
        if value.abs() < 1e-9 * largest {
            return "0".to_owned();
        }
        if !(1e-2..1e5).contains(&largest) {
            return short(value);
        }
        let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        // A value of its own, such as a constant, may need more digits than its distance from 0.
        match text.parse::<f64>() {
            Ok(read) if (read - value).abs() <= 1e-3 * value.abs() => text,
            _ => format!("{}", (value * 1e4).round() / 1e4),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.number(*value)
    }
}

/// The smallest and the largest value; 0 and 0 where there is none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match ends.0 <= ends.1 {
        // A constant that was computed differs from itself by rounding.
        true if ends.1 - ends.0 <= 1e-9 * ends.0.abs().max(ends.1.abs()) => (ends.1, ends.1),
        true => ends,
        false => (0.0, 0.0),
    }
}

/// 1, 2 or 5 times a power of ten, so that about [`TICKS`] of it make the width.
fn nice_step(low: f64, high: f64) -> f64 {
    let rough = (high - low) / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let close = nice.into_iter().find(|step| *step >= 0.99 * rough);
    close.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|tick| axis.number(*tick)).collect()
    }

    #[test]
    fn a_constant_has_its_value_at_the_axis() {
        for (value, expected) in [
            (5e-5, vec!["0", "5e-5"]),
            (0.001, vec!["0", "1e-3"]),
            (0.5283, vec!["0", "0.5283"]),
            (2.0, vec!["0", "2"]),
            (0.0, vec!["0"]),
        ] {
            let axis = Axis::from_zero([value; 3].into_iter());
            assert_eq!(numbers(&axis), expected);
            assert!(axis.low < value && value < axis.high, "{axis:?}");
            assert!(axis.low.abs() <= 0.1 * axis.high, "{axis:?}");
        }
    }

    #[test]
    fn numbers_differ_from_one_another() {
        for (low, high) in [
            (0.0, 5e-5),
            (0.675, 0.681),
            (0.2, 2.3),
            (1.0, 90_000.0),
            (-3.0, 12.5),
            (0.0, 3e7),
        ] {
            let axis = Axis::of_values([low, high].into_iter());
            let mut found = numbers(&axis);
            assert!((3..=8).contains(&found.len()), "{found:?}");
            found.dedup();
            assert_eq!(found.len(), axis.ticks.len(), "{found:?}");
            for (text, tick) in found.iter().zip(&axis.ticks) {
                let read: f64 = text.parse().expect("a number");
                assert!((read - tick).abs() <= 1e-3 * (high - low), "{text} {tick}");
            }
        }
        let rates = Axis::from_zero([0.0, 5e-5].into_iter());
        assert_eq!(
            numbers(&rates),
            ["0", "1e-5", "2e-5", "3e-5", "4e-5", "5e-5"]
        );
    }

    #[test]
    fn steps_are_whole_numbers() {
        for (steps, expected) in [
            (vec![1.0], vec!["0", "1", "2"]),
            (vec![1.0, 2.0, 3.0], vec!["1", "2", "3"]),
            (vec![1.0, 189.0], vec!["50", "100", "150"]),
            (vec![], vec!["0", "1"]),
        ] {
            assert_eq!(numbers(&Axis::of_steps(steps.into_iter())), expected);
        }
    }
}
