//! A folder of checkpoints on disk: how one is added so that it is complete or absent, whatever happens meanwhile, and
//! how the newest complete one is found.
//!
//! A checkpoint is written to a temporary folder beside the others. Its files reach the disk (`fsync`), then the
//! manifest with their sizes and checksums, then the folder; a rename makes it one of the checkpoints. A process that is
//! killed before leaves a temporary folder, which the next one removes. Nothing that exists is ever changed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use stratoscope_strategy::RunningChecksum;

use super::format::{Body, FORMAT, FileEntry, MANIFEST, Manifest, PROGRAM};

/// Temporary folders begin with this.
const UNFINISHED: &str = ".unfinished-";
/// Whoever writes to the folder has locked this file.
const LOCK: &str = ".lock";
/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest manifest that is read.
const LARGEST_MANIFEST: u64 = 4 << 20;
/// The largest file of a checkpoint.
const LARGEST_FILE: u64 = 256 << 30;
/// The most files of a checkpoint.
const MOST_FILES: usize = 32;
/// The most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// A checkpoint on disk whose manifest is sound.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub body: Body,
}

/// Why something on disk is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// A file is missing or is not what the manifest says.
    Damaged { path: PathBuf, reason: String },
    /// Another version wrote it.
    OtherVersion {
        path: PathBuf,
        format: Option<u64>,
        program: Option<String>,
    },
}

