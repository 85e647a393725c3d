//! The shell, control and stdin sockets: requests arrive, replies go to their senders.

use std::time::Duration;

use serde_json::Value;
use zeromq::{RouterRecvHalf, RouterSendHalf, SocketRecv, SocketSend, ZmqError, ZmqMessage};

use super::super::envelope::{Opener, Request, Sealable, Sealer};
use super::super::message::{Content, Error};
use super::super::signature::Signer;
use super::log::Log;

/// A reply that a client does not read within this time is dropped.
const SEND_LIMIT: Duration = Duration::from_secs(5);

/// The receiving half of a socket.
pub struct Requests {
    socket: RouterRecvHalf,
    opener: Opener,
    log: Log,
}

impl Requests {
    /// `name` is for the log.
    pub fn new(socket: RouterRecvHalf, signer: Signer, name: &'static str) -> Self {
        Self {
            socket,
            opener: Opener::new(signer),
            log: Log::new(name),
        }
    }

    /// Waits for the next valid message. Others are logged and dropped.
    pub async fn next(&mut self) -> Request {
        loop {
            let message = match self.socket.recv().await {
                Ok(message) => message,
                Err(error) => {
                    pause_after(&self.log, error).await;
                    continue;
                }
            };
            match self.opener.open(&message.into_vec()) {
                Ok(request) => return request,
                Err(error) => self.log.warn(&format!("message dropped: {error}")),
            }
        }
    }
}

/// The sending half of a socket; clones share it.
#[derive(Clone)]
pub struct Replies {
    socket: RouterSendHalf,
    sealer: Sealer,
    log: Log,
}

impl Replies {
    /// `name` is for the log.
    pub fn new(socket: RouterSendHalf, sealer: Sealer, name: &'static str) -> Self {
        Self {
            socket,
            sealer,
            log: Log::new(name),
        }
    }

    /// Sends a reply to the sender of the request. Returns whether it was sent; a failure is logged.
    pub async fn send<C: Content>(&mut self, to: &Request, content: &C) -> bool {
        self.send_to(&to.identities, &to.header_json, content).await
    }

    /// As [`Replies::send`], from the parts of the request.
    pub async fn send_to<C: Content>(
        &mut self,
        identities: &[Vec<u8>],
        parent: &Value,
        content: &C,
    ) -> bool {
        self.send_sealed(identities, parent, &Sealable::new(content))
            .await
    }

    /// Answers a request whose content cannot be read with the status `error`, so that its sender does not wait. A
    /// message without a reply is only logged.
    pub async fn refuse(&mut self, request: &Request, error: &serde_json::Error) {
        let kind = &request.header.msg_type;
        let error = Error::malformed(kind, error);
        self.log.warn(&error.evalue);
        if let Some(reply) = kind.reply() {
            let message = Sealable::failed(reply, &error);
            self.send_sealed(&request.identities, &request.header_json, &message)
                .await;
        }
    }

    async fn send_sealed(
        &mut self,
        identities: &[Vec<u8>],
        parent: &Value,
        content: &Sealable,
    ) -> bool {
        let frames = self.sealer.seal(identities, parent, content);
        let Some(message) = to_zeromq(frames) else {
            return false;
        };
        let problem = match tokio::time::timeout(SEND_LIMIT, self.socket.send(message)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the client did not read for {} s", SEND_LIMIT.as_secs()),
        };
        let kind = content.msg_type;
        self.log.warn(&format!("{kind} not sent: {problem}"));
        false
    }
}

/// Frames as a message of the library; `None` without frames.
pub fn to_zeromq(frames: Vec<Vec<u8>>) -> Option<ZmqMessage> {
    let mut frames = frames.into_iter();
    let mut message = ZmqMessage::from(frames.next()?);
    frames.for_each(|frame| message.push_back(frame.into()));
    Some(message)
}

/// Logs an error of `recv` and pauses. Such errors come from a peer; should they come from the socket itself, the loop
/// must not spin.
pub async fn pause_after(log: &Log, error: ZmqError) {
    log.warn(&format!("receiving failed: {error}"));
    tokio::time::sleep(Duration::from_millis(10)).await;
}
