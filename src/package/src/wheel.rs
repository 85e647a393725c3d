//! Python wheels: a zip archive with metadata and a list of all files. The same contents become the same bytes.
//!
//! <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>,
//! <https://packaging.python.org/en/latest/specifications/core-metadata/>,
//! and PKWARE's APPNOTE 6.3.10 for the archive.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, Crc, write::DeflateEncoder};
use sha2::{Digest, Sha256};

/// The date of every file: 1 January 1980, the first that the format knows.
const DATE: u16 = (1 << 5) | 1;
/// Version 2.0 of the format, made on Unix.
const VERSION: u16 = 20;
const MADE_BY: u16 = (3 << 8) | VERSION;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// A regular file.
const REGULAR: u32 = 0o100_000;

/// How a file is put into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As it is: it is compressed already.
    Stored,
    /// Compressed.
    Deflated,
}

/// What a wheel says about itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The name of the distribution, in letters and `_`.
    pub name: String,
    /// Its version, as PEP 440 has it.
    pub version: String,
    /// The platform tag: `manylinux_2_35_x86_64`.
    pub platform: String,
    /// The lines of the metadata after name and version, and the description after an empty line.
    pub metadata: String,
}

/// A wheel that is being written.
pub struct Wheel {
    about: About,
    path: PathBuf,
    file: BufWriter<File>,
    entries: Vec<Entry>,
    record: String,
}

struct Entry {
    name: String,
    method: u16,
    crc: u32,
    compressed: u32,
    size: u32,
    mode: u32,
    offset: u32,
}

impl Wheel {
    /// Begins a wheel in `folder`; an older one of the same name is replaced.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(folder: &Path, about: About) -> io::Result<Self> {
        let name = format!(
            "{}-{}-py3-none-{}.whl",
            about.name, about.version, about.platform
        );
        let path = folder.join(name);
        Ok(Self {
            file: BufWriter::new(File::create(&path)?),
            path,
            about,
            entries: Vec::new(),
            record: String::new(),
        })
    }

    /// The folder, in the wheel, of files for one of the places of an environment: `scripts`, `data`.
    #[must_use]
    pub fn place(&self, scheme: &str) -> String {
        format!("{}-{}.data/{scheme}", self.about.name, self.about.version)
    }

    /// Adds a file with these contents.
    ///
    /// # Errors
    /// The wheel cannot be written.
    pub fn add(&mut self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.add_from(name, &mut &contents[..], Method::Deflated, false)
    }

    /// Adds a file beside the metadata: `entry_points.txt`.
    ///
    /// # Errors
    /// The wheel cannot be written.
    pub fn add_metadata(&mut self, name: &str, contents: &[u8]) -> io::Result<()> {
        let About {
            name: own, version, ..
        } = &self.about;
        self.add(&format!("{own}-{version}.dist-info/{name}"), contents)
    }

    /// Adds a file that is read to its end.
    ///
    /// # Errors
    /// It cannot be read or has 4 GiB and more, or the wheel cannot be written.
    pub fn add_from(
        &mut self,
        name: &str,
        contents: &mut dyn Read,
        method: Method,
        is_program: bool,
    ) -> io::Result<()> {
        let (hash, size) = self.write(name, contents, method, is_program)?;
        let _ = writeln!(self.record, "{name},sha256={hash},{size}");
        Ok(())
    }

    fn write(
        &mut self,
        name: &str,
        contents: &mut dyn Read,
        method: Method,
        is_program: bool,
    ) -> io::Result<(String, u32)> {
        let offset = self.file.stream_position()?;
        let mut entry = Entry {
            name: name.to_owned(),
            method: if method == Method::Stored {
                STORED
            } else {
                DEFLATED
            },
            crc: 0,
            compressed: 0,
            size: 0,
            mode: REGULAR | if is_program { 0o755 } else { 0o644 },
            offset: short(offset)?,
        };
        self.file.write_all(&entry.local_header())?;
        let begun = self.file.stream_position()?;
        let mut seen = Seen {
            contents,
            crc: Crc::new(),
            hash: Sha256::new(),
            size: 0,
        };
        match method {
            Method::Stored => {
                io::copy(&mut seen, &mut self.file)?;
            }
            Method::Deflated => {
                let mut encoder = DeflateEncoder::new(&mut self.file, Compression::new(6));
                io::copy(&mut seen, &mut encoder)?;
                encoder.finish()?;
            }
        }
        let end = self.file.stream_position()?;
        entry.crc = seen.crc.sum();
        entry.size = short(seen.size)?;
        entry.compressed = short(end - begun)?;
        let hash = base64(&seen.hash.finalize());
        let size = entry.size;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&entry.local_header())?;
        self.file.seek(SeekFrom::Start(end))?;
        self.entries.push(entry);
        Ok((hash, size))
    }

    /// Writes the metadata, the list of files and the table of contents. Returns the wheel's path.
    ///
    /// # Errors
    /// The wheel cannot be written.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        let About {
            name,
            version,
            platform,
            metadata,
        } = self.about.clone();
        let folder = format!("{name}-{version}.dist-info");
        let metadata =
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}");
        self.add(&format!("{folder}/METADATA"), metadata.as_bytes())?;
        let wheel = format!(
            "Wheel-Version: 1.0\nGenerator: stratoscope\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
        );
        self.add(&format!("{folder}/WHEEL"), wheel.as_bytes())?;
        let list = format!("{folder}/RECORD");
        let _ = writeln!(self.record, "{list},,");
        let record = std::mem::take(&mut self.record);
        self.write(&list, &mut record.as_bytes(), Method::Deflated, false)?;
        self.table()?;
        Ok(self.path)
    }

    fn table(&mut self) -> io::Result<()> {
        let begun = self.file.stream_position()?;
        for entry in &self.entries {
            self.file.write_all(&entry.central_header())?;
        }
        let length = self.file.stream_position()? - begun;
        let count = u16::try_from(self.entries.len()).map_err(io::Error::other)?;
        let mut end = Bytes::new(0x0605_4b50);
        end.u16(&[0, 0, count, count])
            .u32(&[short(length)?, short(begun)?])
            .u16(&[0]);
        self.file.write_all(&end.0)?;
        self.file.flush()
    }
}

