//! How fast a run is, and so how long it still takes.
//!
//! The first batch does not count: on a GPU its kernels are compiled and tuned, which can take a hundred
//! times as long as a batch. The median of the latest ones is not moved by a validation or a
//! checkpoint in between.

use std::collections::VecDeque;

use crate::median::median;

/// Batches that are looked back upon.
const RECENT: usize = 32;

/// The durations of the latest batches.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    first_is_over: bool,
    recent: VecDeque<f64>,
}

impl Pace {
    /// A batch took so many seconds, with all that happened since the one before it.
    pub fn batch(&mut self, seconds: f64) {
        if !std::mem::replace(&mut self.first_is_over, true) {
            return;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(seconds);
    }

    /// The seconds that a batch takes; `None` before the second one is over.
    fn of_a_batch(&self) -> Option<f64> {
        median(self.recent.iter().copied())
    }

    /// The seconds that so many batches take.
    pub(crate) fn seconds_for(&self, batches: u64) -> Option<f64> {
        match batches {
            0 => Some(0.0),
            _ => Some(self.of_a_batch()? * batches as f64),
        }
    }

    /// Examples per second, where a batch has so many.
    pub(crate) fn speed(&self, batch_size: usize) -> Option<f64> {
        let seconds = self.of_a_batch()?;
        (seconds > 0.0).then(|| batch_size as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_batch_and_a_validation_move_nothing() {
        let mut pace = Pace::default();
        assert_eq!((pace.seconds_for(10), pace.speed(32)), (None, None));
        // Compiled for a minute and a half.
        pace.batch(94.0);
        assert_eq!(
            (pace.seconds_for(10), pace.seconds_for(0)),
            (None, Some(0.0))
        );
        pace.batch(0.5);
        assert_eq!(
            (pace.seconds_for(94), pace.speed(32)),
            (Some(47.0), Some(64.0))
        );
        pace.batch(0.25);
        assert_eq!(pace.seconds_for(8), Some(3.0));
        // Validated.
        pace.batch(30.0);
        assert_eq!(pace.seconds_for(8), Some(4.0));
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut pace = Pace::default();
        for _ in 0..=RECENT {
            pace.batch(1.0);
        }
        for _ in 0..RECENT {
            pace.batch(4.0);
        }
        assert_eq!(pace.seconds_for(1), Some(4.0));
        assert_eq!(pace.recent.len(), RECENT);
    }
}
