//! The compiler of a wheel, which `stratoscope install` fetches with rustup if the user agrees. Without rustup it runs rustup's own
//! installer, as <https://rustup.rs> shows it; the user's default compiler and the files of his shell stay as they are.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use stratoscope_compile::compiler;
use stratoscope_os::console::say;
use stratoscope_os::environment;
use stratoscope_package::contents::Contents;

/// The address of rustup's installer, a shell script.
const INSTALLER: &str = "https://sh.rustup.rs";
/// What is downloaded, and what it takes on the disk, of Rust 1.95.
const COST: &str = "about 120 MB to download, 600 MB on the disk";

/// How the compiler is fetched.
enum Way {
    /// With rustup, which is installed.
    Rustup(PathBuf),
    /// With rustup's installer.
    Installer,
}

/// Fetches the compiler of the wheel if it is missing and the user has agreed: by the option (`has_agreed`), or by his answer in a
/// terminal. Without his agreement nothing happens; the caller reports what is missing.
///
/// # Errors
/// rustup or its installer cannot be run or fails, or does not bring the compiler.
pub fn fetch(contents: &Contents, has_agreed: bool) -> anyhow::Result<()> {
    if compiler::of_version(&contents.rustc).is_some() {
        return Ok(());
    }
    let way = rustup().map_or(Way::Installer, Way::Rustup);
    let line = match &way {
        Way::Rustup(_) => rustup_line(contents),
        Way::Installer => format!(
            "curl {} {INSTALLER} | sh -s -- {}",
            CURL.join(" "),
            installer_arguments(contents).join(" ")
        ),
    };
    if !has_agreed && !agrees(&contents.rustc, &line)? {
        return Ok(());
    }
    say(&format!("running `{line}`: {COST}"));
    match way {
        Way::Rustup(rustup) => run_rustup(&rustup, contents)?,
        Way::Installer => run_installer(contents)?,
    }
    if compiler::of_version(&contents.rustc).is_none() {
        bail!(
            "`{line}` ended well, but {} is not among rustup's toolchains",
            contents.rustc
        );
    }
    Ok(())
}

/// Asks in a terminal; elsewhere nobody agrees.
fn agrees(rustc: &str, line: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(false);
    }
    let mut output = io::stdout();
    write!(
        output,
        "The library of this package needs {rustc}, which is not installed.\n\
         This command installs it beside your default compiler, {COST}:\n\n    {line}\n\nRun it now? [y/N] "
    )?;
    output.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// rustup, on PATH or where its installer puts it.
fn rustup() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(home.map(|home| home.join("bin")))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("rustup"))
        .find(|program| program.is_file())
}

/// The command of the diagnostics; besides, rustup stays as it is.
fn rustup_line(contents: &Contents) -> String {
    format!("{} --no-self-update", contents.rustup())
}

fn run_rustup(rustup: &Path, contents: &Contents) -> anyhow::Result<()> {
    let line = rustup_line(contents);
    let mut command = Command::new(rustup);
    command.args(line.split(' ').skip(1));
    let status = environment::clean_env(&mut command)
        .current_dir(compiler::ROOT)
        .status()
        .with_context(|| format!("{} does not start", rustup.display()))?;
    if !status.success() {
        bail!("`{line}` failed, {status}");
    }
    Ok(())
}

const CURL: [&str; 6] = [
    "--proto",
    "=https",
    "--tlsv1.2",
    "--fail",
    "--silent",
    "--show-error",
];

fn installer_arguments(contents: &Contents) -> [String; 6] {
    [
        "-y",
        "--no-modify-path",
        "--profile",
        "minimal",
        "--default-toolchain",
        &contents.release(),
    ]
    .map(str::to_owned)
}

/// Downloads the installer as a whole and runs it then.
fn run_installer(contents: &Contents) -> anyhow::Result<()> {
    let mut command = Command::new("curl");
    let downloaded = environment::clean_env(&mut command)
        .args(CURL)
        .arg(INSTALLER)
        .stderr(Stdio::inherit())
        .output()
        .context("curl does not start; install it, or rustup from https://rustup.rs")?;
    if !downloaded.status.success() {
        bail!("{INSTALLER} could not be downloaded");
    }
    let mut command = Command::new("sh");
    let mut installer = environment::clean_env(&mut command)
        .args(["-s", "--"])
        .args(installer_arguments(contents))
        .current_dir(compiler::ROOT)
        .stdin(Stdio::piped())
        .spawn()
        .context("sh does not start")?;
    if let Some(mut input) = installer.stdin.take() {
        input.write_all(&downloaded.stdout)?;
    }
    let status = installer.wait()?;
    if !status.success() {
        bail!("rustup's installer failed, {status}");
    }
    Ok(())
}