impl Entry {
    fn local_header(&self) -> Vec<u8> {
        let mut bytes = Bytes::new(0x0403_4b50);
        bytes.u16(&[VERSION]);
        self.common(&mut bytes);
        bytes.0.extend_from_slice(self.name.as_bytes());
        bytes.0
    }

    fn central_header(&self) -> Vec<u8> {
        let mut bytes = Bytes::new(0x0201_4b50);
        bytes.u16(&[MADE_BY, VERSION]);
        self.common(&mut bytes);
        // The length of a comment, the disk, internal attributes.
        bytes.u16(&[0, 0, 0]).u32(&[self.mode << 16, self.offset]);
        bytes.0.extend_from_slice(self.name.as_bytes());
        bytes.0
    }

    /// Flags (none: all names are ASCII), method, time, date, checksum, sizes, lengths of the name and of more fields.
    fn common(&self, bytes: &mut Bytes) {
        let name = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        bytes
            .u16(&[0, self.method, 0, DATE])
            .u32(&[self.crc, self.compressed, self.size])
            .u16(&[name, 0]);
    }
}

/// Little-endian numbers, one after the other.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(signature: u32) -> Self {
        Self(signature.to_le_bytes().to_vec())
    }

    fn u16(&mut self, values: &[u16]) -> &mut Self {
        values
            .iter()
            .for_each(|it| self.0.extend_from_slice(&it.to_le_bytes()));
        self
    }

    fn u32(&mut self, values: &[u32]) -> &mut Self {
        values
            .iter()
            .for_each(|it| self.0.extend_from_slice(&it.to_le_bytes()));
        self
    }
}

/// Looks at what is read.
struct Seen<'a> {
    contents: &'a mut dyn Read,
    crc: Crc,
    hash: Sha256,
    size: u64,
}

impl Read for Seen<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.contents.read(buffer)?;
        self.crc.update(&buffer[..length]);
        self.hash.update(&buffer[..length]);
        self.size += length as u64;
        Ok(length)
    }
}

fn short(length: u64) -> io::Result<u32> {
    let problem = |_| io::Error::other("a wheel holds less than 4 GiB");
    u32::try_from(length).map_err(problem)
}

/// The alphabet for file names and URLs, without padding (RFC 4648, section 5).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let value = group
            .iter()
            .fold(0_u32, |value, byte| value << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            text.push(char::from(
                ALPHABET[(value >> (18 - 6 * digit)) as usize & 63],
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(folder: &Path) -> PathBuf {
        let about = About {
            name: "sample".to_owned(),
            version: "1.0".to_owned(),
            platform: "linux_x86_64".to_owned(),
            metadata: "Summary: a sample\n".to_owned(),
        };
        let mut wheel = Wheel::new(folder, about).expect("begins");
        wheel
            .add("sample/__init__.py", b"ANSWER = 42\n")
            .expect("adds");
        let script = format!("{}/sample", wheel.place("scripts"));
        wheel
            .add_from(&script, &mut &b"#!/bin/sh\n"[..], Method::Stored, true)
            .expect("adds");
        wheel.finish().expect("finishes")
    }

    #[test]
    fn the_same_contents_are_the_same_bytes() {
        let folders = [tempfile::tempdir(), tempfile::tempdir()].map(|it| it.expect("a folder"));
        let [one, other] = folders
            .each_ref()
            .map(|it| std::fs::read(wheel(it.path())).expect("reads"));
        assert_eq!(one, other);
        // Signatures of a file, of a row of the table, of the end.
        assert!(one.starts_with(b"PK\x03\x04"));
        assert_eq!(one.windows(4).filter(|it| *it == b"PK\x01\x02").count(), 5);
        assert_eq!(&one[one.len() - 22..][..4], b"PK\x05\x06");
        assert!(one.windows(10).any(|it| it == b"#!/bin/sh\n"), "is stored");
    }

    #[test]
    fn base64_of_rfc_4648() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }
}
