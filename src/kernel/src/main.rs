//! `stratoscope`: a Jupyter kernel for Rust that fine-tunes BERT under a distribution strategy, and its commands.
//! It connects the crates below it: start with [`cli`], then the crate `session`.
//!
//! Two front ends, the Jupyter protocol (crate `jupyter`) and headless notebooks ([`notebook`]), hand
//! cells to one `Session` (crate `session`), which owns an evaluator (crate `evaluator`).
//!
//! **Invariant**: this crate does not link burn. What cells compute travels over
//! `stratoscope_wire` from the process that runs them.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

use std::process::ExitCode;

/// rust-analyzer spends a quarter of a kernel's start in glibc's allocator; this one takes about half as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // evcxr and cargo also call this executable as rustc's wrapper and as cargo, selected by its environment.
    if let Some(code) = stratoscope_compile::dispatch() {
        return code;
    }
    cli::main()
}

mod cli;
mod notebook;
