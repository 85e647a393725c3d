//! Validates what a client sends against the framing of ZMTP 3 and the limits of its channel.
//!
//! The ZeroMQ library allocates a frame as soon as its length is announced, and keeps the frames of a
//! message until the last one has arrived. [`ZmtpValidator`] sees the same bytes before the library does. It
//! stores only its position in the stream, none of the bytes.
//!
//! Source: ZeroMQ RFC 23, ZMTP 3.0, <https://rfc.zeromq.org/spec/23/>: a greeting of 64 bytes, then
//! frames of a byte of flags, a length of 1 or 8 bytes, and so many bytes.

use thiserror::Error;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct MessageLimits {
    /// All frames of one message together, without their headers.
    pub message_bytes: u64,
    /// Frames of one message.
    pub frames: u32,
    /// Messages of one connection.
    pub messages: u64,
}

/// What a client did wrong; the connection is closed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Violation {
    /// The first bytes belong to another protocol.
    #[error("it does not speak ZeroMQ's protocol")]
    NotZmtp,
    /// The version in the greeting is too old.
    #[error("it speaks version {major} of ZeroMQ's protocol; 3 is needed")]
    OldVersion {
        /// The major version that the client announced.
        major: u8,
    },
    /// A security mechanism other than `NULL`.
    #[error("it asks to authenticate with a mechanism that kernels do not support")]
    Mechanism,
    /// Unknown flags, or a combination that the protocol does not allow.
    #[error("a frame has the flags {flags:#04x}")]
    Flags {
        /// The byte.
        flags: u8,
    },
    /// A message before the end of the handshake, or a command after it.
    #[error("a frame is out of place")]
    OutOfPlace,
    /// A frame would make its message or command too long.
    #[error("it announced a message of {announced} bytes; {limit} are accepted")]
    TooLong {
        /// Bytes of the message up to the end of this frame.
        announced: u64,
        /// [`MessageLimits::message_bytes`], or the longest command.
        limit: u64,
    },
    /// A message has too many frames.
    #[error("a message has more than {limit} frames")]
    TooManyFrames {
        /// [`MessageLimits::frames`].
        limit: u32,
    },
    /// The connection has sent too many messages.
    #[error("it sent more than {limit} messages")]
    TooManyMessages {
        /// [`MessageLimits::messages`].
        limit: u64,
    },
}

/// The length of a greeting: signature and version, mechanism, role, padding.
const GREETING_BYTES: usize = 64;

/// `NULL`, the only supported mechanism, as bytes 12 to 31 of the greeting.
const MECHANISM: [u8; 20] = *b"NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The longest command: `READY` with a socket's type and an identity of 255 bytes needs 300.
const COMMAND_BYTES: u64 = 4096;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Validates the bytes of one connection.
#[derive(Debug)]
pub struct ZmtpValidator {
    limits: MessageLimits,
    state: State,
    /// Whether the client's `READY` has arrived.
    is_ready: bool,
    /// Bytes of the current message, including the announced length of its last frame.
    message_bytes: u64,
    frames: u32,
    messages: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Greeting { at: usize },
    Flags,
    Length { flags: u8, missing: u32, value: u64 },
    Body { flags: u8, missing: u64 },
}

impl ZmtpValidator {
    /// For a new connection.
    pub fn new(limits: MessageLimits) -> Self {
        Self {
            limits,
            state: State::Greeting { at: 0 },
            is_ready: false,
            message_bytes: 0,
            frames: 0,
            messages: 0,
        }
    }

