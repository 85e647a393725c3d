//! `stratoscope worker`: a process that computes replicas for a notebook. The library that cells link to does the work; this
//! executable loads it and tells it where the chief is.

use std::path::PathBuf;
use std::process::ExitCode;

use super::library;

/// Names the address at which the worker waits; the library reads it.
const LISTEN_VARIABLE: &str = "STRATOSCOPE_WORKER_LISTEN";
/// Names the file with the job's key; the library reads it.
const KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_KEY";
/// Names the file to which a new key is written; the library reads it.
const NEW_KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_NEW_KEY";

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
    let variables = [
        (
            LISTEN_VARIABLE,
            arguments.listen.as_deref().map(AsRef::as_ref),
        ),
        (KEY_VARIABLE, arguments.key.as_deref().map(AsRef::as_ref)),
        (
            NEW_KEY_VARIABLE,
            arguments.new_key.as_deref().map(AsRef::as_ref),
        ),
    ];
    library::call(b"stratoscope_worker", &variables)
}
