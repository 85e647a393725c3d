//! A connection between two processes of a job: TLS with the job's key on both sides, frames in one direction at a time,
//! a deadline for everything.

use std::fmt;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::fault::{Fault, Outcome};
use crate::frame::{Expected, HEADER, Header, Kind, MOST_BYTES};
use crate::hop::{Closer, Hop};
use crate::key::{JobKey, NAME};

/// What TLS has read ahead: a few of its records.
const READ_AHEAD: usize = 128 << 10;

/// How often a reader that waits looks whether it has waited too long.
const LOOK: Duration = Duration::from_millis(100);

/// A connection. Dropping it closes it.
pub struct Link {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    key: JobKey,
    generation: u64,
    sent: u64,
    received: u64,
    patience: Duration,
    /// Header and payload together, so that a small frame is one record.
    buffer: Vec<u8>,
    bytes: u64,
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Whether the next frame continues it.
    pub more: bool,
    /// The collective or the command that it belongs to.
    pub step: u64,
    /// Its bytes.
    pub payload: Vec<u8>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A socket whose reads are buffered, since TLS asks for few bytes at a time.
struct Socket {
    reads: BufReader<TcpStream>,
    writes: TcpStream,
    /// When the handshake must be over, byte by byte or at once.
    deadline: Instant,
    is_open: Arc<AtomicBool>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_open.load(Ordering::Relaxed) && Instant::now() > self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.reads.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writes.write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writes.write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writes.flush()
    }
}

impl Link {
    /// Connects to a process of the job. `patience`: the deadline of the connection, of the handshake, and of every
    /// frame from then on.
    ///
    /// # Errors
    /// Nobody listens there, or who does has another key.
    pub fn dial(address: SocketAddr, key: &JobKey, patience: Duration) -> Outcome<Self> {
        let socket = TcpStream::connect_timeout(&address, patience)
            .map_err(|error| Fault::Unreachable(error.to_string()))?;
        let name = ServerName::try_from(NAME).map_err(|error| Fault::Broken(error.to_string()))?;
        let tls = ClientConnection::new(key.client(), name)
            .map_err(|error| Fault::Broken(error.to_string()))?;
        Self::over(socket, key, patience, |socket| {
            let mut stream = StreamOwned::new(tls, socket);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
            Ok(Box::new(stream))
        })
    }

    /// The other side of [`Self::dial`].
    ///
    /// # Errors
    /// Who dials has another key, or is too slow.
    pub fn accept(socket: TcpStream, key: &JobKey, patience: Duration) -> Outcome<Self> {
        let tls = ServerConnection::new(key.server())
            .map_err(|error| Fault::Broken(error.to_string()))?;
        Self::over(socket, key, patience, |socket| {
            let mut stream = StreamOwned::new(tls, socket);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
            Ok(Box::new(stream))
        })
    }

