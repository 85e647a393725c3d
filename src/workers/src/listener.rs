//! The port of a process: who comes with the job's key and a greeting becomes a [`Visitor`]; anybody else is left
//! standing outside. Each handshake has a thread and a deadline of its own, and there are only so many at a time: one more
//! ends the oldest, so that nobody keeps others from entering.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use parking_lot::Mutex;

use crate::fault::Outcome;
use crate::hello::Hello;
use crate::key::JobKey;
use crate::link::Link;
use crate::settings::Settings;

/// Handshakes at a time.
const MOST_HANDSHAKES: usize = 64;

/// Who has come.
#[derive(Debug)]
pub struct Visitor {
    /// Who it is and what it wants.
    pub hello: Hello,
    /// The connection.
    pub link: Link,
}

/// A port that is open until this is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
}

impl Listener {
    /// Opens a port; port 0 is any that is free. Visitors come out of the receiver.
    ///
    /// # Errors
    /// The port is taken, or the address is not one of this machine's.
    pub fn open(
        address: SocketAddr,
        key: &JobKey,
        settings: &Settings,
    ) -> std::io::Result<(Self, Receiver<Visitor>)> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let (sender, visitors) = mpsc::channel();
        let (closed, key, settings) = (Arc::clone(&is_closed), key.clone(), settings.clone());
        std::thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || answer(&listener, &closed, &key, &settings, &sender))?;
        Ok((Self { address, is_closed }, visitors))
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // The thread waits for a visitor.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let _ = TcpStream::connect_timeout(&address, Duration::from_millis(200));
    }
}

fn answer(
    listener: &TcpListener,
    closed: &AtomicBool,
    key: &JobKey,
    settings: &Settings,
    visitors: &Sender<Visitor>,
) {
    let handshakes = Arc::new(Handshakes::default());
    for (number, socket) in listener.incoming().enumerate() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(socket) = socket else {
            // No file descriptors: others may close some.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let Ok(other) = socket.try_clone() else {
            continue;
        };
        handshakes.begin(number, other);
        let (key, settings, visitors) = (key.clone(), settings.clone(), visitors.clone());
        let handshake = Handshake(Arc::clone(&handshakes), number);
        let greet = move || {
            let greeted = greeted(socket, &key, &settings);
            drop(handshake);
            if let Ok((link, hello)) = greeted {
                let _ = visitors.send(Visitor { hello, link });
            }
        };
        let _ = std::thread::Builder::new()
            .name("handshake".to_owned())
            .spawn(greet);
    }
}

fn greeted(socket: TcpStream, key: &JobKey, settings: &Settings) -> Outcome<(Link, Hello)> {
    let link = Link::accept(socket, key, settings.patience)?;
    Hello::receive(link, settings)
}

/// The connections whose handshake has not ended, the oldest first.
#[derive(Default)]
struct Handshakes(Mutex<VecDeque<(usize, TcpStream)>>);

impl Handshakes {
    /// Ends the oldest if there are too many.
    fn begin(&self, number: usize, socket: TcpStream) {
        let mut open = self.0.lock();
        open.push_back((number, socket));
        if open.len() > MOST_HANDSHAKES
            && let Some((_, oldest)) = open.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
    }
}

/// A handshake, until this is dropped.
struct Handshake(Arc<Handshakes>, usize);

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.0.lock().retain(|(number, _)| *number != self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};

    use super::*;
    use crate::fault::Fault;
    use crate::frame::Kind;
    use crate::hello::Role;

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    fn settings() -> Settings {
        Settings {
            patience: Duration::from_millis(800),
            ..Settings::new("a test")
        }
    }

    #[test]
    fn only_who_has_the_key_and_the_same_build_comes_in() {
        let (key, settings) = (JobKey::new().expect("a key"), settings());
        let (listener, visitors) = Listener::open(local(), &key, &settings).expect("a port");
        let hello = |settings: &Settings| Hello::new(settings, Role::Answers, 3, 0);
        let other = JobKey::new().expect("another key");
        let dialed = hello(&settings).dial(listener.address(), &other, &settings);
        dialed.expect_err("another key");
        let other_build = Settings::new("something else");
        let dialed = hello(&other_build).dial(listener.address(), &key, &other_build);
        match dialed {
            Err(Fault::Refused(why)) => assert!(why.contains("another build"), "{why}"),
            other => panic!("{other:?}"),
        }
        let dialed = hello(&settings).dial(listener.address(), &key, &settings);
        let (mut link, welcome) = dialed.expect("a member of the job");
        assert_eq!(welcome.hop, Some(listener.address()));
        let mut visitor = visitors.recv().expect("it has come in");
        assert_eq!(
            (visitor.hello.role, visitor.hello.member),
            (Role::Answers, 3)
        );
        link.send_message(Kind::Answer, 4, &vec![7; 3 << 20])
            .expect("sent");
        let came = visitor.link.receive_message(4 << 20).expect("received");
        assert_eq!((came.step, came.payload.len()), (4, 3 << 20));
        link.send_message(Kind::Answer, 5, &vec![7; 3 << 20])
            .expect("sent");
        let refused = visitor.link.receive_message(2 << 20).expect_err("too much");
        assert!(
            refused.to_string().contains("more than 2097152 bytes"),
            "{refused}"
        );
    }

    /// Strangers that say nothing, talk another protocol or speak byte by byte do not keep a member out.
    #[test]
    fn strangers_do_not_keep_members_out() {
        let key = JobKey::new().expect("a key");
        // Longer than a member needs on a busy machine.
        let patient = Settings {
            patience: Duration::from_secs(30),
            ..settings()
        };
        let (listener, visitors) = Listener::open(local(), &key, &patient).expect("a port");
        let silent: Vec<TcpStream> = (0..2 * MOST_HANDSHAKES)
            .map(|_| TcpStream::connect(listener.address()).expect("a port"))
            .collect();
        let mut talks = TcpStream::connect(listener.address()).expect("a port");
        talks.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        let limit = Some(Duration::from_secs(1));
        talks.set_read_timeout(limit).expect("a limit");
        let _ = talks.read_to_end(&mut answer);
        let hello = Hello::new(&patient, Role::Commands, 1, 0);
        hello
            .dial(listener.address(), &key, &patient)
            .expect("a member");
        visitors.recv().expect("it has come in");
        // The member has not waited for the end of the strangers: the last one is still connected.
        let mut last = silent.last().expect("some strangers");
        last.set_nonblocking(true).expect("a socket");
        let read = last.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        drop(silent);
        let settings = settings();
        let (listener, _visitors) = Listener::open(local(), &key, &settings).expect("a port");
        // Byte by byte: the deadline is of the whole handshake.
        let mut slow = TcpStream::connect(listener.address()).expect("a port");
        let header = [0x16, 0x03, 0x01, 0x02, 0x00].into_iter().cycle();
        let mut sent = header.take(1000).map(|byte| {
            std::thread::sleep(Duration::from_millis(60));
            slow.write_all(&[byte])
        });
        assert!(sent.any(|sent| sent.is_err()), "it is still connected");
    }
}
