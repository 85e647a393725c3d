//! What a user says for a prediction, and what is taken where nothing is said.

use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::units::bytes;
use stratoscope_workers::chain::PIECE;

use super::cost::{CostModel, Examples, Link};
use super::measured::Measured;
use super::words;
use crate::problem::bad_size;

/// Assumed between machines: 1 Gb/s.
const BANDWIDTH: f64 = 1e9;
/// Assumed between machines: what a message takes over Ethernet, with both programs.
const LATENCY: f64 = 100e-6;
/// Assumed between processes of a machine, in bits.
const BANDWIDTH_INSIDE: f64 = 20e9;
const LATENCY_INSIDE: f64 = 30e-6;
/// Assumed where snapshots go, in bytes.
const DISK: f64 = 200e6;
/// Assumed for a machine. "The Llama 3 Herd of Models" (2024, section 3.3.4) counts 419 unexpected interruptions in 54 days
/// on 16,384 GPUs, eight to a machine: one in 264 days of a machine.
const BETWEEN_FAILURES: f64 = 264.0 * 86_400.0;
/// Assumed until a run that has ended works again.
const RESTART: f64 = 60.0;
/// Assumed in a step of a worker.
const EXAMPLES: f64 = 32.0;

/// What a prediction begins with. What is not set is taken from the latest run of the strategy, or is assumed; the prediction
/// says which. Times are in seconds.
///
/// ```
/// use stratoscope_strategy::ScalingOptions;
///
/// // 10 Gb/s and 20 µs between neighbors, a failure of a machine each 90 days.
/// let options = ScalingOptions::new().bandwidth(10e9).latency(20e-6).mean_time_between_failures(90.0 * 86_400.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalingOptions {
    bandwidth: Option<f64>,
    latency: Option<f64>,
    seconds_per_example: Option<f64>,
    seconds_per_update: Option<f64>,
    seconds_per_worker: Option<f64>,
    gradient_bytes: Option<f64>,
    examples_per_worker: Option<f64>,
    global_batch_size: Option<f64>,
    cores: Option<usize>,
    workers_per_machine: Option<usize>,
    mean_time_between_failures: Option<f64>,
    snapshot_seconds: Option<f64>,
    restart_seconds: Option<f64>,
    any_loss_ends_run: Option<bool>,
}

impl ScalingOptions {
    /// Everything measured or assumed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bits in a second from a worker to the next one, in each direction: `10e9` is 10 Gb/s.
    #[must_use]
    pub fn bandwidth(mut self, bits_per_second: f64) -> Self {
        self.bandwidth = Some(bits_per_second);
        self
    }

    /// Seconds of a message without content from a worker to the next one.
    #[must_use]
    pub fn latency(mut self, seconds: f64) -> Self {
        self.latency = Some(seconds);
        self
    }

    /// Seconds of the forward and backward pass, divided by the examples.
    #[must_use]
    pub fn seconds_per_example(mut self, seconds: f64) -> Self {
        self.seconds_per_example = Some(seconds);
        self
    }

    /// Seconds of the optimizer's update, in each step.
    #[must_use]
    pub fn seconds_per_update(mut self, seconds: f64) -> Self {
        self.seconds_per_update = Some(seconds);
        self
    }

    /// Seconds that the chief needs in a step for each other worker: rows to it, outputs from it.
    #[must_use]
    pub fn seconds_per_worker(mut self, seconds: f64) -> Self {
        self.seconds_per_worker = Some(seconds);
        self
    }

    /// Bytes of the gradients, as they travel.
    #[must_use]
    pub fn gradient_bytes(mut self, bytes: u64) -> Self {
        self.gradient_bytes = Some(bytes as f64);
        self
    }

    /// Examples of each worker in a step, so that the global batch grows with the workers. The default is that of the run.
    #[must_use]
    pub fn examples_per_worker(mut self, examples: usize) -> Self {
        self.examples_per_worker = Some(examples as f64);
        self
    }

    /// Examples of all workers together in a step, however many workers there are.
    #[must_use]
    pub fn global_batch_size(mut self, examples: usize) -> Self {
        self.global_batch_size = Some(examples as f64);
        self
    }

    /// All workers are on one machine and share so many cores, one of which a worker can use. Without it each has a machine.
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Workers of a machine, for the hierarchical pattern.
    #[must_use]
    pub fn workers_per_machine(mut self, workers: usize) -> Self {
        self.workers_per_machine = Some(workers);
        self
    }

    /// The mean of the seconds after which a worker is lost.
    #[must_use]
    pub fn mean_time_between_failures(mut self, seconds: f64) -> Self {
        self.mean_time_between_failures = Some(seconds);
        self
    }

    /// Seconds that a snapshot takes.
    #[must_use]
    pub fn snapshot_seconds(mut self, seconds: f64) -> Self {
        self.snapshot_seconds = Some(seconds);
        self
    }

