//! The `stratoscope` command, a file per subcommand.

mod adapters;
mod doctor;
mod explain;
mod install;
mod kernelspec;
mod python;
mod uninstall;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_os::console::warn;

/// Rust notebooks in which one fine-tunes BERT under a distribution strategy.
#[derive(Debug, Parser)]
#[command(name = "stratoscope", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Be the kernel of a notebook; called by Jupyter
    Kernel(KernelArguments),
    /// Build what cells link to, and tell Jupyter of this kernel
    Install(install::InstallArguments),
    /// Take the kernel away from Jupyter again
    Uninstall(uninstall::UninstallArguments),
    /// Check that everything a notebook needs is there
    Doctor(doctor::DoctorArguments),
    /// Execute a notebook without Jupyter and write its outputs into it
    Run(RunArguments),
    /// Explain a code of a diagnostic, such as SC0102, or of an error of rustc, such as E0308
    Explain(explain::ExplainArguments),
    /// The process that runs the cells; started by the kernel
    #[command(hide = true)]
    Cells,
    /// The process that asks the drivers; started by `doctor`
    #[command(hide = true, name = adapters::ROLE)]
    Adapters,
    /// The process that keeps a compiler ready; started by the kernel
    #[command(hide = true)]
    Standby { home: PathBuf },
}

#[derive(Debug, clap::Args)]
struct KernelArguments {
    /// The file by which the front end tells where to listen
    #[arg(long, short = 'f', value_name = "FILE")]
    connection_file: PathBuf,
    /// Listen where other machines can connect, if the connection file says so
    #[arg(long)]
    allow_remote: bool,
}

#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// The notebook (.ipynb, nbformat 4)
    pub notebook: PathBuf,
    /// Write here instead of into the notebook
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Go on after a cell that fails; the exit code is 0 then. A cell that is meant to fail is tagged
    /// `raises-exception`, and with the code that is expected: `expect:SC0101`
    #[arg(long)]
    pub allow_errors: bool,
}

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Kernel(KernelArguments {
            connection_file,
            allow_remote,
        }) => {
            stratoscope_jupyter::serve(&connection_file, allow_remote, stratoscope_evaluator::backend())
        }
        Command::Install(arguments) => install::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Run(arguments) => crate::notebook::run(&arguments, stratoscope_evaluator::backend()),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Adapters => adapters::run(),
        Command::Cells => Ok(stratoscope_evaluator::cell_process::main()),
        Command::Standby { home } => stratoscope_compile::standby::run(&home).map_err(anyhow::Error::from),
    };
    result.unwrap_or_else(|error| {
        // What the user can mend says how, in more than one line.
        match error.downcast_ref::<Box<Diagnostic>>() {
            Some(diagnostic) => {
                let nowhere = Source {
                    text: "",
                    name: "stratoscope",
                };
                warn(&render::plain(diagnostic, &nowhere));
            }
            None => warn(&format!("{error:#}")),
        }
        ExitCode::FAILURE
    })
}
