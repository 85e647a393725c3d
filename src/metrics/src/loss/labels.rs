//! Labels as tensors, for the losses.

use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

/// Labels as numbers, one a row; `None` where there are none. A class is the number it has.
///
/// # Shapes
/// B labels → [B, 1]
pub(super) fn column(
    labels: &Labels,
    device: &Device,
    number: impl Fn(f32) -> f32,
) -> Option<Tensor<2>> {
    let labels: Vec<f32> = match labels {
        Labels::Values(values) => values.iter().map(|&value| number(value)).collect(),
        Labels::Classes(classes) => classes.iter().map(|&class| number(class as f32)).collect(),
        // Of tokens, [`Loss::sum`](super::Loss::sum) has made classes.
        Labels::Absent
        | Labels::Tokens(_)
        | Labels::Spans(_)
        | Labels::Sets(_)
        | Labels::Apart { .. } => return None,
    };
    // [B, 1], never [B]: against [B, 1] outputs that would broadcast to [B, B].
    let shape = [labels.len(), 1];
    Some(Tensor::from_data(TensorData::new(labels, shape), device))
}

/// `output − label`, or zeros without labels.
pub(super) fn errors(outputs: Tensor<2>, labels: &Labels) -> Tensor<2> {
    match column(labels, &outputs.device(), |label| label) {
        Some(labels) => operation!("error", [outputs], outputs - labels),
        None => outputs.zeros_like(),
    }
}

/// The sum over the rows of outputs.
#[cfg(test)]
pub(super) fn sum_of(loss: super::Loss, outputs: Tensor<2>, labels: &Labels) -> f64 {
    f64::from(loss.sum(outputs, labels).into_scalar::<f32>())
}

/// A loss of each of these `(output, label)`, and its gradient by the output, beside what they are by
/// definition and by differences of it.
#[cfg(test)]
#[track_caller]
pub(super) fn check_one_output(
    loss: &super::Loss,
    definition: impl Fn(f64, f64) -> f64,
    cases: &[(f32, f32)],
) {
    for &(output, label) in cases {
        let device = Device::flex().autodiff();
        let outputs = Tensor::<2>::from_floats([[output]], &device).require_grad();
        let sum = loss.sum(outputs.clone(), &Labels::Values(vec![label]));
        let gradients = sum.backward();
        let found = f64::from(sum.into_scalar::<f32>());
        let of = |output: f64| definition(output, f64::from(label));
        let (at, step) = (f64::from(output), 1e-6);
        let near = |what: &str, found: f64, expected: f64| {
            let allowed = 2e-6 * expected.abs().max(1.0);
            assert!(
                (found - expected).abs() < allowed,
                "{what} of {loss} at {output} for {label}: {found}, not {expected}"
            );
        };
        near("value", found, of(at));
        let gradient = outputs.grad(&gradients).expect("it was required");
        let slope = (of(at + step) - of(at - step)) / (2.0 * step);
        near("gradient", f64::from(gradient.into_scalar::<f32>()), slope);
    }
}
