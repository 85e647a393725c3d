//! `fit!(model, data, …)` as written, and what it means.

use std::borrow::Cow;
use std::path::PathBuf;

use stratoscope_data::{Data, IntoData};
use stratoscope_diagnostics::rules::ConflictingArguments;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use super::batch_size::{self, BatchSize, IntoBatchSize};
use super::fit_plan::{FitPlan, Validation};
use super::folder::IntoFolder;
use super::frequency::{Frequency, IntoFrequency, ValidationFreq};
use super::value::optional_size;
use super::{Count, IntoCount, KEEP_LAST};
use crate::callbacks::{
    Callbacks, EarlyStopping, IntoCallbacks, IntoEarlyStopping, Stopping, without_validation,
};
use crate::class_weight::{ClassWeight, IntoClassWeight};
use stratoscope_diagnostics::problem;

/// The arguments of `fit!`, one method each.
#[derive(Debug, Default)]
pub struct FitArgs<'a> {
    epochs: Option<Count>,
    batch_size: Option<BatchSize>,
    validation_data: Option<Validation<'a>>,
    validation_split: Option<f64>,
    validation_steps: Option<Count>,
    validation_freq: Option<Frequency>,
    shuffle: Option<bool>,
    group_by_length: bool,
    seed: Option<Count>,
    max_length: Option<Count>,
    class_weight: Option<ClassWeight>,
    initial_epoch: Option<Count>,
    steps_per_epoch: Option<Count>,
    callbacks: Callbacks<'a>,
    early_stopping: Option<EarlyStopping>,
    checkpoint: Option<PathBuf>,
    every: Option<Count>,
    keep_last: Option<Count>,
    resume: bool,
    resume_from: Option<PathBuf>,
    recompute: bool,
    verbose: Option<bool>,
}

impl<'a> FitArgs<'a> {
    /// No argument yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One past the number of the last epoch: how often the data is gone through, if it begins at 0.
    /// Default: 1.
    pub fn epochs(mut self, epochs: impl IntoCount) -> Self {
        self.epochs = Some(epochs.into_count());
        self
    }

    /// Examples per batch over all replicas together; `auto(32)` for 32 in parts that fit into memory, `auto` for what
    /// fits. Default: 32.
    pub fn batch_size(mut self, batch_size: impl IntoBatchSize) -> Self {
        self.batch_size = Some(batch_size.into_batch_size());
        self
    }

    /// What is evaluated after each epoch, without dropout. Default: nothing.
    pub fn validation_data(mut self, data: impl IntoData<'a>) -> Self {
        self.validation_data = Some(match data.into_data() {
            Data::Held(data) => Validation::Data(Cow::Borrowed(data)),
            Data::Streamed(stream) => Validation::Stream(stream.clone()),
        });
        self
    }

