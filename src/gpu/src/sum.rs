//! The sum of all elements of a tensor, for devices whose shaders may not loop as often as they like.
//!
//! Mesa's software device leaves every loop of a shader after 65 535 turns, all loops of an invocation together, and says
//! nothing (`LP_MAX_TGSI_LOOP_ITERATIONS` in its source). burn's `sum` may give one invocation all elements, so that a sum
//! of more than 262 140 of them is too small there. Here no invocation adds more than a few thousand.

use burn::tensor::Tensor;

/// So many elements are one row of a stage.
const ROW: usize = 4096;
/// Up to so many elements are left to burn.
const FEW: usize = 4 * ROW;

/// The sum of all elements, with a gradient. On the CPU it is burn's own.
pub fn sum<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let count = x.shape().num_elements();
    if count <= FEW || !crate::is_gpu(&x.device()) {
        return x.sum();
    }
    let flat: Tensor<1> = x.reshape([count]);
    let (rows, rest) = (count / ROW, count % ROW);
    let whole = flat.clone().narrow(0, 0, rows * ROW);
    let mut sums: Tensor<1> = whole.reshape([rows, ROW]).sum_dim(1).reshape([rows]);
    if rest > 0 {
        sums = Tensor::cat(vec![sums, flat.narrow(0, rows * ROW, rest)], 0);
    }
    sum(sums)
}
