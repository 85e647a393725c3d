//! `!command` and `%env`: the shell and the environment of the process that runs the cells.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::interrupts;

/// How often it is looked whether the command has ended or the interrupt button was pressed.
const PERIOD: Duration = Duration::from_millis(10);

/// A shell command that did not do what it should.
#[derive(Debug)]
pub enum ShellError {
    /// There is no shell.
    NoShell(std::io::Error),
    /// It ended with another status than 0.
    Failed(ExitStatus),
    /// The interrupt button was pressed; the command was ended.
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

/// Runs a command of the shell; what it prints is the cell's.
///
/// # Errors
/// It does not start, fails, or is interrupted.
pub fn shell(command: &str) -> Result<(), ShellError> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        // A group of its own: what the command starts ends with it.
        .process_group(0);
    if let Some(prefix) = stratoscope_bert::source::python_environment() {
        activate(&prefix, &mut shell);
    }
    let mut child = shell.spawn().map_err(ShellError::NoShell)?;
    // Without it, a command outlives a kernel that is killed.
    let _guard = Guard::of(child.id());
    loop {
        match child.try_wait().map_err(ShellError::NoShell)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(ShellError::Failed(status)),
            None if interrupts::requested() => {
                if let Ok(group) = i32::try_from(child.id()) {
                    // SAFETY: a plain system call; the child has not been waited for, so the
                    // number is still that of its group.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                }
                let _ = child.wait();
                return Err(ShellError::Interrupted);
            }
            None => std::thread::sleep(PERIOD),
        }
    }
}

/// `python` and `pip` are those of the environment in which checkpoints are looked for, so that what a
/// notebook installs is found.
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

/// Ends a group of processes when this process ends, however it does. It is a process that waits for
/// the end of a pipe, which only we hold open; dropping the guard ends that process alone.
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
            // Before its pipe is closed: the group's number may already be another's.
            let _ = waiting.kill();
            let _ = waiting.wait();
        }
    }
}

/// `%env`: prints all variables of the environment, the one that is named, or sets `NAME=VALUE`.
pub fn environment(asked: &str) {
    if let Some((name, value)) = asked.split_once('=') {
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.contains('\0') || value.contains('\0') {
            eprintln!("no variable can be named so");
            return;
        }
        // SAFETY: not sound while another thread reads the environment; as everywhere, it is for
        // whoever writes `%env` to have none that does.
        unsafe { std::env::set_var(name, value) };
        println!("{name}={value}");
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
    fn a_status_is_told() {
        shell("exit 0").expect("a success");
        let error = shell("exit 3").expect_err("a failure");
        assert_eq!(error.to_string(), "the command ended with exit status: 3");
    }
}
