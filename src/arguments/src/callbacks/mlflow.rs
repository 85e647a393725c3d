//! Runs in the folder `mlruns` of MLflow, which `mlflow ui` and `mlflow.search_runs()` read; newer versions, where the file
//! store is in maintenance, with `MLFLOW_ALLOW_FILE_STORE=true`, and `mlflow migrate-filestore` moves it into a database.
//!
//! The layout is that of MLflow's file store (`mlflow/store/tracking/file_store.py`): a folder for each experiment and in it one
//! for each run, each with a `meta.yaml`; a file for each metric with a line `milliseconds value step` for each value; a file
//! for each parameter and each tag.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use stratoscope_diagnostics::Result;

use super::log_file::{of_an_epoch, of_an_execution};
use super::{Callback, Flow, LogFile};
use crate::context::alert::{Alert, AlertKind};
use crate::context::events::FitStarted;
use stratoscope_diagnostics::problem;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, History};

/// Writes loss, rate and gradient norm of each execution, and loss and metrics of each epoch and of its validation, as a run of
/// MLflow: `MlflowLogger::new("mlruns", "sections")?`, then `mlflow ui` in the folder that contains `mlruns`. The values of
/// executions have the optimizer step as their step, those of epochs the number of the epoch, counted from 0.
#[derive(Debug)]
pub struct MlflowLogger {
    store: LogFile<Store>,
}

/// A run in an experiment.
#[derive(Debug)]
struct Store {
    /// The folder of the experiment.
    experiment: PathBuf,
    experiment_id: String,
    run: Option<RunFolder>,
}

#[derive(Debug)]
struct RunFolder {
    folder: PathBuf,
    id: String,
    name: String,
    begun: u128,
}

/// MLflow's numbers of what a run does.
#[derive(Clone, Copy)]
enum Status {
    Running = 1,
    Finished = 3,
    Failed = 4,
    Killed = 5,
}

impl MlflowLogger {
    /// Into the experiment of this name in a folder, which is created. Each `fit!` is a run of its own.
    ///
    /// # Errors
    /// SC0103 for a name that is empty or has control characters; SC0908 if it cannot be written.
    pub fn new(folder: impl AsRef<Path>, experiment: &str) -> Result<Self> {
        if experiment.trim().is_empty() || experiment.contains(char::is_control) {
            let expects = "a name without control characters";
            let bad = problem::bad_value("MlflowLogger::new", "experiment", experiment, expects);
            return Err(Box::new(bad));
        }
        let folder = folder.as_ref();
        let store = LogFile::begin("MlflowLogger", folder, Store::open(folder, experiment))?;
        Ok(Self { store })
    }

    /// Writes values at a step.
    fn log(&mut self, step: u64, values: Vec<(String, f64)>) {
        self.store.write(|store| match &store.run {
            Some(run) => run.log(step, &values),
            None => Ok(()),
        });
    }
}

fn milliseconds() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}

/// A text of YAML between double quotes; JSON's texts are texts of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As Python's `pathlib.Path.as_uri` writes it.
fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// The name of a metric as a file: MLflow allows letters, digits, `_`, `-`, `.`, space and `/`.
fn file_name(name: &str) -> String {
    let allowed = |it: char| it.is_ascii_alphanumeric() || "_-. ".contains(it);
    name.chars()
        .map(|it| if allowed(it) { it } else { '_' })
        .collect()
}

impl Store {
    /// The experiment of a name, a new one if there is none.
    fn open(folder: &Path, name: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        let named = format!("name: {}", quoted(name));
        let plain = format!("name: {name}");
        for entry in fs::read_dir(&folder)?.flatten() {
            let meta = fs::read_to_string(entry.path().join("meta.yaml")).unwrap_or_default();
            if meta.lines().any(|it| it == named || it == plain) {
                return Ok(Self {
                    experiment_id: entry.file_name().to_string_lossy().into_owned(),
                    experiment: entry.path(),
                    run: None,
                });
            }
        }
        // MLflow's ids of experiments are numbers of 18 digits. A folder is made once: who comes second takes the next number.
        let mut id = milliseconds() * 100_000 + u128::from(process::id() % 100_000);
        let experiment = loop {
            let experiment = folder.join(id.to_string());
            match fs::create_dir(&experiment) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => id += 1,
                made => break made.map(|()| experiment)?,
            }
        };
        let now = milliseconds();
        let meta = format!(
            "artifact_location: {}\ncreation_time: {now}\nexperiment_id: '{id}'\nlast_update_time: {now}\n\
             lifecycle_stage: active\n{named}\n",
            quoted(&uri(&experiment))
        );
        fs::write(experiment.join("meta.yaml"), meta)?;
        Ok(Self {
            experiment,
            experiment_id: id.to_string(),
            run: None,
        })
    }

    /// A run begins.
    fn begin(&mut self, started: &FitStarted) -> io::Result<()> {
        let begun = milliseconds();
        let name = format!("fit-{}", started.run);
        let mut number = 0;
        let (folder, id) = loop {
            // 32 hexadecimal digits, as those of a UUID.
            let id = format!("{begun:016x}{:08x}{number:08x}", process::id());
            let folder = self.experiment.join(&id);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => break made.map(|()| (folder, id))?,
            }
        };
        for part in ["metrics", "params", "tags", "artifacts"] {
            fs::create_dir(folder.join(part))?;
        }
        let run = RunFolder {
            folder,
            id,
            name,
            begun,
        };
        run.status(&self.experiment_id, Status::Running)?;
        let parameters = [
            ("epochs", started.epochs.to_string()),
            ("batch_size", started.batch_size.to_string()),
            ("examples", started.examples.to_string()),
            (
                "validation_examples",
                started.validation_examples.to_string(),
            ),
            (
                "optimizer_steps",
                started.planned.optimizer_steps.to_string(),
            ),
            ("learning_rate", started.rates.clone()),
            ("devices", started.devices.clone()),
        ];
        for (name, value) in parameters {
            fs::write(run.folder.join("params").join(name), value)?;
        }
        let tags = [
            ("mlflow.runName", run.name.as_str()),
            ("mlflow.source.name", "stratoscope"),
            ("mlflow.source.type", "LOCAL"),
        ];
        for (name, value) in tags {
            fs::write(run.folder.join("tags").join(name), value)?;
        }
        self.run = Some(run);
        Ok(())
    }

    fn end(&mut self, status: Status) -> io::Result<()> {
        match self.run.take() {
            Some(run) => run.status(&self.experiment_id, status),
            None => Ok(()),
        }
    }
}

