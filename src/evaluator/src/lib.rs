//! The evaluator there is: cells run through evcxr, against the prebuilt facade.
//!
//! evcxr compiles and keeps variables; everything around it is here.
//!
//! - [`engine`] executes one cell: checks its text, rewrites it ([`crate::rewrite`]), hands it to
//!   evcxr and tells how it ended.
//! - [`home`] is the private folder everything lives in; [`wrapper`] is this executable in the
//!   role of rustc's wrapper, which lets rust-analyzer and rustc see different views of the facade
//!   ([`crate::view`]); [`toolchain`] is it in the role of cargo, which compiles a cell by what it
//!   learnt from the cell before, and with the compiler that stands by ([`standby`]);
//!   [`answers`] is the cargo that rust-analyzer asks.
//! - The cells run in a process of their own ([`crate::cells`]). What they show comes over the
//!   wire ([`link`]), what they print through two pipes ([`streams`]).
//! - [`interrupt`] stops a cell; [`show`] turns findings into what a notebook shows, [`rustc`] the
//!   compiler's errors into findings.

use std::path::Path;
use std::process::ExitCode;

use stratoscope_session::Backend;

mod answers;
mod attempts;
mod backend;
mod closures;
mod crates;
mod declared;
mod definitions;
mod engine;
mod generated;
mod gone;
mod home;
mod interrupt;
mod kept;
mod link;
mod linker;
mod nesting;
mod persist;
mod relay;
mod rustc;
mod second_try;
mod show;
mod staged;
mod standby;
mod streams;
mod suggestion;
mod toolchain;
mod unable;
mod warnings;
pub mod wrapper;

/// First thing in `main`: `Some` when the process was started in another role than a command, and
/// has played it.
pub fn dispatch() -> Option<ExitCode> {
    wrapper::dispatch()
        .or_else(toolchain::dispatch)
        .or_else(answers::dispatch)
}

/// What a session runs. Called before there are other threads.
pub fn backend() -> Box<dyn Backend> {
    home::choose();
    keep_memory();
    Box::new(backend::EvcxrBackend)
}

/// Is the process that keeps a compiler ready for the kernel whose private folder this is.
pub fn stand_by(home: &Path) -> anyhow::Result<ExitCode> {
    standby::main(home)?;
    Ok(ExitCode::SUCCESS)
}

/// Tells the C library's allocator to take memory in large pieces, from one arena, and to keep it:
/// rust-analyzer's many small nodes otherwise cost a fresh kernel an eighth of its start.
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