    /// Seconds until a run that has ended works again.
    #[must_use]
    pub fn restart_seconds(mut self, seconds: f64) -> Self {
        self.restart_seconds = Some(seconds);
        self
    }

    /// Whether the run ends with any worker, as under `mpirun`. Otherwise only the loss of the chief ends it.
    #[must_use]
    pub fn any_loss_ends_run(mut self, ends: bool) -> Self {
        self.any_loss_ends_run = Some(ends);
        self
    }
}

/// Where a number is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalingSource {
    /// From the latest run.
    Measured,
    /// From the options.
    Given,
    /// From neither.
    Assumed,
}

impl ScalingSource {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Given => "given",
            Self::Assumed => "assumed",
        }
    }
}

/// A number of the model, and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingParameter {
    /// What it is: `bandwidth`.
    pub name: &'static str,
    /// With its unit: `1.0 Gb/s`.
    pub value: String,
    /// Where it is from.
    pub source: ScalingSource,
}

/// What failures cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Failures {
    /// Of one worker.
    pub between: f64,
    pub snapshot: f64,
    pub restart: f64,
    pub any_ends_run: bool,
    /// Until a worker that is silent counts as lost.
    pub patience: f64,
}

/// What is known besides options and measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub piece_bytes: f64,
    pub patience: f64,
    pub launched: bool,
}

/// All numbers of a prediction.
pub(super) struct Resolved {
    pub model: CostModel,
    pub failures: Failures,
    pub parameters: Vec<ScalingParameter>,
}

/// Collects the numbers with their names.
struct Taken(Vec<ScalingParameter>);

impl Taken {
    /// The first that is there. `shown` writes it with its unit.
    fn number(
        &mut self,
        name: &'static str,
        (given, measured, assumed): (Option<f64>, Option<f64>, Option<f64>),
        shown: fn(f64) -> String,
    ) -> Result<f64> {
        let found = (given.map(|value| (value, ScalingSource::Given)))
            .or(measured.map(|value| (value, ScalingSource::Measured)))
            .or(assumed.map(|value| (value, ScalingSource::Assumed)));
        let Some((value, source)) = found else {
            return Err(unknown(name));
        };
        self.0.push(ScalingParameter {
            name,
            value: shown(value),
            source,
        });
        Ok(value)
    }
}

/// SC0915, for what nobody has measured.
fn unknown(name: &str) -> Box<Diagnostic> {
    let option = match name {
        "bytes of gradients" => "gradient_bytes",
        _ => "seconds_per_example",
    };
    let expects = "a number above 0, or measured by a `fit!` under this strategy";
    bad_size(option, "not known", expects)
}

impl ScalingOptions {
    /// All numbers, each given, measured or assumed.
    ///
    /// # Errors
    /// SC0915 for a number that is none, or that nobody knows.
    pub(super) fn resolve(&self, measured: Option<&Measured>, facts: Facts) -> Result<Resolved> {
        self.check()?;
        let mut taken = Taken(Vec::new());
        let from = |value: fn(&Measured) -> f64| measured.map(value);
        let seconds_per_example = taken.number(
            "seconds per example",
            (
                self.seconds_per_example,
                from(|it| it.seconds_per_example),
                None,
            ),
            words::time,
        )?;
        let update = (
            self.seconds_per_update,
            from(|it| it.seconds_per_update),
            Some(0.0),
        );
        let seconds_per_update = taken.number("seconds per update", update, words::time)?;
        let examples = self.examples(measured, &mut taken)?;
        let gradient_bytes = taken.number(
            "bytes of gradients",
            (self.gradient_bytes, from(|it| it.gradient_bytes), None),
            |value| bytes(value as u64),
        )?;
        // What processes of one machine measure says nothing about a network.
        let on_network = measured.filter(|it| it.cores.is_none() || self.cores.is_some());
        let link = self.link(on_network, &mut taken)?;
        let worker = (
            self.seconds_per_worker,
            from(|it| it.seconds_per_worker),
            Some(0.0),
        );
        let seconds_per_worker =
            taken.number("chief's time for each worker", worker, words::time)?;
        let machine = self.machine(measured.filter(|it| it.cores.is_some()), &mut taken)?;
        let failures = self.failures(gradient_bytes, facts, &mut taken)?;
        let model = CostModel {
            seconds_per_example,
            seconds_per_update,
            examples,
            gradient_bytes,
            piece_bytes: facts.piece_bytes,
            exchanges_per_step: measured.map_or(1.0, |it| it.exchanges_per_step),
            link,
            cpu_per_byte: measured.map_or(0.0, |it| it.cpu_per_byte),
            seconds_per_worker,
            cores: self.cores,
            machine,
        };
        Ok(Resolved {
            model,
            failures,
            parameters: taken.0,
        })
    }

