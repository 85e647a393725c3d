//! The Rust compiler of the cells: the one that built the library, since no other can read it.
//!
//! rustup's proxies and cargo read configuration in the folder in which they are called and in every folder above it,
//! and a notebook's folder or the system's temporary folder may hold files of another user: a `rust-toolchain.toml`
//! names a program to run, a `.cargo/config.toml` a linker. So the compiler is called by its path, and [`cargo`] starts
//! cargo in the root folder, which belongs to the administrator. The user's own configuration in `CARGO_HOME` is read as
//! usual.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use stratoscope_os::environment;

/// Where the rustc lies that built this executable, and the library with it (`build.rs`).
const RECORDED: &str = env!("STRATOSCOPE_SYSROOT");

/// Where tools are called that read configuration in the folder they are called in.
pub const ROOT: &str = "/";

/// More toolchains than anybody has.
const MOST_TOOLCHAINS: usize = 64;

/// A compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// `rustc 1.95.0 (59807616e 2026-04-14)`
    pub version: String,
    /// Its folder.
    pub sysroot: PathBuf,
}

impl Compiler {
    /// The compiler in this folder, if there is one that works.
    fn at(sysroot: &Path) -> Option<Self> {
        let version = said(Command::new(rustc_of(sysroot)).arg("--version"))?;
        Some(Self {
            version,
            sysroot: sysroot.to_owned(),
        })
    }
}

/// The compiler of this version: the recorded one, else one of rustup's toolchains, else that of PATH.
pub fn of_version(version: &str) -> Option<Compiler> {
    candidates().find(|compiler| compiler.version == version)
}

/// The compiler that built this executable, or any other.
pub fn any() -> Option<Compiler> {
    candidates().next()
}

fn candidates() -> impl Iterator<Item = Compiler> {
    let recorded = Some(PathBuf::from(RECORDED)).filter(|it| it.is_absolute());
    // Asked one after the other, and only as far as needed.
    recorded
        .into_iter()
        .chain(std::iter::once_with(toolchains).flatten())
        .chain(std::iter::once_with(on_path).flatten())
        .filter_map(|sysroot| Compiler::at(&sysroot))
}

/// The folders of rustup's toolchains.
fn toolchains() -> Vec<PathBuf> {
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".rustup")));
    let entries = home.and_then(|home| std::fs::read_dir(home.join("toolchains")).ok());
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .take(MOST_TOOLCHAINS)
        .collect();
    folders.sort();
    folders
}

/// The folder of the compiler that PATH finds.
fn on_path() -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    environment::clean_env(&mut rustc).current_dir(ROOT);
    said(rustc.args(["--print", "sysroot"])).map(PathBuf::from)
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// What the compiler answers, if it can be asked.
pub fn says(arguments: &[&str]) -> Option<String> {
    said(Command::new(rustc_of(&any()?.sysroot)).args(arguments))
}

/// The compiler in a folder.
pub fn rustc_of(sysroot: &Path) -> PathBuf {
    sysroot.join("bin/rustc")
}

/// The cargo beside it, else that of PATH.
pub fn cargo_of(sysroot: &Path) -> PathBuf {
    let beside = sysroot.join("bin/cargo");
    match beside.is_file() {
        true => beside,
        false => PathBuf::from("cargo"),
    }
}

/// The commands of cargo that are about a package.
const ABOUT_A_PACKAGE: [&str; 6] = ["build", "check", "clean", "metadata", "rustc", "tree"];

/// cargo with these arguments, about the package in `folder`, with the compiler of `sysroot`; no
/// configuration is read but the user's own and that of the package itself.
pub fn cargo(sysroot: &Path, folder: Option<&Path>, arguments: &[OsString]) -> Command {
    let mut command = Command::new(cargo_of(sysroot));
    environment::clean_env(&mut command)
        .current_dir(ROOT)
        .env("RUSTC", rustc_of(sysroot))
        // For what asks one of rustup's proxies nevertheless, such as a crate's build script.
        .env("RUSTUP_TOOLCHAIN", sysroot);
    if let Some(folder) = folder {
        // They may be relative to the folder that cargo is called in.
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"] {
            if let Some(value) = std::env::var_os(name).filter(|it| !it.is_empty()) {
                command.env(name, folder.join(value));
            }
        }
    }
    command.args(about(folder, arguments));
    command
}

/// The arguments, with the package's manifest and configuration where they have none.
fn about(folder: Option<&Path>, arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let is_manifest = |word: &OsString| word.to_string_lossy().starts_with("--manifest-path");
    let Some(folder) = folder.filter(|_| !arguments.iter().any(is_manifest)) else {
        return arguments;
    };
    let is_command = |word: &OsString| ABOUT_A_PACKAGE.iter().any(|it| word == OsStr::new(it));
    let Some(position) = arguments.iter().position(is_command) else {
        return arguments;
    };
    let mut more = vec!["--manifest-path".into(), folder.join("Cargo.toml").into()];
    let configuration = folder.join(".cargo/config.toml");
    if configuration.is_file() {
        more.extend(["--config".into(), configuration.into()]);
    }
    arguments.splice(position + 1..position + 1, more);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_of_this_build_is_recorded() {
        let compiler = Compiler::at(Path::new(RECORDED)).expect("is there");
        assert!(
            compiler.version.starts_with("rustc 1."),
            "{}",
            compiler.version
        );
        assert_eq!(of_version(&compiler.version).as_ref(), Some(&compiler));
        assert_eq!(of_version("rustc 0.1.0 (no such)"), None);
    }

    #[test]
    fn cargo_is_given_the_manifest_because_it_is_called_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::fs::create_dir(folder.join(".cargo")).expect("makes");
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let check = |line: &str, expected: &str| {
            let found = about(Some(folder), &words(line));
            let expected = expected.replace('@', folder.to_str().expect("is text"));
            assert_eq!(found, words(&expected), "{line}");
        };
        check(
            "--offline build -q",
            "--offline build --manifest-path @/Cargo.toml -q",
        );
        check("rustc -- -O", "rustc --manifest-path @/Cargo.toml -- -O");
        let named = "metadata --manifest-path /x/Cargo.toml";
        check(named, named);
        check("--version", "--version");
        check("config get", "config get");
        std::fs::write(folder.join(".cargo/config.toml"), "").expect("writes");
        check(
            "check",
            "check --manifest-path @/Cargo.toml --config @/.cargo/config.toml",
        );
    }
}
