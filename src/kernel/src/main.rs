//! `stratoscope`: a Jupyter kernel for Rust in which one fine-tunes BERT under a distribution
//! strategy, and the commands around it.
//!
//! Two front ends, the Jupyter protocol (crate `jupyter`) and headless notebooks ([`notebook`]), hand
//! cells to one `Session` (crate `session`), which owns an evaluator (crate `evaluator`).
//!
//! **Invariant**: this crate does not link burn. What cells compute travels over
//! `stratoscope_wire` from the process that runs them.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The executable also plays roles in which others call it by its environment, not by its
    // arguments: rustc's wrapper and the process that runs the cells.
    if let Some(code) = stratoscope_compile::dispatch() {
        return code;
    }
    cli::main()
}

mod cli;
mod notebook;
