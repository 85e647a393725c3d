//! The operations in bfloat16 against those in float32, outputs and every gradient, with and without the processor's
//! instruction.
//!
//! Tolerance: each number that is multiplied is rounded once, by at most 2⁻⁹ of its size, and so a product of two is off by
//! at most 2⁻⁸. Sums of such products are off by less of the largest element of a tensor, since the errors have both
//! signs; 2⁻⁶ of the largest element holds for one layer. The derivative of the GELU, and a softmax, see errors
//! of sums of many terms, so `linear_gelu` and attention are allowed 2⁻⁵, attention with scores of a usual size.

use super::*;

const TOLERANCE: f32 = 1.0 / 64.0;

fn in_bf16(case: &Case, operation: impl Fn(&Case) -> Tensor<3>) -> Run {
    Precision::Bfloat16.during(|| run(case, operation))
}

fn check_bf16(what: &str, case: &Case, most: f32, operation: impl Fn(&Case) -> Tensor<3>) {
    let expected = run(case, &operation);
    let mut first: Option<Run> = None;
    cpu::at_each_level(|level| {
        let found = in_bf16(case, &operation);
        let what = format!("{what} ({level:?})");
        assert_close(&what, &found.output, &expected.output, most);
        let gradients = found.gradients.iter().zip(&expected.gradients);
        for (index, (found, expected)) in gradients.enumerate() {
            let what = format!("{what}, gradient {index}");
            assert_close(&what, found, expected, most);
        }
        // What is rounded does not depend on the processor; only sums do, and what is rounded after them.
        let first = first.get_or_insert_with(|| in_bf16(case, &operation));
        assert_close(&what, &found.output, &first.output, most / 4.0);
    });
    let rounded = first.expect("a level").output;
    let few = rounded.len() < 20;
    assert!(
        few || rounded != expected.output,
        "{what}: nothing was rounded"
    );
}

#[test]
fn layers_agree_with_float32() {
    for (shape, outputs) in [
        ([1, 1, 1], 1),
        ([2, 3, 5], 7),
        ([5, 61, 17], 33),
        ([1, 2, 40], 900),
        ([3, 43, 64], 48),
    ] {
        let case = linear_case(shape, outputs);
        let inputs = |c: &Case| (c.threes[0].clone(), c.twos[0].clone(), c.ones[0].clone());
        check_bf16("linear", &case, TOLERANCE, |c| {
            let (x, weight, bias) = inputs(c);
            linear(x, weight, bias)
        });
        check_bf16("linear_gelu", &case, 2.0 * TOLERANCE, |c| {
            let (x, weight, bias) = inputs(c);
            linear_gelu(x, weight, bias)
        });
    }
}

#[test]
fn self_attention_agrees_with_float32() {
    for [batch, sequence, heads, size] in
        [[1, 1, 1, 1], [4, 3, 2, 5], [7, 6, 3, 8], [2, 131, 2, 16]]
    {
        let hidden = heads * size;
        let case = Case {
            threes: vec![values([batch, sequence, 9], 1)],
            twos: (2..5).map(|salt| values([hidden, 9], salt) * 0.2).collect(),
            ones: (5..8).map(|salt| values([hidden], salt) * 0.3).collect(),
        };
        let mask = ragged(batch, sequence);
        for rate in [None, Some((RATE, KEY))] {
            check_bf16("self_attention", &case, 2.0 * TOLERANCE, |c| {
                let x = c.threes[0].clone();
                self_attention(x, projections(c), heads, mask.clone(), rate)
            });
        }
    }
}

