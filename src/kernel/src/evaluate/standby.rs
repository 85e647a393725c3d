//! A compiler that stands by. Before rustc looks at a cell it reads the metadata of 430 crates, which
//! takes a third of a compile. So the kernel starts rustc before there is a cell: on a source that
//! names the facade and then includes standard input. There rustc waits, the facade read, until the
//! cell comes. Every compiler takes one cell; the next one is started as soon as it is done.
//!
//! [`Standby`] is the kernel's side. Our cargo ([`super::toolchain`]) sends its [`Order`] and the
//! source to a socket in the private folder and gets rustc's lines back; where no compiler stands by
//! for just this order, it calls rustc itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::toolchain::{self, live_and_die_with_us};

/// The folder in the private one. rustc is called in it, so that the source has the name there that it
/// has in evcxr's.
const FOLDER: &str = "standby";
const SOCKET: &str = "socket";
/// What rustc is started on.
pub const ROOT: &str = "ready.rs";
/// The source, by the name that rustc's messages have to give it.
pub const SOURCE: &str = "src/lib.rs";
/// More than any cell has.
const MOST_BYTES: u64 = 64 << 20;
/// A name that means two things: the one error that a source can have only because it is included.
const AMBIGUOUS: &str = "\"code\":\"E0659\"";

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

/// How a compile has ended, and on the last line of an answer, how rustc has.
#[derive(Serialize, Deserialize)]
struct Ended {
    /// As `wait` gives it.
    status: i32,
}

/// Keeps one compiler ready, on a thread of its own, until it is dropped.
pub struct Standby {
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
}

impl Standby {
    /// Starts it for the private folder `home`.
    pub fn start(home: &Path) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        fs::create_dir_all(folder.join(SOURCE).parent().unwrap_or(&folder))?;
        symlink("/dev/stdin", folder.join(SOURCE))?;
        let socket = folder.join(SOCKET);
        let listener = UnixListener::bind(&socket)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (home, over) = (home.to_owned(), Arc::clone(&is_over));
        std::thread::Builder::new()
            .name("standby".to_owned())
            .spawn(move || keep(&home, &folder, &listener, &over))?;
        Ok(Self { socket, is_over })
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let _ = UnixStream::connect(&self.socket);
    }
}

fn keep(home: &Path, folder: &Path, listener: &UnixListener, is_over: &AtomicBool) {
    let mut expected = toolchain::usual_order(home);
    loop {
        // Without one, cells are compiled as they would be without us.
        let ready = expected
            .as_ref()
            .and_then(|it| Ready::start(it, folder).ok());
        let Ok((connection, _)) = listener.accept() else {
            return;
        };
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        // The next cell will be ordered as this one was.
        if let Ok(order) = serve(&connection, ready) {
            expected = Some(order);
        }
    }
}

/// Answers one order, by nothing if this compiler is not for it. Returns when our cargo has heard all
/// it wants.
fn serve(connection: &UnixStream, ready: Option<Ready>) -> io::Result<Order> {
    let mut reader = BufReader::new(connection.take(MOST_BYTES));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    let mut source = Vec::new();
    reader.read_to_end(&mut source)?;
    match ready.filter(|ready| ready.order == order) {
        Some(ready) => {
            // A client that has left, or a compiler that was ended: ours ends either way.
            let _ = ready.compile(&source, connection);
        }
        None => {
            let mut connection = connection;
            connection.shutdown(Shutdown::Write)?;
            // It compiles the cell itself: the next compiler would only be in its way until then.
            let mut gone = [0];
            let _ = connection.read(&mut gone);
        }
    }
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
        let arguments = order.arguments.iter().map(|argument| match argument {
            source if source == SOURCE => ROOT,
            other => other,
        });
        let mut command = Command::new(&order.rustc);
        command
            .args(arguments)
            .envs(&order.environment)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Ok(Self {
            order: order.clone(),
            rustc: live_and_die_with_us(&mut command).spawn()?,
        })
    }

    fn compile(mut self, source: &[u8], mut answer: &UnixStream) -> io::Result<()> {
        if let Some(mut stdin) = self.rustc.stdin.take() {
            stdin.write_all(source)?;
        }
        let status = toolchain::listen(&mut self.rustc, |line| writeln!(answer, "{line}"))?;
        let ended = Ended {
            status: status.into_raw(),
        };
        writeln!(answer, "{}", serde_json::to_string(&ended)?)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.rustc.kill();
        let _ = self.rustc.wait();
    }
}

/// Has a cell compiled by the compiler that stands by: the lines it says, and how it ended. `None`
/// when there is none for this order, or when it did not tell; the connection is held until the
/// returned [`Busy`] is dropped.
pub fn compile(home: &Path, order: &Order, source: &str) -> (Busy, Option<(Vec<String>, ExitStatus)>) {
    let connection = UnixStream::connect(home.join(FOLDER).join(SOCKET)).ok();
    let answer = connection
        .as_ref()
        .and_then(|it| ask(it, order, source).ok().flatten());
    (Busy { _connection: connection }, answer)
}

/// While it is there, no other compiler is started.
pub struct Busy {
    _connection: Option<UnixStream>,
}

fn ask(
    mut connection: &UnixStream,
    order: &Order,
    source: &str,
) -> io::Result<Option<(Vec<String>, ExitStatus)>> {
    writeln!(connection, "{}", serde_json::to_string(order)?)?;
    connection.write_all(source.as_bytes())?;
    connection.shutdown(Shutdown::Write)?;
    let lines: io::Result<Vec<String>> = BufReader::new(connection).lines().collect();
    let mut lines = lines?;
    let Some(last) = lines.pop() else {
        return Ok(None);
    };
    let ended: Ended = serde_json::from_str(&last)?;
    let is_by_inclusion = lines.iter().any(|line| line.contains(AMBIGUOUS));
    Ok((!is_by_inclusion).then(|| (lines, ExitStatus::from_raw(ended.status))))
}
