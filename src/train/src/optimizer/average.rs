//! The moving average of the weights (`use_ema`), Keras's meaning of it: after every step each trained
//! variable's average moves towards the variable, `average = momentum · average + (1 − momentum) ·
//! weight`; it begins as the variable after the first step. Training goes on with the variables
//! themselves. They are overwritten by their averages every `ema_overwrite_frequency` steps, and at the end
//! of `fit!`. (tf_keras 2 begins with the variables before the first step.)

use std::fmt;

use stratoscope_diagnostics::Result;

use super::{bad_text, bad_value};
use crate::args::Count;

/// As written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ema {
    pub is_used: bool,
    pub momentum: f64,
    pub overwrite_frequency: Option<Count>,
}

impl Default for Ema {
    fn default() -> Self {
        Self {
            is_used: false,
            momentum: 0.99,
            overwrite_frequency: None,
        }
    }
}

/// How the average of the weights is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Averaging {
    /// The share of the old average in the new one.
    pub momentum: f64,
    /// After how many steps the weights are overwritten by their averages; `None`: when a run ends.
    pub overwrite_frequency: Option<u64>,
}

impl Ema {
    /// Checked also where it is not used: a number out of range was not meant.
    pub(super) fn resolve(self, optimizer: &str) -> Result<Option<Averaging>> {
        let Self {
            is_used,
            momentum,
            overwrite_frequency,
        } = self;
        if !(0.0..=1.0).contains(&momentum) {
            let expects = "a number from 0 to 1";
            return Err(bad_value(optimizer, "ema_momentum", momentum, expects));
        }
        let count = |count: Count| {
            count.value().filter(|&steps| steps >= 1).ok_or_else(|| {
                let given = count.to_string();
                bad_text(
                    optimizer,
                    "ema_overwrite_frequency",
                    given,
                    "an integer ≥ 1",
                )
            })
        };
        let overwrite_frequency = overwrite_frequency.map(count).transpose()?;
        Ok(is_used.then_some(Averaging {
            momentum,
            overwrite_frequency,
        }))
    }
}

impl Averaging {
    /// The momentum of the step with this number, counted from 1: the first step's weights are the average.
    pub(super) fn momentum_at(self, time: u64) -> f32 {
        match time {
            1 => 0.0,
            _ => self.momentum as f32,
        }
    }

    /// Whether the weights are overwritten after the step with this number, counted from 1.
    pub(super) fn overwrites_at(self, time: u64) -> bool {
        let every = self.overwrite_frequency;
        every.is_some_and(|every| time.is_multiple_of(every))
    }
}

impl fmt::Display for Averaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".use_ema(true).ema_momentum({:?})", self.momentum)?;
        match self.overwrite_frequency {
            Some(every) => write!(f, ".ema_overwrite_frequency({every})"),
            None => Ok(()),
        }
    }
}
