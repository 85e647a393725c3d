//! The file of the history: a line that names the format, then a line of JSON per cell, oldest first.
//!
//! Several kernels write it. Each change holds the lock of a file beside it, which stays when the file is replaced.
//! Reading needs no lock: lines are only appended, and a shorter file replaces the old one by renaming.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Entry;

/// The first line.
const HEADER: &str = "{\"stratoscope_history\":1}\n";

/// How long a kernel waits for another one.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// What the file may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Cells.
    pub entries: usize,
    /// Bytes of the whole file.
    pub bytes: usize,
    /// Bytes of one cell; a longer one is not kept.
    pub cell: usize,
}

impl Limits {
    /// Those of the product.
    pub const DEFAULT: Self = Self {
        entries: 10_000,
        bytes: 8 << 20,
        cell: 256 << 10,
    };
}

/// A line of the file.
#[derive(Deserialize, Serialize)]
struct Line {
    session: i64,
    line: u64,
    input: String,
}

/// The file, by its path.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: PathBuf,
    limits: Limits,
}

impl HistoryFile {
    /// The file at this path, which need not exist.
    pub fn new(path: PathBuf, limits: Limits) -> Self {
        Self { path, limits }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a session: takes its number, one more than that of any before it, and repairs the file. Returns what the
    /// user should know.
    ///
    /// # Errors
    /// The file or its folder cannot be used.
    pub fn begin(&self) -> io::Result<(i64, Option<String>)> {
        let mut lock = self.lock()?;
        let (entries, notice) = self.repair()?;
        let mut text = String::new();
        // A number that is damaged counts as none.
        let _ = (&lock).take(32).read_to_string(&mut text);
        let counted: i64 = text.trim().parse().unwrap_or(0);
        let used = entries.iter().map(|entry| entry.session).max();
        let session = counted.max(used.unwrap_or(0)).saturating_add(1).max(1);
        lock.set_len(0)?;
        io::Seek::rewind(&mut lock)?;
        writeln!(lock, "{session}")?;
        Ok((session, notice))
    }

    /// All cells, oldest first. What is no line of ours is left out.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read(&self) -> io::Result<Vec<Entry>> {
        Ok(self.content()?.map_or(Vec::new(), |it| found(&it).entries))
    }

    /// Appends a cell, or nothing: after a failure the file is as it was. Returns what the user should know.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be written.
    pub fn append(&self, session: i64, line: u64, input: &str) -> io::Result<Option<String>> {
        if input.len() > self.limits.cell {
            return Ok(None);
        }
        let _lock = self.lock()?;
        let mut notice = None;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = self.open(&mut options)?;
        if !ends_well(&file)? {
            notice = self.repair()?.1;
            file = self.open(&mut options)?;
        }
        let before = file.metadata()?.len();
        let mut text = String::new();
        if before == 0 {
            text += HEADER;
        }
        text += &json(session, line, input);
        if let Err(error) = file.write_all(text.as_bytes()) {
            let _ = file.set_len(before);
            return Err(error);
        }
        if before as usize + text.len() > self.limits.bytes {
            self.repair()?;
        }
        Ok(notice)
    }

    /// Drops the oldest cells if there are too many.
    ///
    /// # Errors
    /// The file cannot be read or replaced.
    pub fn shorten(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        self.repair().map(|_| ())
    }

    /// Removes the file and what was set aside. The counter of sessions stays.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        for path in [&self.path, &self.beside("damaged")] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets a file aside that is not ours or damaged, with what can be read of it kept, and drops the oldest cells of one
    /// that is too long. Returns the cells. The caller holds the lock.
    fn repair(&self) -> io::Result<(Vec<Entry>, Option<String>)> {
        let Some(content) = self.content()? else {
            return Ok((Vec::new(), None));
        };
        let Found {
            mut entries,
            is_damaged,
            is_torn,
        } = found(&content);
        let mut notice = None;
        if is_damaged {
            let aside = self.beside("damaged");
            fs::rename(&self.path, &aside)?;
            notice = Some(format!(
                "the history of earlier sessions was damaged: {} was set aside as {}, with {} kept",
                self.path.display(),
                aside.display(),
                stratoscope_render::text::count(entries.len(), "cell"),
            ));
        }
        let is_long = entries.len() > self.limits.entries || content.len() > self.limits.bytes;
        if is_long {
            // A quarter goes at once, so that this is seldom.
            let mut bytes = 0;
            let kept = entries.iter().rev().take(self.limits.entries * 3 / 4);
            let kept = kept
                .take_while(|entry| {
                    bytes += json(entry.session, entry.line, &entry.input).len();
                    bytes <= self.limits.bytes * 3 / 4
                })
                .count();
            entries.drain(..entries.len() - kept);
        }
        if is_damaged || is_torn || is_long {
            self.replace(&entries)?;
        }
        Ok((entries, notice))
    }

