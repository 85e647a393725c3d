//! `stratoscope serve`: gives a device of this machine to notebooks on others.

use std::path::PathBuf;
use std::process::ExitCode;

use super::library;

/// What the library reads: the device, the address and the key file.
const DEVICE_VARIABLE: &str = "STRATOSCOPE_DEVICE";
const LISTEN_VARIABLE: &str = "STRATOSCOPE_SERVE_LISTEN";
const KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_KEY";

/// A notebook reaches the device as `remote("HOST:PORT", "FILE")`.
#[derive(Debug, clap::Args)]
pub struct ServeArguments {
    /// The device: cpu, wgpu:0, cuda:0, … (default: the best that works)
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Wait for notebooks at this address (UDP); 0.0.0.0:4433 is reached from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4433")]
    listen: String,
    /// The key file, the same on both machines; it is made if it does not exist
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Serves until it is interrupted.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let variables = [
        (
            DEVICE_VARIABLE,
            arguments.device.as_deref().map(AsRef::as_ref),
        ),
        (LISTEN_VARIABLE, Some(arguments.listen.as_ref())),
        (KEY_VARIABLE, Some(arguments.key.as_os_str())),
    ];
    library::call(b"stratoscope_serve", &variables)
}
