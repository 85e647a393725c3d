//! The debug adapter of LLVM, `lldb-dap`, as a process: requests with their answers, and events. It speaks the Debug Adapter
//! Protocol over its standard streams, each message behind a header with its length.
//!
//! Its standard input is a socket. Most cells are compiled from a source that leads to `/dev/stdin` (`standby` in the crate `compile`),
//! and LLDB opens the sources of the frames that it selects. A pipe would be opened, and LLDB would read our requests
//! as source text until the pipe ends, which it never does. A socket cannot be opened by a path.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use stratoscope_os::process;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Names the adapter, where `PATH` has none or another one is wanted.
pub const VARIABLE: &str = "STRATOSCOPE_LLDB_DAP";
/// The name of the program; Debian adds a version behind it.
const PROGRAM: &str = "lldb-dap";
/// How it is installed.
const INSTALL: &str =
    "breakpoints in cells need LLDB: on Debian, `apt install lldb-19 python3-lldb-19`";
/// Why none is found.
const NOT_IN_PATH: &str = "`PATH` has no `lldb-dap`, nor one with a version, such as `lldb-dap-19`";
/// A longer message is not one of the adapter's.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// The program; the newest one in `PATH` where several versions are installed.
///
/// # Errors
/// There is none; the reason.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return match named.is_file() {
            true => Ok(named),
            false => Err(format!(
                "{VARIABLE} names `{}`, which is no file",
                named.display()
            )),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders)
        .filter(|it| it.is_absolute())
        .collect();
    let plain = folders.iter().map(|it| it.join(PROGRAM));
    if let Some(found) = plain.into_iter().find(|it| it.is_file()) {
        return Ok(found);
    }
    let entries = folders
        .iter()
        .filter_map(|it| std::fs::read_dir(it).ok())
        .flatten()
        .flatten();
    let versions = entries.filter_map(|entry| {
        let name = entry.file_name();
        let version = name.to_str()?.strip_prefix(PROGRAM)?.strip_prefix('-')?;
        Some((version.parse::<u32>().ok()?, entry.path()))
    });
    versions
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| NOT_IN_PATH.to_owned())
}

/// As `find`.
///
/// # Errors
/// There is none; the reason, and how to get it.
pub fn find_or_advise() -> Result<PathBuf, String> {
    find().map_err(|reason| format!("{reason}; {INSTALL}"))
}

/// The process. It ends with this value, and with the kernel.
pub struct Adapter {
    /// Its number.
    pub process: u32,
    stdin: Mutex<UnixStream>,
    waiting: Arc<Waiting>,
    sent: AtomicU64,
    /// Why it was ended, if it has not answered in time.
    given_up: Mutex<Option<String>>,
}

/// Who waits for which answer. `None`: the process has ended.
type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Value>>>>;

impl Adapter {
    /// Starts it. Its events go to `events`, and the last one is `null`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, events: UnboundedSender<Value>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let (sender, started) = std::sync::mpsc::channel();
        let answers = Arc::clone(&waiting);
        // The process ends with the thread that has started it.
        std::thread::Builder::new()
            .name("lldb-dap".to_owned())
            .spawn(move || {
                let mut child = match process::die_with_parent(&mut command).spawn() {
                    Ok(child) => child,
                    Err(error) => return drop(sender.send(Err(error))),
                };
                // Else our end of its input stays open in the command.
                drop(command);
                let _ = sender.send(Ok(child.id()));
                read(&mut child, &answers, &events);
                let _ = child.kill();
                let _ = child.wait();
                // Who waits learns that there will be no answer.
                *answers.lock() = None;
                let _ = events.send(Value::Null);
            })?;
        let process = started.recv().map_err(io::Error::other)??;
        Ok(Self {
            process,
            stdin: Mutex::new(ours),
            waiting,
            sent: AtomicU64::new(0),
            given_up: Mutex::default(),
        })
    }

    /// The body of the answer to a request.
    ///
    /// # Errors
    /// The adapter refuses, has ended, or does not answer in time, which ends it; the reason.
    pub async fn ask(
        &self,
        command: &str,
        arguments: Value,
        limit: Duration,
    ) -> Result<Value, String> {
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        let (sender, answer) = oneshot::channel();
        match &mut *self.waiting.lock() {
            Some(waiting) => drop(waiting.insert(number, sender)),
            None => return Err(ENDED.to_owned()),
        }
        let request =
            json!({"seq": number, "type": "request", "command": command, "arguments": arguments})
                .to_string();
        let message = format!("Content-Length: {}\r\n\r\n{request}", request.len());
        let written = {
            let mut stdin = self.stdin.lock();
            stdin
                .write_all(message.as_bytes())
                .and_then(|()| stdin.flush())
        };
        written.map_err(|_| ENDED.to_owned())?;
        let answer = match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer.map_err(|_| ENDED.to_owned())?,
            Err(_) => {
                // One that hangs would hold the cell for good; without it the cell goes on.
                let reason = format!("the debugger has not answered `{command}` within {limit:?}");
                *self.given_up.lock() = Some(reason.clone());
                process::kill(self.process);
                return Err(reason);
            }
        };
        match answer["success"] == true {
            true => Ok(answer["body"].clone()),
            false => {
                let reason = answer["message"]
                    .as_str()
                    .or(answer["body"]["error"]["format"].as_str());
                Err(reason.unwrap_or("the debugger refuses").trim().to_owned())
            }
        }
    }

    /// Why it was ended, if it has not answered in time.
    pub fn given_up(&self) -> Option<String> {
        self.given_up.lock().clone()
    }

    /// Ends the process.
    pub fn end(&self) {
        if self.is_open() {
            process::kill(self.process);
        }
    }

    /// Whether the process has not ended.
    pub fn is_open(&self) -> bool {
        self.waiting.lock().is_some()
    }
}

