//! `model.find_learning_rate(&train, 32)?`: a short run of a copy of the model whose learning rate grows from step to step.
//!
//! The copy makes steps of the one training loop, with the schedule of `compile!` replaced by an exponential one and with new
//! moments. Its weights share memory with the model's until they change, so that the model keeps its bits.

use std::sync::Arc;

use stratoscope_data::{Data, IntoData};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_strategy::Origin;

use crate::model::Model;
use crate::optimizer::Optimizer;
use crate::problem;
use crate::report::rate_curve::{RampEnd, RateCurve};
use crate::report::stop::StopReason;
use crate::schedule::{ExponentialDecay, Schedule};
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::events::Observer;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::count::{Count, IntoCount};
use stratoscope_arguments::{Compiled, FitArgs};
use stratoscope_run::fork::copy_without_run;
use stratoscope_run::handle::Run;
use stratoscope_train::state::SharedModel;

const CALL: &str = "find_learning_rate";
/// The fewest steps by which a curve can be read.
const MIN_STEPS: u64 = 10;
/// More steps are a training run.
const MAX_STEPS: u64 = 10_000;
/// The code of a loss, a gradient or a weight that is not finite.
const NOT_FINITE: &str = "SC0505";

/// Which rates are tried, and on which batches.
#[derive(Clone, Debug)]
pub struct RateRange {
    start: f64,
    end: f64,
    steps: Option<Count>,
    batch_size: Option<Count>,
    max_length: Option<Count>,
    seed: Option<Count>,
}

impl RateRange {
    /// 100 steps from 1e-7 to 1, with batches of 32 examples.
    pub fn new() -> Self {
        Self {
            start: 1e-7,
            end: 1.0,
            steps: None,
            batch_size: None,
            max_length: None,
            seed: None,
        }
    }

    /// The rate of the first step, above 0. Default: 1e-7.
    pub fn start(mut self, rate: f64) -> Self {
        self.start = rate;
        self
    }

    /// The rate of the last step, above that of the first. Default: 1.
    pub fn end(mut self, rate: f64) -> Self {
        self.end = rate;
        self
    }

    /// Optimizer steps, from 10 to 10 000. Default: 100.
    pub fn steps(mut self, steps: impl IntoCount) -> Self {
        self.steps = Some(steps.into_count());
        self
    }

    /// Examples per batch over all replicas together. The best rate depends on it: take that of the training. Default: 32.
    pub fn batch_size(mut self, batch_size: impl IntoCount) -> Self {
        self.batch_size = Some(batch_size.into_count());
        self
    }

    /// Tokens per example, special ones included. Default: 64.
    pub fn max_length(mut self, tokens: impl IntoCount) -> Self {
        self.max_length = Some(tokens.into_count());
        self
    }

    /// Fixes the order of the examples and the dropout masks. Default: 0.
    pub fn seed(mut self, seed: impl IntoCount) -> Self {
        self.seed = Some(seed.into_count());
        self
    }

    /// The steps of the ramp.
    ///
    /// # Errors
    /// SC0103 for a rate or a number of steps that is out of its range.
    fn checked_steps(&self) -> Result<u64> {
        let refused = |argument: &str, given: String, expects: &str| -> Box<Diagnostic> {
            Box::new(problem::bad_value(CALL, argument, given, expects))
        };
        if !(self.start.is_finite() && self.start > 0.0) {
            let given = self.start.to_string();
            return Err(refused("start", given, "a finite rate above 0"));
        }
        if !(self.end.is_finite() && self.end > self.start) {
            let expects = format!(
                "a finite rate above that of the first step, {:e}",
                self.start
            );
            return Err(refused("end", self.end.to_string(), &expects));
        }
        let steps = match self.steps {
            Some(steps) => steps.at_least(MIN_STEPS, CALL, "steps")?,
            None => 100,
        };
        match steps > MAX_STEPS {
            true => Err(refused("steps", steps.to_string(), "at most 10000 steps")),
            false => Ok(steps),
        }
    }

    /// Exponential: each step has a constant multiple of the rate before, so that the last one has the rate of the end.
    fn schedule(&self, steps: u64) -> Schedule {
        let ramp = ExponentialDecay::new(self.start, steps - 1, self.end / self.start);
        Schedule::ExponentialDecay(ramp)
    }

