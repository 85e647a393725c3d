//! Python wheels: a zip archive with metadata and a list of all files. The same contents become the same bytes.
//!
//! <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>,
//! <https://packaging.python.org/en/latest/specifications/core-metadata/>.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

/// How much deflated files are compressed: 1 to 9.
const LEVEL: i64 = 6;

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
    /// The build tag: a number, which decides between wheels of one version, and a name.
    pub build: String,
    /// The platform tag: `manylinux_2_35_x86_64`.
    pub platform: String,
    /// The lines of the metadata after name and version, and the description after an empty line.
    pub metadata: String,
}

/// A wheel that is being written.
pub struct Wheel {
    about: About,
    path: PathBuf,
    archive: ZipWriter<BufWriter<File>>,
    record: String,
}

impl Wheel {
    /// Begins a wheel in `folder`; an older one of the same name is replaced.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(folder: &Path, about: About) -> io::Result<Self> {
        let name = format!(
            "{}-{}-{}-py3-none-{}.whl",
            about.name, about.version, about.build, about.platform
        );
        let path = folder.join(name);
        Ok(Self {
            archive: ZipWriter::new(BufWriter::new(File::create(&path)?)),
            path,
            about,
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

    /// Returns the file's hash, as a list of files has it, and its size.
    fn write(
        &mut self,
        name: &str,
        contents: &mut dyn Read,
        method: Method,
        is_program: bool,
    ) -> io::Result<(String, u64)> {
        let options = SimpleFileOptions::default()
            .system(System::Unix)
            .unix_permissions(if is_program { 0o755 } else { 0o644 })
            // 1 January 1980, the first date that the format knows.
            .last_modified_time(DateTime::default());
        self.archive.start_file(
            name,
            match method {
                Method::Stored => options.compression_method(CompressionMethod::Stored),
                Method::Deflated => options
                    .compression_method(CompressionMethod::Deflated)
                    .compression_level(Some(LEVEL)),
            },
        )?;
        let mut hashed = Hashed {
            contents,
            hash: Sha256::new(),
        };
        let size = io::copy(&mut hashed, &mut self.archive)?;
        Ok((base64(&hashed.hash.finalize()), size))
    }

    /// Writes the metadata, the list of files and the table of contents. Returns the wheel's path.
    ///
    /// # Errors
    /// The wheel cannot be written.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        let About {
            name,
            version,
            build,
            platform,
            metadata,
        } = self.about.clone();
        let folder = format!("{name}-{version}.dist-info");
        let metadata =
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}");
        self.add(&format!("{folder}/METADATA"), metadata.as_bytes())?;
        let wheel = format!(
            "Wheel-Version: 1.0\nGenerator: stratoscope\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\nBuild: {build}\n"
        );
        self.add(&format!("{folder}/WHEEL"), wheel.as_bytes())?;
        let list = format!("{folder}/RECORD");
        let _ = writeln!(self.record, "{list},,");
        let record = std::mem::take(&mut self.record);
        self.write(&list, &mut record.as_bytes(), Method::Deflated, false)?;
        self.archive.finish()?.flush()?;
        Ok(self.path)
    }
}

/// Hashes what is read.
struct Hashed<'a> {
    contents: &'a mut dyn Read,
    hash: Sha256,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.contents.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
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
            build: "7_first".to_owned(),
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
    fn files_have_their_modes_one_date_and_a_line_in_the_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::open(wheel(folder.path())).expect("opens");
        let mut archive = zip::ZipArchive::new(file).expect("is an archive");
        let mut read = |name: &str| {
            let mut file = archive.by_name(name).expect("is there");
            let date = file.last_modified().expect("has one");
            assert_eq!((date.year(), date.month(), date.day()), (1980, 1, 1));
            let (mode, mut text) = (file.unix_mode().expect("has one"), String::new());
            file.read_to_string(&mut text).expect("is text");
            (mode, text)
        };
        let module = read("sample/__init__.py");
        assert_eq!(module, (0o100_644, "ANSWER = 42\n".to_owned()));
        assert_eq!(read("sample-1.0.data/scripts/sample").0, 0o100_755);
        let (_, record) = read("sample-1.0.dist-info/RECORD");
        // By `printf 'ANSWER = 42\n' | openssl dgst -sha256 -binary | basenc --base64url`.
        let expected = "sample/__init__.py,sha256=XbAo4nI7yIz1ZX-St4TyhoNlf3RZyvfwxUKZv2y0s_w,12\n";
        assert!(record.starts_with(expected), "{record}");
        assert!(
            record.ends_with("sample-1.0.dist-info/RECORD,,\n"),
            "{record}"
        );
        assert_eq!(record.lines().count(), 5);
    }

    #[test]
    fn the_name_and_the_metadata_have_the_build_tag() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = wheel(folder.path());
        let name = path.file_name().and_then(|it| it.to_str());
        assert_eq!(name, Some("sample-1.0-7_first-py3-none-linux_x86_64.whl"));
        let mut archive =
            zip::ZipArchive::new(File::open(&path).expect("opens")).expect("is an archive");
        let mut file = archive
            .by_name("sample-1.0.dist-info/WHEEL")
            .expect("is there");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("is text");
        assert!(text.ends_with("\nBuild: 7_first\n"), "{text}");
    }

    #[test]
    fn a_name_occurs_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let about = About {
            name: "sample".to_owned(),
            version: "1.0".to_owned(),
            build: "7_first".to_owned(),
            platform: "any".to_owned(),
            metadata: String::new(),
        };
        let mut wheel = Wheel::new(folder.path(), about).expect("begins");
        wheel.add("a", b"1").expect("adds");
        wheel.add("a", b"2").expect_err("is there already");
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