    /// [`validation_data`](Self::validation_data) for a run that outlives the variable: `start!` copies it.
    #[doc(hidden)]
    pub fn validation_data_copied<'d>(mut self, data: impl IntoData<'d>) -> Self {
        self.validation_data = Some(match data.into_data() {
            Data::Held(data) => Validation::Data(Cow::Owned(data.clone())),
            Data::Streamed(stream) => Validation::Stream(stream.clone()),
        });
        self
    }

    /// The last share of the data, cut off before shuffling, is kept for validation.
    pub fn validation_split(mut self, share: f64) -> Self {
        self.validation_split = Some(share);
        self
    }

    /// Validates on the first so many batches only. Default: on all.
    pub fn validation_steps(mut self, batches: impl IntoCount) -> Self {
        self.validation_steps = Some(batches.into_count());
        self
    }

    /// Validates after every so many epochs, or after those of a list, counted from 1. Default: 1.
    pub fn validation_freq(mut self, epochs: impl IntoFrequency) -> Self {
        self.validation_freq = Some(epochs.into_frequency());
        self
    }

    /// Whether each epoch has a new order, from the seed and the epoch's number. Default: true.
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = Some(shuffle);
        self
    }

    /// Puts examples of similar length into a batch, in a random order that has each example once. Default: false.
    pub fn group_by_length(mut self, group: bool) -> Self {
        self.group_by_length = group;
        self
    }

    /// Fixes the order of the examples and the dropout masks. Default: 0.
    pub fn seed(mut self, seed: impl IntoCount) -> Self {
        self.seed = Some(seed.into_count());
        self
    }

    /// Tokens per example, special ones included. Default: 64.
    pub fn max_length(mut self, tokens: impl IntoCount) -> Self {
        self.max_length = Some(tokens.into_count());
        self
    }

    /// What each example counts in the training loss, by its class. Default: 1 each.
    pub fn class_weight(mut self, weights: impl IntoClassWeight) -> Self {
        self.class_weight = Some(weights.into_class_weight());
        self
    }

    /// The epoch to begin with, counted from 0; order, dropout and schedule take up from there.
    /// Default: 0.
    pub fn initial_epoch(mut self, epoch: impl IntoCount) -> Self {
        self.initial_epoch = Some(epoch.into_count());
        self
    }

    /// Batches of an epoch, the first ones of its order. Default: all.
    pub fn steps_per_epoch(mut self, batches: impl IntoCount) -> Self {
        self.steps_per_epoch = Some(batches.into_count());
        self
    }

    /// What is called while it trains; those given before are called first.
    pub fn callbacks(mut self, callbacks: impl IntoCallbacks<'a>) -> Self {
        self.callbacks = self.callbacks.followed_by(callbacks.into_callbacks());
        self
    }

    /// Stops after this many epochs without a better validation loss, and goes back to the best
    /// epoch's weights; an [`EarlyStopping`] can say more. Default: never.
    pub fn early_stopping(mut self, stopping: impl IntoEarlyStopping) -> Self {
        self.early_stopping = Some(stopping.into_early_stopping());
        self
    }

    /// A folder for the weights: after every epoch in `last`, and in `best` if the validation is the
    /// best so far. Default: none.
    pub fn checkpoint(mut self, folder: impl IntoFolder) -> Self {
        self.checkpoint = Some(folder.into_folder());
        self
    }

    /// Writes a complete checkpoint to the folder of `checkpoint` after every so many optimizer steps. Default: never.
    pub fn every(mut self, steps: impl IntoCount) -> Self {
        self.every = Some(steps.into_count());
        self
    }

    /// How many complete checkpoints are kept, the newest ones. Default: 3.
    pub fn keep_last(mut self, checkpoints: impl IntoCount) -> Self {
        self.keep_last = Some(checkpoints.into_count());
        self
    }

    /// Goes on from the newest complete checkpoint of a folder. Default: a run begins.
    pub fn resume_from(mut self, folder: impl IntoFolder) -> Self {
        self.resume_from = Some(folder.into_folder());
        self
    }

    /// Goes on with a run that was interrupted. Default: false.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Computes each layer once more in the backward pass instead of keeping what it computed: less memory, more
    /// time, the same gradients. Default: false.
    pub fn recompute(mut self, recompute: bool) -> Self {
        self.recompute = recompute;
        self
    }

    /// Whether the table of progress is shown. Default: true.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = Some(verbose);
        self
    }

    /// Fills in the defaults.
    pub fn resolve(self) -> Result<FitPlan<'a>> {
        let (stopping, checkpoints) = (self.stopping(), self.check_checkpoints());
        let order = self.check_order();
        let unfreezes_every = self.unfreezes_every();
        let validation = match (self.validation_data, self.validation_split) {
            (Some(_), Some(_)) => return Err(both_validations()),
            (Some(data), None) => data,
            (None, Some(share)) if share > 0.0 && share < 1.0 => Validation::Split(share),
            (None, Some(share)) => return Err(bad_split(share)),
            (None, None) => Validation::None,
        };
        let is_validated = !matches!(validation, Validation::None);
        let asks = [
            ("validation_steps", self.validation_steps.is_some()),
            ("validation_freq", self.validation_freq.is_some()),
        ];
        if let Some((argument, _)) = asks.iter().find(|(_, given)| *given && !is_validated) {
            return Err(Box::new(without_validation(argument)));
        }
        checkpoints?;
        order?;
        let stopping = stopping?;
        let unfreezes_every = unfreezes_every?;
        let epochs = match self.epochs {
            Some(count) => count.at_least(1, "fit", "epochs")?,
            None => 1,
        };
        let initial_epoch = match self.initial_epoch {
            Some(count) => count.at_least(0, "fit", "initial_epoch")?,
            None => 0,
        };
        if initial_epoch >= epochs {
            return Err(nothing_to_train(initial_epoch, epochs));
        }
        let count = |given: Option<Count>, argument| {
            let at_least_1 = |count: Count| count.at_least(1, "fit", argument);
            given.map(at_least_1).transpose()
        };
        let (batch_size, choice) = batch_size::resolve(self.batch_size)?;
        let counted = [
            ("steps_per_epoch", self.steps_per_epoch.is_some()),
            ("validation_steps", self.validation_steps.is_some()),
        ];
        batch_size::check_counted(choice, &counted)?;
        Ok(FitPlan {
            initial_epoch,
            epochs,
            batch_size,
            choice,
            steps_per_epoch: count(self.steps_per_epoch, "steps_per_epoch")?,
            validation,
            validation_steps: optional_size(self.validation_steps, "fit", "validation_steps")?,
            validation_freq: match self.validation_freq {
                None => ValidationFreq::Every(1),
                Some(frequency) => frequency.resolve()?,
            },
            shuffle: self.shuffle.unwrap_or(true),
            group_by_length: self.group_by_length,
            seed: match self.seed {
                Some(count) => count.at_least(0, "fit", "seed")?,
                None => 0,
            },
            max_length: optional_size(self.max_length, "fit", "max_length")?,
            class_weight: self.class_weight,
            callbacks: self.callbacks,
            stopping,
            unfreezes_every,
            every: count(self.every, "every")?,
            keep_last: optional_size(self.keep_last, "fit", "keep_last")?.unwrap_or(KEEP_LAST),
            checkpoint: self.checkpoint,
            resume: self.resume,
            resume_from: self.resume_from,
            recompute: self.recompute,
            verbose: self.verbose.unwrap_or(true),
        })
    }

    /// `every` and `keep_last` need a folder, and one run at most is gone on with.
    fn check_checkpoints(&self) -> Result<()> {
        let needs = |argument: &str, expects: &str| {
            let finding = problem::bad_value("fit", argument, "…", expects);
            Err(Box::new(finding.fix(format!("add {expects}"))))
        };
        match (&self.checkpoint, &self.every, &self.keep_last) {
            (None, Some(_), _) => needs("every", "`checkpoint`, a folder"),
            (_, None, Some(_)) => needs("keep_last", "`every`, a number of steps"),
            _ if self.resume && self.resume_from.is_some() => Err(both_resumes()),
            _ => Ok(()),
        }
    }

    /// The order of the data cannot be that of its lengths too.
    fn check_order(&self) -> Result<()> {
        match (self.group_by_length, self.shuffle) {
            (true, Some(false)) => {
                let expects = "`shuffle = true`, the default, in the same call";
                let finding = problem::bad_value("fit", "group_by_length", true, expects);
                let why = "`shuffle = false` keeps the order of the data, in which examples are not \
                           beside those of their length";
                Err(Box::new(finding.why(why)))
            }
            _ => Ok(()),
        }
    }

    /// The one gradual unfreezing among the callbacks.
    fn unfreezes_every(&self) -> Result<Option<u64>> {
        match self.callbacks.gradual_unfreezings().as_slice() {
            [] => Ok(None),
            [one] => one.resolve().map(Some),
            _ => {
                let expects =
                    "one `GradualUnfreezing`: with two, layers would be trained too early";
                let finding = problem::bad_value("fit", "callbacks", "[…, …]", expects);
                Err(Box::new(finding))
            }
        }
    }

    /// The one early stopping, of `early_stopping` or among the callbacks.
    fn stopping(&self) -> Result<Option<Stopping>> {
        let mut found: Vec<(&str, EarlyStopping)> = Vec::new();
        found.extend(self.early_stopping.clone().map(|it| ("early_stopping", it)));
        let listed = self.callbacks.early_stoppings().into_iter();
        found.extend(listed.map(|stopping| ("callbacks", stopping)));
        match found.as_slice() {
            [] => Ok(None),
            [(argument, stopping)] => Ok(Some(stopping.resolve(argument)?)),
            [_, (argument, _), ..] => {
                let expects =
                    "one early stopping: a run goes back to the weights of one best epoch";
                Err(Box::new(problem::bad_value(
                    "fit",
                    argument,
                    "two of them",
                    expects,
                )))
            }
        }
    }
}

