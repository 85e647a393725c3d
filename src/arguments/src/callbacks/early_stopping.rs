//! Stopping when nothing gets better. Keras's `EarlyStopping`; in `fit!` also `early_stopping = 2`.

use stratoscope_diagnostics::arguments::Interval;
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::Callback;
use crate::count::{Count, IntoCount};
use stratoscope_diagnostics::problem;
use stratoscope_metrics::metric::Metric;
use stratoscope_report::history::EpochRecord;

/// Stops after some epochs without anything better, and goes back to the best epoch's weights.
///
/// ```
/// use stratoscope_arguments::callbacks::EarlyStopping;
///
/// let stopping = EarlyStopping::new().monitor("val_accuracy").patience(2).min_delta(0.001);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStopping {
    monitor: String,
    patience: Count,
    min_delta: f64,
    restore_best_weights: bool,
}

impl EarlyStopping {
    /// Watches the validation loss, with a patience of 1 epoch.
    pub fn new() -> Self {
        Self {
            monitor: "val_loss".to_owned(),
            patience: 1.into_count(),
            min_delta: 0.0,
            restore_best_weights: true,
        }
    }

    /// What is watched: `loss`, a metric's name, or either of the validation data with `val_` in
    /// front. A loss is better when it is lower, and so are `perplexity`, `mae`, `mse`, `rmse` and own metrics
    /// that say so; other metrics are when they are higher. Default: `val_loss`.
    pub fn monitor(mut self, name: impl Into<String>) -> Self {
        self.monitor = name.into();
        self
    }

    /// Epochs without a better value after which it stops; an undefined value is not better, and an epoch that is not
    /// validated does not count. Default: 1. (Keras's is 0, which stops at the same epoch.)
    pub fn patience(mut self, epochs: impl IntoCount) -> Self {
        self.patience = epochs.into_count();
        self
    }

    /// By how much a value must be better to count, 0 or more. Default: 0.
    pub fn min_delta(mut self, delta: f64) -> Self {
        self.min_delta = delta;
        self
    }

    /// Whether the model gets the weights of the best epoch in the end. Default: true. (Keras's is
    /// false.)
    pub fn restore_best_weights(mut self, restore: bool) -> Self {
        self.restore_best_weights = restore;
        self
    }

    /// Checks what does not need the model. `argument`: where it was written.
    pub fn resolve(&self, argument: &str) -> Result<Stopping> {
        if let Some(expects) = Interval::NotNegative.refuses(self.min_delta) {
            let given = format!("….min_delta({})", self.min_delta);
            let finding = problem::bad_value("fit", argument, given, expects);
            return Err(Box::new(finding));
        }
        Ok(Stopping {
            monitor: Monitor(self.monitor.clone()),
            patience: self.patience.at_least(1, "fit", argument)?,
            min_delta: self.min_delta,
            restore: self.restore_best_weights,
            argument: argument.to_owned(),
        })
    }
}

impl Default for EarlyStopping {
    fn default() -> Self {
        Self::new()
    }
}

impl Callback for EarlyStopping {
    /// `fit` keeps the weights and compares; nothing is left to do here.
    fn early_stopping(&self) -> Option<EarlyStopping> {
        Some(self.clone())
    }
}

/// What `early_stopping` takes: a number of epochs, or a value that says more.
#[diagnostic::on_unimplemented(
    message = "expected a number of epochs or an `EarlyStopping`, got `{Self}`",
    label = "`2`, or `EarlyStopping::new().monitor(\"val_accuracy\").patience(2)`"
)]
pub trait IntoEarlyStopping {
    /// The early stopping.
    fn into_early_stopping(self) -> EarlyStopping;
}

impl<T: IntoCount> IntoEarlyStopping for T {
    fn into_early_stopping(self) -> EarlyStopping {
        EarlyStopping::new().patience(self)
    }
}

impl IntoEarlyStopping for EarlyStopping {
    fn into_early_stopping(self) -> EarlyStopping {
        self
    }
}

/// An early stopping whose numbers are checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopping {
    /// The number that is watched.
    pub monitor: Monitor,
    /// Epochs without a better one, after which the run stops.
    pub patience: u64,
    /// The least difference that counts as better.
    pub min_delta: f64,
    /// Whether the weights of the best epoch come back.
    pub restore: bool,
    /// Where it was written: `early_stopping`, `callbacks`.
    pub argument: String,
}

impl Stopping {
    /// # Errors
    /// SC0103 for a monitor that this run does not measure.
    pub fn check(&self, metrics: &[Metric], is_validated: bool) -> Result<()> {
        let mut known = vec!["loss".to_owned()];
        known.extend(metrics.iter().map(|metric| metric.name().to_owned()));
        if is_validated {
            let of_validation: Vec<String> =
                known.iter().map(|name| format!("val_{name}")).collect();
            known.extend(of_validation);
        }
        let Monitor(name) = &self.monitor;
        if known.contains(name) {
            return Ok(());
        }
        if !is_validated && name.starts_with("val_") {
            return Err(Box::new(without_validation(&self.argument)));
        }
        let near = similar(name, known.iter().map(String::as_str));
        let expects = format!("what the run measures: {}", text::names(&known, 12));
        let mut finding = problem::bad_value(
            "fit",
            &self.argument,
            format!("….monitor({name:?})"),
            expects,
        );
        if let Some(near) = near.first() {
            finding = finding.suggest(near);
        }
        Err(Box::new(
            finding
                .fix("or measure it: `compile!(…, metrics = […])`")
                .tensorflow("warns at the end of every epoch, and never stops"),
        ))
    }
}

