//! Lesson 7: local SGD. Replica r has the loss `c · (w − t)² / 2`, with its own curvature c and target t.

use crate::attempt::{Fault, attempt, close, judged, list};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 40;

/// What a wrong program does instead.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Right,
    Never,
    EveryStep,
    NoneAtTheEnd,
    Sum,
}

fn local(replicas: &[(f64, f64)], rate: f64, steps: usize, every: usize, way: Way) -> Vec<f64> {
    let mut weights = vec![0.0; replicas.len()];
    for step in 1..=steps {
        for (weight, (curvature, target)) in weights.iter_mut().zip(replicas) {
            *weight -= rate * curvature * (*weight - target);
        }
        let meets = match way {
            Way::Never => false,
            Way::EveryStep => true,
            Way::NoneAtTheEnd => step % every == 0,
            Way::Right | Way::Sum => step % every == 0 || step == steps,
        };
        if meets {
            let sum: f64 = weights.iter().sum();
            let mean = if way == Way::Sum {
                sum
            } else {
                sum / weights.len() as f64
            };
            weights.fill(mean);
        }
    }
    weights
}

/// A function `local_sgd(replicas, rate, steps, sync_every)` that returns the weight of each replica in the end. A replica is
/// `(curvature, target)`; its gradient is `curvature · (weight − target)`; all weights begin at 0.
pub fn check_local_sgd(program: impl Fn(&[(f64, f64)], f64, usize, usize) -> Vec<f64>) -> Verdict {
    judged("7.1", "local_sgd", || of_local_sgd(&program))
}

/// The weights after some local steps: examples, rate, steps, and steps between two averages.
type Program<'a> = dyn Fn(&[(f64, f64)], f64, usize, usize) -> Vec<f64> + 'a;

fn of_local_sgd(program: &Program<'_>) -> Result<String, Fault> {
    let mut random = Random::new(71);
    for attempted in 0..TRIES {
        let count = random.integer(2, 3);
        let mut replica = || (random.short(0.2, 2.0), random.short(-3.0, 3.0));
        let replicas: Vec<(f64, f64)> = (0..count).map(|_| replica()).collect();
        let (every, rate) = (random.integer(2, 4), random.short(0.05, 0.4));
        // First those in which the last step is one of the averages.
        let steps = match attempted < 8 {
            true => every * random.integer(2, 3),
            false => random.integer(3, 11),
        };
        let call = format!("local_sgd(&{replicas:?}, {rate}, {steps}, {every})");
        let got = attempt(call.clone(), || program(&replicas, rate, steps, every))?;
        if got.len() != count {
            let violated = "there is one weight for each replica";
            return Err(Fault::wrong(call, list(&got), violated, ""));
        }
        let is = |way| {
            let all = local(&replicas, rate, steps, every, way);
            all.iter().zip(&got).all(|(one, other)| close(*one, *other))
        };
        if is(Way::Right) {
            continue;
        }
        let (violated, look_at) = if is(Way::Never) {
            (
                "after an average all replicas have the same weight; here they never met",
                "what happens when the number of the step is a multiple of `sync_every`",
            )
        } else if is(Way::EveryStep) {
            (
                "between two averages each replica steps alone; here they meet in every step",
                "the condition of the average",
            )
        } else if is(Way::NoneAtTheEnd) {
            (
                "in the end all replicas have the same weight, also where the last steps are fewer than `sync_every`",
                "the last step",
            )
        } else if is(Way::Sum) {
            (
                "replicas that have the same weight keep it when they average; here it grows",
                "what the sum is divided by",
            )
        } else if got.iter().any(|weight| !close(*weight, got[0])) {
            (
                "in the end all replicas have the same weight",
                "what each replica gets from the average",
            )
        } else {
            (
                "one replica's step is weight − rate · curvature · (weight − target)",
                "the number of local steps before each average: is the first step counted as 1?",
            )
        };
        return Err(Fault::wrong(call, list(&got), violated, look_at));
    }
    Ok(format!("{TRIES} random groups of 2 or 3 replicas"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn typical_programs_get_their_hint() {
        let plain = |way: Way| {
            let verdict = check_local_sgd(move |replicas: &[(f64, f64)], rate, steps, every| {
                local(replicas, rate, steps, every, way)
            });
            assert_eq!(verdict.is_right(), way == Way::Right);
            verdict.words()
        };
        plain(Way::Right);
        assert!(plain(Way::Never).contains("never met"));
        assert!(plain(Way::EveryStep).contains("meet in every step"));
        assert!(plain(Way::NoneAtTheEnd).contains("the last step"));
        assert!(plain(Way::Sum).contains("divided by"));
        let late = |replicas: &[(f64, f64)], rate: f64, steps: usize, every: usize| {
            local(replicas, rate, steps + 1, every, Way::Right)
        };
        assert_eq!(check_local_sgd(late).state, State::Wrong);
        assert_eq!(check_local_sgd(|_, _, _, _| todo!()).state, State::Open);
    }
}
