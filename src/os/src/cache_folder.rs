//! The folder of this user's caches, and folders that no other user can write to.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder of our caches: below `XDG_CACHE_HOME`, else below `.cache` in the user's home. It may not exist yet. `None` where
/// the user has neither.
pub fn of_user() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").filter(|it| it.is_absolute());
    let folder = folder.or_else(|| Some(named("HOME")?.join(".cache")));
    folder
        .filter(|it| it.is_absolute())
        .map(|it| it.join("stratoscope"))
}

/// Whether a folder belongs to this user and others cannot write there. A link counts as the folder that it leads to.
pub fn is_private(folder: &Path) -> bool {
    // SAFETY: a system call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    fs::metadata(folder).is_ok_and(|it| it.is_dir() && it.uid() == user && it.mode() & 0o022 == 0)
}

/// Makes a folder that only this user can read, and those above it, where they do not exist.
///
/// # Errors
/// It cannot be made, or other users can write to the one that is there.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    match is_private(folder) {
        true => Ok(()),
        false => Err(io::Error::other("other users can write there")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("a/b");
        assert!(!is_private(&made));
        make_private(&made).expect("is made");
        assert_eq!(made.metadata().expect("it is there").mode() & 0o777, 0o700);
        make_private(&made).expect("is there already");
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(!is_private(&made));
        make_private(&made).expect_err("others can write there");
        fs::write(folder.path().join("file"), "").expect("writes");
        make_private(&folder.path().join("file/c")).expect_err("it is below a file");
    }
}