/// The exclusive right to write to a folder, until it is dropped.
pub(super) struct Lock(#[expect(dead_code, reason = "dropping it unlocks")] File);

impl Lock {
    /// Makes the folder if need be and locks it.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        private_folder(folder, true)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(folder.join(LOCK))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process writes to it"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

pub(super) fn private_folder(path: &Path, with_parents: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(with_parents).create(path)
}

/// A checkpoint that is being written. What is not [finished](Self::finish) is removed.
pub(super) struct Unfinished {
    path: PathBuf,
    is_finished: bool,
}

impl Unfinished {
    /// An empty temporary folder. Those of processes that were killed are removed: whoever has the lock is the only
    /// writer.
    pub(super) fn begin(folder: &Path, _lock: &Lock) -> io::Result<Self> {
        for path in entries(folder)? {
            if name_of(&path).starts_with(UNFINISHED) {
                fs::remove_dir_all(&path)?;
            }
        }
        let path = folder.join(format!("{UNFINISHED}{}", std::process::id()));
        private_folder(&path, false)?;
        Ok(Self {
            path,
            is_finished: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that only its owner can read.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path.join(name))?;
        file.write_all(bytes)
    }

    /// Makes it the checkpoint `name`, or one with a number behind the name if that exists.
    pub(super) fn finish(mut self, name: &str, mut body: Body) -> io::Result<PathBuf> {
        let mut files = entries(&self.path)?;
        files.sort();
        for path in files {
            let file = File::open(&path)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.sync_all()?;
            body.files.push(described(&path, file)?);
        }
        let checksum = body.checksum();
        let manifest = serde_json::to_vec_pretty(&Manifest { body, checksum })?;
        self.write(MANIFEST, &manifest)?;
        File::open(self.path.join(MANIFEST))?.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let names = std::iter::once(name.to_owned()).chain((2..).map(|at| format!("{name}.{at}")));
        let mut paths = names.map(|name| folder.join(name));
        // The folder is locked, so that no one makes it in between; a rename does not replace a folder with files.
        let path = paths.find(|path| fs::symlink_metadata(path).is_err());
        let path = path.ok_or_else(|| io::Error::other("no name is left"))?;
        fs::rename(&self.path, &path)?;
        self.is_finished = true;
        File::open(folder)?.sync_all()?;
        Ok(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails too, the next writer removes it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Size and checksum of a file, as they are read back.
fn described(path: &Path, mut file: File) -> io::Result<FileEntry> {
    let mut sum = RunningChecksum::default();
    let (mut bytes, mut portion) = (0, vec![0; 1 << 20]);
    loop {
        let read = match file.read(&mut portion) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        sum.add(&portion[..read]);
        bytes += read as u64;
    }
    Ok(FileEntry {
        name: name_of(path),
        bytes,
        checksum: sum.finished(),
    })
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().map(OsStr::to_string_lossy);
    name.map_or_else(String::new, |name| name.into_owned())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.take(MOST_ENTRIES);
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The checkpoints of a folder by age, the newest first, and what looks like one and is not. A folder that is itself a
/// checkpoint has one.
pub fn list(folder: &Path) -> io::Result<(Vec<Found>, Vec<Unusable>)> {
    let paths = match folder.join(MANIFEST).exists() {
        true => vec![folder.to_owned()],
        false => entries(folder)?,
    };
    let (mut found, mut unusable) = (Vec::new(), Vec::new());
    for path in paths {
        let is_hidden = name_of(&path).starts_with('.') && path != folder;
        if is_hidden || !path.is_dir() || !(path.join(MANIFEST).exists() || is_named_so(&path)) {
            continue;
        }
        match manifest(&path) {
            Ok(body) => found.push(Found { path, body }),
            Err(reason) => unusable.push(reason),
        }
    }
    found.sort_by_key(|it: &Found| std::cmp::Reverse(it.body.sequence));
    Ok((found, unusable))
}

/// The name of a checkpoint after so many steps.
pub(super) fn name_after(step: u64) -> String {
    format!("step-{step}")
}

fn is_named_so(path: &Path) -> bool {
    let name = name_of(path);
    let rest = name.strip_prefix("step-");
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The manifest of a checkpoint, checked against itself.
fn manifest(path: &Path) -> Result<Body, Unusable> {
    let damaged = |reason: String| Unusable::Damaged {
        path: path.join(MANIFEST),
        reason,
    };
    let bytes =
        read(&path.join(MANIFEST), LARGEST_MANIFEST).map_err(|error| damaged(error.to_string()))?;
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let format = value
        .pointer("/body/format")
        .and_then(serde_json::Value::as_u64);
    let program = value
        .pointer("/body/program")
        .and_then(serde_json::Value::as_str);
    if format.is_some_and(|format| format != u64::from(FORMAT))
        || program.is_some_and(|it| it != PROGRAM)
    {
        return Err(Unusable::OtherVersion {
            path: path.to_owned(),
            format,
            program: program.map(str::to_owned),
        });
    }
    let manifest: Manifest =
        serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
    let Manifest { body, checksum } = manifest;
    if body.checksum() != checksum {
        return Err(damaged("its checksum is not that of its text".to_owned()));
    }
    let is_plain = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !name.starts_with('.') && !name.is_empty() && name.chars().all(allowed)
    };
    if body.files.len() > MOST_FILES || !body.files.iter().all(|file| is_plain(&file.name)) {
        return Err(damaged("it names files that no checkpoint has".to_owned()));
    }
    Ok(body)
}

/// All bytes of a regular file of at most so many.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.len() > most {
        return Err(io::Error::other(format!(
            "it has {} bytes, at most {most} are read",
            metadata.len()
        )));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // The file may grow meanwhile.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most {
        true => Ok(bytes),
        false => Err(io::Error::other("it grows while it is read")),
    }
}

impl Found {
    /// Whether every file is what the manifest says. The bytes of the files that are asked for are returned in the order
    /// of the names.
    pub(crate) fn verified(&self, wanted: &[&str]) -> Result<Vec<Vec<u8>>, Unusable> {
        let mut kept = vec![None; wanted.len()];
        for file in &self.body.files {
            let path = self.path.join(&file.name);
            let bytes = self.checked(file, &path);
            let bytes = bytes.map_err(|reason| Unusable::Damaged { path, reason })?;
            if let Some(at) = wanted.iter().position(|name| *name == file.name) {
                kept[at] = bytes;
            }
        }
        let missing = |at: usize| Unusable::Damaged {
            path: self.path.join(wanted[at]),
            reason: "the manifest does not name it".to_owned(),
        };
        let kept = kept.into_iter().enumerate();
        kept.map(|(at, bytes)| bytes.ok_or_else(|| missing(at)))
            .collect()
    }

    fn checked(&self, file: &FileEntry, path: &Path) -> Result<Option<Vec<u8>>, String> {
        if file.bytes > LARGEST_FILE {
            return Err(format!("{} bytes are more than are read", file.bytes));
        }
        let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() != file.bytes {
            return Err(format!(
                "it has {} bytes, the manifest says {}",
                metadata.len(),
                file.bytes
            ));
        }
        let bytes = read(path, file.bytes).map_err(|error| error.to_string())?;
        let mut sum = RunningChecksum::default();
        sum.add(&bytes);
        match sum.finished() == file.checksum && bytes.len() as u64 == file.bytes {
            true => Ok(Some(bytes)),
            false => {
                Err("its bytes are not those that were written: the checksum differs".to_owned())
            }
        }
    }

    /// Removes it. It stops being a checkpoint at once.
    pub(super) fn remove(&self, _lock: &Lock) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let removed = folder.join(format!("{UNFINISHED}removed-{}", name_of(&self.path)));
        fs::rename(&self.path, &removed)?;
        fs::remove_dir_all(&removed)
    }
}
