//! The memory that a run needs, computed before its first batch.
//!
//! Weights, gradients and moments are exact: the shapes are known. What a step needs beside them follows from what the
//! operations keep for the backward pass (`Files::step_memory`); `examples/memory.rs` compares it with what is
//! allocated. Nothing is allocated here. Too little memory is a warning, since what is free changes.

use std::collections::HashMap;

use stratoscope_diagnostics::rules::{MemoryHeldByOlderModels, NotEnoughMemory, OutOfMemory};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::placement::bytes;
use stratoscope_strategy::{BackendKind, LogicalDevice, Shard, StrategyKind};

use crate::state::ModelState;
use stratoscope_arguments::context::ledger::others;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_network::StepShape;
use stratoscope_optim::{Slot, changes_in_place};
use stratoscope_report::inspection::layer_of;
use stratoscope_report::memory_plan::{MemoryPlan, Part, StepMemory};
use stratoscope_step::exchange::ExchangeMode;

/// The share of the memory that older models may hold before they are mentioned.
const WORTH_MENTIONING: f64 = 0.25;

/// Warns if a run needs more memory than is free (SC0601), or if older models hold much of it (SC0602).
///
/// # Errors
/// Either, where it is denied.
pub fn check(state: &ModelState, batch_size: usize, length: usize, recompute: bool) -> Result<()> {
    let plan = plan(state, batch_size, length);
    let cheaper = plan.recomputed().filter(|_| !recompute);
    let plan = match recompute {
        true => plan.recomputed().unwrap_or(plan),
        false => plan,
    };
    if !plan.fits() {
        let rule = NotEnoughMemory {
            batch_size,
            length,
            needed: bytes(plan.to_come()),
            free: plan.free.map(bytes).unwrap_or_default(),
            parts: plan
                .parts
                .iter()
                .map(|part| (part.name.to_owned(), bytes(plan.on_all(part))))
                .collect(),
            fits: plan.largest_batch(),
            recomputed: cheaper.map(|plan| (bytes(plan.to_come()), plan.fits())),
            are_copies: are_copies(state),
        };
        notice(rule.diagnostic())?;
    }
    let Some(capacity) = plan.capacity else {
        return Ok(());
    };
    let worth = plan.others as f64 > WORTH_MENTIONING * capacity as f64;
    if plan.others > 0 && (worth || !plan.fits()) {
        let models = others(&state.ledger).into_iter();
        let rule = MemoryHeldByOlderModels {
            models: models.map(|(name, held)| (name, bytes(held))).collect(),
            held: bytes(plan.others),
            capacity: bytes(capacity),
        };
        notice(rule.diagnostic())?;
    }
    Ok(())
}

/// What is to be computed at once, for a plan of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtOnce {
    /// Examples of a batch.
    pub examples: usize,
    /// Tokens of an example.
    pub length: usize,
    /// Whether layers are computed again in the backward pass.
    pub recompute: bool,
    /// It is a part of a batch: the gradients of the parts before are there.
    pub is_part: bool,
}

impl AtOnce {
    /// What it needs.
    pub fn plan(self, state: &ModelState) -> MemoryPlan {
        let plan = plan(state, self.examples, self.length);
        let plan = match self.recompute {
            true => plan.recomputed().unwrap_or(plan),
            false => plan,
        };
        let compiled = state.compiled.as_ref();
        // With accumulation the plan has them.
        let accumulates = compiled.is_some_and(|it| it.gradient_accumulation_steps > 1);
        match self.is_part && !accumulates {
            true => plan.beside_gradients(trained(state, "")),
            false => plan,
        }
    }
}

