//! [`Courses`]: which examples each batch of a run has, and which batches make a step together, where batch size,
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

use crate::report::counters::{Counters, Exchange, Shape};

/// Where a run stands before an optimizer step: the epoch, its next batch, and the steps that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    pub epoch: u64,
    pub batch: u64,
    pub steps: u64,
}

/// What changes for the batches to come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// Examples of a batch.
    pub batch_size: Option<usize>,
    /// Batches of an optimizer step.
    pub accumulation: Option<u64>,
    /// Examples that are left out from here on, by their index in the training data.
    pub dropped: Vec<usize>,
}

impl Turn {
    /// As the history lists it.
    pub(crate) fn in_words(&self) -> String {
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

/// How batches are made from a place on.
#[derive(Clone, Debug)]
struct Course {
    epoch: u64,
    /// Its first batch in that epoch.
    batch: u64,
    /// Where that batch begins in the order of the epoch.
    position: usize,
    /// The examples of that epoch from there on.
    left: usize,
    batch_size: usize,
    accumulation: u64,
    dropped: Arc<BTreeSet<usize>>,
}

/// A course within an epoch.
struct Part<'c> {
    course: &'c Course,
    batches: Range<u64>,
    position: usize,
    examples: usize,
}

/// How the batches of a run are made.
#[derive(Clone)]
pub(crate) struct Courses {
    data: Split,
    /// The seed of the orders; `None`: all epochs have the order of the data.
    seed: Option<u64>,
    /// Examples of an epoch, where none is dropped.
    examples: usize,
    /// By the place where each begins; there is always one.
    all: Vec<Course>,
}

impl Courses {
    /// Of a run whose epochs have `examples` of the data, in batches of this size, so many for a step.
    pub(crate) fn new(
        data: Split,
        seed: Option<u64>,
        examples: usize,
        (batch_size, accumulation): (usize, u64),
    ) -> Self {
        let first = Course {
            epoch: 0,
            batch: 0,
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
            all: vec![first],
        }
    }

    /// The same without any change.
    pub(crate) fn forget_turns(&mut self) {
        self.all.truncate(1);
    }

    fn last(&self) -> &Course {
        self.all.last().expect("there is always one")
    }

    /// Examples of the training data, dropped ones included.
    pub(crate) fn examples(&self) -> usize {
        self.data.len() / self.data.passes()
    }

    /// Examples of a batch, from the latest change on.
    pub(crate) fn batch_size(&self) -> usize {
        self.last().batch_size
    }

    /// Batches of an optimizer step, from the latest change on.
    pub(crate) fn accumulation(&self) -> u64 {
        self.last().accumulation
    }

    /// The examples that are left out, from the latest change on.
    pub(crate) fn dropped(&self) -> &BTreeSet<usize> {
        &self.last().dropped
    }

    /// The examples of a whole epoch of this course.
    fn of_epoch(&self, course: &Course) -> usize {
        let dropped = course.dropped.len() * self.data.passes();
        let there = self.data.len().saturating_sub(dropped);
        self.examples.min(there)
    }

    fn order(&self, epoch: u64) -> Split {
        match self.seed {
            Some(seed) => self.data.shuffle(seed, epoch),
            None => self.data.in_epoch(0, epoch),
        }
    }

    /// The parts of an epoch in their order, empty ones included.
    fn parts(&self, epoch: u64) -> Vec<Part<'_>> {
        let until = self
            .all
            .partition_point(|it| (it.epoch, it.batch) <= (epoch, 0));
        let inherited = &self.all[until.max(1) - 1];
        let examples = self.of_epoch(inherited);
        let mut parts = vec![part(inherited, 0, 0, examples)];
        for course in self.all[until..].iter().take_while(|it| it.epoch == epoch) {
            if let Some(before) = parts.last_mut() {
                before.batches.end = course.batch;
            }
            parts.push(part(course, course.batch, course.position, course.left));
        }
        parts
    }

    /// The batches of an epoch.
    pub(crate) fn batches(&self, epoch: u64) -> u64 {
        let last = self.parts(epoch).pop();
        last.map_or(0, |part| part.batches.end)
    }

    /// The batches of the optimizer step that a batch belongs to. The last group of an epoch may be shorter, and is a
    /// step of its own.
    pub(crate) fn group(&self, epoch: u64, batch: u64) -> Range<u64> {
        let mut parts = self.parts(epoch).into_iter();
        let Some(part) = parts.find(|part| part.batches.contains(&batch)) else {
            return batch..batch;
        };
        let (first, size) = (part.batches.start, part.course.accumulation);
        let start = first + (batch - first) / size * size;
        start..start.saturating_add(size).min(part.batches.end)
    }

    /// The examples of each of these batches of an epoch.
    pub(crate) fn sizes(&self, epoch: u64, batches: Range<u64>) -> Vec<usize> {
        let parts = self.parts(epoch);
        let size = |batch: u64| {
            let part = parts.iter().find(|part| part.batches.contains(&batch))?;
            Some(part.size(batch))
        };
        batches.filter_map(size).collect()
    }

