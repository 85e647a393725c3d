//! The folder for temporary files: `TMPDIR` if it is usable, otherwise another one.
//!
//! Other users must not be able to replace files there. Therefore the folder and all of its parents must belong to this
//! user or to the administrator, and must not be writable by other users unless they are sticky, as `/tmp` is.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The variable that names the folder.
const VARIABLE: &str = "TMPDIR";
/// The folder without that variable.
const DEFAULT: &str = "/tmp";
/// The longest path, since sockets lie below it, whose paths are limited to 108 bytes.
const MAX_BYTES: usize = 72;

/// The folder that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temporary {
    /// The folder for temporary files.
    pub folder: PathBuf,
    /// The value to set `TMPDIR` to, if its own is not usable.
    pub instead: Option<PathBuf>,
    /// Why `TMPDIR` is not usable, and which folder is used instead.
    pub note: Option<String>,
}

/// Finds the folder for temporary files.
///
/// # Errors
/// No folder is usable: why, for each that was tried.
pub fn find() -> Result<Temporary, String> {
    find_among(std::env::var_os(VARIABLE), &fallbacks())
}

/// Every folder that may contain private folders.
pub fn all() -> Vec<PathBuf> {
    let named = named(std::env::var_os(VARIABLE));
    let mut folders: Vec<PathBuf> = named.into_iter().chain(fallbacks()).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// The folder that a variable names; an empty variable names none.
fn named(variable: Option<OsString>) -> Option<PathBuf> {
    variable.filter(|it| !it.is_empty()).map(PathBuf::from)
}

/// The folders to try when `TMPDIR` is not usable.
fn fallbacks() -> Vec<PathBuf> {
    let variable = |name| named(std::env::var_os(name));
    let cache = variable("XDG_CACHE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".cache")))
        .map(|cache| cache.join("stratoscope"));
    [Some(DEFAULT.into()), variable("XDG_RUNTIME_DIR"), cache]
        .into_iter()
        .flatten()
        .collect()
}

fn find_among(variable: Option<OsString>, others: &[PathBuf]) -> Result<Temporary, String> {
    let mut problems = Vec::new();
    // Most programs treat an empty variable as unset; Rust programs treat it as the current folder.
    let is_empty = variable.as_ref().is_some_and(|it| it.is_empty());
    let named = named(variable);
    let problem = match &named {
        None => None,
        Some(named) => match problem_with(named) {
            None if named.as_os_str().len() <= MAX_BYTES => {
                return Ok(Temporary {
                    folder: named.clone(),
                    instead: None,
                    note: None,
                });
            }
            problem => problem,
        },
    };
    if let (Some(named), Some(problem)) = (&named, &problem) {
        problems.push(format!("`{}` {problem}", shown(named)));
    }
    for folder in others {
        if folder.ends_with("stratoscope") {
            // Below the user's cache folder, where a new folder may be made.
            let mut builder = fs::DirBuilder::new();
            let _ = builder.recursive(true).mode(0o700).create(folder);
        }
        match problem_with(folder) {
            None if folder.as_os_str().len() <= MAX_BYTES => {
                let note = named
                    .as_ref()
                    .zip(problem.as_ref())
                    .map(|(named, problem)| {
                        format!(
                            "TMPDIR is `{}`, which {problem}: temporary files go to `{}`",
                            shown(named),
                            folder.display()
                        )
                    });
                return Ok(Temporary {
                    folder: folder.clone(),
                    instead: (note.is_some() || is_empty).then(|| folder.clone()),
                    note,
                });
            }
            None => problems.push(format!("the path of `{}` is too long", folder.display())),
            Some(problem) => problems.push(format!("`{}` {problem}", folder.display())),
        }
    }
    Err(problems.join("; "))
}

/// A path for a message, with line ends and control characters escaped.
fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Why a folder is not usable, to follow its name in a sentence.
fn problem_with(folder: &Path) -> Option<&'static str> {
    let bytes = folder.as_os_str().as_bytes();
    if !folder.is_absolute() {
        return Some("is not an absolute path");
    }
    let is_unsafe = |byte: &u8| byte.is_ascii_control() || *byte == b':' || *byte == b'"';
    if folder.to_str().is_none() || bytes.iter().any(is_unsafe) {
        return Some("has characters that programs cannot handle");
    }
    let Ok(real) = folder.canonicalize() else {
        return Some("does not exist");
    };
    if !real.is_dir() {
        return Some("is not a folder");
    }
    if real.ancestors().any(is_open_to_others) {
        return Some("is open to other users, who could replace its files");
    }
    // The mode is not enough: the file system may be read-only, and the administrator may write anywhere.
    match tempfile::Builder::new()
        .prefix("stratoscope-probe-")
        .tempfile_in(folder)
    {
        Ok(file) if can_execute(file.as_file()) => None,
        Ok(_) => Some("is mounted `noexec`, so that the code of a cell cannot be loaded from it"),
        Err(_) => Some("cannot be written to"),
    }
}

/// Whether code in this file can be loaded. A file system that is mounted `noexec` refuses it for each of its files.
fn can_execute(file: &fs::File) -> bool {
    const BYTES: usize = 1;
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE;
    // SAFETY: a new mapping at a place that the system chooses; it is not read.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            protection,
            flags,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: it was mapped above with this length, and nothing refers to it.
    unsafe { libc::munmap(mapped, BYTES) };
    true
}

/// Whether users other than this one and the administrator can replace files in a folder.
fn is_open_to_others(folder: &Path) -> bool {
    const WRITABLE_BY_GROUP: u32 = 0o020;
    const WRITABLE_BY_ALL: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let Ok(metadata) = fs::metadata(folder) else {
        return true;
    };
    // SAFETY: a system call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    // In a container the administrator may have a number other than 0.
    let administrator = fs::metadata("/").map_or(0, |it| it.uid());
    let is_trusted = [user, administrator, 0].contains(&metadata.uid());
    // Many systems give each user a group of the same number, which may write.
    let is_own_group = metadata.gid() == user;
    let mode = metadata.mode();
    let is_open = mode & WRITABLE_BY_ALL != 0 || (mode & WRITABLE_BY_GROUP != 0 && !is_own_group);
    !is_trusted || (is_open && mode & STICKY == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(folder: &Path, mode: u32) {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("is ours");
    }

    #[test]
    fn a_folder_that_can_be_used_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let spaced = folder.path().join("a b");
        fs::create_dir(&spaced).expect("makes");
        for good in [folder.path(), &spaced] {
            let found = find_among(Some(good.into()), &[]).expect("is good");
            assert_eq!((found.folder.as_path(), found.note), (good, None));
        }
        // An empty variable counts as unset, without a note.
        let others = [folder.path().to_owned()];
        for none in [None, Some(OsString::new())] {
            let instead = none.as_ref().map(|_| others[0].clone());
            let found = find_among(none, &others).expect("is good");
            assert_eq!((&found.folder, found.note), (&others[0], None));
            assert_eq!(found.instead, instead);
        }
    }

    #[test]
    fn what_cannot_be_used_is_named_and_another_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let others = [folder.path().to_owned()];
        let file = folder.path().join("file");
        fs::write(&file, "").expect("writes");
        let open = folder.path().join("open");
        fs::create_dir_all(open.join("below")).expect("makes");
        mode(&open, 0o777);
        let check = |named: &Path, expected: &str| {
            let found = find_among(Some(named.into()), &others).expect("there is another");
            assert_eq!(found.folder, others[0]);
            assert_eq!(found.instead.as_ref(), Some(&others[0]));
            let note = found.note.expect("says so");
            assert!(note.contains(expected) && note.contains("TMPDIR"), "{note}");
        };
        check(Path::new("relative"), "not an absolute path");
        check(&folder.path().join("none"), "does not exist");
        check(&file, "is not a folder");
        check(&open, "open to other users");
        check(&open.join("below"), "open to other users");
        check(&folder.path().join("a:b"), "cannot handle");
        check(&folder.path().join("a\nb"), "cannot handle");
        // With the sticky bit, as `/tmp` has it, nobody renames what belongs to another.
        mode(&open, 0o1777);
        assert_eq!(problem_with(&open), None);
    }

    #[test]
    fn a_file_that_may_be_written_can_be_loaded_unless_its_file_system_forbids_it() {
        assert!(can_execute(&tempfile::tempfile().expect("a file")));
        // Files of `/proc` cannot be mapped, which is the same answer of the system.
        let file = fs::File::open("/proc/self/status").expect("is there");
        assert!(!can_execute(&file));
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_good_for_other_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("x".repeat(MAX_BYTES));
        fs::create_dir(&deep).expect("makes");
        let others = [folder.path().to_owned()];
        let found = find_among(Some(deep.into()), &others).expect("there is another");
        assert_eq!(
            (found.folder, found.instead, found.note),
            (others[0].clone(), None, None)
        );
    }

    #[test]
    fn without_any_the_message_names_each() {
        let problems = find_among(Some("relative".into()), &["/no/such".into()]).expect_err("none");
        assert_eq!(
            problems,
            "`relative` is not an absolute path; `/no/such` does not exist"
        );
    }
}
