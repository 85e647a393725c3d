//! One optimizer step: forward and backward, exchange, update.

pub mod mixed_precision;
pub mod precision;
mod trainer;

pub(crate) use trainer::{Apart, Trainer, exchange};
