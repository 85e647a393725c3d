//! An update on the float32 slices of the CPU backend, with the arithmetic of the rules.

use std::panic::{self, AssertUnwindSafe};

use burn::tensor::{Device, Tensor};
use burn_flex::{Flex, FlexTensor};

use super::change::Change;
use super::kernel;
use super::norm::{floats, is_flex};
use super::rule::Variable;
use super::step::{Moments, VariableUpdate};

/// Changes the weights of a variable where they lie, and what is kept beside them. Returns the change.
pub(super) fn on_slices<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
) -> Option<Change> {
    let Ok(gradient) = gradient.try_into_primitive::<Flex>() else {
        return None;
    };
    let gradient = gradient.to_contiguous();
    let gradient = floats(&gradient);
    let rule = update.rule.as_rule();
    if !rule.tracks_pieces() {
        moments.touched = None;
    }
    let (mut change, shape) = (None, weights.dims());
    in_place(weights, |weights| {
        change = Some(rule.on_slices(Variable {
            weights,
            gradient: &gradient,
            shape: &shape,
            moments,
            update,
        }));
    });
    change
}

/// Hands out the elements of a float32 tensor of the CPU backend and puts it back, also when the work
/// panics. Memory that somebody else shares is copied first.
pub(super) fn in_place<const D: usize>(tensor: &mut Tensor<D>, work: impl FnOnce(&mut [f32])) {
    let placeholder = Tensor::from_data(
        burn::tensor::TensorData::zeros::<f32, _>([0; D]),
        &Device::flex(),
    );
    let taken = std::mem::replace(tensor, placeholder);
    let Ok(taken) = taken.try_into_primitive::<Flex>() else {
        return;
    };
    // A view of a part is copied: `storage_mut` has all elements of the memory.
    let mut primitive: FlexTensor = taken.to_contiguous();
    drop(taken);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(primitive.storage_mut::<f32>())));
    *tensor = Tensor::from_primitive::<Flex>(primitive);
    if let Err(panic) = outcome {
        panic::resume_unwind(panic);
    }
}

/// The sum of two tensors; on the CPU in the memory of the first, in parallel.
pub fn add_to<const D: usize>(mut sum: Tensor<D>, added: Tensor<D>) -> Tensor<D> {
    if !(is_flex(&sum) && is_flex(&added) && sum.dims() == added.dims()) {
        return sum + added;
    }
    let Ok(added) = added.try_into_primitive::<Flex>() else {
        unreachable!("the device and the element type were checked");
    };
    let added = added.to_contiguous();
    in_place(&mut sum, |sum| kernel::add(sum, &floats(&added)));
    sum
}

pub(super) fn zeros(count: usize) -> Tensor<1> {
    Tensor::zeros([count], &Device::flex())
}
