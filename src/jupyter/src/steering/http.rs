//! The socket at which runs can be read and steered: HTTP/1.1 on a loopback port, one request a connection.
//!
//! ```text
//! GET /    the runs, and all actions
//! POST /   a request as JSON; its answer
//! ```
//!
//! Every process of this machine can connect, so nothing is done or shown without the key, which is in a file that
//! only this user can read: `Authorization: Bearer KEY`. A page in a browser cannot send that header from another origin;
//! requests with an `Origin`, or with a `Host` that is not this machine, are refused all the same.

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stratoscope_os::private_folder::{self, PrivateFolder};
use stratoscope_os::temporary_folder;
use stratoscope_session::SteerSocket;
use stratoscope_wire::request::refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::{MAX_REQUEST_BYTES, Steering};

/// Connections at once; more are closed.
const MAX_CONNECTIONS: usize = 16;
/// Longer heads are refused.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// A client must have sent its request by then.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// A client must have read its answer by then.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after `accept` failed.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The open socket. It is closed, and the file of its key removed, when this is dropped.
pub(super) struct Socket {
    pub place: SteerSocket,
    task: AbortHandle,
    _folder: PrivateFolder,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Socket {
    /// Opens it at a free port of 127.0.0.1, with a new key.
    pub fn open(steering: Steering, runtime: &Handle) -> io::Result<Self> {
        let folder = folder()?;
        let key = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let key_file = folder.path().join("key");
        let mut options = File::options();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&key_file)?;
        file.write_all(key.as_bytes())?;
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}/", listener.local_addr()?);
        let digest = Sha256::digest(key.as_bytes()).into();
        let task = runtime.spawn(serve(listener, steering, digest));
        Ok(Self {
            place: SteerSocket { url, key_file },
            task: task.abort_handle(),
            _folder: folder,
        })
    }
}

/// A folder that only this user may enter.
fn folder() -> io::Result<PrivateFolder> {
    let temporary = temporary_folder::find().map_err(io::Error::other)?;
    PrivateFolder::make(temporary.folder.join(private_folder::fresh_name()))
}

async fn serve(listener: StdListener, steering: Steering, key: [u8; 32]) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // They end with this task.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().try_acquire_owned() else {
            continue;
        };
        let steering = steering.clone();
        connections.spawn(async move {
            serve_one(stream, &steering, &key).await;
            drop(place);
        });
    }
}

/// Answers one request, and closes the connection.
async fn serve_one(mut stream: TcpStream, steering: &Steering, key: &[u8; 32]) {
    let read = tokio::time::timeout(READ_TIMEOUT, read(&mut stream, key)).await;
    let (status, answer) = match read {
        Ok(Ok(data)) => {
            let answer = steering.answer("socket", data, &Arc::new(json!({}))).await;
            (status_of(&answer), answer)
        }
        Ok(Err(refused)) => refused,
        // Too slow.
        Err(_) => return,
    };
    let body = format!("{answer}\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let write = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(WRITE_TIMEOUT, write).await;
}

/// A status line and an answer.
type Refused = (&'static str, Value);

const BAD_REQUEST: &str = "400 Bad Request";
const TOO_LARGE: &str = "413 Content Too Large";

fn status_of(answer: &Value) -> &'static str {
    match answer["error"]["code"].as_str() {
        None => "200 OK",
        Some("malformed") => BAD_REQUEST,
        Some("too_many") => "429 Too Many Requests",
        Some("no_answer") => "504 Gateway Timeout",
        Some(_) => "409 Conflict",
    }
}

/// Reads a request: the data of it as they come by a comm.
async fn read(stream: &mut TcpStream, key: &[u8; 32]) -> Result<Value, Refused> {
    let broken = || (BAD_REQUEST, refusal("malformed", "the request is cut off"));
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Err((TOO_LARGE, refusal("too_large", "the head is too long")));
        }
        if (stream.read_buf(&mut bytes).await).map_err(|_| broken())? == 0 {
            return Err(broken());
        }
    };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| broken())?;
    let Some(length) = Head::of(head)?.admitted(key)? else {
        return Ok(json!({"action": "runs"}));
    };
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if (stream.read_buf(&mut body).await).map_err(|_| broken())? == 0 {
            return Err(broken());
        }
    }
    body.truncate(length);
    let malformed = |_| (BAD_REQUEST, refusal("malformed", "the body is not JSON"));
    serde_json::from_slice(&body).map_err(malformed)
}

/// The head of a request.
#[derive(Debug, Default, PartialEq)]
struct Head<'h> {
    method: &'h str,
    target: &'h str,
    key: Option<&'h str>,
    host: Option<&'h str>,
    length: Option<usize>,
    has_origin: bool,
    has_encoding: bool,
}

