//! The prebuilt facade: where it is, whether cells can be compiled against it, and how it is built.
//!
//! The facade is `libstratoscope.so` in the checkout's target folder, beside the metadata of its
//! dependencies. Only the rustc that built it can use it, and rustc writes its version into every
//! library; so a rustc of that version is looked for ([`compiler`]), whatever the notebook's folder asks for.
//!
//! Cells are not compiled against the target folder itself: the next `cargo build` or `cargo test`
//! there may replace metadata that the library still refers to. They use a *snapshot*: a folder of
//! hard links, made when a library is seen for the first time, which costs milliseconds and no
//! space, and which later builds leave alone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{fmt, fs, io};

use stratoscope_diagnostics::rules::{
    LibraryBuildFailed, LibraryLinkFailed, LibraryMissing, LibraryStale, RustcMissing,
    SourcesUnreadable,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use crate::{compiler, packaged, view, wrapper};
use stratoscope_os::environment;

/// Names the facade or the folder it is in, in place of the one beside this executable.
pub const VARIABLE: &str = "STRATOSCOPE_FACADE";

pub(crate) const LIBRARY: &str = "libstratoscope.so";
const VIEW: &str = "stratoscope-view";
/// What builds it: the whole workspace, since that is the feature set everything shares.
const BUILD: &str = "cargo build --workspace --locked";

/// A facade that cells can be compiled against.
#[derive(Clone, Debug)]
pub struct Facade {
    /// The library.
    pub library: PathBuf,
    /// The folder with the metadata of its dependencies.
    pub dependencies: PathBuf,
    /// The folder of what is kept for later kernels, which only this user can write to.
    pub kept: PathBuf,
    /// What rust-analyzer sees of it.
    pub view: PathBuf,
    /// The version of rustc that built it.
    pub rustc: String,
    /// The folder of that rustc.
    pub sysroot: PathBuf,
    /// As long as somebody has it, the snapshot stays.
    pub(crate) _in_use: Option<Arc<File>>,
}

impl Facade {
    /// The library.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The library and the folder of its dependencies for programs that are compiled later: not a snapshot, which is gone when no
    /// kernel uses it, but where the next build replaces them.
    pub fn of_programs(&self) -> (PathBuf, PathBuf) {
        if packaged::here().is_some() {
            return (self.library.clone(), self.dependencies.clone());
        }
        let folder = self.view.parent().unwrap_or(&self.view);
        (folder.join(LIBRARY), folder.join("deps"))
    }

    /// Makes a folder that such a program's rustc takes for its own: without the shared standard library, which the library holds
    /// already.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn make_sysroot(&self, folder: &Path) -> io::Result<()> {
        wrapper::sysroot(&self.sysroot, folder)
    }

    /// What a kernel spec records, so that the kernel finds the same facade again.
    pub fn environment(&self) -> Vec<(String, serde_json::Value)> {
        if packaged::here().is_some() {
            // It is found through the executable, also after the next `pip install --upgrade`.
            return Vec::new();
        }
        let folder = self.view.parent().unwrap_or(&self.view);
        vec![(VARIABLE.to_owned(), folder.display().to_string().into())]
    }
}

impl fmt::Display for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.library.display(), self.rustc)
    }
}

/// Finds the facade: where [`VARIABLE`] says, else in the package that this executable was installed with ([`packaged`]),
/// else beside this executable, else in the target folder of the checkout that this executable was built from.
///
/// # Errors
/// There is none, or it was built by another rustc; the diagnostic says what to run.
pub fn find() -> Result<Facade> {
    if let Some(package) = packaged::here() {
        return packaged::find(package, &mut |_| ());
    }
    let sources = sources();
    let library = library()
        .map(outside_deps)
        .ok_or_else(|| missing(&sources))?;
    let folder = library.parent().unwrap_or(Path::new("/")).to_owned();
    let rustc = rustc_of(&library).ok_or_else(|| missing(&sources))?;
    let Some(compiler::Compiler { sysroot, .. }) = compiler::of_version(&rustc) else {
        let now = compiler::any().ok_or_else(|| RustcMissing.error())?;
        return Err(stale(&library, &rustc, &now.version, &sources));
    };
    let folder_of_view = folder.join(VIEW);
    if !view::is_current(&sources, &sysroot, &folder_of_view) {
        view::generate(&sources, &sysroot, &folder_of_view)
            .map_err(|error| no_view(&sources, &sysroot, &error))?;
    }
    let dependencies = snapshot(&folder, &library).map_err(|error| no_snapshot(&folder, &error))?;
    let library = dependencies.join(LIBRARY);
    let in_use = use_snapshot(&dependencies).map(Arc::new);
    Ok(Facade {
        library,
        kept: dependencies.clone(),
        dependencies,
        view: folder_of_view,
        rustc,
        sysroot,
        _in_use: in_use,
    })
}

