//! The plain streams of the cell process: two named pipes, read as bytes arrive, so that a partial line is shown at once,
//! and a third pipe for the output of other cells' threads ([`foreign_output`](crate::cell_process::foreign_output)). A
//! slow front end slows the cell down instead of filling the memory.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::cell_process::foreign_output::{self, Record};
use stratoscope_session::Stream;

/// Output of the cell process.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The cell that is being executed is this run of the process.
    Begins(u64),
    /// Text of the cell that runs, or of the last.
    Text(Stream, &'a str),
    /// Text of the cell that was this run.
    Foreign(u64, Stream, &'a str),
}

/// What receives it.
pub type Sink = dyn Fn(Heard<'_>) + Send + Sync;

const CHUNK_BYTES: usize = 64 << 10;
/// A drain is given up after this long: the sink is stuck, and the cell's reply must not be.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reading end of both pipes, on a thread of its own until it is dropped.
pub struct Streams {
    requests: Sender<Request>,
    wake: UnixStream,
}

/// Somebody waits until what is in the pipes has been shown.
struct Request {
    done: Sender<()>,
    /// Nothing will complete a character that has begun: it is shown as it is.
    end: bool,
}

impl Streams {
    /// Makes the pipes in `folder` and reads them into `sink`.
    pub fn start(folder: &Path, sink: Box<Sink>) -> io::Result<Self> {
        let pipes = [
            Pipe::make(&folder.join("stdout"), Stream::Stdout)?,
            Pipe::make(&folder.join("stderr"), Stream::Stderr)?,
        ];
        let foreign = ForeignPipe::make(&folder.join(foreign_output::NAME))?;
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let (requests, inbox) = channel();
        std::thread::Builder::new()
            .name("cell-streams".to_owned())
            .spawn(move || pump(pipes, foreign, &woken, &inbox, &sink))?;
        Ok(Self { requests, wake })
    }

    /// Returns when everything that was written so far has been given to the sink: the cell is over.
    pub fn drain(&self) {
        self.wait(true);
    }

    /// The same while the cell runs: what it shows next belongs after what it has printed.
    pub fn catch_up(&self) {
        self.wait(false);
    }

    fn wait(&self, end: bool) {
        let (done, answer) = channel();
        let request = Request { done, end };
        if self.requests.send(request).is_ok() && (&self.wake).write_all(b"d").is_ok() {
            let _ = answer.recv_timeout(PATIENCE);
        }
    }
}

/// One pipe and the bytes of a character that is not complete yet.
struct Pipe {
    file: File,
    stream: Stream,
    pending: Vec<u8>,
}

impl Pipe {
    fn make(path: &Path, stream: Stream) -> io::Result<Self> {
        Ok(Self {
            file: make(path)?,
            stream,
            pending: Vec::new(),
        })
    }

    /// Gives some of what is there to the sink; how many bytes, `None` when there is nothing.
    fn forward(&mut self, buffer: &mut [u8], sink: &Sink) -> Option<usize> {
        let length = read(&mut self.file, buffer, &mut self.pending)?;
        self.show(false, sink);
        Some(length)
    }

    /// Gives to the sink what is in the pipe now, and not what is written meanwhile.
    fn forward_all(&mut self, buffer: &mut [u8], sink: &Sink) {
        forward_what_waits(waiting(&self.file), || self.forward(buffer, sink));
    }

    /// Shows whole characters; what begins one stays, unless this is the end.
    fn show(&mut self, end: bool, sink: &Sink) {
        let keep = if end {
            0
        } else {
            incomplete_tail(&self.pending)
        };
        let whole = self.pending.len() - keep;
        if whole > 0 {
            let text = String::from_utf8_lossy(&self.pending[..whole]);
            sink(Heard::Text(self.stream, &text));
            self.pending.drain(..whole);
        }
    }
}

/// The third pipe and what is there of a record that is not complete yet.
struct ForeignPipe {
    file: File,
    pending: Vec<u8>,
}

impl ForeignPipe {
    fn make(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: make(path)?,
            pending: Vec::new(),
        })
    }

    /// As [`Pipe::forward`].
    fn forward(&mut self, buffer: &mut [u8], sink: &Sink) -> Option<usize> {
        let length = read(&mut self.file, buffer, &mut self.pending)?;
        let mut read = 0;
        loop {
            match foreign_output::first(&self.pending[read..]) {
                Ok(Some((record, length))) => {
                    match record {
                        Record::Begins(run) => sink(Heard::Begins(run)),
                        Record::Text(run, stream, text) => {
                            sink(Heard::Foreign(run, stream, &String::from_utf8_lossy(text)));
                        }
                    }
                    read += length;
                }
                Ok(None) => break,
                Err(_) => {
                    // A cell has found the descriptor and written to it: where the next record
                    // begins is not known.
                    read = self.pending.len();
                    break;
                }
            }
        }
        self.pending.drain(..read);
        Some(length)
    }

    /// As [`Pipe::forward_all`].
    fn forward_all(&mut self, buffer: &mut [u8], sink: &Sink) {
        forward_what_waits(waiting(&self.file), || self.forward(buffer, sink));
    }
}

