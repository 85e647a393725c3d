//! Adam's update of several variables in one launch, each of them changed where it lies.
//!
//! # Source
//! The formulas and their order are those of PyTorch's `torch/optim/adamw.py`, `_single_tensor_adam`.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{UNITS, matrix, units};

/// Elements for one unit, so that a launch has enough units for its largest variable.
const ELEMENTS_PER_UNIT: usize = 8;
/// Cubes of a launch at most; units go on where the last one ends.
const MOST_CUBES: usize = 8192;

/// Adam at one step, everything worked out that does not depend on the element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// What every gradient is multiplied with first.
    pub factor: f32,
    /// And then held between ± this; infinite where there is no limit.
    pub limit: f32,
    /// 1 − rate · weight decay.
    pub keep: f32,
    /// 1 − β₁.
    pub first: f32,
    /// β₂.
    pub beta_2: f32,
    /// 1 − β₂.
    pub second: f32,
    /// √(1 − β₂ᵗ).
    pub root: f32,
    /// ε.
    pub epsilon: f32,
    /// rate / (1 − β₁ᵗ).
    pub size: f32,
}

/// One variable: its weights, both moments and its gradient, equally many elements each.
pub struct Variable {
    pub weights: CubeTensor,
    pub first: CubeTensor,
    pub second: CubeTensor,
    pub gradient: CubeTensor,
}

/// Updates the variables; returns weights and moments, in the memory where they were, unless somebody shares it.
pub fn update(variables: Vec<Variable>, step: AdamStep) -> Vec<[CubeTensor; 3]> {
    let Some(client) = variables.first().map(|it| it.weights.client.clone()) else {
        return Vec::new();
    };
    let count = variables.len();
    let (mut weights, mut first, mut second, mut gradients) = (
        SequenceArg::new(),
        SequenceArg::new(),
        SequenceArg::new(),
        SequenceArg::new(),
    );
    let (mut largest, mut results) = (0, Vec::with_capacity(count));
    for variable in variables {
        let kept = [variable.weights, variable.first, variable.second].map(own);
        largest = largest.max(kept[0].meta.shape().num_elements());
        weights.push(kept[0].clone().into_tensor_arg());
        first.push(kept[1].clone().into_tensor_arg());
        second.push(kept[2].clone().into_tensor_arg());
        gradients.push(matrix(variable.gradient).0.into_tensor_arg());
        results.push(kept);
    }
    let number = largest
        .div_ceil(UNITS * ELEMENTS_PER_UNIT)
        .clamp(1, MOST_CUBES);
    adam_variables::launch(
        &client,
        CubeCount::Static(number as u32, count as u32, 1),
        units(UNITS),
        weights,
        first,
        second,
        gradients,
        number * UNITS,
        step.factor,
        step.limit,
        step.keep,
        step.first,
        step.beta_2,
        step.second,
        step.root,
        step.epsilon,
        step.size,
        count,
        UNITS,
        step.limit < f32::INFINITY,
    );
    results
}

/// A tensor that may be written: rows that follow each other, in memory that nobody shares.
fn own(tensor: CubeTensor) -> CubeTensor {
    let tensor = matrix(tensor).0;
    match tensor.can_mut() {
        true => tensor,
        false => tensor.copy(),
    }
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn adam_variables(
    weights: &mut Sequence<OwnedTensor<f32>>,
    firsts: &mut Sequence<OwnedTensor<f32>>,
    seconds: &mut Sequence<OwnedTensor<f32>>,
    gradients: &Sequence<OwnedTensor<f32>>,
    stride: usize,
    factor: f32,
    limit: f32,
    keep: f32,
    first: f32,
    beta_2: f32,
    second: f32,
    root: f32,
    epsilon: f32,
    size: f32,
    #[comptime] count: usize,
    #[comptime] units: usize,
    #[comptime] limits: bool,
) {
    // The cubes of a row are those of a variable.
    let unit = CUBE_POS_X as usize * units + UNIT_POS_X as usize;
    #[unroll]
    for number in 0..count {
        if CUBE_POS_Y as usize == number {
            let weight = weights.index_mut(number);
            let of_first = firsts.index_mut(number);
            let of_second = seconds.index_mut(number);
            let gradient = gradients.index(number);
            let length = gradient.len();
            let mut at = unit;
            while at < length {
                let mut g = gradient[at] * factor;
                if comptime!(limits) {
                    if g > limit {
                        g = limit;
                    }
                    if g < -limit {
                        g = -limit;
                    }
                }
                let m = of_first[at] + (g - of_first[at]) * first;
                let v = of_second[at] * beta_2 + g * g * second;
                let denominator = v.sqrt() / root + epsilon;
                of_first[at] = m;
                of_second[at] = v;
                weight[at] = weight[at] * keep - size * (m / denominator);
                at += stride;
            }
        }
    }
}