/// Layers with adapters hand over projections that lie by themselves; before the first step nothing differs.
#[test]
fn attention_of_projections_has_the_bits_of_self_attention() {
    for [batch, sequence, heads, size] in [[4, 3, 2, 5], [2, 131, 2, 16]] {
        let hidden = heads * size;
        let case = Case {
            threes: vec![values([batch, sequence, 9], 1)],
            twos: (2..5).map(|salt| values([hidden, 9], salt) * 0.2).collect(),
            ones: (5..8).map(|salt| values([hidden], salt) * 0.3).collect(),
        };
        let mask = ragged(batch, sequence);
        let dropped = Some((RATE, KEY));
        let separate = |c: &Case| {
            let x = c.threes[0].clone();
            let [query, key, value] =
                projections(c).map(|(weight, bias)| linear(x.clone(), weight, bias));
            attention(query, key, value, heads, mask.clone(), dropped)
        };
        let whole = |c: &Case| {
            let x = c.threes[0].clone();
            self_attention(x, projections(c), heads, mask.clone(), dropped)
        };
        cpu::at_each_level(|level| {
            let (found, expected) = (in_bf16(&case, separate), in_bf16(&case, whole));
            assert!(found.output == expected.output, "{level:?}");
            for (found, expected) in found.gradients.iter().zip(&expected.gradients) {
                assert_close("a gradient", found, expected, TOLERANCE);
            }
            let (found, expected) = (run(&case, separate), run(&case, whole));
            assert!(found.output == expected.output, "float32, {level:?}");
            for (found, expected) in found.gradients.iter().zip(&expected.gradients) {
                assert_close("a gradient", found, expected, 1e-5);
            }
        });
    }
}

#[test]
fn normalizations_keep_rounded_rows_only() {
    let (x, residual) = (values([3, 41, 48], 1), values([3, 41, 48], 2));
    let case = Case {
        threes: vec![x, residual],
        twos: vec![],
        ones: vec![values([48], 3), values([48], 4)],
    };
    let operation = |c: &Case| {
        let (x, residual) = (c.threes[0].clone(), c.threes[1].clone());
        let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
        dropout_add_layer_norm(x, residual, gamma, beta, 1e-12, Some((RATE, KEY)))
    };
    let (expected, found) = (run(&case, operation), in_bf16(&case, operation));
    assert_eq!(found.output, expected.output, "the output is not rounded");
    for (found, expected) in found.gradients.iter().zip(&expected.gradients) {
        assert_close("a gradient", found, expected, TOLERANCE);
    }
    assert_ne!(found.gradients, expected.gradients, "nothing was rounded");
}

/// Numbers that have 8 significant bits are multiplied exactly: then only the order of sums differs.
#[test]
fn what_needs_no_rounding_is_as_exact_as_float32() {
    let short = |tensor: Tensor<3>| (tensor * 32.0).round() / 32.0;
    let case = Case {
        threes: vec![short(values([4, 33, 70], 1))],
        twos: vec![(values([50, 70], 2) * 32.0).round() / 32.0],
        ones: vec![values([50], 3)],
    };
    let operation = |c: &Case| linear(c.threes[0].clone(), c.twos[0].clone(), c.ones[0].clone());
    let expected = run(&case, operation);
    cpu::at_each_level(|level| {
        let found = in_bf16(&case, operation);
        assert_close(&format!("{level:?}"), &found.output, &expected.output, 1e-6);
    });
}

#[test]
fn without_gradients_outputs_are_the_same() {
    let case = linear_case([3, 7, 10], 13);
    let plain = |x: &Tensor<3>| x.clone().inner();
    let (weight, bias) = (case.twos[0].clone(), case.ones[0].clone());
    let x = case.threes[0].clone();
    Precision::Bfloat16.during(|| {
        let tracked = linear_gelu(x.clone(), weight.clone(), bias.clone());
        let untracked = linear_gelu(plain(&x), weight.clone().inner(), bias.clone().inner());
        assert_eq!(numbers(tracked), numbers(untracked));
        let tracked = linear(x.clone(), weight.clone(), bias.clone());
        let untracked = linear(plain(&x), weight.inner(), bias.inner());
        assert_eq!(numbers(tracked), numbers(untracked));
    });
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
        in_bf16(&case, |c| {
            let x = c.threes[0].clone();
            let dropped = Some((RATE, KEY));
            let y = self_attention(x.clone(), projections(c), 3, mask.clone(), dropped);
            let (gamma, beta) = (c.ones[0].clone(), c.ones[1].clone());
            let y = dropout_add_layer_norm(y, x, gamma, beta, 1e-12, dropped);
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
