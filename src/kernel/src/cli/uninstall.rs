//! `stratoscope uninstall`: removes the kernel from Jupyter.

use std::process::ExitCode;
use stratoscope_os::console::say;

use anyhow::{Context, bail};
use stratoscope_compile::packaged;

use super::kernelspec::{self, DEFAULT_NAME, Location};
use super::labextension;
use super::{package_installed, python};

/// Arguments of `stratoscope uninstall`.
#[derive(Debug, clap::Args)]
pub struct UninstallArguments {
    #[command(flatten)]
    location: Location,
    /// The name of the kernel in Jupyter
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
}

/// Removes the kernel's folder, if it is a stratoscope kernel, and after the last one the extension for JupyterLab.
///
/// # Errors
/// There is no such kernel, it is another one, or its folder cannot be removed.
pub fn run(arguments: &UninstallArguments) -> anyhow::Result<ExitCode> {
    let package = packaged::here();
    let location = match package {
        Some(package) => arguments.location.or_environment(package.prefix()),
        None => arguments.location.clone(),
    };
    let kernels = location.kernels()?;
    let folder = kernelspec::folder(&kernels, &arguments.name)?;
    if !folder.exists()
        && let Some(package) = package.filter(|package| package.unpacked().is_some())
    {
        package_installed::remove(package);
        return Ok(ExitCode::SUCCESS);
    }
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
    if let Some(removed) = labextension::uninstall(&location.data()?, &kernels)? {
        say(&format!("removed {}", removed.display()));
    }
    if let Some(package) = package {
        python::forget();
        package_installed::remove(package);
    }
    Ok(ExitCode::SUCCESS)
}
