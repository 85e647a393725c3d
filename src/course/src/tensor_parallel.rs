//! Lesson 13: layers in slices (tensor parallelism): two products on several devices, their sums and their gradients.

use std::ops::Range;

use crate::attempt::{Fault, attempt, judged};
use crate::matrix::{
    Matrix, added, are_equal, columns_of, difference, in_words, linear, matrix, product, relu,
    relu_backward, shape, transposed,
};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 40;

/// Two layers with their inputs, for a check.
struct Pair {
    devices: usize,
    inputs: Matrix,
    first: Matrix,
    second: Matrix,
}

impl Pair {
    fn of(random: &mut Random) -> Self {
        let devices = random.integer(2, 4);
        let hidden = devices * random.integer(1, 3);
        // Inputs and outputs have other sizes than a slice and than the whole, so that shapes tell what was cut.
        let (inputs, outputs) = (hidden + random.integer(1, 3), hidden + random.integer(4, 6));
        let examples = random.integer(2, 4);
        Self {
            devices,
            inputs: matrix(random, examples, inputs),
            first: matrix(random, hidden, inputs),
            second: matrix(random, outputs, hidden),
        }
    }

    fn hidden(&self) -> usize {
        self.first.len()
    }

    fn own(&self, device: usize) -> Range<usize> {
        let each = self.hidden() / self.devices;
        device * each..(device + 1) * each
    }

    fn slices(&self, device: usize) -> (Matrix, Matrix) {
        let own = self.own(device);
        (
            self.first[own.clone()].to_vec(),
            columns_of(&self.second, own),
        )
    }

    fn outputs(&self) -> Matrix {
        linear(&relu(&linear(&self.inputs, &self.first)), &self.second)
    }

    fn sizes(&self) -> String {
        format!(
            "first {}, second {}",
            in_words(&self.first),
            in_words(&self.second)
        )
    }
}

fn sum(parts: impl IntoIterator<Item = Matrix>) -> Matrix {
    let sum = parts.into_iter().reduce(|sum, part| added(&sum, &part));
    sum.unwrap_or_default()
}

/// A function `slices(first, second, device, devices)`: the slices of two weights [outputs, inputs] on a device, so that it computes
/// its part of both products from the whole input without an exchange. Source: Shoeybi et al. 2019, "Megatron-LM", section 3.
pub fn check_slices(
    slices: impl Fn(&Matrix, &Matrix, usize, usize) -> (Matrix, Matrix),
) -> Verdict {
    judged("13.1", "slices", || of_slices(&slices))
}

type Slices<'a> = &'a dyn Fn(&Matrix, &Matrix, usize, usize) -> (Matrix, Matrix);

fn of_slices(slices: Slices<'_>) -> Result<String, Fault> {
    let mut random = Random::new(131);
    for _ in 0..TRIES {
        let pair = Pair::of(&mut random);
        let mut partial = Vec::new();
        for device in 0..pair.devices {
            let call = format!(
                "slices(&first, &second, {device}, {}) with {}",
                pair.devices,
                pair.sizes()
            );
            let (first, second) = attempt(call.clone(), || {
                slices(&pair.first, &pair.second, device, pair.devices)
            })?;
            if let Some((violated, look_at)) = wrong_shapes(&pair, &first, &second) {
                let got = format!("{} and {}", in_words(&first), in_words(&second));
                return Err(Fault::wrong(call, got, violated, look_at));
            }
            partial.push(linear(&relu(&linear(&pair.inputs, &first)), &second));
        }
        let got = sum(partial);
        if !are_equal(&got, &pair.outputs()) {
            let call = format!(
                "the partial products of {} devices, with {}",
                pair.devices,
                pair.sizes()
            );
            return Err(Fault::wrong(
                call,
                format!(
                    "a sum that differs from one device by {:.3}",
                    difference(&got, &pair.outputs())
                ),
                "the sum of all partial products is the output of one device",
                "hidden number k is made by row k of the first weight and read by column k of the second: both are on the same device, and \
                 each is on one device",
            ));
        }
    }
    Ok(format!(
        "{TRIES} pairs of layers on 2 to 4 devices: the partial products add up to the output of one device"
    ))
}

