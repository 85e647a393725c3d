//! Runs as Weights & Biases keeps them offline, which `wandb sync` uploads.
//!
//! Formats: a folder `offline-run-DATE_TIME-ID` with a file `run-ID.wandb`. The file is a log in the format of LevelDB
//! (`doc/log_format.md` there) behind a head of seven bytes, with CRC-32 in place of a masked CRC-32C; a record is a message
//! `Record` of Protocol Buffers (`wandb_internal.proto` of wandb 0.31).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::problem;
use stratoscope_render::units::civil;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, History};

use super::log_file::{of_an_epoch, of_an_execution};
use super::protobuf::{Crc, Message};
use super::{Callback, Flow, LogFile};
use crate::context::alert::{Alert, AlertKind};
use crate::context::events::FitStarted;

/// The letters and digits of an id.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// The begin of a file: a name, a number and a version.
const HEAD: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];
/// The bytes of a block of a log, and of the head of a record in it.
const BLOCK: usize = 32_768;
const RECORD_HEAD: usize = 7;
/// The oldest program that reads these records.
const MIN_CONSUMER: &str = "0.70.0";

/// Fields of `Record`, by the kind of record.
mod field {
    pub const HISTORY: u64 = 2;
    pub const SUMMARY: u64 = 3;
    pub const RUN: u64 = 17;
    pub const EXIT: u64 = 18;
    pub const HEADER: u64 = 21;
}

/// Writes loss, rate and gradient norm of each execution, and loss and metrics of each epoch and of its validation, as an offline
/// run of Weights & Biases: `WandbLogger::new("wandb", "sections")?`, then `wandb sync wandb/offline-run-*`. The step is the
/// optimizer step; the values of an epoch belong to its last one.
#[derive(Debug)]
pub struct WandbLogger {
    folder: PathBuf,
    project: String,
    run: LogFile<Option<Run>>,
    /// The values of the latest execution, which are written with those of its epoch, if it is the last one.
    waiting: Option<(u64, Vec<(String, f64)>)>,
}

/// A run that is written.
#[derive(Debug)]
struct Run {
    file: File,
    /// The length of the file.
    written: usize,
    /// Its records.
    records: u64,
    id: String,
    begun: Duration,
    /// Whether an error has ended it.
    failed: bool,
}

impl WandbLogger {
    /// Into a folder, which is created, for a project. Each `fit!` is a run of its own.
    ///
    /// # Errors
    /// SC0103 for a project that is empty or has one of `/\\#?%:` or control characters; SC0908 if the folder cannot be made.
    pub fn new(folder: impl AsRef<Path>, project: &str) -> Result<Self> {
        let is_bad = |it: char| it.is_control() || "/\\#?%:".contains(it);
        if project.trim().is_empty() || project.contains(is_bad) {
            let expects = "a name without control characters and without `/\\#?%:`";
            let bad = problem::bad_value("WandbLogger::new", "project", project, expects);
            return Err(Box::new(bad));
        }
        let folder = folder.as_ref();
        let made = fs::create_dir_all(folder).map(|()| None);
        Ok(Self {
            folder: folder.to_owned(),
            project: project.to_owned(),
            run: LogFile::begin("WandbLogger", folder, made)?,
            waiting: None,
        })
    }

    /// Writes the values that wait.
    fn flush(&mut self) {
        if let Some((step, values)) = self.waiting.take() {
            self.run.write(|run| match run {
                Some(run) => run.log(step, values),
                None => Ok(()),
            });
        }
    }

    fn end(&mut self, code: u64) {
        self.flush();
        self.run.write(|run| match run.take() {
            Some(mut run) => run.end(code),
            None => Ok(()),
        });
    }
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// A number of eight digits to the base 36, as the ids of runs are.
fn id(mut number: u128) -> String {
    let mut id = [0; 8];
    for digit in id.iter_mut().rev() {
        *digit = DIGITS[(number % 36) as usize];
        number /= 36;
    }
    id.iter().copied().map(char::from).collect()
}

/// `20261129_205152`, in UTC.
fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}_{hour:02}{minute:02}{second:02}")
}

/// A number as JSON; W&B writes one that is not finite as a text.
fn json(value: f64) -> String {
    match value {
        value if value.is_nan() => "\"NaN\"".to_owned(),
        f64::INFINITY => "\"Infinity\"".to_owned(),
        f64::NEG_INFINITY => "\"-Infinity\"".to_owned(),
        value => value.to_string(),
    }
}

