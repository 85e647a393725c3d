//! Event files that TensorBoard shows. Keras's `TensorBoard`, its scalars.
//!
//! Formats: a record is its length (8 bytes), a masked CRC-32C of the length, the data and a masked CRC-32C of the data, little
//! end first (TensorFlow v2.18, `core/lib/io/record_writer.h`); the data are a message `Event` (`core/util/event.proto`) of
//! Protocol Buffers with a `Summary` (`core/framework/summary.proto`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use stratoscope_diagnostics::Result;

use super::log_file::{of_an_epoch, of_an_execution};
use super::protobuf::{Crc, Message};
use super::{Callback, Flow, LogFile};
use stratoscope_report::history::{EpochRecord, ExecutionRecord};

/// Writes loss, learning rate and gradient norm of each execution, and loss and metrics of each epoch and of the validation
/// after it, into the folders `train` and `validation` of a folder: `tensorboard --logdir logs`.
#[derive(Debug)]
pub struct TensorBoard {
    train: LogFile,
    validation: LogFile,
}

impl TensorBoard {
    /// Into a folder, which is created. Each value of this type begins files of its own.
    ///
    /// # Errors
    /// SC0908 if it cannot be written.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self> {
        let open = |part: &str| {
            let folder = folder.as_ref().join(part);
            LogFile::begin("TensorBoard", &folder, begun(&folder))
        };
        Ok(Self {
            train: open("train")?,
            validation: open("validation")?,
        })
    }
}

/// A new event file in a folder.
fn begun(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let seconds = now() as u64;
    let mut number = 0;
    loop {
        let process = std::process::id();
        let name = format!("events.out.tfevents.{seconds:010}.stratoscope.{process}.{number}");
        match File::create_new(folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
            Ok(mut file) => {
                let mut event = Message::default();
                event.double(1, now());
                event.bytes(3, b"brain.Event:2");
                file.write_all(&record(&event.0))?;
                return Ok(file);
            }
        }
    }
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Writes values at a step.
fn scalars(file: &mut LogFile, step: u64, values: &[(String, f64)]) {
    if values.is_empty() {
        return;
    }
    let mut summary = Message::default();
    for (tag, value) in values {
        let mut entry = Message::default();
        entry.bytes(1, tag.as_bytes());
        entry.float(2, *value as f32);
        summary.bytes(1, &entry.0);
    }
    let mut event = Message::default();
    event.double(1, now());
    event.integer(2, step);
    event.bytes(5, &summary.0);
    // One call: a reader never sees half a record but where the disk is full.
    file.write(|file| file.write_all(&record(&event.0)));
}

impl Callback for TensorBoard {
    fn listens_to_batches(&self) -> bool {
        true
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        let values = of_an_execution(
            execution,
            ["batch_loss", "batch_learning_rate", "batch_gradient_norm"],
        );
        scalars(&mut self.train, execution.step, &values);
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        let mut values = of_an_epoch("epoch_", epoch.loss, &epoch.metrics);
        values.push(("epoch_learning_rate".to_owned(), epoch.learning_rate));
        scalars(&mut self.train, epoch.epoch, &values);
        if let Some(validation) = &epoch.validation {
            let values = of_an_epoch("epoch_", validation.loss, &validation.metrics);
            scalars(&mut self.validation, epoch.epoch, &values);
        }
        Flow::Continue
    }
}

/// A record with these data.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked(data).to_le_bytes());
    record
}

/// The CRC of a record: turned and shifted, so that a CRC of data with CRCs in it is no problem.
fn masked(data: &[u8]) -> u32 {
    Crc::CASTAGNOLI
        .of(&[data])
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}
