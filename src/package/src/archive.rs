//! A folder as one file: a tar archive, compressed with zstd. The same folder always becomes the same bytes: entries are
//! sorted, nobody owns them, and their time is 0. The archive is cut into pieces that are compressed on all cores, each a
//! zstd frame with a checksum; `tar --zstd -xf` reads it, too.
//!
//! Format: POSIX.1-1988 `ustar`; Zstandard, RFC 8878 (frames may follow each other).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

const BLOCK: usize = 512;
/// The two parts of a name in a header.
const NAME: usize = 100;
const PREFIX: usize = 155;
/// Where a header has what.
const MODE_AT: usize = 100;
const SIZE_AT: usize = 124;
const CHECKSUM_AT: usize = 148;
const KIND_AT: usize = 156;
const MAGIC_AT: usize = 257;
const PREFIX_AT: usize = 345;
const REGULAR: u8 = b'0';

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
    let mut pieces = Pieces::new(level, output);
    let mut packed = Packed::default();
    for name in names {
        let mut file = File::open(folder.join(&name))?;
        let size = file.metadata()?.len();
        pieces.write_all(&header(&name, size)?)?;
        let copied = io::copy(&mut file, &mut pieces)?;
        if copied != size {
            let name = name.display();
            return Err(io::Error::other(format!("{name} changes while it is read")));
        }
        let rest = (BLOCK - (size as usize % BLOCK)) % BLOCK;
        pieces.write_all(&[0; BLOCK][..rest])?;
        packed.files += 1;
        packed.bytes += size;
    }
    pieces.write_all(&[0; 2 * BLOCK])?;
    pieces.finish()?;
    Ok(packed)
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

fn header(name: &Path, size: u64) -> io::Result<[u8; BLOCK]> {
    let text = name
        .to_str()
        .ok_or_else(|| io::Error::other(format!("{} is not UTF-8", name.display())))?;
    let (prefix, last) = split(text).ok_or_else(|| {
        io::Error::other(format!("the name {text} is too long for a tar archive"))
    })?;
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, last);
    put(PREFIX_AT, prefix);
    put(MODE_AT, "0000644");
    // User, group.
    put(MODE_AT + 8, "0000000");
    put(MODE_AT + 16, "0000000");
    put(SIZE_AT, &format!("{size:011o}"));
    // The time of the last change.
    put(SIZE_AT + 12, "00000000000");
    put(MAGIC_AT, "ustar\x0000");
    header[KIND_AT] = REGULAR;
    let sum = checksum(&header);
    header[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// The name in two parts that a header has room for, cut at a `/`.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME {
        return Some(("", name));
    }
    let mut cuts = name.match_indices('/').map(|(at, _)| name.split_at(at));
    cuts.find_map(|(prefix, rest)| {
        let last = &rest[1..];
        (prefix.len() <= PREFIX && last.len() <= NAME).then_some((prefix, last))
    })
}

/// The sum of all bytes of a header, its own field counted as spaces.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    let own = CHECKSUM_AT..CHECKSUM_AT + 8;
    let value = |(at, byte): (usize, &u8)| u32::from(if own.contains(&at) { b' ' } else { *byte });
    header.iter().enumerate().map(value).sum()
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

/// Unpacks an archive into an existing folder; `progress` hears how many bytes of files were written so far. Returns
/// what was unpacked.
///
/// # Errors
/// The archive is damaged or incomplete, names a file outside of the folder, or a file cannot be written.
pub fn unpack(
    archive: &mut dyn Read,
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Packed> {
    let mut contents = zstd::stream::Decoder::new(archive)?;
    let mut unpacked = Packed::default();
    let mut made = PathBuf::new();
    loop {
        let mut header = [0; BLOCK];
        contents.read_exact(&mut header)?;
        if header == [0; BLOCK] {
            // The second of the two empty blocks, and the checksum of the last frame.
            let mut rest = Vec::new();
            contents.read_to_end(&mut rest)?;
            return match rest[..] == [0; BLOCK] {
                true => Ok(unpacked),
                false => Err(damaged()),
            };
        }
        let (name, size) = read_header(&header)?;
        let path = folder.join(name);
        if let Some(parent) = path.parent().filter(|parent| **parent != made) {
            fs::create_dir_all(parent)?;
            made = parent.to_owned();
        }
        let mut file = File::create_new(&path)?;
        let copied = io::copy(&mut (&mut contents).take(size), &mut file)?;
        if copied != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let rest = (BLOCK - (size as usize % BLOCK)) % BLOCK;
        contents.read_exact(&mut [0; BLOCK][..rest])?;
        unpacked.files += 1;
        unpacked.bytes += size;
        progress(unpacked.bytes);
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the archive is damaged")
}

fn read_header(header: &[u8; BLOCK]) -> io::Result<(PathBuf, u64)> {
    let text = |at: usize, length: usize| {
        let field = &header[at..at + length];
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
        std::str::from_utf8(&field[..end]).map_err(|_| damaged())
    };
    let number = |at: usize, length: usize| {
        u64::from_str_radix(text(at, length)?.trim(), 8).map_err(|_| damaged())
    };
    let is_whole = number(CHECKSUM_AT, 8)? == u64::from(checksum(header));
    if !is_whole || header[KIND_AT] != REGULAR {
        return Err(damaged());
    }
    let name = Path::new(text(PREFIX_AT, PREFIX)?).join(text(0, NAME)?);
    let mut parts = name.components();
    if name.as_os_str().is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(damaged());
    }
    Ok((name, number(SIZE_AT, 12)?))
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
        let unpacked = unpack(&mut &archive[..], to.path(), &mut |bytes| heard = bytes);
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
            unpack(&mut &good[..cut], to.path(), &mut |_| ()).expect_err("is cut");
        }
        for at in (0..good.len()).step_by(5) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let to = tempfile::tempdir().expect("a folder");
            unpack(&mut &bad[..], to.path(), &mut |_| ()).expect_err("has another checksum");
        }
    }

    #[test]
    fn names_outside_of_the_folder_are_refused() {
        for name in ["../x", "/etc/x", "a/../../x", "./x"] {
            let header = header(Path::new(name), 0).expect("fits");
            read_header(&header).expect_err(name);
        }
        let inside = header(Path::new("a/x"), 5).expect("fits");
        assert_eq!(read_header(&inside).expect("is good"), ("a/x".into(), 5));
    }
}
