//! What the processes that compile cells have to know, written once by the kernel that starts them.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name under which cargo calls this executable.
pub const WRAPPER: &str = "stratoscope-rustc";

/// What the wrapper has to know, written by the kernel as JSON beside the symbolic link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriverSettings {
    /// The prebuilt facade.
    pub library: PathBuf,
    /// The folder of its dependencies' metadata.
    pub dependencies: PathBuf,
    /// The folder of what is kept for later kernels: compiled cells, calls of rustc, answers of cargo.
    pub kept: PathBuf,
    /// The folder of the view's crates.
    pub view: PathBuf,
    /// What rustc takes for its own folder when it compiles a cell (see `wrapper::sysroot`).
    pub sysroot: PathBuf,
    /// Which file the facade was when the kernel started.
    pub identity: LibraryIdentity,
    /// The compiler that built the facade.
    pub rustc: PathBuf,
    /// The folder of that compiler, with its cargo.
    pub toolchain: PathBuf,
}

/// Tells whether a file was replaced: a cell that is compiled against another facade than the one
/// that is loaded would crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryIdentity {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

impl LibraryIdentity {
    /// That of the file at `path`.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            inode: metadata.ino(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
            length: metadata.len(),
        })
    }
}

impl DriverSettings {
    const FILE: &str = "wrapper.json";

    /// Writes the settings and the link into `folder`; returns the link.
    pub fn install(&self, folder: &Path, executable: &Path) -> io::Result<PathBuf> {
        fs::write(folder.join(Self::FILE), serde_json::to_vec(self)?)?;
        let link = folder.join(WRAPPER);
        match symlink(executable, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(link),
        }
    }

    /// Those that [`Self::install`] has written into `folder`.
    pub fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(folder.join(Self::FILE))?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_library_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("library");
        fs::write(&path, "1").expect("writes");
        let before = LibraryIdentity::of(&path).expect("is there");
        assert_eq!(LibraryIdentity::of(&path).expect("is there"), before);
        fs::write(&path, "22").expect("writes");
        assert_ne!(LibraryIdentity::of(&path).expect("is there"), before);
    }
}
