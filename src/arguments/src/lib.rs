//! What is written in `compile!`, `fit!` and `evaluate!`: arguments and [`callbacks`]; and the [`context`] of a run: who observes
//! it, which warnings are shown, the precision of new models. Start reading at `fit.rs`.
//!
//! Arguments are kept as written. A cell writes `compile!(model, optimizer = …, loss = …)`; the macro calls
//! one method of [`CompileArgs`] per argument, by its name. Nothing is judged while it is written
//! down: `Model::compile`, `fit` and `evaluate` turn the arguments into a plan with every
//! default filled in, and report what is wrong with them. The loop sees the plan only.
//!
//! The table of the arguments with their documentation is `stratoscope_diagnostics::arguments`;
//! a test here holds both against each other.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod batch_size;
pub mod callbacks;
pub mod class_weight;
mod compile;
mod compiled;
pub mod context;
pub mod count;
mod evaluate;
mod fit;
mod fit_plan;
mod folder;
mod frequency;
mod value;

pub use batch_size::Choice;
pub use batch_size::{Auto, BatchSize, IntoBatchSize, auto};
pub use compile::{CompileArgs, IntoStrategyChoice, NoStrategy, StrategyChoice, none};
pub use evaluate::EvaluateArgs;
pub use fit::FitArgs;
pub use folder::IntoFolder;
pub use frequency::{Frequency, IntoFrequency, ValidationFreq};
pub use stratoscope_metrics::{IntoLoss, IntoMetric, IntoMetrics};

pub use crate::count::{Count, IntoCount};
pub use compiled::Compiled;
pub use fit_plan::{FitPlan, Validation};

/// Tokens per example where `max_length` is not given: the recipe of the notebook, or all that the
/// model takes if that is less.
pub fn default_max_length(positions: usize) -> usize {
    positions.min(64)
}

/// Examples per batch where `batch_size` is not given. Keras's default.
pub(crate) const DEFAULT_BATCH_SIZE: usize = 32;

/// Complete checkpoints that a folder keeps where `keep_last` is not given. Ours.
pub(crate) const KEEP_LAST: usize = 3;

#[cfg(test)]
mod tests {
    use stratoscope_data::Dataset;
    use stratoscope_diagnostics::arguments::{COMPILE, EVALUATE, FIT, OPTIMIZERS};

    use super::*;
    use crate::callbacks::EarlyStopping;
    use stratoscope_metrics::loss::SparseCategoricalCrossentropy;
    use stratoscope_metrics::metric::Metric;
    use stratoscope_optim::{Adam, AdamW, SGD};

    /// Calls a method by the name that the table gives it: a name without a method does not compile,
    /// a method that is missing here is missing from the list.
    macro_rules! written {
        ($start:expr, $($name:ident($($value:expr),*)),* $(,)?) => {{
            let mut names = Vec::new();
            $(
                let _ = $start.$name($($value),*);
                names.push(stringify!($name));
            )*
            names
        }};
    }

    #[track_caller]
    fn check(written: Vec<&str>, table: &[stratoscope_diagnostics::arguments::Argument]) {
        let table: Vec<&str> = table.iter().map(|argument| argument.name).collect();
        assert_eq!(written, table);
    }

    #[test]
    fn the_table_and_the_builders_have_the_same_arguments() {
        let data = Dataset::from_texts(["a"]);
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        check(
            written!(
                CompileArgs::new(),
                optimizer(AdamW::new(5e-5)),
                loss(loss),
                metrics([Metric::Accuracy]),
                steps_per_execution(16),
                gradient_accumulation_steps(4),
                sync_every(4),
                drop_unsupported(true),
                strategy(none),
            ),
            COMPILE,
        );
        check(
            written!(
                FitArgs::new(),
                epochs(3),
                batch_size(32),
                validation_data(&data),
                validation_split(0.1),
                validation_steps(10),
                validation_freq(1),
                shuffle(true),
                group_by_length(true),
                seed(0),
                max_length(64),
                class_weight("balanced"),
                initial_epoch(1),
                steps_per_epoch(100),
                callbacks(EarlyStopping::new()),
                early_stopping(2),
                checkpoint("runs"),
                every(50),
                keep_last(3),
                resume(true),
                resume_from("runs"),
                recompute(true),
                verbose(false),
            ),
            FIT,
        );
        check(
            written!(
                EvaluateArgs::new(),
                batch_size(32),
                steps(10),
                max_length(64),
                verbose(true)
            ),
            EVALUATE,
        );
        let adamw = written!(
            AdamW::new(5e-5),
            weight_decay(0.01),
            decay_all_parameters(false),
            exclude_from_weight_decay(["bias", "LayerNorm"]),
            beta_1(0.9),
            beta_2(0.999),
            epsilon(1e-8),
            amsgrad(true),
            clipnorm(1.0),
            global_clipnorm(1.0),
            clipvalue(1.0),
            use_ema(true),
            ema_momentum(0.99),
            ema_overwrite_frequency(100),
            layer_decay(0.9),
            rate_for("*.bias", 0.5),
        );
        let adam = written!(
            Adam::new(5e-5),
            beta_1(0.9),
            beta_2(0.999),
            epsilon(1e-8),
            amsgrad(true),
            clipnorm(1.0),
            global_clipnorm(1.0),
            clipvalue(1.0),
            use_ema(true),
            ema_momentum(0.99),
            ema_overwrite_frequency(100),
            layer_decay(0.9),
            rate_for("*.bias", 0.5),
        );
        let sgd = written!(
            SGD::new(0.01),
            momentum(0.9),
            nesterov(true),
            clipnorm(1.0),
            global_clipnorm(1.0),
            clipvalue(1.0),
            use_ema(true),
            ema_momentum(0.99),
            ema_overwrite_frequency(100),
            layer_decay(0.9),
            rate_for("*.bias", 0.5),
        );
        for (optimizer, written) in OPTIMIZERS.iter().zip([adamw, adam, sgd]) {
            check(written, optimizer.arguments);
        }
    }
}
