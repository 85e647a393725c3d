//! `stratoscope worker`: a process that computes replicas for a notebook. The library that cells link to does the work; this
//! executable loads it and tells it where the chief is.

use std::path::PathBuf;
use std::process::ExitCode;

use libloading::Library;
use stratoscope_evaluator::cell_process::LIBRARY_VARIABLE;

/// Names the address at which the worker waits; the library reads it.
const LISTEN_VARIABLE: &str = "STRATOSCOPE_WORKER_LISTEN";
/// Names the file with the job's key; the library reads it.
const KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_KEY";
/// Names the file to which a new key is written; the library reads it.
const NEW_KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_NEW_KEY";
/// The function of the library; it returns the exit status.
const FUNCTION: &[u8] = b"stratoscope_worker";

/// A notebook starts workers of its own machine without any argument.
#[derive(Debug, clap::Args)]
pub struct WorkerArguments {
    /// Wait for a notebook at this address, such as 0.0.0.0:2222
    #[arg(long, value_name = "ADDRESS", conflicts_with = "from_environment")]
    listen: Option<String>,
    /// Find the notebook by TF_CONFIG, or by the variables of torchrun, Slurm, Open MPI or MPICH
    #[arg(long)]
    from_environment: bool,
    /// The file with the key of the job, the same on every machine; it is made if it does not exist
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Write a new key to this file, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "from_environment", "key"])]
    new_key: Option<PathBuf>,
}

/// Works until the job is over, or for good with `--listen`.
pub fn run(arguments: &WorkerArguments) -> anyhow::Result<ExitCode> {
    let library = match std::env::var_os(LIBRARY_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => stratoscope_compile::facade::find()?.library().to_owned(),
    };
    // SAFETY: this process has one thread, so that nobody reads the environment meanwhile.
    unsafe {
        if let Some(address) = &arguments.listen {
            std::env::set_var(LISTEN_VARIABLE, address);
        }
        if let Some(key) = &arguments.key {
            std::env::set_var(KEY_VARIABLE, key);
        }
        if let Some(key) = &arguments.new_key {
            std::env::set_var(NEW_KEY_VARIABLE, key);
        }
    }
    // SAFETY: the library's initializers are those of Rust crates, which every cell loads.
    let library = unsafe { Library::new(library) }?;
    // SAFETY: the library defines it with this signature.
    let work = unsafe { library.get::<extern "C" fn() -> i32>(FUNCTION) }?;
    let status = work();
    // Never unloaded: the threads of its devices may still run.
    std::mem::forget(library);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}
