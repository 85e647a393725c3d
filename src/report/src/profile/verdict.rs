//! [`verdict`]: what limits the steps of a run, from measured numbers alone, and what to change.
//!
//! Five limits are times in which nothing of the step is computed, so that their share is what a step would save without them:
//! waiting for data, exchanging gradients, waiting for the slowest replica or stage, the waits that the schedule of a pipeline
//! makes, and the host's work beside the step. The largest
//! of them is the verdict if it is at least [`WORTH_CHANGING`] of the step. Else the computing itself is the limit, and the roofline
//! says of which kind it is (Williams, Waterman and Patterson 2009, "Roofline: an insightful visual performance model"): the
//! time cannot be less than `max(FLOPs / peak FLOP/s, bytes / bandwidth)`. The larger of the two is the limit, unless the step takes
//! more than [`DISPATCH_FACTOR`] times as long as both: then the operations are too small for the device.

use super::numbers::{percent, rate};

/// The share of a step from which on a wait is what limits it.
pub const WORTH_CHANGING: f64 = 0.15;
/// How many times longer than its roofline a step takes whose operations are too small.
pub const DISPATCH_FACTOR: f64 = 10.0;

/// What limits a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The next batch is not ready.
    Input,
    /// The host's work beside the step: callbacks, validation, checkpoints, snapshots.
    Host,
    /// Operations too small for the device: the time goes into starting them.
    Dispatch,
    /// Reading and writing memory.
    Memory,
    /// Arithmetic.
    Compute,
    /// Exchanging gradients between replicas.
    Communication,
    /// One replica is slower than the others, or has more to compute; in a pipeline one stage.
    Imbalance,
    /// The stages of a pipeline wait for each other at the begin and at the end of a batch.
    Bubble,
}

impl Limit {
    /// The name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Host => "host",
            Self::Dispatch => "dispatch",
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Imbalance => "imbalance",
            Self::Bubble => "bubble",
        }
    }
}

/// What a replica or a stage did in a step, on average.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaTime {
    /// The name of its device.
    pub device: String,
    /// Seconds of its passes, without those in which a stage waits for another.
    pub seconds: f64,
    /// The positions of its texts, padding included; rows where they are numbers.
    pub positions: f64,
}

/// How the stages of a pipeline worked together in a step, on average.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// How many a replica has.
    pub count: usize,
    /// The micro-batches of a batch.
    pub micro_batches: usize,
    /// Seconds in which even the stage that computes longest waits for others.
    pub waiting: f64,
}

/// What the verdict is made of: the means over the measured steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Seconds of a step.
    pub step: f64,
    /// Seconds in which it waits for its data.
    pub data: f64,
    /// Seconds of its forward and backward passes, those of the slowest replica.
    pub passes: f64,
    /// Of these, the seconds in which the host waits for a device that computes by itself; 0 on the CPU.
    pub device_wait: f64,
    /// Seconds of the exchange.
    pub exchange: f64,
    /// Seconds of the update.
    pub update: f64,
    /// Seconds of the rest.
    pub host: f64,
    /// What most of the rest is.
    pub host_is: String,
    /// Its replicas, or the stages of a pipeline.
    pub replicas: Vec<ReplicaTime>,
    /// How the stages of a pipeline work together.
    pub stages: Option<Stages>,
    /// FLOPs of its passes, on all replicas.
    pub flops: f64,
    /// Bytes that passes and update move at least.
    pub bytes: f64,
    /// FLOP/s that the machine reaches in a large matrix product; 0 if it is not known.
    pub peak: f64,
    /// Bytes per second that it reaches in a copy, read and written; 0 if it is not known.
    pub bandwidth: f64,
    /// Whether the device computes by itself while the host goes on.
    pub on_gpu: bool,
}

/// What limits a step, and what to change.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What limits it.
    pub limit: Limit,
    /// The share of the step that this takes.
    pub share: f64,
    /// One sentence: the limit, the number that shows it, and what to change.
    pub sentence: String,
}

