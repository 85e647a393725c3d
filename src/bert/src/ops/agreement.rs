//! The fused operations against the portable ones: outputs and every gradient, on odd shapes, with each set
//! of instructions that this processor has.
//!
//! Tolerances: both forms compute in float32 and differ in the order of their sums. Outputs agree to 1e-5 and
//! gradients to 1e-4 of the largest element of the tensor compared, or of 1 if all are smaller: some gradients, such
//! as that of a key's bias, are 0 except for rounding errors.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::*;

mod attention;
mod bf16;
mod on_gpu;
use self::attention::projections;

const KEY: DropoutKey = DropoutKey {
    seed: 3,
    step: 5,
    replica: 1,
    site: 2,
};
const RATE: f64 = 0.3;

/// Numbers between −2 and 2 that look random and are always the same.
fn values<const D: usize>(shape: [usize; D], salt: u32) -> Tensor<D> {
    let count = shape.iter().product();
    let data: Vec<f32> = (0..count)
        .map(|i| {
            let mut x = (i as u32 ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
            x = (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D);
            (x ^ (x >> 13)) as f32 / u32::MAX as f32 * 4.0 - 2.0
        })
        .collect();
    Tensor::from_data(TensorData::new(data, shape), &Device::flex().autodiff())
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("float32 elements")
}

fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected
        .iter()
        .fold(1f32, |largest, value| largest.max(value.abs()));
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= tolerance * largest,
            "{what}[{index}]: {found} is not {expected} (largest {largest})"
        );
    }
}

/// The gradients of all inputs, through a sum weighted so that no two elements count alike.
struct Run {
    output: Vec<f32>,
    gradients: Vec<Vec<f32>>,
}

/// Inputs of an operation by rank; all of them get gradients.
#[derive(Clone)]
struct Case {
    threes: Vec<Tensor<3>>,
    twos: Vec<Tensor<2>>,
    ones: Vec<Tensor<1>>,
}

fn run(case: &Case, operation: impl Fn(&Case) -> Tensor<3>) -> Run {
    let fresh = Case {
        threes: case
            .threes
            .iter()
            .map(|x| x.clone().require_grad())
            .collect(),
        twos: case.twos.iter().map(|x| x.clone().require_grad()).collect(),
        ones: case.ones.iter().map(|x| x.clone().require_grad()).collect(),
    };
    let output = operation(&fresh);
    let weights = values(output.dims(), 99).to_data();
    let weights = Tensor::from_data(weights, &output.device());
    let grads = (output.clone() * weights).sum().backward();
    let mut gradients = Vec::new();
    gradients.extend(
        fresh
            .threes
            .iter()
            .map(|x| numbers(x.grad(&grads).expect("a gradient"))),
    );
    gradients.extend(
        fresh
            .twos
            .iter()
            .map(|x| numbers(x.grad(&grads).expect("a gradient"))),
    );
    gradients.extend(
        fresh
            .ones
            .iter()
            .map(|x| numbers(x.grad(&grads).expect("a gradient"))),
    );
    Run {
        output: numbers(output),
        gradients,
    }
}

fn check(
    what: &str,
    case: &Case,
    fused: impl Fn(&Case) -> Tensor<3>,
    portable: impl Fn(&Case) -> Tensor<3>,
) {
    let expected = run(case, portable);
    cpu::at_each_level(|level| {
        let found = run(case, &fused);
        let what = format!("{what} ({level:?})");
        assert_close(&what, &found.output, &expected.output, 1e-5);
        let gradients = found.gradients.iter().zip(&expected.gradients);
        for (index, (found, expected)) in gradients.enumerate() {
            assert_close(&format!("{what}, gradient {index}"), found, expected, 1e-4);
        }
    });
}

/// Ones, but the last `index % (sequence + 1)` positions of sequence `index` are padding; so the
/// batch has whole sequences, half ones and one of padding alone.
fn ragged(batch: usize, sequence: usize) -> Tensor<2> {
    let mut data = Vec::new();
    for index in 0..batch {
        let tokens = sequence - index % (sequence + 1);
        data.extend((0..sequence).map(|position| f32::from(u8::from(position < tokens))));
    }
    Tensor::from_data(
        TensorData::new(data, [batch, sequence]),
        &Device::flex().autodiff(),
    )
}

