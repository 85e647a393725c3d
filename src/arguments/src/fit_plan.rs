//! What `fit!` is asked for, with every default filled in.

use std::borrow::Cow;
use std::path::PathBuf;

use stratoscope_data::{Dataset, Stream};

use super::batch_size::Choice;
use super::frequency::ValidationFreq;
use crate::callbacks::{Callbacks, Stopping};
use crate::class_weight::ClassWeight;

/// The arguments of `fit!` with every default.
#[derive(Debug)]
pub struct FitPlan<'a> {
    /// The epoch to begin with.
    pub initial_epoch: u64,
    /// One past the last epoch.
    pub epochs: u64,
    /// Examples of a batch, over all replicas.
    pub batch_size: usize,
    /// What of it is chosen when the data is known.
    pub choice: Choice,
    /// Batches of an epoch; `None`: all of the data.
    pub steps_per_epoch: Option<u64>,
    /// What is evaluated after an epoch.
    pub validation: Validation<'a>,
    /// Batches of a validation; `None`: all of its data.
    pub validation_steps: Option<usize>,
    /// After which epochs.
    pub validation_freq: ValidationFreq,
    /// Whether each epoch has an order of its own.
    pub shuffle: bool,
    /// Whether batches have examples of similar length.
    pub group_by_length: bool,
    /// The seed of the order of the examples and of dropout.
    pub seed: u64,
    /// `None`: [`default_max_length`](super::default_max_length) of the model.
    pub max_length: Option<usize>,
    /// What examples of a class count.
    pub class_weight: Option<ClassWeight>,
    /// What is called while the run trains.
    pub callbacks: Callbacks<'a>,
    /// When the run stops early.
    pub stopping: Option<Stopping>,
    /// Epochs from one layer that is trained to the next below, if it is not all of them from the begin.
    pub unfreezes_every: Option<u64>,
    /// The folder of the best and the last weights.
    pub checkpoint: Option<PathBuf>,
    /// Complete checkpoints: the optimizer steps from one to the next.
    pub every: Option<u64>,
    /// How many complete checkpoints are kept.
    pub keep_last: usize,
    /// Whether the run goes on with the one that was interrupted.
    pub resume: bool,
    /// The folder of a run to go on with.
    pub resume_from: Option<PathBuf>,
    /// Whether layers are computed once more in the backward pass.
    pub recompute: bool,
    /// Whether the run is shown.
    pub verbose: bool,
}

/// What is validated on.
#[derive(Clone, Debug)]
pub enum Validation<'a> {
    /// Nothing is evaluated.
    None,
    /// This data set.
    Data(Cow<'a, Dataset>),
    /// Rows that stay in their files.
    Stream(Stream),
    /// The last share of the training data.
    Split(f64),
}
