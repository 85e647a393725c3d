//! The package of an installed kernel, and where its library is unpacked.
//!
//! pip puts the executable into `PREFIX/bin` and the package into `PREFIX/share/stratoscope`, so each finds the other
//! wherever the environment lies. The library is unpacked into the same folder by whoever may write there: it goes with the
//! environment, and other users of the environment share it. Everybody else unpacks it into the cache folder in their home.
//!
//! What a kernel writes beside a library (compiled cells) is code that later kernels run. It lies in a folder that only its
//! user can write to.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{ffi::CString, fmt};

use crate::archive::{self, Packed};
use crate::contents::Contents;

/// Where a package lies in an environment.
pub const FOLDER: &str = "share/stratoscope";
/// The compressed library.
pub const ARCHIVE: &str = "library.tar.zst";
/// What is said about it.
pub const CONTENTS: &str = "library.json";
/// The shared library, in an unpacked one.
pub const LIBRARY: &str = "library/libstratoscope.so";
/// The folder, in an unpacked library, of what kernels write.
const KEPT: &str = "kept";
/// Names of folders that libraries are unpacked into begin so.
const UNPACKED: &str = "library-";

/// How much room must be left beside an unpacked library, in bytes.
const ROOM: u64 = 64 << 20;

/// A package that is installed.
#[derive(Clone, Debug)]
pub struct Package {
    folder: PathBuf,
    /// What it says about its library.
    pub contents: Contents,
}

/// Why a library cannot be unpacked.
#[derive(Debug)]
pub struct Problem {
    /// The folder that was to hold it.
    pub folder: PathBuf,
    /// What the system said, or what is missing.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.folder.display(), self.reason)
    }
}

impl Package {
    /// The package that this executable was installed with.
    #[must_use]
    pub fn here() -> Option<Self> {
        Self::of(&std::env::current_exe().ok()?)
    }

    /// The package that an executable was installed with.
    fn of(executable: &Path) -> Option<Self> {
        let folder = executable.parent()?.parent()?.join(FOLDER);
        let contents = Contents::read(&folder.join(CONTENTS)).ok()?;
        Some(Self { folder, contents })
    }

