//! What the chief and a worker say to each other behind the frames: commands with their answers, and signs of life.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Outcome};
use crate::settings::Transport;

/// The largest command or answer: a batch of numbers is far smaller, and weights travel as [`Values`].
///
/// [`Values`]: crate::frame::Kind::Values
pub(crate) const MOST_BYTES: usize = 256 << 20;

/// What a worker is to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// Take a place in a new membership.
    Form(Form),
    /// Work, in the words of who uses the group.
    Work(Vec<u8>),
    /// The job is over.
    Leave,
}

/// A membership, as one of its members needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    pub generation: u64,
    /// The place of the member.
    pub position: usize,
    pub size: usize,
    /// The member before it.
    pub left: u64,
    /// The member behind it, and where that accepts hops.
    pub right: u64,
    pub right_address: SocketAddr,
    /// What carries the hops.
    pub transport: Transport,
    /// The name of the group for NCCL, where that does the all-reduces.
    pub nccl: Option<Vec<u8>>,
}

impl Command {
    pub(crate) fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Form(form) => {
                let mut bytes = vec![0];
                bytes.extend(serde_json::to_vec(form).unwrap_or_default());
                bytes
            }
            Self::Work(work) => [&[1], work.as_slice()].concat(),
            Self::Leave => vec![2],
        }
    }

    pub(crate) fn decoded(mut bytes: Vec<u8>) -> Outcome<Self> {
        match bytes.first() {
            Some(0) => serde_json::from_slice(&bytes[1..])
                .map(Self::Form)
                .map_err(|error| Fault::refused(error.to_string())),
            Some(1) => Ok(Self::Work(bytes.split_off(1))),
            Some(2) if bytes.len() == 1 => Ok(Self::Leave),
            _ => Err(Fault::refused("an unknown command")),
        }
    }
}

/// What became of a command.
pub(crate) type Answer = Result<Vec<u8>, Fault>;

/// An answer as bytes: a mark, then what was computed or what went wrong.
pub(crate) fn encoded(answer: &Answer) -> Vec<u8> {
    match answer {
        Ok(bytes) => [&[0], bytes.as_slice()].concat(),
        Err(Fault::Failed(why)) => [&[1], why.as_bytes()].concat(),
        // No fault of who says so: the chief must not take it for lost.
        Err(Fault::Aborted) => vec![3],
        Err(fault) => [&[2], fault.to_string().as_bytes()].concat(),
    }
}

/// The other way.
pub(crate) fn decoded(mut bytes: Vec<u8>) -> Outcome<Answer> {
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[1..])
            .chars()
            .take(2000)
            .collect()
    };
    match bytes.first() {
        Some(0) => Ok(Ok(bytes.split_off(1))),
        Some(1) => Ok(Err(Fault::Failed(text(&bytes)))),
        Some(2) => Ok(Err(Fault::Broken(text(&bytes)))),
        Some(3) if bytes.len() == 1 => Ok(Err(Fault::Aborted)),
        _ => Err(Fault::refused("an unknown answer")),
    }
}

/// What a worker does that has answered all commands.
pub(crate) const WAITS: &str = "waits";

/// What a worker says of itself with every sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// What it does: `computes a batch`.
    pub doing: String,
    /// For how long, in milliseconds.
    pub milliseconds: u64,
    /// Commands that it has carried out.
    pub done: u64,
    /// Bytes that it has sent to the member behind it.
    pub bytes_sent: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_and_answers_come_back() {
        let form = Form {
            generation: 2,
            position: 1,
            size: 4,
            left: 7,
            right: 4,
            right_address: SocketAddr::from(([127, 0, 0, 1], 9)),
            transport: Transport::Mpi,
            nccl: None,
        };
        for command in [
            Command::Form(form),
            Command::Work(vec![1, 2]),
            Command::Leave,
        ] {
            assert_eq!(Command::decoded(command.encoded()), Ok(command));
        }
        let failed = Fault::Failed("no memory".to_owned());
        for answer in [Ok(vec![3]), Err(failed), Err(Fault::Aborted)] {
            assert_eq!(decoded(encoded(&answer)), Ok(answer));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Command::decoded(bytes.clone());
            let _ = decoded(bytes);
        }
    }
}
