//! In which order a stage computes the passes of the micro-batches, and how long it waits.
//!
//! A stage can begin a forward pass when the stage before it has sent its activations, and a backward pass when the stage after
//! it has sent the gradient. Both orders below have the same shape in time for equal passes; they differ in how many
//! micro-batches wait for their backward pass at once, and so in the activations that a stage keeps.
//!
//! ```text
//! 3 stages, 4 micro-batches, backward passes as long as forward passes
//!
//! GPipe   stage 0  F0 F1 F2 F3 ·  ·  ·  ·  B0 B1 B2 B3
//!         stage 1  ·  F0 F1 F2 F3 ·  ·  B0 B1 B2 B3 ·
//!         stage 2  ·  ·  F0 F1 F2 F3 B0 B1 B2 B3 ·  ·
//!
//! 1F1B    stage 0  F0 F1 F2 ·  ·  B0 F3 B1 ·  B2 ·  B3
//!         stage 1  ·  F0 F1 ·  B0 F2 B1 F3 B2 ·  B3 ·
//!         stage 2  ·  ·  F0 B0 F1 B1 F2 B2 F3 B3 ·  ·
//! ```
//!
//! Backward passes follow each other in the order of the micro-batches, so that gradients are added as one device adds them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In which order a stage of a pipeline computes forward and backward passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PipelineSchedule {
    /// All forward passes, then all backward passes: a stage keeps the activations of all micro-batches.
    GPipe,
    /// 1F1B: after the first forward passes a forward and a backward pass in turn, so that stage s of p keeps the activations
    /// of p − s micro-batches at most.
    #[default]
    OneForwardOneBackward,
}

/// A pass of a micro-batch through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipelinePass {
    /// Forward, of this micro-batch.
    Forward(usize),
    /// Backward.
    Backward(usize),
}

impl PipelineSchedule {
    /// The name of the papers: `GPipe`, `1F1B`.
    pub fn name(self) -> &'static str {
        match self {
            Self::GPipe => "GPipe",
            Self::OneForwardOneBackward => "1F1B",
        }
    }

    /// The passes of a stage, in their order.
    pub fn passes(self, stage: usize, stages: usize, micro_batches: usize) -> Vec<PipelinePass> {
        let ahead = self.kept(stage, stages, micro_batches);
        let mut passes = Vec::with_capacity(2 * micro_batches);
        passes.extend((0..ahead).map(PipelinePass::Forward));
        for done in 0..micro_batches {
            passes.push(PipelinePass::Backward(done));
            if ahead + done < micro_batches {
                passes.push(PipelinePass::Forward(ahead + done));
            }
        }
        passes
    }

    /// Of how many micro-batches a stage keeps activations at most.
    pub fn kept(self, stage: usize, stages: usize, micro_batches: usize) -> usize {
        match self {
            Self::GPipe => micro_batches,
            Self::OneForwardOneBackward => (stages - stage).min(micro_batches),
        }
    }
}

impl fmt::Display for PipelineSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The share of their time in which stages wait, for stages and passes of equal length: (p − 1)/(m + p − 1). Source: Huang et
/// al. 2019, section 2.3.
pub fn bubble(stages: usize, micro_batches: usize) -> f64 {
    let waits = stages.saturating_sub(1) as f64;
    waits / (micro_batches as f64 + waits)
}

#[cfg(test)]
mod tests {
    use super::PipelinePass::{Backward, Forward};
    use super::*;

    #[test]
    fn a_stage_keeps_what_its_schedule_says() {
        let passes = |schedule: PipelineSchedule, stage| schedule.passes(stage, 3, 4);
        let one = PipelineSchedule::OneForwardOneBackward;
        assert_eq!(
            passes(one, 1),
            [
                Forward(0),
                Forward(1),
                Backward(0),
                Forward(2),
                Backward(1),
                Forward(3),
                Backward(2),
                Backward(3)
            ]
        );
        for schedule in [PipelineSchedule::GPipe, one] {
            for (stages, micro_batches) in [(2, 1), (2, 8), (3, 4), (4, 2), (5, 16)] {
                for stage in 0..stages {
                    let (mut kept, mut most) = (0_usize, 0);
                    let (mut forward, mut backward) = (0, 0);
                    for pass in schedule.passes(stage, stages, micro_batches) {
                        match pass {
                            Forward(index) => {
                                assert_eq!(index, forward);
                                (forward, kept) = (forward + 1, kept + 1);
                            }
                            Backward(index) => {
                                assert!(index == backward && index < forward);
                                (backward, kept) = (backward + 1, kept - 1);
                            }
                        }
                        most = most.max(kept);
                    }
                    assert_eq!((forward, backward), (micro_batches, micro_batches));
                    assert_eq!(most, schedule.kept(stage, stages, micro_batches));
                }
            }
        }
    }

    /// Each pass takes one unit of time and begins when its stage is free and its input is there: the diagrams above.
    #[test]
    fn the_bubble_is_that_of_the_formula() {
        let simulated = |schedule: PipelineSchedule, stages: usize, micro_batches: usize| {
            let passes: Vec<_> = (0..stages)
                .map(|stage| schedule.passes(stage, stages, micro_batches))
                .collect();
            let (mut next, mut free) = (vec![0; stages], vec![0; stages]);
            // When the passes of each stage end.
            let mut forward = vec![vec![None; micro_batches]; stages];
            let mut backward = forward.clone();
            while next.iter().any(|&at| at < 2 * micro_batches) {
                for stage in 0..stages {
                    let Some(&pass) = passes[stage].get(next[stage]) else {
                        continue;
                    };
                    let ready = match pass {
                        Forward(_) if stage == 0 => Some(0),
                        Forward(index) => forward[stage - 1][index],
                        Backward(index) if stage + 1 == stages => forward[stage][index],
                        Backward(index) => backward[stage + 1][index],
                    };
                    let Some(ready) = ready else { continue };
                    let end = free[stage].max(ready) + 1;
                    match pass {
                        Forward(index) => forward[stage][index] = Some(end),
                        Backward(index) => backward[stage][index] = Some(end),
                    }
                    free[stage] = end;
                    next[stage] += 1;
                }
            }
            let time = *free.iter().max().expect("a stage") as f64;
            1.0 - 2.0 * micro_batches as f64 / time
        };
        for schedule in [
            PipelineSchedule::GPipe,
            PipelineSchedule::OneForwardOneBackward,
        ] {
            for (stages, micro_batches) in [(2, 1), (2, 4), (3, 4), (4, 2), (4, 32)] {
                let found = simulated(schedule, stages, micro_batches);
                let expected = bubble(stages, micro_batches);
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{schedule} {stages} {micro_batches}: {found}"
                );
            }
        }
    }
}
