//! The files. All numbers of a row are variable-length integers (LEB128), 7 bits a byte: most ids take two.
//!
//! | bytes | what |
//! | --- | --- |
//! | 16 | `MAGIC` |
//! | 32 | the key, which is the name of the file, too |
//! | 8 | the number of rows, little-endian |
//! | … | the rows: number of tokens, tokens that were cut, ids, runs of equal segments, places of the tokens where they are wanted |
//! | 32 | SHA-256 of all before |

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use stratoscope_diagnostics::Result;
use stratoscope_render::units;

use super::folder::NEW;
use super::key::Key;
use crate::example::Example;
use crate::tokenize::{Encoding, Form, Piece, Tokenize, Tokenized};

const MAGIC: &[u8; 16] = b"stratoscope\ntok\n";
const HEADER: u64 = 16 + 32 + 8;
const CHECKSUM: u64 = 32;
/// Bytes that are read or written at once.
const BUFFER: usize = 1 << 20;

fn header(key: &Key, rows: usize) -> Vec<u8> {
    let rows = (rows as u64).to_le_bytes();
    [&MAGIC[..], &key.0, &rows].concat()
}

/// A file being written, beside the one that it will be.
pub(crate) struct Writer {
    /// The first error; what comes later is not written.
    open: io::Result<Open>,
    most: u64,
    row: Vec<u8>,
}

struct Open {
    out: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
    new: New,
}

/// A file under its temporary name, which is removed unless it is put in place.
pub(super) struct New {
    temporary: PathBuf,
    path: PathBuf,
    bytes: u64,
}

impl Writer {
    /// `made`: whether there is a folder for it. `most`: the bytes that it may take.
    pub(super) fn new(
        made: io::Result<()>,
        path: &Path,
        key: &Key,
        rows: usize,
        most: u64,
    ) -> Self {
        let mut writer = Self {
            open: made.and_then(|()| Open::new(path)),
            most,
            row: Vec::new(),
        };
        writer.write(&header(key, rows));
        writer
    }

    /// Adds some rows, in their order.
    pub(crate) fn add(&mut self, rows: &[Tokenized], form: &Form) {
        let mut buffer = std::mem::take(&mut self.row);
        for row in rows {
            buffer.clear();
            put_row(&mut buffer, row, form);
            self.write(&buffer);
        }
        self.row = buffer;
    }

    fn write(&mut self, bytes: &[u8]) {
        let Ok(open) = &mut self.open else { return };
        open.bytes += bytes.len() as u64;
        let written = match open.bytes > self.most {
            true => Err(io::Error::other(format!(
                "they take more than {}",
                units::bytes(self.most)
            ))),
            false => open.out.write_all(bytes),
        };
        match written {
            Ok(()) => open.hash.update(bytes),
            // The file goes with what is dropped here.
            Err(error) => self.open = Err(error),
        }
    }

    /// The file with its checksum, all of it with the system.
    pub(super) fn finish(self) -> io::Result<New> {
        let Open {
            mut out,
            hash,
            bytes,
            mut new,
        } = self.open?;
        out.write_all(&hash.finalize())?;
        out.flush()?;
        new.bytes = bytes + CHECKSUM;
        Ok(new)
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        // Processes that write the same tokens at the same time have a file each.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(path.file_stem().unwrap_or_default());
        name.push(format!(".{}-{count}.{NEW}", std::process::id()));
        let temporary = path.with_file_name(name);
        let mut options = File::options();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER, file),
            hash: Sha256::new(),
            bytes: 0,
            new: New {
                temporary,
                path: path.to_owned(),
                bytes: 0,
            },
        })
    }
}

