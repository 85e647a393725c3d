//! The memory that a run needs, computed before its first batch.
//!
//! Weights, gradients and moments are exact: the shapes are known. Activations are estimated from the sizes of the
//! network, and card and table say so. Nothing is allocated here. Too little memory is a warning, since the sum contains
//! an estimate.

use stratoscope_diagnostics::rules::{MemoryHeldByOlderModels, NotEnoughMemory};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::placement::bytes;
use stratoscope_strategy::{BackendKind, LogicalDevice, VariableRecord};

use crate::context::ledger::others;
use crate::context::warnings::notice;
use crate::network::{Files, Network};
use crate::optimizer::Slot;
use crate::report::memory_plan::{MemoryPlan, Part};
use crate::run::state::ModelState;

/// The share of the memory that older models may hold before they are mentioned.
const WORTH_MENTIONING: f64 = 0.25;

/// Warns if a run needs more memory than is free (SC0601), or if older models hold much of it (SC0602).
///
/// # Errors
/// Either, where it is denied.
pub(crate) fn check<N: Network>(
    state: &ModelState<N>,
    batch_size: usize,
    length: usize,
) -> Result<()> {
    let plan = plan(state, batch_size, length);
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

/// What a run with batches of `batch_size` examples of `length` tokens needs, on all replicas.
pub(crate) fn plan<N: Network>(
    state: &ModelState<N>,
    batch_size: usize,
    length: usize,
) -> MemoryPlan {
    let replicas = state.step.replicas.len();
    let parts = parts(state, batch_size.div_ceil(replicas), length);
    let devices = state.step.replicas.devices();
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
        others,
        capacity: devices.iter().map(|device| device.capacity_bytes).sum(),
        free: free(devices, held + others),
    }
}

/// What one replica needs for `share` examples of `length` tokens.
fn parts<N: Network>(state: &ModelState<N>, share: usize, length: usize) -> Vec<Part> {
    let bytes_of = |records: &mut dyn Iterator<Item = &VariableRecord>| -> u64 {
        records.map(|record| record.bytes).sum()
    };
    let weights = bytes_of(&mut state.step.replicas.records().iter());
    let trained = bytes_of(&mut state.trainable());
    let count = state.trainable().count();
    let slots = match &state.compiled {
        Some(compiled) => compiled.optimizer.slots(),
        None => vec![Slot::M, Slot::V],
    };
    let (averages, moments): (Vec<Slot>, Vec<Slot>) =
        slots.into_iter().partition(|&slot| slot == Slot::Average);
    let stepped = state.step.steps_since_compile() > 0;
    let activations = state.files.activation_bytes(share, length);
    let part = |name, bytes, why, is_held| Part {
        name,
        bytes,
        why,
        is_held,
    };
    let mut parts = vec![
        part(
            "weights",
            weights,
            "every variable, float32".to_owned(),
            true,
        ),
        part(
            "gradients",
            trained,
            format!("one per trained variable, {count} of them; freed after each step"),
            false,
        ),
        part(
            "moments",
            trained * moments.len() as u64,
            why_moments(&moments),
            stepped,
        ),
    ];
    if !averages.is_empty() {
        let why = "of each trained weight, for `use_ema`".to_owned();
        parts.push(part("average", trained, why, stepped));
    }
    let why = match activations {
        Some(_) => format!("estimated, for {share} × {length} tokens on a replica"),
        None => "not known for this network".to_owned(),
    };
    parts.push(part("activations", activations.unwrap_or(0), why, false));
    parts
}

fn why_moments(moments: &[Slot]) -> String {
    if moments.is_empty() {
        return "the optimizer keeps none".to_owned();
    }
    let names: Vec<&str> = moments.iter().map(|slot| slot.name()).collect();
    format!("{}, per trained weight", names.join(", "))
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
