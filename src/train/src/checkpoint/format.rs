//! The files of a checkpoint but its tensors, as they are written.
//!
//! | file | what |
//! | --- | --- |
//! | `config.json`, `model.safetensors`, … | what `from_pretrained` loads, where the model has such files |
//! | `state.safetensors` | weights of every copy, moments, averages, counts of metrics (`tensors`) |
//! | `progress.json` | [`SavedProgress`]: where the run is and what it has measured |
//! | `manifest.json` | [`Manifest`]: what the run was made with, and size and checksum of every file; written last |
//!
//! Floating-point numbers are written as their bits: JSON has neither NaN nor infinities, and readers round.

use serde::{Deserialize, Serialize};
use stratoscope_strategy::Checksum;

use crate::edits::Dated;
use stratoscope_report::counters::Counters;

/// The version of the format. Versions before 3 have other checksums.
pub(crate) const FORMAT: u32 = 3;
/// The version of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The name of [`SavedProgress`].
pub(crate) const PROGRESS: &str = "progress.json";
/// The name of the file with the tensors.
pub(crate) const STATE: &str = "state.safetensors";

/// `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub body: Body,
    /// Of `body`, as [`Body::checksum`] computes it.
    pub checksum: Checksum,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub format: u32,
    pub program: String,
    /// Tells the runs apart that write to one folder.
    pub run: String,
    /// Counted over all checkpoints of the folder: the newest has the highest.
    pub sequence: u64,
    /// Optimizer steps made.
    pub step: u64,
    /// What must be the same for the run to go on: names and values in words.
    pub made_with: Vec<(String, String)>,
    pub files: Vec<FileEntry>,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    pub name: String,
    pub bytes: u64,
    pub checksum: Checksum,
}

impl Body {
    /// The checksum of the JSON text of these fields.
    pub(crate) fn checksum(&self) -> Checksum {
        // Strings and numbers can always be written.
        Checksum::of(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// A floating-point number by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bits(u64);

impl From<f64> for Bits {
    fn from(number: f64) -> Self {
        Self(number.to_bits())
    }
}

impl From<Bits> for f64 {
    fn from(bits: Bits) -> Self {
        Self::from_bits(bits.0)
    }
}

/// `progress.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedProgress {
    pub epoch: u64,
    pub batch: u64,
    pub epoch_loss: Sum,
    pub epoch_seconds: Bits,
    pub epoch_begun: bool,
    pub stops: bool,
    pub last_rate: Bits,
    pub last_loss: Option<Bits>,
    pub last_norm: Option<Bits>,
    pub best_value: Option<Bits>,
    pub has_best: bool,
    pub epochs_without_better: u64,
    pub outputs_seen: bool,
    pub collapse_reported: bool,
    pub highest_rate: Bits,
    pub edits: Vec<Dated>,
    pub history: SavedHistory,
    pub execution: Option<SavedExecution>,
    /// The latest steps: number, loss, gradient norm, rate.
    pub recent: Vec<(u64, Bits, Bits, Bits, Option<Bits>)>,
    pub best_accuracy: Option<Bits>,
    /// The epochs of which `examples.0` and so on say what was said of each example.
    pub example_epochs: Vec<u64>,
    /// Whether later epochs were not recorded for want of room.
    pub examples_full: bool,
    pub step: SavedCounts,
}

/// A sum of losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sum {
    pub sum: Bits,
    pub examples: usize,
}

/// What a step counts, tensors aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedCounts {
    pub batches: u64,
    pub steps: u64,
    pub counters: Counters,
    pub loss_scale: (Bits, u64),
    pub local_steps: u64,
    pub local_examples: Vec<usize>,
    /// Optimizer steps of each copy's moments.
    pub moments: Vec<u64>,
    /// How often the variables were updated, and when each worker fetched them.
    pub updates: u64,
    pub fetched: Vec<u64>,
    /// The size of each variable's gradient, in the order of the variables; none before the first step.
    pub gradient_bytes: Vec<Option<u64>>,
    pub last_batch: Vec<(usize, usize)>,
}

/// An execution that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedExecution {
    pub epoch: u64,
    pub first_batch: u64,
    pub batches: u64,
    pub optimizer_steps: u64,
    pub loss: Sum,
    pub learning_rate: Option<Bits>,
    pub gradient_norm: Option<Bits>,
    pub seconds: Bits,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedHistory {
    pub epochs: Vec<SavedEpoch>,
    pub executions: Vec<SavedExecutionRecord>,
    /// Step, loss, learning rate.
    pub steps: Vec<(u64, Bits, Bits)>,
    pub best_epoch: Option<u64>,
    pub best_by: String,
    pub stopped_early: bool,
}

/// An epoch that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedEpoch {
    pub epoch: u64,
    pub loss: Bits,
    pub metrics: Vec<(String, Option<Bits>)>,
    pub validation: Option<SavedEvaluation>,
    pub learning_rate: Bits,
    pub seconds: Bits,
    pub sequences_per_second: Bits,
}

/// A validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedEvaluation {
    pub loss: Bits,
    pub metrics: Vec<(String, Option<Bits>)>,
    pub examples: usize,
    pub labels: Vec<u64>,
    pub predictions: Vec<u64>,
    pub confusion: Vec<Vec<u64>>,
    pub label_names: Vec<String>,
    pub seconds: Bits,
}

/// An execution that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedExecutionRecord {
    pub epoch: u64,
    pub first_batch: u64,
    pub batches: u64,
    pub optimizer_steps: u64,
    pub step: u64,
    pub loss: Bits,
    pub learning_rate: Bits,
    pub gradient_norm: Option<Bits>,
    pub seconds: Bits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_to_the_bit() {
        for number in [0.1 + 0.2, -0.0, f64::NAN, f64::NEG_INFINITY, 5e-324] {
            let text = serde_json::to_string(&Bits::from(number)).expect("a number");
            let back: Bits = serde_json::from_str(&text).expect("what was written");
            assert_eq!(f64::from(back).to_bits(), number.to_bits());
        }
    }

    #[test]
    fn a_manifest_knows_whether_it_was_changed() {
        let body = Body {
            format: FORMAT,
            program: PROGRAM.to_owned(),
            run: "1".to_owned(),
            sequence: 3,
            step: 50,
            made_with: vec![("seed".to_owned(), "1".to_owned())],
            files: Vec::new(),
        };
        let checksum = body.checksum();
        let text = serde_json::to_string(&Manifest { body, checksum }).expect("text");
        let read: Manifest = serde_json::from_str(&text).expect("what was written");
        assert_eq!(read.body.checksum(), read.checksum);
        let changed = text.replace("\"step\":50", "\"step\":51");
        let read: Manifest = serde_json::from_str(&changed).expect("it is JSON");
        assert_ne!(read.body.checksum(), read.checksum);
        assert!(serde_json::from_str::<Manifest>(&text.replace("run", "ran")).is_err());
    }
}
