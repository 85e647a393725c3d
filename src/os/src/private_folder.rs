//! Private temporary folders: readable by this user only, and locked while they are in use. The next kernel removes the
//! folders that a killed kernel has left. The lock decides which those are, not the process number in the name, which
//! may belong to another container, or to another machine that shares the temporary folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::temporary_folder;

/// The file in a private folder that is locked.
const LOCK: &str = "lock";

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

/// Whether a name is that of a private folder.
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
        let fresh = path.with_extension("new");
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
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the private folders of this user that no process has locked.
pub fn sweep() {
    temporary_folder::all().iter().for_each(|it| sweep_in(it));
}

fn sweep_in(folder: &Path) {
    // SAFETY: a system call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_private_folder)
            && entry
                .metadata()
                .is_ok_and(|it| it.is_dir() && it.uid() == user);
        if is_ours && let Some(_held) = hold(&entry.path().join(LOCK)) {
            let _ = fs::remove_dir_all(entry.path());
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
    fn an_existing_folder_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stratoscope-1-00000001");
        fs::create_dir(path.with_extension("new")).expect("makes");
        PrivateFolder::make(path.clone()).expect_err("is there already");
        assert!(!path.exists());
    }
}
