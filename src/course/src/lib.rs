//! The checks of the course in `notebooks/course/`: a check calls the student's function with random inputs, compares
//! the result with the true one, and names the property that is violated. It never shows the true result.
//!
//! A function that still has its `todo!()` is an exercise to be filled in, not an error: a check catches the panic and
//! says so. The crate knows numbers only. Checks of functions over models are in the facade, which also draws the
//! cards.
//!
//! Start reading at [`mod@attempt`], then [`one_step`] for a lesson's checks.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod all_reduce;
pub mod attempt;
pub mod batches;
pub mod counters;
pub mod lessons;
pub mod local_sgd;
pub mod matrix;
pub mod mesh;
pub mod monitor;
pub mod one_step;
pub mod pipeline;
pub mod prediction;
pub mod random;
pub mod sixteen_bits;
pub mod staleness;
pub mod tensor_parallel;
pub mod verdict;
pub mod zero;

pub use all_reduce::{Cluster, Hop};
pub use attempt::{Fault, attempt, judged};
pub use lessons::{Report, Unfinished};
pub use mesh::{Sizes, Way};
pub use pipeline::Pass;
pub use staleness::Event;
pub use verdict::{State, Verdict};
