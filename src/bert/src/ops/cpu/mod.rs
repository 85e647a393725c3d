//! The fused operations on float32 slices, without tensors.
//!
//! Work is split into blocks by the shapes alone, never by the number of threads, and partial sums of blocks are
//! added in the order of the blocks. So the result is bit-identical for any number of threads. Blocks run on rayon's
//! pool. A block never waits for another, so replicas on several threads can share the pool.
//!
//! Start reading at [`linear`]; [`product`] has the matrix product under it, [`unwritten`] the memory of results.

mod memory;
mod transpose;
mod unwritten;
mod vectorized;

pub(super) mod attention;
pub(super) mod bf16;
pub(super) mod dropout;
pub(super) mod embedding;
pub(super) mod gelu;
pub(super) mod layer_norm;
pub(super) mod linear;
pub(super) mod product;
pub(super) mod rotary;
pub(super) mod sums;

pub(super) use unwritten::{Unwritten, in_blocks};
pub(super) use vectorized::{Level, level};

#[cfg(test)]
pub(super) use vectorized::at_each_level;

/// Elements of a block of an element-wise pass: 64 KiB, which fits the second-level cache.
pub(super) const ELEMENTS: usize = 16 * 1024;