/// What is wrong with the shapes of two slices.
fn wrong_shapes(
    pair: &Pair,
    first: &[Vec<f64>],
    second: &[Vec<f64>],
) -> Option<(&'static str, &'static str)> {
    let (hidden, each) = (pair.hidden(), pair.hidden() / pair.devices);
    let inputs = pair.first.first().map_or(0, Vec::len);
    let outputs = pair.second.len();
    let (one, other) = (shape(first), shape(second));
    if one == Some((each, inputs)) && other == Some((outputs, each)) {
        return None;
    }
    Some(match (one, other) {
        (Some((rows, columns)), _) if rows == hidden && columns < inputs => (
            "the activation of a sum is not the sum of the activations; with the inputs cut, a device has partial sums before the activation",
            "the first weight: its rows are outputs",
        ),
        (_, Some((rows, columns))) if rows < outputs && columns == hidden => (
            "a row of the second weight reads all hidden numbers, and a device has a part of them; they would have to be gathered between \
             the products",
            "the second weight: its columns are inputs",
        ),
        (Some((rows, columns)), Some(_)) if rows == hidden && columns == inputs => (
            "a device stores a part of the weights; here it has a whole one",
            "which rows or columns belong to the device",
        ),
        (Some(_), Some((rows, columns))) if rows == outputs && columns == hidden => (
            "a device stores a part of the weights; here it has a whole one",
            "which rows or columns belong to the device",
        ),
        _ => (
            "each device has hidden / devices rows of the first weight and as many columns of the second",
            "the sizes of both slices",
        ),
    })
}

/// A function `combined(partials, bias)`: the output of a layer, of the partial products of all devices and its bias.
pub fn check_combined(combined: impl Fn(&[Matrix], &[f64]) -> Matrix) -> Verdict {
    judged("13.2", "combined", || of_sums(&combined))
}

fn of_sums(combined: &dyn Fn(&[Matrix], &[f64]) -> Matrix) -> Result<String, Fault> {
    let mut random = Random::new(132);
    for _ in 0..TRIES {
        let (devices, examples, outputs) = (
            random.integer(2, 5),
            random.integer(1, 3),
            random.integer(2, 4),
        );
        let partials: Vec<Matrix> = (0..devices)
            .map(|_| matrix(&mut random, examples, outputs))
            .collect();
        // A bias that no mistake can hide in.
        let bias: Vec<f64> = (0..outputs).map(|_| random.short(1.0, 3.0)).collect();
        let call = format!("combined(&partials, &{bias:?}) with {devices} partial products");
        let got = attempt(call.clone(), || combined(&partials, &bias))?;
        let biases =
            |times: f64| vec![bias.iter().map(|it| times * it).collect::<Vec<f64>>(); examples];
        let whole = sum(partials.clone());
        if are_equal(&got, &added(&whole, &biases(1.0))) {
            continue;
        }
        let mean: Matrix = whole
            .iter()
            .map(|row| row.iter().map(|it| it / devices as f64).collect())
            .collect();
        let (violated, look_at) = if are_equal(&got, &added(&whole, &biases(devices as f64))) {
            (
                "a bias is added once; here each device adds it, and the output has it as often as there are devices",
                "where the bias is added: before the sum, or after it?",
            )
        } else if are_equal(&got, &whole) {
            (
                "the layer has a bias; here it is missing",
                "the second argument",
            )
        } else if are_equal(&got, &added(&mean, &biases(1.0))) || are_equal(&got, &mean) {
            (
                "partial products are parts of one sum, not estimates of the same value as gradients of replicas are",
                "the division",
            )
        } else if partials
            .iter()
            .any(|part| are_equal(&got, part) || are_equal(&got, &added(part, &biases(1.0))))
        {
            (
                "the partial products of all devices are in the output; here those of one device are",
                "partial sums that nobody adds",
            )
        } else {
            (
                "the output is the sum of all partial products, and the bias for each example",
                "the sum over devices, number by number",
            )
        };
        return Err(Fault::wrong(call, got_in_words(&got), violated, look_at));
    }
    Ok(format!("{TRIES} layers on 2 to 5 devices"))
}

fn got_in_words(matrix: &[Vec<f64>]) -> String {
    let first = matrix
        .first()
        .map_or(&[][..], |row| &row[..row.len().min(4)]);
    let numbers: Vec<String> = first.iter().map(|it| format!("{it:.2}")).collect();
    format!(
        "{}, the first row begins with {}",
        in_words(matrix),
        numbers.join(", ")
    )
}

/// A function `device_gradients(inputs, gradient, first, second)`: on a device with its slices, the gradients by the first and by
/// the second slice, and its part of the gradient by the inputs. `gradient` is that by the output, whole on each device.
pub fn check_device_gradients(
    gradients: impl Fn(&Matrix, &Matrix, &Matrix, &Matrix) -> (Matrix, Matrix, Matrix),
) -> Verdict {
    judged("13.3", "device_gradients", || of_gradients(&gradients))
}

