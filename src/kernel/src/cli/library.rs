//! What the library that cells link to does for a subcommand: it has the devices and the networks, this executable has not.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use libloading::Library;
use stratoscope_evaluator::cell_process::LIBRARY_VARIABLE;

/// Calls a function of the library, which returns the exit status and reads what it needs from these variables of the
/// environment.
pub fn call(function: &[u8], variables: &[(&str, Option<&OsStr>)]) -> anyhow::Result<ExitCode> {
    let library = match std::env::var_os(LIBRARY_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => stratoscope_compile::facade::find()?.library().to_owned(),
    };
    for (name, value) in variables {
        if let Some(value) = value {
            // SAFETY: this process has one thread, so that nobody reads the environment meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    }
    // SAFETY: the library's initializers are those of Rust crates, which every cell loads.
    let library = unsafe { Library::new(library) }?;
    // SAFETY: the library defines it with this signature.
    let work = unsafe { library.get::<extern "C" fn() -> i32>(function) }?;
    let status = work();
    // Never unloaded: the threads of its devices may still run.
    std::mem::forget(library);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}
