//! `stratoscope doctor --cuda`: one line for each thing that CUDA needs, from the driver to a training step's operations
//! with the right numbers, and how to fix it.
//!
//! Drivers may crash or hang, so a process of its own asks them: this executable with the subcommand [`ROLE`], which
//! prints a line of JSON for each check. The last check is the library's, which alone computes with burn.

mod compiler;
mod driver;
mod kernel;

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stratoscope_os::console::say;

use self::compiler::Nvrtc;
use self::driver::Driver;
use super::default_device;

/// The hidden subcommand.
pub const ROLE: &str = "cuda-check";
/// Everything that the subcommand checks, in its order.
const CHECKS: [&str; 6] = ["driver", "device", "nvrtc", "headers", "compile", "run"];
/// How long to wait for a line.
const LIMIT: Duration = Duration::from_secs(60);

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    check: String,
    /// What was found, or what is wrong.
    what: String,
    /// How to fix it, where something is wrong.
    remedy: Option<String>,
}

impl Line {
    fn new(check: &str, found: Result<String, Wrong>) -> Self {
        let (what, remedy) = match found {
            Ok(what) => (what, None),
            Err(wrong) => (wrong.what, Some(wrong.remedy)),
        };
        Self {
            check: check.to_owned(),
            what,
            remedy,
        }
    }

    fn text(&self) -> String {
        match &self.remedy {
            None => format!("ok       {}: {}", self.check, self.what),
            Some(remedy) => format!("missing  {}: {} → {remedy}", self.check, self.what),
        }
    }
}

/// What is wrong, and how to fix it.
struct Wrong {
    what: String,
    remedy: String,
}

fn wrong<T>(what: impl Into<String>, remedy: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        what: what.into(),
        remedy: remedy.into(),
    })
}

/// Runs every check up to the first that fails, since the later ones need it. The exit code is 1 when one fails.
pub fn doctor() -> anyhow::Result<ExitCode> {
    let mut lines = asked()?;
    let mut healthy = lines.iter().all(|line| line.remedy.is_none());
    if healthy && lines.len() < CHECKS.len() {
        let next = CHECKS[lines.len()];
        let what = "the process that checks it ended or did not answer";
        let remedy = "reinstall NVIDIA's driver and NVRTC, and look for an Xid message of the driver in `dmesg`";
        lines.push(Line::new(next, wrong(what, remedy)));
        healthy = false;
    }
    for line in &lines {
        say(&line.text());
    }
    if !healthy {
        return Ok(ExitCode::FAILURE);
    }
    parity("cuda:0")
}

/// The library's comparison of a device with the processor: a line for each operation.
fn parity(device: &str) -> anyhow::Result<ExitCode> {
    let said = default_device::parity(device);
    let lines: Vec<&str> = said.as_deref().unwrap_or_default().lines().collect();
    let mut healthy = lines.last() == Some(&"done");
    for line in &lines {
        let (kind, words) = line.split_once(' ').unwrap_or((line, ""));
        let remedy = "update NVIDIA's driver; if it stays, report it with the output of `stratoscope doctor --cuda`";
        match kind {
            "same" => say(&format!("ok       parity: {words}")),
            "differs" => say(&format!("missing  parity: {words} → {remedy}")),
            "refused" => say(&format!("missing  parity: {words} → {remedy}")),
            _ => continue,
        }
        healthy &= kind == "same";
    }
    if lines.last() != Some(&"done") {
        say(
            "missing  parity: the library that cells link to did not compare the device with the processor → \
             run `stratoscope doctor`, which checks the library",
        );
    }
    Ok(match healthy {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The lines of the subcommand, as far as it got.
fn asked() -> anyhow::Result<Vec<Line>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(ROLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (sender, receiver) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                // A driver may print lines of its own.
                if let Ok(line) = serde_json::from_str::<Line>(&text) {
                    let _ = sender.send(line);
                }
            }
        });
    }
    let mut lines = Vec::new();
    while let Ok(line) = receiver.recv_timeout(LIMIT) {
        lines.push(line);
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(lines)
}

/// The names of NVIDIA's GPUs, none where the driver does not start; `None` where it is not installed.
pub fn devices() -> Option<Vec<String>> {
    let driver = Driver::open()?;
    let names = driver.names().unwrap_or_default();
    // Never unloaded: its own threads may still be running.
    std::mem::forget(driver);
    Some(names)
}

/// The subcommand [`ROLE`].
pub fn run() -> anyhow::Result<ExitCode> {
    let done = Cell::new(0);
    let print = |found: Result<String, Wrong>| {
        let line = Line::new(CHECKS[done.get()], found);
        done.set(done.get() + 1);
        say(&serde_json::to_string(&line).unwrap_or_default());
    };
    Ok(match every(&|what| print(Ok(what))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            print(Err(wrong));
            ExitCode::FAILURE
        }
    })
}

/// The checks in the order of [`CHECKS`], up to the first that fails; `tell` is called for each that does not.
fn every(tell: &dyn Fn(String)) -> Result<(), Wrong> {
    let driver = Driver::load()?;
    tell(driver.text());
    let device = driver.device()?;
    tell(device.text());
    let nvrtc = Nvrtc::load(&driver, &device)?;
    tell(nvrtc.text());
    let toolkit = compiler::headers()?;
    tell(toolkit.display().to_string());
    let architecture = device.architecture();
    let compiled = nvrtc.compile(kernel::SOURCE, &architecture, &toolkit)?;
    tell(format!(
        "a kernel for {architecture} in {:.2} s",
        compiled.seconds
    ));
    tell(kernel::run(&driver, &device, &compiled.ptx)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_wrong_and_how_to_fix_it() {
        let fine = Line::new("driver", Ok("CUDA 13.5".to_owned()));
        assert_eq!(fine.text(), "ok       driver: CUDA 13.5");
        let missing = Line::new("driver", wrong("none", "install it"));
        assert_eq!(missing.text(), "missing  driver: none → install it");
        let text = serde_json::to_string(&missing).expect("is JSON");
        let read: Line = serde_json::from_str(&text).expect("reads");
        assert_eq!(read, missing);
    }
}
