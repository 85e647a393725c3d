//! Private folders among the temporary files: of this user alone, and locked as long as they are in use.
//! What a kernel that was killed has left is removed by the next one. The number of a process says
//! nothing about that: it may be one of another container, or of another machine that shares the folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::temporary_folder;

/// The file in it that is locked.
const LOCK: &str = "lock";

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// Let go when the folder is gone.
    _lock: File,
}

/// A name for a new one.
pub fn fresh_name() -> String {
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    format!("stratoscope-{}-{nanoseconds:08x}", std::process::id())
}

/// Whether a folder is one of them, by its name.
fn is_one(name: &str) -> bool {
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
    /// Makes the folder. Nothing may be there.
    pub fn make(path: PathBuf) -> io::Result<Self> {
        // Under a name that no other kernel looks at until it is locked. Fails when somebody else has
        // made it: nothing of theirs is used.
        let fresh = path.with_extension("new");
        fs::DirBuilder::new().mode(0o700).create(&fresh)?;
        let lock = File::create_new(fresh.join(LOCK))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("somebody else holds its lock"));
            }
            // Where locks do not work nobody takes ours, either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        fs::rename(&fresh, &path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes those of this user that nobody holds any more.
pub fn sweep() {
    temporary_folder::all().iter().for_each(|it| sweep_in(it));
}

fn sweep_in(folder: &Path) {
    // SAFETY: a plain system call.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_one)
            && entry
                .metadata()
                .is_ok_and(|it| it.is_dir() && it.uid() == user);
        if is_ours && let Some(_held) = hold(&entry.path().join(LOCK)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes a lock that nobody holds. Where locks do not work, somebody may hold it.
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
    fn only_private_folders_are_recognised() {
        assert!(is_one(&fresh_name()));
        for (name, expected) in [
            ("stratoscope-12-0a1b2c3d", true),
            ("stratoscope-12-0a1b2c3", false),
            ("stratoscope-12-0a1b2c3d.new", false),
            ("stratoscope-12", false),
            ("stratoscope-x-0a1b2c3d", false),
            ("stratoscope-eng-12345678x", false),
            ("other-12-0a1b2c3d", false),
        ] {
            assert_eq!(is_one(name), expected, "{name}");
        }
    }

    #[test]
    fn only_folders_that_nobody_holds_are_swept() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // The number is that of no process here: what lives may do so in another container.
        let held = PrivateFolder::make(at("stratoscope-4000001-00000001")).expect("is made");
        for name in [
            "stratoscope-4000002-00000002",
            "other-4000004-00000004",
            // Nobody says whether it is in use.
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
    fn what_somebody_else_has_made_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stratoscope-1-00000001");
        fs::create_dir(path.with_extension("new")).expect("makes");
        PrivateFolder::make(path.clone()).expect_err("is there already");
        assert!(!path.exists());
    }
}
