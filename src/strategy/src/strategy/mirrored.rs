//! `MirroredStrategy`: a copy of every variable on each of several devices; gradients are averaged
//! over the copies at every optimizer step. Keras: `tf.distribute.MirroredStrategy`.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::{Handle, Shard, Strategy, StrategyKind, cross_device_ops, explain, handle, split};
use crate::device::choice::choice;
use crate::device::{DeviceSpec, LogicalDevice, default_device};
use crate::problem;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// An upper limit: more replicas on one device only fill its memory with copies.
pub(super) const MOST_REPLICAS: usize = 64;

/// A handle of a strategy with a replica per device. A clone is another handle of the same one. By default,
/// gradients are summed on the first device ([`crate::CrossDeviceOps::Centralized`]).
#[derive(Clone)]
pub struct MirroredStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl MirroredStrategy {
    /// All hardware of the default device's kind: CUDA's GPUs, else wgpu's, else the processor. Where the default
    /// device was named with its number (`STRATOSCOPE_DEVICE=cuda:1`), that one alone.
    ///
    /// # Errors
    /// SC0907 for a device that does not start, SC0712 for a default device that is not there.
    pub fn new() -> Result<Self> {
        Self::on(choice()?.alike())
    }

    /// Splits the default device, which is the processor where there is no GPU, into `count` logical devices, 1 to
    /// 64: each has its own copy of the variables, all share the device's cores and memory.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(count: impl IntoReplicaCount) -> Result<Self> {
        let count = count.checked()?;
        Ok(Self::with(split(&default_device()?, count)))
    }

    /// [`Self::logical`] for another device: `logical_on(wgpu(0), 2)`.
    ///
    /// # Errors
    /// SC0915 for a count outside 1 to 64, SC0906 and SC0907 for the device.
    pub fn logical_on(device: impl Into<DeviceSpec>, count: impl IntoReplicaCount) -> Result<Self> {
        let count = count.checked()?;
        Ok(Self::with(split(&device.into().resolve()?, count)))
    }

    /// One replica on each of these devices: `on([cuda(0), cuda(1)])`. They may be of different
    /// kinds; tensors are then copied through the host.
    ///
    /// # Errors
    /// SC0915 for no device or the same device twice, SC0906 for one that is not there, SC0907
    /// for one that does not start.
    pub fn on<I>(devices: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: Into<DeviceSpec>,
    {
        Ok(Self::with(distinct(devices)?))
    }

    /// Divides what training keeps among the replicas, for models that are built from now on. Losses and weights are those
    /// of the strategy without it, on the CPU to the last bit.
    ///
    /// ```
    /// use stratoscope_strategy::{MirroredStrategy, Shard};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let strategy = MirroredStrategy::logical(4)?.shard(Shard::Optimizer)?;
    /// assert!(strategy.to_string().ends_with("4 logical CPU devices, optimizer sharded (ZeRO-1)"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0915 for a strategy with one replica, which has nothing to divide.
    pub fn shard(self, shard: Shard) -> Result<Self> {
        if self.strategy.replicas().len() < 2 {
            let what = "number of replicas that divide the state of training";
            return Err(problem::bad_size(what, 1, "at least 2"));
        }
        self.strategy.settings().shard = Some(shard);
        Ok(self)
    }

    fn with(devices: Vec<LogicalDevice>) -> Self {
        let (strategy, _handle) = Strategy::register(StrategyKind::Mirrored, devices);
        Self { strategy, _handle }
    }
}

/// These devices, found and started.
///
/// # Errors
/// SC0915 for no device or the same device twice, SC0906 for one that is not there, SC0907 for
/// one that does not start.
pub(super) fn distinct<I>(devices: I) -> Result<Vec<LogicalDevice>>
where
    I: IntoIterator,
    I::Item: Into<DeviceSpec>,
{
    let specs: Vec<DeviceSpec> = devices.into_iter().map(Into::into).collect();
    if specs.is_empty() || specs.len() > MOST_REPLICAS {
        let expects = format!("from 1 to {MOST_REPLICAS}");
        return Err(problem::bad_size(
            "number of devices",
            specs.len(),
            &expects,
        ));
    }
    for (index, spec) in specs.iter().enumerate() {
        let name = spec.to_string();
        if specs[..index].iter().any(|other| other.to_string() == name) {
            let given = format!("{spec} twice");
            let expects = "a list without repetition: `logical_on` splits one device";
            return Err(problem::bad_size("devices", given, expects));
        }
    }
    specs.iter().map(DeviceSpec::resolve).collect()
}