/// The gradients by two weights and by their inputs.
fn backward(inputs: &Matrix, gradient: &Matrix, first: &Matrix, second: &Matrix) -> [Matrix; 3] {
    let hidden = linear(inputs, first);
    let of_second = product(&transposed(gradient), &relu(&hidden));
    let of_hidden = relu_backward(&product(gradient, second), &hidden);
    let of_first = product(&transposed(&of_hidden), inputs);
    [of_first, of_second, product(&of_hidden, first)]
}

type DeviceGradients<'a> =
    &'a dyn Fn(&Matrix, &Matrix, &Matrix, &Matrix) -> (Matrix, Matrix, Matrix);

fn of_gradients(gradients: DeviceGradients<'_>) -> Result<String, Fault> {
    let mut random = Random::new(133);
    for _ in 0..TRIES {
        let pair = Pair::of(&mut random);
        let gradient = matrix(&mut random, pair.inputs.len(), pair.second.len());
        let [_, _, of_inputs] = backward(&pair.inputs, &gradient, &pair.first, &pair.second);
        let mut parts = Vec::new();
        for device in 0..pair.devices {
            let (first, second) = pair.slices(device);
            let call = format!(
                "device_gradients(&inputs, &gradient, &first, &second) on device {device} of {}, first {}, second {}",
                pair.devices,
                in_words(&first),
                in_words(&second)
            );
            let (of_first, of_second, part) = attempt(call.clone(), || {
                gradients(&pair.inputs, &gradient, &first, &second)
            })?;
            let got = [of_first, of_second, part];
            let truth = backward(&pair.inputs, &gradient, &first, &second);
            if let Some((place, violated, look_at)) =
                wrong_gradient(&pair.inputs, &gradient, (&first, &second), &got, &truth)
            {
                return Err(Fault::wrong(
                    call,
                    got_in_words(&got[place]),
                    violated,
                    look_at,
                ));
            }
            parts.extend(got.into_iter().nth(2));
        }
        // What each device is asked for adds up to the gradient of one device.
        if !are_equal(&sum(parts), &of_inputs) {
            return Err(Fault::wrong(
                format!("the parts of {} devices", pair.devices),
                "another sum than the gradient of one device",
                "the parts of the gradient by the inputs add up to that of one device",
                "the third result",
            ));
        }
    }
    Ok(format!(
        "{TRIES} pairs of layers on 2 to 4 devices: slices of the gradients of one device, and parts that add up to its gradient by the inputs"
    ))
}

/// The first gradient that is wrong: its place, what it violates, where to look.
fn wrong_gradient(
    inputs: &Matrix,
    gradient: &Matrix,
    (first, second): (&Matrix, &Matrix),
    got: &[Matrix; 3],
    truth: &[Matrix; 3],
) -> Option<(usize, &'static str, &'static str)> {
    let place = (0..3)
        .rev()
        .find(|&place| !are_equal(&got[place], &truth[place]))?;
    let hidden = linear(inputs, first);
    let unmasked = product(gradient, second);
    let without_mask = [
        product(&transposed(&unmasked), inputs),
        Vec::new(),
        product(&unmasked, first),
    ];
    let before = product(&transposed(gradient), &hidden);
    let (violated, look_at) = if shape(&got[place]) != shape(&truth[place]) {
        let is_turned = are_equal(&transposed_if_even(&got[place]), &truth[place]);
        match is_turned {
            true => (
                "a gradient has the shape of its variable; here rows and columns are exchanged",
                "`course::transposed`",
            ),
            false => (
                "a gradient has the shape of its variable",
                "the order of the factors of the product",
            ),
        }
    } else if place != 1 && are_equal(&got[place], &without_mask[place]) {
        (
            "where the activation is 0, nothing of the gradient passes",
            "`course::relu_backward(&gradient, &hidden)`",
        )
    } else if place == 1 && are_equal(&got[1], &before) {
        (
            "the second layer reads the activations, not the numbers before them",
            "`course::relu` in the gradient by the second slice",
        )
    } else {
        match place {
            0 => (
                "the gradient by the first slice is that of its rows on one device",
                "the inputs and the gradient by the hidden numbers",
            ),
            1 => (
                "the gradient by the second slice is that of its columns on one device",
                "the gradient by the output and the activations",
            ),
            _ => (
                "a device's part of the gradient by the inputs is what its own hidden numbers contribute",
                "the gradient by the hidden numbers, and the first slice",
            ),
        }
    };
    Some((place, violated, look_at))
}

