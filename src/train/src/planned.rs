//! Interventions as the run holds, replays and writes them: examples by their rows in the training data, variables by
//! patterns, numbers by their bits.

use std::collections::HashMap;

use burn::module::ParamId;
use serde::{Deserialize, Serialize};
use stratoscope_bert::taps::Change;
use stratoscope_data::Label;

use crate::checkpoint::Bits;
use crate::state::ModelState;
use stratoscope_bert::pattern::matches;
use stratoscope_step::changed::{NewWeights, StepChange};

/// Rows that are listed each by itself, and the first ones that are listed of more.
const MAX_LISTED_ROWS: usize = 6;

/// What is changed about one optimizer step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneStep {
    /// Other outputs of layers.
    pub activations: Vec<Change>,
    /// The rate of every dropout.
    pub dropout: Option<Bits>,
    /// Pattern and factor.
    pub gradients: Vec<(String, Bits)>,
    /// Row and label.
    pub labels: Vec<(u64, NewLabel)>,
    /// Row and weight.
    pub weights: Vec<(u64, Bits)>,
}

/// Another label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum NewLabel {
    /// A class, by its number and its name.
    Class {
        /// Its number.
        class: u64,
        /// Its name.
        name: String,
    },
    /// A number.
    Value(Bits),
}

/// Another value of variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightChange {
    /// Which variables.
    pub pattern: String,
    /// Whether the number replaces the values, or multiplies them.
    pub is_value: bool,
    /// The value or the factor.
    pub number: Bits,
}

impl OneStep {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each change: `layer 3, head 5 × 0`.
    pub fn lines(&self) -> Vec<String> {
        let activations = self.activations.iter();
        let mut lines: Vec<String> = activations
            .map(|it| it.to_string().replace(", example ", ", row "))
            .collect();
        let gradients = self.gradients.iter();
        lines
            .extend(gradients.map(|(pattern, factor)| {
                format!("gradients `{pattern}` × {}", f64::from(*factor))
            }));
        let labels = self.labels.iter().map(|(row, label)| match label {
            NewLabel::Class { name, .. } => (*row, name.clone()),
            NewLabel::Value(value) => (*row, (f64::from(*value) as f32).to_string()),
        });
        lines.extend(of_rows("label", "labels", labels.collect()));
        let weights = self.weights.iter();
        let weights = weights.map(|(row, it)| (*row, (f64::from(*it) as f32).to_string()));
        lines.extend(of_rows("weight", "weights of examples", weights.collect()));
        lines.extend(
            self.dropout
                .map(|rate| format!("dropout = {}", f64::from(rate))),
        );
        lines
    }

    /// Those that worker processes cannot make.
    pub fn not_by_workers(&self) -> Vec<String> {
        let own = Self {
            activations: self.activations.clone(),
            gradients: self.gradients.clone(),
            ..Self::default()
        };
        own.lines()
    }

    /// The changes of a model's step.
    pub fn of(&self, state: &ModelState) -> StepChange {
        let mut gradients: HashMap<ParamId, f64> = HashMap::new();
        for record in state.step.replicas.records() {
            for (pattern, factor) in &self.gradients {
                if matches(pattern, &record.name) {
                    *gradients.entry(record.param).or_insert(1.0) *= f64::from(*factor);
                }
            }
        }
        let row = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        let label = |label: &NewLabel| match label {
            NewLabel::Class { class, .. } => Label::Class(row(*class)),
            NewLabel::Value(value) => Label::Value(f64::from(*value) as f32),
        };
        let labels = self.labels.iter();
        let weights = self.weights.iter();
        StepChange {
            activations: (!self.activations.is_empty()).then(|| self.activations.clone().into()),
            dropout: self.dropout.map(f64::from),
            gradients,
            labels: labels.map(|(at, it)| (row(*at), label(it))).collect(),
            weights: weights
                .map(|(at, it)| (row(*at), f64::from(*it) as f32))
                .collect(),
        }
    }
}

impl WeightChange {
    /// `weights "classifier.weight" × 1.1`.
    pub fn line(&self) -> String {
        let sign = if self.is_value { "=" } else { "×" };
        format!(
            "weights `{}` {sign} {}",
            self.pattern,
            f64::from(self.number)
        )
    }

    /// What becomes of each variable, in the order of the changes.
    pub fn of(all: &[Self], state: &ModelState) -> HashMap<ParamId, Vec<NewWeights>> {
        let mut found: HashMap<ParamId, Vec<NewWeights>> = HashMap::new();
        for record in state.step.replicas.records() {
            for change in all.iter().filter(|it| matches(&it.pattern, &record.name)) {
                let number = f64::from(change.number);
                found
                    .entry(record.param)
                    .or_default()
                    .push(match change.is_value {
                        true => NewWeights::Set(number),
                        false => NewWeights::Scaled(number),
                    });
            }
        }
        found
    }
}

/// New values of rows: `label of row 5 = red` for each, or all in one line where there are many.
fn of_rows(one: &str, many: &str, values: Vec<(u64, String)>) -> Vec<String> {
    let listed = values.iter().take(MAX_LISTED_ROWS);
    if values.len() <= MAX_LISTED_ROWS {
        return listed
            .map(|(row, value)| format!("{one} of row {row} = {value}"))
            .collect();
    }
    let first: Vec<String> = listed
        .map(|(row, value)| format!("row {row} = {value}"))
        .collect();
    vec![format!("{} {many}: {}, …", values.len(), first.join(", "))]
}
