//! The `stratoscope` command, a file per subcommand.

mod adapters;
mod cuda;
mod default_device;
mod doctor;
mod explain;
mod fetch_compiler;
mod install;
mod kernelspec;
mod labextension;
mod library;
mod new;
mod package;
mod package_installed;
mod python;
mod translate;
mod uninstall;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_os::console::warn;

use crate::notebook::RunArguments;

/// A Jupyter kernel for Rust that fine-tunes BERT under a distribution strategy.
#[derive(Debug, Parser)]
#[command(name = "stratoscope", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a kernel; called by Jupyter
    Kernel(KernelArguments),
    /// Install the kernel into Jupyter; builds the library that cells link to if it is missing
    Install(install::InstallArguments),
    /// Remove the kernel from Jupyter
    Uninstall(uninstall::UninstallArguments),
    /// Make the Python wheel that installs the kernel without a build
    Package(package::PackageArguments),
    /// Check the installation: toolchain, library, drivers, Python, Jupyter
    Doctor(doctor::DoctorArguments),
    /// Execute a notebook without Jupyter and write the executed copy
    Run(RunArguments),
    /// Explain the code of a diagnostic (SC0102) or of a rustc error (E0308)
    Explain(explain::ExplainArguments),
    /// Translate a Python file or notebook into cells
    Translate(translate::TranslateArguments),
    /// Make a project of cargo from the cells of a notebook
    New(new::NewArguments),
    /// Compute replicas of a `MultiWorkerMirroredStrategy` for a notebook on another machine
    Worker(worker::WorkerArguments),
    /// Run cells; started by the kernel
    #[command(hide = true)]
    Cells,
    /// List the GPUs; started by `doctor`
    #[command(hide = true, name = adapters::ROLE)]
    Adapters,
    /// Print the default device; started by `doctor`
    #[command(hide = true, name = default_device::ROLE)]
    DefaultDevice {
        library: PathBuf,
        /// Compare it with the processor instead
        #[arg(long)]
        parity: bool,
    },
    /// Check what CUDA needs; started by `doctor --cuda`
    #[command(hide = true, name = cuda::ROLE)]
    CudaCheck,
    /// Keep a compiler ready; started by the kernel
    #[command(hide = true)]
    Standby { home: PathBuf },
}

#[derive(Debug, clap::Args)]
struct KernelArguments {
    /// The connection file of the front end
    #[arg(long, short = 'f', value_name = "FILE")]
    connection_file: PathBuf,
    /// Allow the connection file to name an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
}

/// Runs the subcommand of the command line.
pub fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Kernel(KernelArguments {
            connection_file,
            allow_remote,
        }) => stratoscope_jupyter::serve(
            &connection_file,
            allow_remote,
            stratoscope_evaluator::backend(),
        ),
        Command::Install(arguments) => install::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Package(arguments) => package::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Run(arguments) => {
            crate::notebook::run(&arguments, stratoscope_evaluator::backend())
        }
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Translate(arguments) => translate::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Adapters => adapters::run(),
        Command::Worker(arguments) => worker::run(&arguments),
        Command::DefaultDevice { library, parity } => default_device::run(&library, parity),
        Command::CudaCheck => cuda::run(),
        Command::Cells => Ok(stratoscope_evaluator::cell_process::main()),
        Command::Standby { home } => {
            stratoscope_compile::standby_process::run(&home).map_err(anyhow::Error::from)
        }
    };
    result.unwrap_or_else(|error| {
        // A diagnostic says how to fix it, in several lines.
        match error.downcast_ref::<Box<Diagnostic>>() {
            Some(diagnostic) => {
                let source = Source {
                    text: "",
                    name: "stratoscope",
                };
                warn(&render::plain(diagnostic, &source));
            }
            None => warn(&format!("{error:#}")),
        }
        ExitCode::FAILURE
    })
}
