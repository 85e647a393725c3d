//! A file that a callback writes: a failure ends the log, not the run, and is said once. And the values that logs hold.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::rules::WriteFailed;
use stratoscope_diagnostics::{Diagnostic, Result, Rule, Severity};

use stratoscope_report::history::{ExecutionRecord, Measured};

use crate::context::RunContext;
use crate::context::warnings::notice;

/// The file of a log, or its folder.
#[derive(Debug)]
pub(super) struct LogFile<F = File> {
    callback: &'static str,
    path: PathBuf,
    /// `None` once it could not be written.
    file: Option<F>,
}

impl<F> LogFile<F> {
    /// A file that was opened, or could not be.
    ///
    /// # Errors
    /// SC0908 if it could not.
    pub(super) fn begin(callback: &'static str, path: &Path, file: io::Result<F>) -> Result<Self> {
        match file {
            Ok(file) => Ok(Self {
                callback,
                path: path.to_owned(),
                file: Some(file),
            }),
            Err(error) => Err(failed(path, &error).error()),
        }
    }

    /// Writes to it, if nothing has failed so far. A failure is SC0908 as a warning.
    pub(super) fn write(&mut self, work: impl FnOnce(&mut F) -> io::Result<()>) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = work(file) {
            self.file = None;
            // A callback returns no errors: where the code is denied, the error is shown, and the run goes on all the same.
            if let Err(denied) = notice(self.stopped(&error)) {
                RunContext::current().observer().notice(*denied);
            }
        }
    }

    fn stopped(&self, error: &io::Error) -> Diagnostic {
        let callback = self.callback;
        let mut warning = failed(&self.path, error).diagnostic();
        warning.severity = Severity::Warning;
        warning.why(format!(
            "`{callback}` writes nothing more to it; the run goes on"
        ))
    }
}

fn failed(path: &Path, error: &io::Error) -> WriteFailed {
    WriteFailed {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

/// The values of an execution, by these names of loss, rate and norm.
pub(super) fn of_an_execution(execution: &ExecutionRecord, names: [&str; 3]) -> Vec<(String, f64)> {
    let [loss, rate, norm] = names;
    let always = [(loss, execution.loss), (rate, execution.learning_rate)];
    let values = always.into_iter();
    let values = values.chain(execution.gradient_norm.map(|value| (norm, value)));
    values
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Loss and metrics of an epoch or of its validation. Their names follow `prefix`.
pub(super) fn of_an_epoch(prefix: &str, loss: f64, metrics: &[Measured]) -> Vec<(String, f64)> {
    let metrics = metrics.iter();
    let metrics = metrics.filter_map(|it| Some((format!("{prefix}{}", it.name), it.value?)));
    let loss = (format!("{prefix}loss"), loss);
    [loss].into_iter().chain(metrics).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::context::events::Observer;

    struct Heard(Mutex<Vec<Diagnostic>>);

    impl Observer for Heard {
        fn notice(&self, diagnostic: Diagnostic) {
            self.0.lock().expect("no panic").push(diagnostic);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_any_more_is_said_once() {
        let heard = Arc::new(Heard(Mutex::default()));
        let context = RunContext::new();
        context.observe(heard.clone());
        let _entered = context.enter();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.csv");
        let log = LogFile::begin("CsvLogger", &path, File::create(&path));
        let mut log = log.expect("it is new");
        for _ in 0..2 {
            log.write(|_| Err(io::Error::other("the disk is full")));
        }
        let heard = heard.0.lock().expect("no panic");
        assert_eq!(heard.len(), 1, "{heard:?}");
        let warning = &heard[0];
        assert_eq!(
            (warning.code.as_str(), warning.severity),
            ("SC0908", Severity::Warning)
        );
        assert!(
            warning.message.contains("the disk is full"),
            "{}",
            warning.message
        );
    }
}
