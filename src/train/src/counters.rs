//! What a run counts, and what it will have counted at its end.
//!
//! A **batch** is one forward and backward pass of the global batch, over all replicas; an
//! **execution** is a group of `steps_per_execution` batches between two returns to the host; an
//! **optimizer step** ends a group of `gradient_accumulation_steps` batches, and an **all-reduce**
//! belongs to each optimizer step where there is more than one replica.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use stratoscope_diagnostics::words;

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Forward and backward passes of a global batch.
    pub batches: u64,
    /// Returns to the host.
    pub executions: u64,
    /// Updates of the weights.
    pub optimizer_steps: u64,
    /// Sums of gradients over the replicas; 0 on one device.
    pub all_reduces: u64,
}

/// What decides how a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Batches of an epoch, B.
    pub batches_per_epoch: u64,
    /// Batches of an execution, S.
    pub steps_per_execution: u64,
    /// Batches of an optimizer step, A.
    pub gradient_accumulation_steps: u64,
    /// Replicas, R.
    pub replicas: u64,
}

impl Shape {
    /// The counters after `epochs` whole epochs: ⌈B/S⌉ executions, ⌈B/A⌉ optimizer steps and, with
    /// more than one replica, as many all-reduces, in each.
    pub fn counters(&self, epochs: u64) -> Counters {
        let batches = self.batches_per_epoch;
        let executions = batches.div_ceil(self.steps_per_execution);
        let steps = batches.div_ceil(self.gradient_accumulation_steps);
        let all_reduces = if self.replicas > 1 { steps } else { 0 };
        Counters {
            batches: batches * epochs,
            executions: executions * epochs,
            optimizer_steps: steps * epochs,
            all_reduces: all_reduces * epochs,
        }
    }

    /// The batches of each execution of an epoch, from `first` on. An execution never crosses the
    /// end of an epoch: the last one may be shorter.
    pub(crate) fn executions(&self, first: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let (batches, size) = (self.batches_per_epoch, self.steps_per_execution);
        let mut start = first;
        std::iter::from_fn(move || {
            let end = (start / size)
                .saturating_add(1)
                .saturating_mul(size)
                .min(batches);
            let range = start..end;
            start = end;
            (!range.is_empty()).then_some(range)
        })
    }

    /// The batches of the optimizer step that batch `index` belongs to. The last group of an epoch
    /// may be shorter, and is a step of its own.
    pub(crate) fn group(&self, index: u64) -> Range<u64> {
        let size = self.gradient_accumulation_steps;
        let start = index / size * size;
        start..start.saturating_add(size).min(self.batches_per_epoch)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: u64, noun| words::count(number as usize, noun);
        write!(
            f,
            "{}, {}, {}",
            count(self.executions, "execution"),
            count(self.optimizer_steps, "optimizer step"),
            count(self.all_reduces, "all-reduce")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// keras-semantics' table for B = 8: (S, A, R) → executions, optimizer steps, all-reduces.
    #[test]
    fn the_closed_formulas() {
        let check = |s, a, r, expected: (u64, u64, u64)| {
            let shape = Shape {
                batches_per_epoch: 8,
                steps_per_execution: s,
                gradient_accumulation_steps: a,
                replicas: r,
            };
            let Counters {
                executions,
                optimizer_steps,
                all_reduces,
                ..
            } = shape.counters(1);
            assert_eq!(
                (executions, optimizer_steps, all_reduces),
                expected,
                "S={s} A={a} R={r}"
            );
            assert_eq!(shape.executions(0).count() as u64, executions);
        };
        check(1, 1, 2, (8, 8, 8));
        check(1, 1, 1, (8, 8, 0));
        check(4, 1, 2, (2, 8, 8));
        check(3, 1, 2, (3, 8, 8));
        check(1, 4, 2, (8, 2, 2));
        check(1, 3, 2, (8, 3, 3));
        check(100, 100, 2, (1, 1, 1));
        check(u64::MAX, u64::MAX, 2, (1, 1, 1));
    }

    #[test]
    fn executions_and_groups_by_batch() {
        let shape = Shape {
            batches_per_epoch: 8,
            steps_per_execution: 3,
            gradient_accumulation_steps: 5,
            replicas: 1,
        };
        assert_eq!(shape.executions(0).collect::<Vec<_>>(), [0..3, 3..6, 6..8]);
        assert_eq!(shape.executions(4).collect::<Vec<_>>(), [4..6, 6..8]);
        assert_eq!(shape.executions(8).count(), 0);
        assert_eq!(
            (
                shape.group(0),
                shape.group(4),
                shape.group(5),
                shape.group(7)
            ),
            (0..5, 0..5, 5..8, 5..8)
        );
    }
}
