//! [`BatchPlan`]: which examples each batch of a run has, and which batches make a step together, where batch size,
//! accumulation or the examples change on the way.
//!
//! The order of an epoch is fixed by seed and epoch, and an epoch goes along it once. A change holds from the coming
//! optimizer step on: the batches go on in the order where they stand, in the new size, and groups of micro-batches are
//! counted from there. So every example that is not dropped has its turn once an epoch, whatever changes. The batches of
//! an epoch are numbered on, and later epochs have the new sizes from their begin.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stratoscope_data::{Batch, Split};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::step_batches::StepBatches;
use stratoscope_report::counters::{Counters, Exchange, Shape};

/// A batch of a run, by its epoch and its number in that. Positions are ordered as the batches follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchPosition {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The batch of the epoch, from 0.
    pub batch: u64,
}

/// Where a run stands before an optimizer step: the epoch, its next batch, and the steps that are made. Written to
/// checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepPosition {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The batch of the epoch, from 0.
    pub batch: u64,
    /// Optimizer steps that were made before.
    pub steps: u64,
}

impl StepPosition {
    /// Before the first of these batches, after so many steps.
    pub fn new(BatchPosition { epoch, batch }: BatchPosition, steps: u64) -> Self {
        Self {
            epoch,
            batch,
            steps,
        }
    }

    /// The next batch.
    pub(crate) fn next_batch(self) -> BatchPosition {
        BatchPosition {
            epoch: self.epoch,
            batch: self.batch,
        }
    }
}

/// What changes for the batches to come. Written to checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchChange {
    /// Examples of a batch.
    pub batch_size: Option<usize>,
    /// Batches of an optimizer step.
    pub accumulation: Option<u64>,
    /// Examples that are left out from here on, by their index in the training data.
    pub dropped: Vec<usize>,
}

impl BatchChange {
    /// As the history lists it.
    pub fn in_words(&self) -> String {
        let count = |number: usize, noun| text::count(number, noun);
        let mut words = Vec::new();
        words.extend(
            self.batch_size
                .map(|size| format!("batches of {}", count(size, "example"))),
        );
        words.extend(self.accumulation.map(|batches| {
            let batches = usize::try_from(batches).unwrap_or(usize::MAX);
            format!("{} a step", count(batches, "batch"))
        }));
        if !self.dropped.is_empty() {
            /// More are not listed.
            const LISTED: usize = 6;
            let rows = self.dropped.iter().take(LISTED);
            let rows: Vec<String> = rows.map(usize::to_string).collect();
            let more = match self.dropped.len() > LISTED {
                true => ", …",
                false => "",
            };
            let examples = count(self.dropped.len(), "example");
            words.push(format!("{examples} dropped: {}{more}", rows.join(", ")));
        }
        match words.is_empty() {
            true => "no example dropped that was not dropped before".to_owned(),
            false => words.join(", "),
        }
    }
}

/// How batches are made from one of them on, until a later segment begins or the run ends.
#[derive(Clone, Debug)]
struct PlanSegment {
    /// Its first batch.
    begin: BatchPosition,
    /// Where that batch begins in the order of its epoch.
    position: usize,
    /// The examples of that epoch from there on.
    left: usize,
    batch_size: usize,
    accumulation: u64,
    dropped: Arc<BTreeSet<usize>>,
}

/// The part of a segment that lies in one epoch.
struct EpochSegment<'p> {
    plan: &'p PlanSegment,
    batches: Range<u64>,
    position: usize,
    examples: usize,
}

/// How the batches of a run are made.
#[derive(Clone)]
pub struct BatchPlan {
    data: Split,
    /// The seed of the orders; `None`: all epochs have the order of the data.
    seed: Option<u64>,
    /// Examples of an epoch, where none is dropped.
    examples: usize,
    /// In the order in which they begin; there is always one.
    segments: Vec<PlanSegment>,
}

impl BatchPlan {
    /// Of a run whose epochs have `examples` of the data, in batches of this size, so many for a step.
    pub fn new(
        data: Split,
        seed: Option<u64>,
        examples: usize,
        batch_size: usize,
        accumulation: u64,
    ) -> Self {
        let first = PlanSegment {
            begin: BatchPosition { epoch: 0, batch: 0 },
            position: 0,
            left: examples,
            batch_size: batch_size.max(1),
            accumulation: accumulation.max(1),
            dropped: Arc::default(),
        };
        Self {
            data,
            seed,
            examples,
            segments: vec![first],
        }
    }

    /// How often it was changed.
    pub fn changes(&self) -> usize {
        self.segments.len() - 1
    }

    /// The same without any change.
    pub fn forget_changes(&mut self) {
        self.segments.truncate(1);
    }

    fn last(&self) -> &PlanSegment {
        self.segments.last().expect("there is always one")
    }

    /// Examples of the training data, dropped ones included.
    pub fn examples(&self) -> usize {
        self.data.len() / self.data.passes()
    }

    /// Examples of a batch, from the latest change on.
    pub fn batch_size(&self) -> usize {
        self.last().batch_size
    }

