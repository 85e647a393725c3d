//! `stratoscope uninstall`: removes the kernel from Jupyter.

use std::process::ExitCode;
use stratoscope_os::console::say;

use anyhow::{Context, bail};

use super::kernelspec::{self, DEFAULT_NAME, Location};

/// Arguments of `stratoscope uninstall`.
#[derive(Debug, clap::Args)]
pub struct UninstallArguments {
    #[command(flatten)]
    location: Location,
    /// The name of the kernel in Jupyter
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
}

/// Removes the kernel's folder, if it is a stratoscope kernel.
///
/// # Errors
/// There is no such kernel, it is another one, or its folder cannot be removed.
pub fn run(arguments: &UninstallArguments) -> anyhow::Result<ExitCode> {
    let folder = kernelspec::folder(&arguments.location.kernels()?, &arguments.name)?;
    if !folder.exists() {
        bail!(
            "there is no kernel `{}` in {}; was it installed with `--sys-prefix` or `--prefix`?",
            arguments.name,
            folder.parent().unwrap_or(&folder).display()
        );
    }
    if !kernelspec::is_ours(&folder) {
        bail!(
            "{} belongs to another kernel and is not removed",
            folder.display()
        );
    }
    std::fs::remove_dir_all(&folder)
        .with_context(|| format!("cannot remove {}", folder.display()))?;
    say(&format!("removed {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}
