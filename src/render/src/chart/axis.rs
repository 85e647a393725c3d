//! The ends of an axis and the numbers at it.

/// About as many numbers stand at an axis.
const TICKS: f64 = 5.0;

/// An axis: its ends, and the distance of its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    step: f64,
}

impl Axis {
    /// An axis that holds all values with some room, or ends exactly at them.
    pub fn of(values: impl Iterator<Item = f64>, room: f64) -> Self {
        let finite = values.filter(|it| it.is_finite());
        let ends = finite.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        // Halves, so that the distance of the largest numbers is finite, too.
        let half = high / 2.0 - low / 2.0;
        let half = match half > 1e-12 * low.abs().max(high.abs()) {
            true => half,
            false if high == 0.0 => 0.5,
            false => high.abs() / 2.0,
        };
        let middle = low / 2.0 + high / 2.0;
        let reach = (half * (1.0 + room)).min(f64::MAX / 4.0);
        let (low, high) = (middle - reach, middle + reach);
        let rough = (high / TICKS) - (low / TICKS);
        let power = 10_f64.powf(rough.log10().floor());
        let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = nice.into_iter().find(|step| *step >= 0.99 * rough);
        Self {
            low,
            high,
            step: step.unwrap_or(rough),
        }
    }

    /// The same from 0 on, for counts.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let axis = Self::of(values.chain([0.0]), 0.0);
        Self {
            low: 0.0,
            high: axis.high * 1.05,
            ..axis
        }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        let width = self.high / 2.0 - self.low / 2.0;
        (value / 2.0 - self.low / 2.0) / width
    }

    /// The values at which there are numbers.
    pub fn ticks(&self) -> Vec<f64> {
        let first = (self.low / self.step).ceil();
        let count = ((self.high / self.step).floor() - first).clamp(0.0, 20.0) as usize;
        let tick = |index: usize| (first + index as f64) * self.step;
        (0..=count).map(tick).collect()
    }

    /// A number with as many digits as tell it from its neighbors.
    pub fn number(&self, value: f64) -> String {
        let largest = self.low.abs().max(self.high.abs());
        if value.abs() < 1e-9 * largest {
            return "0".to_owned();
        }
        if !(1e-3..1e6).contains(&largest) {
            return short(value);
        }
        let digits = (-self.step.log10().floor()).clamp(0.0, 8.0) as usize;
        format!("{value:.digits$}")
    }
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
