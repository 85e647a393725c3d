//! [`over_seeds`]: the same training with several seeds, and how much the results differ.

use std::fmt;

use serde::Serialize;
use stratoscope_diagnostics::rules::Interrupted;
use stratoscope_diagnostics::unhandled::handled;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, Rule};

use crate::bad_value;
use crate::scores::{IntoScores, Scores};
use crate::spread::Spread;

/// Results of the same training with several seeds.
#[derive(Clone, PartialEq, Serialize)]
pub struct SeedRuns {
    /// Each seed with its results.
    pub runs: Vec<(u64, Scores)>,
    /// Seeds whose run ended with an error, and its message.
    pub failed: Vec<(u64, String)>,
    /// Seeds that were not run: the cell was interrupted.
    pub left_out: usize,
}

/// Calls `run` with each seed and gathers what it ends with: an evaluation, a history, a number, or numbers with names.
///
/// ```no_run
/// # use stratoscope_evaluation::over_seeds;
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let runs = over_seeds(0..5, |seed| Ok(0.8 + 0.01 * seed as f64))?;
/// println!("{:?} ± {:?}", runs.mean("score"), runs.deviation("score"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// SC0103 for no seed, and for one that is there twice; what `run` ends with for the first seed. Where a later one ends with
/// an error, or is interrupted, those that have ended are the result.
pub fn over_seeds<S: IntoScores>(
    seeds: impl IntoIterator<Item = u64>,
    mut run: impl FnMut(u64) -> Result<S>,
) -> Result<SeedRuns> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let twice = (seeds.iter().enumerate()).find(|(at, seed)| seeds[..*at].contains(seed));
    let given = match twice {
        Some((_, seed)) => Some(format!("{seed} twice")),
        None => seeds.is_empty().then(|| "none".to_owned()),
    };
    if let Some(given) = given {
        let expects = "at least one seed, each once: equal seeds give equal results".to_owned();
        return Err(bad_value("over_seeds", "seeds", given, expects));
    }
    let (runs, failed) = gathered("seed", &seeds, &mut run)?;
    let left_out = seeds.len() - runs.len() - failed.len();
    Ok(SeedRuns {
        runs,
        failed,
        left_out,
    })
}

/// Results by number, and the messages of those that ended with an error.
pub(crate) type Gathered = (Vec<(u64, Scores)>, Vec<(u64, String)>);

/// Calls `run` with each number and gathers what it ends with.
///
/// # Errors
/// What `run` ends with for the first number.
pub(crate) fn gathered<S: IntoScores>(
    noun: &'static str,
    numbers: &[u64],
    run: &mut impl FnMut(u64) -> Result<S>,
) -> Result<Gathered> {
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    trials(
        ("training", "trained"),
        noun,
        numbers.len(),
        |at| match run(numbers[at]) {
            Ok(result) => Ok(Ok(result.into_scores())),
            Err(problem) if at == 0 || problem.code == Interrupted::PAGE.code => Err(problem),
            Err(problem) => {
                handled(&problem);
                Ok(Err(format!("{}: {}", problem.code, problem.message)))
            }
        },
        |at, result| {
            match result {
                Ok(scores) => runs.push((numbers[at], scores)),
                Err(message) => failed.push((numbers[at], message)),
            }
            Ok(())
        },
    )?;
    Ok((runs, failed))
}

/// Runs trials one after the other until the interrupt button is pressed, and keeps what each ends with. A trial that was
/// interrupted is not kept: its training is not whole.
///
/// # Errors
/// What a trial, or keeping it, ends with; SC0520 where the first trial is interrupted.
pub(crate) fn trials<T>(
    verb: (&'static str, &'static str),
    noun: &'static str,
    count: usize,
    mut run: impl FnMut(usize) -> Result<T>,
    mut keep: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let mut work = Work::begin(verb, count, Unit::Things(noun));
    for trial in 0..count {
        let ended = run(trial);
        if let Err(problem) = &ended {
            // Reported by the caller, or by what it has made so far.
            handled(problem);
        }
        match work.reached(trial + 1).and(ended) {
            Ok(result) => keep(trial, result)?,
            Err(problem) if problem.code == Interrupted::PAGE.code && trial > 0 => return Ok(()),
            Err(problem) => return Err(problem),
        }
    }
    work.finished();
    Ok(())
}

impl SeedRuns {
    fn spread(&self) -> Spread<'_> {
        Spread {
            noun: "seed",
            runs: &self.runs,
        }
    }

    /// The mean over the seeds; `None` where no run has this result.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.spread().mean(name)
    }

    /// The standard deviation over the seeds, with n − 1; `None` for fewer than two.
    pub fn deviation(&self, name: &str) -> Option<f64> {
        self.spread().deviation(name)
    }

    fn notes(&self) -> Vec<String> {
        self.spread().notes(&self.failed, self.left_out)
    }

    /// A row for each seed, mean and deviation, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        self.spread().to_html(&self.notes())
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.spread().to_plain(&self.notes())
    }
}

impl fmt::Debug for SeedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_several_seeds() {
        let found = over_seeds([3, 5, 9], |seed| {
            Ok([("accuracy", seed as f64), ("loss", 1.0)])
        });
        let found = found.unwrap();
        assert!((found.mean("accuracy").unwrap() - 17.0 / 3.0).abs() < 1e-12);
        // √(((8/3)² + (2/3)² + (10/3)²) / 2)
        assert!((found.deviation("accuracy").unwrap() - (168.0_f64 / 18.0).sqrt()).abs() < 1e-12);
        assert_eq!(
            (found.deviation("loss"), found.mean("f1")),
            (Some(0.0), None)
        );
        let plain = found.to_plain();
        assert!(
            plain.contains("3 seeds: accuracy 5.6667 ± 3.0551, loss 1.0000 ± 0.0000"),
            "{plain}"
        );
        assert!(plain.contains("deviation"), "{plain}");
    }

    #[test]
    fn a_later_seed_that_fails_loses_nothing() {
        let fails = |at: u64| {
            move |seed| match seed == at {
                true => Err(bad_value("fit", "epochs", "0".to_owned(), "1".to_owned())),
                false => Ok(seed as f64),
            }
        };
        let found = over_seeds(0..4, fails(2)).unwrap();
        assert_eq!(
            (found.runs.len(), found.failed.len(), found.left_out),
            (3, 1, 0)
        );
        let plain = found.to_plain();
        assert!(
            plain.contains("seed 2 ended with an error: SC0103"),
            "{plain}"
        );
        assert_eq!(over_seeds(0..4, fails(0)).unwrap_err().code, "SC0103");
    }

    #[test]
    fn no_seed_and_a_seed_twice_are_errors() {
        for seeds in [vec![], vec![1, 2, 1]] {
            let problem = over_seeds(seeds, |_| Ok(0.0)).unwrap_err();
            assert_eq!(problem.code, "SC0103");
        }
    }
}