/// Why there is no answer.
const ENDED: &str = "the debugger has ended";

impl Drop for Adapter {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(child: &mut Child, answers: &Waiting, events: &UnboundedSender<Value>) {
    let Some(stdout) = child.stdout.take() else {
        return;
    };
    let mut stdout = BufReader::new(stdout);
    while let Some(message) = message(&mut stdout) {
        if message["type"] == "event" {
            let _ = events.send(message);
            continue;
        }
        let number = message["request_seq"].as_u64().unwrap_or(0);
        let waiting = answers.lock().as_mut().and_then(|it| it.remove(&number));
        if let Some(waiting) = waiting {
            // Who has waited too long is gone.
            let _ = waiting.send(message);
        }
    }
}

/// The next message; `None`: there is none, or it is no message.
fn message(stdout: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => return None,
        }
    }
    let mut bytes = vec![0; length.filter(|it| *it <= MAX_MESSAGE_BYTES)?];
    stdout.read_exact(&mut bytes).ok()?;
    // What is not Unicode in a value of the program is replaced.
    serde_json::from_str(&String::from_utf8_lossy(&bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_the_other() {
        let text = "Content-Length: 9\r\nX: y\r\n\r\n{\"a\": 1 }content-length: 2\r\n\r\n{}Content-Length: 99\r\n\r\n{}";
        let mut reader = text.as_bytes();
        assert_eq!(message(&mut reader), Some(json!({"a": 1})));
        assert_eq!(message(&mut reader), Some(json!({})));
        assert_eq!(message(&mut reader), None, "it ends too early");
        for wrong in [
            "hello\r\n\r\n{}",
            "Content-Length: x\r\n\r\n{}",
            "Content-Length: 999999999999\r\n\r\n{}",
        ] {
            assert_eq!(message(&mut wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_adapter_that_ends_leaves_nobody_waiting() {
        let (events, mut inbox) = tokio::sync::mpsc::unbounded_channel();
        let adapter = Adapter::start(Path::new("/bin/false"), events).expect("it starts");
        let limit = Duration::from_secs(20);
        assert!(adapter.ask("initialize", json!({}), limit).await.is_err());
        assert_eq!(inbox.recv().await, Some(Value::Null));
        assert!(!adapter.is_open());
        assert_eq!(adapter.given_up(), None);
        let (events, _inbox) = tokio::sync::mpsc::unbounded_channel();
        assert!(Adapter::start(Path::new("/no/such/program"), events).is_err());
    }

    #[tokio::test]
    async fn an_adapter_that_does_not_answer_is_ended() {
        let (events, mut inbox) = tokio::sync::mpsc::unbounded_channel();
        // It writes back what it reads, which is no answer.
        let adapter = Adapter::start(Path::new("/bin/cat"), events).expect("it starts");
        let limit = Duration::from_millis(100);
        let answer = adapter.ask("stackTrace", json!({}), limit).await;
        assert!(answer.is_err_and(|it| it.contains("`stackTrace` within 100ms")));
        assert_eq!(inbox.recv().await, Some(Value::Null));
        assert!(!adapter.is_open());
        let given_up = adapter.given_up();
        assert!(given_up.is_some_and(|it| it.contains("stackTrace")));
    }
}
