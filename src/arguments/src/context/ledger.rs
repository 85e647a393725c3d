//! The models that are alive, how much each holds, and of which memory: what a new run has to do without.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use stratoscope_strategy::{BackendKind, LogicalDevice};

/// A model's entry in the list of those that are alive. Its clones share it; it goes with the last.
#[derive(Debug)]
pub struct Ledger {
    name: String,
    held: Mutex<Held>,
    /// The list that it is in.
    alive: AliveModels,
}

/// How much a model holds, and of which memories.
#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    memories: Vec<Memory>,
}

/// A memory that models share: a physical device's, or a part of it that was declared.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    device: String,
    limit: Option<u64>,
}

impl Memory {
    fn of(device: &LogicalDevice) -> Self {
        let name = match device.backend {
            // Shares of the processor have numbers.
            BackendKind::Flex => "cpu",
            // A share of a GPU is called `cuda:0/1`.
            _ => device.name.split('/').next().unwrap_or_default(),
        };
        let shares = device.shared_by as u64;
        Self {
            device: name.to_owned(),
            limit: device
                .memory_limit
                .map(|bytes| bytes.saturating_mul(shares)),
        }
    }

    /// Whether what another model holds is missing here. A declared part is a part for itself.
    fn has_less_by(&self, other: &Self) -> bool {
        self.device == other.device && (self.limit.is_none() || self.limit == other.limit)
    }
}

/// The models that are alive.
pub(crate) type AliveModels = Arc<Mutex<Vec<Weak<Ledger>>>>;

impl Ledger {
    /// Enters a model that holds nothing yet.
    pub fn open(name: String, alive: &AliveModels) -> Arc<Self> {
        let entry = Arc::new(Self {
            name,
            held: Mutex::default(),
            alive: Arc::clone(alive),
        });
        let mut alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
        alive.retain(|entry| entry.strong_count() > 0);
        alive.push(Arc::downgrade(&entry));
        entry
    }

    /// It holds this much now, on these devices together.
    pub fn set(&self, bytes: u64, devices: &[LogicalDevice]) {
        let memories = devices.iter().map(Memory::of).collect();
        *self.held() = Held { bytes, memories };
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other models that are alive and have part of the same memory, the largest first.
pub fn others(own: &Arc<Ledger>) -> Vec<(String, u64)> {
    let alive = own.alive.lock().unwrap_or_else(PoisonError::into_inner);
    let entries = alive.iter().filter_map(Weak::upgrade);
    let here = &own.held().memories;
    let mut others: Vec<(String, u64)> = entries
        .filter(|entry| !Arc::ptr_eq(entry, own))
        .filter_map(|entry| {
            let held = entry.held();
            let is_here = |other| here.iter().any(|memory: &Memory| memory.has_less_by(other));
            let bytes = held.memories.iter().any(is_here).then_some(held.bytes)?;
            Some((entry.name.clone(), bytes))
        })
        .collect();
    others.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    others
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{AsStrategy, DeviceSpec, MirroredStrategy, cpu};

    use super::*;

    fn device(spec: DeviceSpec) -> LogicalDevice {
        spec.resolve().expect("the processor is there")
    }

    #[test]
    fn a_model_that_is_gone_holds_nothing() {
        let devices = [device(cpu(0))];
        let alive = AliveModels::default();
        let own = Ledger::open("own".to_owned(), &alive);
        own.set(1, &devices);
        let other = Ledger::open("a model of the tests".to_owned(), &alive);
        other.set(9, &devices);
        let held = || {
            let all = others(&own);
            all.into_iter()
                .find(|(name, _)| name == "a model of the tests")
        };
        assert_eq!(held().map(|(_, bytes)| bytes), Some(9));
        drop(other);
        assert_eq!(held(), None);
    }

    #[test]
    fn models_share_the_memory_that_they_are_on() {
        let (whole, small) = (cpu(0), cpu(0).memory_limit(7));
        let share = |own: &DeviceSpec, other: &DeviceSpec| {
            let [own, other] = [own, other].map(|spec| Memory::of(&device(spec.clone())));
            own.has_less_by(&other)
        };
        assert!(share(&whole, &whole) && share(&whole, &small) && share(&small, &small));
        assert!(!share(&small, &whole), "a part of its own");
        assert!(!share(&small, &cpu(0).memory_limit(8)));
        // Two shares of a declared part are that part.
        let strategy = MirroredStrategy::logical_on(small.clone(), 2).expect("two devices");
        let halves = strategy.strategy().replicas().to_vec();
        assert!(Memory::of(&device(small)).has_less_by(&Memory::of(&halves[1])));
        assert_eq!(halves[1].capacity_bytes, Some((7 << 20) / 2));
    }
}