handle!(MirroredStrategy);
cross_device_ops!(MirroredStrategy);

/// What it says of itself.
pub(super) struct Mirrored;

impl Distribution for Mirrored {
    fn type_name(&self) -> &'static str {
        "MirroredStrategy"
    }

    fn name(&self) -> &'static str {
        "mirrored"
    }

    fn storing(&self) -> Storing {
        Storing::Copies
    }

    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, replicas) = (strategy.label(), strategy.replicas().len());
        let each = text::count(replicas, "replica");
        let why = format!("made in the scope of `{label}`: a copy on each of its {each}");
        Kind::whole(VariableKind::Mirrored, why, (0..replicas).collect())
    }

    fn step(&self, strategy: &Strategy) -> String {
        explain::all_reduced(strategy)
    }
}

/// A number of replicas in any integer type, so that `logical(-1)` gives a diagnostic instead of a type error.
#[diagnostic::on_unimplemented(
    message = "expected a number of devices or processes, got `{Self}`",
    label = "a whole number, such as 2"
)]
pub trait IntoReplicaCount {
    /// The number if it is one of 1 to 64.
    ///
    /// # Errors
    /// SC0915 otherwise.
    fn checked(self) -> Result<usize>;
}

macro_rules! into_replica_count {
    ($($integer:ty),*) => {$(
        impl IntoReplicaCount for $integer {
            fn checked(self) -> Result<usize> {
                usize::try_from(self)
                    .ok()
                    .filter(|count| (1..=MOST_REPLICAS).contains(count))
                    .ok_or_else(|| {
                        let expects = format!("from 1 to {MOST_REPLICAS}");
                        problem::bad_size("number of logical devices", self, &expects)
                    })
            }
        }
    )*};
}

into_replica_count!(
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceKind, cpu};

    #[test]
    fn counts_are_checked() {
        let check = |found: Result<MirroredStrategy>, message: &str| {
            let error = found.expect_err("outside the range");
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                ("SC0915", message)
            );
        };
        let name = "number of logical devices";
        check(
            MirroredStrategy::logical(0),
            &format!("the {name} is 0, but must be from 1 to 64"),
        );
        check(
            MirroredStrategy::logical(-3),
            &format!("the {name} is -3, but must be from 1 to 64"),
        );
        check(
            MirroredStrategy::logical(65),
            &format!("the {name} is 65, but must be from 1 to 64"),
        );
        check(
            MirroredStrategy::logical(u64::MAX),
            &format!("the {name} is 18446744073709551615, but must be from 1 to 64"),
        );
        let none: [DeviceSpec; 0] = [];
        check(
            MirroredStrategy::on(none),
            "the number of devices is 0, but must be from 1 to 64",
        );
        let error = MirroredStrategy::on([cpu(0), cpu(0)]).expect_err("twice the same");
        assert!(error.message.contains("cpu:0 twice"), "{error}");
        let error = MirroredStrategy::on(["cpu:0", "/gpu:1"]).expect_err("no such name");
        assert_eq!(error.code, "SC0906");
    }

    #[test]
    fn logical_devices_share_one() {
        let strategy = MirroredStrategy::logical(4).expect("four logical devices");
        let names: Vec<&str> = strategy
            .replicas()
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]);
        for (id, device) in strategy.replicas().iter().enumerate() {
            assert_eq!(
                (device.id, device.kind, device.shared_by),
                (id, DeviceKind::Logical, 4)
            );
        }
    }

    #[test]
    fn one_processor_is_one_replica() {
        let strategy = MirroredStrategy::on([cpu(0)]).expect("a processor");
        assert_eq!(strategy.replicas().len(), 1);
        assert_eq!(strategy.replicas()[0].kind, DeviceKind::Physical);
    }
}
