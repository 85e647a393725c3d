//! A message as ZeroMQ frames, and back.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#the-wire-protocol>
//!
//! ```text
//! identity…, "<IDS|MSG>", signature, header, parent header, metadata, content, buffer…
//! ```

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use uuid::Uuid;

use super::clock;
use super::message::{Content, Error, MessageType, PROTOCOL_VERSION};
use super::signature::Signer;

/// Separates the identities from the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";

/// The number of signatures that are stored to detect replayed messages.
const MAX_SIGNATURES: usize = 1 << 16;

/// A message that arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// The sender's ZeroMQ identity; prefixed to the reply.
    pub identities: Vec<Vec<u8>>,
    /// The parsed header.
    pub header: Header,
    /// The header as it was sent: the parent of every message in reply.
    pub header_json: Value,
    /// The content as JSON.
    pub content: Value,
}

/// The fields of a header that the kernel reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Header {
    /// What the content is.
    pub msg_type: MessageType,
}

/// Why frames are not accepted as a message.
#[derive(Debug, Error)]
pub enum EnvelopeError {
    /// There is no `<IDS|MSG>` frame.
    #[error("no `<IDS|MSG>` frame among {frames}")]
    NoDelimiter {
        /// How many frames there were.
        frames: usize,
    },
    /// Frames are missing after the delimiter.
    #[error("{found} frames behind the delimiter, at least 5 expected")]
    MissingFrames {
        /// How many there were.
        found: usize,
    },
    /// The signature is missing or wrong.
    #[error("the signature is wrong")]
    BadSignature,
    /// A message with this signature has been seen before.
    #[error("the message was sent before")]
    Replayed,
    /// A frame is not JSON of the expected kind.
    #[error("the {part} is not usable: {error}")]
    NotJson {
        /// Which frame.
        part: &'static str,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// Parses frames into requests; detects replays.
pub struct Opener {
    signer: Signer,
    seen: HashSet<Vec<u8>>,
    oldest_first: VecDeque<Vec<u8>>,
}

impl Opener {
    /// One for each socket.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            seen: HashSet::new(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Verifies and parses the frames of a message. Buffers are accepted and ignored.
    pub fn open<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<Request, EnvelopeError> {
        let delimiter = frames
            .iter()
            .position(|frame| frame.as_ref() == DELIMITER)
            .ok_or(EnvelopeError::NoDelimiter {
                frames: frames.len(),
            })?;
        let (identities, message) = (&frames[..delimiter], &frames[delimiter + 1..]);
        let [signature, header, parent, metadata, content, ..] = message else {
            return Err(EnvelopeError::MissingFrames {
                found: message.len(),
            });
        };
        let signature = signature.as_ref();
        let dictionaries = [header, parent, metadata, content].map(|frame| frame.as_ref());
        if !self.signer.verify(signature, dictionaries) {
            return Err(EnvelopeError::BadSignature);
        }
        self.check_replay(signature)?;

        let header_json = dictionary("header", dictionaries[0])?;
        dictionary("parent header", dictionaries[1])?;
        dictionary("metadata", dictionaries[2])?;
        Ok(Request {
            identities: identities
                .iter()
                .map(|frame| frame.as_ref().to_vec())
                .collect(),
            header: Header::deserialize(&header_json).map_err(|error| EnvelopeError::NotJson {
                part: "header",
                error,
            })?,
            header_json: Value::Object(header_json),
            content: Value::Object(dictionary("content", dictionaries[3])?),
        })
    }

    fn check_replay(&mut self, signature: &[u8]) -> Result<(), EnvelopeError> {
        if !self.signer.has_key() {
            return Ok(());
        }
        // Digits may be written in either case; the signature is the same.
        let signature = signature.to_ascii_lowercase();
        if !self.seen.insert(signature.clone()) {
            return Err(EnvelopeError::Replayed);
        }
        self.oldest_first.push_back(signature);
        if self.oldest_first.len() > MAX_SIGNATURES
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.seen.remove(&oldest);
        }
        Ok(())
    }
}

fn dictionary(part: &'static str, frame: &[u8]) -> Result<Map<String, Value>, EnvelopeError> {
    serde_json::from_slice(frame).map_err(|error| EnvelopeError::NotJson { part, error })
}

/// Signs messages and makes their frames.
#[derive(Clone)]
pub struct Sealer {
    signer: Signer,
    session: String,
}

impl Sealer {
    /// One for each kernel.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            session: Uuid::new_v4().to_string(),
        }
    }

    /// The kernel's session id, which is in the topics of iopub.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The frames of a message in answer to `parent` (`{}` when it answers nothing).
    pub fn seal(&self, prefix: &[Vec<u8>], parent: &Value, message: &Sealable) -> Vec<Vec<u8>> {
        let header = SentHeader {
            msg_id: Uuid::new_v4().to_string(),
            session: &self.session,
            username: "kernel",
            date: clock::now(),
            msg_type: message.msg_type,
            version: PROTOCOL_VERSION,
        };
        let header = serde_json::to_vec(&header).expect("strings can be written as JSON");
        let parent = parent.to_string().into_bytes();
        let metadata = message.metadata.as_bytes().to_vec();
        let signature = self
            .signer
            .sign([&header, &parent, &metadata, message.content.as_bytes()]);
        let mut frames = prefix.to_vec();
        frames.extend([
            DELIMITER.to_vec(),
            signature.into_bytes(),
            header,
            parent,
            metadata,
            message.content.clone().into_bytes(),
        ]);
        frames
    }
}

