//! A file with a line for each epoch. Keras's `CSVLogger`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{Callback, Flow, LogFile};
use crate::context::events::FitStarted;
use stratoscope_report::history::{EpochRecord, Measured};

/// Writes loss, metrics, those of the validation data, rate and time of each epoch as comma-separated values, the names in
/// the first line. What was not measured is empty. A run begins the file anew, as Keras's does.
#[derive(Debug)]
pub struct CsvLogger {
    file: LogFile,
    metrics: Vec<&'static str>,
    validates: bool,
}

impl CsvLogger {
    /// Into the file at a path, which is created or emptied now.
    ///
    /// # Errors
    /// SC0908 if it cannot be written.
    pub fn new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self {
            file: LogFile::begin("CsvLogger", path, File::create(path))?,
            metrics: Vec::new(),
            validates: false,
        })
    }

    fn head(&self) -> String {
        let own = ["loss"].into_iter().chain(self.metrics.iter().copied());
        let own: Vec<&str> = own.collect();
        let validation = own.iter().filter(|_| self.validates);
        let validation: Vec<String> = validation.map(|name| format!("val_{name}")).collect();
        let mut columns = vec!["epoch"];
        columns.extend(&own);
        columns.extend(validation.iter().map(String::as_str));
        columns.extend(["learning_rate", "seconds"]);
        columns.join(",")
    }

    fn line(&self, epoch: &EpochRecord) -> String {
        let values = |loss: Option<f64>, measured: &[Measured]| -> Vec<Option<f64>> {
            let of = |name: &&str| measured.iter().find(|it| it.name == *name)?.value;
            let metrics = self.metrics.iter().map(of);
            [loss].into_iter().chain(metrics).collect()
        };
        let mut numbers = values(Some(epoch.loss), &epoch.metrics);
        if self.validates {
            let (loss, measured) = match &epoch.validation {
                Some(validation) => (Some(validation.loss), &validation.metrics[..]),
                None => (None, &[][..]),
            };
            numbers.extend(values(loss, measured));
        }
        numbers.extend([Some(epoch.learning_rate), Some(epoch.seconds)]);
        let text = |it: Option<f64>| it.map_or(String::new(), |it| it.to_string());
        let numbers = numbers.into_iter().map(|it| format!(",{}", text(it)));
        format!("{}{}", epoch.epoch, numbers.collect::<String>())
    }
}

impl Callback for CsvLogger {
    fn on_train_begin(&mut self, run: &FitStarted) {
        self.metrics.clone_from(&run.metrics);
        self.validates = run.validation_examples > 0;
        let head = self.head();
        self.file.write(|file| {
            file.set_len(0)?;
            io::Seek::rewind(file)?;
            writeln!(file, "{head}")
        });
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        let line = self.line(epoch);
        self.file.write(|file| writeln!(file, "{line}"));
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_report::history::Evaluation;

    fn epoch(number: u64, validation: Option<Evaluation>) -> EpochRecord {
        EpochRecord {
            epoch: number,
            loss: 0.5,
            metrics: vec![Measured {
                name: "accuracy",
                value: Some(0.75),
            }],
            validation,
            learning_rate: 5e-5,
            seconds: 2.0,
            sequences_per_second: 1.0,
        }
    }

    #[test]
    fn a_line_has_as_many_values_as_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut logger = CsvLogger::new(folder.path().join("log.csv")).expect("it is new");
        logger.metrics = vec!["accuracy", "auc"];
        assert_eq!(
            logger.head(),
            "epoch,loss,accuracy,auc,learning_rate,seconds"
        );
        assert_eq!(logger.line(&epoch(0, None)), "0,0.5,0.75,,0.00005,2");
        logger.validates = true;
        assert_eq!(
            logger.head(),
            "epoch,loss,accuracy,auc,val_loss,val_accuracy,val_auc,learning_rate,seconds"
        );
        // An epoch without validation, and an accuracy of it that is missing.
        assert_eq!(logger.line(&epoch(1, None)), "1,0.5,0.75,,,,,0.00005,2");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_said() {
        let problem = CsvLogger::new("/proc/none/log.csv").expect_err("no such folder");
        assert_eq!(problem.code, "SC0908");
    }
}