impl New {
    /// Its size.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the file of that name, if there is one: nobody ever sees half a file. Returns its size.
    pub(super) fn put_in_place(self) -> io::Result<u64> {
        fs::rename(&self.temporary, &self.path)?;
        Ok(self.bytes)
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // After it was put in place there is none of that name.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// A whole file whose rows are read in their order.
pub(crate) struct Reader {
    input: io::Take<BufReader<File>>,
    vocab_size: u64,
    has_segments: bool,
}

impl Reader {
    /// Opens a file and checks it as a whole. `None` if it is not there, or not what was written for this key.
    ///
    /// # Errors
    /// What `interrupt` ends with, which is asked now and then.
    pub(super) fn open(
        path: &Path,
        key: &Key,
        rows: usize,
        tokenizer: &dyn Tokenize,
        mut interrupt: impl FnMut() -> Result<()>,
    ) -> Result<Option<Self>> {
        let Ok(mut file) = File::open(path) else {
            return Ok(None);
        };
        let Some(body) = body_of(&file) else {
            return Ok(None);
        };
        let mut hash = Sha256::new();
        let mut left = HEADER + body;
        let mut buffer = vec![0; BUFFER];
        let mut is_first = true;
        while left > 0 {
            let most = usize::try_from(left).map_or(BUFFER, |left| left.min(BUFFER));
            let part = &mut buffer[..most];
            let is_own =
                |part: &[u8]| part.get(..HEADER as usize) == Some(header(key, rows).as_slice());
            if file.read_exact(part).is_err() || is_first && !is_own(part) {
                return Ok(None);
            }
            is_first = false;
            hash.update(&*part);
            left -= most as u64;
            interrupt()?;
        }
        let mut checksum = [0; CHECKSUM as usize];
        let is_whole =
            file.read_exact(&mut checksum).is_ok() && checksum[..] == hash.finalize()[..];
        if !is_whole || file.seek(SeekFrom::Start(HEADER)).is_err() {
            return Ok(None);
        }
        // It was used now. Where that cannot be noted it is removed earlier.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(Self {
            input: BufReader::with_capacity(BUFFER, file).take(body),
            vocab_size: tokenizer.vocab_size() as u64,
            has_segments: tokenizer.has_segments(),
        }))
    }

    /// The next rows, those of some examples; `None` for numbers that no tokenizer makes of them.
    pub(crate) fn rows(&mut self, examples: &[Example], form: &Form) -> Option<Vec<Tokenized>> {
        let rows = examples.iter().map(|example| self.row(example, form));
        rows.collect()
    }

    /// Whether all was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.input.limit() == 0
    }

    fn row(&mut self, example: &Example, form: &Form) -> Option<Tokenized> {
        let length = self.number()?;
        // Each id takes a byte at least, so that no number of a file asks for more memory than the file has.
        if length > form.max_length as u64 || length > self.input.limit() {
            return None;
        }
        let length = length as usize;
        let truncated = usize::try_from(self.number()?).ok()?;
        let mut ids = Vec::with_capacity(length);
        for _ in 0..length {
            let id = self.number().filter(|id| *id < self.vocab_size)?;
            ids.push(u32::try_from(id).ok()?);
        }
        let mut type_ids = Vec::with_capacity(length);
        while type_ids.len() < length {
            let (segment, run) = (self.number()?, self.number()?);
            let left = length - type_ids.len();
            if run == 0 || run > left as u64 || segment > 0 && !self.has_segments {
                return None;
            }
            let segment = u32::from(u8::try_from(segment).ok()?);
            type_ids.resize(type_ids.len() + run as usize, segment);
        }
        let pieces = match form.with_pieces {
            true => (0..length)
                .map(|_| self.piece(example, form))
                .collect::<Option<_>>()?,
            false => Vec::new(),
        };
        let encoding = Encoding {
            ids,
            type_ids,
            truncated,
        };
        Some(Tokenized { encoding, pieces })
    }

    fn piece(&mut self, example: &Example, form: &Form) -> Option<Option<Piece>> {
        let in_pair = match self.number()? {
            0 => return Some(None),
            1 => false,
            2 => true,
            _ => return None,
        };
        let text = match in_pair {
            true => (form.pair)(example)?,
            false => &example.text,
        };
        let start = usize::try_from(self.number()?).ok()?;
        let end = start.checked_add(usize::try_from(self.number()?).ok()?)?;
        let word = u32::try_from(self.number()?).ok()?;
        (end <= text.len()).then_some(Some(Piece {
            range: start..end,
            in_pair,
            word,
        }))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let mut byte = [0];
            self.input.read_exact(&mut byte).ok()?;
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// The bytes of the rows in a file that is long enough for one.
fn body_of(file: &File) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    let body = metadata.len().checked_sub(HEADER + CHECKSUM)?;
    metadata.is_file().then_some(body)
}

fn put_row(out: &mut Vec<u8>, row: &Tokenized, form: &Form) {
    let Encoding {
        ids,
        type_ids,
        truncated,
    } = &row.encoding;
    put(out, ids.len() as u64);
    put(out, *truncated as u64);
    ids.iter().for_each(|&id| put(out, id.into()));
    for run in type_ids.chunk_by(|one, next| one == next) {
        put(out, run[0].into());
        put(out, run.len() as u64);
    }
    if !form.with_pieces {
        return;
    }
    for piece in &row.pieces {
        match piece {
            None => put(out, 0),
            Some(piece) => {
                put(out, 1 + u64::from(piece.in_pair));
                put(out, piece.range.start as u64);
                put(out, piece.range.len() as u64);
                put(out, piece.word.into());
            }
        }
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
