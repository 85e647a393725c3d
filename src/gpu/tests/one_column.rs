//! Products with one column, which burn's `fusion` computes wrong (burn's issue 5122): without that feature they are right, by
//! themselves and with operations after them, forward and backward. Needs an adapter; Mesa's software one is enough.

use burn::tensor::{Device, Tensor};

fn numbers(count: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 7 + 3) % 11) as f32 / 5.0 - 1.0;
    (0..count).map(number).collect()
}

fn matrix(rows: usize, columns: usize, device: &Device) -> Tensor<2> {
    let flat = Tensor::<1>::from_floats(numbers(rows * columns).as_slice(), device);
    flat.reshape([rows, columns])
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// A product with a column and what follows it, and an update of the column by its gradient.
fn step(rows: usize, inputs: usize, device: &Device) -> Vec<f32> {
    let device = device.clone().autodiff();
    let x = matrix(rows, inputs, &device);
    let weights = matrix(inputs, 1, &device).require_grad();
    let output = x.matmul(weights.clone());
    let loss = (output.clone() + output).powi_scalar(2).mean();
    let gradients = loss.backward();
    let mut all = read(loss);
    if let Some(gradient) = weights.grad(&gradients) {
        let moved = weights.inner() - gradient.mul_scalar(0.05);
        all.extend(read(moved));
    }
    all
}

#[test]
fn a_product_with_one_column_is_right_with_what_follows() {
    let Some(device) = stratoscope_gpu::testing::device() else {
        return;
    };
    for (rows, inputs) in [(4, 3), (8, 8), (64, 8), (5, 384), (256, 64)] {
        let found = step(rows, inputs, &device);
        let expected = step(rows, inputs, &Device::flex());
        assert_eq!(found.len(), 1 + inputs);
        for (found, expected) in found.iter().zip(&expected) {
            let apart = (found - expected).abs();
            assert!(
                apart <= 1e-5 * expected.abs().max(1.0),
                "{rows} × {inputs}: {found} is not {expected}"
            );
        }
    }
}
