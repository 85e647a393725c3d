//! The environment that this process was started with. The kernel puts tools of its own at the front of `PATH`, for evcxr
//! and rust-analyzer; every other program that it starts gets the original environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variables that a kernel replaces.
const REPLACED: [&str; 2] = ["PATH", "CARGO_HOME"];

/// The variables that name tools of Rust. rust-analyzer, cargo and rustup prefer what they name to the compiler that built the
/// library of the cells, which alone can read it: only the cells see them.
const TOOLS: [&str; 5] = [
    "CARGO",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTUP_TOOLCHAIN",
];

/// The folder that this process was started in, which is the notebook's.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Records the current folder, before anything changes it.
pub fn remember_folder() {
    if let Ok(folder) = std::env::current_dir() {
        let _ = FOLDER.set(folder);
    }
}

/// The notebook's folder, if it existed at the start.
pub fn notebook_folder() -> Option<&'static Path> {
    FOLDER.get().map(PathBuf::as_path)
}

/// Resolves a path relative to the notebook's folder.
pub fn resolve(path: &str) -> PathBuf {
    notebook_folder().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}

/// The variable that holds the original value. That of `PATH` is set whenever something was replaced.
fn backup(name: &str) -> String {
    format!("STRATOSCOPE_{name}")
}

/// The original value of a variable, as it is outside of this kernel.
pub fn original(name: &str) -> Option<OsString> {
    let is_replaced = REPLACED.contains(&name) && std::env::var_os(backup("PATH")).is_some();
    match is_replaced {
        true => std::env::var_os(backup(name)),
        false => std::env::var_os(name),
    }
}

/// Replaces `PATH` and `CARGO_HOME`, and puts the variables of tools aside. May be called again.
///
/// # Safety
/// No other thread may read or change the environment during the call.
pub unsafe fn replace(path: OsString, cargo_home: OsString) {
    let before = REPLACED.map(|name| (name, original(name)));
    for (name, value) in before {
        match value {
            // SAFETY: the caller guarantees that no other thread uses the environment.
            Some(value) => unsafe { std::env::set_var(backup(name), value) },
            // SAFETY: as above.
            None if name == "PATH" => unsafe { std::env::set_var(backup(name), "") },
            // SAFETY: as above.
            None => unsafe { std::env::remove_var(backup(name)) },
        }
    }
    for (name, value) in REPLACED.into_iter().zip([path, cargo_home]) {
        // SAFETY: the caller guarantees that no other thread uses the environment.
        unsafe { std::env::set_var(name, value) };
    }
    for name in TOOLS {
        if let Some(value) = std::env::var_os(name) {
            // SAFETY: the caller guarantees that no other thread uses the environment.
            unsafe {
                std::env::set_var(backup(name), value);
                std::env::remove_var(name);
            }
        }
    }
}

/// Gives the command the variables of tools that were put aside, as the user has set them.
pub fn give_tools_back(command: &mut Command) -> &mut Command {
    for name in TOOLS {
        if let Some(value) = std::env::var_os(backup(name)) {
            command.env(name, value).env_remove(backup(name));
        }
    }
    command
}

/// Gives the command the original environment.
pub fn clean_env(command: &mut Command) -> &mut Command {
    for name in REPLACED {
        match original(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
        command.env_remove(backup(name));
    }
    command
}