/// Builds the facade, with everything else of the workspace, telling `progress` each line of
/// cargo's.
///
/// # Errors
/// The checkout is gone, or cargo fails; the diagnostic has its last lines.
pub fn build(progress: &mut dyn FnMut(&str)) -> Result<Facade> {
    let sources = sources();
    let mut child = environment::clean_env(&mut Command::new("cargo"))
        .args(["build", "--workspace", "--locked", "--manifest-path"])
        .arg(sources.join("Cargo.toml"))
        .current_dir(compiler::ROOT)
        .env_remove("RUSTC_WRAPPER")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&sources, &error.to_string()))?;
    let mut last = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(|line| line.ok()) {
            progress(&line);
            last.push(line);
            if last.len() > 20 {
                last.remove(0);
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => find(),
        Ok(_) => Err(failed(&sources, &last.join("\n"))),
        Err(error) => Err(failed(&sources, &error.to_string())),
    }
}

/// Whether [`build`] fixes the problem that [`find`] reports.
pub fn is_fixed_by_building(problem: &Diagnostic) -> bool {
    [LibraryMissing::PAGE.code, LibraryStale::PAGE.code].contains(&&*problem.code)
}

/// What building it from nothing takes, in words.
pub fn estimate() -> String {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    let minutes = (40 / cores).max(3);
    format!(
        "about {minutes} minutes on this machine's {cores} cores, and 6 GB in the target folder"
    )
}

/// The checkout that this executable was built from, or the sources in its package.
pub fn sources() -> PathBuf {
    if let Some(unpacked) = packaged::here().and_then(|package| package.unpacked()) {
        return unpacked.join(packaged::SOURCES);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

fn library() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let beside = std::env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.to_owned()));
    // A test's executable lies one folder deeper.
    let above = beside
        .as_ref()
        .and_then(|path| Some(path.parent()?.to_owned()));
    let built = Some(sources().join("target/debug"));
    if let Some(named) = named {
        let file = if named.is_dir() {
            named.join(LIBRARY)
        } else {
            named
        };
        return file.is_file().then_some(file);
    }
    [beside, above, built]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(LIBRARY))
        .find(|file| file.is_file())
}

/// cargo keeps a second name of the library in the folder `deps`; the other one's folder is meant.
fn outside_deps(library: PathBuf) -> PathBuf {
    let folder = library.parent().filter(|folder| folder.ends_with("deps"));
    let above = folder.and_then(|folder| Some(folder.parent()?.join(LIBRARY)));
    above.filter(|above| above.is_file()).unwrap_or(library)
}

/// How many snapshots are kept, beside those in use.
const SNAPSHOTS: usize = 4;

/// The file in a snapshot that kernels lock, together, as long as they compile against it.
const IN_USE: &str = "in-use";

/// Says that the snapshot is in use until the file is closed. `None` where that cannot be said.
fn use_snapshot(snapshot: &Path) -> Option<File> {
    let path = snapshot.join(IN_USE);
    let mut options = File::options();
    let file = options.create(true).append(true).open(&path);
    // Of somebody else's library.
    let file = file.or_else(|_| File::open(&path)).ok()?;
    file.try_lock_shared().ok().map(|()| file)
}

/// Whether a kernel compiles against it.
fn is_in_use(snapshot: &Path) -> bool {
    let file = File::open(snapshot.join(IN_USE));
    file.is_ok_and(|file| file.try_lock().is_err())
}

/// The folder with the library and the metadata it was built from, as they were when this library
/// was first seen.
fn snapshot(folder: &Path, library: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(library)?;
    let name = format!(
        "{:x}-{:x}-{:x}",
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.len()
    );
    let all = folder.join("stratoscope-snapshots");
    let home = all.join(name);
    if home.is_dir() {
        return Ok(home);
    }
    fs::create_dir_all(&all)?;
    let fresh = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(&all)?;
    fs::hard_link(library, fresh.path().join(LIBRARY))?;
    for entry in fs::read_dir(folder.join("deps"))? {
        let path = entry?.path();
        let is_needed = match path.extension().and_then(|extension| extension.to_str()) {
            // Metadata, and procedural macros, which rustc loads.
            Some("rmeta" | "so") => true,
            // A crate of several kinds at once has its metadata only in here.
            Some("rlib") => !path.with_extension("rmeta").exists(),
            _ => false,
        };
        let name = path
            .file_name()
            .filter(|name| is_needed && *name != LIBRARY);
        if let Some(name) = name {
            fs::hard_link(&path, fresh.path().join(name))?;
        }
    }
    if let Err(error) = fs::rename(fresh.path(), &home)
        && !home.is_dir()
    {
        return Err(error);
    }
    forget_old_snapshots(&all);
    Ok(home)
}

