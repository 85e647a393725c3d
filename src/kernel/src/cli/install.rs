//! `stratoscope install`: builds what cells link to, and tells Jupyter of this kernel.

use std::path::PathBuf;
use std::process::ExitCode;
use stratoscope_os::console::{say, warn};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::kernelspec::{self, DEFAULT_NAME, KernelSpec, Location};
use super::python;

/// Set by `install` in the kernel's environment: the Python environment it was installed for, in
/// which checkpoints that come as Python packages are looked for.
pub const PYTHON_PREFIX_VARIABLE: &str = "STRATOSCOPE_PYTHON_PREFIX";

/// Arguments of `stratoscope install`.
#[derive(Debug, clap::Args)]
pub struct InstallArguments {
    #[command(flatten)]
    location: Location,
    /// What Jupyter calls the kernel
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
    /// What launchers show
    #[arg(long)]
    display_name: Option<String>,
    /// Environment of the kernel; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    env: Vec<(String, String)>,
    /// Do not build what cells link to; cells will say that it is missing
    #[arg(long)]
    no_build: bool,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Installs.
pub fn run(arguments: &InstallArguments) -> anyhow::Result<ExitCode> {
    let executable = std::env::current_exe().context("the path of this executable is unknown")?;
    let kernels = arguments.location.kernels()?;
    let folder = kernelspec::folder(&kernels, &arguments.name)?;
    if folder.exists() && !kernelspec::is_ours(&folder) {
        bail!(
            "{} belongs to another kernel; choose another name with `--name`",
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
    for (key, value) in facade(arguments.no_build)? {
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
    say("`stratoscope doctor` checks it; `jupyter lab` offers it");
    Ok(ExitCode::SUCCESS)
}

/// The environment that the kernel is installed for: the one it is installed into, else the one that is
/// in use.
fn python_environment(arguments: &InstallArguments) -> Option<PathBuf> {
    let into = arguments.location.prefix.as_ref();
    let into = into.and_then(|prefix| std::path::absolute(prefix).ok());
    into.filter(|prefix| python::interpreter(prefix).is_some())
        .or_else(python::prefix)
}

/// Finds or builds the facade; returns what the kernel must know to find it again.
fn facade(no_build: bool) -> anyhow::Result<Vec<(String, Value)>> {
    let found = match stratoscope_compile::facade::find() {
        Ok(found) => found,
        Err(problem) if no_build => {
            warn(&format!("cells will not run yet: {}", problem.one_line()));
            return Ok(Vec::new());
        }
        Err(problem) if !stratoscope_compile::facade::is_mended_by_building(&problem) => {
            return Err(problem.into());
        }
        Err(problem) => {
            say(&format!("{}; building it now", problem.one_line()));
            say(&format!("this takes {}", stratoscope_compile::facade::estimate()));
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
