//! The environment that this process was started with. A kernel puts tools of its own in front of
//! others, for evcxr and rust-analyzer to find; whatever else is started has to find what it would find
//! without us.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What a kernel replaces.
const REPLACED: [&str; 2] = ["PATH", "CARGO_HOME"];

/// The folder that this process was started in: the notebook's.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Notes the folder, before anything changes it.
pub fn remember_folder() {
    if let Ok(folder) = std::env::current_dir() {
        let _ = FOLDER.set(folder);
    }
}

/// The notebook's folder, if it was there.
pub fn notebook_folder() -> Option<&'static Path> {
    FOLDER.get().map(PathBuf::as_path)
}

/// A path as the notebook's user means it.
pub fn resolve(path: &str) -> PathBuf {
    notebook_folder().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}

/// Where the value of each is kept. That of `PATH` is there whenever something was replaced.
fn kept(name: &str) -> String {
    format!("STRATOSCOPE_{name}")
}

/// The value of a variable, as it is outside of this kernel.
pub fn original(name: &str) -> Option<OsString> {
    let is_replaced = REPLACED.contains(&name) && std::env::var_os(kept("PATH")).is_some();
    match is_replaced {
        true => std::env::var_os(kept(name)),
        false => std::env::var_os(name),
    }
}

/// Replaces them. May be called again.
///
/// # Safety
/// There are no other threads, or none that reads the environment.
pub unsafe fn replace(path: OsString, cargo_home: OsString) {
    let before = REPLACED.map(|name| (name, original(name)));
    for (name, value) in before {
        match value {
            // SAFETY: the caller's promise.
            Some(value) => unsafe { std::env::set_var(kept(name), value) },
            // SAFETY: as above.
            None if name == "PATH" => unsafe { std::env::set_var(kept(name), "") },
            // SAFETY: as above.
            None => unsafe { std::env::remove_var(kept(name)) },
        }
    }
    for (name, value) in REPLACED.into_iter().zip([path, cargo_home]) {
        // SAFETY: the caller's promise.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Starts the command as it would be started outside.
pub fn clean_env(command: &mut Command) -> &mut Command {
    for name in REPLACED {
        match original(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
        command.env_remove(kept(name));
    }
    command
}
