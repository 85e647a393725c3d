//! The kernels for GPUs against the portable forms on the CPU: outputs and every gradient.

use burn::tensor::Device;

use super::*;

/// An adapter; Mesa's software one is enough. `None`, and a line that is counted, without one.
fn adapter() -> Option<Device> {
    stratoscope_gpu::testing::device().map(|device| device.autodiff())
}

/// The case on another device.
fn moved(case: &Case, device: &Device) -> Case {
    fn all<const D: usize>(tensors: &[Tensor<D>], device: &Device) -> Vec<Tensor<D>> {
        let copy = |tensor: &Tensor<D>| Tensor::from_data(tensor.to_data(), device);
        tensors.iter().map(copy).collect()
    }
    Case {
        threes: all(&case.threes, device),
        twos: all(&case.twos, device),
        ones: all(&case.ones, device),
    }
}

fn compare(
    what: &str,
    case: &Case,
    kernel: impl Fn(&Case) -> Tensor<3>,
    portable: impl Fn(&Case) -> Tensor<3>,
) {
    compare_within(what, case, kernel, portable, 1e-5);
}

/// Outputs agree to `tolerance`, gradients to ten times as much.
fn compare_within(
    what: &str,
    case: &Case,
    kernel: impl Fn(&Case) -> Tensor<3>,
    portable: impl Fn(&Case) -> Tensor<3>,
    tolerance: f32,
) {
    let Some(device) = adapter() else { return };
    let (found, expected) = (run(&moved(case, &device), kernel), run(case, portable));
    assert_close(what, &found.output, &expected.output, tolerance);
    let gradients = found.gradients.iter().zip(&expected.gradients);
    for (index, (found, expected)) in gradients.enumerate() {
        let what = format!("{what}, gradient {index}");
        assert_close(&what, found, expected, 10.0 * tolerance);
    }
}

#[test]
fn norm_on_a_gpu_agrees() {
    for shape in [[1, 1, 1], [2, 3, 5], [3, 7, 64], [5, 61, 130], [2, 40, 384]] {
        let [.., columns] = shape;
        let case = Case {
            threes: vec![values(shape, 1), values(shape, 2)],
            twos: vec![],
            ones: vec![values([columns], 3), values([columns], 4)],
        };
        let parts = |c: &Case| {
            let [x, residual] = [0, 1].map(|index| c.threes[index].clone());
            let [gamma, beta] = [0, 1].map(|index| c.ones[index].clone());
            (x, residual, gamma, beta)
        };
        for mask in [None, Mask::new(RATE, KEY)] {
            compare(
                "dropout, sum and LayerNorm",
                &case,
                |c| {
                    let (x, residual, gamma, beta) = parts(c);
                    gpu::normalize(x, Some(residual), gamma, beta, 1e-3, mask)
                },
                |c| {
                    let (x, residual, gamma, beta) = parts(c);
                    let x = match mask {
                        Some(mask) => portable::dropout(x, mask),
                        None => x,
                    };
                    portable::layer_norm(x + residual, gamma, beta, 1e-3)
                },
            );
        }
        let case = Case {
            threes: vec![values(shape, 1)],
            ..case
        };
        compare(
            "LayerNorm",
            &case,
            |c| {
                let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
                gpu::normalize(c.threes[0].clone(), None, gamma, beta, 1e-3, None)
            },
            |c| {
                let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
                portable::layer_norm(c.threes[0].clone(), gamma, beta, 1e-3)
            },
        );
    }
}

#[test]
fn dropout_on_a_gpu_agrees() {
    let mask = Mask::new(RATE, KEY).expect("a rate above 0");
    for shape in [[1, 1, 1], [3, 7, 65], [4, 40, 384]] {
        let case = Case {
            threes: vec![values(shape, 1)],
            twos: vec![],
            ones: vec![],
        };
        compare(
            "dropout",
            &case,
            |c| gpu::dropout(c.threes[0].clone(), mask),
            |c| portable::dropout(c.threes[0].clone(), mask),
        );
    }
}

