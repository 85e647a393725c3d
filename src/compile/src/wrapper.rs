//! This executable as rustc's wrapper: cargo calls it as `stratoscope-rustc RUSTC ARGUMENTS…` for
//! everything that evcxr builds. It gives the two halves of evcxr different views of one facade.
//!
//! - The crates of the view (see [`crate::view`]) exist for rust-analyzer. They are not compiled:
//!   cargo gets empty files in the places where it expects their outputs.
//! - `ctx`, the cell, is compiled against the real facade: `--extern stratoscope=…` names the
//!   prebuilt library and `-L` its dependencies. A few lines that evcxr generates around a cell
//!   are replaced by calls into the facade ([`generated`]); the cell's own lines keep their
//!   place and columns.
//! - Everything else, such as the crates of `:dep` and cargo's probes, is rustc's own business.
//!
//! It runs once a cell: nothing here may be slow. Where it finds its settings: beside the symbolic
//! link through which it is called (see [`Settings`]).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::attempts::Attempts;
use super::state::State;
use super::{rustc_json, toolchain};

/// The name under which cargo calls this executable.
pub const NAME: &str = "stratoscope-rustc";

/// The name of evcxr's crate for cells.
pub const CELL_CRATE: &str = "ctx";

/// What the wrapper has to know, written by the kernel as JSON beside the symbolic link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The prebuilt facade.
    pub library: PathBuf,
    /// The folder of its dependencies' metadata.
    pub dependencies: PathBuf,
    /// The folder of the view's crates.
    pub view: PathBuf,
    /// What rustc takes for its own folder when it compiles a cell (see [`sysroot`]).
    pub sysroot: PathBuf,
    /// Which file the facade was when the kernel started.
    pub identity: Identity,
    /// The compiler that built the facade.
    pub rustc: PathBuf,
    /// The folder of that compiler, with its cargo.
    pub toolchain: PathBuf,
}

