//! One call of rustc.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, ExitStatus};

use serde::{Deserialize, Serialize};

use super::evcxr_contract::SOURCE;

/// A program, its arguments and its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RustcInvocation {
    /// The compiler.
    pub rustc: String,
    /// For it; the source's name is [`SOURCE`].
    pub arguments: Vec<String>,
    /// Beside the kernel's own.
    pub environment: BTreeMap<String, String>,
    /// Of the whole crate; they cannot be included.
    pub attributes: String,
}

impl RustcInvocation {
    /// rustc, called so, on `source`.
    pub fn command(&self, source: &str) -> Command {
        let arguments = self.arguments.iter().map(|argument| match &**argument {
            SOURCE => source,
            other => other,
        });
        let mut command = Command::new(&self.rustc);
        command.args(arguments).envs(&self.environment);
        command
    }
}

/// Hands on each line of what the compiler says, and waits for its end.
pub fn listen(
    rustc: &mut Child,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<ExitStatus> {
    if let Some(stderr) = rustc.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            each(&line?)?;
        }
    }
    rustc.wait()
}