    /// Validates the next bytes.
    ///
    /// # Errors
    /// The client broke the protocol or a limit. Then none of `bytes` may be forwarded; what was forwarded
    /// before ends within the header of the invalid frame at the latest.
    pub fn validate(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while let Some((&next, rest)) = bytes.split_first() {
            bytes = rest;
            match self.state {
                State::Greeting { at } => {
                    check_greeting(at, next)?;
                    self.state = match at + 1 {
                        GREETING_BYTES => State::Flags,
                        at => State::Greeting { at },
                    };
                }
                State::Flags => {
                    self.check_flags(next)?;
                    let missing = if next & LONG == 0 { 1 } else { 8 };
                    self.state = State::Length {
                        flags: next,
                        missing,
                        value: 0,
                    };
                }
                State::Length {
                    flags,
                    missing,
                    value,
                } => {
                    let (missing, value) = (missing - 1, value << 8 | u64::from(next));
                    if missing > 0 {
                        self.state = State::Length {
                            flags,
                            missing,
                            value,
                        };
                        continue;
                    }
                    self.check_length(flags, value)?;
                    self.advance(flags, value);
                }
                State::Body { flags, missing } => {
                    let taken = missing.min(1 + rest.len() as u64);
                    // `taken` is at most a slice's length, and counts `next`.
                    bytes = &rest[taken as usize - 1..];
                    self.advance(flags, missing - taken);
                }
            }
        }
        Ok(())
    }

    /// Whether the handshake is complete.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The number of the incomplete message, if there is one.
    pub fn current_message(&self) -> Option<u64> {
        let is_within = self.frames > 0 || !matches!(self.state, State::Flags);
        (self.is_ready && is_within).then_some(self.messages)
    }

    /// The bytes of the incomplete message that have arrived, which the library stores.
    pub fn partial_bytes(&self) -> u64 {
        match self.state {
            State::Body { missing, .. } => self.message_bytes - missing,
            _ => self.message_bytes,
        }
    }

    fn check_flags(&self, flags: u8) -> Result<(), Violation> {
        let is_command = flags & COMMAND != 0;
        if flags > (MORE | LONG | COMMAND) || is_command && flags & MORE != 0 {
            return Err(Violation::Flags { flags });
        }
        // A client sends one command, `READY`. Heartbeat commands came with ZMTP 3.1; the library
        // announces 3.0.
        if is_command == self.is_ready {
            return Err(Violation::OutOfPlace);
        }
        Ok(())
    }

    fn check_length(&mut self, flags: u8, length: u64) -> Result<(), Violation> {
        let limit = match flags & COMMAND {
            0 => self.limits.message_bytes,
            _ => COMMAND_BYTES,
        };
        let announced = self.message_bytes.saturating_add(length);
        if announced > limit {
            return Err(Violation::TooLong { announced, limit });
        }
        if self.frames == self.limits.frames {
            let limit = self.limits.frames;
            return Err(Violation::TooManyFrames { limit });
        }
        if self.messages == self.limits.messages {
            let limit = self.limits.messages;
            return Err(Violation::TooManyMessages { limit });
        }
        self.message_bytes = announced;
        self.frames += 1;
        Ok(())
    }

    /// Continues with a frame of which `missing` bytes have not arrived.
    fn advance(&mut self, flags: u8, missing: u64) {
        if missing > 0 {
            self.state = State::Body { flags, missing };
            return;
        }
        self.state = State::Flags;
        if flags & MORE == 0 {
            self.message_bytes = 0;
            self.frames = 0;
            match flags & COMMAND {
                0 => self.messages += 1,
                _ => self.is_ready = true,
            }
        }
    }
}