/// Adds some of what is there to what is pending; how many bytes, `None` when there is nothing.
fn read(file: &mut File, buffer: &mut [u8], pending: &mut Vec<u8>) -> Option<usize> {
    match file.read(buffer) {
        Ok(0) => None,
        Ok(length) => {
            pending.extend_from_slice(&buffer[..length]);
            Some(length)
        }
        Err(error) => (error.kind() == ErrorKind::Interrupted).then_some(0),
    }
}

/// Calls `forward` until so many bytes were read, or there is nothing.
fn forward_what_waits(mut left: usize, mut forward: impl FnMut() -> Option<usize>) {
    while left > 0 {
        match forward() {
            Some(length) => left = left.saturating_sub(length),
            None => return,
        }
    }
}

/// Makes a named pipe and opens it.
fn make(path: &Path) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid C string; 0600: only this user.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // For reading and writing: there is always a writer, so the end of one cell process is not the
    // end of the pipe.
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// How many bytes are in the pipe now.
fn waiting(pipe: &File) -> usize {
    let mut waiting: libc::c_int = 0;
    // SAFETY: an open descriptor; the call writes one integer.
    let known = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
    if known == 0 { waiting as usize } else { 0 }
}

/// How many bytes at the end begin a character that more bytes may complete.
fn incomplete_tail(bytes: &[u8]) -> usize {
    match std::str::from_utf8(&bytes[bytes.len().saturating_sub(3)..]) {
        Ok(_) => 0,
        Err(_) => (1..=bytes.len().min(3))
            .find(|&length| {
                let tail = &bytes[bytes.len() - length..];
                let error = std::str::from_utf8(tail).err();
                error.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
            })
            .unwrap_or(0),
    }
}