    /// The compressed library.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.folder.join(ARCHIVE)
    }

    /// The environment that it is installed in.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        let parts = Path::new(FOLDER).components().count();
        self.folder.ancestors().nth(parts).unwrap_or(&self.folder)
    }

    /// The library, if it is unpacked already.
    #[must_use]
    pub fn unpacked(&self) -> Option<PathBuf> {
        self.places()
            .into_iter()
            .find_map(|place| self.unpacked_in(&place))
    }

    /// Where it may be unpacked: in the environment, or for this user alone.
    fn places(&self) -> Vec<PathBuf> {
        let own = cache().filter(|cache| !cache.exists() || is_private(cache));
        [Some(self.folder.clone()), own]
            .into_iter()
            .flatten()
            .collect()
    }

    fn unpacked_in(&self, place: &Path) -> Option<PathBuf> {
        let folder = place.join(self.contents.folder());
        // Another user's may not be readable.
        File::open(folder.join(LIBRARY)).ok().map(|_| folder)
    }

    /// The folder that [`Self::unpack`] would try first.
    #[must_use]
    pub fn destination(&self) -> Option<PathBuf> {
        // Where it is not made yet, the folder above decides.
        let is_usable = |place: &PathBuf| {
            place
                .ancestors()
                .find(|it| it.exists())
                .is_some_and(is_writable)
        };
        self.places().into_iter().find(is_usable)
    }

    /// Unpacks the library, unless that was done; `progress` hears how many bytes were written so far.
    ///
    /// # Errors
    /// Neither folder can be written to, or the disk is full.
    pub fn unpack(&self, progress: &mut dyn FnMut(u64)) -> Result<PathBuf, Problem> {
        if let Some(folder) = self.unpacked() {
            return Ok(folder);
        }
        let Some(place) = self.destination() else {
            return Err(Problem {
                folder: self.folder.clone(),
                reason: "it cannot be written to, and there is no cache folder of this user: set HOME or \
                         XDG_CACHE_HOME to a folder that you can write to"
                    .to_owned(),
            });
        };
        self.unpack_into(&place, progress).map_err(|error| Problem {
            reason: error.to_string(),
            folder: place,
        })
    }

    fn unpack_into(&self, place: &Path, progress: &mut dyn FnMut(u64)) -> io::Result<PathBuf> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(place)?;
        let name = self.contents.folder();
        // Two kernels that start at once: the second waits for the first.
        let lock = File::create(place.join(format!(".{name}.lock")))?;
        // Where the file system has no locks, both unpack, and the first one's is used.
        let _ = lock.lock();
        if let Some(folder) = self.unpacked_in(place) {
            return Ok(folder);
        }
        let free = free(place)?;
        if free < self.contents.bytes + ROOM {
            let (needed, free) = ((self.contents.bytes + ROOM) >> 20, free >> 20);
            return Err(io::Error::other(format!(
                "{needed} MiB are needed, and {free} MiB are free"
            )));
        }
        let unfinished = format!(".{name}.unfinished-");
        for entry in fs::read_dir(place)?.flatten() {
            // Of a kernel that was killed.
            if entry.file_name().to_string_lossy().starts_with(&unfinished) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let fresh = tempfile::Builder::new()
            .prefix(&unfinished)
            .tempdir_in(place)?;
        let mut archive = File::open(self.archive())?;
        let expected = Packed {
            files: self.contents.files,
            bytes: self.contents.bytes,
        };
        let unpacked = archive::unpack(&mut archive, fresh.path(), expected, progress)?;
        if unpacked != expected {
            return Err(io::Error::other(
                "the archive does not hold what it should: install the wheel again",
            ));
        }
        // In an environment of all users everybody may read it.
        fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
        let folder = place.join(&name);
        match fs::rename(fresh.path(), &folder) {
            Err(error) if self.unpacked_in(place).is_none() => return Err(error),
            Err(_) => {}
            // It is not there under this name any more.
            Ok(()) => drop(fresh.keep()),
        }
        if place == self.folder {
            forget(place, &name);
        }
        Ok(folder)
    }

    /// The folder, for this user alone, of what kernels write beside an unpacked library.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn kept(&self, unpacked: &Path) -> Result<PathBuf, Problem> {
        let beside = unpacked.join(KEPT);
        let is_own = fs::metadata(unpacked).is_ok_and(|it| it.uid() == user());
        if is_own && make_private(&beside).is_ok() {
            return Ok(beside);
        }
        let Some(cache) = cache() else {
            return Err(Problem {
                folder: unpacked.to_owned(),
                reason: "it belongs to another user, and this user has no cache folder: set HOME or XDG_CACHE_HOME"
                    .to_owned(),
            });
        };
        let folder = cache.join(format!("{KEPT}-{}", self.contents.folder()));
        let made = make_private(&cache).and_then(|()| make_private(&folder));
        made.map(|()| folder.clone()).map_err(|error| Problem {
            folder,
            reason: error.to_string(),
        })
    }

    /// Removes what was unpacked, where this user may, and what kernels have written beside it. Returns the folders.
    pub fn remove(&self) -> Vec<PathBuf> {
        let name = self.contents.folder();
        let mut folders: Vec<PathBuf> = self
            .places()
            .iter()
            .map(|place| place.join(&name))
            .collect();
        folders.extend(cache().map(|cache| cache.join(format!("{KEPT}-{name}"))));
        for place in self.places() {
            let _ = fs::remove_file(place.join(format!(".{name}.lock")));
        }
        folders.retain(|folder| folder.is_dir() && fs::remove_dir_all(folder).is_ok());
        // What is empty now.
        cache().map(fs::remove_dir);
        folders
    }
}

/// Says that a kernel uses an unpacked library until the file is closed. `None` where that cannot be said.
#[must_use]
pub fn hold(unpacked: &Path) -> Option<File> {
    let file = File::open(unpacked.join(LIBRARY)).ok()?;
    file.try_lock_shared().ok().map(|()| file)
}

/// Removes libraries of earlier packages that no kernel uses.
fn forget(place: &Path, name: &str) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        if !other.starts_with(UNPACKED) || other == name || !entry.path().is_dir() {
            continue;
        }
        let file = File::open(entry.path().join(LIBRARY));
        if file.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder of this user's caches.
fn cache() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").filter(|it| it.is_absolute());
    let folder = folder.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let folder = folder.filter(|it| it.is_absolute())?;
    // Paths are compared later.
    Some(folder.canonicalize().unwrap_or(folder).join("stratoscope"))
}

fn user() -> u32 {
    // SAFETY: a system call without arguments that cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a folder belongs to this user and others cannot write there.
fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|it| it.is_dir() && it.uid() == user() && it.mode() & 0o022 == 0)
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if !is_private(folder) || !is_writable(folder) {
        return Err(io::Error::other(
            "others can write there, or this user cannot",
        ));
    }
    Ok(())
}

fn is_writable(folder: &Path) -> bool {
    tempfile::Builder::new()
        .prefix(".probe-")
        .tempfile_in(folder)
        .is_ok()
}