/// The last one has sums in parts.
#[test]
fn linear_on_a_gpu_agrees() {
    for (shape, outputs) in [([2, 3, 5], 7), ([5, 61, 17], 133), ([1, 4, 700], 9)] {
        let case = linear_case(shape, outputs);
        let inputs = |c: &Case| (c.threes[0].clone(), c.twos[0].clone(), c.ones[0].clone());
        compare(
            "linear",
            &case,
            |c| {
                let (x, weight, bias) = inputs(c);
                gpu::linear(x, weight, bias)
            },
            |c| {
                let (x, weight, bias) = inputs(c);
                portable::linear(x, weight, bias)
            },
        );
        compare(
            "linear and GELU",
            &case,
            |c| {
                let (x, weight, bias) = inputs(c);
                gpu::linear_gelu(x, weight, bias)
            },
            |c| {
                let (x, weight, bias) = inputs(c);
                portable::gelu(portable::linear(x, weight, bias))
            },
        );
    }
}

#[test]
fn attention_on_a_gpu_agrees() {
    for ([batch, sequence, hidden], heads) in [([3, 5, 8], 4), ([2, 70, 32], 4)] {
        let shape = [batch, sequence, hidden];
        let case = Case {
            threes: vec![values(shape, 1), values(shape, 2), values(shape, 3)],
            twos: vec![],
            ones: vec![],
        };
        let mask = |c: &Case| {
            let ones = ragged(batch, sequence);
            Tensor::from_data(ones.to_data(), &c.threes[0].device())
        };
        for dropped in [None, Mask::new(RATE, KEY)] {
            let attend = |c: &Case, form: fn(_, _, _, _, _, _) -> Tensor<3>| {
                let [q, k, v] = [0, 1, 2].map(|index| c.threes[index].clone());
                form(q, k, v, heads, mask(c), dropped)
            };
            compare(
                "attention",
                &case,
                |c| attend(c, gpu::attention),
                |c| attend(c, portable::attention),
            );
        }
    }
}

#[test]
fn self_attention_on_a_gpu_agrees() {
    for ([batch, sequence, hidden], heads) in [([3, 5, 8], 4), ([2, 70, 32], 4)] {
        let case = Case {
            threes: vec![values([batch, sequence, 9], 1)],
            twos: (2..5).map(|salt| values([hidden, 9], salt) * 0.3).collect(),
            ones: (5..8).map(|salt| values([hidden], salt)).collect(),
        };
        let mask = |c: &Case| {
            let ones = ragged(batch, sequence);
            Tensor::from_data(ones.to_data(), &c.threes[0].device())
        };
        for dropped in [None, Mask::new(RATE, KEY)] {
            compare(
                "attention with its projections",
                &case,
                |c| {
                    let x = c.threes[0].clone();
                    gpu::self_attention(x, attention::projections(c), heads, mask(c), dropped)
                },
                |c| {
                    let [q, k, v] = attention::projections(c)
                        .map(|(w, b)| portable::linear(c.threes[0].clone(), w, b));
                    portable::attention(q, k, v, heads, mask(c), dropped)
                },
            );
        }
    }
}

/// A batch of `rows` by `sequence` tokens whose indices repeat, in the type that batches have.
fn indices(rows: usize, sequence: usize, entries: usize, device: &Device) -> Tensor<2, Int> {
    let index = |at: usize| (at * at * 31 + at / 3) % entries;
    let indices: Vec<i64> = (0..rows * sequence).map(|at| index(at) as i64).collect();
    Tensor::from_data(TensorData::new(indices, [rows, sequence]), device)
}

/// Tables in a case: words, segments, positions; then scale and shift.
fn lookup(case: &Case, [rows, sequence]: [usize; 2], untrained: [Option<usize>; 2]) -> Lookup {
    let [words, types, positions] = [0, 1, 2].map(|index| case.twos[index].clone());
    let device = words.device();
    Lookup {
        ids: indices(rows, sequence, words.dims()[0], &device),
        type_ids: indices(rows, sequence, types.dims()[0], &device),
        words: (words, untrained[0]),
        types: (types, untrained[1]),
        positions,
    }
}

#[test]
fn embeddings_on_a_gpu_agree() {
    for (entries, [rows, sequence, columns]) in [
        ([1, 1, 2], [1, 1, 1]),
        ([7, 2, 5], [3, 4, 5]),
        ([40, 3, 70], [8, 61, 130]),
        ([500, 2, 40], [2, 40, 384]),
    ] {
        let case = Case {
            threes: vec![],
            twos: [1, 2, 3]
                .map(|salt| values([entries[salt as usize - 1], columns], salt))
                .to_vec(),
            ones: vec![values([columns], 4), values([columns], 5)],
        };
        for untrained in [
            [None, None],
            [Some(0), None],
            [Some(entries[0] - 1), Some(0)],
        ] {
            for mask in [None, Mask::new(RATE, KEY)] {
                compare(
                    "embeddings",
                    &case,
                    |c| {
                        let lookup = lookup(c, [rows, sequence], untrained);
                        assert!(gpu::embeds(&lookup));
                        gpu::embed(lookup, c.ones[0].clone(), c.ones[1].clone(), 1e-3, mask)
                    },
                    |c| {
                        let it = lookup(c, [rows, sequence], untrained);
                        let words = portable::embedding(it.words.0, it.ids, it.words.1);
                        let types = portable::embedding(it.types.0, it.type_ids, it.types.1);
                        let positions = it.positions.narrow(0, 0, sequence).unsqueeze_dim(0);
                        let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
                        let sum = words + types + positions;
                        let y = portable::layer_norm(sum, gamma, beta, 1e-3);
                        match mask {
                            Some(mask) => portable::dropout(y, mask),
                            None => y,
                        }
                    },
                );
            }
        }
    }
}

