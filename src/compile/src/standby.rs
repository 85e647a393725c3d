//! The client of the rustc that stands by. Before rustc looks at a cell it reads the metadata of 430 crates, which
//! takes a third of a compile. So [a process](super::standby_process) of the kernel starts rustc before there is a
//! cell, on a source that names the facade and then includes standard input. There rustc waits, with the facade read,
//! until our cargo sends the cell and its [`RustcInvocation`] to a socket in the private folder; rustc's lines come
//! back. Where no compiler stands by for exactly this invocation, our cargo calls rustc itself.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use super::invocation::RustcInvocation;

/// The folder in the private one. rustc is called in it, so that the source has the name there that it
/// has in evcxr's.
pub(crate) const FOLDER: &str = "standby";
pub(crate) const SOCKET: &str = "socket";
/// What rustc is started on.
pub const ROOT: &str = "ready.rs";
/// More than any cell has.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// The errors that a source can have only because it is included, by a macro: a name that means two
/// things, and an exported macro that is called by its path.
const BY_INCLUSION: [&str; 2] = [
    "\"code\":\"E0659\"",
    "\"code\":\"macro_expanded_macro_exports_accessed_by_absolute_paths\"",
];

/// The first line of what our cargo sends; the source follows.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) invocation: RustcInvocation,
    pub(crate) bytes: usize,
}

/// The last line of an answer: how rustc has ended.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ended {
    /// As `wait` gives it.
    pub(crate) status: i32,
}

/// The connection to the process that keeps one. As long as it is there, the next compiler is not
/// started.
pub fn connect(home: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(home.join(FOLDER).join(SOCKET))
}

/// Has a cell compiled by the compiler that stands by: the lines it says, and how it ended. `None`
/// when there is none for this invocation, or when another way of compiling the cell has to judge it.
pub fn compile(
    mut connection: &UnixStream,
    invocation: RustcInvocation,
    source: &str,
) -> io::Result<Option<(Vec<String>, ExitStatus)>> {
    let request = Request {
        invocation,
        bytes: source.len(),
    };
    writeln!(connection, "{}", serde_json::to_string(&request)?)?;
    connection.write_all(source.as_bytes())?;
    let mut lines = Vec::new();
    for line in BufReader::new(connection).lines() {
        let line = line?;
        if let Ok(ended) = serde_json::from_str::<Ended>(&line) {
            let by_inclusion = |line: &String| BY_INCLUSION.iter().any(|it| line.contains(it));
            let is_by_inclusion = lines.iter().any(by_inclusion);
            let status = ExitStatus::from_raw(ended.status);
            return Ok((!is_by_inclusion).then_some((lines, status)));
        }
        lines.push(line);
    }
    Ok(None)
}