/// Whether the devices with a declared limit have room for this. It is the plan that decides, so that the answer is the
/// same at every run and nothing is measured; devices without a limit have room.
///
/// # Errors
/// SC0607 for the first device that has not.
pub(crate) fn admit(state: &ModelState, work: AtOnce) -> Result<()> {
    // Of a pipeline each stage is taken to need an equal part.
    let devices = state.step.replicas.computing();
    let limits = devices
        .iter()
        .filter_map(|device| Some((device, device.memory_limit?)));
    let Some((device, limit)) = limits.min_by_key(|(_, limit)| *limit) else {
        return Ok(());
    };
    let plan = work.plan(state);
    let replicas = devices.len() as u64;
    let others = plan.others / replicas;
    let needed = (plan.total() / replicas).saturating_add(others);
    if needed <= limit {
        return Ok(());
    }
    let mut parts: Vec<(String, String)> = plan
        .parts
        .iter()
        .map(|part| (part.name.to_owned(), bytes(part.bytes)))
        .collect();
    if others > 0 {
        parts.push(("other models".to_owned(), bytes(others)));
    }
    let examples = text::count(work.examples, "example");
    let rule = OutOfMemory {
        device: device.name.clone(),
        work: match work.length {
            0 => examples,
            length => format!("{examples} × {length} tokens"),
        },
        limit: Some((bytes(needed), bytes(limit))),
        reason: None,
        parts,
        is_update: false,
        are_copies: are_copies(state),
    };
    Err(rule.error())
}

/// Whether replicas keep copies of moments and weights that they could divide.
pub(crate) fn are_copies(state: &ModelState) -> bool {
    let strategy = state.step.replicas.strategy();
    let is_mirrored = strategy.is_some_and(|it| it.kind() == StrategyKind::Mirrored);
    is_mirrored && state.step.replicas.len() > 1 && state.step.replicas.shard().is_none()
}

/// What a run with batches of `batch_size` examples of `length` tokens needs, on all replicas.
pub fn plan(state: &ModelState, batch_size: usize, length: usize) -> MemoryPlan {
    let replicas = state.step.replicas.len();
    let share = batch_size.div_ceil(replicas);
    // Layers whose weights are gathered for each direction are computed once more.
    let in_parts = state.step.replicas.gathers_in_parts();
    let steps = steps(state, share, length, in_parts);
    let recomputed = match state.step.replicas.structure().can_recompute() && !in_parts {
        true => steps_known(state, share, length, true),
        false => None,
    };
    let parts = parts(state, share, length, &steps);
    let devices = state.step.replicas.computing();
    let others = others(&state.ledger).iter().map(|(_, bytes)| bytes).sum();
    let held: u64 = parts
        .iter()
        .filter(|part| part.is_held)
        .map(|part| part.bytes.saturating_mul(replicas as u64))
        .sum();
    MemoryPlan {
        batch_size,
        length,
        replicas,
        parts,
        steps,
        recomputed,
        others,
        capacity: devices.iter().map(|device| device.capacity_bytes).sum(),
        free: free(devices, held + others),
    }
}

fn trained(state: &ModelState, prefix: &str) -> u64 {
    let records = state.trainable();
    records
        .filter(|record| record.name.starts_with(prefix))
        .map(|record| record.bytes)
        .sum()
}

/// What a step of one replica needs beside weights and moments, at the times that may need the most.
fn steps(state: &ModelState, share: usize, length: usize, recompute: bool) -> Vec<StepMemory> {
    let only_gradients = || StepMemory {
        when: "when all gradients are there",
        activations: 0,
        gradients: trained(state, ""),
    };
    steps_known(state, share, length, recompute).unwrap_or_else(|| vec![only_gradients()])
}

/// A training step of one replica.
fn shape<'a>(
    state: &ModelState,
    (examples, length): (usize, usize),
    recompute: bool,
    trained: &'a dyn Fn(&str) -> u64,
) -> StepShape<'a> {
    let devices = state.step.replicas.computing();
    let on_cpu = (devices.iter()).all(|device| device.backend == BackendKind::Flex);
    let in_bfloat16 = on_cpu && state.step.policy == Policy::MixedBfloat16;
    let on_gpus = (devices.iter()).all(|device| device.backend != BackendKind::Flex);
    StepShape {
        examples,
        length,
        on_cpu,
        rounds: state.step.policy.precision().half().is_some() && !in_bfloat16,
        in_bfloat16,
        half_on_gpu: on_gpus && state.step.policy.precision().half().is_some(),
        recompute,
        trained,
    }
}

