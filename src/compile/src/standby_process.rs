//! The process that keeps a rustc ready for the next cell; `standby` is its client. Every rustc compiles one
//! cell; the next one is started when that cell is linked.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use stratoscope_os::process::{die_with_parent, start_own_group_and_die_with_parent};

use super::evcxr_contract::SOURCE;
use super::invocation::{self, RustcInvocation};
use super::rustc_call;
use super::standby::{Ended, FOLDER, MOST_BYTES, ROOT, Request, SOCKET};

/// rustc says so of the object when it has nothing left to do.
const IS_WRITTEN: &str = "\"emit\":\"obj\"";

/// The process that keeps a compiler ready, until this is dropped. A process of its own because it
/// starts others all the time, and to start one from the kernel would mark each page of
/// rust-analyzer's memory to be copied.
pub struct Standby(Child);

impl Standby {
    /// Starts it for the private folder `home`.
    pub fn start(executable: &Path, home: &Path) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        fs::create_dir_all(folder.join(SOURCE).parent().unwrap_or(&folder))?;
        symlink("/dev/stdin", folder.join(SOURCE))?;
        let mut command = Command::new(executable);
        command
            .arg("standby")
            .arg(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs as that process. It keeps a compiler ready until the kernel ends.
///
/// # Errors
/// The socket cannot be made.
pub fn run(home: &Path) -> io::Result<ExitCode> {
    start_own_group_and_die_with_parent();
    let folder = home.join(FOLDER);
    let listener = UnixListener::bind(folder.join(SOCKET))?;
    let mut expected = rustc_call::usual_invocation(home);
    loop {
        // Without one, cells are compiled as they would be without us.
        let ready = expected
            .as_ref()
            .and_then(|it| Ready::start(it, &folder).ok());
        let (connection, _) = listener.accept()?;
        // The next cell is compiled like this one.
        if let Ok(invocation) = serve(&connection, ready) {
            expected = Some(invocation);
        }
    }
}

/// Answers one request; with nothing if this compiler was started for another invocation. Returns when our cargo is done.
fn serve(connection: &UnixStream, ready: Option<Ready>) -> io::Result<RustcInvocation> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Request { invocation, bytes } = serde_json::from_str(&line)?;
    if bytes > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut source = vec![0; bytes];
    reader.read_exact(&mut source)?;
    if let Some(ready) = ready.filter(|ready| ready.invocation == invocation) {
        // A client that has left, or a compiler that was ended: ours ends either way.
        let _ = ready.compile(&source, connection);
    }
    connection.shutdown(Shutdown::Write)?;
    // It links the cell, or compiles it itself: the next compiler would only be in its way.
    let mut connection = connection;
    let _ = connection.read(&mut [0]);
    Ok(invocation)
}

/// A compiler that waits for its source.
struct Ready {
    invocation: RustcInvocation,
    rustc: Child,
}

impl Ready {
    fn start(invocation: &RustcInvocation, folder: &Path) -> io::Result<Self> {
        let root = format!(
            "{}use ::stratoscope as _;\ninclude!(\"{SOURCE}\");\n",
            invocation.attributes
        );
        fs::write(folder.join(ROOT), root)?;
        let mut command = invocation.command(ROOT);
        command
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Ok(Self {
            invocation: invocation.clone(),
            rustc: die_with_parent(&mut command).spawn()?,
        })
    }

    fn compile(mut self, source: &[u8], mut answer: &UnixStream) -> io::Result<()> {
        if let Some(mut stdin) = self.rustc.stdin.take() {
            stdin.write_all(source)?;
        }
        let mut is_answered = false;
        let status = invocation::listen(&mut self.rustc, |line| {
            if line.contains(IS_WRITTEN) {
                // Its last word; to give back its memory takes it longer than linking takes us.
                is_answered = true;
                return finish(answer, ExitStatus::from_raw(0));
            }
            writeln!(answer, "{line}")
        })?;
        if is_answered {
            return Ok(());
        }
        finish(answer, status)
    }
}

/// The last line of an answer.
fn finish(mut answer: &UnixStream, status: ExitStatus) -> io::Result<()> {
    let ended = Ended {
        status: status.into_raw(),
    };
    writeln!(answer, "{}", serde_json::to_string(&ended)?)
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.rustc.kill();
        let _ = self.rustc.wait();
    }
}
