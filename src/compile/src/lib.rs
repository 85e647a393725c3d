//! Everything between evcxr and rustc: this crate answers when evcxr and rust-analyzer call cargo, rustup or
//! rustc, and compiles a cell against the prebuilt facade (`libstratoscope.so`). It uses `cell-text`,
//! `diagnostics` and `os`; it knows no variables, no wire and no Jupyter.
//!
//! In the order in which a cell passes through:
//! - [`toolchain`]: our executable as evcxr's cargo. It calls rustc as the real cargo did for the first cell.
//! - [`attempts`]: the sources that rustc is given one after the other. [`generated`] replaces what evcxr has
//!   written around the cell by calls into the facade, [`staged`] makes a closure of each statement.
//! - [`compile_cache`]: a cell that was compiled before is not compiled again; [`retry`]: nor is one whose
//!   errors are known already.
//! - [`standby`]: the rustc that has read the facade and waits for the cell; [`linker`] links what it writes.
//! - [`wrapper`]: our executable as rustc's wrapper, for what the real cargo builds.
//! - [`cargo_cache`]: what cargo answers rust-analyzer at the start of a kernel.
//! - [`state`]: what the kernel and these processes tell each other.
//! - [`home`]: the private folder that all of them share; [`facade`] and [`compiler`] find the library and its
//!   rustc; [`view`] writes what rust-analyzer sees of the library.
//!
//! Start with [`toolchain`].

use std::process::ExitCode;

pub mod attempts;
pub mod cargo_cache;
pub mod compile_cache;
pub mod compiler;
pub mod facade;
pub mod generated;
pub mod home;
pub mod linker;
pub mod retry;
pub mod rustc_json;
pub mod staged;
pub mod standby;
pub mod state;
pub mod toolchain;
pub mod view;
pub mod wrapper;

/// Called first in `main`. `Some` when the process was started as rustc's wrapper, as cargo or as rustup, and
/// has done its work.
pub fn dispatch() -> Option<ExitCode> {
    wrapper::dispatch()
        .or_else(toolchain::dispatch)
        .or_else(cargo_cache::dispatch)
}