/// Enough rows that a launch has its cubes in two dimensions, and that partial sums have their full number.
#[test]
fn many_rows_on_a_gpu_agree() {
    let shape = [1, 70_000, 3];
    let case = Case {
        threes: vec![values(shape, 1), values(shape, 2)],
        twos: vec![],
        ones: vec![values([3], 3), values([3], 4)],
    };
    let parts = |c: &Case| {
        let [x, residual] = [0, 1].map(|index| c.threes[index].clone());
        let [gamma, beta] = [0, 1].map(|index| c.ones[index].clone());
        (x, residual, gamma, beta)
    };
    compare_within(
        "many rows",
        &case,
        |c| {
            let (x, residual, gamma, beta) = parts(c);
            gpu::normalize(x, Some(residual), gamma, beta, 1e-3, None)
        },
        |c| {
            let (x, residual, gamma, beta) = parts(c);
            portable::layer_norm(x + residual, gamma, beta, 1e-3)
        },
        1e-4,
    );
}

/// What a mask drops has a probability of 0, and a gradient of 0; on every device it is the same.
#[test]
fn kernels_drop_what_the_cpu_drops() {
    let Some(device) = adapter() else { return };
    let mask = Mask::new(RATE, KEY).expect("a rate above 0");
    let of_cpu = |count: usize| {
        let ones = Tensor::<3>::ones([1, 1, count], &Device::flex());
        numbers(dropout(ones, RATE, KEY))
    };
    let same = |what: &str, found: &[f32], expected: &[f32]| {
        let dropped = |values: &[f32]| values.iter().map(|&it| it == 0.0).collect::<Vec<_>>();
        assert_eq!(dropped(found), dropped(expected), "{what}");
    };
    let shape = [3, 37, 70];
    let [x, residual, weights] = [1, 2, 3].map(|salt| {
        let numbers: Tensor<3> = values(shape, salt);
        Tensor::<3>::from_data(numbers.to_data(), &device)
    });
    let x = x.require_grad();
    let (gamma, beta) = (Tensor::ones([70], &device), Tensor::zeros([70], &device));
    let y = gpu::normalize(x.clone(), Some(residual), gamma, beta, 1e-3, Some(mask));
    let gradients = (y * weights).sum().backward();
    let found = numbers(x.grad(&gradients).expect("it is tracked"));
    same("LayerNorm", &found, &of_cpu(3 * 37 * 70));

    let case = Case {
        threes: vec![],
        twos: vec![values([50, 70], 1), values([2, 70], 2), values([37, 70], 3)],
        ones: vec![],
    };
    let lookup = lookup(&moved(&case, &device), [3, 37], [None, None]);
    let (gamma, beta) = (
        Tensor::ones([70], &device),
        Tensor::full([70], 9.0, &device),
    );
    let found = numbers(gpu::embed(lookup, gamma, beta, 1e-3, Some(mask)));
    same("embeddings", &found, &of_cpu(3 * 37 * 70));

    // Equal scores; and values that make of each position's mean its probabilities.
    let zeros = Tensor::<3>::zeros([2, 70, 70], &device);
    let values = Tensor::<2>::eye(70, &device).unsqueeze::<3>();
    let values = values.repeat_dim(0, 2);
    let tokens = Tensor::<2>::ones([2, 70], &device);
    let kept = gpu::attention(zeros.clone(), zeros, values, 1, tokens, Some(mask));
    let (found, expected) = (numbers(kept), of_cpu(2 * 70 * 70));
    same("attention", &found, &expected);
    let expected: Vec<f32> = expected.iter().map(|it| it / 70.0).collect();
    assert_close("attention", &found, &expected, 1e-6);
}
