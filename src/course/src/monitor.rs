//! Lesson 10: a condition that stops a run before the damage.

use crate::attempt::{Fault, attempt, judged, list};
use crate::prediction::answered;
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 120;
/// How many losses the usual loss is computed from.
const BEFORE: usize = 5;

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The first loss that is not finite or more than `factor` times the usual one.
fn first(losses: &[f64], factor: f64, usual: fn(&[f64]) -> f64, sees_nan: bool) -> Option<usize> {
    (0..losses.len()).find(|&step| {
        let is_spike =
            step >= BEFORE && losses[step] > factor * usual(&losses[step - BEFORE..step]);
        is_spike || (sees_nan && !losses[step].is_finite())
    })
}

/// A function `stops_at(losses, factor)`: the index of the first loss that is not finite, or that is more than `factor` times the
/// median of the five losses before it; `None` if there is none. With fewer than five losses before it only the first applies.
pub fn check_stops_at(stops_at: impl Fn(&[f64], f64) -> Option<usize>) -> Verdict {
    judged("10.1", "stops_at", || of_stops_at(&stops_at))
}

fn of_stops_at(stops_at: &dyn Fn(&[f64], f64) -> Option<usize>) -> Result<String, Fault> {
    let mut random = Random::new(101);
    for attempted in 0..TRIES {
        let factor = 2.0;
        let length = random.integer(6, 12);
        let mut losses: Vec<f64> = (0..length).map(|_| random.short(0.8, 1.2)).collect();
        let at = random.integer(BEFORE, length - 1);
        match attempted % 6 {
            0 => {}
            1 => losses[at] = random.short(2.6, 9.0),
            2 => losses[at] = f64::NAN,
            3 => losses[random.integer(0, BEFORE - 1)] = f64::INFINITY,
            // An early peak moves the mean of the five, not their median.
            4 => {
                losses.resize(12, 1.0);
                losses[3] = random.short(8.0, 9.0);
                losses[6] = random.short(2.6, 3.0);
            }
            _ => losses[random.integer(0, 2)] = random.short(2.6, 3.0),
        }
        let call = format!("stops_at(&{}, {factor})", list(&losses));
        let got = attempt(call.clone(), || stops_at(&losses, factor))?;
        let truth = first(&losses, factor, median, true);
        if got == truth {
            continue;
        }
        let (violated, look_at) = match (truth, got) {
            (Some(true_step), _) if !losses[true_step].is_finite() => (
                "a loss that is NaN or infinite stops the run, also among the first",
                "comparisons with NaN are always false: `is_finite`",
            ),
            (_, Some(step)) if step < BEFORE && losses[step].is_finite() => (
                "with fewer than five losses before it there is no usual loss yet, and only a value that is not finite stops",
                "the first five steps",
            ),
            _ if got == first(&losses, factor, mean, true) => (
                "one peak among the five losses before must not hide the next one",
                "the mean follows a single large value, the median does not",
            ),
            (Some(_), None) => (
                "a loss of more than `factor` times the usual one stops the run; this list has one",
                "which losses are before the step: without its own",
            ),
            (None, Some(_)) => (
                "no loss of this list is more than `factor` times the usual one",
                "the factor, and the middle of the sorted five",
            ),
            _ => (
                "the run stops before the first such step, and its index counts from 0",
                "the index: of the whole list, not of a part of it",
            ),
        };
        return Err(Fault::wrong(call, format!("{got:?}"), violated, look_at));
    }
    Ok(format!(
        "{TRIES} curves: calm ones, peaks, NaN and infinity"
    ))
}

/// The row of [`sensor_readings`] that is broken.
const BROKEN: usize = 43;

/// 64 readings of three sensors, and what is to be learned from them. One reading is broken: lesson 10 looks for it.
pub fn sensor_readings() -> (Vec<[f32; 3]>, Vec<f32>) {
    let mut random = Random::new(102);
    let mut rows: Vec<[f32; 3]> = Vec::new();
    for _ in 0..64 {
        rows.push([0; 3].map(|_| random.short(-1.0, 1.0) as f32));
    }
    let targets = rows.iter().map(|row| row[0] - 0.5 * row[1]).collect();
    rows[BROKEN][2] = 3e20;
    (rows, targets)
}

/// The row of the broken reading, as `run.why()` shows it.
pub fn check_broken_row(row: Option<usize>) -> Verdict {
    let hint = "the line `example` of `run.why()?`: it names the row in the data set, not the place in the batch";
    answered("10.3", row, BROKEN, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn one_reading_is_broken() {
        let (rows, targets) = sensor_readings();
        let broken: Vec<usize> = (0..64)
            .filter(|&row| rows[row].iter().any(|it| it.abs() > 1.0))
            .collect();
        assert_eq!((broken, targets.len()), (vec![BROKEN], 64));
        assert!(targets.iter().all(|target| target.abs() < 2.0));
        assert!(check_broken_row(Some(BROKEN)).is_right());
        assert!(!check_broken_row(Some(3)).words().contains("43"));
    }

    #[test]
    fn typical_conditions_get_their_hint() {
        assert!(check_stops_at(|losses, factor| first(losses, factor, median, true)).is_right());
        let blind = check_stops_at(|losses, factor| first(losses, factor, median, false));
        assert!(blind.words().contains("comparisons with NaN"));
        let by_mean = check_stops_at(|losses, factor| first(losses, factor, mean, true));
        assert!(
            by_mean.words().contains("the median does not"),
            "{by_mean:?}"
        );
        let early = check_stops_at(|losses: &[f64], factor| {
            (1..losses.len())
                .find(|&it| {
                    !losses[it].is_finite()
                        || losses[it] > factor * median(&losses[it.saturating_sub(5)..it])
                })
                .or((!losses[0].is_finite()).then_some(0))
        });
        assert_eq!(early.state, State::Wrong, "{early:?}");
        let never = check_stops_at(|_, _| None);
        assert!(never.words().contains("this list has one"), "{never:?}");
        let from_one =
            check_stops_at(|losses, factor| first(losses, factor, median, true).map(|it| it + 1));
        assert!(from_one.words().contains("counts from 0"), "{from_one:?}");
        assert_eq!(check_stops_at(|_, _| todo!()).state, State::Open);
    }
}
