//! [`Comparison`]: two runs side by side, and where they part.

use std::fmt;

use serde::Serialize;
use stratoscope_render::html::prose;
use stratoscope_render::text;

use crate::history::{Edit, History};
use crate::plot::{Picture, losses_beside};

/// The first step whose loss differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parted {
    /// Its number, counted from 1.
    pub step: u64,
    /// Its loss in each run.
    pub losses: [f64; 2],
    /// Its epoch and its first batch in each run, counted from 0; `None` where steps were left out before.
    pub batches: [Option<(u64, u64)>; 2],
    /// The rows of the data set in its batches, in each run.
    pub rows: [Vec<usize>; 2],
}

/// The first snapshot with other weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherWeights {
    /// The step after which both runs have a snapshot.
    pub step: u64,
    /// The variables that differ, in the order of the model.
    pub variables: Vec<String>,
    /// How many variables there are.
    pub of: usize,
    /// The latest step before, at which both could be compared and all variables were equal.
    pub equal_after: Option<u64>,
}

/// Two runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What the two are called.
    pub names: [String; 2],
    /// Steps that both runs have made.
    pub steps: usize,
    /// Where their losses part; `None` where all are equal to the bit.
    pub parted: Option<Parted>,
    /// Where their weights part, as far as snapshots show.
    pub weights: Option<OtherWeights>,
    /// The changes that were made to each.
    pub edits: [Vec<Edit>; 2],
    /// What each has measured.
    pub histories: [History; 2],
}

/// What two runs are called, of which forks have a name.
pub fn names_of(labels: [&str; 2]) -> [String; 2] {
    match labels {
        ["", ""] => ["first run", "second run"].map(str::to_owned),
        labels => labels.map(|label| match label {
            "" => "original".to_owned(),
            label => label.to_owned(),
        }),
    }
}

impl Comparison {
    /// The losses of both over the steps.
    pub fn picture(&self) -> Picture {
        let [first, second] = &self.histories;
        let names = self.names.each_ref().map(String::as_str);
        losses_beside([first, second], names, self.to_plain())
    }

    fn lines(&self) -> Vec<String> {
        let steps = text::count(self.steps, "step");
        let mut lines = match &self.parted {
            None => vec![format!("the losses of {steps} are equal to the bit")],
            Some(parted) => Self::lines_of(parted),
        };
        if let Some(weights) = &self.weights {
            let names: Vec<&str> = weights.variables.iter().map(String::as_str).collect();
            let before = match weights.equal_after {
                Some(step) => format!(", after step {step} they are equal"),
                None => String::new(),
            };
            lines.push(format!(
                "after step {} the weights differ in {} of {}, first {}{before}",
                weights.step,
                names.len(),
                text::count(weights.of, "variable"),
                text::names(&names, 3)
            ));
        }
        for (name, edits) in self.names.iter().zip(&self.edits) {
            lines.extend(edits.iter().map(|edit| format!("{name}, {edit}")));
        }
        lines
    }

    fn lines_of(parted: &Parted) -> Vec<String> {
        let [first, second] = parted.losses;
        let mut lines = vec![format!(
            "the losses part at step {}: {first:.6} and {second:.6}",
            parted.step
        )];
        let place = |it: &Option<(u64, u64)>| {
            let (epoch, batch) = (*it)?;
            Some(format!("batch {} of epoch {}", batch + 1, epoch + 1))
        };
        if let [Some(first), Some(second)] = parted.batches.each_ref().map(place) {
            let data = match parted.rows[0] == parted.rows[1] {
                true => "with the same examples: the weights or the settings differ",
                false => "with other examples",
            };
            lines.push(match first == second {
                true => format!("it is {first}, {data}"),
                false => format!("it is {first} and {second}, {data}"),
            });
        }
        lines
    }

    /// In words.
    pub fn to_plain(&self) -> String {
        self.lines().join("\n")
    }

    /// Words and curves, as HTML without scripts or style sheets.
    pub fn to_html(&self) -> String {
        let lines = self.lines().into_iter();
        let lines = lines.map(|line| {
            format!(
                "<div style=\"font-size:13px;margin:2px 0\">{}</div>",
                prose(&line)
            )
        });
        lines.collect::<String>() + &self.picture().html
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
