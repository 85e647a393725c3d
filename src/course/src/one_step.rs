//! Lesson 1: one step by hand. The model is `w · x + b`, the loss `(w · x + b − y)²`.

use crate::attempt::{Fault, attempt, close, judged, show};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 50;

/// A function `gradient(w, b, x, y)` that returns the derivatives of the loss by `w` and by `b`.
pub fn check_gradient(gradient: impl Fn(f64, f64, f64, f64) -> (f64, f64)) -> Verdict {
    judged("1.1", "gradient", || of_gradient(&gradient))
}

fn of_gradient(gradient: &dyn Fn(f64, f64, f64, f64) -> (f64, f64)) -> Result<String, Fault> {
    let mut random = Random::new(11);
    for _ in 0..TRIES {
        let [w, b, x, y] = [0; 4].map(|_| random.short(-3.0, 3.0));
        let call = format!("gradient({w}, {b}, {x}, {y})");
        let (by_w, by_b) = attempt(call.clone(), || gradient(w, b, x, y))?;
        let error = w * x + b - y;
        let (true_w, true_b) = (2.0 * error * x, 2.0 * error);
        if close(by_w, true_w) && close(by_b, true_b) {
            continue;
        }
        let all = |factor: f64| close(by_w, factor * true_w) && close(by_b, factor * true_b);
        let (violated, look_at) = if all(-1.0) {
            (
                "a small move along the gradient should raise the loss; with your numbers it lowers the loss",
                "the sign of the error: is it prediction minus target, or target minus prediction?",
            )
        } else if all(0.5) {
            (
                "nudge a weight by a small h: the loss should change by gradient · h; with your numbers it changes by more",
                "the derivative of a square",
            )
        } else if close(by_w, true_b) && close(by_b, true_b) {
            (
                "where x is 0, the weight w has no influence on the loss, so its derivative is 0 there",
                "the chain rule for w: by what is w multiplied?",
            )
        } else if close(by_w, true_b) && close(by_b, true_w) {
            (
                "the first number belongs to w, the second to b",
                "the order of the pair",
            )
        } else if close(by_w, true_w) {
            (
                "nudge b by a small h: the loss should change by (derivative by b) · h; with your numbers it does not",
                "the derivative by b: the prediction contains b with the factor 1",
            )
        } else {
            (
                "nudge w by a small h: the loss should change by (derivative by w) · h; with your numbers it does not",
                "the chain rule: the derivative of the square, then of what is squared",
            )
        };
        let got = format!("({}, {})", show(by_w), show(by_b));
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!("{TRIES} random weights and examples"))
}

/// A function `step(weight, gradient, rate)` that returns the weight after a step of gradient descent.
pub fn check_step(step: impl Fn(f64, f64, f64) -> f64) -> Verdict {
    judged("1.2", "step", || of_step(&step))
}

fn of_step(step: &dyn Fn(f64, f64, f64) -> f64) -> Result<String, Fault> {
    let mut random = Random::new(12);
    for _ in 0..TRIES {
        let (weight, gradient) = (random.short(-3.0, 3.0), random.short(-5.0, 5.0));
        let rate = random.short(0.01, 0.5);
        let call = format!("step({weight}, {gradient}, {rate})");
        let got = attempt(call.clone(), || step(weight, gradient, rate))?;
        let change = rate * gradient;
        if close(got, weight - change) {
            continue;
        }
        let (violated, look_at) = if close(got, weight + change) {
            (
                "a step goes against the gradient: the loss falls there",
                "the sign",
            )
        } else if close(got, weight - gradient) || close(got, weight + gradient) {
            (
                "with half the rate the weight moves half as far; here the rate has no influence",
                "where the rate enters",
            )
        } else if close(got, change) || close(got, -change) {
            (
                "with a gradient of 0 the weight stays what it is; here the result is the change alone",
                "what the function returns: the weight, not its change",
            )
        } else {
            (
                "the weight moves by rate times gradient, against the gradient",
                "",
            )
        };
        return Err(Fault::wrong(call, show(got), violated, look_at));
    }
    Ok(format!("{TRIES} random weights, gradients and rates"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn typical_gradients_get_their_hint() {
        let right = |w: f64, b: f64, x: f64, y: f64| {
            let error = w * x + b - y;
            (2.0 * error * x, 2.0 * error)
        };
        assert!(check_gradient(right).is_right());
        let hint = |factor: fn((f64, f64), f64) -> (f64, f64)| {
            let verdict = check_gradient(move |w, b, x, y| factor(right(w, b, x, y), x));
            assert_eq!(verdict.state, State::Wrong);
            verdict.words()
        };
        assert!(hint(|(w, b), _| (-w, -b)).contains("prediction minus target"));
        assert!(hint(|(w, b), _| (w / 2.0, b / 2.0)).contains("derivative of a square"));
        assert!(hint(|(_, b), _| (b, b)).contains("where x is 0"));
        assert!(hint(|(w, b), _| (b, w)).contains("order of the pair"));
        assert!(hint(|(w, _), _| (w, 0.0)).contains("derivative by b"));
        assert!(hint(|(_, b), _| (f64::NAN, b)).contains("derivative by w"));
        assert_eq!(check_gradient(|_, _, _, _| todo!()).state, State::Open);
    }

    #[test]
    fn typical_steps_get_their_hint() {
        assert!(check_step(|weight, gradient, rate| weight - rate * gradient).is_right());
        let plain = |step: fn(f64, f64, f64) -> f64| check_step(step).words();
        assert!(plain(|w, g, r| w + r * g).contains("goes against the gradient"));
        assert!(plain(|w, g, _| w - g).contains("rate has no influence"));
        assert!(plain(|_, g, r| -r * g).contains("not its change"));
        assert!(plain(|_, _, _| todo!("one line")).contains("still to be filled in"));
    }
}
