//! What a run counts, and what it will have counted at its end.
//!
//! A **batch** is one forward and backward pass of the global batch, over all replicas; an
//! **execution** is a group of `steps_per_execution` batches between two returns to the host; an
//! **optimizer step** ends a group of `gradient_accumulation_steps` batches. Where there is more than one
//! replica, an **all-reduce** belongs to each optimizer step; with `sync_every = N`, a **parameter average**
//! to every N of them; where replicas do not wait for each other, a **push** to each.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use stratoscope_render::text;

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Forward and backward passes of a global batch.
    pub batches: u64,
    /// Returns to the host.
    pub executions: u64,
    /// Updates of the weights.
    pub optimizer_steps: u64,
    /// Sums of gradients over the replicas; 0 on one device.
    pub all_reduces: u64,
    /// Averages of the replicas' parameters: local SGD, `sync_every` above 1.
    pub parameter_averages: u64,
    /// Gradients that one replica sent alone, each an optimizer step of its own: asynchronous parameter
    /// servers.
    pub pushes: u64,
    /// The sum over the pushes of the updates that others had made since the replica had fetched its
    /// parameters.
    pub staleness: u64,
    /// Optimizer steps that were left out because a gradient was infinite: `mixed_float16`.
    pub skipped_steps: u64,
}

/// How replicas come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchange {
    /// Gradients are summed at every optimizer step.
    #[default]
    AllReduce,
    /// Each replica steps alone; parameters are averaged after every so many steps, and at the end.
    Average {
        /// Optimizer steps between two averages, N.
        every: u64,
    },
    /// Each replica pushes its gradients, and every push is an optimizer step.
    Push {
        /// Replicas that have examples in a group of batches.
        each: u64,
        /// The same for the last group of an epoch.
        last: u64,
    },
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
    /// How they come together.
    pub exchange: Exchange,
}

impl Shape {
    /// The counters after `epochs` whole epochs: ⌈B/S⌉ executions and ⌈B/A⌉ optimizer steps in each.
    /// With more than one replica there are as many all-reduces, or, over the whole run, ⌈steps/N⌉ parameter
    /// averages: ⌊steps/N⌋ on the way and a final one where a rest is left.
    pub fn counters(&self, epochs: u64) -> Counters {
        let batches = self.batches_per_epoch;
        let executions = batches.div_ceil(self.steps_per_execution);
        let steps = batches.div_ceil(self.gradient_accumulation_steps) * epochs;
        let mut counters = Counters {
            batches: batches * epochs,
            executions: executions * epochs,
            optimizer_steps: steps,
            ..Counters::default()
        };
        match self.exchange {
            Exchange::Push { each, last } => {
                counters.pushes = steps.saturating_sub(epochs) * each + epochs * last;
                counters.optimizer_steps = counters.pushes;
            }
            _ if self.replicas < 2 => {}
            Exchange::AllReduce => counters.all_reduces = steps,
            Exchange::Average { every } => counters.parameter_averages = steps.div_ceil(every),
        }
        counters
    }

