//! The `msg_type` of a header, as far as this kernel reads it.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#message-header>

use std::fmt;

use serde::Deserialize;

/// What a front end sends.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub enum MessageType {
    /// Ask what this kernel is.
    KernelInfoRequest,
    /// Execute a cell.
    ExecuteRequest,
    /// Complete code at the cursor.
    CompleteRequest,
    /// Describe a name.
    InspectRequest,
    /// Ask whether code is complete.
    IsCompleteRequest,
    /// Ask for executed cells.
    HistoryRequest,
    /// List the open comms.
    CommInfoRequest,
    /// Open a comm.
    CommOpen,
    /// Send over a comm.
    CommMessage,
    /// Close a comm.
    CommClose,
    /// Ask the debugger.
    DebugRequest,
    /// Interrupt the running cell.
    InterruptRequest,
    /// Shut down.
    ShutdownRequest,
    /// Answer a question on stdin.
    InputReply,
    /// A type that this kernel does not know.
    Unknown(String),
}

impl MessageType {
    /// The protocol's name.
    pub fn name(&self) -> &str {
        match self {
            Self::KernelInfoRequest => "kernel_info_request",
            Self::ExecuteRequest => "execute_request",
            Self::CompleteRequest => "complete_request",
            Self::InspectRequest => "inspect_request",
            Self::IsCompleteRequest => "is_complete_request",
            Self::HistoryRequest => "history_request",
            Self::CommInfoRequest => "comm_info_request",
            Self::CommOpen => "comm_open",
            Self::CommMessage => "comm_msg",
            Self::CommClose => "comm_close",
            Self::DebugRequest => "debug_request",
            Self::InterruptRequest => "interrupt_request",
            Self::ShutdownRequest => "shutdown_request",
            Self::InputReply => "input_reply",
            Self::Unknown(name) => name,
        }
    }
}

impl MessageType {
    /// The protocol's name for the reply; `None`: a message of this type has no reply.
    pub fn reply(&self) -> Option<&'static str> {
        Some(match self {
            Self::KernelInfoRequest => "kernel_info_reply",
            Self::ExecuteRequest => "execute_reply",
            Self::CompleteRequest => "complete_reply",
            Self::InspectRequest => "inspect_reply",
            Self::IsCompleteRequest => "is_complete_reply",
            Self::HistoryRequest => "history_reply",
            Self::CommInfoRequest => "comm_info_reply",
            Self::DebugRequest => "debug_reply",
            Self::InterruptRequest => "interrupt_reply",
            Self::ShutdownRequest => "shutdown_reply",
            Self::CommOpen
            | Self::CommMessage
            | Self::CommClose
            | Self::InputReply
            | Self::Unknown(_) => return None,
        })
    }
}

impl From<String> for MessageType {
    fn from(name: String) -> Self {
        match name.as_str() {
            "kernel_info_request" => Self::KernelInfoRequest,
            "execute_request" => Self::ExecuteRequest,
            "complete_request" => Self::CompleteRequest,
            "inspect_request" => Self::InspectRequest,
            "is_complete_request" => Self::IsCompleteRequest,
            "history_request" => Self::HistoryRequest,
            "comm_info_request" => Self::CommInfoRequest,
            "comm_open" => Self::CommOpen,
            "comm_msg" => Self::CommMessage,
            "comm_close" => Self::CommClose,
            "debug_request" => Self::DebugRequest,
            "interrupt_request" => Self::InterruptRequest,
            "shutdown_request" => Self::ShutdownRequest,
            "input_reply" => Self::InputReply,
            _ => Self::Unknown(name),
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in [
            "kernel_info_request",
            "execute_request",
            "complete_request",
            "inspect_request",
            "is_complete_request",
            "history_request",
            "comm_info_request",
            "comm_open",
            "comm_msg",
            "comm_close",
            "debug_request",
            "interrupt_request",
            "shutdown_request",
            "input_reply",
        ] {
            let parsed = MessageType::from(name.to_owned());
            assert!(!matches!(parsed, MessageType::Unknown(_)), "{name}");
            assert_eq!(parsed.name(), name);
        }
        let unknown = MessageType::from("usage_request".to_owned());
        assert_eq!(unknown, MessageType::Unknown("usage_request".to_owned()));
    }
}
