//! The messages of a file: each is a description, a FlatBuffer, and a body that it describes.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek, SeekFrom};
use std::path::Path;

use polars_arrow_format::ipc::planus::ReadAsRoot;
use polars_arrow_format::ipc::{MessageHeaderRef, MessageRef, MetadataVersion};

use super::{LARGEST_FILE_BYTES, Read, damaged, said, too_large};

/// The beginning and the end of the file format.
const MAGIC: &[u8; 6] = b"ARROW1";
/// What the file format begins with: `MAGIC`, filled up.
const BEFORE_STREAM: u64 = 8;
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
    /// Whether a header and a footer are around the stream.
    is_framed: bool,
    is_over: bool,
}

/// A message.
pub(super) struct Message {
    description: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Message {
    fn root(&self) -> Read<MessageRef<'_>> {
        let root = MessageRef::read_as_root(&self.description);
        root.or_else(|_| damaged())
    }

    /// What it is about.
    pub(super) fn header(&self) -> Read<MessageHeaderRef<'_>> {
        said(self.root()?.header())
    }
}

impl Messages {
    pub(super) fn open(path: &Path) -> Read<Self> {
        Self::of(File::open(path).map_err(|error| error.to_string())?)
    }

    /// A file that is to be read from its first message on.
    pub(super) fn of(file: File) -> Read<Self> {
        let mut messages = Self::known(file)?;
        let most = BEFORE_STREAM.min(messages.bytes);
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
                    "it is a Feather file of version 1: read it in Python and write it anew"
                        .to_owned(),
                );
            }
            _ => {}
        }
        messages.is_framed = first.starts_with(MAGIC);
        if !messages.is_framed {
            messages.input.rewind().map_err(|error| error.to_string())?;
            messages.position = 0;
        }
        Ok(messages)
    }

    /// A file that was looked through before, whose messages are read at their places.
    pub(super) fn known(file: File) -> Read<Self> {
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err(
                "it is not a file: rows of Arrow are read from one file at a time".to_owned(),
            );
        }
        Ok(Self {
            input: BufReader::with_capacity(1 << 20, file),
            bytes: metadata.len(),
            position: 0,
            is_framed: false,
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

    /// The next message; `None` behind the mark of the end, without which rows may be missing.
    pub(super) fn next(&mut self) -> Read<Option<Message>> {
        let Some((mut message, body)) = self.description()? else {
            return Ok(None);
        };
        message.body = self.take(body)?;
        Ok(Some(message))
    }

    /// The next message without its body, which is passed over.
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
        let sought = self.input.seek(SeekFrom::Start(position));
        self.position = sought.map_err(|error| error.to_string())?;
        self.is_over = false;
        self.next()?.map_or_else(damaged, Ok)
    }

    /// The description of the next message, and the bytes of its body, which follow.
    fn description(&mut self) -> Read<Option<(Message, u64)>> {
        if self.is_over {
            return Ok(None);
        }
        let is_first = self.position <= BEFORE_STREAM;
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
        if !matches!(
            root.version(),
            Ok(MetadataVersion::V4 | MetadataVersion::V5)
        ) {
            return Err("it is of a version of Arrow before 0.8, or no Arrow file".to_owned());
        }
        let body = root
            .body_length()
            .ok()
            .and_then(|it| u64::try_from(it).ok());
        let Some(body) = body else {
            return damaged();
        };
        if body > LARGEST_FILE_BYTES {
            return Err(too_large());
        }
        Ok(Some((message, body)))
    }

    /// What has to stand behind the mark of the end: nothing, or the footer.
    fn end(&mut self) -> Read<()> {
        self.is_over = true;
        if !self.is_framed {
            return match self.left() {
                0 => Ok(()),
                more => Err(format!("{more} bytes follow its end, which are not read")),
            };
        }
        let length = MAGIC.len() as u64;
        let mut end = [0; MAGIC.len()];
        let place = self.bytes.saturating_sub(length).max(self.position);
        let sought = self.input.seek(SeekFrom::Start(place));
        let is_whole = sought.is_ok() && self.input.read_exact(&mut end).is_ok() && end == *MAGIC;
        if is_whole { Ok(()) } else { Err(cut_off()) }
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
