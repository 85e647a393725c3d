//! What a run has measured, as numbers of the cost model.

use stratoscope_workers::Tally;

use super::cost::{chain_turns, hops, sharing};

/// What the latest run of a strategy says about the costs of its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub workers: usize,
    pub steps: u64,
    /// Of each worker in a step.
    pub examples: f64,
    /// All seconds are those of a worker with cores of its own: where the workers of the run shared cores, the time is
    /// divided by how many of them took turns.
    pub seconds_per_example: f64,
    pub seconds_per_update: f64,
    pub gradient_bytes: f64,
    pub exchanges_per_step: f64,
    /// Bytes in a second between neighbors, as far as the all-reduce used them.
    pub bandwidth: f64,
    pub latency: f64,
    pub cpu_per_byte: f64,
    pub seconds_per_worker: f64,
    /// The cores that all workers shared; none: they were on several machines.
    pub cores: Option<usize>,
}

impl Measured {
    /// `None` before a run in which at least two workers have made a step and an all-reduce. `piece_bytes`: of a piece of the
    /// chain.
    pub fn of(tally: &Tally, cores: Option<usize>, piece_bytes: f64) -> Option<Self> {
        let exchanges = tally.exchanges;
        let (workers, count) = (exchanges.members, exchanges.count as f64);
        let latency = tally.hop?.as_secs_f64();
        let steps = tally.members.first()?.steps;
        if workers < 2 || exchanges.count == 0 || steps == 0 {
            return None;
        }
        let examples: u64 = tally.members.iter().map(|done| done.examples).sum();
        let examples = examples as f64 / (steps as f64 * workers as f64);
        if examples == 0.0 {
            return None;
        }
        let in_step = |seconds: f64| seconds / steps as f64;
        // The others wait for the slowest.
        let busy = tally.members.iter().map(|done| done.busy).max()?;
        let busy = in_step(busy.as_secs_f64());
        let update = in_step(tally.updating.as_secs_f64());
        let exchange = exchanges.wall.as_secs_f64();
        let rest = in_step(tally.wall.as_secs_f64() - exchange) - busy;
        let turns = sharing(workers, cores);
        let gradient_bytes = exchanges.bytes as f64 / count;
        let pieces = (gradient_bytes / piece_bytes).ceil().max(1.0);
        let on_links = exchange / count - hops(workers) * latency;
        // Even an all-reduce that is all latency has moved its bytes.
        let piece = on_links.max(0.01 * exchange / count) / chain_turns(workers, pieces);
        // The chief sends its values once and the sums to worker 1; of two workers, nobody needs the sums from it.
        let passed = if workers == 2 { 1.0 } else { 1.5 };
        let processor = exchanges.processor.as_secs_f64() / count;
        Some(Self {
            workers,
            steps,
            examples,
            seconds_per_example: (busy - update).max(0.0) / examples / turns,
            seconds_per_update: update / turns,
            gradient_bytes,
            exchanges_per_step: count / steps as f64,
            bandwidth: gradient_bytes / pieces / piece,
            latency,
            cpu_per_byte: processor / (passed * gradient_bytes),
            seconds_per_worker: rest.max(0.0) / (workers - 1) as f64,
            cores,
        })
    }
}
