//! `fit!(model, data, …)` as written, and what it means.

use stratoscope_data::Dataset;
use stratoscope_diagnostics::rules::{BadArgumentValue, ConflictingArguments};
use stratoscope_diagnostics::{Place, Result, Rule};

use super::value::{optional_size, size};
use super::{Count, DEFAULT_BATCH_SIZE, IntoCount};

/// The arguments of `fit!`, one method each.
#[derive(Clone, Copy, Debug, Default)]
pub struct FitArgs<'a> {
    epochs: Option<Count>,
    batch_size: Option<Count>,
    validation_data: Option<&'a Dataset>,
    validation_split: Option<f64>,
    shuffle: Option<bool>,
    seed: Option<Count>,
    max_length: Option<Count>,
    early_stopping: Option<Count>,
    resume: bool,
    verbose: Option<bool>,
}

/// Every default filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitPlan<'a> {
    pub epochs: u64,
    pub batch_size: usize,
    pub validation: Validation<'a>,
    pub shuffle: bool,
    pub seed: u64,
    /// `None`: [`default_max_length`](super::default_max_length) of the model.
    pub max_length: Option<usize>,
    /// Epochs without a better validation loss after which it stops.
    pub patience: Option<u64>,
    pub resume: bool,
    pub verbose: bool,
}

/// What is validated on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Validation<'a> {
    None,
    Data(&'a Dataset),
    /// The last share of the training data.
    Split(f64),
}

impl<'a> FitArgs<'a> {
    /// No argument yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the data is gone through. Default: 1.
    pub fn epochs(mut self, epochs: impl IntoCount) -> Self {
        self.epochs = Some(epochs.into_count());
        self
    }

    /// Examples per batch over all replicas together. Default: 32.
    pub fn batch_size(mut self, batch_size: impl IntoCount) -> Self {
        self.batch_size = Some(batch_size.into_count());
        self
    }

    /// What is evaluated after each epoch, without dropout. Default: nothing.
    pub fn validation_data(mut self, data: &'a Dataset) -> Self {
        self.validation_data = Some(data);
        self
    }

    /// The last share of the data, cut off before shuffling, is kept for validation.
    pub fn validation_split(mut self, share: f64) -> Self {
        self.validation_split = Some(share);
        self
    }

    /// Whether each epoch has a new order, from the seed and the epoch's number. Default: true.
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = Some(shuffle);
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

    /// Stops after this many epochs without a better validation loss, and goes back to the best
    /// epoch's weights. Default: never.
    pub fn early_stopping(mut self, patience: impl IntoCount) -> Self {
        self.early_stopping = Some(patience.into_count());
        self
    }

    /// Goes on with a run that was interrupted. Default: false.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Whether the table of progress is shown. Default: true.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = Some(verbose);
        self
    }

    /// Fills in the defaults.
    pub(crate) fn resolve(self) -> Result<FitPlan<'a>> {
        let validation = match (self.validation_data, self.validation_split) {
            (Some(_), Some(_)) => return Err(both_validations()),
            (Some(data), None) => Validation::Data(data),
            (None, Some(share)) if share > 0.0 && share < 1.0 => Validation::Split(share),
            (None, Some(share)) => return Err(bad_split(share)),
            (None, None) => Validation::None,
        };
        let patience = match self.early_stopping {
            Some(count) => Some(count.at_least(1, "fit", "early_stopping")?),
            None => None,
        };
        if patience.is_some() && matches!(validation, Validation::None) {
            return Err(stopping_without_validation());
        }
        Ok(FitPlan {
            epochs: match self.epochs {
                Some(count) => count.at_least(1, "fit", "epochs")?,
                None => 1,
            },
            batch_size: size(self.batch_size, DEFAULT_BATCH_SIZE, "fit", "batch_size")?,
            validation,
            shuffle: self.shuffle.unwrap_or(true),
            seed: match self.seed {
                Some(count) => count.at_least(0, "fit", "seed")?,
                None => 0,
            },
            max_length: optional_size(self.max_length, "fit", "max_length")?,
            patience,
            resume: self.resume,
            verbose: self.verbose.unwrap_or(true),
        })
    }
}

fn both_validations() -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = ConflictingArguments {
        call: "fit!".to_owned(),
        first: "validation_data".to_owned(),
        first_place: Place::argument("fit", "validation_data"),
        second: "validation_split".to_owned(),
        second_place: Place::argument("fit", "validation_split"),
        first_drop: Place::argument("fit", "validation_data"),
        second_drop: Place::argument("fit", "validation_split"),
        reason: "both say what to validate on, and one of them would be ignored".to_owned(),
        arguments: Vec::new(),
    };
    rule.error()
}

fn bad_split(share: f64) -> Box<stratoscope_diagnostics::Diagnostic> {
    bad(
        "validation_split",
        share.to_string(),
        "a number above 0, below 1",
    )
}

fn stopping_without_validation() -> Box<stratoscope_diagnostics::Diagnostic> {
    let told = bad(
        "early_stopping",
        "…".to_owned(),
        "`validation_data` or `validation_split` beside it",
    );
    Box::new(
        told.why("the epochs are compared by their validation loss, and nothing is validated on"),
    )
}

fn bad(argument: &str, given: String, expects: &str) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = BadArgumentValue {
        call: "fit".to_owned(),
        argument: argument.to_owned(),
        given,
        expects: expects.to_owned(),
        place: Place::argument("fit", argument),
        replacement: None,
        arguments: Vec::new(),
    };
    rule.error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_before_anything_runs() {
        let data = Dataset::from_texts(["a"]);
        let check = |args: FitArgs, code: &str, message: &str| {
            let told = args.resolve().expect_err(message);
            assert_eq!((told.code.as_str(), told.message.as_str()), (code, message));
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
        let alone = args()
            .early_stopping(2)
            .resolve()
            .expect_err("nothing to compare");
        assert_eq!(alone.code, "SC0103");
        let plan = args().resolve().expect("all defaults");
        assert_eq!(
            (plan.epochs, plan.batch_size, plan.max_length, plan.seed),
            (1, 32, None, 0)
        );
        assert!(plan.shuffle && plan.verbose && !plan.resume);
    }
}