fn check_greeting(at: usize, byte: u8) -> Result<(), Violation> {
    match at {
        0 if byte != 0xff => Err(Violation::NotZmtp),
        9 if byte != 0x7f => Err(Violation::NotZmtp),
        10 if byte < 3 => Err(Violation::OldVersion { major: byte }),
        12..32 if byte != MECHANISM[at - 12] => Err(Violation::Mechanism),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MessageLimits = MessageLimits {
        message_bytes: 64 << 20,
        frames: 3,
        messages: 2,
    };

    const READY: &[u8] = b"\x04\x06\x05READY";

    fn greeting() -> Vec<u8> {
        [
            b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00",
            &MECHANISM[..],
            &[0; 32],
        ]
        .concat()
    }

    /// Validates these bytes after a greeting.
    fn check(bytes: &[&[u8]], expected: Result<(), Violation>) {
        let bytes = [&greeting(), &bytes.concat()[..]].concat();
        assert_eq!(ZmtpValidator::new(LIMITS).validate(&bytes), expected);
    }

    fn long(flags: u8, length: u64) -> Vec<u8> {
        [&[flags | LONG][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn good_messages_pass() {
        check(&[], Ok(()));
        check(&[READY], Ok(()));
        check(&[READY, b"\x01\x00", b"\x01\x02ab", b"\x00\x01c"], Ok(()));
        check(&[READY, b"\x00\x00", b"\x00\x00"], Ok(()));
        check(&[READY, &long(0, 64 << 20)], Ok(()));
    }

    #[test]
    fn broken_limits_are_violations() {
        let limit = 64 << 20;
        for announced in [limit + 1, 1 << 60, u64::MAX] {
            check(
                &[READY, &long(0, announced)],
                Err(Violation::TooLong { announced, limit }),
            );
        }
        let announced = 1 + limit;
        check(
            &[READY, b"\x01\x01a", &long(0, limit)],
            Err(Violation::TooLong { announced, limit }),
        );
        check(
            &[READY, b"\x01\x00", b"\x01\x00", b"\x01\x00", b"\x01\x00"],
            Err(Violation::TooManyFrames { limit: 3 }),
        );
        check(
            &[READY, b"\x00\x00", b"\x00\x00", b"\x00\x00"],
            Err(Violation::TooManyMessages { limit: 2 }),
        );
        check(
            &[&long(COMMAND, 5000)],
            Err(Violation::TooLong {
                announced: 5000,
                limit: COMMAND_BYTES,
            }),
        );
    }

    #[test]
    fn frames_out_of_place_are_violations() {
        check(&[b"\x00\x01a"], Err(Violation::OutOfPlace));
        check(&[READY, b"\x04\x05\x04PING"], Err(Violation::OutOfPlace));
        check(&[b"\x05\x00"], Err(Violation::Flags { flags: 5 }));
        check(&[READY, b"\x80\x00"], Err(Violation::Flags { flags: 0x80 }));
    }

    #[test]
    fn other_greetings_are_violations() {
        let check = |at: usize, byte: u8, expected| {
            let mut greeting = greeting();
            greeting[at] = byte;
            assert_eq!(ZmtpValidator::new(LIMITS).validate(&greeting), expected);
        };
        check(0, b'G', Err(Violation::NotZmtp));
        check(9, 0, Err(Violation::NotZmtp));
        check(10, 1, Err(Violation::OldVersion { major: 1 }));
        check(12, b'P', Err(Violation::Mechanism));
        check(16, b'X', Err(Violation::Mechanism));
        check(11, 1, Ok(()));
    }

    #[test]
    fn it_tracks_the_position() {
        let mut validator = ZmtpValidator::new(LIMITS);
        let mut check = |bytes: &[u8], is_ready, message, unfinished| {
            validator.validate(bytes).expect("is allowed");
            assert_eq!(validator.is_ready(), is_ready);
            assert_eq!(validator.current_message(), message);
            assert_eq!(validator.partial_bytes(), unfinished);
        };
        check(&greeting(), false, None, 0);
        check(&READY[..5], false, None, 3);
        check(&READY[5..], true, None, 0);
        check(b"\x01", true, Some(0), 0);
        check(b"\x04ab", true, Some(0), 2);
        check(b"cd", true, Some(0), 4);
        check(b"\x00\x02e", true, Some(0), 5);
        check(b"f", true, None, 0);
        check(&long(0, 100), true, Some(1), 0);
        check(&[0; 40], true, Some(1), 40);
    }
}
