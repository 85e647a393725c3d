//! Counts what a GPU is asked to do, kernels launched by name, and times them on the device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cubecl::future::block_on;
use cubecl::logging::{
    LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};

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

/// What the launches of one kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTime {
    /// Launches that were measured.
    pub launches: usize,
    /// Their time, one after the other.
    pub time: Duration,
}

/// Kernels timed in a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchTimes {
    /// By the name of the kernel's function, without its path.
    pub by_kernel: BTreeMap<String, KernelTime>,
    /// Launches whose time the device did not report: they are in no sum.
    pub unmeasured: usize,
    /// Whether all times are the device's own. Else some are the host's, submission included.
    pub by_device: bool,
}

impl LaunchTimes {
    /// All launches that were measured.
    pub fn launches(&self) -> usize {
        self.by_kernel.values().map(|it| it.launches).sum()
    }

    /// The time that the device worked: kernels of one stream do not overlap.
    pub fn time(&self) -> Duration {
        self.by_kernel.values().map(|it| it.time).sum()
    }
}

/// Keeps the measurements unread, so that kernels run one right after the other as they do without it.
#[derive(Default)]
struct Timer(Mutex<Vec<(&'static str, ProfileDuration)>>);

impl LaunchObserver for Timer {
    fn launched(&self, _kernel: &'static str) {}

    fn timing(&self) -> TimingRequest {
        TimingRequest::Deferred
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        let mut profiles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        profiles.push((kernel, profile));
    }
}

/// The kernels that all devices of the process run during `work`, timed. Each launch costs the host more than it does unmeasured, so the
/// time of `work` itself is not that of other runs. The work must end with a read or a synchronization.
pub fn time_launches<T>(work: impl FnOnce() -> T) -> (T, LaunchTimes) {
    let timer = Arc::new(Timer::default());
    let observed = LaunchObservation::new(timer.clone());
    let result = work();
    drop(observed);
    let profiles = std::mem::take(&mut *timer.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut times = LaunchTimes {
        by_device: true,
        ..LaunchTimes::default()
    };
    for (kernel, profile) in profiles {
        times.by_device &= profile.timing_method() == TimingMethod::Device;
        match block_on(profile.resolve()) {
            Some(ticks) => {
                let kernel = times.by_kernel.entry(short(kernel)).or_default();
                kernel.launches += 1;
                kernel.time += ticks.duration();
            }
            None => times.unmeasured += 1,
        }
    }
    (result, times)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use super::{count_launches, short, time_launches};

    /// The same launches are counted and timed.
    #[test]
    fn launches_are_timed_on_gpu() {
        let Some(device) = crate::testing::device() else {
            return;
        };
        let work = || {
            let x = Tensor::<2>::ones([64, 64], &device);
            (x.clone() + x).into_data()
        };
        let (_, counted) = count_launches(work);
        let (data, times) = time_launches(work);
        assert!(data.iter::<f32>().all(|value| value == 2.0));
        assert_eq!(times.launches() + times.unmeasured, counted.total());
        assert!(times.launches() == 0 || times.time().as_nanos() > 0);
    }

    #[test]
    fn names_are_short() {
        assert_eq!(
            short("a::sums::sum_columns::SumColumns<f32>"),
            "sum_columns::SumColumns"
        );
        assert_eq!(short("plain"), "plain");
    }
}
