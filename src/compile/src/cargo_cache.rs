//! The cargo that rust-analyzer calls at the start of a kernel: for the project's folder, its crates and the features of
//! the processor. The real cargo takes ten processes and half a second to give the same output as the last time, so
//! outputs are stored beside the library and used as long as nothing has changed that they depend on. rust-analyzer
//! finds this cargo because it looks in `CARGO_HOME` first.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Output};
use std::time::UNIX_EPOCH;
use std::{fs, str};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::compile_cache;
use super::layout::{self, HOME, in_folder};
use super::settings::DriverSettings;
use crate::compiler;
use stratoscope_os::environment;

/// What `CARGO_HOME` is set to, in the private folder.
const FOLDER: &str = "cargo";
/// The executable in it.
const CARGO: &str = "bin/cargo";
/// Beside the library.
const KEPT: &str = "cargo_cache";

/// What rust-analyzer asks, by words of the command line. A failure of the last is an answer, too: it
/// asks for what stable Rust does not have.
const QUESTIONS: [&[&str]; 5] = [
    &["--version"],
    &["locate-project"],
    &["metadata"],
    &["rustc", "--print"],
    &["config", "get"],
];

/// Makes the folder in the private one.
pub fn install(home: &Path, executable: &Path) -> io::Result<()> {
    let cargo = home.join(FOLDER).join(CARGO);
    fs::create_dir_all(cargo.parent().unwrap_or(home))?;
    symlink(executable, cargo)
}

/// The folder.
pub fn folder(home: &Path) -> PathBuf {
    home.join(FOLDER)
}

/// Runs as that cargo if it was called by its name.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let ours = Path::new(FOLDER).join(CARGO);
    let home = name
        .ends_with(&ours)
        .then(|| name.ancestors().nth(ours.iter().count()))??;
    let settings = DriverSettings::read(home).ok()?;
    let arguments: Vec<OsString> = arguments.collect();
    let result = answer(home, &settings, &arguments);
    Some(result.unwrap_or_else(|error| {
        eprintln!("{}: {error}", name.display());
        ExitCode::FAILURE
    }))
}

/// What cargo has said, with [`HOME`] in place of the private folder.
#[derive(Serialize, Deserialize)]
struct CargoOutput {
    status: u8,
    stdout: String,
    stderr: String,
}

fn answer(home: &Path, settings: &DriverSettings, arguments: &[OsString]) -> io::Result<ExitCode> {
    let file = file_of(home, settings, arguments);
    let known = file.as_ref().and_then(|file| fs::read(file).ok());
    if let Some(answer) = known.and_then(|it| serde_json::from_slice::<CargoOutput>(&it).ok()) {
        io::stdout().write_all(in_folder(&answer.stdout, home).as_bytes())?;
        io::stderr().write_all(in_folder(&answer.stderr, home).as_bytes())?;
        return Ok(ExitCode::from(answer.status));
    }
    // rust-analyzer calls it in the package's folder.
    let package = std::env::current_dir().ok();
    let package = package.filter(|it| it.join("Cargo.toml").is_file());
    let output = compiler::cargo(&settings.toolchain, package.as_deref(), arguments).output()?;
    io::stdout().write_all(&output.stdout)?;
    io::stderr().write_all(&output.stderr)?;
    let status = output.status.code().and_then(|it| u8::try_from(it).ok());
    if let (Some(file), Some(status)) = (file, status)
        && (status == 0 || is_about(arguments, QUESTIONS[QUESTIONS.len() - 1]))
    {
        // What cannot be kept is asked again.
        let _ = keep(&file, home, status, &output);
    }
    Ok(ExitCode::from(status.unwrap_or(1)))
}

fn keep(file: &Path, home: &Path, status: u8, output: &Output) -> io::Result<()> {
    let portable = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).map_err(io::Error::other)?;
        Ok::<_, io::Error>(text.replace(&*home.to_string_lossy(), HOME))
    };
    let answer = CargoOutput {
        status,
        stdout: portable(&output.stdout)?,
        stderr: portable(&output.stderr)?,
    };
    compile_cache::put(&mut &*serde_json::to_vec(&answer)?, file)
}

/// Where the answer is kept, if this is one of the questions: named by all that it depends on.
fn file_of(home: &Path, settings: &DriverSettings, arguments: &[OsString]) -> Option<PathBuf> {
    if !QUESTIONS.iter().any(|words| is_about(arguments, words)) {
        return None;
    }
    let mut hash = Sha256::new();
    for word in arguments {
        hash.update(word.to_str()?.replace(&*home.to_string_lossy(), HOME));
        hash.update([0]);
    }
    hash.update(layout::manifest(home)?);
    hash.update(layout::flags());
    // The view's crates, and the library that it is a view of.
    hash.update(fs::read(settings.view.join(crate::view::MANIFEST_LIST)).ok()?);
    hash.update(serde_json::to_vec(&settings.identity).ok()?);
    let cargo_home = environment::original("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    for name in ["config.toml", "config"] {
        let metadata = cargo_home
            .as_ref()
            .and_then(|it| fs::metadata(it.join(name)).ok());
        let state = metadata.map(|it| {
            let modified = it.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((it.ino(), it.len(), modified.as_nanos()))
        });
        hash.update(format!("{state:?}"));
    }
    let name = compile_cache::name(hash) + ".json";
    Some(settings.kept.join(KEPT).join(name))
}

fn is_about(arguments: &[OsString], words: &[&str]) -> bool {
    words
        .iter()
        .all(|word| arguments.iter().any(|it| it == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rust_analyzer_asks_is_kept() {
        let about = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            QUESTIONS.iter().any(|words| is_about(&arguments, words))
        };
        for line in [
            "--version",
            "metadata --format-version 1",
            "rustc -Z unstable-options --print cfg --target x -- -O",
            "-Z unstable-options config get --format toml",
        ] {
            assert!(about(line), "{line}");
        }
        for line in ["build --target x", "rustc --release", "check", "add serde"] {
            assert!(!about(line), "{line}");
        }
    }
}