/// What some encoder layers keep of a micro-batch of this many rows and tokens a row until its backward pass, and the
/// embeddings where they are with them; where the network knows.
pub(crate) fn of_segment(
    state: &ModelState,
    micro_batch: (usize, usize),
    layers: usize,
    has_embeddings: bool,
) -> Option<u64> {
    let of = |prefix: &str| trained(state, prefix);
    let shape = shape(state, micro_batch, state.step.recomputed, &of);
    state.files.segment_memory(&shape, layers, has_embeddings)
}

/// The same, where the network knows.
pub(crate) fn steps_known(
    state: &ModelState,
    share: usize,
    length: usize,
    recompute: bool,
) -> Option<Vec<StepMemory>> {
    let devices = state.step.replicas.devices();
    let on_cpu = (devices.iter()).all(|device| device.backend == BackendKind::Flex);
    let of = |prefix: &str| trained(state, prefix);
    let shape = shape(state, (share, length), recompute, &of);
    let mut steps = state.files.step_memory(&shape)?;
    let compiled = state.compiled.as_ref();
    if compiled.is_some_and(|compiled| compiled.gradient_accumulation_steps > 1) {
        // Those of the micro-batches before are there all the time.
        for step in &mut steps {
            step.gradients += of("");
        }
    }
    let exchanges = ExchangeMode::of(&state.step.replicas, sync_every(state));
    if devices.len() > 1 && exchanges == ExchangeMode::AllReduce {
        // One variable at a time, which is once more there: where a ring joins its parts, or where the sum is copied to.
        let largest = state.trainable().map(|record| record.bytes).max();
        steps.push(StepMemory {
            when: "when the gradients of the replicas are averaged",
            activations: 0,
            gradients: of("") + largest.unwrap_or(0).div_ceil(devices.len() as u64),
        });
    }
    let in_place = compiled.is_some_and(|compiled| {
        let optimizer = &compiled.optimizer;
        changes_in_place(&optimizer.rule, optimizer.clipping)
    });
    if !on_cpu && !in_place {
        // Tensor operations make new weights and moments before the old ones are freed; on the CPU they are changed in place.
        let largest = state.trainable().map(|record| record.bytes).max();
        steps.push(StepMemory {
            when: "when the optimizer changes the largest variable",
            activations: 0,
            gradients: of("") + 3 * largest.unwrap_or(0),
        });
    }
    Some(steps)
}

fn sync_every(state: &ModelState) -> u64 {
    let compiled = state.compiled.as_ref();
    compiled.map_or(1, |compiled| compiled.sync_every)
}

/// What one replica needs for `share` examples of `length` tokens.
fn parts(state: &ModelState, share: usize, length: usize, steps: &[StepMemory]) -> Vec<Part> {
    let weights = state.step.replicas.records().iter();
    let weights = weights.map(|record| record.bytes).sum();
    let trained = trained(state, "");
    let count = state.trainable().count();
    let slots = match &state.compiled {
        Some(compiled) => compiled.optimizer.slots(),
        None => vec![Slot::M, Slot::V],
    };
    let (averages, moments): (Vec<Slot>, Vec<Slot>) =
        slots.into_iter().partition(|&slot| slot == Slot::Average);
    let stepped = state.step.steps_since_compile() > 0;
    let part = |name, bytes, why: String, is_held| Part {
        name,
        bytes,
        why,
        is_held,
    };
    // What replicas divide among them.
    let replicas = state.step.replicas.len() as u64;
    let shard = state.step.replicas.shard();
    let divided = |bytes: u64, from: Shard| match shard >= Some(from) {
        true => bytes.div_ceil(replicas),
        false => bytes,
    };
    let why = match shard >= Some(Shard::Parameters) {
        true => format!("every variable, float32, in {replicas} pieces; gathered to compute"),
        false => "every variable, float32".to_owned(),
    };
    let stored = divided(weights, Shard::Parameters);
    let mut parts = vec![part("weights", stored, why, true)];
    if shard >= Some(Shard::Parameters) {
        let why = "of the others' pieces, while they are computed with".to_owned();
        parts.push(part("gathered weights", gathered(state), why, false));
    }
    let numbers = |shape: &[usize]| {
        moments
            .iter()
            .map(|slot| slot.numbers(shape))
            .sum::<usize>()
    };
    let bytes = state
        .trainable()
        .map(|record| 4 * numbers(&record.shape) as u64);
    let bytes = divided(bytes.sum(), Shard::Optimizer);
    parts.push(part("moments", bytes, why_moments(&moments), stepped));
    if !averages.is_empty() {
        let why = "of each trained weight, for `use_ema`".to_owned();
        let bytes = divided(trained, Shard::Optimizer);
        parts.push(part("average", bytes, why, stepped));
    }
    let why = format!("one per trained variable, {count} of them; freed after each step");
    parts.push(part("gradients", trained, why, false));
    let activations = steps.iter().map(|step| step.activations).max().unwrap_or(0);
    let why = match activations {
        0 => "not known for this network".to_owned(),
        _ => format!("for {share} × {length} tokens on a replica; freed while gradients are made"),
    };
    parts.push(part("activations", activations, why, false));
    parts
}

