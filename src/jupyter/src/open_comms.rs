//! The comms that front ends open to a target of the kernel, and their messages. Those that the kernel opens for its widgets are
//! in `comms`.

use std::collections::VecDeque;

use serde::Deserialize;

use super::envelope::Request;
use super::message::{CommClose, CommMessage, CommOpen, MessageType};

/// Comms of a target that are open at once; the oldest one is closed for a further one. A page has one for each of its kernels.
const MAX_OPEN: usize = 64;

/// The ids of the open comms of a target, the oldest first.
#[derive(Debug, Default)]
pub struct OpenComms(VecDeque<String>);

impl OpenComms {
    /// Opens a comm, and closes the oldest one if there are too many: returns that one.
    pub fn open(&mut self, comm_id: String) -> Option<String> {
        if !self.contains(&comm_id) {
            self.0.push_back(comm_id);
        }
        (self.0.len() > MAX_OPEN)
            .then(|| self.0.pop_front())
            .flatten()
    }

    /// Closes a comm; returns whether it was open.
    pub fn close(&mut self, comm_id: &str) -> bool {
        let open = self.0.len();
        self.0.retain(|it| it != comm_id);
        self.0.len() < open
    }

    /// Whether a comm is open.
    pub fn contains(&self, comm_id: &str) -> bool {
        self.0.iter().any(|it| it == comm_id)
    }

    /// All ids.
    pub fn ids(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

/// What a front end says of a comm.
pub enum CommEvent {
    /// It opens one.
    Open(CommOpen),
    /// It sends data.
    Message(CommMessage),
    /// It closes one.
    Close(CommClose),
}

impl CommEvent {
    /// `None` for another message, and for a malformed one.
    pub fn of(request: &Request) -> Option<Self> {
        let content = &request.content;
        match request.header.msg_type {
            MessageType::CommOpen => CommOpen::deserialize(content).ok().map(Self::Open),
            MessageType::CommMessage => CommMessage::deserialize(content).ok().map(Self::Message),
            MessageType::CommClose => CommClose::deserialize(content).ok().map(Self::Close),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_comm_gives_way() {
        let mut comms = OpenComms::default();
        assert!((0..MAX_OPEN).all(|id| comms.open(id.to_string()).is_none()));
        assert_eq!(comms.open("0".to_owned()), None);
        assert_eq!(comms.open("new".to_owned()).as_deref(), Some("0"));
        assert!(comms.contains("new") && !comms.contains("0"));
        assert!(comms.close("new") && !comms.close("new"));
        assert_eq!(comms.ids().len(), MAX_OPEN - 1);
    }
}
