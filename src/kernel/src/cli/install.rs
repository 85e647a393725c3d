//! `stratoscope install`: builds the library that cells link to, and installs the kernel into Jupyter.

use std::path::PathBuf;
use std::process::ExitCode;
use stratoscope_os::console::{say, warn};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use stratoscope_compile::packaged;

use super::fetch_compiler;
use super::kernelspec::{self, DEFAULT_NAME, KernelSpec, Location};
use super::labextension;
use super::package_installed;
use super::python;

/// The variable in the kernel spec that names the Python environment of the installation, in which the kernel looks for
/// checkpoints that are installed as Python packages.
pub const PYTHON_PREFIX_VARIABLE: &str = "STRATOSCOPE_PYTHON_PREFIX";

/// Arguments of `stratoscope install`.
#[derive(Debug, clap::Args)]
pub struct InstallArguments {
    #[command(flatten)]
    location: Location,
    /// The name of the kernel in Jupyter
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
    /// The name that launchers show
    #[arg(long)]
    display_name: Option<String>,
    /// An environment variable of the kernel; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    env: Vec<(String, String)>,
    /// Do not build the library that cells link to; cells will report that it is missing. From a wheel: do not unpack it,
    /// the first start will
    #[arg(long)]
    no_build: bool,
    /// From a wheel: if its compiler is missing, install it with rustup, and rustup itself if needed, without asking. In a
    /// terminal the command asks; elsewhere it says what to run
    #[arg(long)]
    fetch_rustc: bool,
    /// Do not install the extension for JupyterLab, which underlines mistakes while a cell is typed
    #[arg(long)]
    no_lab_extension: bool,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Installs the kernel.
///
/// # Errors
/// Another kernel has the name, the library cannot be built, or a file cannot be written.
pub fn run(arguments: &InstallArguments) -> anyhow::Result<ExitCode> {
    let executable = std::env::current_exe().context("the path of this executable is unknown")?;
    let location = match packaged::here() {
        Some(package) => arguments.location.or_environment(package.prefix()),
        None => arguments.location.clone(),
    };
    let kernels = location.kernels()?;
    let folder = kernelspec::folder(&kernels, &arguments.name)?;
    if folder.exists() && !kernelspec::is_ours(&folder) {
        bail!(
            "{} belongs to another kernel; choose a different name with `--name`",
            folder.display()
        );
    }

    let mut environment = Map::new();
    if let Some(prefix) = python_environment(arguments) {
        python::record(&prefix);
        let prefix = prefix
            .to_str()
            .context("the Python environment's path is not UTF-8")?;
        environment.insert(PYTHON_PREFIX_VARIABLE.to_owned(), json!(prefix));
    }
    for (key, value) in facade(arguments)? {
        environment.insert(key, value);
    }
    for (key, value) in &arguments.env {
        environment.insert(key.clone(), json!(value));
    }

    let display_name = arguments.display_name.as_deref();
    KernelSpec {
        executable: &executable,
        display_name,
        environment,
    }
    .write(&folder)?;
    say(&format!(
        "installed the kernel `{}` in {}",
        arguments.name,
        folder.display()
    ));
    if !arguments.no_lab_extension {
        match labextension::install(&location.data()?) {
            Ok(folder) => say(&format!(
                "installed the extension for JupyterLab in {}",
                folder.display()
            )),
            // The kernel works without it.
            Err(error) => warn(&format!("no extension for JupyterLab: {error:#}")),
        }
    }
    say("check it with `stratoscope doctor`; it is in the launcher of `jupyter lab`");
    Ok(ExitCode::SUCCESS)
}

/// The Python environment that the kernel is installed for: that of `--prefix`, otherwise the active one.
fn python_environment(arguments: &InstallArguments) -> Option<PathBuf> {
    let into = arguments.location.prefix.as_ref();
    let into = into.and_then(|prefix| std::path::absolute(prefix).ok());
    // That of a wheel is the one it was installed into, whichever is active.
    let own = packaged::here().map(|package| package.prefix().to_owned());
    let mut known = into.into_iter().chain(own);
    known
        .find(|prefix| python::interpreter(prefix).is_some())
        .or_else(python::prefix)
}

/// Finds or builds the library that cells link to; returns the environment by which the kernel finds it again.
fn facade(arguments: &InstallArguments) -> anyhow::Result<Vec<(String, Value)>> {
    let no_build = arguments.no_build;
    if let Some(package) = packaged::here() {
        if arguments.fetch_rustc || !no_build {
            fetch_compiler::fetch(&package.contents, arguments.fetch_rustc)?;
        }
        if !no_build {
            package_installed::unpack(package)?;
        }
        return Ok(Vec::new());
    }
    let found = match stratoscope_compile::facade::find() {
        Ok(found) => found,
        Err(problem) if no_build => {
            warn(&format!("cells cannot run yet: {}", problem.one_line()));
            return Ok(Vec::new());
        }
        Err(problem) if !stratoscope_compile::facade::is_fixed_by_building(&problem) => {
            return Err(problem.into());
        }
        Err(problem) => {
            say(&format!("{}; building it", problem.one_line()));
            say(&format!(
                "this takes {}",
                stratoscope_compile::facade::estimate()
            ));
            stratoscope_compile::facade::build(&mut |line| say(line))?
        }
    };
    say(&format!("cells link to {}", found.library().display()));
    Ok(found.environment())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_arguments() {
        assert_eq!(key_value("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(key_value("A="), Ok(("A".to_owned(), String::new())));
        assert!(key_value("=x").is_err() && key_value("x").is_err());
    }
}