impl Measured {
    /// The seconds that the mean replica or stage waits for the slowest.
    pub fn waiting_for_slowest(&self) -> f64 {
        let seconds = self.replicas.iter().map(|it| it.seconds);
        let slowest = seconds.clone().fold(0.0, f64::max);
        match self.replicas.len() {
            0 | 1 => 0.0,
            count => slowest - seconds.sum::<f64>() / count as f64,
        }
    }

    fn arithmetic(&self) -> f64 {
        positive(self.flops / self.peak)
    }

    fn moving(&self) -> f64 {
        positive(self.bytes / self.bandwidth)
    }
}

/// Not a number, infinite or negative: nothing is known.
fn positive(value: f64) -> f64 {
    match value.is_finite() {
        true => value.max(0.0),
        false => 0.0,
    }
}

/// What limits a step with these numbers.
pub fn verdict(measured: &Measured) -> Verdict {
    let exchange = match measured.replicas.len() {
        0 | 1 => 0.0,
        _ => measured.exchange,
    };
    let bubble = measured.stages.as_ref().map_or(0.0, |it| it.waiting);
    let waits = [
        (Limit::Input, measured.data),
        (Limit::Communication, exchange),
        (Limit::Imbalance, measured.waiting_for_slowest()),
        (Limit::Bubble, bubble),
        (Limit::Host, measured.host),
    ];
    let share = |seconds: f64| positive(seconds / measured.step);
    let largest = waits
        .into_iter()
        .fold((Limit::Input, 0.0), |largest, (limit, seconds)| {
            match share(seconds) > largest.1 {
                true => (limit, share(seconds)),
                false => largest,
            }
        });
    let (limit, share) = match largest.1 >= WORTH_CHANGING {
        true => largest,
        false => computing(measured, share),
    };
    Verdict {
        limit,
        share,
        sentence: sentence(measured, limit, share),
    }
}

/// Which kind of computing is the limit, and its share of the step.
fn computing(measured: &Measured, share: impl Fn(f64) -> f64) -> (Limit, f64) {
    let (arithmetic, moving) = (measured.arithmetic(), measured.moving());
    let (passes, busy) = (measured.passes, measured.passes + measured.update);
    // A host that waits for its device has started the operations in time.
    let is_ahead = measured.on_gpu && measured.device_wait >= passes / 2.0;
    let roof = arithmetic.max(moving);
    if roof > 0.0 && busy > DISPATCH_FACTOR * roof && !is_ahead {
        return (Limit::Dispatch, share(busy));
    }
    match moving > arithmetic {
        true => (Limit::Memory, share(busy)),
        false => (Limit::Compute, share(busy)),
    }
}

fn sentence(measured: &Measured, limit: Limit, share: f64) -> String {
    let part = percent(share);
    match limit {
        Limit::Input => format!(
            "The input is the limit: a step waits {part} of its time for its batch. Make the source faster: tokenize once (a data \
             set in memory instead of a stream), shorten the texts, or prepare the columns ahead."
        ),
        Limit::Communication => format!(
            "Communication is the limit: a step exchanges gradients for {part} of its time. Exchange less often \
             (`gradient_accumulation_steps`, `sync_every`), or give each replica a larger batch."
        ),
        Limit::Imbalance => imbalance(measured, &part),
        Limit::Bubble => bubble(measured, &part),
        Limit::Host => format!(
            "The host is the limit: {part} of a step is work beside it, most of it {}. Do it less often: a larger \
             `steps_per_execution`, `validation_freq` or `every`, fewer callbacks.",
            match measured.host_is.as_str() {
                "" => "between the phases",
                it => it,
            }
        ),
        Limit::Dispatch => {
            let times = (measured.passes + measured.update)
                / measured
                    .arithmetic()
                    .max(measured.moving())
                    .max(f64::MIN_POSITIVE);
            format!(
                "Dispatch is the limit: the step takes {times:.0} times as long as its arithmetic and its memory need, because its \
                 operations are small. Use a larger `batch_size`, or longer texts in a batch (`group_by_length`)."
            )
        }
        Limit::Memory => format!(
            "Memory is the limit: the step moves at least {} in {part} of its time, and a copy reaches {}. Use a larger \
             `batch_size`, which reads the weights once for more examples, or a policy of 16 bits.",
            rate(measured.bytes / (measured.passes + measured.update), "B/s"),
            rate(measured.bandwidth, "B/s"),
        ),
        Limit::Compute => {
            let reached = measured.flops / measured.passes;
            format!(
                "Arithmetic is the limit: forward and backward reach {}, {} of what a large product reaches here. Compute less \
                 (shorter texts, `group_by_length`, frozen layers, a smaller model), or use a faster device or 16 bits.",
                rate(reached, "FLOP/s"),
                percent(reached / measured.peak)
            )
        }
    }
}