fn pump(
    mut pipes: [Pipe; 2],
    mut foreign: ForeignPipe,
    woken: &UnixStream,
    requests: &Receiver<Request>,
    sink: &Sink,
) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let on = |descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut ready = [
            on(pipes[0].file.as_raw_fd()),
            on(pipes[1].file.as_raw_fd()),
            on(foreign.file.as_raw_fd()),
            on(woken.as_raw_fd()),
        ];
        // SAFETY: four valid entries; no time limit.
        unsafe { libc::poll(ready.as_mut_ptr(), 4, -1) };
        if ready[3].revents == 0 {
            for (pipe, entry) in pipes.iter_mut().zip(ready) {
                if entry.revents != 0 {
                    pipe.forward(&mut buffer, sink);
                }
            }
            if ready[2].revents != 0 {
                foreign.forward(&mut buffer, sink);
            }
            continue;
        }
        let mut reader = woken;
        let closed = matches!(reader.read(&mut buffer), Ok(0));
        // Before reading: one that comes meanwhile may be about text that was missed below.
        let waiting: Vec<_> = requests.try_iter().collect();
        let end = closed || waiting.iter().any(|request| request.end);
        for pipe in &mut pipes {
            pipe.forward_all(&mut buffer, sink);
            pipe.show(end, sink);
        }
        foreign.forward_all(&mut buffer, sink);
        for request in waiting {
            let _ = request.done.send(());
        }
        if closed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn text_arrives_in_whole_characters_and_drain_waits_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = Arc::new(Mutex::new(String::new()));
        let sink = {
            let seen = Arc::clone(&seen);
            move |heard: Heard<'_>| match heard {
                Heard::Text(Stream::Stdout, text) => seen.lock().expect("no panic").push_str(text),
                other => panic!("{other:?}"),
            }
        };
        let streams = Streams::start(folder.path(), Box::new(sink)).expect("starts");
        let mut pipe = OpenOptions::new()
            .write(true)
            .open(folder.path().join("stdout"))
            .expect("opens");
        let text = "größer ∑ 🚀".repeat(20_000);
        for chunk in text.as_bytes().chunks(777) {
            pipe.write_all(chunk).expect("writes");
        }
        streams.drain();
        assert!(*seen.lock().expect("no panic") == text);
        pipe.write_all(b"half \xf0\x9f").expect("writes");
        streams.catch_up();
        assert!(seen.lock().expect("no panic").ends_with("half "));
        streams.drain();
        let seen = seen.lock().expect("no panic");
        assert_eq!(&seen[text.len()..], "half \u{fffd}");
    }

    #[test]
    fn catching_up_ends_while_somebody_goes_on_writing() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = Arc::new(Mutex::new(0));
        let sink = {
            let bytes = Arc::clone(&bytes);
            move |heard: Heard<'_>| {
                if let Heard::Text(_, text) = heard {
                    *bytes.lock().expect("no panic") += text.len();
                }
            }
        };
        let streams = Streams::start(folder.path(), Box::new(sink)).expect("starts");
        let mut pipe = OpenOptions::new()
            .write(true)
            .open(folder.path().join("stderr"))
            .expect("opens");
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let writing = {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                let mut written = 0;
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    pipe.write_all(&[b'x'; 1 << 12]).expect("writes");
                    written += 1 << 12;
                }
                written
            })
        };
        for _ in 0..100 {
            streams.catch_up();
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        let written = writing.join().expect("no panic");
        streams.drain();
        assert_eq!(*bytes.lock().expect("no panic"), written);
    }

    #[test]
    fn foreign_output_comes_with_its_run_and_nonsense_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let seen = Arc::clone(&seen);
            move |heard: Heard<'_>| seen.lock().expect("no panic").push(format!("{heard:?}"))
        };
        let streams = Streams::start(folder.path(), Box::new(sink)).expect("starts");
        let mut pipe = OpenOptions::new()
            .write(true)
            .open(folder.path().join(foreign_output::NAME))
            .expect("opens");
        foreign_output::begin(pipe.as_raw_fd(), 3);
        foreign_output::text(pipe.as_raw_fd(), 2, 1, "größer".as_bytes());
        streams.drain();
        pipe.write_all(&[9; 20]).expect("writes");
        streams.drain();
        foreign_output::text(pipe.as_raw_fd(), 2, 2, b"after");
        streams.drain();
        let expected = [
            "Begins(3)",
            "Foreign(2, Stdout, \"größer\")",
            "Foreign(2, Stderr, \"after\")",
        ];
        assert_eq!(*seen.lock().expect("no panic"), expected);
    }

    #[test]
    fn tails() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"abc", 0),
            (b"a\xc3", 1),
            (b"\xe2\x88", 2),
            (b"a\xf0\x9f\x9a", 3),
            (b"\xff", 0),
            ("é".as_bytes(), 0),
        ] {
            assert_eq!(incomplete_tail(bytes), expected, "{bytes:?}");
        }
    }
}
