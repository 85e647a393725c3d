//! A run of `fit!`: the loop, what it counts, and the checks that watch it.

pub(crate) mod epochs;
pub(crate) mod lease;
pub mod memory;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod watch;