impl<'h> Head<'h> {
    fn of(text: &'h str) -> Result<Self, Refused> {
        let malformed = || (BAD_REQUEST, refusal("malformed", "this is not HTTP/1.1"));
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (first.next(), first.next(), first.next(), first.next())
        else {
            return Err(malformed());
        };
        let mut head = Self {
            method,
            target,
            ..Self::default()
        };
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(malformed)?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "authorization" => {
                    let (scheme, key) = value.split_once(' ').unwrap_or_default();
                    head.key = scheme.eq_ignore_ascii_case("bearer").then_some(key.trim());
                }
                "host" => head.host = Some(value),
                "origin" => head.has_origin = true,
                "transfer-encoding" => head.has_encoding = true,
                // Two lengths are how requests are smuggled.
                "content-length" if head.length.is_some() => return Err(malformed()),
                "content-length" => head.length = Some(value.parse().map_err(|_| malformed())?),
                _ => {}
            }
        }
        Ok(head)
    }

    /// The length of the body, or `None` for a request to list the runs.
    ///
    /// # Errors
    /// The request has not the key, comes from a page of a browser, or asks for something else.
    fn admitted(&self, key: &[u8; 32]) -> Result<Option<usize>, Refused> {
        // Digests are compared: how long that takes says nothing of the key.
        let given = self.key.map(|it| <[u8; 32]>::from(Sha256::digest(it)));
        if given != Some(*key) {
            let message =
                "`Authorization: Bearer KEY` is missing or wrong; `%steer` shows where the key is";
            return Err(("401 Unauthorized", refusal("unauthorized", message)));
        }
        let host = self
            .host
            .map(|it| it.rsplit_once(':').map_or(it, |(name, _)| name));
        if self.has_origin || !matches!(host, Some("127.0.0.1" | "localhost")) {
            let message = "pages of a browser and other hosts are refused";
            return Err(("403 Forbidden", refusal("forbidden", message)));
        }
        if self.target != "/" {
            return Err(("404 Not Found", refusal("malformed", "there is only `/`")));
        }
        match (self.method, self.length) {
            ("GET", _) => Ok(None),
            ("POST", _) if self.has_encoding => {
                let message = "a body has a `Content-Length`";
                Err(("411 Length Required", refusal("malformed", message)))
            }
            ("POST", None) => {
                let message = "a body has a `Content-Length`";
                Err(("411 Length Required", refusal("malformed", message)))
            }
            ("POST", Some(length)) if length > MAX_REQUEST_BYTES => {
                let message = "a request has at most 16 KiB";
                Err((TOO_LARGE, refusal("too_large", message)))
            }
            ("POST", Some(length)) => Ok(Some(length)),
            _ => {
                let message = "there are GET and POST";
                Err(("405 Method Not Allowed", refusal("malformed", message)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    /// The length of the body, or the status.
    fn admitted(head: &str) -> Result<Option<usize>, &'static str> {
        let key = Sha256::digest(KEY).into();
        let head = head.replace('\n', "\r\n");
        let head = Head::of(&head).map_err(|(status, _)| status)?;
        head.admitted(&key).map_err(|(status, _)| status)
    }

    #[test]
    fn only_requests_with_the_key_are_admitted() {
        let with = |first: &str, more: &str| {
            admitted(&format!(
                "{first} HTTP/1.1\nHost: 127.0.0.1:80\nAuthorization: Bearer {KEY}{more}"
            ))
        };
        assert_eq!(with("GET /", ""), Ok(None));
        assert_eq!(with("POST /", "\nContent-Length: 20"), Ok(Some(20)));
        for (first, more, status) in [
            ("POST /", "", "411 Length Required"),
            (
                "POST /",
                "\nTransfer-Encoding: chunked",
                "411 Length Required",
            ),
            ("POST /", "\nContent-Length: 999999", TOO_LARGE),
            (
                "POST /",
                "\nContent-Length: 2\nContent-Length: 3",
                BAD_REQUEST,
            ),
            ("POST /", "\nContent-Length: -2", BAD_REQUEST),
            ("GET /", "\nOrigin: http://example.org", "403 Forbidden"),
            ("GET /", "\nHost: example.org", "403 Forbidden"),
            ("GET /", "\nAuthorization: Bearer no", "401 Unauthorized"),
            ("GET /", "\nAuthorization: Basic no", "401 Unauthorized"),
            ("GET /", "\nno header", BAD_REQUEST),
            ("GET /other", "", "404 Not Found"),
            ("PUT /", "", "405 Method Not Allowed"),
            ("GET", "", BAD_REQUEST),
        ] {
            assert_eq!(with(first, more), Err(status), "{first} {more}");
        }
        assert_eq!(
            admitted("GET / HTTP/1.1\nHost: localhost"),
            Err("401 Unauthorized")
        );
        assert_eq!(
            admitted(&format!("GET / HTTP/1.1\nAuthorization: bearer {KEY}")),
            Err("403 Forbidden")
        );
        assert_eq!(admitted(""), Err(BAD_REQUEST));
    }

    #[test]
    fn answers_have_a_status() {
        assert_eq!(status_of(&json!({"ok": true, "result": {}})), "200 OK");
        assert_eq!(status_of(&refusal("malformed", "")), BAD_REQUEST);
        assert_eq!(status_of(&refusal("SC0103", "")), "409 Conflict");
    }
}
