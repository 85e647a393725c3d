//! [`sweep`]: trials over settings, on a grid or a random part of it, remembered in a folder.

mod picture;
mod saved;
mod search;
mod show;

use std::fmt;
use std::time::Instant;

use stratoscope_diagnostics::rules::Interrupted;
use stratoscope_diagnostics::unhandled::handled;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;

use crate::bad_value;
use crate::scores::{IntoScores, Scores, is_smaller_better, names};
use crate::seeds::trials;
use saved::Folder;
pub use search::Search;

/// A setting and the values it may have, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The name of the variable.
    pub name: String,
    /// Its values, as they are shown.
    pub values: Vec<String>,
}

impl Axis {
    /// From the values themselves.
    pub fn new<T: fmt::Debug>(name: &str, values: &[T]) -> Self {
        Self {
            name: name.to_owned(),
            values: values.iter().map(|value| format!("{value:?}")).collect(),
        }
    }
}

/// One combination of settings and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its number, counted from 1.
    pub number: usize,
    /// Of each setting, which of its values.
    pub chosen: Vec<usize>,
    /// The results, or the error with which it ended.
    pub result: std::result::Result<Scores, String>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Whether the result was in the folder already.
    pub is_remembered: bool,
}

/// The trials of a sweep.
#[derive(Clone, PartialEq)]
pub struct Sweep {
    /// The settings.
    pub axes: Vec<Axis>,
    /// The trials, in the order in which they were made.
    pub trials: Vec<Trial>,
    /// Trials that were not made: the cell was interrupted.
    pub left_out: usize,
    /// Why the folder does not have every result: the first failure to write one.
    pub unsaved: Option<String>,
}

/// Calls `run` with the numbers of the chosen values, once for each combination that the search has, and gathers what it
/// ends with. `sweep!` calls this with variables in place of numbers.
///
/// A trial that ends with an error is a row with its message; the others are made. A result that cannot be written to the
/// folder is in the table all the same.
///
/// # Errors
/// SC0103 for a setting without a value and for a folder of another sweep; the error of the first trial where none has a
/// result. After an interrupt those that have ended are the result, if there are any.
pub fn sweep<S: IntoScores>(
    search: &Search,
    axes: Vec<Axis>,
    mut run: impl FnMut(&[usize]) -> Result<S>,
) -> Result<Sweep> {
    if let Some(empty) = axes.iter().find(|axis| axis.values.is_empty()) {
        let expects = "at least one value for each setting".to_owned();
        return Err(bad_value("sweep", &empty.name, "none".to_owned(), expects));
    }
    let chosen = search.combinations(&axes)?;
    let folder = (search.folder_path())
        .map(|path| Folder::open(path, &axes))
        .transpose()?;
    let mut made: Vec<Trial> = Vec::new();
    let mut first_error: Option<Box<Diagnostic>> = None;
    let mut unsaved: Option<String> = None;
    trials(
        ("sweeping", "swept"),
        "trial",
        chosen.len(),
        |at| {
            if let Some((scores, seconds)) = folder.as_ref().and_then(|it| it.read(&chosen[at])) {
                return Ok((Ok(scores), seconds, true));
            }
            let begun = Instant::now();
            let result = match run(&chosen[at]) {
                Ok(result) => Ok(result.into_scores()),
                Err(problem) if problem.code == Interrupted::PAGE.code => return Err(problem),
                Err(problem) => {
                    let message = format!("{}: {}", problem.code, problem.message);
                    handled(&problem);
                    first_error.get_or_insert(problem);
                    Err(message)
                }
            };
            Ok((result, begun.elapsed().as_secs_f64(), false))
        },
        |at, (result, seconds, is_remembered)| {
            if let (Some(folder), Ok(scores), false) = (&folder, &result, is_remembered)
                && let Err(problem) = folder.write(&chosen[at], scores, seconds)
            {
                unsaved.get_or_insert(problem.to_string());
            }
            made.push(Trial {
                number: at + 1,
                chosen: chosen[at].clone(),
                result,
                seconds,
                is_remembered,
            });
            Ok(())
        },
    )?;
    match first_error {
        Some(problem) if made.iter().all(|trial| trial.result.is_err()) => Err(problem),
        _ => Ok(Sweep {
            left_out: chosen.len() - made.len(),
            axes,
            trials: made,
            unsaved,
        }),
    }
}

impl Sweep {
    /// The results that trials have, the most important first.
    pub fn score_names(&self) -> Vec<String> {
        names(self.scores())
    }

    fn scores(&self) -> impl Iterator<Item = &Scores> {
        let trials = self.trials.iter();
        trials.filter_map(|trial| trial.result.as_ref().ok())
    }

    fn is_smaller_better(&self, name: &str) -> bool {
        is_smaller_better(self.scores(), name)
    }

    /// The trial with the best result of this name: the smallest of a loss, an error or a metric that is better when it is
    /// lower, the largest of anything else. `None` where no trial has a number of this name.
    pub fn best(&self, name: &str) -> Option<&Trial> {
        let score = |trial: &Trial| trial.result.as_ref().ok()?.get(name);
        let sign = if self.is_smaller_better(name) {
            -1.0
        } else {
            1.0
        };
        let known = self.trials.iter().filter_map(|trial| {
            let score = score(trial).filter(|score| !score.is_nan())?;
            Some((trial, sign * score))
        });
        // Of equal ones the first.
        let best = known.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(trial, _)| trial)
    }

    /// The settings of a trial: `rate = 3e-5, batch = 16`.
    pub fn settings(&self, trial: &Trial) -> String {
        let settings = self.axes.iter().zip(&trial.chosen);
        let settings =
            settings.map(|(axis, &value)| format!("{} = {}", axis.name, axis.values[value]));
        settings.collect::<Vec<_>>().join(", ")
    }

    /// What the sweep is ordered and drawn by: its first result.
    fn main_score(&self) -> Option<String> {
        self.score_names().into_iter().next()
    }

    fn title(&self) -> String {
        let mut title = text::count(self.trials.len(), "trial");
        if let Some(name) = self.main_score()
            && let Some(best) = self.best(&name)
        {
            title += &format!(", the best by {name}: {}", self.settings(best));
        }
        title
    }

    fn notes(&self) -> Vec<String> {
        let remembered = self
            .trials
            .iter()
            .filter(|trial| trial.is_remembered)
            .count();
        let failed = self
            .trials
            .iter()
            .filter(|trial| trial.result.is_err())
            .count();
        let note = |count: usize, words: &str| {
            (count > 0).then(|| format!("{} {words}", text::count(count, "trial")))
        };
        let notes = [
            note(remembered, "read from the folder, not made again"),
            note(failed, "ended with an error"),
            note(self.left_out, "not made: interrupted"),
        ];
        let unsaved = self.unsaved.as_ref();
        let unsaved = unsaved.map(|reason| format!("not every result is in the folder: {reason}"));
        notes.into_iter().flatten().chain(unsaved).collect()
    }
}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests;
