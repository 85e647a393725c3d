//! `batch_size = auto`: the batch, or the parts of a batch, that the memory plan has room for.
//!
//! `auto(n)` keeps the global batch of n examples and chooses the largest part of it that fits: n, half of it, half of
//! that. `auto` chooses the batch: the largest power of two that fits, but no more than leaves an epoch [`BATCHES`]
//! batches, since fewer steps learn less, and no more than [`MOST`], from which on a larger batch wants another learning
//! rate (Devlin et al. 2019 fine-tune BERT with 16 and 32). Nothing is allocated: the plan is held against what is free
//! now, or against the declared limit.

use stratoscope_diagnostics::rules::OutOfMemory;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::placement::bytes;

use stratoscope_arguments::Choice;

use crate::memory::{AtOnce, are_copies};
use crate::state::ModelState;
use stratoscope_diagnostics::problem;
use stratoscope_report::memory_plan::MemoryPlan;

/// Batches that an epoch keeps.
const BATCHES: usize = 32;
/// The largest batch that is chosen.
const MOST: usize = 256;

/// What a batch size is chosen by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSizeRequest {
    pub choice: Choice,
    /// The batch size, as far as it is known.
    pub written: usize,
    /// Examples of an epoch.
    pub examples: usize,
    /// Tokens of the longest row.
    pub length: usize,
    /// Whether layers are computed once more in the backward pass.
    pub recompute: bool,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChosenBatchSize {
    /// Examples of the global batch.
    pub batch_size: usize,
    /// Examples that are computed at once, where that is not the whole batch.
    pub part: Option<usize>,
    /// The choice and its reason, in words.
    pub why: String,
}

/// The batch size for this model on its devices. `None` where nothing is to be chosen.
///
/// # Errors
/// SC0103 where nobody knows how much memory there is, SC0607 if not one example fits on each replica.
pub fn choose(state: &ModelState, request: BatchSizeRequest) -> Result<Option<ChosenBatchSize>> {
    let BatchSizeRequest {
        choice,
        written,
        examples,
        length,
        recompute,
    } = request;
    let least = state.step.replicas.len().max(1);
    let (sizes, reason) = match choice {
        Choice::Given => return Ok(None),
        Choice::Parts => (halves(written, least), "no larger part was asked for"),
        Choice::Any => {
            let (most, reason) = most(examples, least);
            (powers(most, least), reason)
        }
    };
    let plans = sizes.iter().map(|&size| {
        let work = AtOnce {
            examples: size,
            length,
            recompute,
            is_part: choice == Choice::Parts && size < written,
        };
        work.plan(state)
    });
    let mut larger: Option<MemoryPlan> = None;
    for plan in plans {
        let Some(free) = plan.free else {
            return Err(unknown_memory(state));
        };
        if plan.fits() {
            let size = plan.batch_size;
            let needs = format!("{} of {} free", bytes(plan.to_come()), bytes(free));
            let limit = match &larger {
                Some(larger) => format!(
                    "{} would need {}",
                    larger.batch_size,
                    bytes(larger.to_come())
                ),
                None => reason.to_owned(),
            };
            return Ok(Some(match choice {
                Choice::Any => ChosenBatchSize {
                    batch_size: size,
                    part: None,
                    why: format!("batch_size = {size}, chosen: about {needs}; {limit}"),
                },
                _ => in_parts(written, size, &needs, &limit),
            }));
        }
        larger = Some(plan);
    }
    Err(nothing_fits(state, larger.as_ref()))
}

fn in_parts(written: usize, part: usize, needs: &str, limit: &str) -> ChosenBatchSize {
    let parts = written.div_ceil(part);
    ChosenBatchSize {
        batch_size: written,
        part: (parts > 1).then_some(part),
        why: match parts {
            1 => format!("batch_size = {written} at once: about {needs}"),
            _ => format!(
                "batch_size = {written} in {} of {part}, chosen: about {needs}; {limit}",
                text::count(parts, "part")
            ),
        },
    }
}

/// `size`, half of it, and so on, with at least one example for each replica.
fn halves(size: usize, least: usize) -> Vec<usize> {
    let half = |size: &usize| (*size > least).then(|| size.div_ceil(2).max(least));
    std::iter::successors(Some(size), half).collect()
}

/// The powers of two from `most` down that give each replica an example.
fn powers(most: usize, least: usize) -> Vec<usize> {
    let half = |size: &usize| (size / 2 >= least).then_some(size / 2);
    std::iter::successors(Some(most), half).collect()
}

/// The largest power of two that `auto` takes for so many examples, and why no more.
fn most(examples: usize, least: usize) -> (usize, &'static str) {
    let allowed = examples / BATCHES;
    let (limit, reason) = match allowed >= MOST {
        true => (MOST, "`auto` takes 256 at most"),
        false => (allowed, "more would leave an epoch fewer than 32 steps"),
    };
    // One per replica at least, also of a few examples.
    let limit = limit.max(least.next_power_of_two());
    (1 << limit.ilog2(), reason)
}

fn unknown_memory(state: &ModelState) -> Box<Diagnostic> {
    let devices = state.step.replicas.devices();
    let name = devices
        .first()
        .map_or_else(String::new, |device| device.name.clone());
    let expects = "a number, or a device whose memory is known";
    let call = name.replace(':', "(") + ")";
    let finding = problem::bad_value("fit", "batch_size", "auto", expects)
        .why(format!("how much memory {name} has is not known"))
        .fix(format!(
            "declare how much may be used, in megabytes: `{call}.memory_limit(8000)`"
        ))
        .fix("write a number, such as `batch_size = 32`: a step that does not fit is divided");
    Box::new(finding)
}

fn nothing_fits(state: &ModelState, smallest: Option<&MemoryPlan>) -> Box<Diagnostic> {
    let device = state.step.replicas.devices().first();
    let rule = OutOfMemory {
        device: device.map_or_else(String::new, |device| device.name.clone()),
        work: smallest.map_or_else(String::new, |plan| text::count(plan.batch_size, "example")),
        limit: smallest.and_then(|plan| Some((bytes(plan.to_come()), bytes(plan.free?)))),
        reason: None,
        parts: smallest.map_or_else(Vec::new, |plan| {
            let parts = plan.parts.iter();
            parts
                .map(|part| (part.name.to_owned(), bytes(plan.on_all(part))))
                .collect()
        }),
        is_update: false,
        are_copies: are_copies(state),
    };
    rule.error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_from_the_largest_down() {
        assert_eq!(halves(32, 1), [32, 16, 8, 4, 2, 1]);
        assert_eq!(halves(5, 2), [5, 3, 2]);
        assert_eq!(halves(1, 2), [1]);
        assert_eq!(powers(64, 4), [64, 32, 16, 8, 4]);
        assert_eq!(powers(4, 3), [4]);
    }

    #[test]
    fn an_epoch_keeps_its_steps() {
        assert_eq!(most(1_000_000, 1).0, 256);
        assert_eq!(most(2000, 1).0, 32);
        assert_eq!(most(8191, 1).0, 128);
        assert_eq!(most(10, 1).0, 1);
        assert_eq!(most(10, 3).0, 4);
    }
}
