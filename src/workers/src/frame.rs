//! Frames: what is sent between the processes of a job, and what is refused.
//!
//! ```text
//! magic 4 | kind 1 | more 1 | zero 2 | job 16 | generation 8 | step 8 | sequence 8 | length 4 | payload
//! ```
//!
//! Numbers are little-endian. A *generation* is one membership of the group: it begins when processes join or are lost.
//! A *step* numbers the collective or the command that a frame belongs to. The *sequence* counts the frames of a
//! connection from 0 and never skips. TLS keeps others from writing frames; the header keeps a frame of this job from
//! being taken for one of another moment.

use crate::fault::{Fault, Outcome};
use crate::key::JobId;

/// The bytes of a header.
pub const HEADER: usize = 52;

/// The largest payload of a frame.
pub const MOST_BYTES: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"SCW1";

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first frame of who has dialed.
    Hello = 1,
    /// The answer to [`Self::Hello`].
    Welcome = 2,
    /// Work for a worker.
    Command = 3,
    /// What became of a command.
    Answer = 4,
    /// A sign of life.
    Heartbeat = 5,
    /// The collective that is going on has ended, for all.
    Abort = 6,
    /// A sum over the replicas up to the sender.
    Partial = 7,
    /// The sum over all replicas.
    Total = 8,
    /// A part of what is given to all.
    Values = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Hello,
        Self::Welcome,
        Self::Command,
        Self::Answer,
        Self::Heartbeat,
        Self::Abort,
        Self::Partial,
        Self::Total,
        Self::Values,
    ];
}

/// All of a frame but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whether the next frame continues its payload.
    pub more: bool,
    /// The job.
    pub job: JobId,
    /// The membership.
    pub generation: u64,
    /// The collective or the command.
    pub step: u64,
    /// The number of the frame on its connection.
    pub sequence: u64,
    /// The bytes of the payload.
    pub length: usize,
}

impl Header {
    /// The bytes that are sent.
    pub fn encoded(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = u8::from(self.more);
        bytes[8..24].copy_from_slice(&self.job.0);
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.step.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[48..].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes
    }

    /// The header that these bytes are.
    ///
    /// # Errors
    /// [`Fault::Refused`] for anything that [`Self::encoded`] does not write.
    pub fn decoded(bytes: &[u8; HEADER]) -> Outcome<Self> {
        if bytes[..4] != MAGIC {
            return Err(Fault::refused("no frame of this protocol"));
        }
        let kind = Kind::ALL.into_iter().find(|&kind| kind as u8 == bytes[4]);
        let kind = kind.ok_or_else(|| Fault::refused(format!("frames of kind {}", bytes[4])))?;
        let more = match bytes[5] {
            0 => false,
            1 => true,
            other => return Err(Fault::refused(format!("a frame marked {other}"))),
        };
        if bytes[6..8] != [0, 0] {
            return Err(Fault::refused("a frame with unknown marks"));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let mut job = [0; 16];
        job.copy_from_slice(&bytes[8..24]);
        let mut length = [0; 4];
        length.copy_from_slice(&bytes[48..]);
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_BYTES {
            let most = MOST_BYTES;
            return Err(Fault::refused(format!(
                "a frame of {length} bytes, more than {most}"
            )));
        }
        Ok(Self {
            kind,
            more,
            job: JobId(job),
            generation: word(24),
            step: word(32),
            sequence: word(40),
            length,
        })
    }
}

/// What the next frame of a connection must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The job.
    pub job: JobId,
    /// The membership of the connection.
    pub generation: u64,
    /// The frames that have come.
    pub sequence: u64,
}

impl Expected {
    /// Whether it is.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a frame of another job or membership, one that was sent before, or one out of order.
    pub fn check(&self, found: &Header) -> Outcome<()> {
        if found.job != self.job {
            return Err(Fault::refused("a frame of another job"));
        }
        if found.generation != self.generation {
            return Err(Fault::refused(format!(
                "a frame of generation {}, not {}",
                found.generation, self.generation
            )));
        }
        if found.sequence != self.sequence {
            let kind = match found.sequence < self.sequence {
                true => "a repeated frame",
                false => "a frame out of order",
            };
            return Err(Fault::refused(format!(
                "{kind}: number {}, not {}",
                found.sequence, self.sequence
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            kind: Kind::Partial,
            more: false,
            job: JobId([7; 16]),
            generation: 3,
            step: 12,
            sequence: 5,
            length: 1000,
        }
    }

    #[test]
    fn only_the_next_frame_of_this_job_and_membership_is_taken() {
        let expected = Expected {
            job: JobId([7; 16]),
            generation: 3,
            sequence: 5,
        };
        let found = Header::decoded(&header().encoded()).expect("its own frame");
        assert_eq!(found, header());
        assert_eq!(expected.check(&found), Ok(()));
        let refused = |found: Header| match expected.check(&found) {
            Err(Fault::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        let (own, job) = (header(), JobId([8; 16]));
        assert!(refused(Header { job, ..own }).contains("another job"));
        let (old, later) = (2, 9);
        let other = Header {
            generation: old,
            ..own
        };
        assert!(refused(other).contains("generation 2, not 3"));
        let other = Header {
            sequence: old,
            ..own
        };
        assert!(refused(other).contains("repeated"));
        let other = Header {
            sequence: later,
            ..own
        };
        assert!(refused(other).contains("out of order"));
        let mut bytes = own.encoded();
        bytes[48..].copy_from_slice(&(MOST_BYTES as u32 + 1).to_le_bytes());
        let oversized = Header::decoded(&bytes).expect_err("too large");
        assert!(
            oversized.to_string().contains("1048577 bytes"),
            "{oversized}"
        );
    }

    proptest! {
        /// Whatever comes is either refused or the encoding of what it is decoded to.
        #[test]
        fn any_bytes_are_refused_or_a_header(bytes in proptest::collection::vec(any::<u8>(), HEADER)) {
            let bytes: [u8; HEADER] = bytes.try_into().expect("as many");
            if let Ok(found) = Header::decoded(&bytes) {
                prop_assert_eq!(found.encoded(), bytes);
            }
        }

        /// A header with one changed byte is another header or refused; never the same one.
        #[test]
        fn a_changed_byte_is_seen(at in 0..HEADER, change in 1..=255_u8) {
            let mut bytes = header().encoded();
            bytes[at] ^= change;
            match Header::decoded(&bytes) {
                Ok(found) => {
                    prop_assert_ne!(found, header());
                    prop_assert!(found.length <= MOST_BYTES);
                }
                Err(fault) => prop_assert!(matches!(fault, Fault::Refused(_))),
            }
        }
    }
}