impl Run {
    fn begin(folder: &Path, project: &str, started: &FitStarted) -> io::Result<Self> {
        let begun = now();
        let mut number = begun.as_nanos() ^ u128::from(process::id()) << 32;
        let (folder, id) = loop {
            let id = id(number);
            let name = format!("offline-run-{}-{id}", date(begun.as_secs()));
            let folder = folder.join(name);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => break made.map(|()| (folder, id))?,
            }
        };
        fs::create_dir(folder.join("files"))?;
        let mut file = File::create_new(folder.join(format!("run-{id}.wandb")))?;
        file.write_all(&HEAD)?;
        let mut run = Self {
            file,
            written: HEAD.len(),
            records: 0,
            id,
            begun,
            failed: false,
        };
        let mut version = Message::default();
        let producer = concat!("stratoscope ", env!("CARGO_PKG_VERSION"));
        version.bytes(1, producer.as_bytes());
        version.bytes(2, MIN_CONSUMER.as_bytes());
        let mut header = Message::default();
        header.bytes(1, &version.0);
        run.record(field::HEADER, &header)?;
        let described = run.described(project, started);
        run.record(field::RUN, &described)?;
        Ok(run)
    }

    /// The message `RunRecord`.
    fn described(&self, project: &str, started: &FitStarted) -> Message {
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
            (
                "learning_rate",
                serde_json::Value::from(started.rates.clone()).to_string(),
            ),
            (
                "devices",
                serde_json::Value::from(started.devices.clone()).to_string(),
            ),
        ];
        let mut config = Message::default();
        for (name, value) in parameters {
            let mut item = Message::default();
            item.bytes(1, name.as_bytes());
            item.bytes(16, value.as_bytes());
            config.bytes(1, &item.0);
        }
        let mut time = Message::default();
        time.integer(1, self.begun.as_secs());
        time.integer(2, u64::from(self.begun.subsec_nanos()));
        let mut run = Message::default();
        run.bytes(1, self.id.as_bytes());
        run.bytes(3, project.as_bytes());
        run.bytes(4, &config.0);
        run.bytes(8, format!("fit-{}", started.run).as_bytes());
        run.bytes(17, &time.0);
        run
    }

    /// Writes a record with one message.
    fn record(&mut self, kind: u64, message: &Message) -> io::Result<()> {
        self.records += 1;
        let mut info = Message::default();
        info.bytes(1, self.id.as_bytes());
        let mut record = Message::default();
        record.integer(1, self.records);
        record.bytes(kind, &message.0);
        record.bytes(200, &info.0);
        let bytes = framed(self.written, &record.0);
        self.written += bytes.len();
        // One call: a reader never sees half a record but where the disk is full.
        self.file.write_all(&bytes)
    }

    fn log(&mut self, step: u64, mut values: Vec<(String, f64)>) -> io::Result<()> {
        let now = now();
        let runtime = now.saturating_sub(self.begun);
        values.push(("_timestamp".to_owned(), now.as_secs_f64()));
        values.push(("_runtime".to_owned(), runtime.as_secs_f64()));
        let items = values.into_iter().map(|(name, value)| (name, json(value)));
        let mut summary = Message::default();
        let mut history = Message::default();
        for (name, value) in items.chain([("_step".to_owned(), step.to_string())]) {
            let mut item = Message::default();
            // A name may contain dots or slashes: it is not a path of keys.
            item.bytes(2, name.as_bytes());
            item.bytes(16, value.as_bytes());
            summary.bytes(1, &item.0);
            history.bytes(1, &item.0);
        }
        let mut number = Message::default();
        number.integer(1, step);
        history.bytes(2, &number.0);
        self.record(field::SUMMARY, &summary)?;
        self.record(field::HISTORY, &history)
    }

    fn end(&mut self, code: u64) -> io::Result<()> {
        let mut exit = Message::default();
        exit.integer(1, if self.failed { 1 } else { code });
        exit.integer(2, now().saturating_sub(self.begun).as_secs());
        self.record(field::EXIT, &exit)
    }
}

