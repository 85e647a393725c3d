//! Google's own warm-up: the linear decay counts from step 0, so the rate has lost a part of its height
//! when warm-up ends. Source: google-research/bert@eedf571 `optimization.py`, `create_optimizer`.

use std::fmt;

use super::WarmupLinear;
use super::curve::{Curve, Problem};

/// `peak · step / W` during warm-up, then `peak · (1 − step / N)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BertWarmup {
    /// The rate that both lines are drawn from; the highest rate in use is `peak · (1 − W/N)`.
    pub peak: f64,
    /// The share of all steps that warms up, from 0 to 1.
    pub warmup: f64,
}

/// The schedule of the original BERT. [`super::warmup_linear`] is Hugging Face's, which decays over the
/// N − W steps after warm-up instead of over all N.
pub fn bert_warmup(peak: f64, warmup: f64) -> BertWarmup {
    BertWarmup { peak, warmup }
}

impl BertWarmup {
    /// Steps of warm-up in a run of `total_steps`, rounded down.
    pub fn warmup_steps(&self, total_steps: u64) -> u64 {
        self.as_hugging_face().warmup_steps(total_steps)
    }

    fn as_hugging_face(&self) -> WarmupLinear {
        WarmupLinear {
            peak: self.peak,
            warmup: self.warmup,
        }
    }
}

impl Curve for BertWarmup {
    fn rate(&self, step: u64, total_steps: u64) -> f64 {
        let warmup_steps = self.warmup_steps(total_steps);
        let share = if step < warmup_steps {
            step as f64 / warmup_steps as f64
        } else {
            total_steps.saturating_sub(step) as f64 / total_steps.max(1) as f64
        };
        self.peak * share
    }

    fn named_rate(&self) -> f64 {
        self.peak
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn spans_the_run(&self) -> bool {
        true
    }

    fn rising_steps(&self, total_steps: u64) -> u64 {
        self.warmup_steps(total_steps)
    }

    fn problem(&self) -> Option<Problem> {
        self.as_hugging_face().problem()
    }
}

impl fmt::Display for BertWarmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bert_warmup({:e}, {})", self.peak, self.warmup)
    }
}
