//! A rate that stays as it is.

use std::fmt;

use super::Schedule;
use super::curve::Curve;

/// A rate that stays as it is; `AdamW::new(5e-5)` is the same.
pub fn constant(rate: f64) -> Schedule {
    Schedule::Constant(rate)
}

impl Curve for f64 {
    fn rate(&self, _step: u64, _total_steps: u64) -> f64 {
        *self
    }

    fn named_rate(&self) -> f64 {
        *self
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:e}")
    }

    fn is_constant(&self) -> bool {
        true
    }
}