/// The free bytes of the disk that a folder is on.
fn free(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and the answer has the type that the call fills in.
    let answer = unsafe {
        if libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        answer.assume_init()
    };
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    let bytes = answer.f_bavail as u64 * answer.f_frsize as u64;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment with a package whose library is two small files.
    fn environment(change: impl FnOnce(&mut Packed)) -> (tempfile::TempDir, Package) {
        let prefix = tempfile::tempdir().expect("a folder");
        let folder = prefix.path().join(FOLDER);
        let library = prefix.path().join("source");
        fs::create_dir_all(library.join("library")).expect("makes");
        fs::create_dir_all(&folder).expect("makes");
        fs::write(library.join(LIBRARY), "a library").expect("writes");
        fs::write(library.join("library/libx.rmeta"), "metadata").expect("writes");
        let mut archive = File::create(folder.join(ARCHIVE)).expect("makes");
        let mut packed = archive::pack(&library, 1, &mut archive).expect("packs");
        change(&mut packed);
        let contents = Contents::new("0.1.0", "rustc 1.95.0 (x y)", "0123456789abcdef", packed);
        fs::write(folder.join(CONTENTS), contents.to_json()).expect("writes");
        let package = Package::of(&prefix.path().join("bin/stratoscope")).expect("is there");
        (prefix, package)
    }

    #[test]
    fn it_is_unpacked_once_beside_the_package_and_removed() {
        let (prefix, package) = environment(|_| ());
        assert_eq!(package.prefix(), prefix.path());
        assert_eq!(package.unpacked(), None);
        let mut heard = 0;
        let folder = package.unpack(&mut |bytes| heard = bytes).expect("unpacks");
        assert_eq!((folder.parent(), heard), (Some(&*package.folder), 17));
        assert_eq!(package.unpacked().as_ref(), Some(&folder));
        let again = package.unpack(&mut |_| panic!("is unpacked already"));
        assert_eq!(again.expect("is there"), folder);
        let kept = package.kept(&folder).expect("makes");
        assert_eq!(kept, folder.join(KEPT));
        assert_eq!(fs::metadata(&kept).expect("is there").mode() & 0o777, 0o700);
        assert_eq!(package.remove(), std::slice::from_ref(&folder));
        assert!(!folder.exists());
    }

    #[test]
    fn an_executable_without_a_package_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Package::of(&folder.path().join("bin/stratoscope")).is_none());
        assert!(Package::here().is_none(), "this is a test's executable");
    }

    #[test]
    fn a_package_that_is_not_whole_leaves_nothing() {
        let (_prefix, package) = environment(|packed| packed.files += 1);
        let problem = package.unpack(&mut |_| ()).expect_err("lacks a file");
        assert!(
            problem.reason.contains("install the wheel again"),
            "{problem}"
        );
        assert_eq!(package.unpacked(), None);
        let (_prefix, package) = environment(|packed| packed.bytes -= 1);
        let problem = package.unpack(&mut |_| ()).expect_err("holds more");
        assert!(problem.reason.contains("more than it should"), "{problem}");
        assert_eq!(package.unpacked(), None);
        let (_prefix, package) = environment(|packed| packed.bytes = 1 << 60);
        let problem = package.unpack(&mut |_| ()).expect_err("is too large");
        assert!(problem.reason.contains("MiB are needed"), "{problem}");
        let left = fs::read_dir(&package.folder).expect("reads").flatten();
        let left = left.filter(|entry| entry.path().is_dir()).count();
        assert_eq!(left, 0);
    }

    #[test]
    fn libraries_of_earlier_packages_go_unless_a_kernel_uses_them() {
        let (_prefix, package) = environment(|_| ());
        for name in ["library-0.0.1-aaaa", "library-0.0.2-bbbb"] {
            fs::create_dir_all(package.folder.join(name).join("library")).expect("makes");
            fs::write(package.folder.join(name).join(LIBRARY), "old").expect("writes");
        }
        let used = package.folder.join("library-0.0.2-bbbb");
        let held = hold(&used).expect("is free");
        package.unpack(&mut |_| ()).expect("unpacks");
        assert!(used.exists() && !package.folder.join("library-0.0.1-aaaa").exists());
        drop(held);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_private() {
        let folder = tempfile::tempdir().expect("a folder");
        for (mode, expected) in [(0o700, true), (0o755, true), (0o775, false), (0o777, false)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("is ours");
            assert_eq!(is_private(folder.path()), expected, "{mode:o}");
            assert_eq!(make_private(folder.path()).is_ok(), expected, "{mode:o}");
        }
    }
}
