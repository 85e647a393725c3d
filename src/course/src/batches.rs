//! Lesson 2: the gradient of a batch, and of batches of different sizes.

use crate::attempt::{Fault, attempt, close, judged, show};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 50;

/// A function `batch_gradient(w, examples)` for the loss `mean of (w · x − y)²`; an example is `(x, y)`.
pub fn check_batch_gradient(gradient: impl Fn(f64, &[(f64, f64)]) -> f64) -> Verdict {
    judged("2.1", "batch_gradient", || of_batch(&gradient))
}

/// The mean loss of some examples, or its gradient, at a weight.
type OfExamples<'a> = dyn Fn(f64, &[(f64, f64)]) -> f64 + 'a;

fn of_batch(gradient: &OfExamples<'_>) -> Result<String, Fault> {
    let mut random = Random::new(21);
    for _ in 0..TRIES {
        let w = random.short(-2.0, 2.0);
        let size = random.integer(2, 5);
        let mut number = || random.short(-2.0, 2.0);
        let examples: Vec<(f64, f64)> = (0..size).map(|_| (number(), number())).collect();
        let call = format!("batch_gradient({w}, &{examples:?})");
        let got = attempt(call.clone(), || gradient(w, &examples))?;
        let of = |&(x, y): &(f64, f64)| 2.0 * (w * x - y) * x;
        let sum: f64 = examples.iter().map(of).sum();
        let truth = sum / size as f64;
        if close(got, truth) {
            continue;
        }
        let (violated, look_at) = if close(got, sum) {
            (
                "a batch that contains every example twice has the same mean loss, so the same gradient; yours would double",
                "the word mean in the loss",
            )
        } else if close(got, of(&examples[0])) || close(got, of(&examples[size - 1])) {
            (
                "every example of the batch has an influence on the gradient; here only one has",
                "what your loop keeps from the examples before",
            )
        } else if close(got, -truth) {
            (
                "a small move along the gradient should raise the loss; with your number it lowers the loss",
                "the sign of the error",
            )
        } else if close(got, truth / 2.0) {
            (
                "nudge w by a small h: the mean loss should change by gradient · h; with your number it changes by more",
                "the derivative of a square",
            )
        } else {
            (
                "nudge w by a small h: the mean loss should change by gradient · h; with your number it does not",
                "the gradient of one example, from lesson 1, then the mean of all",
            )
        };
        return Err(Fault::wrong(call, show(got), violated, look_at));
    }
    Ok(format!("{TRIES} random batches of 2 to 5 examples"))
}

/// A function `combine(parts)`; a part is the gradient of the mean loss over some examples, and their number. The result is
/// the gradient of the mean loss over all of them.
pub fn check_combine(combine: impl Fn(&[(f64, usize)]) -> f64) -> Verdict {
    judged("2.2", "combine", || of_combine(&combine))
}

/// What parts with their sizes are together.
type OfParts<'a> = dyn Fn(&[(f64, usize)]) -> f64 + 'a;

fn of_combine(combine: &OfParts<'_>) -> Result<String, Fault> {
    let mut random = Random::new(22);
    for _ in 0..TRIES {
        let count = random.integer(2, 4);
        let mut part = |index| (random.short(-3.0, 3.0), random.integer(1, 2) + 2 * index);
        let parts: Vec<(f64, usize)> = (0..count).map(&mut part).collect();
        let call = format!("combine(&{parts:?})");
        let got = attempt(call.clone(), || combine(&parts))?;
        let examples: usize = parts.iter().map(|part| part.1).sum();
        let weighted: f64 = parts.iter().map(|part| part.0 * part.1 as f64).sum();
        if close(got, weighted / examples as f64) {
            continue;
        }
        let sum: f64 = parts.iter().map(|part| part.0).sum();
        let (violated, look_at) = if close(got, sum / count as f64) {
            (
                "every example has the same influence, also where the parts have different sizes",
                "an example of the smallest part: its influence here is larger than that of one of the largest",
            )
        } else if close(got, sum) || close(got, weighted) {
            (
                "if all parts have the same gradient, the result is that gradient; yours grows with their number",
                "what the sum has to be divided by",
            )
        } else if close(got, weighted / count as f64) {
            (
                "if all parts have the same gradient, the result is that gradient",
                "the divisor: how many examples are there in all?",
            )
        } else {
            (
                "the result is the mean over all examples, so it lies between the smallest and the largest part",
                "the sum of the gradients of a part's examples is its mean times their number",
            )
        };
        return Err(Fault::wrong(call, show(got), violated, look_at));
    }
    Ok(format!("{TRIES} random groups of 2 to 4 parts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    fn of((x, y): (f64, f64), w: f64) -> f64 {
        2.0 * (w * x - y) * x
    }

    #[test]
    fn typical_gradients_of_a_batch_get_their_hint() {
        let sum = |w: f64, examples: &[(f64, f64)]| -> f64 {
            examples.iter().map(|example| of(*example, w)).sum()
        };
        assert!(check_batch_gradient(|w, all| sum(w, all) / all.len() as f64).is_right());
        assert!(check_batch_gradient(sum).words().contains("would double"));
        let last = check_batch_gradient(|w, all| of(all[all.len() - 1], w));
        assert!(last.words().contains("only one has"));
        let half = check_batch_gradient(|w, all| sum(w, all) / all.len() as f64 / 2.0);
        assert!(half.words().contains("derivative of a square"));
        let panics = check_batch_gradient(|w, all| of(all[all.len()], w));
        assert!(panics.words().contains("panicked"), "{panics:?}");
        assert_eq!(check_batch_gradient(|_, _| todo!()).state, State::Open);
    }

    #[test]
    fn typical_combinations_get_their_hint() {
        let total = |parts: &[(f64, usize)]| parts.iter().map(|part| part.1).sum::<usize>() as f64;
        let weighted =
            |parts: &[(f64, usize)]| parts.iter().map(|part| part.0 * part.1 as f64).sum::<f64>();
        let plainly = |parts: &[(f64, usize)]| parts.iter().map(|part| part.0).sum::<f64>();
        assert!(check_combine(|parts| weighted(parts) / total(parts)).is_right());
        let hint = check_combine(|parts| plainly(parts) / parts.len() as f64).words();
        assert!(hint.contains("different sizes"));
        assert!(
            check_combine(plainly)
                .words()
                .contains("grows with their number")
        );
        let hint = check_combine(|parts| weighted(parts) / parts.len() as f64).words();
        assert!(hint.contains("how many examples are there"));
    }
}
