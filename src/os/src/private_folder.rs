//! Private temporary folders: readable by this user only, and locked while they are in use. The next kernel removes the
//! folders that a killed kernel has left. The lock decides which those are, not the process number in the name, which
//! may belong to another container, or to another machine that shares the temporary folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::temporary_folder;

/// The file in a private folder that is locked.
const LOCK: &str = "lock";
/// The ending of a folder that is not locked yet.
const BEING_MADE: &str = "new";
/// The ending of a folder that nobody uses any more.
const BEING_REMOVED: &str = "old";
/// A folder that is not locked after this time was left by a process that was killed.
const MAKING_LIMIT: Duration = Duration::from_secs(60);

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// Released after the folder is removed.
    _lock: File,
}

/// A name for a new private folder.
pub fn fresh_name() -> String {
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    format!("stratoscope-{}-{nanoseconds:08x}", std::process::id())
}

/// Whether a name is that of a private folder, without an ending.
fn is_private_folder(name: &str) -> bool {
    let parts = name
        .strip_prefix("stratoscope-")
        .and_then(|it| it.split_once('-'));
    parts.is_some_and(|(process, nanoseconds)| {
        process.parse::<u32>().is_ok()
            && nanoseconds.len() == 8
            && nanoseconds.bytes().all(|it| it.is_ascii_hexdigit())
    })
}

impl PrivateFolder {
    /// Makes the folder.
    ///
    /// # Errors
    /// Something exists at `path`, or the folder cannot be made.
    pub fn make(path: PathBuf) -> io::Result<Self> {
        // Under a name that no sweep looks at until the folder is locked. Fails when it exists already: a folder that
        // another user made is never used.
        let fresh = path.with_extension(BEING_MADE);
        fs::DirBuilder::new().mode(0o700).create(&fresh)?;
        let lock = File::create_new(fresh.join(LOCK))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds its lock"));
            }
            // Where the file system has no locks, nobody can take this one either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        fs::rename(&fresh, &path)?;
        Ok(Self { path, _lock: lock })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a folder that nobody uses. A removal that is cut short leaves a name that every sweep removes.
fn remove(folder: &Path) {
    let old = folder.with_extension(BEING_REMOVED);
    let renamed = fs::rename(folder, &old);
    let _ = fs::remove_dir_all(if renamed.is_ok() { &old } else { folder });
}

/// Removes the private folders of this user that no process has locked.
pub fn sweep() {
    temporary_folder::all().iter().for_each(|it| sweep_in(it));
}

fn sweep_in(folder: &Path) {
    // SAFETY: a system call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        let (name, ending) = match name.split_once('.') {
            Some((name, ending)) => (name, Some(ending)),
            None => (name, None),
        };
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !is_private_folder(name) || !metadata.is_dir() || metadata.uid() != user {
            continue;
        }
        let held = hold(&path.join(LOCK));
        let is_left = match ending {
            None => held.is_some(),
            Some(BEING_REMOVED) => true,
            Some(BEING_MADE) => {
                let age = metadata.modified().ok().and_then(|it| it.elapsed().ok());
                age.is_some_and(|age| age > MAKING_LIMIT)
                    && (held.is_some() || !path.join(LOCK).exists())
            }
            Some(_) => false,
        };
        if is_left {
            remove(&path);
        }
    }
}

/// Takes a lock that nobody holds. Where the file system has no locks, it counts as held.
fn hold(lock: &Path) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(lock).ok()?;
    file.try_lock().ok().map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_folders_are_recognized() {
        assert!(is_private_folder(&fresh_name()));
        for (name, expected) in [
            ("stratoscope-12-0a1b2c3d", true),
            ("stratoscope-12-0a1b2c3", false),
            ("stratoscope-12-0a1b2c3d.new", false),
            ("stratoscope-12", false),
            ("stratoscope-x-0a1b2c3d", false),
            ("stratoscope-eng-12345678x", false),
            ("other-12-0a1b2c3d", false),
        ] {
            assert_eq!(is_private_folder(name), expected, "{name}");
        }
    }

    #[test]
    fn only_folders_that_nobody_holds_are_swept() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // No process here has these numbers: the owners may live in another container.
        let held = PrivateFolder::make(at("stratoscope-4000001-00000001")).expect("is made");
        for name in [
            "stratoscope-4000002-00000002",
            "other-4000004-00000004",
            // Without a lock file nothing shows whether it is in use.
            "stratoscope-4000003-00000003",
        ] {
            fs::create_dir(at(name)).expect("makes");
            if !name.contains("3-") {
                fs::write(at(name).join(LOCK), "").expect("writes");
            }
        }
        sweep_in(folder.path());
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .expect("reads")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "other-4000004-00000004",
                "stratoscope-4000001-00000001",
                "stratoscope-4000003-00000003",
            ]
        );
        assert_eq!(
            held.path().metadata().expect("is there").mode() & 0o777,
            0o700
        );
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_was_making_or_removing_is_swept() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let make = |name: &str, age: Duration, has_lock: bool| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("makes");
            let lock = has_lock.then(|| File::create_new(path.join(LOCK)).expect("makes"));
            let made = File::open(&path).expect("opens");
            made.set_modified(now - age).expect("is ours");
            lock
        };
        let (fresh, old) = (Duration::ZERO, 2 * MAKING_LIMIT);
        make("stratoscope-1-00000001.old", fresh, false);
        make("stratoscope-1-00000002.old", old, true);
        make("stratoscope-1-00000003.new", old, false);
        make("stratoscope-1-00000004.new", old, true);
        make("stratoscope-1-00000005.new", fresh, false);
        let held = make("stratoscope-1-00000006.new", old, true).expect("has one");
        held.try_lock().expect("is free");
        make("stratoscope-1-00000007.mine", old, true);
        fs::write(folder.path().join("stratoscope-1-00000008.old"), "").expect("writes");
        sweep_in(folder.path());
        let left = fs::read_dir(folder.path()).expect("reads").flatten();
        let mut left: Vec<_> = left.map(|it| it.file_name()).collect();
        left.sort();
        assert_eq!(
            left,
            [
                "stratoscope-1-00000005.new",
                "stratoscope-1-00000006.new",
                "stratoscope-1-00000007.mine",
                "stratoscope-1-00000008.old",
            ]
        );
    }

    #[test]
    fn an_existing_folder_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stratoscope-1-00000001");
        fs::create_dir(path.with_extension(BEING_MADE)).expect("makes");
        PrivateFolder::make(path.clone()).expect_err("is there already");
        assert!(!path.exists());
    }
}
