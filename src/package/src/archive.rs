//! A folder as one file: a tar archive, compressed with zstd. The same folder always becomes the same bytes: entries are
//! sorted, nobody owns them, and their time is 0. The archive is cut into pieces that are compressed on all cores, each a
//! zstd frame with a checksum; `tar --zstd -xf` reads it, too.
//!
//! Format: POSIX.1-1988 `ustar`, without extensions; Zstandard, RFC 8878 (frames may follow each other).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, Entry, EntryType, Header};

/// The size of a header, and the unit in which files are stored.
const BLOCK: usize = 512;

/// How much is compressed at a time on a core. More gains little: 64 MiB were 0.4 % smaller.
const PIECE: usize = 32 << 20;

/// What was packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// The number of files.
    pub files: u64,
    /// The sum of their sizes in bytes.
    pub bytes: u64,
}

/// Packs all regular files below `folder`, compressed at `level` (1 to 22), into `output`. Returns what was packed.
///
/// # Errors
/// A file cannot be read or written, or its name is too long for the format.
pub fn pack(folder: &Path, level: i32, output: &mut dyn Write) -> io::Result<Packed> {
    let mut names = Vec::new();
    list(folder, Path::new(""), &mut names)?;
    names.sort();
    let mut archive = Builder::new(Pieces::new(level, output));
    let mut packed = Packed::default();
    for name in names {
        let mut file = File::open(folder.join(&name))?;
        let size = file.metadata()?.len();
        let mut counted = Counted {
            file: &mut file,
            bytes: 0,
        };
        archive.append(&header(&name, size)?, &mut counted)?;
        if counted.bytes != size {
            let name = name.display();
            return Err(io::Error::other(format!("{name} changes while it is read")));
        }
        packed.files += 1;
        packed.bytes += size;
    }
    archive.into_inner()?.finish()?;
    Ok(packed)
}

/// Counts what is read.
struct Counted<'a> {
    file: &'a mut File,
    bytes: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.bytes += length as u64;
        Ok(length)
    }
}

/// The regular files below `folder`, by their names relative to `below`'s root.
fn list(folder: &Path, below: &Path, names: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(folder, &name, names)?;
        } else if kind.is_file() {
            names.push(name);
        } else {
            let name = name.display();
            return Err(io::Error::other(format!("{name} is not a regular file")));
        }
    }
    Ok(())
}

/// The header of a file that nobody owns and that was never changed. Its name must fit: extensions for longer names are not
/// unpacked.
fn header(name: &Path, size: u64) -> io::Result<Header> {
    if name.to_str().is_none() {
        let name = name.display();
        return Err(io::Error::other(format!("{name} is not UTF-8")));
    }
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Compresses what is written to it, piece by piece.
struct Pieces<'a> {
    level: i32,
    output: &'a mut dyn Write,
    /// All but the last one are full.
    waiting: Vec<Vec<u8>>,
    cores: usize,
}

impl<'a> Pieces<'a> {
    fn new(level: i32, output: &'a mut dyn Write) -> Self {
        Self {
            level,
            output,
            waiting: vec![Vec::new()],
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Compresses what waits, each piece on its own core, and writes it in order.
    fn compress(&mut self) -> io::Result<()> {
        let level = self.level;
        let pieces = std::mem::replace(&mut self.waiting, vec![Vec::new()]);
        let frames: Vec<io::Result<Vec<u8>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = pieces
                .iter()
                .filter(|piece| !piece.is_empty())
                .map(|piece| scope.spawn(move || frame(piece, level)))
                .collect();
            let ended = |_| Err(io::Error::other("a thread that compresses has ended"));
            let join =
                |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(ended);
            threads.into_iter().map(join).collect()
        });
        frames
            .into_iter()
            .try_for_each(|frame| self.output.write_all(&frame?))
    }

    fn finish(mut self) -> io::Result<()> {
        self.compress()?;
        self.output.flush()
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.waiting.last().is_none_or(|piece| piece.len() == PIECE) {
            if self.waiting.len() == self.cores {
                self.compress()?;
            } else {
                self.waiting.push(Vec::new());
            }
        }
        let Some(piece) = self.waiting.last_mut() else {
            return Ok(0);
        };
        let taken = bytes.len().min(PIECE - piece.len());
        piece.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One frame, which says how large its contents are and has a checksum.
fn frame(piece: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), level)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(piece.len() as u64))?;
    encoder.write_all(piece)?;
    encoder.finish()
}

