//! The messages of a file: each is a description, a FlatBuffer, and a body that it describes. In the stream format they follow
//! each other; in the file format a footer says where each begins, and what else stands there is not read. No length is
//! believed before the file is known to have as many bytes.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek, SeekFrom};

use arrow_ipc::{MetadataVersion, root_as_message};

use super::damaged;
use crate::source::LARGEST_FILE_BYTES;
use crate::source::columnar::{Read, too_large};

/// The beginning and the end of the file format.
const MAGIC: &[u8; 6] = b"ARROW1";
/// What the file format begins with at least: `MAGIC`, filled up.
const FILE_HEADER_BYTES: u64 = 8;
/// What follows the footer: its length and `MAGIC`.
const FILE_END_BYTES: u64 = 10;
/// Stands before the length of a description.
const CONTINUATION: u32 = u32::MAX;
/// A description is a few hundred bytes a column.
const LARGEST_DESCRIPTION: u64 = 64 << 20;

/// A file that is read message by message.
pub(super) struct Messages {
    input: BufReader<File>,
    /// The length of the file, and what of it was read.
    bytes: u64,
    position: u64,
    /// Whether it is of the file format.
    has_footer: bool,
    is_over: bool,
}

/// A message.
pub(super) struct Message {
    pub(super) description: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// What the message says.
    pub(super) fn root(&self) -> Read<arrow_ipc::Message<'_>> {
        Self::root_of(&self.description)
    }

    /// What a description says.
    pub(super) fn root_of(description: &[u8]) -> Read<arrow_ipc::Message<'_>> {
        root_as_message(description).or_else(|_| damaged())
    }
}

impl Messages {
    /// A file that is to be read from its first message on.
    pub(super) fn of(file: File) -> Read<Self> {
        let mut messages = Self::known(file)?;
        let most = FILE_HEADER_BYTES.min(messages.bytes);
        let first = messages.take(most)?;
        match first.get(..4) {
            Some(b"PAR1") => {
                return Err(
                    "it is a Parquet file: `Dataset::parquet` and `Stream::parquet` read it"
                        .to_owned(),
                );
            }
            Some(b"FEA1") => {
                return Err(
                    "it is a Feather file of version 1: read it in Python and write it again"
                        .to_owned(),
                );
            }
            _ => {}
        }
        messages.has_footer = first.starts_with(MAGIC);
        if !messages.has_footer {
            messages.input.rewind().map_err(|error| error.to_string())?;
            messages.position = 0;
        }
        Ok(messages)
    }

    /// A file that was looked through before, whose messages are read at their places.
    pub(super) fn known(mut file: File) -> Read<Self> {
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        file.rewind().map_err(|error| error.to_string())?;
        Ok(Self {
            input: BufReader::with_capacity(1 << 20, file),
            bytes: metadata.len(),
            position: 0,
            has_footer: false,
            is_over: false,
        })
    }

    /// The length of the file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes that were read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next message without its body, which is passed over; `None` behind the mark of the end, without which rows may be
    /// missing.
    pub(super) fn next_without_body(&mut self) -> Read<Option<Message>> {
        let Some((message, body)) = self.description()? else {
            return Ok(None);
        };
        if body > self.left() {
            return Err(cut_off());
        }
        let forward = i64::try_from(body).or_else(|_| damaged())?;
        let sought = self.input.seek_relative(forward);
        sought.map_err(|error| error.to_string())?;
        self.position += body;
        Ok(Some(message))
    }

    /// The message that begins at a byte.
    pub(super) fn at(&mut self, position: u64) -> Read<Message> {
        let (mut message, body) = self.description_at(position)?;
        message.body = self.take(body)?;
        Ok(message)
    }

    /// The message that begins at a byte, without its body.
    pub(super) fn at_without_body(&mut self, position: u64) -> Read<Message> {
        let (message, body) = self.description_at(position)?;
        if body > self.left() {
            return Err(cut_off());
        }
        Ok(message)
    }

    /// The footer of the file format; `None` in the stream format.
    pub(super) fn footer(&mut self) -> Read<Option<Vec<u8>>> {
        if !self.has_footer {
            return Ok(None);
        }
        let place = self.bytes.checked_sub(FILE_END_BYTES).ok_or_else(cut_off)?;
        self.seek(place)?;
        let length = u64::from(self.number()?);
        if self.take(MAGIC.len() as u64)? != MAGIC {
            return Err(cut_off());
        }
        let begin = place.checked_sub(length);
        let begin = begin.filter(|&it| it >= FILE_HEADER_BYTES && length <= LARGEST_DESCRIPTION);
        self.seek(begin.map_or_else(damaged, Ok)?)?;
        self.take(length).map(Some)
    }

    fn description_at(&mut self, position: u64) -> Read<(Message, u64)> {
        // The next message is in the buffer, which seeking would empty.
        if position != self.position {
            self.seek(position)?;
        }
        self.is_over = false;
        self.description()?.map_or_else(damaged, Ok)
    }

    fn seek(&mut self, position: u64) -> Read<()> {
        let sought = self.input.seek(SeekFrom::Start(position));
        self.position = sought.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// The description of the next message, and the bytes of its body, which follow.
    fn description(&mut self) -> Read<Option<(Message, u64)>> {
        if self.is_over {
            return Ok(None);
        }
        let is_first = self.position == 0;
        let mut length = self.number()?;
        if length == CONTINUATION {
            length = self.number()?;
        }
        if length == 0 {
            self.end()?;
            return Ok(None);
        }
        let length = u64::from(length);
        if is_first && length > self.left().min(LARGEST_DESCRIPTION) {
            return Err("it is no Arrow file".to_owned());
        }
        if length > LARGEST_DESCRIPTION {
            return damaged();
        }
        let message = Message {
            description: self.take(length)?,
            body: Vec::new(),
        };
        let root = message.root()?;
        if !matches!(root.version(), MetadataVersion::V4 | MetadataVersion::V5) {
            return Err("it is of a version of Arrow before 0.8, or no Arrow file".to_owned());
        }
        let body = u64::try_from(root.bodyLength()).or_else(|_| damaged())?;
        if body > LARGEST_FILE_BYTES {
            return Err(too_large());
        }
        Ok(Some((message, body)))
    }

    /// Nothing may stand behind the mark of the end.
    fn end(&mut self) -> Read<()> {
        self.is_over = true;
        match self.left() {
            0 => Ok(()),
            more => Err(format!("{more} bytes follow its end, which are not read")),
        }
    }

    fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.position)
    }

    fn number(&mut self) -> Read<u32> {
        let bytes = self.take(4)?;
        let bytes: [u8; 4] = bytes.try_into().or_else(|_| damaged())?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// So many bytes, which are not asked for in memory unless the file has them.
    fn take(&mut self, bytes: u64) -> Read<Vec<u8>> {
        if bytes > self.left() {
            return Err(cut_off());
        }
        let mut taken = vec![0; usize::try_from(bytes).or_else(|_| damaged())?];
        let read = self.input.read_exact(&mut taken);
        read.map_err(|error| error.to_string())?;
        self.position += bytes;
        Ok(taken)
    }
}

fn cut_off() -> String {
    "it is cut off: it ends without the mark of its end".to_owned()
}