/// A message's type and its content as JSON.
#[derive(Clone, Debug)]
pub struct Sealable {
    /// The protocol's name for it.
    pub msg_type: &'static str,
    /// A JSON object.
    pub metadata: &'static str,
    /// A JSON object.
    pub content: String,
}

impl Sealable {
    /// Writes the content as JSON.
    pub fn new<C: Content>(content: &C) -> Self {
        // Contents are structs of strings, numbers and JSON values with string keys.
        let content = serde_json::to_string(content).expect("contents can be written as JSON");
        Self {
            msg_type: C::TYPE,
            metadata: C::METADATA,
            content,
        }
    }

    /// A reply of any type with the status `error`.
    pub fn failed(reply: &'static str, error: &Error) -> Self {
        #[derive(Serialize)]
        struct Failed<'a> {
            status: &'static str,
            #[serde(flatten)]
            error: &'a Error,
        }
        let status = "error";
        let content = serde_json::to_string(&Failed { status, error });
        Self {
            msg_type: reply,
            metadata: Error::METADATA,
            content: content.expect("strings can be written as JSON"),
        }
    }
}

#[derive(Serialize)]
struct SentHeader<'a> {
    msg_id: String,
    session: &'a str,
    username: &'a str,
    date: String,
    msg_type: &'a str,
    version: &'a str,
}

#[cfg(test)]
mod tests {
    use super::super::message::Status;
    use super::*;

    const KEY: &[u8] = b"secret";
    const HEADER: &str = r#"{"msg_id": "1", "msg_type": "kernel_info_request", "session": "s",
        "username": "u", "version": "5.3", "date": "2024-01-01T00:00:00Z", "subshell_id": null}"#;

    fn frames(header: &str, content: &str) -> Vec<Vec<u8>> {
        let parts: [&[u8]; 4] = [header.as_bytes(), b"{}", b"{}", content.as_bytes()];
        let signature = Signer::new(KEY).sign(parts).into_bytes();
        let mut frames = vec![b"peer".to_vec(), DELIMITER.to_vec(), signature];
        frames.extend(parts.map(<[u8]>::to_vec));
        frames
    }

    fn open(frames: &[Vec<u8>]) -> Result<Request, EnvelopeError> {
        Opener::new(Signer::new(KEY)).open(frames)
    }

    fn check(frames: Vec<Vec<u8>>, expected: &str) {
        let error = open(&frames).expect_err("is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_good_message_is_read_with_its_buffers_ignored() {
        let mut frames = frames(HEADER, r#"{"code": "1"}"#);
        frames.push(vec![0xff, 0x00]);
        let request = open(&frames).expect("is accepted");
        assert_eq!(request.identities, [b"peer".to_vec()]);
        assert_eq!(request.header.msg_type, MessageType::KernelInfoRequest);
        assert_eq!(request.header_json["username"], "u");
        assert_eq!(request.content["code"], "1");
    }

    #[test]
    fn bad_messages_are_refused_with_their_reason() {
        let good = || frames(HEADER, "{}");
        check(Vec::new(), "no `<IDS|MSG>` frame among 0");
        let mut wrong_delimiter = good();
        wrong_delimiter[1] = b"<IDS|MSG".to_vec();
        check(wrong_delimiter, "no `<IDS|MSG>` frame among 7");
        for kept in 2..7 {
            check(
                good()[..kept].to_vec(),
                &format!("{} frames behind", kept - 2),
            );
        }
        let mut unsigned = good();
        unsigned[2] = Vec::new();
        check(unsigned, "signature is wrong");
        let mut changed = good();
        changed[6] = br#"{"code": "rm"}"#.to_vec();
        check(changed, "signature is wrong");
        check(frames("not json", "{}"), "the header is not usable");
        check(frames("[]", "{}"), "the header is not usable");
        check(
            frames(r#"{"msg_id": "1"}"#, "{}"),
            "missing field `msg_type`",
        );
        check(
            frames(r#"{"msg_id": "1", "msg_type": 1}"#, "{}"),
            "the header is not usable",
        );
        check(frames(HEADER, "\u{0}"), "the content is not usable");
        check(frames(HEADER, "null"), "the content is not usable");
        check(
            frames(HEADER, &"[".repeat(100_000)),
            "the content is not usable",
        );
    }

    #[test]
    fn a_replayed_message_is_refused() {
        let mut opener = Opener::new(Signer::new(KEY));
        let frames = frames(HEADER, "{}");
        opener.open(&frames).expect("the first time");
        assert!(matches!(opener.open(&frames), Err(EnvelopeError::Replayed)));
        let mut in_capitals = frames.clone();
        in_capitals[2].make_ascii_uppercase();
        assert!(matches!(
            opener.open(&in_capitals),
            Err(EnvelopeError::Replayed)
        ));
        let mut keyless = Opener::new(Signer::new(b""));
        keyless.open(&frames).expect("the first time");
        keyless
            .open(&frames)
            .expect("nothing tells them apart without signatures");
    }

    #[test]
    fn what_is_sealed_can_be_opened() {
        let sealer = Sealer::new(Signer::new(KEY));
        let parent = serde_json::json!({"msg_id": "p", "msg_type": "execute_request"});
        let message = Sealable::new(&Status::busy());
        let frames = sealer.seal(&[b"topic".to_vec()], &parent, &message);
        let parent_frame: Value = serde_json::from_slice(&frames[4]).expect("is JSON");
        assert_eq!(parent_frame, parent);
        let request = open(&frames).expect("is signed");
        assert_eq!(request.header.msg_type.name(), "status");
        assert_eq!(request.content["execution_state"], "busy");
        assert_eq!(request.header_json["version"], PROTOCOL_VERSION);
    }
}