/// Unpacks an archive into an existing folder. It may hold at most `limit`. `progress` gets the bytes of files that were
/// written so far. Returns what was unpacked.
///
/// # Errors
/// The archive is damaged or incomplete, holds more than `limit` or anything but files with names inside of the folder, or a
/// file cannot be written.
pub fn unpack(
    archive: &mut dyn Read,
    folder: &Path,
    limit: Packed,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Packed> {
    let mut archive = Archive::new(zstd::stream::Decoder::new(archive)?);
    let mut unpacked = Packed::default();
    let mut last_parent = PathBuf::new();
    // Raw: extensions for long names, links and sparse files are entries, which are refused.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let path = folder.join(name_of(&entry)?);
        let size = entry.size();
        unpacked.files += 1;
        unpacked.bytes = unpacked.bytes.saturating_add(size);
        if unpacked.files > limit.files || unpacked.bytes > limit.bytes {
            return Err(invalid("the archive holds more than it should"));
        }
        if let Some(parent) = path.parent().filter(|parent| **parent != last_parent) {
            fs::create_dir_all(parent)?;
            last_parent = parent.to_owned();
        }
        // A second file of the same name is refused.
        let mut file = File::create_new(&path)?;
        if io::copy(&mut entry, &mut file)? != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        progress(unpacked.bytes);
    }
    // The entries end at the first of two empty blocks, or where the archive is cut. Reading to the end of the second one
    // also compares the checksum of the last frame.
    let mut rest = Vec::new();
    let most = BLOCK as u64 + 1;
    archive.into_inner().take(most).read_to_end(&mut rest)?;
    if rest[..] != [0; BLOCK] {
        return Err(damaged());
    }
    Ok(unpacked)
}

