//! Everything between evcxr and rustc: this crate answers when evcxr and rust-analyzer call cargo, rustup or
//! rustc, and compiles a cell against the prebuilt facade (`libstratoscope.so`). It knows no variables, no wire and
//! no Jupyter.
//!
//! In the order in which a cell passes through:
//! - `toolchain`: our executable as evcxr's cargo and rustup.
//! - `rustc_call`: the call of rustc that the real cargo made for the first cell, repeated.
//! - `attempts`: the sources that rustc is given one after the other. `generated` replaces what evcxr has
//!   written around the cell by calls into the facade, `staged` makes a closure of each statement.
//! - `compile_cache`: a cell that was compiled before is not compiled again; `retry`: nor is one whose errors
//!   are known already.
//! - `standby`: the rustc that has read the facade and waits for the cell, and the [process](standby_process) that
//!   keeps it; `linker` links what it writes.
//! - `wrapper`: our executable as rustc's wrapper, for what the real cargo builds.
//! - `cargo_cache`: what cargo answers rust-analyzer at the start of a kernel.
//! - [`evcxr_contract`]: every text of evcxr's and cargo's that this and the crate `evaluator` rely on.
//! - [`state`]: what the kernel and these processes tell each other; `settings` and `layout`: what they share.
//! - [`packaged`]: the facade of an installed wheel; [`needed`] finds out which files rustc needs of it.
//! - [`home`]: the private folder; [`facade`] and [`compiler`] find the library and its rustc; `view` writes what
//!   rust-analyzer sees of the library.
//!
//! Start with `rustc_call`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

use std::process::ExitCode;

mod arguments;
mod attempts;
mod cargo_cache;
mod compile_cache;
pub mod compiler;
pub mod evcxr_contract;
pub mod facade;
pub mod generated;
pub mod home;
mod invocation;
mod layout;
mod linker;
pub mod needed;
pub mod packaged;
mod retry;
mod rustc_call;
mod rustc_json;
mod settings;
mod staged;
mod standby;
pub mod standby_process;
pub mod state;
mod toolchain;
pub mod view;
mod wrapper;

/// Called first in `main`. `Some` when the process was started as rustc's wrapper, as cargo or as rustup, and
/// has done its work.
pub fn dispatch() -> Option<ExitCode> {
    wrapper::dispatch()
        .or_else(toolchain::dispatch)
        .or_else(cargo_cache::dispatch)
}
