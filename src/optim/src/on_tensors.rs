//! An update as tensor operations, for backends on which no kernel makes it: the formulas of `kernel`.

use burn::tensor::{Shape, Tensor};
use stratoscope_gpu as kernels;

use super::kernel::{AdamStep, Prepare};
use super::rule::matrices;
use super::step::{Moments, VariableUpdate};
use super::{AdafactorRule, AdamRule, LambRule, LionRule, RmspropRule, SgdRule, UpdateRule};

/// Changes the weights of a variable and what is kept beside them.
pub(super) fn on_tensors<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
) {
    let Prepare { factor, limit } = update.prepare;
    let gradient = match factor {
        1.0 => gradient,
        factor => gradient.mul_scalar(factor),
    };
    let gradient = match limit {
        f32::INFINITY => gradient,
        limit => gradient.clamp(-limit, limit),
    };
    match update.rule {
        UpdateRule::Adam(rule) => adam(weights, gradient, moments, update, &rule),
        UpdateRule::Sgd(rule) => sgd(weights, gradient, moments, update, &rule),
        UpdateRule::Rmsprop(rule) => rmsprop(weights, gradient, moments, update, &rule),
        UpdateRule::Lion(rule) => lion(weights, gradient, moments, update, &rule),
        UpdateRule::Lamb(rule) => lamb(weights, gradient, moments, update, &rule),
        UpdateRule::Adafactor(rule) => {
            adafactor(weights, gradient, moments, update, &rule);
        }
    }
}

/// What is kept, in the shape of the gradient; zeros at the first step.
fn kept<const D: usize>(moment: &mut Option<Tensor<1>>, gradient: &Tensor<D>) -> Tensor<D> {
    match moment.take() {
        Some(moment) => moment.reshape(gradient.shape()),
        None => Tensor::zeros(gradient.shape(), &gradient.device()),
    }
}

pub(super) fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape(Shape::new([count]))
}

fn adam<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &AdamRule,
) {
    let step = update.adam(rule);
    let direction = adam_direction(gradient, moments, step, rule.amsgrad);
    let remaining = weights.clone().mul_scalar(step.keep);
    *weights = remaining - direction.mul_scalar(step.size);
}

/// Moves Adam's moments: the first over the root of the second, the latter corrected for its bias.
fn adam_direction<const D: usize>(
    gradient: Tensor<D>,
    moments: &mut Moments,
    step: AdamStep,
    amsgrad: bool,
) -> Tensor<D> {
    let first = kept(&mut moments.first, &gradient);
    let second = kept(&mut moments.second, &gradient);
    let first = first.clone() + (gradient.clone() - first).mul_scalar(step.first);
    let second = second.mul_scalar(step.beta_2)
        + (gradient.clone() * gradient.clone()).mul_scalar(step.second);
    let largest = amsgrad.then(|| kept(&mut moments.largest, &gradient).max_pair(second.clone()));
    let denominator = largest
        .as_ref()
        .unwrap_or(&second)
        .clone()
        .sqrt()
        .div_scalar(step.root)
        .add_scalar(step.epsilon);
    let direction = first.clone() / denominator;
    moments.first = Some(flat(first));
    moments.second = Some(flat(second));
    moments.largest = largest.map(flat);
    direction
}

/// The norms stay on the device: nothing waits for them.
fn lamb<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &LambRule,
) {
    let step = update.lamb(rule);
    let direction = adam_direction(gradient, moments, step.adam, false);
    let remaining = weights.clone().mul_scalar(step.adam.keep);
    let norm = |values: &Tensor<D>| kernels::sum(values.clone() * values.clone()).sqrt();
    let (of_weights, of_direction) = (norm(&remaining), norm(&direction));
    let is_one = (of_weights.clone().min_pair(of_direction.clone())).lower_equal_elem(0.0);
    let ratio = (of_weights / of_direction).mul_scalar(step.correction as f32);
    let size = ratio.mask_fill(is_one, 1.0).mul_scalar(step.adam.size);
    *weights = remaining - direction * size.reshape([1; D]);
}

