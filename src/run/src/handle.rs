//! [`Run`]: what `start!` returns. A run that is driven piece by piece, and stands between two optimizer steps.
//!
//! The handle owns its run and a handle of the model, so that it survives the variables that it was made from. Its
//! methods take `&self`, as a notebook binds variables without `mut`.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use stratoscope_data::Data;
use stratoscope_diagnostics::rules::{ModelHolder, RunIsOver};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Origin;

use crate::layers::Inside;
use crate::request;
use crate::rewind::undo_update;
use stratoscope_arguments::FitArgs;
use stratoscope_arguments::context::interrupt::{self, Listening};
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_arguments::count::IntoCount;
use stratoscope_report::held::Held;
use stratoscope_report::history::History;
use stratoscope_report::run_report::RunReport;
use stratoscope_report::stop::{Stop, StopReason};
use stratoscope_train::breakpoints::Condition;
use stratoscope_train::fit;
use stratoscope_train::hooks::Breakpoints;
use stratoscope_train::lease::{Lease, in_use};
use stratoscope_train::loop_state::{Goal, Pause};
use stratoscope_train::run_state::{Phase, RunState, position};
use stratoscope_train::state::{ModelState, SharedModel};

pub mod look;

/// A run of `start!`.
pub struct Run {
    pub(crate) owned: Rc<Owned>,
}

/// What a handle holds.
pub(crate) struct Owned {
    pub model: Arc<SharedModel>,
    pub state: RefCell<RunState<'static>>,
    /// Where it stands within its coming step, if it was sent there.
    pub inside: RefCell<Option<Inside>>,
    /// The tokens of its data; of a fork, which shares them, its model.
    pub bytes: u64,
}

impl Run {
    /// What `start!` calls: prepares a run, which stands before its first step.
    pub fn start(
        model: Arc<SharedModel>,
        data: Data<'_>,
        args: FitArgs<'static>,
        origin: Origin,
    ) -> Result<Self> {
        begin_call();
        let _listening = Listening::begin();
        let plan = args.resolve()?;
        let state = {
            let mut lease = model.lease("start")?;
            let state = fit::start(&mut lease, data, plan, origin)?;
            model.occupied.reserve();
            state
        };
        let owned = Owned {
            model,
            bytes: state.data.bytes(),
            state: RefCell::new(state),
            inside: RefCell::default(),
        };
        Ok(Self::holding(owned))
    }

    pub(crate) fn holding(owned: Owned) -> Self {
        Self {
            owned: Rc::new(owned),
        }
    }

    /// What the handles of its model share.
    pub fn shared_model(&self) -> Arc<SharedModel> {
        Arc::clone(&self.owned.model)
    }

    /// Makes so many optimizer steps; fewer where the run is over before, is interrupted or meets a breakpoint. The end
    /// of an epoch, with its validation, belongs to its last step.
    ///
    /// # Errors
    /// SC0521 for a run that is finished; SC0121 in a callback of this run; what `Model::fit` says
    /// of a step. The run then stands before the step that was not made.
    pub fn step(&self, steps: impl IntoCount) -> Result<Stop> {
        let steps = steps.into_count().at_least(0, "step", "steps")?;
        self.advance(Goal::Steps(steps))
    }