    /// Writes a new file and renames it, so that a full disk leaves the old one.
    fn replace(&self, entries: &[Entry]) -> io::Result<()> {
        let fresh = self.beside("new");
        let _ = fs::remove_file(&fresh);
        let written = || -> io::Result<()> {
            let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&fresh)?;
            let lines = entries
                .iter()
                .map(|it| json(it.session, it.line, &it.input));
            file.write_all((HEADER.to_owned() + &lines.collect::<String>()).as_bytes())?;
            fs::rename(&fresh, &self.path)
        };
        written().inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    /// The bytes of the file; `None`: there is none. Of a file that is far too long, the beginning.
    fn content(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open(OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut content = Vec::new();
        let most = 4 * self.limits.bytes as u64 + self.limits.cell as u64 * 6;
        file.take(most).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Opens a regular file of this user, which nobody else may read.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        open_private(options, &self.path)
    }

    /// Waits for the lock, which is held while the returned file is open.
    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = open_private(&mut options, &self.beside("lock"))?;
        let limit = Instant::now() + LOCK_LIMIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < limit => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another program holds its lock"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The file of the same name with this ending.
    fn beside(&self, ending: &str) -> PathBuf {
        self.path.with_extension(ending)
    }
}

/// Without following links and without waiting for a pipe.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// A file of this user that is not reached through a link: whoever may write the folder could otherwise lead the cells to
/// another file.
fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = private(options)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            // What `O_NOFOLLOW` answers.
            Some(libc::ELOOP) => io::Error::other(link_words(path)),
            _ => error,
        })?;
    check(&file)?;
    Ok(file)
}

fn link_words(path: &Path) -> String {
    let target = match fs::read_link(path) {
        Ok(target) => format!(" to {}", target.display()),
        Err(_) => String::new(),
    };
    format!(
        "it is a symbolic link{target}, and links are not followed; set STRATOSCOPE_HISTORY to the file itself"
    )
}

fn check(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    // SAFETY: a system call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.uid() != user {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn json(session: i64, line: u64, input: &str) -> String {
    let input = input.to_owned();
    // Plain fields: serialization has no way to fail.
    let line = Line {
        session,
        line,
        input,
    };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// Whether a file is empty, or begins and ends as one of ours.
fn ends_well(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut first = [0; HEADER.len()];
    let mut last = [0];
    if length == 0 {
        return Ok(true);
    }
    if length < HEADER.len() as u64 {
        return Ok(false);
    }
    file.read_exact_at(&mut first, 0)?;
    file.read_exact_at(&mut last, length - 1)?;
    Ok(first == HEADER.as_bytes() && last == *b"\n")
}

/// What is in a file.
struct Found {
    /// The cells.
    entries: Vec<Entry>,
    /// There is something that this product did not write.
    is_damaged: bool,
    /// The last line has no end: it is being written, or its kernel was killed.
    is_torn: bool,
}

fn found(content: &[u8]) -> Found {
    let lines = content.strip_prefix(HEADER.as_bytes());
    let mut found = Found {
        entries: Vec::new(),
        // A file is made before it is written.
        is_damaged: lines.is_none() && !content.is_empty(),
        is_torn: false,
    };
    for text in lines.unwrap_or_default().split_inclusive(|it| *it == b'\n') {
        if !text.ends_with(b"\n") {
            found.is_torn = true;
        } else if let Ok(line) = serde_json::from_slice::<Line>(text) {
            found.entries.push(Entry {
                session: line.session,
                line: line.line,
                input: line.input,
                output: None,
            });
        } else {
            found.is_damaged = true;
        }
    }
    found
}

#[cfg(test)]
mod tests;