/// As for LAMB nothing waits for the norms.
fn adafactor<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &AdafactorRule,
) {
    let step = update.adafactor(rule);
    let count = gradient.shape().num_elements();
    let squares = (gradient.clone() * gradient.clone()).add_scalar(step.epsilon_1);
    // Moves what is kept, which has the shape of the new value.
    let moved = |moment: &mut Option<Tensor<1>>, new: Tensor<D>| {
        let old = kept(moment, &new).mul_scalar(step.beta);
        let new = old + new.mul_scalar(step.others);
        *moment = Some(flat(new.clone()));
        new
    };
    let direction = match matrices(&gradient.dims()) {
        None => gradient / moved(&mut moments.second, squares).sqrt(),
        Some(_) => {
            let rows = moved(&mut moments.rows, squares.clone().mean_dim(D - 1));
            let columns = moved(&mut moments.columns, squares.mean_dim(D - 2));
            let share = rows.clone() / rows.mean_dim(D - 2);
            gradient / share.sqrt() / columns.sqrt()
        }
    };
    let size = |values: &Tensor<D>| {
        let sum = kernels::sum(values.clone() * values.clone());
        sum.div_scalar(count as f32).sqrt()
    };
    let remaining = weights.clone().mul_scalar(step.keep);
    let shortened = size(&direction).div_scalar(step.clip_threshold as f32);
    let length = size(&remaining)
        .clamp_min(step.epsilon_2 as f32)
        .mul_scalar(step.rate as f32)
        / shortened.clamp_min(1.0);
    *weights = remaining - direction * length.reshape([1; D]);
}

fn sgd<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &SgdRule,
) {
    let move_by = gradient.clone().mul_scalar(update.rate as f32);
    if rule.momentum == 0.0 {
        *weights = weights.clone() - move_by;
        return;
    }
    let momentum = rule.momentum as f32;
    let velocity = kept(&mut moments.first, &gradient).mul_scalar(momentum) - move_by.clone();
    let moved = match rule.nesterov {
        true => velocity.clone().mul_scalar(momentum) - move_by,
        false => velocity.clone(),
    };
    *weights = weights.clone() + moved;
    moments.first = Some(flat(velocity));
}

fn rmsprop<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &RmspropRule,
) {
    let step = update.rmsprop(rule);
    let others = 1.0 - step.rho;
    let square = kept(&mut moments.second, &gradient).mul_scalar(step.rho)
        + (gradient.clone() * gradient.clone()).mul_scalar(others);
    let spread = match rule.centered {
        false => square.clone(),
        true => {
            let mean = kept(&mut moments.largest, &gradient).mul_scalar(step.rho)
                + gradient.clone().mul_scalar(others);
            let spread = square.clone() - mean.clone() * mean.clone();
            moments.largest = Some(flat(mean));
            spread
        }
    };
    let root = spread.add_scalar(step.epsilon).sqrt();
    let mut move_by = gradient.clone().mul_scalar(step.rate) / root;
    if rule.momentum != 0.0 {
        move_by = kept(&mut moments.first, &gradient).mul_scalar(step.momentum) + move_by;
        moments.first = Some(flat(move_by.clone()));
    }
    *weights = weights.clone() - move_by;
    moments.second = Some(flat(square));
}

fn lion<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
    rule: &LionRule,
) {
    let step = update.lion(rule);
    let momentum = kept(&mut moments.first, &gradient);
    let direction =
        momentum.clone().mul_scalar(step.beta_1) + gradient.clone().mul_scalar(1.0 - step.beta_1);
    let remaining = weights.clone().mul_scalar(step.keep);
    *weights = remaining - direction.sign().mul_scalar(step.rate);
    let momentum = momentum.mul_scalar(step.beta_2) + gradient.mul_scalar(1.0 - step.beta_2);
    moments.first = Some(flat(momentum));
}