    fn over(
        socket: TcpStream,
        key: &JobKey,
        patience: Duration,
        handshake: impl FnOnce(Socket) -> io::Result<Box<dyn Stream>>,
    ) -> Outcome<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        let is_open = Arc::new(AtomicBool::new(false));
        let buffered = Socket {
            reads: BufReader::with_capacity(READ_AHEAD, socket.try_clone()?),
            writes: socket.try_clone()?,
            deadline: Instant::now() + patience,
            is_open: Arc::clone(&is_open),
        };
        let stream = handshake(buffered).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Fault::Silent(patience),
            io::ErrorKind::InvalidData => Fault::refused(error.to_string()),
            _ => Fault::from(error),
        })?;
        is_open.store(true, Ordering::Relaxed);
        socket.set_read_timeout(Some(LOOK.min(patience)))?;
        Ok(Self {
            stream,
            socket,
            key: key.clone(),
            generation: 0,
            sent: 0,
            received: 0,
            patience,
            buffer: Vec::new(),
            bytes: 0,
        })
    }

    /// From here on its frames are of this membership, and counted from 0.
    pub fn belongs_to(&mut self, generation: u64) {
        (self.generation, self.sent, self.received) = (generation, 0, 0);
    }

    /// How long a frame may take from now on.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn set_patience(&mut self, patience: Duration) -> Outcome<()> {
        self.socket.set_write_timeout(Some(patience))?;
        self.patience = patience;
        Ok(())
    }

    /// What closes it from another thread.
    ///
    /// # Errors
    /// The process has no more file descriptors.
    pub fn closer(&self) -> Outcome<Closer> {
        let socket = self.socket.try_clone()?;
        Ok(Closer::new(move || {
            let _ = socket.shutdown(Shutdown::Both);
        }))
    }

    /// The address of the other side.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }

    /// The address of this side.
    pub fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// The bytes of all payloads that were sent.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes
    }

    /// Sends a frame of at most [`MOST_BYTES`].
    ///
    /// # Errors
    /// The other side is gone, or takes nothing for too long.
    pub fn send(&mut self, kind: Kind, step: u64, payload: &[u8]) -> Outcome<()> {
        self.send_part(kind, step, payload, false)
    }

    /// Sends bytes of any number, as one frame or several.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_message(&mut self, kind: Kind, step: u64, message: &[u8]) -> Outcome<()> {
        let mut rest = message;
        while rest.len() > MOST_BYTES {
            let (part, after) = rest.split_at(MOST_BYTES);
            self.send_part(kind, step, part, true)?;
            rest = after;
        }
        self.send_part(kind, step, rest, false)
    }

    fn send_part(&mut self, kind: Kind, step: u64, payload: &[u8], more: bool) -> Outcome<()> {
        if payload.len() > MOST_BYTES {
            return Err(Fault::refused("to send so large a frame"));
        }
        let header = Header {
            kind,
            more,
            job: self.key.id(),
            generation: self.generation,
            step,
            sequence: self.sent,
            length: payload.len(),
        };
        self.sent += 1;
        self.bytes += payload.len() as u64;
        self.buffer.clear();
        self.buffer.extend_from_slice(&header.encoded());
        self.buffer.extend_from_slice(payload);
        let written = self.stream.write_all(&self.buffer);
        let written = written.and_then(|()| self.stream.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Fault::Silent(self.patience),
            _ => Fault::from(error),
        })
    }

    /// The next frame, which must come within the link's patience.
    ///
    /// # Errors
    /// The other side is gone or silent, or sends what is refused.
    pub fn receive(&mut self) -> Outcome<Frame> {
        let mut bytes = [0; HEADER];
        self.fill(&mut bytes)?;
        let header = Header::decoded(&bytes)?;
        let expected = Expected {
            job: self.key.id(),
            generation: self.generation,
            sequence: self.received,
        };
        expected.check(&header)?;
        self.received += 1;
        let mut payload = vec![0; header.length];
        self.fill(&mut payload)?;
        Ok(Frame {
            kind: header.kind,
            more: header.more,
            step: header.step,
            payload,
        })
    }

    /// The next message: a frame with those that continue it.
    ///
    /// # Errors
    /// As [`Self::receive`], and for more than `most` bytes.
    pub fn receive_message(&mut self, most: usize) -> Outcome<Frame> {
        let mut first = self.receive()?;
        while first.more {
            let next = self.receive()?;
            if (next.kind, next.step) != (first.kind, first.step) {
                return Err(Fault::refused("a message that another one interrupts"));
            }
            if first.payload.len() + next.payload.len() > most {
                return Err(Fault::refused(format!(
                    "a message of more than {most} bytes"
                )));
            }
            first.payload.extend_from_slice(&next.payload);
            first.more = next.more;
        }
        Ok(first)
    }

    fn fill(&mut self, mut rest: &mut [u8]) -> Outcome<()> {
        let mut since = Instant::now();
        while !rest.is_empty() {
            match self.stream.read(rest) {
                Ok(0) => return Err(Fault::Closed),
                Ok(count) => {
                    rest = &mut rest[count..];
                    since = Instant::now();
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        if since.elapsed() >= self.patience {
                            return Err(Fault::Silent(since.elapsed()));
                        }
                    }
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(Fault::from(error)),
                },
            }
        }
        Ok(())
    }
}

impl Hop for Link {
    fn send(&mut self, kind: Kind, step: u64, payload: &[u8]) -> Outcome<()> {
        Self::send(self, kind, step, payload)
    }

    fn receive(&mut self) -> Outcome<Frame> {
        Self::receive(self)
    }

    fn closer(&self) -> Outcome<Closer> {
        Self::closer(self)
    }

    fn bytes_sent(&self) -> u64 {
        Self::bytes_sent(self)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer() {
            Some(address) => write!(f, "Link({address})"),
            None => f.write_str("Link(closed)"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