/// Why a cell cannot be compiled.
pub enum Problem {
    /// The facade was rebuilt: an error in the form in which rustc reports its own.
    Replaced(serde_json::Value),
    /// A file cannot be read or written.
    Io(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Tells whether a file was replaced: a cell that is compiled against another facade than the one
/// that is loaded would crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

impl Identity {
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

impl Settings {
    const FILE: &str = "wrapper.json";

    /// Writes the settings and the link into `folder`; returns the link.
    pub fn install(&self, folder: &Path, executable: &Path) -> io::Result<PathBuf> {
        fs::write(folder.join(Self::FILE), serde_json::to_vec(self)?)?;
        let link = folder.join(NAME);
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

/// Runs as the wrapper if that is the name it was called by.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let link = PathBuf::from(arguments.next()?);
    if link.file_name()? != NAME {
        return None;
    }
    let rustc = arguments.next()?;
    Some(match wrap(&link, &rustc, arguments.collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{NAME}: {error}");
            ExitCode::FAILURE
        }
    })
}

fn wrap(link: &Path, rustc: &OsStr, mut arguments: Vec<OsString>) -> io::Result<ExitCode> {
    match value_of(&arguments, "--crate-name").and_then(OsStr::to_str) {
        None | Some("___") => {}
        Some(name) => {
            let home = link.parent().unwrap_or(Path::new("."));
            let settings = Settings::read(home)?;
            let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
            if Path::new(&manifest).starts_with(&settings.view) {
                pretend(name, &arguments, Path::new(&manifest))?;
                return Ok(ExitCode::SUCCESS);
            }
            if name != CELL_CRATE {
                State::note_crate(home, name);
            }
            if name == CELL_CRATE {
                toolchain::note(&settings, home, rustc, &arguments);
                match prepare_cell(&settings, &mut arguments) {
                    Ok(source) => return compile_cell(home, rustc, &arguments, source.as_deref()),
                    Err(Problem::Replaced(error)) => {
                        eprintln!("{error}");
                        return Ok(ExitCode::FAILURE);
                    }
                    Err(Problem::Io(error)) => return Err(error),
                }
            }
        }
    }
    Err(Command::new(rustc).args(arguments).exec())
}

/// Runs rustc, passes on what it says, and leaves its warnings.
fn compile_cell(
    home: &Path,
    rustc: &OsStr,
    arguments: &[OsString],
    source: Option<&Path>,
) -> io::Result<ExitCode> {
    // evcxr takes whatever it hears of a check for an error.
    let is_check = arguments.iter().any(|it| it == toolchain::EMIT_OF_CHECK);
    let mut attempts = source.map(|it| Attempts::begin(home, it)).transpose()?;
    let (status, messages) = loop {
        let mut command = Command::new(rustc);
        command.args(arguments).stderr(Stdio::piped());
        let mut rustc = stratoscope_os::process::die_with_parent(&mut command).spawn()?;
        let mut messages = String::new();
        let status = toolchain::listen(&mut rustc, |line| {
            messages += line;
            messages.push('\n');
            Ok(())
        })?;
        let is_refused = status.code().is_some() && !status.success();
        let goes_on = match &mut attempts {
            Some(attempts) if is_refused => attempts.again(&messages)?,
            _ => false,
        };
        if !goes_on {
            break (status, messages);
        }
    };
    for line in messages.lines() {
        if !is_check || !rustc_json::is_warning(line) {
            match &attempts {
                Some(attempts) => eprintln!("{}", attempts.as_of_evcxr(line)),
                None => eprintln!("{line}"),
            }
        }
    }
    if status.success() {
        State::leave_warnings(home, &rustc_json::warnings(&messages));
        return Ok(ExitCode::SUCCESS);
    }
    // cargo tells a compiler that was killed from one that refuses.
    match (status.code(), status.signal()) {
        (_, Some(signal)) => {
            // SAFETY: plain system calls on our own process.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            Ok(ExitCode::FAILURE)
        }
        (code, None) => Ok(ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))),
    }
}

/// Points `ctx` at the real facade. Returns its source.
pub fn prepare_cell(
    settings: &Settings,
    arguments: &mut Vec<OsString>,
) -> Result<Option<PathBuf>, Problem> {
    if Identity::of(&settings.library).ok() != Some(settings.identity) {
        return Err(Problem::Replaced(as_rustc_says(
            "the facade was rebuilt while this kernel was running: restart the kernel",
        )));
    }
    against_the_facade(settings, arguments);
    let source = arguments.iter().find(|argument| {
        let path = Path::new(argument);
        path.extension() == Some(OsStr::new("rs")) && path.is_file()
    });
    Ok(source.map(PathBuf::from))
}

/// Names the prebuilt facade in place of the view's.
pub fn against_the_facade(settings: &Settings, arguments: &mut Vec<OsString>) {
    for index in 1..arguments.len() {
        let is_facade = arguments[index - 1] == "--extern"
            && arguments[index]
                .to_string_lossy()
                .starts_with("stratoscope=");
        if is_facade {
            arguments[index] = named("stratoscope=", &settings.library);
        }
    }
    arguments.retain(|argument| argument != "-Cprefer-dynamic");
    // A notebook is where people want to be told. The facade stays as it was built.
    arguments.push("-Coverflow-checks=on".into());
    arguments.push("-Cdebug-assertions=on".into());
    arguments.push("--sysroot".into());
    arguments.push(settings.sysroot.clone().into());
    arguments.push("-L".into());
    arguments.push(named("dependency=", &settings.dependencies));
}

fn named(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

/// Makes, in `folder`, what rustc takes for its own folder when it compiles a cell: the real one
/// without the shared standard library. The facade holds the standard library already, and there
/// must be one; rustc would link cells to the shared one wherever it finds it, and then refuse.
pub fn sysroot(real: &Path, folder: &Path) -> io::Result<()> {
    let targets = Path::new("lib/rustlib");
    for entry in fs::read_dir(real.join(targets))?.flatten() {
        let libraries = entry.path().join("lib");
        if !libraries.is_dir() {
            continue;
        }
        let target = folder.join(targets).join(entry.file_name());
        fs::create_dir_all(target.join("lib"))?;
        for library in fs::read_dir(&libraries)?.flatten() {
            let name = library.file_name();
            if Path::new(&name).extension() != Some(OsStr::new("so")) {
                symlink(library.path(), target.join("lib").join(name))?;
            }
        }
        // The linker that comes with rustc.
        let tools = entry.path().join("bin");
        if tools.is_dir() {
            symlink(tools, target.join("bin"))?;
        }
    }
    Ok(())
}

/// Gives cargo what it expects of a crate that nobody compiles: files, and on standard error the
/// message that lets dependents start.
fn pretend(name: &str, arguments: &[OsString], manifest: &Path) -> io::Result<()> {
    let (Some(folder), Some(emit)) = (
        value_of(arguments, "--out-dir"),
        arguments
            .iter()
            .find_map(|argument| argument.to_str()?.strip_prefix("--emit=")),
    ) else {
        return Ok(());
    };
    let extra = codegen_option(arguments, "extra-filename").unwrap_or_default();
    let folder = Path::new(folder);
    let metadata = folder.join(format!("lib{name}{extra}.rmeta"));
    let library = folder.join(format!("lib{name}{extra}.rlib"));
    for kind in emit.split(',') {
        match kind {
            "dep-info" => {
                let info = folder.join(format!("{name}{extra}.d"));
                let source = manifest.join("Cargo.toml");
                let rule = format!("{}: {}\n", info.display(), source.display());
                fs::write(info, rule)?;
            }
            "metadata" => artifact(&metadata, kind)?,
            "link" => artifact(&library, kind)?,
            _ => {}
        }
    }
    Ok(())
}

fn artifact(path: &Path, kind: &str) -> io::Result<()> {
    fs::write(path, "")?;
    let message = serde_json::json!({
        "$message_type": "artifact", "artifact": path, "emit": kind,
    });
    writeln!(io::stderr(), "{message}")
}

/// An error in the form in which rustc reports its own.
fn as_rustc_says(message: &str) -> serde_json::Value {
    serde_json::json!({
        "$message_type": "diagnostic", "message": message, "code": null, "level": "error",
        "spans": [], "children": [], "rendered": format!("error: {message}\n"),
    })
}

/// What stands behind `name`.
pub fn value_of<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsStr> {
    let position = arguments.iter().position(|argument| argument == name)?;
    arguments.get(position + 1).map(OsString::as_os_str)
}

/// What `-C name=` sets.
pub fn codegen_option<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a str> {
    arguments.windows(2).find_map(|pair| {
        let option = pair[1].to_str()?.strip_prefix(name)?.strip_prefix('=')?;
        (pair[0] == "-C").then_some(option)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_of_the_view_leaves_what_cargo_expects() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().as_os_str();
        let arguments: Vec<OsString> = [
            "--crate-name",
            "burn",
            "--emit=dep-info,metadata,link",
            "-C",
            "extra-filename=-12",
            "--out-dir",
        ]
        .map(OsString::from)
        .into_iter()
        .chain([out.to_owned()])
        .collect();
        pretend("burn", &arguments, folder.path()).expect("writes");
        for file in ["libburn-12.rmeta", "libburn-12.rlib", "burn-12.d"] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn a_replaced_library_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("library");
        fs::write(&path, "1").expect("writes");
        let before = Identity::of(&path).expect("is there");
        assert_eq!(Identity::of(&path).expect("is there"), before);
        fs::write(&path, "22").expect("writes");
        assert_ne!(Identity::of(&path).expect("is there"), before);
    }
}
