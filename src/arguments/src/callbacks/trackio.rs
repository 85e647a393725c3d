//! A file that trackio imports: `trackio.import_csv("run.csv", project="sections")`.
//!
//! Its format is documented by that function: comma-separated values with a column `step`; every other column of numbers is a
//! metric, and an empty field is no value. trackio's own database is SQLite, which only its client writes.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{Callback, Flow, LogFile};
use crate::context::events::FitStarted;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, Measured};

/// Writes loss, rate and gradient norm of each execution, and loss and metrics of each epoch and of its validation, to a file
/// that trackio imports. The step of all of them is the optimizer step. A run begins the file anew.
#[derive(Debug)]
pub struct TrackioLogger {
    file: LogFile,
    metrics: Vec<&'static str>,
    validates: bool,
    /// The optimizer step of the latest execution.
    step: u64,
}

/// The columns of an execution, behind `step`. trackio shortens a name to ten letters, digits and `/`.
const OF_EXECUTIONS: [&str; 3] = ["batch/loss", "lr", "grad/norm"];

impl TrackioLogger {
    /// Into the file at a path, which is created or emptied now.
    ///
    /// # Errors
    /// SC0908 if it cannot be written.
    pub fn new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self {
            file: LogFile::begin("TrackioLogger", path, File::create(path))?,
            metrics: Vec::new(),
            validates: false,
            step: 0,
        })
    }

    /// The columns of an epoch.
    fn of_epochs(&self) -> Vec<String> {
        let own = ["loss"].into_iter().chain(self.metrics.iter().copied());
        let parts = ["train", "val"]
            .into_iter()
            .take(1 + usize::from(self.validates));
        let own: Vec<&str> = own.collect();
        let columns = parts.flat_map(|part| own.iter().map(move |name| format!("{part}/{name}")));
        columns.collect()
    }

    /// The values of an epoch, in the order of [`Self::of_epochs`].
    fn values(&self, epoch: &EpochRecord) -> Vec<Option<f64>> {
        let of = |loss: Option<f64>, measured: &[Measured]| -> Vec<Option<f64>> {
            let value = |name: &&str| measured.iter().find(|it| it.name == *name)?.value;
            let metrics = self.metrics.iter().map(value);
            [loss].into_iter().chain(metrics).collect()
        };
        let mut values = of(Some(epoch.loss), &epoch.metrics);
        match &epoch.validation {
            Some(validation) => values.extend(of(Some(validation.loss), &validation.metrics)),
            None if self.validates => values.extend(of(None, &[])),
            None => {}
        }
        values
    }

    fn line(&mut self, values: impl Iterator<Item = Option<f64>>) {
        let text = |it: Option<f64>| it.map_or(String::new(), |it| it.to_string());
        let values: String = values.map(|it| format!(",{}", text(it))).collect();
        let step = self.step;
        self.file.write(|file| writeln!(file, "{step}{values}"));
    }
}

impl Callback for TrackioLogger {
    fn listens_to_batches(&self) -> bool {
        true
    }

    fn on_train_begin(&mut self, run: &FitStarted) {
        self.metrics.clone_from(&run.metrics);
        self.validates = run.validation_examples > 0;
        let epochs = self.of_epochs().join(",");
        let executions = OF_EXECUTIONS.join(",");
        self.file.write(|file| {
            file.set_len(0)?;
            io::Seek::rewind(file)?;
            writeln!(file, "step,{executions},{epochs}")
        });
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        self.step = execution.step;
        let values = [
            Some(execution.loss),
            Some(execution.learning_rate),
            execution.gradient_norm,
        ];
        let missing = vec![None; self.of_epochs().len()];
        self.line(values.into_iter().chain(missing));
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        let values = self.values(epoch);
        self.line([None; OF_EXECUTIONS.len()].into_iter().chain(values));
        Flow::Continue
    }
}