fn forget_old_snapshots(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else {
        return;
    };
    let mut folders: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    folders.sort();
    let old = folders.iter().rev().skip(SNAPSHOTS);
    for (_, folder) in old.filter(|(_, folder)| !is_in_use(folder)) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// `rustc 1.95.0 (59807616e 2026-04-14)`, as the library says it: rustc leaves `rustc version …` in the
/// section `.comment`.
fn rustc_of(library: &Path) -> Option<String> {
    let comment = elf_section(library, b".comment")?;
    let text = String::from_utf8_lossy(&comment);
    let version = text
        .split('\0')
        .find_map(|part| part.strip_prefix("rustc version "))?;
    Some(format!("rustc {version}"))
}

/// The bytes of a section of a 64-bit little-endian ELF file. Source: the ELF-64 object file
/// format, sections 3 and 4.
fn elf_section(path: &Path, name: &[u8]) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    const SECTION_HEADER_BYTES: usize = 64;
    let file = File::open(path).ok()?;
    let read = |offset: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
    };
    let word = |bytes: &[u8], at: usize, size: usize| {
        let mut value = [0; 8];
        value[..size].copy_from_slice(bytes.get(at..at + size)?);
        Some(u64::from_le_bytes(value))
    };
    let header = read(0, 64)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let table = word(&header, 40, 8)?;
    let count = word(&header, 60, 2)? as usize;
    let names = word(&header, 62, 2)? as usize;
    let sections = read(table, count * SECTION_HEADER_BYTES)?;
    let section = |index: usize| {
        let start = index * SECTION_HEADER_BYTES;
        sections.get(start..start + SECTION_HEADER_BYTES)
    };
    let contents = |section: &[u8]| {
        let length = word(section, 32, 8)?;
        read(
            word(section, 24, 8)?,
            usize::try_from(length).ok().filter(|&it| it < 1 << 24)?,
        )
    };
    let names = contents(section(names)?)?;
    (0..count).filter_map(section).find_map(|section| {
        let at = word(section, 0, 4)? as usize;
        let found = names.get(at..)?.split(|&byte| byte == 0).next()?;
        if found == name {
            contents(section)
        } else {
            None
        }
    })
}

fn missing(sources: &Path) -> Box<Diagnostic> {
    let build = how_to_build(sources);
    LibraryMissing { build }.error()
}

fn stale(library: &Path, built: &str, now: &str, sources: &Path) -> Box<Diagnostic> {
    LibraryStale {
        library: library.display().to_string(),
        built: built.to_owned(),
        now: now.to_owned(),
        build: how_to_build(sources),
    }
    .error()
}

fn no_snapshot(folder: &Path, error: &io::Error) -> Box<Diagnostic> {
    LibraryLinkFailed {
        folder: folder.display().to_string(),
        reason: error.to_string(),
    }
    .error()
}

fn no_view(sources: &Path, sysroot: &Path, error: &io::Error) -> Box<Diagnostic> {
    SourcesUnreadable {
        sources: sources.display().to_string(),
        reason: error.to_string(),
        lacks_standard_library: !view::standard_library::sources(sysroot).is_dir(),
    }
    .error()
}

fn failed(sources: &Path, reason: &str) -> Box<Diagnostic> {
    LibraryBuildFailed {
        reason: reason.to_owned(),
        build: format!("`{BUILD}` in {}", sources.display()),
    }
    .error()
}

/// What to run, where, and how long it takes, to follow "run".
fn how_to_build(sources: &Path) -> String {
    format!("`{BUILD}` in {}, {}", sources.display(), estimate())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_names_the_rustc_that_built_it() {
        // The test itself is such a file.
        let this = std::env::current_exe().expect("has a path");
        let version = rustc_of(&this).expect("a version");
        assert!(version.starts_with("rustc 1."), "{version}");
    }

    #[test]
    fn snapshots_in_use_stay() {
        let all = tempfile::tempdir().expect("a folder");
        let folder = |number: usize| all.path().join(number.to_string());
        let begun = std::time::SystemTime::now();
        for number in 0..SNAPSHOTS + 3 {
            fs::create_dir(folder(number)).expect("makes");
            fs::write(folder(number).join(IN_USE), "").expect("writes");
            let age = std::time::Duration::from_secs(100 - number as u64);
            let open = File::open(folder(number)).expect("opens");
            open.set_modified(begun - age).expect("is ours");
        }
        // Two kernels use the oldest.
        let both = [0, 0].map(|number| use_snapshot(&folder(number)).expect("is free"));
        let count = || fs::read_dir(all.path()).expect("reads").count();
        forget_old_snapshots(all.path());
        assert!(folder(0).exists() && !folder(1).exists() && !folder(2).exists());
        assert_eq!(count(), SNAPSHOTS + 1);
        let [one, other] = both;
        drop(one);
        forget_old_snapshots(all.path());
        assert_eq!(count(), SNAPSHOTS + 1);
        drop(other);
        forget_old_snapshots(all.path());
        assert!(!folder(0).exists());
    }

    #[test]
    fn other_files_have_none() {
        let folder = tempfile::tempdir().expect("a folder");
        for (index, bytes) in [&b""[..], b"\x7fELF", b"no library at all", &[0x7f; 4000]]
            .iter()
            .enumerate()
        {
            let path = folder.path().join(index.to_string());
            std::fs::write(&path, bytes).expect("writes");
            assert_eq!(rustc_of(&path), None);
        }
    }
}
