//! `compile!(model, …)` as written.

use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_strategy::{AsStrategy, Strategy};

use super::{Count, IntoCount, IntoLoss, IntoMetrics};
use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::Metric;
use stratoscope_optim::{IntoOptimizer, Optimizer};

/// The arguments of `compile!`, one method each.
///
/// ```
/// use stratoscope_arguments::CompileArgs;
/// use stratoscope_metrics::loss::SparseCategoricalCrossentropy;
/// use stratoscope_metrics::metric::list::accuracy;
/// use stratoscope_optim::AdamW;
///
/// let args = CompileArgs::new()
///     .optimizer(AdamW::new(5e-5).global_clipnorm(1.0))
///     .loss(SparseCategoricalCrossentropy { from_logits: true })
///     .metrics([accuracy()])
///     .steps_per_execution(16);
/// ```
#[derive(Debug, Default)]
pub struct CompileArgs {
    /// The optimizer, if it is written.
    pub optimizer: Option<Optimizer>,
    /// The loss, if it is written.
    pub loss: Option<Loss>,
    /// The metrics; none if they are not written.
    pub metrics: Vec<Metric>,
    /// Batches from one return to the host to the next.
    pub steps_per_execution: Option<Count>,
    /// Batches of an optimizer step.
    pub gradient_accumulation_steps: Option<Count>,
    /// Steps from one average of the replicas' parameters to the next.
    pub sync_every: Option<Count>,
    /// Whether arguments that the strategy does not support are left out with a warning.
    pub drop_unsupported: bool,
    /// The strategy that the model must have been built under.
    pub strategy: StrategyChoice,
    /// What is wrong with the values so far.
    pub problems: Vec<Diagnostic>,
    /// Whether an optimizer was given, right or wrong.
    pub has_optimizer: bool,
}

/// What was said about the strategy.
#[derive(Clone, Debug, Default)]
pub enum StrategyChoice {
    /// Nothing: the model's own, if it has one.
    #[default]
    OfTheScope,
    /// `strategy = none`: one device, on purpose.
    None,
    /// This one, which must be the model's.
    This(Strategy),
}

impl CompileArgs {
    /// No argument yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the steps: `AdamW::new(rate)`, `Adam::new(rate)`, `SGD::new(rate)`, or a text. Required.
    pub fn optimizer(mut self, optimizer: impl IntoOptimizer) -> Self {
        self.has_optimizer = true;
        self.optimizer = self.kept(optimizer.into_optimizer());
        self
    }

    /// What is minimized, as a mean over the examples of the global batch. Default: none, a model
    /// that only predicts.
    pub fn loss(mut self, loss: impl IntoLoss) -> Self {
        self.loss = self.kept(loss.into_loss());
        self
    }

    /// What is measured beside the loss, over the whole split. Default: nothing.
    pub fn metrics(mut self, metrics: impl IntoMetrics) -> Self {
        let metrics = metrics.into_metrics().into_iter();
        self.metrics = metrics.filter_map(|metric| self.kept(metric)).collect();
        self
    }

    /// How many batches run before control returns to the host. Default: 1. Above 1 it needs an active scope;
    /// larger than the epoch it is the epoch.
    pub fn steps_per_execution(mut self, batches: impl IntoCount) -> Self {
        self.steps_per_execution = Some(batches.into_count());
        self
    }

    /// Batches whose gradients make one optimizer step and one all-reduce. Default: 1.
    pub fn gradient_accumulation_steps(mut self, batches: impl IntoCount) -> Self {
        self.gradient_accumulation_steps = Some(batches.into_count());
        self
    }

    /// Optimizer steps that each replica makes alone, with moments of its own, before the parameters are
    /// averaged over the replicas (local SGD), each with the weight of the examples it saw. `fit!` ends with
    /// an average, an interrupted one too. Default: 1, which averages gradients at every step instead.
    pub fn sync_every(mut self, steps: impl IntoCount) -> Self {
        self.sync_every = Some(steps.into_count());
        self
    }

    /// Whether SC0102 is a warning, and `steps_per_execution` then 1. Default: false.
    pub fn drop_unsupported(mut self, drop_unsupported: bool) -> Self {
        self.drop_unsupported = drop_unsupported;
        self
    }

    /// `none` to train on one device on purpose, or the strategy that the model was built under.
    /// Default: the one of the scope.
    pub fn strategy(mut self, strategy: impl IntoStrategyChoice) -> Self {
        self.strategy = strategy.into_strategy_choice();
        self
    }

    /// The value, or a note of what is wrong with it.
    fn kept<T>(&mut self, value: Result<T>) -> Option<T> {
        value.map_err(|problem| self.problems.push(*problem)).ok()
    }
}

/// The type of [`none`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStrategy;

/// `strategy = none`: train on one device on purpose, although a strategy is alive.
#[allow(
    non_upper_case_globals,
    reason = "it is written as a word of the DSL, as Python's None"
)]
/// For `strategy = none`: the model is trained where it is.
pub const none: NoStrategy = NoStrategy;

/// What `strategy = …` takes.
#[diagnostic::on_unimplemented(
    message = "expected `none` or a strategy, got `{Self}`",
    label = "`none`, or what `MirroredStrategy::logical(2)?` returned"
)]
pub trait IntoStrategyChoice {
    /// What was said.
    fn into_strategy_choice(self) -> StrategyChoice;
}

impl IntoStrategyChoice for NoStrategy {
    fn into_strategy_choice(self) -> StrategyChoice {
        StrategyChoice::None
    }
}

impl<S: AsStrategy + ?Sized> IntoStrategyChoice for &S {
    fn into_strategy_choice(self) -> StrategyChoice {
        StrategyChoice::This(self.strategy())
    }
}