    /// The batches of each execution of an epoch, from `first` on. An execution never crosses the
    /// end of an epoch: the last one may be shorter.
    pub fn executions(&self, first: u64) -> impl Iterator<Item = Range<u64>> + use<> {
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
}

impl Counters {
    /// What both have counted.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            batches: self.batches + other.batches,
            executions: self.executions + other.executions,
            optimizer_steps: self.optimizer_steps + other.optimizer_steps,
            all_reduces: self.all_reduces + other.all_reduces,
            parameter_averages: self.parameter_averages + other.parameter_averages,
            pushes: self.pushes + other.pushes,
            staleness: self.staleness + other.staleness,
            skipped_steps: self.skipped_steps + other.skipped_steps,
        }
    }

    /// What the replicas exchanged: the name of the counter, in the plural, and its value. `planned` are the
    /// counters of the whole run, which tell what kind of exchange it is before there was one.
    pub fn exchanges(&self, planned: &Self) -> (&'static str, u64) {
        if planned.parameter_averages > 0 {
            ("parameter averages", self.parameter_averages)
        } else if planned.pushes > 0 {
            ("pushes", self.pushes)
        } else {
            ("all-reduces", self.all_reduces)
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: u64, noun| text::count(number as usize, noun);
        write!(
            f,
            "{}, {}, ",
            count(self.executions, "execution"),
            count(self.optimizer_steps, "optimizer step"),
        )?;
        if self.parameter_averages > 0 {
            f.write_str(&count(self.parameter_averages, "parameter average"))
        } else if self.pushes > 0 {
            let stale = self.staleness as f64 / self.pushes as f64;
            let pushes = count(self.pushes, "push");
            write!(f, "{pushes}, {stale:.1} updates stale on average")
        } else {
            f.write_str(&count(self.all_reduces, "all-reduce"))
        }?;
        match self.skipped_steps {
            0 => Ok(()),
            skipped => write!(f, ", {} skipped", count(skipped, "step")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// the table in docs/keras-semantics.md for B = 8: (S, A, R) → executions, optimizer steps, all-reduces.
    #[test]
    fn the_closed_formulas() {
        let check = |s, a, r, expected: (u64, u64, u64)| {
            let shape = Shape {
                batches_per_epoch: 8,
                steps_per_execution: s,
                gradient_accumulation_steps: a,
                replicas: r,
                exchange: Exchange::AllReduce,
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

    /// The rows of local SGD: (S, A, N, R, epochs) → executions, optimizer steps, parameter averages.
    #[test]
    fn the_closed_formulas_of_local_sgd() {
        let check = |s, a, every, r, epochs, expected: (u64, u64, u64)| {
            let shape = Shape {
                batches_per_epoch: 8,
                steps_per_execution: s,
                gradient_accumulation_steps: a,
                replicas: r,
                exchange: Exchange::Average { every },
            };
            let found = shape.counters(epochs);
            let finding = (
                found.executions,
                found.optimizer_steps,
                found.parameter_averages,
            );
            assert_eq!(finding, expected, "S={s} A={a} N={every} R={r}");
            assert_eq!((found.all_reduces, found.pushes), (0, 0));
            let text = text::count(expected.2 as usize, "parameter average");
            if expected.2 > 0 {
                assert!(found.to_string().ends_with(&text), "{found}");
            }
        };
        check(1, 1, 4, 2, 1, (8, 8, 2));
        check(4, 1, 4, 2, 1, (2, 8, 2));
        check(1, 1, 3, 2, 1, (8, 8, 3));
        check(1, 1, 4, 1, 1, (8, 8, 0));
        check(1, 2, 2, 2, 1, (8, 4, 2));
        check(1, 3, 2, 2, 1, (8, 3, 2));
        check(1, 1, 5, 2, 2, (16, 16, 4));
        check(1, 1, 100, 2, 1, (8, 8, 1));
    }

    #[test]
    fn a_push_is_a_step() {
        let shape = Shape {
            batches_per_epoch: 4,
            steps_per_execution: 1,
            gradient_accumulation_steps: 1,
            replicas: 3,
            exchange: Exchange::Push { each: 3, last: 2 },
        };
        let planned = shape.counters(2);
        assert_eq!((planned.optimizer_steps, planned.pushes), (22, 22));
        assert_eq!(planned.exchanges(&planned), ("pushes", 22));
        let so_far = Counters {
            executions: 1,
            optimizer_steps: 3,
            pushes: 3,
            staleness: 3,
            ..Counters::default()
        };
        let shown = "1 execution, 3 optimizer steps, 3 pushes, 1.0 updates stale on average";
        assert_eq!(so_far.to_string(), shown);
    }

    #[test]
    fn executions_by_batch() {
        let shape = Shape {
            batches_per_epoch: 8,
            steps_per_execution: 3,
            gradient_accumulation_steps: 5,
            replicas: 1,
            exchange: Exchange::AllReduce,
        };
        assert_eq!(shape.executions(0).collect::<Vec<_>>(), [0..3, 3..6, 6..8]);
        assert_eq!(shape.executions(4).collect::<Vec<_>>(), [4..6, 6..8]);
        assert_eq!(shape.executions(8).count(), 0);
    }
}
