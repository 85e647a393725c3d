//! Reads along with what a client sends, by the framing of ZMTP 3, and says when it must not go on.
//!
//! The ZeroMQ library reserves the memory of a frame as soon as its length has been announced, and
//! keeps the frames of a message until the last one is there. [`Follower`] sees the same bytes
//! before the library does. It keeps nothing of them but where it is.
//!
//! Source: ZeroMQ RFC 23, ZMTP 3.0, <https://rfc.zeromq.org/spec/23/>: a greeting of 64 bytes, then
//! frames of a byte of flags, a length of 1 or 8 bytes, and so many bytes.

use thiserror::Error;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// All frames of one message together, without their headers.
    pub message_bytes: u64,
    /// Frames of one message.
    pub frames: u32,
    /// Messages of one connection.
    pub messages: u64,
}

/// Why a connection is closed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The first bytes are of another protocol.
    #[error("it does not speak ZeroMQ's protocol")]
    NotZmtp,
    /// The version in the greeting.
    #[error("it speaks version {major} of ZeroMQ's protocol; 3 is needed")]
    OldVersion {
        /// What it speaks.
        major: u8,
    },
    /// Another mechanism than `NULL`.
    #[error("it wants to authenticate itself in a way that kernels have not")]
    Mechanism,
    /// Flags that the protocol does not know, or not together.
    #[error("a frame has the flags {flags:#04x}")]
    Flags {
        /// The byte.
        flags: u8,
    },
    /// A message came before the handshake's end, or a command after it.
    #[error("a frame is out of place")]
    OutOfPlace,
    /// A frame would make its message, or command, too long.
    #[error("it announced a message of {announced} bytes; {limit} are accepted")]
    TooLong {
        /// Bytes of the message up to the end of this frame.
        announced: u64,
        /// [`Limits::message_bytes`], or the longest command.
        limit: u64,
    },
    /// A message has too many frames.
    #[error("a message has more than {limit} frames")]
    TooManyFrames {
        /// [`Limits::frames`].
        limit: u32,
    },
    /// The connection has sent too many messages.
    #[error("it sent more than {limit} messages")]
    TooManyMessages {
        /// [`Limits::messages`].
        limit: u64,
    },
}

/// Of a greeting: signature and version, mechanism, role, padding.
const GREETING_BYTES: usize = 64;

