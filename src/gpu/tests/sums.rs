//! Sums over many elements, by our kernels. Needs an adapter; Mesa's software one is enough.

use burn::tensor::Tensor;
use stratoscope_gpu::{Flat, squares};

#[test]
fn squares_of_many_tensors() {
    let Some(device) = stratoscope_gpu::testing::device() else {
        return;
    };
    // More tensors than one launch takes, and one that is larger than all units of a launch together.
    let sizes = (1..60).map(|size| size * 37).chain([8_000_000]);
    let sizes: Vec<usize> = sizes.collect();
    let tensors = sizes.iter().map(|&size| {
        let tensor = Tensor::<1>::full([size], 0.5, &device);
        Flat::new(tensor).expect("float32 on a GPU")
    });
    let sums = squares(tensors.collect()).expect("tensors were given");
    let sums: Vec<f32> = sums.into_data().iter::<f32>().collect();
    let expected: Vec<f32> = sizes.iter().map(|&size| size as f32 / 4.0).collect();
    assert_eq!(sums, expected);
}

/// burn's `sum` gives one unit of a launch as many elements as it likes; Mesa's software device leaves a loop after
/// 65 535 turns.
#[test]
fn sums_of_many_elements() {
    let Some(device) = stratoscope_gpu::testing::device() else {
        return;
    };
    let device = device.autodiff();
    for size in [1, 4096, 16_384, 16_385, 300_001, 8_000_000] {
        let ones = Tensor::<1>::ones([size], &device).require_grad();
        let sum = stratoscope_gpu::sum(ones.clone().mul_scalar(0.5));
        let gradients = sum.backward();
        assert_eq!(sum.into_scalar::<f32>(), size as f32 / 2.0, "{size}");
        let gradient = ones.grad(&gradients).expect("it is tracked");
        let last = gradient.narrow(0, size - 1, 1).into_scalar::<f32>();
        assert_eq!(last, 0.5, "{size}");
    }
}
