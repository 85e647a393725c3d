//! Lessons 4 and 5: how a batch is divided, and what a run counts.

use crate::attempt::{Fault, attempt, judged};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 60;

/// A function `shares(batch, replicas)`: how many examples of a global batch each replica gets.
pub fn check_shares(shares: impl Fn(usize, usize) -> Vec<usize>) -> Verdict {
    judged("4.1", "shares", || of_shares(&shares))
}

fn of_shares(shares: &dyn Fn(usize, usize) -> Vec<usize>) -> Result<String, Fault> {
    let mut random = Random::new(41);
    for attempted in 0..TRIES {
        let replicas = random.integer(1, 5);
        // First those that can be divided evenly.
        let batch = match attempted < 5 {
            true => replicas * random.integer(1, 4),
            false => random.integer(1, 20),
        };
        let call = format!("shares({batch}, {replicas})");
        let got = attempt(call.clone(), || shares(batch, replicas))?;
        let sum: usize = got.iter().sum();
        let (most, fewest) = (got.iter().max(), got.iter().min());
        let (violated, look_at) = if got.len() != replicas {
            ("there is one number for each replica", "")
        } else if sum < batch {
            (
                "every example of the batch goes to a replica; here some go to none",
                "the remainder of the division",
            )
        } else if sum > batch {
            (
                "every example of the batch goes to one replica only; here there are too many",
                "the remainder of the division",
            )
        } else if most
            .zip(fewest)
            .is_some_and(|(most, fewest)| most - fewest > 1)
        {
            (
                "no replica has two examples more than another, or all wait for it",
                "how the remainder is divided",
            )
        } else if !got.is_sorted_by(|one, next| one >= next) {
            (
                "the first replicas get the examples of the remainder, so that every run divides alike",
                "who gets the remainder",
            )
        } else {
            continue;
        };
        return Err(Fault::wrong(call, format!("{got:?}"), violated, look_at));
    }
    Ok(format!(
        "{TRIES} batches of 1 to 20 examples on 1 to 5 replicas"
    ))
}

/// A function `counters(batches, per_execution, accumulation, replicas)` that returns the executions, the optimizer steps and
/// the all-reduces of an epoch.
pub fn check_counters(counters: impl Fn(usize, usize, usize, usize) -> [usize; 3]) -> Verdict {
    judged("5.3", "counters", || of_counters(&counters))
}

fn of_counters(
    counters: &dyn Fn(usize, usize, usize, usize) -> [usize; 3],
) -> Result<String, Fault> {
    let mut random = Random::new(53);
    for attempted in 0..TRIES {
        let (mut per_execution, mut accumulation) = (random.integer(1, 6), random.integer(1, 4));
        let replicas = random.integer(1, 3);
        let mut batches = random.integer(1, 20);
        // First one thing at a time.
        if attempted < 5 {
            (per_execution, accumulation, batches) = (4, 1, 8);
        } else if attempted < 10 {
            (per_execution, accumulation, batches) = (1, 4, 8);
        }
        let call = format!("counters({batches}, {per_execution}, {accumulation}, {replicas})");
        let got = attempt(call.clone(), || {
            counters(batches, per_execution, accumulation, replicas)
        })?;
        let executions = batches.div_ceil(per_execution);
        let steps = batches.div_ceil(accumulation);
        let reduces = if replicas > 1 { steps } else { 0 };
        let (violated, look_at) = if got[0] != executions {
            if got[0] == batches / per_execution {
                (
                    "a last group that is not full is executed too",
                    "the division: 8 batches in groups of 3 are three groups",
                )
            } else {
                (
                    "an execution is a group of `steps_per_execution` batches, however many of them make an optimizer step",
                    "what the first number counts",
                )
            }
        } else if got[1] != steps {
            if got[1] == executions {
                (
                    "`steps_per_execution` groups batches between two returns to the host; the optimizer steps stay",
                    "what the second number depends on",
                )
            } else if got[1] == batches / accumulation {
                (
                    "a last group of micro-batches that is not full makes a step too",
                    "the division",
                )
            } else {
                (
                    "an optimizer step follows each group of `gradient_accumulation_steps` batches",
                    "what the second number counts",
                )
            }
        } else if got[2] != reduces {
            if replicas == 1 {
                (
                    "a single replica has nobody to exchange gradients with",
                    "the case of one replica",
                )
            } else if got[2] == batches {
                (
                    "gradients are accumulated on each replica and exchanged when the optimizer needs them",
                    "what the third number counts",
                )
            } else {
                (
                    "the gradients are exchanged once for each optimizer step, by all replicas together",
                    "what the third number counts",
                )
            }
        } else {
            continue;
        };
        return Err(Fault::wrong(call, format!("{got:?}"), violated, look_at));
    }
    Ok(format!("{TRIES} random settings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn typical_shares_get_their_hint() {
        let right = |batch: usize, replicas: usize| -> Vec<usize> {
            (0..replicas)
                .map(|it| batch / replicas + usize::from(it < batch % replicas))
                .collect()
        };
        assert!(check_shares(right).is_right());
        let plain = |shares: fn(usize, usize) -> Vec<usize>| check_shares(shares).words();
        assert!(plain(|b, r| vec![b / r; r]).contains("some go to none"));
        assert!(plain(|b, r| vec![b.div_ceil(r); r]).contains("too many"));
        assert!(plain(|b, _| vec![b]).contains("one number for each"));
        let rest_to_one = |b: usize, r: usize| {
            let mut all = vec![b / r; r];
            all[0] += b % r;
            all
        };
        assert!(plain(rest_to_one).contains("two examples more"));
        let last_first = |b: usize, r: usize| (0..r).map(|it| (b + it) / r).collect();
        assert!(plain(last_first).contains("first replicas"));
        assert_eq!(check_shares(|_, _| todo!()).state, State::Open);
    }

    #[test]
    fn typical_counters_get_their_hint() {
        let right = |b: usize, s: usize, a: usize, r: usize| {
            let steps = b.div_ceil(a);
            [b.div_ceil(s), steps, if r > 1 { steps } else { 0 }]
        };
        assert!(check_counters(right).is_right());
        let plain = |counters: fn(usize, usize, usize, usize) -> [usize; 3]| {
            check_counters(counters).words()
        };
        assert!(plain(|b, s, _, _| [b.div_ceil(s); 3]).contains("the optimizer steps stay"));
        assert!(
            plain(|b, s, a, r| [b / s, b.div_ceil(a), if r > 1 { b.div_ceil(a) } else { 0 }])
                .contains("that is not full is executed")
        );
        assert!(
            plain(|b, s, a, _| [b.div_ceil(s), b.div_ceil(a), b.div_ceil(a)])
                .contains("nobody to exchange")
        );
        let every_batch = |b: usize, s: usize, a: usize, r: usize| {
            [b.div_ceil(s), b.div_ceil(a), if r > 1 { b } else { 0 }]
        };
        assert!(plain(every_batch).contains("accumulated on each replica"));
    }
}
