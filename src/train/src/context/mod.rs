//! What surrounds training: who observes a run, what is done with warnings, whether it is asked to stop.

pub mod events;
pub mod interrupt;
pub mod warnings;
