//! The ends of an axis and the numbers at it.

/// About this many numbers stand at an axis.
const TICKS: f64 = 5.0;

/// Values that differ by less, relative to the larger one, are one value: a constant that was computed differs from
/// itself by rounding.
const ROUNDING: f64 = 1e-9;

/// How the values of an axis are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// From the lowest to the highest value, with some room.
    #[default]
    Values,
    /// From 0, for values whose distance from 0 counts.
    FromZero,
    /// From the lowest to the highest value, with whole numbers only: steps, epochs.
    Steps,
    /// Between two fixed ends.
    Between(f64, f64),
}

/// An axis: its ends, and the values at which it has numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<f64>,
    /// The distance of its numbers.
    step: f64,
}

impl Axis {
    /// The axis of a scale. `room` is the share of the width that is left free at each end.
    pub fn new(scale: Scale, values: impl Iterator<Item = f64>, room: f64) -> Self {
        match scale {
            Scale::Values => Self::of(values, room),
            Scale::FromZero => Self::from_zero(values, 0.05),
            Scale::Steps => Self::of_steps(values),
            Scale::Between(low, high) => Self::between(low, high, distance(low, high)),
        }
    }

    /// An axis that holds all values with some room, or ends exactly at them.
    pub fn of(values: impl Iterator<Item = f64>, room: f64) -> Self {
        let (low, high) = ends(values);
        if is_constant(low, high) {
            return Self::of_constant(high, room);
        }
        // Halves, so that the distance of the largest numbers is finite, too.
        let (middle, half) = (low / 2.0 + high / 2.0, high / 2.0 - low / 2.0);
        let reach = (half * (1.0 + room)).min(f64::MAX / 4.0);
        Self::between(middle - reach, middle + reach, distance(low, high))
    }

    /// An axis that begins at 0, or `below` it by that share of its length.
    pub fn from_zero(values: impl Iterator<Item = f64>, below: f64) -> Self {
        let (low, high) = ends(values);
        if is_constant(low, high) {
            return Self::of_constant(high, below);
        }
        let low = low.min(0.0);
        let length = (high / 2.0 - low / 2.0).min(f64::MAX / 8.0) * 2.0;
        let step = distance(low, high);
        Self::between(low - below * length, high + 0.05 * length, step)
    }

    /// An axis of counts: its numbers are whole, and it ends at the first and the last count.
    fn of_steps(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        let (low, high) = if is_constant(low, high) {
            ((low - 1.0).max(0.0), high + 1.0)
        } else {
            (low, high)
        };
        Self::between(low, high, distance(low, high).max(1.0))
    }

    /// A constant: the axis begins at 0, and the constant is a number at it.
    fn of_constant(value: f64, room: f64) -> Self {
        let end = match value.abs() {
            0.0 => 1.0,
            size if size > f64::MAX / 4.0 => value,
            _ => 1.4 * value,
        };
        let free = room * end.abs();
        let mut ticks = vec![0.0];
        ticks.extend((value != 0.0).then_some(value));
        Self {
            low: end.min(0.0) - free,
            high: end.max(0.0) + free,
            ticks,
            step: value.abs(),
        }
    }

    /// An axis with these ends and this distance of its numbers.
    fn between(low: f64, high: f64, step: f64) -> Self {
        // An end that is a number of the axis may miss it by rounding.
        let first = (low / step - ROUNDING).ceil();
        let count = ((high / step + ROUNDING).floor() - first).clamp(0.0, 20.0) as usize;
        let ticks = (0..=count).map(|index| (first + index as f64) * step);
        Self {
            low,
            high,
            ticks: ticks.collect(),
            step,
        }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        let width = self.high / 2.0 - self.low / 2.0;
        (value / 2.0 - self.low / 2.0) / width
    }

    /// A number with as many digits as tell it from its neighbors.
    pub fn number(&self, value: f64) -> String {
        let largest = self.low.abs().max(self.high.abs());
        if value.abs() < ROUNDING * largest {
            return "0".to_owned();
        }
        if !(1e-3..1e6).contains(&largest) {
            return short(value);
        }
        let digits = (-self.step.log10().floor()).clamp(0.0, 8.0) as usize;
        let text = format!("{value:.digits$}");
        // A constant may need more digits than its distance from 0.
        match text.parse::<f64>() {
            Ok(read) if (read - value).abs() <= 1e-3 * value.abs() => text,
            _ => short(value),
        }
    }
}

/// The smallest and the largest finite value; 0 and 1 if there are none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|it| it.is_finite());
    let ends = finite.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.unwrap_or((0.0, 1.0))
}

fn is_constant(low: f64, high: f64) -> bool {
    high / 2.0 - low / 2.0 <= ROUNDING * low.abs().max(high.abs())
}

/// 1, 2 or 5 times a power of ten, so that about [`TICKS`] numbers stand between the ends.
fn distance(low: f64, high: f64) -> f64 {
    let rough = (high / TICKS) - (low / TICKS);
    let power = 10_f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = nice.into_iter().find(|step| *step >= 0.99 * rough);
    step.unwrap_or(rough)
}

/// Four significant digits: `0.1235`, `1.235e-7`.
pub(super) fn short(value: f64) -> String {
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => {
            let text = format!("{value:.3e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{}e{power}", trimmed(digits))
        }
        size => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            trimmed(&format!("{value:.digits$}"))
        }
    }
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
            (0.001, vec!["0", "0.001"]),
            (0.5283, vec!["0", "0.5283"]),
            (2.0, vec!["0", "2"]),
            (0.0, vec!["0"]),
        ] {
            let axis = Axis::from_zero([value; 3].into_iter(), 0.05);
            assert_eq!(numbers(&axis), expected);
            assert!(axis.low < value && value < axis.high, "{axis:?}");
            assert!(axis.low.abs() <= 0.1 * axis.high, "{axis:?}");
        }
        let negative = Axis::of([-2.0, -2.0].into_iter(), 0.1);
        assert!(negative.low < -2.0 && negative.high > 0.0, "{negative:?}");
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
            let axis = Axis::of([low, high].into_iter(), 0.1);
            let mut found = numbers(&axis);
            assert!((3..=8).contains(&found.len()), "{found:?}");
            found.dedup();
            assert_eq!(found.len(), axis.ticks.len(), "{found:?}");
            for (text, tick) in found.iter().zip(&axis.ticks) {
                let read: f64 = text.parse().expect("a number");
                assert!((read - tick).abs() <= 1e-3 * (high - low), "{text} {tick}");
            }
        }
        let rates = Axis::from_zero([0.0, 5e-5].into_iter(), 0.05);
        assert_eq!(
            numbers(&rates),
            ["0", "1e-5", "2e-5", "3e-5", "4e-5", "5e-5"]
        );
        let shares = Axis::new(Scale::Between(0.0, 0.5), std::iter::empty(), 0.1);
        assert_eq!((shares.low, shares.high), (0.0, 0.5));
        assert_eq!(numbers(&shares), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
    }

    #[test]
    fn steps_are_whole_numbers() {
        for (steps, expected) in [
            (vec![1.0], vec!["0", "1", "2"]),
            (vec![1.0, 2.0, 3.0], vec!["1", "2", "3"]),
            (vec![1.0, 189.0], vec!["50", "100", "150"]),
            (vec![0.0, 4.0], vec!["0", "1", "2", "3", "4"]),
            (vec![], vec!["0", "1"]),
        ] {
            let axis = Axis::new(Scale::Steps, steps.into_iter(), 0.03);
            assert_eq!(numbers(&axis), expected);
        }
    }
}
