//! Optimizers and schedules of the learning rate: how a gradient becomes a step.
//!
//! [`AdamW`], [`Adam`], [`SGD`], [`RMSprop`], [`Lion`], [`Lamb`] and [`Adafactor`] are the builders that a cell writes. They
//! resolve to an [`Optimizer`], with all defaults filled in and all values checked. Its learning rate is a
//! [`Schedule`](schedule::Schedule). [`OptimizerState`] holds the moments of one replica, on the device of its weights, and
//! [`apply`] makes a step of its module.
//!
//! Gradients come as the sum over a whole optimizer step. Adding them up over replicas and micro-batches, and deciding when a
//! step is made, belongs to the crates above.
//!
//! Start reading at `adamw.rs`, the builder; then `optimizer.rs`, what it resolves to, and `step.rs`, one update of a module. What a
//! rule does is behind the trait of `rule.rs`, in its file: `sgd.rs` and `sgd/kernel.rs` are the shortest. `list.rs` has them all.
//! Then [`schedule`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod builder;

mod adafactor;
mod adam;
mod adamw;
mod average;
mod change;
mod checks;
mod clip;
mod count;
mod decay;
mod groups;
mod identity;
mod kernel;
mod lamb;
mod lion;
mod list;
mod norm;
mod on_gpu;
mod on_slices;
mod on_tensors;
mod optimizer;
mod rehearse;
mod rmsprop;
mod rule;
mod saved;
pub mod schedule;
mod sgd;
mod slot;
mod step;

pub use adafactor::{Adafactor, AdafactorRule};
pub use adam::{Adam, AdamRule};
pub use adamw::AdamW;
pub use average::Averaging;
pub use change::{Change, Changes};
pub use clip::Clipping;
pub use count::IntoCount;
pub use decay::DecayExclusion;
pub use groups::{Group, depths};
pub use identity::Identity;
pub use lamb::{Lamb, LambRule};
pub use lion::{Lion, LionRule};
pub use list::UpdateRule;
pub use norm::{Finiteness, Squares, global_norm, squares_on_device, sum_of_squares};
pub use on_gpu::changes_in_place;
pub use on_slices::add_to;
pub use optimizer::{IntoOptimizer, Optimizer};
pub use rehearse::rehearse;
pub use rmsprop::{RMSprop, RmspropRule};
pub use saved::StoredTensor;
pub use sgd::{SGD, SgdRule};
pub use slot::Slot;
pub use step::{OptimizerState, Update, apply, clip_each};