fn damaged() -> io::Error {
    invalid("the archive is damaged")
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The name of a regular file inside of the folder.
fn name_of(entry: &Entry<'_, impl Read>) -> io::Result<PathBuf> {
    let bytes = entry.path_bytes();
    let name = Path::new(std::str::from_utf8(&bytes).map_err(|_| damaged())?);
    let is_inside = name
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_inside
        || name.as_os_str().is_empty()
        || entry.header().entry_type() != EntryType::Regular
    {
        return Err(damaged());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            fs::write(path, bytes).expect("writes");
        }
        folder
    }

    const ANY: Packed = Packed {
        files: u64::MAX,
        bytes: u64::MAX,
    };

    fn packed(folder: &Path) -> Vec<u8> {
        let mut archive = Vec::new();
        pack(folder, 3, &mut archive).expect("packs");
        archive
    }

    #[test]
    fn a_folder_is_unpacked_as_it_was() {
        let long = format!("{}/{}.rs", "folder/".repeat(16), "x".repeat(90));
        let large: Vec<u8> = (0..3 * PIECE as u32 + 7)
            .map(|it| (it >> 3) as u8)
            .collect();
        let files: [(&str, &[u8]); 5] = [
            ("b", b"bytes"),
            ("a/empty", b""),
            ("a/block", &[7; BLOCK]),
            ("large", &large),
            (&long, b"a long name"),
        ];
        let from = folder(&files);
        let archive = packed(from.path());
        assert!(archive.len() < large.len() / 4, "{} bytes", archive.len());
        let to = tempfile::tempdir().expect("a folder");
        let mut heard = 0;
        let unpacked = unpack(&mut &archive[..], to.path(), ANY, &mut |bytes| {
            heard = bytes;
        });
        let unpacked = unpacked.expect("unpacks");
        assert_eq!((unpacked.files, unpacked.bytes), (5, heard));
        for (name, bytes) in files {
            assert!(
                fs::read(to.path().join(name)).expect("is there") == bytes,
                "{name}"
            );
        }
    }

    #[test]
    fn the_same_files_are_the_same_bytes() {
        let files: [(&str, &[u8]); 3] = [("one", b"1"), ("two/a", b"2"), ("two/b", b"3")];
        let first = folder(&files);
        let mut reversed = files;
        reversed.reverse();
        let second = folder(&reversed);
        let time = std::time::SystemTime::UNIX_EPOCH;
        let open = File::options().write(true).open(second.path().join("one"));
        open.expect("opens").set_modified(time).expect("is ours");
        assert_eq!(packed(first.path()), packed(second.path()));
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let from = folder(&[("file", &[3; 4000]), ("other", b"text")]);
        let good = packed(from.path());
        for cut in [0, 1, good.len() / 2, good.len() - 1] {
            let to = tempfile::tempdir().expect("a folder");
            unpack(&mut &good[..cut], to.path(), ANY, &mut |_| ()).expect_err("is cut");
        }
        for at in (0..good.len()).step_by(5) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let to = tempfile::tempdir().expect("a folder");
            unpack(&mut &bad[..], to.path(), ANY, &mut |_| ()).expect_err("has another checksum");
        }
    }

    /// An archive with these headers, each of an empty file, as it is on a disk.
    fn with_headers(headers: &[Header]) -> Vec<u8> {
        let blocks = headers.iter().flat_map(|header| header.as_bytes().to_vec());
        let blocks: Vec<u8> = blocks.chain([0; 2 * BLOCK]).collect();
        frame(&blocks, 1).expect("compresses")
    }

    fn refused(archive: &[u8]) -> io::Error {
        let to = tempfile::tempdir().expect("a folder");
        let error = unpack(&mut &archive[..], to.path(), ANY, &mut |_| ());
        assert_eq!(fs::read_dir(to.path()).expect("reads").count(), 0);
        error.expect_err("is refused")
    }

    #[test]
    fn names_outside_of_the_folder_are_refused() {
        let named = |name: &str| {
            let mut header = header(Path::new("a"), 0).expect("fits");
            let field = &mut header.as_ustar_mut().expect("is one").name;
            field[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            header
        };
        for name in ["../x", "/etc/x", "a/../../x", "./x"] {
            let error = refused(&with_headers(&[named(name)]));
            assert_eq!(error.to_string(), "the archive is damaged", "{name}");
            // They are not packed either, but nothing below a folder has such a name.
            assert!(
                name == "./x" || header(Path::new(name), 0).is_err(),
                "{name}"
            );
        }
        let to = tempfile::tempdir().expect("a folder");
        let inside = with_headers(&[named("a/x")]);
        unpack(&mut &inside[..], to.path(), ANY, &mut |_| ()).expect("is good");
        assert!(to.path().join("a/x").is_file());
    }

    #[test]
    fn links_devices_and_extensions_are_refused() {
        for kind in *b"123456LKxgS" {
            let mut header = header(Path::new("a"), 0).expect("fits");
            header.set_entry_type(EntryType::new(kind));
            header.set_cksum();
            refused(&with_headers(&[header]));
        }
    }

    #[test]
    fn a_name_occurs_once() {
        let header = header(Path::new("a"), 0).expect("fits");
        let archive = with_headers(&[header.clone(), header]);
        let to = tempfile::tempdir().expect("a folder");
        let error = unpack(&mut &archive[..], to.path(), ANY, &mut |_| ());
        let kind = error.expect_err("is there already").kind();
        assert_eq!(kind, io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn more_than_the_limit_is_not_written() {
        let from = folder(&[("a", b"12345"), ("b", b"678")]);
        let archive = packed(from.path());
        for (files, bytes) in [(1, 100), (2, 7), (0, 0)] {
            let to = tempfile::tempdir().expect("a folder");
            let limit = Packed { files, bytes };
            let error = unpack(&mut &archive[..], to.path(), limit, &mut |_| ());
            let error = error.expect_err("it holds two files of 8 bytes");
            assert!(error.to_string().contains("more than it should"), "{error}");
            assert!(!to.path().join("b").exists());
        }
        let to = tempfile::tempdir().expect("a folder");
        let limit = Packed { files: 2, bytes: 8 };
        unpack(&mut &archive[..], to.path(), limit, &mut |_| ()).expect("is at the limit");
        // A size in a header is no reason to believe it.
        let huge = header(Path::new("a"), 8 << 30).expect("fits");
        refused_with(&with_headers(&[huge]), "more than it should");
    }

    fn refused_with(archive: &[u8], reason: &str) {
        let to = tempfile::tempdir().expect("a folder");
        let limit = Packed {
            files: 1,
            bytes: 1 << 20,
        };
        let error = unpack(&mut &archive[..], to.path(), limit, &mut |_| ());
        let error = error.expect_err("is refused").to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn bytes_behind_the_end_are_refused() {
        let header = header(Path::new("a"), 0).expect("fits");
        let whole = header.as_bytes().to_vec();
        for zeros in [0, BLOCK, 3 * BLOCK] {
            let bytes = [whole.clone(), vec![0; zeros]].concat();
            let archive = frame(&bytes, 1).expect("compresses");
            let to = tempfile::tempdir().expect("a folder");
            unpack(&mut &archive[..], to.path(), ANY, &mut |_| ()).expect_err("two blocks end it");
        }
    }
}
