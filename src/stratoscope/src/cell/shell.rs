//! `!command` and `%env`: the shell and the environment of the process that runs the cells.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use stratoscope_strategy::device::choice;

use super::interrupts;

/// How often a running command is checked: whether it has ended, whether an interrupt was requested.
const PERIOD: Duration = Duration::from_millis(10);

/// Why a shell command failed.
#[derive(Debug)]
pub enum ShellError {
    /// There is no shell.
    NoShell(std::io::Error),
    /// It ended with a status other than 0.
    Failed(ExitStatus),
    /// An interrupt was requested; the command was ended.
    Interrupted,
}

impl fmt::Display for ShellError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShell(error) => write!(out, "the shell cannot be started: {error}"),
            Self::Failed(status) => write!(out, "the command ended with {status}"),
            Self::Interrupted => out.write_str("the command was interrupted"),
        }
    }
}

impl std::error::Error for ShellError {}

/// `%cd`: changes the folder of the process, and shows the new one. Without a path it is the home folder.
///
/// # Errors
/// There is no such folder.
pub fn change_folder(path: &str) -> Result<(), String> {
    let home = || std::env::var("HOME").unwrap_or_default();
    let path = path.trim_matches(['"', '\'']);
    let wanted = match path.strip_prefix('~') {
        Some(rest) => home() + rest,
        None if path.is_empty() => home(),
        None => path.to_owned(),
    };
    let now = std::env::set_current_dir(&wanted).and_then(|()| std::env::current_dir());
    let now =
        now.map_err(|error| format!("the folder cannot be changed to `{wanted}`: {error}"))?;
    println!("{}", now.display());
    Ok(())
}

/// Runs a shell command; its output is output of the cell.
///
/// # Errors
/// If it does not start, fails, or is interrupted.
pub fn shell(command: &str) -> Result<(), ShellError> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        // A process group of its own: processes that the command starts end with it.
        .process_group(0);
    if let Some(prefix) = stratoscope_bert::source::python_environment() {
        activate(&prefix, &mut shell);
    }
    let mut child = shell.spawn().map_err(ShellError::NoShell)?;
    // Otherwise the command would go on after the kernel is killed.
    let _guard = Guard::of(child.id());
    loop {
        match child.try_wait().map_err(ShellError::NoShell)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(ShellError::Failed(status)),
            None if interrupts::requested() => {
                if let Ok(group) = i32::try_from(child.id()) {
                    // SAFETY: `kill` accesses no memory of ours. The child has not been waited for, so
                    // the number is still that of its group.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                }
                let _ = child.wait();
                return Err(ShellError::Interrupted);
            }
            None => std::thread::sleep(PERIOD),
        }
    }
}

/// Activates the Python environment in which checkpoints are looked for, so that a notebook finds what its `pip`
/// installs.
fn activate(prefix: &Path, command: &mut Command) {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(prefix.join("bin")).chain(std::env::split_paths(&folders));
    if let Ok(folders) = std::env::join_paths(folders) {
        command.env("PATH", folders);
    }
    if prefix.join("pyvenv.cfg").is_file() {
        command.env("VIRTUAL_ENV", prefix);
    }
}

/// Ends a process group when this process ends for any reason. The guard is a process that waits for the end of a pipe,
/// which only this process holds open. Dropping the guard ends the waiting process only.
struct Guard(Option<Child>);

impl Guard {
    fn of(group: u32) -> Self {
        let script = format!("read -r _; kill -s KILL -- -{group}");
        let started = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Self(started.ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.0.take() {
            // Before its pipe is closed: the group's number may be in use again.
            let _ = waiting.kill();
            let _ = waiting.wait();
        }
    }
}

/// `%env`: prints all environment variables or the named one, or sets `NAME=VALUE`.
pub fn environment(asked: &str) {
    if let Some((name, value)) = asked.split_once('=') {
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.contains('\0') || value.contains('\0') {
            eprintln!("not a valid name or value of a variable: `{asked}`");
            return;
        }
        // SAFETY: no other thread may access the environment without std's lock. Code of this project accesses it
        // through `std::env` only; a user who writes `%env` is responsible for C code that the cells call.
        unsafe { std::env::set_var(name, value) };
        println!("{name}={value}");
        if name == choice::VARIABLE {
            // The next use of the default device decides anew.
            choice::reconsider();
        }
    } else if let Some((name, value)) = asked.split_once(char::is_whitespace) {
        // As in IPython: `%env NAME value`.
        environment(&format!("{name}={}", value.trim()));
    } else if asked.is_empty() {
        for (name, value) in std::env::vars_os() {
            println!("{}={}", name.to_string_lossy(), value.to_string_lossy());
        }
    } else {
        match std::env::var_os(asked) {
            Some(value) => println!("{}", value.to_string_lossy()),
            None => eprintln!("{asked} is not set"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_reported() {
        shell("exit 0").expect("a success");
        let error = shell("exit 3").expect_err("a failure");
        assert_eq!(error.to_string(), "the command ended with exit status: 3");
    }
}