fn both_validations() -> Box<Diagnostic> {
    let rule = ConflictingArguments {
        call: "fit!".to_owned(),
        first: "validation_data".to_owned(),
        first_place: Place::argument("fit", "validation_data"),
        second: "validation_split".to_owned(),
        second_place: Place::argument("fit", "validation_split"),
        first_drop: Place::argument("fit", "validation_data"),
        second_drop: Place::argument("fit", "validation_split"),
        reason: "both select the validation data, and one of them would be ignored".to_owned(),
        arguments: Vec::new(),
    };
    rule.error()
}

fn both_resumes() -> Box<Diagnostic> {
    let rule = ConflictingArguments {
        call: "fit!".to_owned(),
        first: "resume".to_owned(),
        first_place: Place::argument("fit", "resume"),
        second: "resume_from".to_owned(),
        second_place: Place::argument("fit", "resume_from"),
        first_drop: Place::argument("fit", "resume"),
        second_drop: Place::argument("fit", "resume_from"),
        reason:
            "`resume` goes on with the run that this process holds, `resume_from` with one on disk"
                .to_owned(),
        arguments: Vec::new(),
    };
    rule.error()
}

fn bad_split(share: f64) -> Box<Diagnostic> {
    let expects = "a number above 0, below 1";
    Box::new(problem::bad_value(
        "fit",
        "validation_split",
        share,
        expects,
    ))
}