    /// Goes on until the run has made `step` optimizer steps in all.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn until(&self, step: impl IntoCount) -> Result<Stop> {
        let step = step.into_count().at_least(0, "until", "step")?;
        self.advance(Goal::UntilStep(step))
    }

    /// Goes on to the end of the epoch, its validation included.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn epoch(&self) -> Result<Stop> {
        self.advance(Goal::Epoch)
    }

    /// Makes all steps that are left, and leaves the model with the weights that `fit!` leaves. Where it is interrupted
    /// or meets a breakpoint, the history says so and the run can go on; else the run is over and the model is free.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(&self) -> Result<History> {
        let stop = self.advance(Goal::End)?;
        let owned = &self.owned;
        let mut lease = owned.model.lease_reserved("finish")?;
        let mut run = owned.state.borrow_mut();
        if stop.reason != StopReason::Complete {
            let mut history = run.history(&lease);
            history.paused = Some(stop.headline());
            return Ok(history);
        }
        let history = run.end(&mut lease, Ok(Pause::Complete))?;
        owned.model.occupied.release();
        run.observer.fit_ended(run.number, &history);
        run.tell_end(&mut lease, &history);
        Ok(history)
    }

    /// Stops before any step for which the condition holds: that step is not made. Conditions that were set before stay.
    /// The same step is tried again by the next call, and stops it again while the condition holds, but for
    /// [`every`](stratoscope_train::breakpoints::every), which stops once.
    ///
    /// # Errors
    /// SC0103 for a number with which a condition could never hold, SC0105 for a layer that there is not, SC0521 for a run
    /// that is finished, SC0121 in a callback of this run.
    pub fn break_when(&self, condition: Condition) -> Result<()> {
        let condition = condition.checked()?;
        self.with_unchanged("break_when", |lease, run| {
            condition.check_layers(&lease.step.layers())?;
            run.hooks.breakpoints.add(condition);
            Ok(())
        })
    }

    /// Takes all conditions away.
    ///
    /// # Errors
    /// SC0521 for a run that is finished, SC0121 in a callback of this run.
    pub fn clear_breakpoints(&self) -> Result<()> {
        self.with_unchanged("clear_breakpoints", |_, run| {
            run.hooks.breakpoints = Breakpoints::default();
            Ok(())
        })
    }

    /// The condition of the debugger panel, instead of the one that it has set before. Those of
    /// [`break_when`](Self::break_when) stay.
    ///
    /// # Errors
    /// As [`break_when`](Self::break_when).
    #[doc(hidden)]
    pub fn break_for_panel(&self, condition: Option<Condition>) -> Result<()> {
        let condition = condition.map(Condition::checked).transpose()?;
        self.with_unchanged("break_when", |lease, run| {
            if let Some(condition) = &condition {
                condition.check_layers(&lease.step.layers())?;
            }
            run.hooks.breakpoints.set_of_panel(condition);
            Ok(())
        })
    }

    /// What was measured so far.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn history(&self) -> Result<History> {
        Ok(self.report()?.history)
    }

    /// Where it stands, with the latest losses, and why it stopped.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn report(&self) -> Result<RunReport> {
        self.read("report", |model, run| {
            Ok(RunReport {
                model: model.files.model_name().to_owned(),
                fork: run.fork_of.clone(),
                devices: run.progress.history.devices.clone(),
                position: position(model, run),
                is_over: run.phase == Phase::Over,
                recent: run.progress.recent.points().collect(),
                stop: run.stop.clone(),
                snapshots: run.hooks.snapshots.in_words(),
                history: run.history(model),
            })
        })
    }

    /// Where and why the latest call left it; `None` before the first one.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn stop(&self) -> Result<Option<Stop>> {
        Ok(self.report()?.stop)
    }

    /// Drives the run, and writes down where it stopped.
    pub(crate) fn advance(&self, goal: Goal) -> Result<Stop> {
        begin_call();
        let _listening = Listening::begin();
        self.with(goal.call(), |lease, run| {
            // A loop around this call must not swallow the interrupt.
            let outcome = match interrupt::requested() {
                true => Ok(Pause::Interrupted),
                false => request::drive(lease, run, goal),
            };
            let pause = match outcome {
                Ok(pause) => pause,
                Err(problem) => {
                    run.observer.fit_failed(run.number);
                    run.tell_failure(lease, &problem);
                    run.stop = None;
                    return Err(undo_update(lease, run, goal.call(), problem));
                }
            };
            let recent = run.progress.recent.points();
            let mut stop = Stop::new(pause.reason(), position(lease, run), recent);
            stop.run = run.label().to_owned();
            if !(pause == Pause::Complete && goal == Goal::End) {
                let mut history = run.history(lease);
                history.paused = Some(stop.headline());
                run.observer.fit_ended(run.number, &history);
            }
            run.stop = Some(stop.clone());
            Ok(stop)
        })
    }

    /// Calls `work` with the model's state and the run's, while no other call has them. The run stands before its coming step
    /// afterwards, because what its layers compute may have changed.
    ///
    /// # Errors
    /// SC0521 for a run that is finished, SC0121 in a callback of this run.
    pub(crate) fn with<T>(
        &self,
        call: &str,
        work: impl FnOnce(&mut Lease<'_>, &mut RunState<'static>) -> Result<T>,
    ) -> Result<T> {
        if let Ok(mut inside) = self.owned.inside.try_borrow_mut() {
            *inside = None;
        }
        self.with_unchanged(call, work)
    }

    /// [`with`](Self::with) work that changes nothing about the coming step.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub(crate) fn with_unchanged<T>(
        &self,
        call: &str,
        work: impl FnOnce(&mut Lease<'_>, &mut RunState<'static>) -> Result<T>,
    ) -> Result<T> {
        let owned = &self.owned;
        let busy = |_| in_use(call, ModelHolder::Callbacks);
        let mut run = owned.state.try_borrow_mut().map_err(busy)?;
        if run.phase == Phase::Over {
            let call = call.to_owned();
            return Err(RunIsOver { call }.error());
        }
        let mut lease = owned.model.lease_reserved(call)?;
        work(&mut lease, &mut run)
    }

    /// Calls `read` with the model's state and the run's, of a run that is over too.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub(crate) fn read<T>(
        &self,
        call: &str,
        read: impl FnOnce(&ModelState, &RunState<'static>) -> Result<T>,
    ) -> Result<T> {
        let owned = &self.owned;
        let busy = |_| in_use(call, ModelHolder::Callbacks);
        let run = owned.state.try_borrow().map_err(busy)?;
        read(&owned.model.state(), &run)
    }

    /// What it holds beside the model.
    pub fn held(&self) -> Held {
        Held {
            bytes: self.owned.bytes,
            devices: Vec::new(),
        }
    }
}

impl Drop for Owned {
    /// Frees the model. A run that is not finished leaves what `fit!(…, resume = true)` needs to go on.
    fn drop(&mut self) {
        let run = self.state.get_mut();
        if run.phase == Phase::Over {
            return;
        }
        if let Ok(mut lease) = self.model.lease_reserved("drop") {
            // Nobody is left to hear of a device that fails.
            let _ = run.end(&mut lease, Ok(Pause::Interrupted));
        }
        self.model.occupied.release();
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.report() {
            Ok(report) => fmt::Display::fmt(&report, f),
            Err(_) => f.write_str("a run that is in use"),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