/// What a replica that stores its rows of the variables has of others' at once: of the variables that are gathered as a whole,
/// and of the largest layer.
fn gathered(state: &ModelState) -> u64 {
    let replicas = &state.step.replicas;
    let mut layers: HashMap<&str, u64> = HashMap::new();
    let mut whole = 0;
    for record in replicas.records() {
        let others = record.bytes - record.bytes / replicas.len() as u64;
        match replicas.is_in_parts(record.param) {
            true => *layers.entry(layer_of(&record.name)).or_default() += record.bytes,
            false => whole += others,
        }
    }
    whole + layers.values().max().copied().unwrap_or(0)
}

fn why_moments(moments: &[Slot]) -> String {
    if moments.is_empty() {
        return "the optimizer keeps none".to_owned();
    }
    let names: Vec<&str> = moments.iter().map(|slot| slot.name()).collect();
    match moments.iter().any(|slot| slot.is_factored()) {
        true => format!(
            "{}: of a matrix, a number per row and one per column",
            names.join(", ")
        ),
        false => format!("{}, per trained weight", names.join(", ")),
    }
}

/// Free bytes on the devices of the replicas, of which models hold `held`: the rest of the declared limit where there is
/// one, else what the system has available. A GPU cannot be asked: its whole capacity less what models hold.
fn free(devices: &[LogicalDevice], held: u64) -> Option<u64> {
    let on_processor = |device: &LogicalDevice| device.backend == BackendKind::Flex;
    let available = match devices.iter().all(on_processor) {
        true => available(),
        false => {
            let capacity: Option<u64> = devices.iter().map(|device| device.capacity_bytes).sum();
            capacity.map(|bytes| bytes.saturating_sub(held))
        }
    };
    let declared: Option<u64> = devices.iter().map(|device| device.memory_limit).sum();
    match (declared.map(|limit| limit.saturating_sub(held)), available) {
        (Some(rest), Some(available)) => Some(rest.min(available)),
        (rest, available) => rest.or(available),
    }
}

/// What the system would still give to processes, in bytes; on Linux only. A container's limit counts
/// where it is less.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    let of_machine = kilobytes * 1024;
    let number =
        |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
    let of_container = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(limit, used)| limit.saturating_sub(used));
    Some(of_container.map_or(of_machine, |left| left.min(of_machine)))
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{AsStrategy, MirroredStrategy, cpu};

    use super::*;

    #[test]
    fn a_declared_limit_is_what_is_free() {
        let strategy = MirroredStrategy::logical_on(cpu(0).memory_limit(7), 2);
        let strategy = strategy.expect("two devices");
        let halves = strategy.strategy().replicas().to_vec();
        assert_eq!(free(&halves, 1 << 20), Some(6 << 20));
        assert_eq!(free(&halves, 8 << 20), Some(0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_says_what_is_available() {
        assert!(available().is_some_and(|bytes| bytes > 1_000_000));
    }
}