fn transposed_if_even(matrix: &[Vec<f64>]) -> Matrix {
    match shape(matrix) {
        Some(_) => transposed(matrix),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    fn words(verdict: &Verdict) -> String {
        verdict.words()
    }

    fn right(first: &Matrix, second: &Matrix, device: usize, devices: usize) -> (Matrix, Matrix) {
        let each = first.len() / devices;
        let own = device * each..(device + 1) * each;
        (first[own.clone()].to_vec(), columns_of(second, own))
    }

    #[test]
    fn mistakes_of_slices_are_distinguished() {
        assert_eq!(check_slices(right).state, State::Right);
        type Slices = fn(&Matrix, &Matrix, usize, usize) -> (Matrix, Matrix);
        let cases: [(Slices, &str); 6] = [
            (
                |a, b, d, n| {
                    let own = d * b.len() / n..(d + 1) * b.len() / n;
                    (right(a, b, d, n).0, b[own].to_vec())
                },
                "have to be gathered",
            ),
            (
                |a, b, d, n| {
                    let inputs = a[0].len();
                    (
                        columns_of(a, d * inputs / n..(d + 1) * inputs / n),
                        right(a, b, d, n).1,
                    )
                },
                "activation of a sum",
            ),
            (|a, b, _, _| (a.clone(), b.clone()), "a whole one"),
            (
                |a, b, d, n| (right(a, b, d, n).0, right(a, b, n - 1 - d, n).1),
                "hidden number k",
            ),
            (|a, b, _, n| right(a, b, 0, n), "each is on one device"),
            (
                |_, _, _, _| (vec![vec![1.0], vec![]], Vec::new()),
                "hidden / devices rows",
            ),
        ];
        for (slices, expected) in cases {
            let verdict = check_slices(slices);
            assert_eq!(verdict.state, State::Wrong);
            assert!(words(&verdict).contains(expected), "{}", words(&verdict));
        }
        assert_eq!(check_slices(|_, _, _, _| todo!()).state, State::Open);
    }

    #[test]
    fn mistakes_of_sums_are_distinguished() {
        let with = |matrix: Matrix, bias: &[f64]| -> Matrix {
            let row = |row: Vec<f64>| row.iter().zip(bias).map(|(x, b)| x + b).collect();
            matrix.into_iter().map(row).collect()
        };
        assert!(check_combined(|parts, bias| with(sum(parts.to_vec()), bias)).is_right());
        let each =
            check_combined(|parts, bias| sum(parts.iter().map(|part| with(part.clone(), bias))));
        assert!(words(&each).contains("each device adds it"));
        assert!(
            words(&check_combined(|parts, _| sum(parts.to_vec()))).contains("here it is missing")
        );
        assert!(
            words(&check_combined(|parts, bias| with(parts[0].clone(), bias)))
                .contains("nobody adds")
        );
        let mean = check_combined(|parts, bias| {
            let whole = sum(parts.to_vec());
            let count = parts.len() as f64;
            with(
                whole
                    .iter()
                    .map(|row| row.iter().map(|x| x / count).collect())
                    .collect(),
                bias,
            )
        });
        assert!(words(&mean).contains("not estimates"));
        assert!(words(&check_combined(|_, _| Vec::new())).contains("sum of all partial products"));
    }

    #[test]
    fn mistakes_of_gradients_are_distinguished() {
        let right = |x: &Matrix, g: &Matrix, a: &Matrix, b: &Matrix| {
            let [first, second, inputs] = backward(x, g, a, b);
            (first, second, inputs)
        };
        assert!(check_device_gradients(right).is_right());
        let unmasked = check_device_gradients(|x, g, a, b| {
            let hidden = product(g, b);
            (
                product(&transposed(&hidden), x),
                right(x, g, a, b).1,
                product(&hidden, a),
            )
        });
        assert!(words(&unmasked).contains("nothing of the gradient passes"));
        let before = check_device_gradients(|x, g, a, b| {
            let (first, _, inputs) = right(x, g, a, b);
            (first, product(&transposed(g), &linear(x, a)), inputs)
        });
        assert!(words(&before).contains("reads the activations"));
        let turned = check_device_gradients(|x, g, a, b| {
            let (first, second, inputs) = right(x, g, a, b);
            (transposed(&first), second, inputs)
        });
        assert!(words(&turned).contains("rows and columns are exchanged"));
        let double = check_device_gradients(|x, g, a, b| {
            let (first, second, inputs) = right(x, g, a, b);
            (first, second, added(&inputs, &inputs))
        });
        assert!(words(&double).contains("own hidden numbers contribute"));
        assert!(
            words(&check_device_gradients(|_, _, _, _| Default::default()))
                .contains("shape of its variable")
        );
    }
}