    /// How many examples each worker has in these batches of an epoch; `None` where batches are divided evenly.
    pub(crate) fn shares(&self, epoch: u64, batches: Range<u64>) -> Option<Vec<usize>> {
        let mut shares = self.data.shares_of(0..0)?;
        for part in self.parts(epoch) {
            let start = part.batches.start.max(batches.start);
            let end = part.batches.end.min(batches.end);
            let size = part.course.batch_size;
            let place = |batch: u64| ((batch - part.batches.start) as usize).saturating_mul(size);
            let own = match start < end {
                true => place(start)..place(end).min(part.examples),
                false => continue,
            };
            let dropped = &part.course.dropped;
            let own = match dropped.is_empty() {
                true => (self.data).shares_of(part.position + own.start..part.position + own.end),
                // Which places the dropped examples leave, the order of the epoch says.
                false => {
                    let order = self.order(epoch);
                    order
                        .part(part.position, part.examples, dropped)
                        .shares_of(own)
                }
            };
            for (share, own) in shares.iter_mut().zip(own.into_iter().flatten()) {
                *share += own;
            }
        }
        Some(shares)
    }

    /// The batches of an epoch from one of them on. Of a stream a batch is an error if its files cannot be read any more.
    ///
    /// # Errors
    /// None: sizes are checked before.
    pub(crate) fn batches_from(
        &self,
        epoch: u64,
        batch: u64,
    ) -> Result<impl Iterator<Item = Result<Batch>> + Send + use<>> {
        let order = self.order(epoch);
        let mut rest = Vec::new();
        for part in self.parts(epoch) {
            let Range { start, end } = part.batches;
            let first = start.max(batch);
            if first < end {
                let dropped = &part.course.dropped;
                let own = order.part(part.position, part.examples, dropped);
                let own = own.batch(part.course.batch_size)?;
                rest.push(
                    own.skip((first - start) as usize)
                        .take((end - first) as usize),
                );
            }
        }
        Ok(rest.into_iter().flatten())
    }

    /// What a run counts from a place on to the end of its epochs.
    pub(crate) fn rest(&self, (epoch, batch): (u64, u64), epochs: u64, shape: &Shape) -> Counters {
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
        let parts = self.parts(epoch).into_iter();
        parts.fold((0, 0), |(batches, groups), part| {
            let left = part
                .batches
                .end
                .saturating_sub(part.batches.start.max(batch));
            (
                batches + left,
                groups + left.div_ceil(part.course.accumulation),
            )
        })
    }

    /// Changes what follows a place, which is before an optimizer step and not before an earlier change.
    ///
    /// # Errors
    /// Why it cannot be; then nothing has changed.
    pub(crate) fn turn(&mut self, place: Place, turn: &Turn) -> std::result::Result<(), String> {
        let Place { epoch, batch, .. } = place;
        let last = self.last();
        if (epoch, batch) < (last.epoch, last.batch)
            || batch >= self.batches(epoch)
            || self.group(epoch, batch).start != batch
        {
            return Err(format!(
                "batch {batch} of epoch {epoch} is no begin of a step that follows the latest change"
            ));
        }
        let rows = &turn.dropped;
        if turn.batch_size == Some(0) || turn.accumulation == Some(0) {
            return Err("a batch and a step have at least one example".to_owned());
        }
        if let Some(row) = rows.iter().find(|&&row| row >= self.examples()) {
            return Err(format!("there is no example {row}"));
        }
        let mut next = last.clone();
        (next.epoch, next.batch) = (epoch, batch);
        let mut parts = self.parts(epoch).into_iter();
        let part = parts.find(|part| part.batches.contains(&batch));
        let part = part.expect("it is one of the batches");
        let made = (batch - part.batches.start) as usize;
        let passed = made.saturating_mul(part.course.batch_size);
        next.left = part.examples - passed.min(part.examples);
        let order = match next.dropped.is_empty() && rows.is_empty() {
            true => None,
            false => match self.order(epoch) {
                Split::Held(order) => Some(order),
                Split::Streamed(_) => {
                    return Err("examples of a stream cannot be left out".to_owned());
                }
            },
        };
        next.position = part.position + passed;
        if let Some(order) = &order {
            let index = |at: usize| order.get(at).map(|example| example.index);
            let mut goes_on = (part.position..order.len())
                .filter(|&at| index(at).is_some_and(|row| !next.dropped.contains(&row)));
            next.position = goes_on.nth(passed).unwrap_or(order.len());
            Arc::make_mut(&mut next.dropped).extend(rows);
            let stay = (next.position..order.len())
                .filter(|&at| index(at).is_some_and(|row| !next.dropped.contains(&row)));
            next.left = next.left.min(stay.count());
        }
        next.batch_size = turn.batch_size.unwrap_or(next.batch_size);
        next.accumulation = turn.accumulation.unwrap_or(next.accumulation);
        if self.of_epoch(&next) == 0 {
            return Err("no example would be left".to_owned());
        }
        self.all.push(next);
        Ok(())
    }
}

/// A course from a batch of an epoch to the end of the epoch.
fn part(course: &Course, first: u64, position: usize, examples: usize) -> Part<'_> {
    let batches = examples.div_ceil(course.batch_size) as u64;
    Part {
        course,
        batches: first..first + batches,
        position,
        examples,
    }
}

impl Part<'_> {
    /// The examples of a batch of it.
    fn size(&self, batch: u64) -> usize {
        let before = (batch - self.batches.start) as usize;
        let before = before.saturating_mul(self.course.batch_size);
        self.examples
            .saturating_sub(before)
            .min(self.course.batch_size)
    }
}
