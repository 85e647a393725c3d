//! What a training step costs on so many workers: a model of a few numbers.
//!
//! A step is computed, its gradients are reduced, and the chief sends rows and takes outputs. The three follow each other:
//! the all-reduce begins when the outputs of all workers have come.
//!
//! With P bytes of gradients, a link of bandwidth B and latency L between neighbors, and n workers, an all-reduce takes
//!
//! | pattern | seconds |
//! | --- | --- |
//! | chain, n = 2 | (m + 1) · t + 2 · L |
//! | chain, n > 2 | (m + n − 3 + max(m, n)) · t + 2 · (n − 1) · L |
//! | ring | 2 · (n − 1) / n · P / B + 2 · (n − 1) · L |
//! | tree | 2 · ⌈log₂ n⌉ · (P / B + L) |
//! | hierarchical | a ring of the g workers of each machine, and a ring of the n / g machines |
//!
//! where the chain sends m pieces and t is the time of a piece on a link. The link from worker 0 to worker 1 carries every
//! piece twice, unless there are two workers; the last sum goes on to the worker before the last. The formulas of ring and
//! tree are those of Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH",
//! with the tree of this crate, which sends whole buffers.

/// A connection between two neighbors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    /// Bytes in a second, in each of both directions.
    pub bandwidth: f64,
    /// Seconds from the begin of sending to the end of receiving, for a message without content.
    pub latency: f64,
}

impl Link {
    /// The seconds of so many bytes.
    pub(super) fn seconds(&self, bytes: f64) -> f64 {
        bytes / self.bandwidth
    }

    /// A ring of `members` that reduces so many bytes.
    fn ring(&self, members: f64, bytes: f64) -> f64 {
        match members > 1.0 {
            true => 2.0 * (members - 1.0) * (self.seconds(bytes) / members + self.latency),
            false => 0.0,
        }
    }
}

/// The pattern of an all-reduce between workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalingPattern {
    /// What workers of this library do.
    Chain,
    /// A textbook ring.
    Ring,
    /// A binary tree that sends whole buffers.
    Tree,
    /// A ring inside each machine, and a ring of machines.
    Hierarchical,
}

impl ScalingPattern {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chain, Self::Ring, Self::Tree, Self::Hierarchical];

    /// Its name: `chain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::Hierarchical => "hierarchical",
        }
    }
}

/// How many links the chain's time on a link is counted for: see the table of the module.
pub(super) fn chain_turns(workers: usize, pieces: f64) -> f64 {
    let count = workers as f64;
    match workers {
        0 | 1 => 0.0,
        2 => pieces + 1.0,
        _ => pieces + count - 3.0 + pieces.max(count),
    }
}

/// The hops that follow each other in an all-reduce over a chain or ring.
pub(super) fn hops(workers: usize) -> f64 {
    2.0 * workers.saturating_sub(1) as f64
}

/// The numbers of the model. All times are seconds, all sizes bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CostModel {
    /// Forward and backward pass, of a worker with a core of its own if `cores` is set.
    pub seconds_per_example: f64,
    /// The optimizer's update, in each step.
    pub seconds_per_update: f64,
    /// Examples of a step: of each worker, or of all.
    pub examples: Examples,
    /// What one worker adds to an all-reduce.
    pub gradient_bytes: f64,
    /// A piece of the chain.
    pub piece_bytes: f64,
    /// 1, or less with `sync_every`.
    pub exchanges_per_step: f64,
    /// Between two neighbors.
    pub link: Link,
    /// Processor time for sending, receiving and adding a byte.
    pub cpu_per_byte: f64,
    /// What the chief needs for each other worker in a step: rows out, outputs in.
    pub seconds_per_worker: f64,
    /// All workers share so many cores; none: each has a machine of its own.
    pub cores: Option<usize>,
    /// The workers of a machine, and the link between them.
    pub machine: Option<(usize, Link)>,
}

/// Examples of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Examples {
    /// So many for each worker, however many workers there are.
    EachWorker(f64),
    /// So many for all workers together.
    Together(f64),
}

impl Examples {
    /// Those of the worker that has the most.
    fn most(self, workers: usize) -> f64 {
        match self {
            Self::EachWorker(examples) => examples,
            Self::Together(examples) => (examples / workers as f64).ceil(),
        }
    }

    fn together(self, workers: usize) -> f64 {
        match self {
            Self::EachWorker(examples) => examples * workers as f64,
            Self::Together(examples) => examples,
        }
    }
}

/// The parts of a step, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepCost {
    pub computing: f64,
    pub exchange: f64,
    pub chief: f64,
}

impl StepCost {
    pub fn seconds(&self) -> f64 {
        self.computing + self.exchange + self.chief
    }
}

/// How many times slower work is that workers do at the same time on shared cores.
pub(super) fn sharing(workers: usize, cores: Option<usize>) -> f64 {
    let cores = cores.map_or(workers, |cores| cores.max(1));
    (workers as f64 / cores as f64).max(1.0)
}

impl CostModel {
    /// The step on so many workers.
    pub fn step(&self, workers: usize, pattern: ScalingPattern) -> StepCost {
        let computing =
            self.examples.most(workers) * self.seconds_per_example + self.seconds_per_update;
        StepCost {
            computing: computing * sharing(workers, self.cores),
            exchange: self.exchanges_per_step * self.all_reduce(workers, pattern),
            chief: self.seconds_per_worker * workers.saturating_sub(1) as f64,
        }
    }

    /// Examples of all workers in a second.
    pub fn examples_per_second(&self, workers: usize, pattern: ScalingPattern) -> f64 {
        self.examples.together(workers) / self.step(workers, pattern).seconds()
    }

    fn all_reduce(&self, workers: usize, pattern: ScalingPattern) -> f64 {
        if workers < 2 {
            return 0.0;
        }
        let (bytes, link) = (self.gradient_bytes, self.link);
        let on_links = match pattern {
            ScalingPattern::Chain => {
                let pieces = self.pieces();
                let piece = link.seconds(bytes / pieces);
                chain_turns(workers, pieces) * piece + hops(workers) * link.latency
            }
            ScalingPattern::Ring => link.ring(workers as f64, bytes),
            ScalingPattern::Tree => {
                let levels = workers.next_power_of_two().ilog2();
                2.0 * f64::from(levels) * (link.seconds(bytes) + link.latency)
            }
            ScalingPattern::Hierarchical => {
                let (inside, within) = self.machine.unwrap_or((1, link));
                let inside = inside.clamp(1, workers);
                let machines = workers as f64 / inside as f64;
                within.ring(inside as f64, bytes) + link.ring(machines, bytes)
            }
        };
        on_links.max(self.processor_seconds(workers))
    }

    /// The pieces of the gradients in the chain.
    pub fn pieces(&self) -> f64 {
        (self.gradient_bytes / self.piece_bytes).ceil().max(1.0)
    }

    /// What the processor needs for an all-reduce. All links together carry the gradients 2 · (n − 1) times; a worker in the
    /// middle sends and receives them twice, in two threads.
    fn processor_seconds(&self, workers: usize) -> f64 {
        let once = self.cpu_per_byte * self.gradient_bytes;
        match (self.cores, workers) {
            (Some(cores), _) => hops(workers) * once / cores.max(1) as f64,
            (None, 2) => once / 2.0,
            (None, _) => once,
        }
    }
}
