//! A file with the loss of each batch.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use stratoscope_diagnostics::Result;
use stratoscope_report::history::ExecutionRecord;

use super::{Callback, Flow, LogFile};

/// Writes epoch, batch and loss as comma-separated values, a line for each batch. Of several batches in an execution
/// (`steps_per_execution`) it writes the first one's number and their mean loss.
#[derive(Debug)]
pub struct BatchLossLogger {
    file: LogFile,
}

impl BatchLossLogger {
    /// Into the file at a path, which is created or emptied now.
    ///
    /// # Errors
    /// SC0908 if it cannot be written.
    pub fn new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = LogFile::begin("BatchLossLogger", path, File::create(path))?;
        Ok(Self { file })
    }
}

impl Callback for BatchLossLogger {
    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        let ExecutionRecord {
            epoch,
            first_batch,
            loss,
            ..
        } = execution;
        self.file
            .write(|file| writeln!(file, "{epoch},{first_batch},{loss}"));
        Flow::Continue
    }

    fn listens_to_batches(&self) -> bool {
        true
    }
}
