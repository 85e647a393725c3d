//! `stratoscope doctor --cuda`: a few operations of a training step on the default device beside the processor.

use std::panic::{self, AssertUnwindSafe};

use stratoscope_strategy::device::choice;

use burn::tensor::activation::{gelu, softmax};
use burn::tensor::{Device, Int, Tensor};

/// The largest difference that rounding explains, relative to the largest number of a result: some hundred roundings.
const LIMIT: f32 = 1e-4;

/// An operation by its name, and its result as numbers.
type Results = Vec<(&'static str, Vec<f32>)>;

/// Prints a line for each operation, `same NAME: …` or `differs NAME: …`, and at last `done`; `refused …` if the device
/// is not there or fails. Called by `stratoscope doctor`, which loads this library in a process of its own.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_device_parity() {
    choice::tell_by(drop);
    let device = match choice::choice() {
        Ok(choice) => match choice.failures().next() {
            None => choice.device.burn.clone(),
            Some((name, reason)) => {
                return println!("refused {name} did not start: {reason}\ndone");
            }
        },
        Err(problem) => return println!("refused {}\ndone", problem.one_line()),
    };
    // A runtime may panic; the lines so far stay.
    let computed = panic::catch_unwind(AssertUnwindSafe(|| results(&device)));
    let Ok(Some(found)) = computed else {
        return println!("refused the device fails at an operation of a training step\ndone");
    };
    let expected = results(&Device::flex()).unwrap_or_default();
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        let difference = difference(expected, found);
        let word = match difference <= LIMIT {
            true => "same",
            false => "differs",
        };
        println!(
            "{word} {name}: differs from the processor by {difference:.1e} of its largest number, limit {LIMIT:.0e}"
        );
    }
    println!("done");
}

/// The largest difference, relative to the largest number expected; infinite where the numbers cannot be compared.
fn difference(expected: &[f32], found: &[f32]) -> f32 {
    let largest = expected
        .iter()
        .fold(0.0_f32, |most, number| most.max(number.abs()));
    let pairs = expected.iter().zip(found);
    let most = pairs.fold(0.0_f32, |most, (a, b)| match (a - b).abs() {
        apart if apart.is_finite() => most.max(apart),
        _ => f32::INFINITY,
    });
    match expected.len() == found.len() && largest > 0.0 {
        true => most / largest,
        false => f32::INFINITY,
    }
}

/// The operations, of numbers that are a function of their place. `None` if the device does not give its results.
fn results(device: &Device) -> Option<Results> {
    let device = device.clone().autodiff();
    let numbers = |rows: usize, columns: usize, phase: f32| {
        let values: Vec<f32> = (0..rows * columns)
            .map(|at| (at as f32 * 0.7 + phase).sin())
            .collect();
        Tensor::<1>::from_floats(values.as_slice(), &device).reshape([rows, columns])
    };
    let values = |tensor: Tensor<2>| {
        let data = tensor.try_into_data().ok()?;
        Some(data.as_slice::<f32>().ok()?.to_vec())
    };
    let rows = numbers(64, 96, 0.0);
    let weights = numbers(96, 48, 1.0).require_grad();
    let product = rows.clone().matmul(weights.clone());
    let activated = gelu(product.clone());
    let shares = softmax(activated.clone(), 1);
    let centered = rows.clone() - rows.clone().mean_dim(1);
    let normalized = centered.clone() / ((centered.clone() * centered).mean_dim(1) + 1e-12).sqrt();
    let picked: Vec<i32> = (0..32).map(|at| at * 7 % 64).collect();
    let picked = Tensor::<1, Int>::from_ints(picked.as_slice(), &device);
    let looked_up = rows.clone().select(0, picked);
    let sums = rows.sum_dim(0);
    let loss = (shares.clone() * numbers(64, 48, 2.0)).sum();
    let gradients = loss.backward();
    Some(vec![
        ("matrix product", values(product)?),
        ("GELU", values(activated)?),
        ("softmax", values(shares)?),
        ("normalization", values(normalized)?),
        ("embedding look-up", values(looked_up)?),
        ("sum", values(sums)?),
        ("gradient", values(weights.grad(&gradients)?)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_agrees_with_itself() {
        let results = results(&Device::flex()).expect("the processor computes");
        assert_eq!(results.len(), 7);
        for (name, numbers) in &results {
            assert_eq!(difference(numbers, numbers), 0.0, "{name}");
            assert!(numbers.iter().any(|number| *number != numbers[0]), "{name}");
        }
    }

    #[test]
    fn wrong_numbers_differ() {
        assert!(difference(&[1.0, 2.0], &[1.0, 2.1]) > LIMIT);
        assert_eq!(difference(&[1.0], &[f32::NAN]), f32::INFINITY);
        assert_eq!(difference(&[1.0, 2.0], &[1.0]), f32::INFINITY);
        assert_eq!(difference(&[0.0], &[0.0]), f32::INFINITY);
    }
}
