//! The fused operations on float32 slices: no burn here, only numbers.
//!
//! Work is cut into blocks by the shapes alone, never by the number of threads; what several blocks
//! add up is kept per block and summed in block order. So the result has the same bits on one thread
//! and on many. Blocks go to rayon's pool, which two replicas on two threads share without harm: a
//! block never waits for another.

mod memory;
mod transpose;
mod vectorized;

pub(super) mod attention;
pub(super) mod dropout;
pub(super) mod embedding;
pub(super) mod gelu;
pub(super) mod layer_norm;
pub(super) mod linear;
pub(super) mod product;
pub(super) mod sums;

pub(super) use vectorized::{Level, level};

#[cfg(test)]
pub(super) use vectorized::at_each_level;

/// Elements of a block of an element-wise pass: 64 KiB, which fits the second-level cache.
pub(super) const ELEMENTS: usize = 16 * 1024;

/// A buffer of zeros for a result. Fresh pages from the system are zero already; memory that a step
/// before this one freed is cleared.
pub(super) fn buffer(length: usize) -> Vec<f32> {
    memory::keep_freed();
    vec![0.0; length]
}