/// `NULL`, the only mechanism there is, as the greeting's bytes 12 to 31.
const MECHANISM: [u8; 20] = *b"NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The longest command: `READY` with a socket's type and an identity of 255 bytes needs 300.
const COMMAND_BYTES: u64 = 4096;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Follows one connection.
#[derive(Debug)]
pub struct Follower {
    limits: Limits,
    state: State,
    /// Whether the client's `READY` has come.
    is_ready: bool,
    /// Of the message that is under way, with what was announced of its last frame.
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

impl Follower {
    /// At the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Greeting { at: 0 },
            is_ready: false,
            message_bytes: 0,
            frames: 0,
            messages: 0,
        }
    }

    /// Reads the bytes that came next.
    ///
    /// # Errors
    /// Nothing of `bytes` may be passed on then. What was passed on before may end within the
    /// header of the frame that is refused, never behind it.
    pub fn follow(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
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
                    self.go_on(flags, value);
                }
                State::Body { flags, missing } => {
                    let taken = missing.min(1 + rest.len() as u64);
                    // `taken` is at most a slice's length, and counts `next`.
                    bytes = &rest[taken as usize - 1..];
                    self.go_on(flags, missing - taken);
                }
            }
        }
        Ok(())
    }

    /// Whether the handshake is over.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The number of the message that has begun and not ended, if any.
    pub fn message_under_way(&self) -> Option<u64> {
        let is_within = self.frames > 0 || !matches!(self.state, State::Flags);
        (self.is_ready && is_within).then_some(self.messages)
    }

    /// Bytes of the message that is under way which have come, and which the library keeps.
    pub fn unfinished_bytes(&self) -> u64 {
        match self.state {
            State::Body { missing, .. } => self.message_bytes - missing,
            _ => self.message_bytes,
        }
    }

    fn check_flags(&self, flags: u8) -> Result<(), Refusal> {
        let is_command = flags & COMMAND != 0;
        if flags > (MORE | LONG | COMMAND) || is_command && flags & MORE != 0 {
            return Err(Refusal::Flags { flags });
        }
        // A client's only command is its `READY`. Heartbeats between sockets, which are commands,
        // came with ZMTP 3.1; the library announces 3.0.
        if is_command == self.is_ready {
            return Err(Refusal::OutOfPlace);
        }
        Ok(())
    }

    fn check_length(&mut self, flags: u8, length: u64) -> Result<(), Refusal> {
        let limit = match flags & COMMAND {
            0 => self.limits.message_bytes,
            _ => COMMAND_BYTES,
        };
        let announced = self.message_bytes.saturating_add(length);
        if announced > limit {
            return Err(Refusal::TooLong { announced, limit });
        }
        if self.frames == self.limits.frames {
            let limit = self.limits.frames;
            return Err(Refusal::TooManyFrames { limit });
        }
        if self.messages == self.limits.messages {
            let limit = self.limits.messages;
            return Err(Refusal::TooManyMessages { limit });
        }
        self.message_bytes = announced;
        self.frames += 1;
        Ok(())
    }

    /// `missing` bytes of a frame are still to come.
    fn go_on(&mut self, flags: u8, missing: u64) {
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

fn check_greeting(at: usize, byte: u8) -> Result<(), Refusal> {
    match at {
        0 if byte != 0xff => Err(Refusal::NotZmtp),
        9 if byte != 0x7f => Err(Refusal::NotZmtp),
        10 if byte < 3 => Err(Refusal::OldVersion { major: byte }),
        12..32 if byte != MECHANISM[at - 12] => Err(Refusal::Mechanism),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
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

    /// What becomes of a client that sends these bytes, behind a greeting.
    fn check(bytes: &[&[u8]], expected: Result<(), Refusal>) {
        let bytes = [&greeting(), &bytes.concat()[..]].concat();
        assert_eq!(Follower::new(LIMITS).follow(&bytes), expected);
    }

    fn long(flags: u8, length: u64) -> Vec<u8> {
        [&[flags | LONG][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn messages_are_let_through() {
        check(&[], Ok(()));
        check(&[READY], Ok(()));
        check(&[READY, b"\x01\x00", b"\x01\x02ab", b"\x00\x01c"], Ok(()));
        check(&[READY, b"\x00\x00", b"\x00\x00"], Ok(()));
        check(&[READY, &long(0, 64 << 20)], Ok(()));
    }

    #[test]
    fn what_breaks_a_limit_is_refused() {
        let limit = 64 << 20;
        for announced in [limit + 1, 1 << 60, u64::MAX] {
            check(
                &[READY, &long(0, announced)],
                Err(Refusal::TooLong { announced, limit }),
            );
        }
        let announced = 1 + limit;
        check(
            &[READY, b"\x01\x01a", &long(0, limit)],
            Err(Refusal::TooLong { announced, limit }),
        );
        check(
            &[READY, b"\x01\x00", b"\x01\x00", b"\x01\x00", b"\x01\x00"],
            Err(Refusal::TooManyFrames { limit: 3 }),
        );
        check(
            &[READY, b"\x00\x00", b"\x00\x00", b"\x00\x00"],
            Err(Refusal::TooManyMessages { limit: 2 }),
        );
        check(
            &[&long(COMMAND, 5000)],
            Err(Refusal::TooLong {
                announced: 5000,
                limit: COMMAND_BYTES,
            }),
        );
    }

    #[test]
    fn what_is_out_of_place_is_refused() {
        check(&[b"\x00\x01a"], Err(Refusal::OutOfPlace));
        check(&[READY, b"\x04\x05\x04PING"], Err(Refusal::OutOfPlace));
        check(&[b"\x05\x00"], Err(Refusal::Flags { flags: 5 }));
        check(&[READY, b"\x80\x00"], Err(Refusal::Flags { flags: 0x80 }));
    }

    #[test]
    fn other_greetings_are_refused() {
        let check = |at: usize, byte: u8, expected| {
            let mut greeting = greeting();
            greeting[at] = byte;
            assert_eq!(Follower::new(LIMITS).follow(&greeting), expected);
        };
        check(0, b'G', Err(Refusal::NotZmtp));
        check(9, 0, Err(Refusal::NotZmtp));
        check(10, 1, Err(Refusal::OldVersion { major: 1 }));
        check(12, b'P', Err(Refusal::Mechanism));
        check(16, b'X', Err(Refusal::Mechanism));
        check(11, 1, Ok(()));
    }

    #[test]
    fn it_knows_where_it_is() {
        let mut follower = Follower::new(LIMITS);
        let mut check = |bytes: &[u8], is_ready, message, unfinished| {
            follower.follow(bytes).expect("is allowed");
            assert_eq!(follower.is_ready(), is_ready);
            assert_eq!(follower.message_under_way(), message);
            assert_eq!(follower.unfinished_bytes(), unfinished);
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