/// Which replica the others wait for, and whether it has more to compute.
fn imbalance(measured: &Measured, part: &str) -> String {
    let slowest = measured
        .replicas
        .iter()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (name, own) = slowest.map_or(("", 0.0), |it| (it.device.as_str(), it.positions));
    if measured.stages.is_some() {
        return format!(
            "Imbalance is the limit: the stages wait {part} of a step for the slowest, `{name}`. Give it fewer layers \
             (`PipelineStrategy::stages`); if it has as many as the others, its device is slower or shared with other work."
        );
    }
    let count = measured.replicas.len().max(1) as f64;
    let mean = measured.replicas.iter().map(|it| it.positions).sum::<f64>() / count;
    // A tenth more positions than the mean explain that it takes longer.
    let change = match own > 1.1 * mean {
        true => format!(
            "It has {} of the positions of the mean replica: use `group_by_length`, or a `batch_size` that the replicas divide evenly.",
            percent(own / mean)
        ),
        false => "It has no more to compute than the others: its device is slower or shared with other work. Leave it out, or use a \
                  strategy without waits (`ParameterServerStrategy`)."
            .to_owned(),
    };
    format!(
        "Imbalance is the limit: the replicas wait {part} of a step for the slowest, `{name}`. {change}"
    )
}

/// What the schedule of a pipeline alone makes its stages wait, beside what was measured.
fn bubble(measured: &Measured, part: &str) -> String {
    let known = measured.stages.as_ref();
    let (stages, micro_batches) = known.map_or((0, 0), |it| (it.count, it.micro_batches));
    format!(
        "The bubble of the pipeline is the limit: its stages wait {part} of a step for each other; the schedule alone makes {stages} stages with \
         {micro_batches} micro-batches wait {} of their time. Cut a batch in more micro-batches (`micro_batches`, with a larger `batch_size` \
         where they become small), or use fewer stages.",
        percent(stratoscope_strategy::strategy::bubble(
            stages,
            micro_batches
        ))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a second on a machine with 100 GFLOP/s and 10 GB/s, in which arithmetic fills the passes.
    fn balanced() -> Measured {
        Measured {
            step: 1.0,
            data: 0.02,
            passes: 0.85,
            update: 0.08,
            host: 0.05,
            flops: 60e9,
            bytes: 2e9,
            peak: 100e9,
            bandwidth: 10e9,
            replicas: vec![replica("cpu:0", 0.85, 1000.0)],
            ..Measured::default()
        }
    }

    fn replica(device: &str, seconds: f64, positions: f64) -> ReplicaTime {
        ReplicaTime {
            device: device.to_owned(),
            seconds,
            positions,
        }
    }

    #[track_caller]
    fn check(measured: &Measured, limit: Limit, parts: &[&str]) {
        let found = verdict(measured);
        assert_eq!(found.limit, limit, "{found:?}");
        assert!((0.0..=1.0).contains(&found.share), "{found:?}");
        for part in parts {
            assert!(found.sentence.contains(part), "{part}: {}", found.sentence);
        }
    }

    #[test]
    fn arithmetic_that_fills_the_step_is_the_limit() {
        check(&balanced(), Limit::Compute, &["70.6 GFLOP/s", "71 %"]);
    }

    #[test]
    fn planted_waits_are_named() {
        let late = Measured {
            step: 2.0,
            data: 1.02,
            ..balanced()
        };
        check(&late, Limit::Input, &["waits 51 %"]);
        let host = Measured {
            step: 1.4,
            host: 0.45,
            host_is: "callbacks after a step".to_owned(),
            ..balanced()
        };
        check(&host, Limit::Host, &["32 %", "callbacks after a step"]);
        let two = vec![
            replica("cpu:0", 0.85, 1000.0),
            replica("cpu:1", 0.85, 1000.0),
        ];
        let exchange = Measured {
            step: 1.5,
            exchange: 0.5,
            replicas: two,
            ..balanced()
        };
        check(&exchange, Limit::Communication, &["33 %", "sync_every"]);
    }

    #[test]
    fn the_slowest_replica_is_named_with_the_reason() {
        let slow = Measured {
            replicas: vec![
                replica("cpu:0", 0.25, 1000.0),
                replica("cpu:1", 0.85, 1000.0),
            ],
            ..balanced()
        };
        check(
            &slow,
            Limit::Imbalance,
            &["30 %", "`cpu:1`", "its device is slower"],
        );
        let uneven = Measured {
            replicas: vec![
                replica("cpu:0", 0.85, 3000.0),
                replica("cpu:1", 0.25, 1000.0),
            ],
            ..balanced()
        };
        check(
            &uneven,
            Limit::Imbalance,
            &["`cpu:0`", "150 %", "group_by_length"],
        );
    }

    #[test]
    fn stages_that_wait_differ_from_a_stage_that_is_slow() {
        let stages = |seconds: [f64; 2], waiting| Measured {
            replicas: vec![
                replica("cpu:0", seconds[0], 1000.0),
                replica("cpu:1", seconds[1], 1000.0),
            ],
            stages: Some(Stages {
                count: 2,
                micro_batches: 3,
                waiting,
            }),
            ..balanced()
        };
        let few = stages([0.5, 0.5], 0.35);
        check(
            &few,
            Limit::Bubble,
            &["35 %", "2 stages with 3 micro-batches", "25 %"],
        );
        let heavy = stages([0.75, 0.15], 0.1);
        check(
            &heavy,
            Limit::Imbalance,
            &["30 %", "`cpu:0`", "fewer layers"],
        );
    }

    #[test]
    fn the_roofline_tells_memory_from_arithmetic_and_small_operations() {
        let memory = Measured {
            flops: 1e9,
            bytes: 7e9,
            ..balanced()
        };
        check(&memory, Limit::Memory, &["7.53 GB/s", "10.0 GB/s"]);
        let small = Measured {
            flops: 1e9,
            bytes: 0.1e9,
            ..balanced()
        };
        check(&small, Limit::Dispatch, &["93 times"]);
        // A host that waits for its device is not what the device waits for.
        let waits = Measured {
            on_gpu: true,
            device_wait: 0.6,
            ..small
        };
        check(&waits, Limit::Compute, &[]);
    }

    #[test]
    fn an_exchange_of_one_replica_and_unknown_rates_limit_nothing() {
        let alone = Measured {
            exchange: 0.5,
            ..balanced()
        };
        check(&alone, Limit::Compute, &[]);
        let unknown = Measured {
            peak: 0.0,
            bandwidth: 0.0,
            ..balanced()
        };
        check(&unknown, Limit::Compute, &[]);
        check(&Measured::default(), Limit::Compute, &[]);
    }
}
