//! The default device of notebooks, as `stratoscope doctor` tells it, and how its numbers compare with the processor's.
//!
//! Only the library that cells link to can say whether a device executes a kernel. It may crash in a driver, so a
//! process of its own loads it: this executable with the subcommand [`ROLE`].

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use libloading::Library;
use stratoscope_os::process::output_within;

/// The hidden subcommand.
pub const ROLE: &str = "default-device";
/// The variable that names the default device; the library reads it.
pub const VARIABLE: &str = "STRATOSCOPE_DEVICE";
/// The functions of the library: the first prints one line, the second one for each operation that it compares.
const FUNCTIONS: [&[u8]; 2] = [b"stratoscope_default_device", b"stratoscope_device_parity"];
/// A device that does not answer is given up by the library before.
const LIMIT: Duration = Duration::from_secs(150);

/// What the library says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The device and why it is that one.
    Device(String),
    /// The variable names no device of this machine.
    Refused(String),
    /// The library did not answer.
    Nothing,
}

/// Asks the library of the cells. `named`: the variable's value in the kernel spec, which wins over that of this
/// process as it does when Jupyter starts the kernel.
pub fn find(named: Option<&str>) -> Answer {
    let said = ask(named, false);
    said.and_then(|text| parse(&text))
        .unwrap_or(Answer::Nothing)
}

/// What the library says of the operations of a device beside those of the processor; nothing without the library.
pub fn parity(device: &str) -> Option<String> {
    ask(Some(device), true)
}

/// What the library prints.
fn ask(named: Option<&str>, parity: bool) -> Option<String> {
    let facade = stratoscope_compile::facade::find().ok()?;
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg(ROLE).arg(facade.library());
    if parity {
        command.arg("--parity");
    }
    if let Some(named) = named {
        command.env(VARIABLE, named);
    }
    let output = output_within(&mut command, LIMIT)?;
    Some(String::from_utf8_lossy(&output).into_owned())
}

/// The last line: a driver may print lines of its own before it.
fn parse(text: &str) -> Option<Answer> {
    let line = text.lines().last()?;
    let (kind, words) = line.split_once(' ')?;
    match kind {
        "device" => Some(Answer::Device(words.to_owned())),
        "refused" => Some(Answer::Refused(words.to_owned())),
        _ => None,
    }
}

/// The subcommand [`ROLE`].
pub fn run(library: &Path, parity: bool) -> anyhow::Result<ExitCode> {
    // SAFETY: the library's initializers are those of Rust crates, which every cell loads.
    let library = unsafe { Library::new(library) }?;
    // SAFETY: the library defines it with this signature.
    let tell = unsafe { library.get::<extern "C" fn()>(FUNCTIONS[usize::from(parity)]) }?;
    tell();
    // Never unloaded: the threads of its devices may still run.
    std::mem::forget(library);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_last_line() {
        let device = |text: &str| Some(Answer::Device(text.to_owned()));
        let cpu = "cpu:0 (2 cores): no GPU was found";
        assert_eq!(parse(&format!("device {cpu}\n")), device(cpu));
        assert_eq!(
            parse(&format!("a driver says hello\ndevice {cpu}")),
            device(cpu)
        );
        assert_eq!(
            parse("refused SC0712: no such device"),
            Some(Answer::Refused("SC0712: no such device".to_owned()))
        );
        assert_eq!(parse("crashed"), None);
        assert_eq!(parse(""), None);
    }
}
