//! The evaluator on evcxr: cells run through evcxr, against the prebuilt facade. It implements the trait
//! `Evaluate` of the crate `session` and knows nothing of Jupyter.
//!
//! - `engine` executes one cell: it checks and rewrites the text, gives it to evcxr and reports how it ended.
//! - [`cell_process`] is the process that runs the cells. What they display comes over the wire (`link`), what
//!   they print through pipes (`streams`); `relay` passes both on to the running cell's outputs.
//! - `interrupt` stops a cell; `show` shows diagnostics; `rustc_errors` turns the compiler's errors into
//!   diagnostics.
//! - `python_cell` answers cells of Python: a card, and the same program as the next cell.
//! - `magic` answers cells that are questions to the kernel; `assist` completes and explains; `lint` checks cells while
//!   they are typed.
//!
//! Start with `engine`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

use stratoscope_session::Backend;

mod advice;
mod assist;
mod backend;
pub mod cell_process;
mod closures;
mod compile_failure;
mod crate_progress;
mod debugging;
mod declarations;
mod engine;
mod inspector;
mod interrupt;
mod link;
mod lint;
mod lost_variables;
mod magic;
pub mod pages;
mod panics;
mod persistence;
mod python_cell;
mod relay;
mod replaced_variables;
mod rustc_errors;
mod show;
mod silenced;
mod streams;
mod suggestion;
mod warnings;

/// What a session runs. Called before there are other threads.
pub fn backend() -> Box<dyn Backend> {
    stratoscope_compile::home::choose();
    keep_memory();
    Box::new(backend::EvcxrBackend::default())
}

/// Makes the C library's allocator take memory in large pieces, from one arena, and keep it: rust-analyzer's
/// many small nodes otherwise cost a fresh kernel an eighth of its start.
fn keep_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: there are no other threads yet; a parameter that is refused changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 512 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
    }
}

#[cfg(test)]
mod tests;