/// A record of a log that has `written` bytes: whole, or in parts that end with the blocks.
fn framed(written: usize, mut data: &[u8]) -> Vec<u8> {
    /// How a part of a record is marked: the only one, the first, one between, the last.
    const MARKS: [[u8; 2]; 2] = [[3, 4], [2, 1]];
    let mut framed = Vec::with_capacity(data.len() + RECORD_HEAD);
    let mut is_first = true;
    loop {
        let left = BLOCK - (written + framed.len()) % BLOCK;
        if left < RECORD_HEAD {
            framed.extend(std::iter::repeat_n(0, left));
            continue;
        }
        let length = data.len().min(left - RECORD_HEAD);
        let (part, rest) = data.split_at(length);
        let mark = MARKS[usize::from(is_first)][usize::from(rest.is_empty())];
        framed.extend(Crc::ZLIB.of(&[&[mark], part]).to_le_bytes());
        framed.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
        framed.push(mark);
        framed.extend(part);
        if rest.is_empty() {
            return framed;
        }
        (data, is_first) = (rest, false);
    }
}

impl Callback for WandbLogger {
    fn listens_to_batches(&self) -> bool {
        true
    }

    fn on_train_begin(&mut self, started: &FitStarted) {
        let (folder, project) = (&self.folder, &self.project);
        self.run.write(|run| {
            *run = Some(Run::begin(folder, project, started)?);
            Ok(())
        });
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        self.flush();
        let values = of_an_execution(execution, ["batch/loss", "learning_rate", "gradient_norm"]);
        self.waiting = Some((execution.step, values));
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        if let Some((_, values)) = &mut self.waiting {
            values.push(("epoch".to_owned(), epoch.epoch as f64 + 1.0));
            values.extend(of_an_epoch("train/", epoch.loss, &epoch.metrics));
            if let Some(validation) = &epoch.validation {
                values.extend(of_an_epoch("val/", validation.loss, &validation.metrics));
            }
        }
        self.flush();
        Flow::Continue
    }

    fn on_train_end(&mut self, history: &History) {
        // The status of a program that an interrupt has ended.
        self.end(if history.interrupted { 130 } else { 0 });
    }

    fn on_alert(&mut self, alert: &Alert) {
        // A run of `start!` can go on after an error, and ends later.
        if alert.kind == AlertKind::Failed {
            self.flush();
            self.run.write(|run| {
                if let Some(run) = run {
                    run.failed = true;
                }
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a log behind its head: their marks and lengths. Checksums are checked.
    fn parts(log: &[u8]) -> Vec<(u8, usize)> {
        let mut parts = Vec::new();
        let mut at = HEAD.len();
        while at < log.len() {
            let left = BLOCK - at % BLOCK;
            if left < RECORD_HEAD {
                at += left;
                continue;
            }
            let crc = u32::from_le_bytes(log[at..at + 4].try_into().expect("four bytes"));
            let length = usize::from(u16::from_le_bytes([log[at + 4], log[at + 5]]));
            let mark = log[at + 6];
            let data = &log[at + RECORD_HEAD..at + RECORD_HEAD + length];
            assert_eq!(Crc::ZLIB.of(&[&[mark], data]), crc);
            parts.push((mark, length));
            at += RECORD_HEAD + length;
        }
        parts
    }

    #[test]
    fn a_record_that_does_not_fit_into_a_block_is_divided() {
        let mut log = HEAD.to_vec();
        for length in [100, 70_000, 0] {
            let record = framed(log.len(), &vec![7; length]);
            log.extend(record);
        }
        let first = BLOCK - HEAD.len() - (RECORD_HEAD + 100) - RECORD_HEAD;
        let between = BLOCK - RECORD_HEAD;
        let expected = [
            (1, 100),
            (2, first),
            (3, between),
            (4, 70_000 - first - between),
            (1, 0),
        ];
        assert_eq!(parts(&log), expected);
    }

    #[test]
    fn the_end_of_a_block_without_room_for_a_head_is_filled() {
        let written = BLOCK - 3;
        let record = framed(written, b"ab");
        assert_eq!(record.len(), 3 + RECORD_HEAD + 2);
        assert_eq!(record[..3], [0; 3]);
    }

    #[test]
    fn ids_dates_and_numbers_are_as_wandb_writes_them() {
        assert_eq!(id(36 * 36 + 10), "0000010a");
        assert_eq!(date(1_795_985_512), "20261129_205152");
        assert_eq!(json(0.5), "0.5");
        assert_eq!(json(f64::NAN), "\"NaN\"");
        let folder = tempfile::tempdir().expect("a folder");
        let bad = |project| {
            WandbLogger::new(folder.path(), project)
                .expect_err("no name")
                .code
        };
        assert_eq!(
            (bad(" "), bad("a/b")),
            ("SC0103".to_owned(), "SC0103".to_owned())
        );
    }
}
