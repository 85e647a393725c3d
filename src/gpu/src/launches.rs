//! Counts what a GPU is asked to do: kernels launched, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cubecl::logging::{LaunchObservation, LaunchObserver};

/// Kernels launched in a while, each as often as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// By the name of the kernel's function, without its path.
    pub by_kernel: BTreeMap<String, usize>,
}

impl Launches {
    /// All of them.
    pub fn total(&self) -> usize {
        self.by_kernel.values().sum()
    }
}

#[derive(Default)]
struct Counter(Mutex<Launches>);

impl LaunchObserver for Counter {
    fn launched(&self, kernel: &'static str) {
        let mut launches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *launches.by_kernel.entry(short(kernel)).or_default() += 1;
    }
}

/// `a::b::Kernel<c::D>` is `Kernel`; a module that is named like its kernel's function is that function.
fn short(kernel: &str) -> String {
    let path = kernel.split('<').next().unwrap_or(kernel);
    let mut parts = path.rsplit("::");
    let last = parts.next().unwrap_or(path);
    match (last.chars().next(), parts.next()) {
        (Some(first), Some(module)) if first.is_uppercase() => format!("{module}::{last}"),
        _ => last.to_owned(),
    }
}

/// The kernels that all devices of the process are asked to launch while `work` runs. burn queues operations: the work
/// must end with a read or a synchronization, and begin after one.
pub fn count_launches<T>(work: impl FnOnce() -> T) -> (T, Launches) {
    let counter = Arc::new(Counter::default());
    let observed = LaunchObservation::new(counter.clone());
    let result = work();
    drop(observed);
    let launches = counter.0.lock().unwrap_or_else(PoisonError::into_inner);
    (result, launches.clone())
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_short() {
        assert_eq!(
            short("a::sums::sum_columns::SumColumns<f32>"),
            "sum_columns::SumColumns"
        );
        assert_eq!(short("plain"), "plain");
    }
}
