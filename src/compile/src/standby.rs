//! A compiler that stands by. Before rustc looks at a cell it reads the metadata of 430 crates, which
//! takes a third of a compile. So the kernel starts rustc before there is a cell: on a source that
//! names the facade and then includes standard input. There rustc waits, the facade read, until the
//! cell comes. Every compiler takes one cell; the next one is started as soon as it is done.
//!
//! [`Standby`] is the kernel's side, [`run`] the process that it starts. Our cargo
//! ([`super::toolchain`]) sends its [`Order`] and the source to a socket in the private folder and gets
//! rustc's lines back; where no compiler stands by for just this order, it calls rustc itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};

use super::toolchain;
use stratoscope_os::process::{die_with_parent, start_own_group_and_die_with_parent};

/// The folder in the private one. rustc is called in it, so that the source has the name there that it
/// has in evcxr's.
const FOLDER: &str = "standby";
const SOCKET: &str = "socket";
/// What rustc is started on.
pub const ROOT: &str = "ready.rs";
/// The source, by the name that rustc's messages have to give it.
pub const SOURCE: &str = "src/lib.rs";
/// More than any cell has.
const MOST_BYTES: usize = 64 << 20;
/// The errors that a source can have only because it is included, by a macro: a name that means two
/// things, and an exported macro that is called by its path.
const BY_INCLUSION: [&str; 2] = [
    "\"code\":\"E0659\"",
    "\"code\":\"macro_expanded_macro_exports_accessed_by_absolute_paths\"",
];

/// rustc says so of the object when it has nothing left to do.
const IS_WRITTEN: &str = "\"emit\":\"obj\"";

/// How rustc is to be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The compiler.
    pub rustc: String,
    /// For it; the source's name is [`SOURCE`].
    pub arguments: Vec<String>,
    /// Beside the kernel's own.
    pub environment: BTreeMap<String, String>,
    /// Of the whole crate; they cannot be included.
    pub attributes: String,
}

impl Order {
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

/// The first line of what our cargo sends; the source follows.
#[derive(Serialize, Deserialize)]
struct Request {
    order: Order,
    bytes: usize,
}

/// The last line of an answer: how rustc has ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    /// As `wait` gives it.
    status: i32,
}

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

/// What that process does: it keeps a compiler ready, for ever.
///
/// # Errors
/// The socket cannot be made.
pub fn run(home: &Path) -> io::Result<ExitCode> {
    start_own_group_and_die_with_parent();
    let folder = home.join(FOLDER);
    let listener = UnixListener::bind(folder.join(SOCKET))?;
    let mut expected = toolchain::usual_order(home);
    loop {
        // Without one, cells are compiled as they would be without us.
        let ready = expected
            .as_ref()
            .and_then(|it| Ready::start(it, &folder).ok());
        let (connection, _) = listener.accept()?;
        // The next cell will be ordered as this one was.
        if let Ok(order) = serve(&connection, ready) {
            expected = Some(order);
        }
    }
}

/// Answers one order, by nothing if this compiler is not for it. Returns when our cargo is done.
fn serve(connection: &UnixStream, ready: Option<Ready>) -> io::Result<Order> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Request { order, bytes } = serde_json::from_str(&line)?;
    if bytes > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut source = vec![0; bytes];
    reader.read_exact(&mut source)?;
    if let Some(ready) = ready.filter(|ready| ready.order == order) {
        // A client that has left, or a compiler that was ended: ours ends either way.
        let _ = ready.compile(&source, connection);
    }
    connection.shutdown(Shutdown::Write)?;
    // It links the cell, or compiles it itself: the next compiler would only be in its way.
    let mut connection = connection;
    let _ = connection.read(&mut [0]);
    Ok(order)
}

/// A compiler that waits for its source.
struct Ready {
    order: Order,
    rustc: Child,
}

impl Ready {
    fn start(order: &Order, folder: &Path) -> io::Result<Self> {
        let root = format!(
            "{}use ::stratoscope as _;\ninclude!(\"{SOURCE}\");\n",
            order.attributes
        );
        fs::write(folder.join(ROOT), root)?;
        let mut command = order.command(ROOT);
        command
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Ok(Self {
            order: order.clone(),
            rustc: die_with_parent(&mut command).spawn()?,
        })
    }

    fn compile(mut self, source: &[u8], mut answer: &UnixStream) -> io::Result<()> {
        if let Some(mut stdin) = self.rustc.stdin.take() {
            stdin.write_all(source)?;
        }
        let mut is_told = false;
        let status = toolchain::listen(&mut self.rustc, |line| {
            if line.contains(IS_WRITTEN) {
                // Its last word; to give back its memory takes it longer than linking takes us.
                is_told = true;
                return tell(answer, ExitStatus::from_raw(0));
            }
            writeln!(answer, "{line}")
        })?;
        if is_told {
            return Ok(());
        }
        tell(answer, status)
    }
}

/// The last line of an answer.
fn tell(mut answer: &UnixStream, status: ExitStatus) -> io::Result<()> {
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

/// The connection to the process that keeps one. As long as it is there, the next compiler is not
/// started.
pub fn connect(home: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(home.join(FOLDER).join(SOCKET))
}

/// Has a cell compiled by the compiler that stands by: the lines it says, and how it ended. `None`
/// when there is none for this order, or when another way of compiling the cell has to judge it.
pub fn compile(
    mut connection: &UnixStream,
    order: Order,
    source: &str,
) -> io::Result<Option<(Vec<String>, ExitStatus)>> {
    let request = Request {
        order,
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