/// SC0103: something that compares epochs by their validation, in a run without any.
pub fn without_validation(argument: &str) -> Diagnostic {
    let expects = "`validation_data` or `validation_split`";
    problem::bad_value("fit", argument, "…", expects)
        .why("it compares epochs by their validation, and this run has no validation data")
        .fix(format!("add {expects} to the call"))
}

/// What epochs are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor(String);

impl Default for Monitor {
    fn default() -> Self {
        Self("val_loss".to_owned())
    }
}

impl Monitor {
    /// In words: `validation loss`, `val_accuracy`.
    pub fn words(&self) -> &str {
        match self.0.as_str() {
            "val_loss" => "validation loss",
            name => name,
        }
    }

    /// Its value at the end of an epoch, turned so that lower is better: NaN where it is undefined; `None` where the
    /// epoch does not measure it, because it was not validated.
    pub fn value(&self, epoch: &EpochRecord, known: &[Metric]) -> Option<f64> {
        let named =
            |name: &str, loss: f64, metrics: &[stratoscope_report::history::Measured]| match name {
                "loss" => Some(loss),
                _ => {
                    let metric = metrics.iter().find(|metric| metric.name == name)?;
                    let own = known.iter().find(|metric| metric.name() == name);
                    let low_is_better = own.is_some_and(|metric| metric.is_low_good());
                    let value = metric.value.unwrap_or(f64::NAN);
                    Some(if low_is_better { value } else { -value })
                }
            };
        match self.0.strip_prefix("val_") {
            Some(name) => {
                let validation = epoch.validation.as_ref()?;
                named(name, validation.loss, &validation.metrics)
            }
            None => named(&self.0, epoch.loss, &epoch.metrics),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_metrics::metric::Predicted;
    use stratoscope_report::history::{Evaluation, Measured};

    fn epoch() -> EpochRecord {
        let metric = |value| Measured {
            name: "accuracy",
            value: Some(value),
        };
        EpochRecord {
            epoch: 0,
            loss: 1.5,
            metrics: vec![metric(0.25)],
            validation: Some(Evaluation {
                loss: 0.75,
                metrics: vec![metric(0.5)],
                examples: 4,
                predictions: Predicted::default(),
                seconds: 0.1,
                low_is_good: Vec::new(),
                cut: None,
                other_length: None,
            }),
            learning_rate: 5e-5,
            seconds: 2.0,
            sequences_per_second: 12.0,
        }
    }

    #[test]
    fn a_loss_is_better_low_and_a_metric_high() {
        let known = [Metric::Accuracy, Metric::Rmse, Metric::Perplexity];
        let value = |name: &str| Monitor(name.to_owned()).value(&epoch(), &known);
        assert_eq!(value("loss"), Some(1.5));
        assert_eq!(value("val_loss"), Some(0.75));
        assert_eq!(value("accuracy"), Some(-0.25));
        assert_eq!(value("val_accuracy"), Some(-0.5));
        assert_eq!(value("val_f1"), None);
        let mut epoch = epoch();
        for low in ["rmse", "perplexity"] {
            epoch.metrics[0].name = low;
            let found = Monitor(low.to_owned()).value(&epoch, &known);
            assert_eq!(found, Some(0.25), "{low}");
        }
    }

    /// An epoch without validation is no epoch without anything better; one whose metric is undefined is.
    #[test]
    fn what_is_undefined_is_not_what_is_not_measured() {
        let known = [Metric::Accuracy];
        let value = |epoch: &EpochRecord| Monitor("val_accuracy".to_owned()).value(epoch, &known);
        let mut undefined = epoch();
        let validation = undefined.validation.as_mut().expect("it is validated");
        validation.metrics[0].value = None;
        assert!(value(&undefined).is_some_and(f64::is_nan));
        undefined.validation = None;
        assert_eq!(value(&undefined), None);
    }

    #[test]
    fn what_the_run_does_not_measure_is_refused() {
        let check = |name: &str, is_validated, expected: Option<&str>| {
            let stopping = EarlyStopping::new().monitor(name).resolve("callbacks");
            let found = stopping
                .expect("numbers are right")
                .check(&[Metric::Accuracy], is_validated);
            assert_eq!(
                found.as_ref().err().map(|finding| finding.code.as_str()),
                expected.map(|_| "SC0103")
            );
            if let (Err(finding), Some(words)) = (found, expected) {
                assert!(format!("{finding:?}").contains(words), "{finding:?}");
            }
        };
        check("val_loss", true, None);
        check("accuracy", false, None);
        check("val_accuracy", false, Some("validation_data"));
        check("val_acuracy", true, Some("did you mean `val_accuracy`?"));
        check("val_f1", true, Some("`val_accuracy`"));
    }

    #[test]
    fn its_numbers_are_checked() {
        let code = |stopping: EarlyStopping| stopping.resolve("callbacks").expect_err("bad").code;
        assert_eq!(code(EarlyStopping::new().patience(0)), "SC0103");
        assert_eq!(code(EarlyStopping::new().min_delta(-0.1)), "SC0103");
        assert_eq!(code(EarlyStopping::new().min_delta(f64::NAN)), "SC0103");
        assert_eq!(2.into_early_stopping(), EarlyStopping::new().patience(2));
    }
}