#[test]
fn embedding_agrees() {
    let device = Device::flex().autodiff();
    for [entries, columns, batch, sequence] in [[1, 1, 1, 1], [7, 5, 3, 4], [40, 33, 9, 31]] {
        let indices = (0..batch * sequence)
            .map(|i| (i * 31 % entries) as i64)
            .collect();
        let indices = TensorData::new::<i64, _>(indices, [batch, sequence]);
        let indices = Tensor::<2, Int>::from_data(indices, &device);
        let case = Case {
            threes: vec![],
            twos: vec![values([entries, columns], 1)],
            ones: vec![],
        };
        for padding in [None, Some(0), Some(entries - 1)] {
            check(
                "embedding",
                &case,
                |c| embedding(c.twos[0].clone(), indices.clone(), padding),
                |c| portable::embedding(c.twos[0].clone(), indices.clone(), padding),
            );
        }
    }
}

/// The portable form on another backend gives the same results as the fused one on the CPU, including dropout masks.
#[test]
fn the_same_masks_on_gpu() {
    let Some(gpu) = stratoscope_gpu::testing::device() else {
        return;
    };
    let x = values([2, 7, 24], 1).inner();
    let mask = ragged(2, 7).inner();
    let x_there = Tensor::from_data(x.to_data(), &gpu);
    let mask_there = Tensor::from_data(mask.to_data(), &gpu);
    let dropped = dropout(x.clone(), RATE, KEY);
    assert_eq!(
        numbers(dropout(x_there.clone(), RATE, KEY)),
        numbers(dropped)
    );
    let attend =
        |x: Tensor<3>, mask| attention(x.clone(), x.clone(), x, 3, mask, Some((RATE, KEY)));
    let (found, expected) = (attend(x_there, mask_there), attend(x, mask));
    assert_close("attention", &numbers(found), &numbers(expected), 1e-5);
}

fn linear_case([batch, sequence, inputs]: [usize; 3], outputs: usize) -> Case {
    Case {
        threes: vec![values([batch, sequence, inputs], 1)],
        twos: vec![values([outputs, inputs], 2)],
        ones: vec![values([outputs], 3)],
    }
}

#[test]
fn linear_agrees() {
    for (shape, outputs) in [
        ([1, 1, 1], 1),
        ([2, 3, 5], 7),
        ([5, 61, 17], 33),
        ([1, 2, 40], 900),
    ] {
        let case = linear_case(shape, outputs);
        let inputs = |c: &Case| (c.threes[0].clone(), c.twos[0].clone(), c.ones[0].clone());
        check(
            "linear",
            &case,
            |c| {
                let (x, weight, bias) = inputs(c);
                linear(x, weight, bias)
            },
            |c| {
                let (x, weight, bias) = inputs(c);
                portable::linear(x, weight, bias)
            },
        );
        check(
            "linear_gelu",
            &case,
            |c| {
                let (x, weight, bias) = inputs(c);
                linear_gelu(x, weight, bias)
            },
            |c| {
                let (x, weight, bias) = inputs(c);
                portable::gelu(portable::linear(x, weight, bias))
            },
        );
    }
}

#[test]
fn gelu_agrees() {
    for shape in [[1, 1, 1], [2, 3, 5], [3, 40, 300]] {
        let case = Case {
            threes: vec![values(shape, 1) * 3.0],
            twos: vec![],
            ones: vec![],
        };
        check(
            "gelu",
            &case,
            |c| gelu(c.threes[0].clone()),
            |c| portable::gelu(c.threes[0].clone()),
        );
    }
}

#[test]
fn dropout_agrees() {
    for shape in [[1, 1, 1], [2, 3, 5], [3, 40, 300]] {
        let case = Case {
            threes: vec![values(shape, 1)],
            twos: vec![],
            ones: vec![],
        };
        let mask = Mask::new(RATE, KEY).expect("a rate above 0");
        check(
            "dropout",
            &case,
            |c| dropout(c.threes[0].clone(), RATE, KEY),
            |c| portable::dropout(c.threes[0].clone(), mask),
        );
    }
}

