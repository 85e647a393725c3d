//! What a run needs of memory, before its first batch.
//!
//! Weights, gradients and moments are exact: the shapes are known. Activations are estimated from the sizes of the
//! network, and card and table say so. Nothing here allocates or refuses: an estimate warns.

use stratoscope_diagnostics::rules::{MemoryHeldByOlderModels, NotEnoughMemory};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::placement::bytes;
use stratoscope_strategy::{BackendKind, LogicalDevice};

use crate::context::ledger::others;
use crate::context::warnings::notice;
use crate::network::{Files, Network};
use crate::optimizer::Slot;
use crate::report::memory_plan::{MemoryPlan, Part};
use crate::run::state::ModelState;

/// The share of the memory that older models may hold before they are mentioned.
const WORTH_MENTIONING: f64 = 0.25;

/// The plan of a run, and what to say about it. SC0601, SC0602.
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

pub(crate) fn plan<N: Network>(
    state: &ModelState<N>,
    batch_size: usize,
    length: usize,
) -> MemoryPlan {
    let replicas = state.step.replicas.len();
    let weights: u64 = state
        .step
        .replicas
        .records()
        .iter()
        .map(|record| record.bytes)
        .sum();
    let trained: u64 = state.trainable().map(|record| record.bytes).sum();
    let compiled = state.compiled.as_ref();
    let slots = compiled.map_or_else(
        || vec![Slot::M, Slot::V],
        |compiled| compiled.optimizer.slots(),
    );
    let (averages, moments): (Vec<Slot>, Vec<Slot>) =
        slots.into_iter().partition(|&slot| slot == Slot::Average);
    let stepped = state.step.steps_since_compile() > 0;
    let share = batch_size.div_ceil(replicas);
    let activations = state.files.activation_bytes(share, length);
    let count = state.trainable().count();
    let mut parts = vec![
        Part {
            name: "weights",
            bytes: weights,
            why: "every variable, float32".to_owned(),
            is_held: true,
        },
        Part {
            name: "gradients",
            bytes: trained,
            why: format!("one per trained variable, {count} of them; freed after each step"),
            is_held: false,
        },
        Part {
            name: "moments",
            bytes: trained * moments.len() as u64,
            why: match moments.is_empty() {
                true => "the optimizer keeps none".to_owned(),
                false => {
                    let names: Vec<&str> = moments.iter().map(|slot| slot.name()).collect();
                    format!("{}, per trained weight", names.join(", "))
                }
            },
            is_held: stepped,
        },
        Part {
            name: "activations",
            bytes: activations.unwrap_or(0),
            why: match activations {
                Some(_) => format!("estimated, for {share} × {length} tokens on a replica"),
                None => "not known for this network".to_owned(),
            },
            is_held: false,
        },
    ];
    if !averages.is_empty() {
        let average = Part {
            name: "average",
            bytes: trained,
            why: "of each trained weight, for `use_ema`".to_owned(),
            is_held: stepped,
        };
        parts.insert(3, average);
    }
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

/// What is free on the devices of the replicas, beside what models hold there. Where a limit was declared it
/// is the rest of that. A GPU does not tell; there it is what is not ours.
fn free(devices: &[LogicalDevice], held: u64) -> Option<u64> {
    let on_processor = |device: &LogicalDevice| device.backend == BackendKind::Flex;
    let available = match devices.iter().all(on_processor) {
        true => available(),
        false => devices.iter().map(|device| device.capacity_bytes).sum(),
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