    fn examples(&self, measured: Option<&Measured>, taken: &mut Taken) -> Result<Examples> {
        let number = |value: f64| words::number(value);
        if self.global_batch_size.is_some() {
            let given = (self.global_batch_size, None, None);
            let all = taken.number("examples of a step, all workers", given, number)?;
            return Ok(Examples::Together(all));
        }
        let each = (
            self.examples_per_worker,
            measured.map(|it| it.examples),
            Some(EXAMPLES),
        );
        let each = taken.number("examples of a step, each worker", each, number)?;
        Ok(Examples::EachWorker(each))
    }

    fn link(&self, measured: Option<&Measured>, taken: &mut Taken) -> Result<Link> {
        let bandwidth = (
            self.bandwidth,
            measured.map(|it| 8.0 * it.bandwidth),
            Some(BANDWIDTH),
        );
        let bandwidth = taken.number("bandwidth", bandwidth, words::bits)?;
        let latency = (self.latency, measured.map(|it| it.latency), Some(LATENCY));
        let latency = taken.number("latency", latency, words::time)?;
        Ok(Link {
            bandwidth: bandwidth / 8.0,
            latency,
        })
    }

    /// The workers of a machine and the link between them.
    fn machine(
        &self,
        measured: Option<&Measured>,
        taken: &mut Taken,
    ) -> Result<Option<(usize, Link)>> {
        let Some(workers) = self.workers_per_machine else {
            return Ok(None);
        };
        let given = (Some(workers as f64), None, None);
        taken.number("workers of a machine", given, words::number)?;
        let bandwidth = (
            None,
            measured.map(|it| 8.0 * it.bandwidth),
            Some(BANDWIDTH_INSIDE),
        );
        let bandwidth = taken.number("bandwidth inside a machine", bandwidth, words::bits)?;
        let latency = (None, measured.map(|it| it.latency), Some(LATENCY_INSIDE));
        let latency = taken.number("latency inside a machine", latency, words::time)?;
        let link = Link {
            bandwidth: bandwidth / 8.0,
            latency,
        };
        Ok(Some((workers, link)))
    }

    fn failures(&self, gradient_bytes: f64, facts: Facts, taken: &mut Taken) -> Result<Failures> {
        let between = taken.number(
            "mean time between failures of a worker",
            (
                self.mean_time_between_failures,
                None,
                Some(BETWEEN_FAILURES),
            ),
            words::time,
        )?;
        // Weights and two moments of float32; gradients may travel in 16 bits.
        let numbers = gradient_bytes / (facts.piece_bytes / PIECE as f64);
        let state = 3.0 * 4.0 * numbers;
        let snapshot = (self.snapshot_seconds, None, Some(state / DISK));
        let snapshot = taken.number("seconds of a snapshot", snapshot, words::time)?;
        let restart = (self.restart_seconds, None, Some(RESTART));
        let restart = taken.number("seconds until a run works again", restart, words::time)?;
        Ok(Failures {
            between,
            snapshot,
            restart,
            any_ends_run: self.any_loss_ends_run.unwrap_or(facts.launched),
            patience: facts.patience,
        })
    }

    /// SC0915 for a number that is none.
    fn check(&self) -> Result<()> {
        let more = [
            ("bandwidth", self.bandwidth),
            ("gradient_bytes", self.gradient_bytes),
            ("examples_per_worker", self.examples_per_worker),
            ("global_batch_size", self.global_batch_size),
            ("cores", self.cores.map(|it| it as f64)),
            (
                "workers_per_machine",
                self.workers_per_machine.map(|it| it as f64),
            ),
            (
                "mean_time_between_failures",
                self.mean_time_between_failures,
            ),
            ("snapshot_seconds", self.snapshot_seconds),
            ("seconds_per_example", self.seconds_per_example),
        ];
        let not_less = [
            ("latency", self.latency),
            ("seconds_per_update", self.seconds_per_update),
            ("seconds_per_worker", self.seconds_per_worker),
            ("restart_seconds", self.restart_seconds),
        ];
        for (name, value) in more {
            if let Some(value) = value.filter(|it| !(it.is_finite() && *it > 0.0)) {
                return Err(bad_size(name, value, "a finite number above 0"));
            }
        }
        for (name, value) in not_less {
            if let Some(value) = value.filter(|it| !(it.is_finite() && *it >= 0.0)) {
                return Err(bad_size(name, value, "a finite number, 0 or more"));
            }
        }
        if self.examples_per_worker.is_some() && self.global_batch_size.is_some() {
            let expects = "left out where `examples_per_worker` is set";
            return Err(bad_size("global_batch_size", "set, too", expects));
        }
        Ok(())
    }
}
