//! The data of a run: both splits, checked and tokenized, and how batches are divided over replicas.

use stratoscope_data::{Data, Encoded, EncodedExample, Kept, Split};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::rules::HeadWritten;
use stratoscope_render::text;

use crate::prepare::in_memory_only;
use stratoscope_arguments::{Compiled, FitPlan, Validation};
use stratoscope_network::Files;

/// The data of a run, checked and tokenized. A clone shares it.
#[derive(Clone)]
pub struct Prepared {
    /// The training data.
    pub train: Split,
    /// The validation data.
    pub validation: Option<Split>,
    /// Examples of an epoch: all, or those of its `steps_per_epoch` batches.
    pub epoch_examples: usize,
    /// The names of the classes, in the order of the outputs.
    pub label_names: Vec<String>,
    /// What is said of each split that is a stream.
    streams: Vec<String>,
    /// How much of an epoch is padding, where batches have examples of similar length.
    padding: Option<String>,
    /// How files are divided over workers.
    division: Option<String>,
}

impl Prepared {
    /// Checks and tokenizes the data of a run. Also returns the model's files with the label names of its training
    /// data, where it had none of its own, and with what one output decides between.
    ///
    /// # Errors
    /// What is wrong with the data, as `super::splits`.
    pub fn of(
        files: &dyn Files,
        head: &HeadWritten,
        compiled: &Compiled,
        data: Data<'_>,
        plan: &FitPlan<'_>,
    ) -> Result<(Self, Box<dyn Files>)> {
        let parts;
        let (train, validation) = match (&plan.validation, data) {
            (Validation::None, _) => (data, None),
            (Validation::Data(validation), _) => (data, Some(Data::Held(validation))),
            (Validation::Stream(validation), _) => (data, Some(Data::Streamed(validation))),
            (Validation::Split(share), Data::Held(data)) => {
                parts = data.split(*share)?;
                (Data::Held(&parts.0), Some(Data::Held(&parts.1)))
            }
            (Validation::Split(share), Data::Streamed(_)) => {
                let why = "a stream is not split; give files of their own: \
                           `validation_data = Dataset::csv(\"dev.csv\")?`";
                let given = share.to_string();
                return Err(in_memory_only("fit", "validation_split", &given, why));
            }
        };
        let streams = [Some(train), validation].into_iter().flatten();
        let streams = streams.filter_map(|data| match data {
            Data::Held(_) => None,
            Data::Streamed(stream) => Some(stream.in_words()),
        });
        let streams: Vec<String> = streams.collect();
        let names = train.label_names();
        let binary_labels = super::binary_labels(files, compiled.loss, names);
        let adopted = super::adopted_names(files, names);
        let mut files = files.boxed();
        if let Some(names) = adopted {
            files.set_label_names(names);
        }
        files.set_binary_labels(binary_labels);
        let (train, validation) = super::splits(&*files, head, compiled, train, validation, plan)?;
        let prepared = Self {
            epoch_examples: epoch_examples(&train, plan),
            train,
            validation,
            label_names: files.label_names().to_vec(),
            streams,
            padding: None,
            division: None,
        };
        Ok((prepared, files))
    }

    /// The same with what is said of the padding in its batches, whose size is known.
    pub fn with_padding(self, plan: &FitPlan<'_>) -> Self {
        let words = || super::texts::padding_in_words(&self.train, plan);
        let padding = plan.group_by_length.then(words).flatten();
        Self { padding, ..self }
    }

    /// The training data as the run orders it: at random in batches of similar length, if that was asked for.
    pub fn in_order(&self, plan: &FitPlan<'_>) -> Split {
        match plan.group_by_length {
            true => self.train.by_length(plan.batch_size),
            false => self.train.clone(),
        }
    }

    /// The tokens of both splits in words: what the cache of tokens did, which files are streamed, which
    /// workers have them, how much is padding.
    pub fn tokens_in_words(&self) -> Option<String> {
        let splits = [Some(&self.train), self.validation.as_ref()];
        let held = splits.into_iter().flatten().filter_map(Split::held);
        let kept = held.filter_map(Encoded::kept).map(Kept::to_string);
        let streams = self.streams.iter().cloned();
        let division = self.division.iter().chain(&self.padding).cloned();
        let words: Vec<String> = streams.chain(kept).chain(division).collect();
        (!words.is_empty()).then(|| words.join("; "))
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

    /// The same where each of so many workers sees the examples of its own files: `owner` of an example in memory, by its
    /// index in the data set, and `files` how many files there are.
    pub(super) fn owned_by(
        self,
        (files, workers): (usize, usize),
        owner: impl Fn(usize) -> usize,
    ) -> Self {
        let train = match self.train {
            Split::Held(encoded) => Split::Held(encoded.owned_by(workers, owner)),
            Split::Streamed(stream) => Split::Streamed(stream.by_files(workers)),
        };
        let counts = train.shares_of(0..train.len());
        Self {
            division: counts.map(|counts| division_in_words(files, &counts)),
            train,
            ..self
        }
    }

    /// The bytes of the tokens and numbers of both splits that are in memory.
    pub fn bytes(&self) -> u64 {
        let of_split = |data: &Encoded| -> usize {
            let examples = (0..data.len()).filter_map(|at| data.get(at));
            let of_example = |it: &EncodedExample| {
                size_of_val(it.ids.as_slice())
                    + size_of_val(it.type_ids.as_slice())
                    + size_of_val(&*it.features)
            };
            examples.map(of_example).sum()
        };
        let splits = [Some(&self.train), self.validation.as_ref()];
        let held = splits.into_iter().flatten().filter_map(Split::held);
        held.map(of_split).sum::<usize>() as u64
    }

    /// The examples of the largest batch in a full group of batches, and in the last one of an epoch.
    pub fn largest_batches(&self, batch_size: usize, group: u64) -> (usize, usize) {
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
fn epoch_examples(train: &Split, plan: &FitPlan<'_>) -> usize {
    let in_steps = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
    let in_steps = |steps: u64| in_steps(steps).saturating_mul(plan.batch_size);
    plan.steps_per_epoch
        .map_or(train.len(), in_steps)
        .min(train.len())
}

/// `3 files over 2 workers: 80 and 40 examples; worker 1 has none left after 80 of an epoch`.
fn division_in_words(files: usize, counts: &[usize]) -> String {
    let each: Vec<String> = counts.iter().map(|&count| text::thousands(count)).collect();
    let mut words = format!(
        "{} over {}: {} examples",
        text::count(files, "file"),
        text::count(counts.len(), "worker"),
        each.join(", ")
    );
    let shortest = (0..counts.len()).min_by_key(|&worker| counts[worker]);
    let ends = shortest.filter(|&worker| counts.iter().any(|&count| count > counts[worker] + 1));
    if let Some(worker) = ends {
        let after = text::thousands(counts[worker] * counts.len());
        words += &format!("; worker {worker} has none left after {after} of an epoch");
    }
    words
}