#[test]
fn layer_norm_agrees() {
    for shape in [[1, 1, 2], [2, 3, 5], [3, 41, 48], [2, 2, 33]] {
        let (x, residual) = (values(shape, 1), values(shape, 2));
        let (gamma, beta) = (values([shape[2]], 3), values([shape[2]], 4));
        let ones = vec![gamma, beta];
        let case = Case {
            threes: vec![x.clone()],
            twos: vec![],
            ones: ones.clone(),
        };
        let scale = |c: &Case| (c.ones[0].clone(), c.ones[1].clone());
        check(
            "layer_norm",
            &case,
            |c| layer_norm(c.threes[0].clone(), scale(c).0, scale(c).1, 1e-3),
            |c| portable::layer_norm(c.threes[0].clone(), scale(c).0, scale(c).1, 1e-3),
        );
        let case = Case {
            threes: vec![x, residual],
            twos: vec![],
            ones,
        };
        let mask = Mask::new(RATE, KEY).expect("a rate above 0");
        let inputs = |c: &Case| (c.threes[0].clone(), c.threes[1].clone());
        check(
            "add_layer_norm",
            &case,
            |c| add_layer_norm(inputs(c).0, inputs(c).1, scale(c).0, scale(c).1, 1e-3),
            |c| portable::layer_norm(inputs(c).0 + inputs(c).1, scale(c).0, scale(c).1, 1e-3),
        );
        check(
            "dropout_add_layer_norm",
            &case,
            |c| {
                let dropped = Some((RATE, KEY));
                let (x, residual) = inputs(c);
                dropout_add_layer_norm(x, residual, scale(c).0, scale(c).1, 1e-3, dropped)
            },
            |c| {
                let sum = portable::dropout(inputs(c).0, mask) + inputs(c).1;
                portable::layer_norm(sum, scale(c).0, scale(c).1, 1e-3)
            },
        );
    }
}

#[test]
fn without_autodiff_outputs_are_the_same() {
    let case = linear_case([3, 7, 10], 13);
    let plain = |x: &Tensor<3>| x.clone().inner();
    let weight = case.twos[0].clone().inner();
    let bias = case.ones[0].clone().inner();
    let tracked = linear_gelu(
        case.threes[0].clone(),
        case.twos[0].clone(),
        case.ones[0].clone(),
    );
    let untracked = linear_gelu(plain(&case.threes[0]), weight.clone(), bias.clone());
    assert_eq!(numbers(tracked), numbers(untracked));
    let x = plain(&case.threes[0]);
    let y = linear(x.clone(), weight, bias);
    assert_eq!(y.dims(), [3, 7, 13]);
    let mask = ragged(3, 7).inner();
    let tracked = case.threes[0].clone();
    let with = attention(
        tracked.clone(),
        tracked.clone(),
        tracked,
        2,
        ragged(3, 7),
        None,
    );
    let without = attention(x.clone(), x.clone(), x, 2, mask, None);
    assert_eq!(numbers(with), numbers(without));
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let all = || {
        let hidden = 48;
        let case = Case {
            threes: vec![values([9, 67, hidden], 1)],
            twos: (2..5).map(|salt| values([hidden, hidden], salt)).collect(),
            ones: (5..8).map(|salt| values([hidden], salt)).collect(),
        };
        let mask = ragged(9, 67);
        run(&case, |c| {
            let x = c.threes[0].clone();
            let y = self_attention(
                x.clone(),
                projections(c),
                3,
                mask.clone(),
                Some((RATE, KEY)),
            );
            let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
            let y = dropout_add_layer_norm(y, x, gamma, beta, 1e-12, Some((RATE, KEY)));
            linear_gelu(y, c.twos[0].clone(), c.ones[0].clone())
        })
    };
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    cpu::at_each_level(|level| {
        let one = pool(1).expect("a pool of one").install(all);
        for threads in [2, 3, 5] {
            let many = pool(threads).expect("a pool").install(all);
            let what = format!("{level:?} on {threads} threads");
            assert!(one.output == many.output, "output, {what}");
            assert!(one.gradients == many.gradients, "gradients, {what}");
        }
    });
}

#[test]
fn two_replicas_at_once_compute_what_each_does_alone() {
    let alone = |salt: u32| {
        let case = linear_case([8, 16, 32], 64);
        let x = values([8, 16, 32], salt);
        let case = Case {
            threes: vec![x],
            ..case
        };
        run(&case, |c| {
            linear_gelu(c.threes[0].clone(), c.twos[0].clone(), c.ones[0].clone())
        })
    };
    cpu::at_each_level(|level| {
        let expected = [alone(10), alone(11)];
        let threads = [10, 11].map(|salt| std::thread::spawn(move || [0; 20].map(|_| alone(salt))));
        for (thread, expected) in threads.into_iter().zip(expected) {
            for found in thread.join().expect("no panic") {
                assert!(found.output == expected.output, "{level:?}");
                assert!(found.gradients == expected.gradients, "{level:?}");
            }
        }
    });
}

#[test]
fn rows_have_different_masks() {
    let x: Tensor<3> = Tensor::ones([1, 2, 64], &Device::flex());
    let y = numbers(dropout(x, 0.5, KEY));
    assert_ne!(y[..64], y[64..]);
}
