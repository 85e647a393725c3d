//! The debugger's protocol: requests of a front end's debugger panel become questions about values, and the answers become
//! replies. Nothing here does I/O or waits: [`Debugger::request`] says what is to be asked, and
//! [`Debugger::inspected`] makes the reply of the answer.
//!
//! Jupyter carries the messages of the Debug Adapter Protocol in `debug_request`, `debug_reply` and `debug_event`, and adds
//! some of its own (`debugInfo`, `inspectVariables`, `richInspectVariables`, `dumpCell`):
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#debug-request>,
//! <https://microsoft.github.io/debug-adapter-protocol/specification>.
//!
//! ```
//! use serde_json::json;
//! use stratoscope_debugger::{Action, Debugger};
//!
//! let mut debugger = Debugger::new("/tmp/cells_".to_owned());
//! let request = json!({"seq": 1, "type": "request", "command": "initialize", "arguments": {}});
//! let Action::Reply(answered) = debugger.request(&request) else { panic!("it needs no values") };
//! assert_eq!(answered.reply["success"], true);
//! ```
//!
//! Start reading at [`Debugger`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod action;
mod breakpoints;
mod debugger;
mod filters;
mod murmur;
pub mod native;
mod protocol;
mod references;
mod runs;
mod sources;
mod standing;
mod values;

pub use action::{Action, Answered, Pending, Then};
pub use breakpoints::Breakpoint;
pub use debugger::{CellsOfDebugger, Debugger};
pub use filters::OfCells;
pub use references::VARIABLES;
pub use runs::CELLS;