impl RunFolder {
    /// Writes `meta.yaml`, whole or not at all.
    fn status(&self, experiment_id: &str, status: Status) -> io::Result<()> {
        let Self {
            folder,
            id,
            name,
            begun,
        } = self;
        let end = match status {
            Status::Running => "null".to_owned(),
            _ => milliseconds().to_string(),
        };
        let meta = format!(
            "artifact_uri: {}\nend_time: {end}\nentry_point_name: ''\nexperiment_id: '{experiment_id}'\n\
             lifecycle_stage: active\nrun_id: {id:?}\nrun_name: {}\nrun_uuid: {id:?}\nsource_name: ''\n\
             source_type: 4\nsource_version: ''\nstart_time: {begun}\nstatus: {}\ntags: []\nuser_id: ''\n",
            quoted(&uri(&folder.join("artifacts"))),
            quoted(name),
            status as u8,
        );
        let fresh = folder.join("meta.yaml.new");
        fs::write(&fresh, meta)?;
        fs::rename(fresh, folder.join("meta.yaml"))
    }

    fn log(&self, step: u64, values: &[(String, f64)]) -> io::Result<()> {
        let now = milliseconds();
        for (name, value) in values {
            let path = self.folder.join("metrics").join(file_name(name));
            let mut file = File::options().create(true).append(true).open(path)?;
            let value = match value {
                value if value.is_nan() => "nan".to_owned(),
                value => value.to_string(),
            };
            writeln!(file, "{now} {value} {step}")?;
        }
        Ok(())
    }
}

impl Callback for MlflowLogger {
    fn listens_to_batches(&self) -> bool {
        true
    }

    fn on_train_begin(&mut self, run: &FitStarted) {
        self.store.write(|store| store.begin(run));
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        let values = of_an_execution(execution, ["batch_loss", "learning_rate", "gradient_norm"]);
        self.log(execution.step, values);
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        let mut values = of_an_epoch("", epoch.loss, &epoch.metrics);
        if let Some(validation) = &epoch.validation {
            values.extend(of_an_epoch("val_", validation.loss, &validation.metrics));
        }
        self.log(epoch.epoch, values);
        Flow::Continue
    }

    fn on_train_end(&mut self, history: &History) {
        let status = match history.interrupted {
            true => Status::Killed,
            false => Status::Finished,
        };
        self.store.write(|store| store.end(status));
    }

    fn on_alert(&mut self, alert: &Alert) {
        // A run of `start!` can go on after an error; its next values are written all the same.
        if alert.kind == AlertKind::Failed {
            self.store.write(|store| match &store.run {
                Some(run) => run.status(&store.experiment_id, Status::Failed),
                None => Ok(()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_found_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Store::open(folder.path(), "a: \"b\"").expect("is made");
        let again = Store::open(folder.path(), "a: \"b\"").expect("is found");
        let other = Store::open(folder.path(), "c").expect("is made");
        assert_eq!(first.experiment, again.experiment);
        assert_ne!(first.experiment, other.experiment);
        let meta = fs::read_to_string(other.experiment.join("meta.yaml")).expect("is written");
        assert!(
            meta.contains(&format!("experiment_id: '{}'\n", other.experiment_id)),
            "{meta}"
        );
        assert!(MlflowLogger::new(folder.path(), " ").is_err_and(|it| it.code == "SC0103"));
    }

    #[test]
    fn paths_and_names_are_as_mlflow_reads_them() {
        assert_eq!(uri(Path::new("/a b/ü")), "file:///a%20b/%C3%BC");
        assert_eq!(file_name("top_3/accuracy"), "top_3_accuracy");
    }
}
