//! The data of a run: both splits, checked and tokenized, and how batches are divided over replicas.

use stratoscope_data::{Dataset, Encoded, EncodedExample, Kept};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::rules::HeadWritten;

use crate::arguments::{Compiled, FitPlan, Validation};
use crate::network::Files;

/// The data of a run, checked and tokenized. A clone shares it.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub train: Encoded,
    pub validation: Option<Encoded>,
    /// Examples of an epoch: all, or those of its `steps_per_epoch` batches.
    pub epoch_examples: usize,
    /// The names of the classes, in the order of the outputs.
    pub label_names: Vec<String>,
}

impl Prepared {
    /// Checks and tokenizes the data of a run. Also returns the model's files with the label names of its training
    /// data, where it had none of its own, and with what one output decides between.
    ///
    /// # Errors
    /// What is wrong with the data, as [`super::splits`].
    pub(crate) fn of<F: Files>(
        files: &F,
        head: &HeadWritten,
        compiled: &Compiled,
        data: &Dataset,
        plan: &FitPlan<'_>,
    ) -> Result<(Self, F)> {
        let parts;
        let (train, validation) = match &plan.validation {
            Validation::None => (data, None),
            Validation::Data(validation) => (data, Some(&**validation)),
            Validation::Split(share) => {
                parts = data.split(*share)?;
                (&parts.0, Some(&parts.1))
            }
        };
        let binary_labels = super::binary_labels(files, compiled.loss, train);
        let files = match super::adopted_names(files, train) {
            Some(names) => files.clone().with_label_names(names),
            None => files.clone(),
        };
        let files = files.with_binary_labels(binary_labels);
        let (train, validation) = super::splits(&files, head, compiled, train, validation, plan)?;
        let prepared = Self {
            epoch_examples: epoch_examples(&train, plan),
            train,
            validation,
            label_names: files.label_names().to_vec(),
        };
        Ok((prepared, files))
    }

    /// What the cache of tokens did for both splits, in words.
    pub(crate) fn kept_tokens(&self) -> Option<String> {
        let splits = [Some(&self.train), self.validation.as_ref()];
        let kept = splits.into_iter().flatten().filter_map(Encoded::kept);
        let kept: Vec<String> = kept.map(Kept::to_string).collect();
        (!kept.is_empty()).then(|| kept.join("; "))
    }

    /// The same where each of so many workers sees all training examples in an epoch.
    pub(super) fn seen_by_each(self, workers: usize, plan: &FitPlan<'_>) -> Self {
        let train = self.train.seen_by_each(workers);
        Self {
            epoch_examples: epoch_examples(&train, plan),
            train,
            ..self
        }
    }

    /// The bytes of the tokens and numbers of both splits.
    pub(crate) fn bytes(&self) -> u64 {
        let of_split = |data: &Encoded| -> usize {
            let examples = (0..data.len()).filter_map(|at| data.get(at));
            let of_example = |it: &EncodedExample| {
                size_of_val(it.ids.as_slice())
                    + size_of_val(it.type_ids.as_slice())
                    + size_of_val(&*it.features)
            };
            examples.map(of_example).sum()
        };
        let validation = self.validation.as_ref().map_or(0, of_split);
        (of_split(&self.train) + validation) as u64
    }

    /// The examples of the largest batch in a full group of batches, and in the last one of an epoch.
    pub(crate) fn largest_batches(&self, batch_size: usize, group: u64) -> (usize, usize) {
        let examples = self.epoch_examples;
        let batches = examples.div_ceil(batch_size.max(1));
        let group = usize::try_from(group).unwrap_or(usize::MAX);
        let in_last = match batches % group {
            0 => group.min(batches),
            rest => rest,
        };
        let short = examples % batch_size.max(1);
        let last = if in_last == 1 && short > 0 {
            short
        } else {
            batch_size
        };
        (batch_size.min(examples), last.min(examples))
    }
}

/// All examples of an epoch, or those of its `steps_per_epoch` batches.
fn epoch_examples(train: &Encoded, plan: &FitPlan<'_>) -> usize {
    let in_steps = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
    let in_steps = |steps: u64| in_steps(steps).saturating_mul(plan.batch_size);
    plan.steps_per_epoch
        .map_or(train.len(), in_steps)
        .min(train.len())
}

/// How many examples of a batch each replica gets: the first ones get one more where it does not divide evenly, as
/// `Batch::split` divides.
pub(crate) fn split_sizes(examples: usize, replicas: usize) -> impl Iterator<Item = usize> {
    let size = move |index| examples / replicas + usize::from(index < examples % replicas);
    (0..replicas).map(size)
}
