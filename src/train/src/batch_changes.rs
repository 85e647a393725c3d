//! Changes to the batches of a run: their size, how many make a step, and examples that are left out from now on.

use std::collections::BTreeSet;

use stratoscope_data::{Encoded, Label};
use stratoscope_diagnostics::rules::{
    ClassWithoutExamples, ExamplesNotInData, NoExampleLeft, SmallPerReplicaBatch,
};
use stratoscope_diagnostics::{Result, Rule};

use crate::batch_plan::{BatchChange, StepPosition};
use crate::edits::Change;
use crate::memory;
use crate::pipeline;
use crate::run_state::RunState;
use crate::state::ModelState;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_arguments::count::Count;
use stratoscope_diagnostics::problem;
use stratoscope_network::Files;
use stratoscope_step::prepare::in_memory_only;

/// Another size of the batches, from the coming step on.
///
/// # Errors
/// SC0103 if there are no more steps; SC0601 as a warning where memory is too small.
pub fn batch_size_change(
    state: &ModelState,
    run: &RunState<'_>,
    batch_size: u64,
) -> Result<Change> {
    let batch_size = usize::try_from(batch_size).unwrap_or(usize::MAX);
    check_batch_size(state, run, batch_size)?;
    let change = BatchChange {
        batch_size: Some(batch_size),
        ..BatchChange::default()
    };
    run.batch_change(state, change, "set_batch_size")
}

/// Another number of batches for an optimizer step, from the coming one on.
///
/// # Errors
/// SC0103 if there are no more steps.
pub fn accumulation_change(state: &ModelState, run: &RunState<'_>, batches: u64) -> Result<Change> {
    let change = BatchChange {
        accumulation: Some(batches),
        ..BatchChange::default()
    };
    run.batch_change(state, change, "set_accumulation")
}

/// Leaves examples out, by their index in the training data, from the coming step on.
///
/// # Errors
/// SC0522 for an index that the training data does not have, or none at all; SC0523 if no example would be left; SC0524 as a
/// warning if a class would have none; SC0103 for a stream and if there are no more steps.
pub fn drop_change(state: &ModelState, run: &RunState<'_>, rows: &[Count]) -> Result<Change> {
    const CALL: &str = "drop_examples";
    if run.data.train.held().is_none() {
        let why = "the order of a stream is that of its files; leave rows out there";
        return Err(in_memory_only(CALL, "rows", "…", why));
    }
    let examples = run.data.train.len();
    let row = |count: &Count| {
        let row = count.value().and_then(|row| usize::try_from(row).ok());
        row.filter(|&row| row < examples)
    };
    let unknown: Vec<String> = (rows.iter().filter(|count| row(count).is_none()))
        .map(Count::to_string)
        .collect();
    if !unknown.is_empty() || rows.is_empty() {
        return Err(ExamplesNotInData { unknown, examples }.error());
    }
    let given: BTreeSet<usize> = rows.iter().filter_map(row).collect();
    let dropped = given.difference(run.batch_plan.dropped()).copied();
    let dropped: BTreeSet<usize> = dropped.collect();
    check_dropped(run, &*state.files, &dropped)?;
    let change = BatchChange {
        dropped: dropped.into_iter().collect(),
        ..BatchChange::default()
    };
    run.batch_change(state, change, CALL)
}

/// Whether a batch of this size makes sense on these replicas, and fits into memory as far as that is known.
fn check_batch_size(state: &ModelState, run: &RunState<'_>, batch_size: usize) -> Result<()> {
    let replicas = state.step.replicas.len();
    let rule = SmallPerReplicaBatch {
        batch_size,
        replicas,
    };
    rule.check().map_or(Ok(()), notice)?;
    pipeline::check_batch_size(run.micro_batches, replicas, batch_size, "set_batch_size")?;
    let train = &run.data.train;
    let length = train.report().longest.min(train.max_length());
    let examples = batch_size.min(train.len());
    memory::check(state, examples, length, run.settings.recompute)
}

/// SC0523 and SC0524.
fn check_dropped(run: &RunState<'_>, files: &dyn Files, dropped: &BTreeSet<usize>) -> Result<()> {
    let before = run.batch_plan.dropped();
    let stays = |row: usize| !dropped.contains(&row) && !before.contains(&row);
    let Some(train) = run.data.train.held() else {
        return Ok(());
    };
    if !(0..train.len()).any(stays) {
        let examples = train.len();
        return Err(NoExampleLeft { examples }.error());
    }
    let classes = classes_without(train, &stays, dropped);
    if classes.is_empty() {
        return Ok(());
    }
    let name = |class: &usize| {
        let name = files.label_names().get(*class).cloned();
        name.unwrap_or_else(|| class.to_string())
    };
    let rule = ClassWithoutExamples {
        classes: classes.iter().map(name).collect(),
        dropped: dropped.len(),
    };
    notice(rule.diagnostic())
}

/// The classes of dropped examples that no example which stays has.
fn classes_without(
    train: &Encoded,
    stays: &dyn Fn(usize) -> bool,
    dropped: &BTreeSet<usize>,
) -> BTreeSet<usize> {
    let examples = || (0..train.len()).filter_map(|at| train.get(at));
    let class = |label: Option<Label>| match label {
        Some(Label::Class(class)) => Some(class),
        _ => None,
    };
    let gone = examples().filter(|example| dropped.contains(&example.index));
    let mut gone: BTreeSet<usize> = gone.filter_map(|example| class(example.label)).collect();
    for example in examples().filter(|example| stays(example.index)) {
        if let Some(class) = class(example.label) {
            gone.remove(&class);
        }
    }
    gone
}

impl RunState<'_> {
    /// Other batches from the coming step on.
    ///
    /// # Errors
    /// SC0103 if there are no more steps.
    fn batch_change(&self, state: &ModelState, change: BatchChange, call: &str) -> Result<Change> {
        let Some(coming) = self.coming_batch() else {
            let expects = "a step that is not done yet, and all steps are done";
            return Err(Box::new(problem::bad_value(call, "value", "…", expects)));
        };
        let from = StepPosition::new(coming.position, state.step.steps);
        Ok(Change::Batches(from, change))
    }

    /// Makes such a change: the batches, the schedule's way over the steps that are left, and what the table says.
    pub(crate) fn make_batch_change(
        &mut self,
        from: StepPosition,
        change: &BatchChange,
    ) -> Result<()> {
        let changed = self.batch_plan.change(from.next_batch(), change);
        changed.map_err(|why| Box::new(problem::bad_value("edit", "batch", from.batch, why)))?;
        self.count_exchanges();
        let left = self.rest(from.next_batch());
        self.settings.span = self.settings.span.turned(from.steps, left.optimizer_steps);
        self.hooks.table.forget_pace();
        Ok(())
    }

    /// Takes all such changes back.
    pub(crate) fn forget_batch_changes(&mut self) {
        self.batch_plan.forget_changes();
        self.count_exchanges();
    }

    /// How the exchanges of the batches to come are counted.
    fn count_exchanges(&mut self) {
        let plan = &self.batch_plan;
        let largest = (self.data).largest_batches(plan.batch_size(), plan.accumulation());
        let replicas = self.shape.replicas as usize;
        self.shape.exchange = self.settings.exchange.counted(replicas, largest);
    }
}
