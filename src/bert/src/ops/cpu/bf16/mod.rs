//! bfloat16: matrix products of 16-bit inputs with float32 sums, and the operations built on them.
//!
//! A bfloat16 is the upper half of a float32: the same range, 8 significant bits. Inputs of products (activations,
//! weights, gradients) are rounded to it, to the nearest, ties to even. A product of two such numbers is exact in
//! float32, and so only sums are rounded. What the backward pass needs again is held in 16 bits.
//!
//! Processors with AVX512-BF16 multiply pairs of such numbers with one instruction, at up to twice the speed of float32;
//! those with AMX multiply tiles of them, at four to eight times that speed
//! (`Level`). On others the same loops run on float32 numbers made from the same 16 bits: the same rounding of
//! inputs, sums in another order, no gain in speed. Each element of a product is summed in the order of its index,
//! so that the bits do not depend on the number of threads, nor on the size of blocks.
//!
//! Start reading at [`linear`]; [`kernel`] multiplies, `tiles` does so with AMX, [`product`] cuts a product into blocks for it, [`panels`] has
//! the order in memory that it reads.

mod kernel;
mod number;
mod panels;
mod product;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

pub(in crate::ops) mod attention;
pub(in crate::ops) mod linear;

pub(in crate::ops) use number::Rows;

/// Whether AMX may be used; outside Linux nobody was asked.
#[cfg(target_arch = "x86_64")]
pub(super) fn amx_is_allowed() -> bool {
    #[cfg(target_os = "linux")]
    return tiles::are_allowed();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[cfg(test)]
mod tests;
