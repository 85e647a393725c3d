//! Lesson 8: parameter servers. How old the weights of a gradient are, and what that does to descent.

use crate::attempt::{Fault, attempt, close, judged, list};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 40;

/// What a worker does, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker with this number fetches the weights.
    Fetch(usize),
    /// The worker with this number pushes its gradient, and the server updates the weights.
    Push(usize),
}

/// Random work of some workers; each fetches before it pushes, and never pushes twice with one fetch.
fn work(random: &mut Random, workers: usize, length: usize) -> Vec<Event> {
    let mut has = vec![false; workers];
    let step = |random: &mut Random, has: &mut Vec<bool>| {
        let worker = random.integer(0, workers - 1);
        has[worker] = !has[worker];
        match has[worker] {
            true => Event::Fetch(worker),
            false => Event::Push(worker),
        }
    };
    (0..length).map(|_| step(random, &mut has)).collect()
}

/// The true staleness of each push; with `own` the push itself counts, with `since_push` the time begins at the worker's
/// previous push.
fn ages(events: &[Event], own: bool, since_push: bool) -> Vec<usize> {
    let workers = events.iter().map(|event| match event {
        Event::Fetch(worker) | Event::Push(worker) => worker + 1,
    });
    let mut seen = vec![0; workers.max().unwrap_or(0)];
    let (mut updates, mut ages) = (0, Vec::new());
    for event in events {
        match *event {
            Event::Fetch(worker) if !since_push => seen[worker] = updates,
            Event::Fetch(_) => {}
            Event::Push(worker) => {
                ages.push(updates - seen[worker] + usize::from(own));
                updates += 1;
                if since_push {
                    seen[worker] = updates;
                }
            }
        }
    }
    ages
}

/// A function `staleness(events)`: for each push, in order, how many updates others have made since its worker fetched.
pub fn check_staleness(staleness: impl Fn(&[Event]) -> Vec<usize>) -> Verdict {
    judged("8.1", "staleness", || of_staleness(&staleness))
}

fn of_staleness(staleness: &dyn Fn(&[Event]) -> Vec<usize>) -> Result<String, Fault> {
    let mut random = Random::new(81);
    for _ in 0..TRIES {
        let workers = random.integer(2, 3);
        let length = random.integer(4, 10);
        let events = work(&mut random, workers, length);
        let call = format!("staleness(&{events:?})");
        let got = attempt(call.clone(), || staleness(&events))?;
        let truth = ages(&events, false, false);
        if got == truth {
            continue;
        }
        let (violated, look_at) = if got.len() != truth.len() {
            (
                "there is one number for each `Push`",
                "what `Fetch` adds to the result: nothing",
            )
        } else if got == ages(&events, true, false) {
            (
                "a worker that pushes right after its fetch has fresh weights, a staleness of 0",
                "whether the push itself is counted",
            )
        } else if got == ages(&events, false, true) {
            (
                "the age of weights begins when they are fetched, not when the worker pushed last",
                "what `Fetch` has to remember",
            )
        } else {
            (
                "the staleness of a push is the number of pushes between the worker's last fetch and this push",
                "one counter of all updates, and for each worker its value at the last fetch",
            )
        };
        return Err(Fault::wrong(call, format!("{got:?}"), violated, look_at));
    }
    Ok(format!("{TRIES} random orders of fetches and pushes"))
}

fn delayed(start: f64, rate: f64, delay: usize, steps: usize) -> Vec<f64> {
    let mut weights = vec![start];
    for step in 0..steps {
        let old = weights[step.saturating_sub(delay)];
        weights.push(weights[step] - rate * old);
    }
    weights
}

/// A function `delayed_descent(start, rate, delay, steps)` on the loss `w² / 2`: the gradient of each step is that of the weight
/// `delay` steps ago, or of the first one. It returns all weights, the first one too.
pub fn check_delayed_descent(descent: impl Fn(f64, f64, usize, usize) -> Vec<f64>) -> Verdict {
    judged("8.2", "delayed_descent", || of_descent(&descent))
}

fn of_descent(descent: &dyn Fn(f64, f64, usize, usize) -> Vec<f64>) -> Result<String, Fault> {
    let mut random = Random::new(82);
    for attempted in 0..TRIES {
        let (start, rate) = (random.short(0.5, 2.0), random.short(0.05, 0.6));
        let delay = if attempted < 5 {
            0
        } else {
            random.integer(1, 3)
        };
        let steps = random.integer(3, 7);
        let call = format!("delayed_descent({start}, {rate}, {delay}, {steps})");
        let got = attempt(call.clone(), || descent(start, rate, delay, steps))?;
        let truth = delayed(start, rate, delay, steps);
        let is = |other: &[f64]| {
            got.len() == other.len()
                && got
                    .iter()
                    .zip(other)
                    .all(|(one, other)| close(*one, *other))
        };
        if is(&truth) {
            continue;
        }
        let (violated, look_at) = if got.len() != truth.len() {
            (
                "the result has the weight before the first step and one after each step",
                "the first weight, and the number of steps",
            )
        } else if !close(got[0], start) {
            ("the first weight is `start`", "what the list begins with")
        } else if delay > 0 && is(&delayed(start, rate, 0, steps)) {
            (
                "with a delay the gradient is that of an older weight; here the delay has no influence",
                "which weight the gradient is computed from",
            )
        } else if is(&delayed(start, rate, delay + 1, steps))
            || (delay > 0 && is(&delayed(start, rate, delay - 1, steps)))
        {
            (
                "with a delay of 0 the gradient is that of the present weight, with 1 that of the one before",
                "an index that is off by one",
            )
        } else if delay > 0 {
            (
                "each step changes the present weight by rate times the gradient at an older one",
                "the first steps, for which there is no weight that old: `saturating_sub`",
            )
        } else {
            (
                "without delay each step multiplies the weight by 1 − rate, because the gradient of w²/2 is w",
                "the gradient, and the sign",
            )
        };
        return Err(Fault::wrong(call, list(&got), violated, look_at));
    }
    Ok(format!("{TRIES} random runs with delays of 0 to 3"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn typical_ages_get_their_hint() {
        assert!(check_staleness(|events| ages(events, false, false)).is_right());
        let plain = |own, since| check_staleness(move |events| ages(events, own, since)).words();
        assert!(plain(true, false).contains("whether the push itself"));
        assert!(plain(false, true).contains("what `Fetch` has to remember"));
        let each = check_staleness(|events| vec![0; events.len()]);
        assert!(each.words().contains("one number for each"));
        assert_eq!(check_staleness(|_| todo!()).state, State::Open);
    }

    #[test]
    fn typical_descents_get_their_hint() {
        assert!(check_delayed_descent(delayed).is_right());
        let plain = |descent: fn(f64, f64, usize, usize) -> Vec<f64>| {
            check_delayed_descent(descent).words()
        };
        assert!(plain(|w, r, _, n| delayed(w, r, 0, n)).contains("delay has no influence"));
        assert!(plain(|w, r, d, n| delayed(w, r, d + 1, n)).contains("off by one"));
        assert!(plain(|w, r, d, n| delayed(w, r, d, n - 1)).contains("one after each step"));
        assert!(plain(|w, r, d, n| delayed(w, -r, d, n)).contains("1 − rate"));
        let too_early = check_delayed_descent(|w, r, d, n| {
            let mut all = vec![w];
            for step in 0..n {
                let old = all[step - d];
                all.push(all[step] - r * old);
            }
            all
        });
        assert!(too_early.words().contains("panicked"), "{too_early:?}");
    }
}
