//! The rate of each epoch, printed.

use super::{Callback, Flow};
use stratoscope_report::history::{EpochRecord, ExecutionRecord};
use stratoscope_report::html::rate;

/// Prints the rates of each epoch's first and last step, as a line of standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct LearningRateLogger {
    first: Option<f64>,
}

impl LearningRateLogger {
    /// Nothing logged yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is printed for an epoch.
    fn line(&self, epoch: &EpochRecord) -> String {
        let (first, last) = (
            self.first.unwrap_or(epoch.learning_rate),
            epoch.learning_rate,
        );
        let number = epoch.epoch + 1;
        match first == last {
            true => format!("epoch {number}: learning rate {}", rate(last)),
            false => format!(
                "epoch {number}: learning rate {} to {}",
                rate(first),
                rate(last)
            ),
        }
    }
}

impl Callback for LearningRateLogger {
    fn on_epoch_begin(&mut self, _epoch: u64) {
        self.first = None;
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        self.first.get_or_insert(execution.learning_rate);
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        println!("{}", self.line(epoch));
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_an_epoch() {
        let epoch = EpochRecord {
            epoch: 0,
            loss: 1.0,
            metrics: Vec::new(),
            validation: None,
            learning_rate: 5e-5,
            seconds: 1.0,
            sequences_per_second: 1.0,
        };
        let mut logger = LearningRateLogger::new();
        assert_eq!(logger.line(&epoch), "epoch 1: learning rate 5.00e-5");
        logger.first = Some(1e-5);
        assert_eq!(
            logger.line(&epoch),
            "epoch 1: learning rate 1.00e-5 to 5.00e-5"
        );
    }
}