    /// # Errors
    /// SC0103 for a number that is out of its range.
    fn fit(&self, steps: u64) -> Result<FitArgs<'static>> {
        let mut args = FitArgs::new()
            // Every epoch has a step.
            .epochs(steps)
            .verbose(false);
        if let Some(batch_size) = self.batch_size {
            args = args.batch_size(batch_size.at_least(1, CALL, "batch_size")?);
        }
        if let Some(max_length) = self.max_length {
            args = args.max_length(max_length.at_least(1, CALL, "max_length")?);
        }
        if let Some(seed) = self.seed {
            args = args.seed(seed.at_least(0, CALL, "seed")?);
        }
        Ok(args)
    }
}

impl Default for RateRange {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows nothing: the copy is driven into rates that are too high, which every warning of a run is about.
struct Silent;

impl Observer for Silent {
    fn notice(&self, _: Diagnostic) {}
}

impl Model {
    /// Trains a copy of the model for 100 steps, while the learning rate grows from 1e-7 to 1, and returns the losses with a rate to begin
    /// with (Smith 2017). The copy has the optimizer of `compile!` with new moments; the model does not change.
    ///
    /// ```no_run
    /// # use stratoscope_models::BertForSequenceClassification;
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// # let (train, _) = stratoscope_data::debian_sections()?;
    /// # let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
    /// let curve = model.find_learning_rate(&train, 32)?;
    /// println!("{curve}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`find_learning_rate_with`](Self::find_learning_rate_with).
    #[track_caller]
    pub fn find_learning_rate<'d>(
        &self,
        data: impl IntoData<'d>,
        batch_size: impl IntoCount,
    ) -> Result<RateCurve> {
        let range = RateRange::new().batch_size(batch_size);
        self.rates(data.into_data(), &range, Origin::current())
    }

    /// The same with other rates, steps or batches.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss; SC0103 for rates and numbers that are out of their range; what
    /// is wrong with the data; SC0505 if the loss is not finite at once; SC0520 if it is interrupted; SC0121 in a callback of the
    /// model's own run; SC0907 if a device fails.
    #[track_caller]
    pub fn find_learning_rate_with<'d>(
        &self,
        data: impl IntoData<'d>,
        range: &RateRange,
    ) -> Result<RateCurve> {
        self.rates(data.into_data(), range, Origin::current())
    }

    fn rates(&self, data: Data<'_>, range: &RateRange, origin: Origin) -> Result<RateCurve> {
        let steps = range.checked_steps()?;
        let args = range.fit(steps)?;
        let _listening = Listening::begin();
        let state = self.free_state(CALL)?;
        state.step_settings(CALL)?;
        let compiled = Arc::clone(state.compiled_for(CALL)?);
        let context = RunContext::new();
        context.observe(Arc::new(Silent));
        let _entered = context.enter();
        let mut copy = copy_without_run(&state, origin.clone())?;
        copy.compiled = Some(Arc::new(Compiled {
            optimizer: Optimizer {
                schedule: range.schedule(steps),
                ..compiled.optimizer.clone()
            },
            ..(*compiled).clone()
        }));
        let model = state.files.model_name().to_owned();
        drop(state);
        let planned = usize::try_from(steps).unwrap_or(usize::MAX);
        let curve = RateCurve::new(model, compiled.optimizer.to_string(), planned);
        let run = Run::start(Arc::new(SharedModel::new(copy)), data, args, origin)?;
        ramp(&run, curve)
    }
}

/// Makes the steps, until the loss has diverged.
fn ramp(run: &Run, mut curve: RateCurve) -> Result<RateCurve> {
    let verb = ("trying learning rates", "tried learning rates");
    let mut work = Work::begin(verb, curve.planned, Unit::Things("step"));
    // The way back is that of the model itself, which has not changed.
    run.keep_snapshots(u64::MAX, 0_u64)?;
    for made in 0..curve.planned {
        work.reached(made)?;
        let stop = match run.step(1_u64) {
            Ok(stop) => stop,
            Err(problem) if problem.code == NOT_FINITE && made > 0 => {
                curve.end = RampEnd::NotFinite;
                break;
            }
            Err(problem) => return Err(problem),
        };
        if stop.reason == StopReason::Interrupted {
            return Err(work.interrupted());
        }
        let history = run.history()?;
        let Some(step) = history.steps.last() else {
            break;
        };
        if curve.add(step.learning_rate, step.loss) {
            curve.end = RampEnd::Diverged;
            break;
        }
    }
    work.finished();
    Ok(curve)
}