fn nothing_to_train(initial_epoch: u64, epochs: u64) -> Box<Diagnostic> {
    let expects = format!("an epoch before the last one, below `epochs = {epochs}`");
    let finding = problem::bad_value("fit", "initial_epoch", initial_epoch, expects)
        .why("`epochs` is where training ends, not how many epochs are added")
        .fix(format!("`epochs = {}` trains one more", initial_epoch + 1))
        .tensorflow("trains nothing, and says nothing");
    Box::new(finding)
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Dataset;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_before_anything_runs() {
        let data = Dataset::from_texts(["a"]);
        let check = |args: FitArgs, code: &str, message: &str| {
            let finding = args.resolve().expect_err(message);
            assert_eq!(
                (finding.code.as_str(), finding.message.as_str()),
                (code, message)
            );
        };
        let args = FitArgs::new;
        check(
            args().epochs(0),
            "SC0103",
            "`epochs = 0`: expected an integer ≥ 1",
        );
        check(
            args().batch_size(-8),
            "SC0103",
            "`batch_size = -8`: expected an integer ≥ 1",
        );
        let message = "`validation_split = 1.5`: expected a number above 0, below 1";
        check(args().validation_split(1.5), "SC0103", message);
        let both = args().validation_split(0.5).validation_data(&data);
        check(
            both,
            "SC0118",
            "`validation_data` and `validation_split` exclude each other",
        );
        let alone = args().early_stopping(2).resolve().map(|plan| plan.stopping);
        assert!(
            alone.is_ok(),
            "what it watches is checked when the metrics are known"
        );
        check(
            args().validation_steps(2),
            "SC0103",
            "`validation_steps` needs `validation_data` or `validation_split`",
        );
        check(
            args().validation_data(&data).validation_freq([1, 0]),
            "SC0103",
            "`validation_freq = 0`: expected an integer ≥ 1",
        );
        check(
            args().epochs(3).initial_epoch(3),
            "SC0103",
            "`initial_epoch = 3`: expected an epoch before the last one, below `epochs = 3`",
        );
        check(
            args().every(5),
            "SC0103",
            "`every` needs `checkpoint`, a folder",
        );
        check(
            args().checkpoint("runs").keep_last(2),
            "SC0103",
            "`keep_last` needs `every`, a number of steps",
        );
        check(
            args().group_by_length(true).shuffle(false),
            "SC0103",
            "`group_by_length = true`: expected `shuffle = true`, the default, in the same call",
        );
        check(
            args().resume(true).resume_from("runs"),
            "SC0118",
            "`resume` and `resume_from` exclude each other",
        );
        check(
            args().steps_per_epoch(0),
            "SC0103",
            "`steps_per_epoch = 0`: expected an integer ≥ 1",
        );
        let twice = args().early_stopping(2).callbacks(EarlyStopping::new());
        check(
            twice,
            "SC0103",
            "`callbacks = two of them`: expected one early stopping: a run goes back to the weights of one best epoch",
        );
        let plan = args().resolve().expect("all defaults");
        assert_eq!(
            (plan.epochs, plan.batch_size, plan.max_length, plan.seed),
            (1, 32, None, 0)
        );
        assert!(plan.shuffle && plan.verbose && !plan.resume && !plan.group_by_length);
    }

    #[test]
    fn epochs_that_are_validated_are_counted_from_1() {
        let data = Dataset::from_texts(["a"]);
        let validated = |frequency: Frequency| -> Vec<u64> {
            let args = FitArgs::new().validation_data(&data);
            let args = FitArgs {
                validation_freq: Some(frequency),
                ..args
            };
            let plan = args.resolve().expect("it is one");
            (0..6)
                .filter(|&epoch| plan.validation_freq.includes(epoch))
                .collect()
        };
        assert_eq!(validated(1.into_frequency()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(validated(3.into_frequency()), [2, 5]);
        assert_eq!(validated([1, 6, 9].into_frequency()), [0, 5]);
        assert_eq!(validated(vec![2_u8].into_frequency()), [1]);
    }
}
