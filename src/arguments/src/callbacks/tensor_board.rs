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

use super::{Callback, Flow, LogFile};
use stratoscope_report::history::{EpochRecord, ExecutionRecord, Measured};

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

fn of_an_epoch(loss: f64, metrics: &[Measured]) -> Vec<(String, f64)> {
    let metrics = metrics.iter();
    let metrics = metrics.filter_map(|it| Some((format!("epoch_{}", it.name), it.value?)));
    let loss = ("epoch_loss".to_owned(), loss);
    [loss].into_iter().chain(metrics).collect()
}

impl Callback for TensorBoard {
    fn listens_to_batches(&self) -> bool {
        true
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        let mut values = vec![
            ("batch_loss".to_owned(), execution.loss),
            ("batch_learning_rate".to_owned(), execution.learning_rate),
        ];
        let norm = execution.gradient_norm;
        values.extend(norm.map(|norm| ("batch_gradient_norm".to_owned(), norm)));
        scalars(&mut self.train, execution.step, &values);
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        let mut values = of_an_epoch(epoch.loss, &epoch.metrics);
        values.push(("epoch_learning_rate".to_owned(), epoch.learning_rate));
        scalars(&mut self.train, epoch.epoch, &values);
        if let Some(validation) = &epoch.validation {
            let values = of_an_epoch(validation.loss, &validation.metrics);
            scalars(&mut self.validation, epoch.epoch, &values);
        }
        Flow::Continue
    }
}

/// A message of Protocol Buffers, as it is built.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
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
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4), bit by bit: records are short.
fn crc32c(data: &[u8]) -> u32 {
    let crc = data.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            let polynomial = if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            crc >> 1 ^ polynomial
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3720, B.4.
    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn messages_have_the_bytes_of_protocol_buffers() {
        let mut message = Message::default();
        message.integer(2, 300);
        message.bytes(3, b"ab");
        message.float(2, 1.0);
        let expected = [
            0x10, 0xac, 0x02, 0x1a, 2, b'a', b'b', 0x15, 0, 0, 0x80, 0x3f,
        ];
        assert_eq!(message.0, expected);
    }
}
