//! `stratoscope serve`, which loads this library in a process of its own: it gives a device to notebooks on other machines.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use stratoscope_strategy::default_device;
use stratoscope_strategy::device::remote::server;
use stratoscope_workers::JobKey;
use stratoscope_workers::team::KEY_VARIABLE;

use crate::worker::{new_key, resolved};

/// Names the address at which notebooks are awaited.
const LISTEN_VARIABLE: &str = "STRATOSCOPE_SERVE_LISTEN";

/// Serves the default device until the process is interrupted. Returns the exit status of the process.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_serve() -> i32 {
    match serve() {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("stratoscope serve: {problem}");
            1
        }
    }
}

fn serve() -> Result<(), String> {
    let path = std::env::var_os(KEY_VARIABLE).map(PathBuf::from);
    let path = path.ok_or("no key: give `--key FILE`, the same file on both machines")?;
    let listen = std::env::var(LISTEN_VARIABLE).map_err(|error| error.to_string())?;
    let address = resolved(&listen)?;
    let key = key_of(&path)?;
    let device = default_device().map_err(|problem| problem.one_line())?;
    let what = format!("{} ({})", device.name, device.description);
    let ready = |at: SocketAddr| {
        println!("serving {what} at {at}");
        let host = match at.ip().is_unspecified() {
            true => "THIS_MACHINE".to_owned(),
            false => at.ip().to_string(),
        };
        println!(
            "in a notebook: remote(\"{host}:{}\", \"FILE\"), with a copy of {}",
            at.port(),
            path.display()
        );
    };
    server::serve(&device, address, &key, &ready)
}

/// The key of a file, which is made where there is none.
fn key_of(path: &Path) -> Result<JobKey, String> {
    if !path.exists() {
        new_key(path)?;
        println!("made the key {}", path.display());
    }
    JobKey::read(path).map_err(|error| format!("the key {}: {error}", path.display()))
}
