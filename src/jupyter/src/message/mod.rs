//! The messages of the Jupyter protocol that this kernel reads or writes, a file each.
//!
//! Unknown fields are ignored: front ends add their own. Messages without content
//! (`kernel_info_request`, `interrupt_request`) need no file.

use serde::Serialize;

/// The version of the protocol that all of this follows.
pub const PROTOCOL_VERSION: &str = "5.5";

/// The content of a message that a kernel sends.
pub trait Content: Serialize {
    /// The `msg_type` of its header.
    const TYPE: &'static str;
    /// The message's metadata, a JSON object.
    const METADATA: &'static str = "{}";
}

mod clear_output;
mod comm_close;
mod comm_info_reply;
mod comm_info_request;
mod comm_msg;
mod comm_open;
mod complete_reply;
mod complete_request;
mod debug_event;
mod debug_reply;
mod display_data;
mod error;
mod execute_input;
mod execute_reply;
mod execute_request;
mod execute_result;
mod history_reply;
mod history_request;
mod input_reply;
mod input_request;
mod inspect_reply;
mod inspect_request;
mod interrupt_reply;
mod iopub_welcome;
mod is_complete_reply;
mod is_complete_request;
mod kernel_info_reply;
mod message_type;
mod shutdown_reply;
mod shutdown_request;
mod status;
mod stream;
mod update_display_data;

pub use clear_output::ClearOutput;
pub use comm_close::CommClose;
pub use comm_info_reply::CommInfoReply;
pub use comm_info_request::CommInfoRequest;
pub use comm_msg::CommMessage;
pub use comm_open::{CommOpen, CommOpened};
pub use complete_reply::CompleteReply;
pub use complete_request::CompleteRequest;
pub use debug_event::DebugEvent;
pub use debug_reply::DebugReply;
pub use display_data::{DisplayData, Transient};
pub use error::Error;
pub use execute_input::ExecuteInput;
pub use execute_reply::ExecuteReply;
pub use execute_request::ExecuteRequest;
pub use execute_result::ExecuteResult;
pub use history_reply::HistoryReply;
pub use history_request::{Access, HistoryRequest};
pub use input_reply::InputReply;
pub use input_request::InputRequest;
pub use inspect_reply::InspectReply;
pub use inspect_request::InspectRequest;
pub use interrupt_reply::InterruptReply;
pub use iopub_welcome::IopubWelcome;
pub use is_complete_reply::IsCompleteReply;
pub use is_complete_request::IsCompleteRequest;
pub use kernel_info_reply::{HelpLink, KernelInfoReply};
pub use message_type::MessageType;
pub use shutdown_reply::ShutdownReply;
pub use shutdown_request::ShutdownRequest;
pub use status::Status;
pub use stream::StreamText;
pub use update_display_data::UpdateDisplayData;
