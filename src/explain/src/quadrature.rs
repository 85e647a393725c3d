//! Where an integral over 0 to 1 is sampled, and with which weights: Gauss and Legendre's rule, exact for polynomials of
//! degree 2n − 1. Source: Golub and Van Loan, "Matrix Computations"; the roots by Newton's method from Tricomi's estimate.

use std::f64::consts::PI;

/// `steps` places between 0 and 1 with their weights, whose sum is 1.
pub(crate) fn gauss_legendre(steps: usize) -> Vec<(f64, f64)> {
    let count = steps as f64;
    let point = |index: usize| {
        let mut x = (PI * (index as f64 + 0.75) / (count + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (value, derivative) = legendre(steps, x);
            slope = derivative;
            let change = value / derivative;
            x -= change;
            if change.abs() < 1e-15 {
                slope = legendre(steps, x).1;
                break;
            }
        }
        // From −1 to 1 to 0 to 1.
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..steps).map(point).collect()
}

/// Legendre's polynomial of this degree and its derivative at `x`, by Bonnet's recursion.
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (1.0, x);
    for n in 2..=degree {
        let n = n as f64;
        (before, value) = (
            value,
            ((2.0 * n - 1.0) * x * value - (n - 1.0) * before) / n,
        );
    }
    (value, degree as f64 * (x * value - before) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_integrated_exactly() {
        for steps in [1, 2, 5, 50] {
            let rule = gauss_legendre(steps);
            for degree in 0..(2 * steps).min(12) {
                let sum: f64 = rule
                    .iter()
                    .map(|(x, weight)| weight * x.powi(degree as i32))
                    .sum();
                assert!(
                    (sum - 1.0 / (degree as f64 + 1.0)).abs() < 1e-13,
                    "{steps} {degree} {sum}"
                );
            }
            assert!(
                rule.iter()
                    .all(|(x, weight)| (0.0..1.0).contains(x) && *weight > 0.0)
            );
        }
    }
}