    /// Batches of an optimizer step, from the latest change on.
    pub fn accumulation(&self) -> u64 {
        self.last().accumulation
    }

    /// The examples that are left out, from the latest change on.
    pub fn dropped(&self) -> &BTreeSet<usize> {
        &self.last().dropped
    }

    /// The examples of a whole epoch of this segment.
    fn examples_of_epoch(&self, segment: &PlanSegment) -> usize {
        let dropped = segment.dropped.len() * self.data.passes();
        let there = self.data.len().saturating_sub(dropped);
        self.examples.min(there)
    }

    fn order(&self, epoch: u64) -> Split {
        match self.seed {
            Some(seed) => self.data.shuffle(seed, epoch),
            None => self.data.in_epoch(0, epoch),
        }
    }

    /// The segments of an epoch in their order, empty ones included.
    fn segments_of(&self, epoch: u64) -> Vec<EpochSegment<'_>> {
        let first_batch = BatchPosition { epoch, batch: 0 };
        let until = self.segments.partition_point(|it| it.begin <= first_batch);
        let inherited = &self.segments[until.max(1) - 1];
        let examples = self.examples_of_epoch(inherited);
        let mut found = vec![EpochSegment::new(inherited, 0, 0, examples)];
        let later = self.segments[until..].iter();
        for plan in later.take_while(|it| it.begin.epoch == epoch) {
            let first = plan.begin.batch;
            if let Some(before) = found.last_mut() {
                before.batches.end = first;
            }
            found.push(EpochSegment::new(plan, first, plan.position, plan.left));
        }
        found
    }

    /// The batches of an epoch.
    pub fn batches(&self, epoch: u64) -> u64 {
        (self.segments_of(epoch).pop()).map_or(0, |last| last.batches.end)
    }

    /// The batches of the optimizer step that a batch belongs to. The last group of an epoch may be shorter, and is a
    /// step of its own.
    pub fn group(&self, epoch: u64, batch: u64) -> Range<u64> {
        let mut segments = self.segments_of(epoch).into_iter();
        let Some(segment) = segments.find(|it| it.batches.contains(&batch)) else {
            return batch..batch;
        };
        let (first, size) = (segment.batches.start, segment.plan.accumulation);
        let start = first + (batch - first) / size * size;
        start..start.saturating_add(size).min(segment.batches.end)
    }

    /// The examples of each of these batches of an epoch.
    pub fn sizes(&self, epoch: u64, batches: Range<u64>) -> Vec<usize> {
        let segments = self.segments_of(epoch);
        let of = |batch: &u64| segments.iter().find(|it| it.batches.contains(batch));
        let size = |batch: u64| of(&batch).map(|it| it.size(batch));
        batches.filter_map(size).collect()
    }

    /// How many examples each worker has in these batches of an epoch; `None` where batches are divided evenly.
    pub fn shares(&self, epoch: u64, batches: Range<u64>) -> Option<Vec<usize>> {
        let mut shares = self.data.shares_of(0..0)?;
        for segment in self.segments_of(epoch) {
            let EpochSegment {
                plan,
                batches: all,
                position,
                examples,
            } = segment;
            let start = all.start.max(batches.start);
            let end = all.end.min(batches.end);
            let before =
                |batch: u64| ((batch - all.start) as usize).saturating_mul(plan.batch_size);
            let own = match start < end {
                true => before(start)..before(end).min(examples),
                false => continue,
            };
            let own = match plan.dropped.is_empty() {
                true => (self.data).shares_of(position + own.start..position + own.end),
                // Which places the dropped examples leave, the order of the epoch says.
                false => {
                    let order = self.order(epoch);
                    order.part(position, examples, &plan.dropped).shares_of(own)
                }
            };
            for (share, own) in shares.iter_mut().zip(own.into_iter().flatten()) {
                *share += own;
            }
        }
        Some(shares)
    }

    /// The batches of an epoch from one of them on, those of a step weighed together. Of a stream a batch is an error if its files cannot be read any more.
    ///
    /// # Errors
    /// None: sizes are checked before.
    pub fn batches_from(
        &self,
        epoch: u64,
        batch: u64,
    ) -> Result<impl Iterator<Item = Result<Batch>> + Send + use<>> {
        let order = self.order(epoch);
        let mut rest = Vec::new();
        for segment in self.segments_of(epoch) {
            let Range { start, end } = segment.batches;
            let first = start.max(batch);
            if first < end {
                let plan = segment.plan;
                let own = order.part(segment.position, segment.examples, &plan.dropped);
                let own = own.batch(plan.batch_size)?;
                let accumulation = usize::try_from(plan.accumulation).unwrap_or(usize::MAX);
                // The count begins with the first batch of a step, also of a step that has begun.
                let before = (first - start) as usize % accumulation;
                let own = own
                    .skip((first - start) as usize - before)
                    .take((end - first) as usize + before);
                rest.push(StepBatches::new(own, accumulation).skip(before));
            }
        }
        Ok(rest.into_iter().flatten())
    }

    /// What a run counts from a batch on to the end of its epochs.
    pub fn rest(&self, from: BatchPosition, epochs: u64, shape: &Shape) -> Counters {
        let BatchPosition { epoch, batch } = from;
        let (now, later) = match epoch < epochs {
            true => (self.rest_of(epoch, batch), epochs - epoch - 1),
            false => ((0, 0), 0),
        };
        let each = self.rest_of(epoch + 1, 0);
        let executions = |until: u64, from: u64| {
            until.div_ceil(shape.steps_per_execution) - from / shape.steps_per_execution
        };
        let steps = now.1 + later * each.1;
        let mut rest = Counters {
            batches: now.0 + later * each.0,
            executions: match now.0 {
                0 => 0,
                left => executions(batch + left, batch),
            } + later * executions(each.0, 0),
            optimizer_steps: steps,
            ..Counters::default()
        };
        match shape.exchange {
            Exchange::Push { each, last } => {
                let ends = later + u64::from(now.1 > 0);
                rest.pushes = steps.saturating_sub(ends) * each + ends * last;
                rest.optimizer_steps = rest.pushes;
            }
            _ if shape.replicas < 2 => {}
            Exchange::AllReduce => rest.all_reduces = steps,
            Exchange::Average { every } => rest.parameter_averages = steps.div_ceil(every),
        }
        rest
    }

    /// Batches and groups of an epoch from a batch on.
    fn rest_of(&self, epoch: u64, batch: u64) -> (u64, u64) {
        let segments = self.segments_of(epoch).into_iter();
        segments.fold((0, 0), |(batches, groups), segment| {
            let Range { start, end } = segment.batches;
            let left = end.saturating_sub(start.max(batch));
            (
                batches + left,
                groups + left.div_ceil(segment.plan.accumulation),
            )
        })
    }

    /// Changes what follows from a batch on, with which an optimizer step begins and which is not before an earlier change.
    ///
    /// # Errors
    /// Why it cannot be; then nothing has changed.
    pub fn change(
        &mut self,
        from: BatchPosition,
        change: &BatchChange,
    ) -> std::result::Result<(), String> {
        let BatchPosition { epoch, batch } = from;
        let last = self.last();
        if from < last.begin
            || batch >= self.batches(epoch)
            || self.group(epoch, batch).start != batch
        {
            return Err(format!(
                "batch {batch} of epoch {epoch} is no begin of a step that follows the latest change"
            ));
        }
        let rows = &change.dropped;
        if change.batch_size == Some(0) || change.accumulation == Some(0) {
            return Err("a batch and a step have at least one example".to_owned());
        }
        if let Some(row) = rows.iter().find(|&&row| row >= self.examples()) {
            return Err(format!("there is no example {row}"));
        }
        let mut next = last.clone();
        next.begin = from;
        let mut segments = self.segments_of(epoch).into_iter();
        let of_batch = |it: &EpochSegment<'_>| it.batches.contains(&batch);
        let segment = segments.find(of_batch).expect("it is one of the batches");
        let made = (batch - segment.batches.start) as usize;
        let passed = made.saturating_mul(segment.plan.batch_size);
        next.left = segment.examples - passed.min(segment.examples);
        let order = match next.dropped.is_empty() && rows.is_empty() {
            true => None,
            false => match self.order(epoch) {
                Split::Held(order) => Some(order),
                Split::Streamed(_) => {
                    return Err("examples of a stream cannot be left out".to_owned());
                }
            },
        };
        next.position = segment.position + passed;
        if let Some(order) = &order {
            let index = |at: usize| order.get(at).map(|example| example.index);
            let mut goes_on = (segment.position..order.len())
                .filter(|&at| index(at).is_some_and(|row| !next.dropped.contains(&row)));
            next.position = goes_on.nth(passed).unwrap_or(order.len());
            Arc::make_mut(&mut next.dropped).extend(rows);
            let stay = (next.position..order.len())
                .filter(|&at| index(at).is_some_and(|row| !next.dropped.contains(&row)));
            next.left = next.left.min(stay.count());
        }
        next.batch_size = change.batch_size.unwrap_or(next.batch_size);
        next.accumulation = change.accumulation.unwrap_or(next.accumulation);
        if self.examples_of_epoch(&next) == 0 {
            return Err("no example would be left".to_owned());
        }
        self.segments.push(next);
        Ok(())
    }
}

impl<'p> EpochSegment<'p> {
    /// From a batch of an epoch to the end of the epoch, `examples` of its order from `position` on.
    fn new(plan: &'p PlanSegment, first: u64, position: usize, examples: usize) -> Self {
        let batches = examples.div_ceil(plan.batch_size) as u64;
        Self {
            plan,
            batches: first..first + batches,
            position,
            examples,
        }
    }

    /// The examples of a batch of it.
    fn size(&self, batch: u64) -> usize {
        let before = (batch - self.batches.start) as usize;
        let before = before.saturating_mul(self.plan.batch_size);
        self.examples
            .saturating_sub(before)
            .min(self.plan.batch_size)
    }
}
