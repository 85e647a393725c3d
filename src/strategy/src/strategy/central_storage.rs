//! `CentralStorageStrategy`: every variable is stored once, on the first device, and all devices compute. Replicas fetch
//! the variables before each batch and send their gradients back, where one optimizer applies their mean. Compared with
//! mirroring, it saves memory (one copy instead of one per replica) and costs a transfer of all parameters per batch. Keras:
//! `tf.distribute.experimental.CentralStorageStrategy`, which keeps the variables on the CPU.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::mirrored::distinct;
use super::{Handle, IntoReplicaCount, Strategy, StrategyKind, handle, split};
use crate::device::{DeviceSpec, LogicalDevice, default_device};
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// A handle of a strategy whose first device has the variables. A clone is another handle of the same one.
#[derive(Clone)]
pub struct CentralStorageStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl CentralStorageStrategy {
    /// Splits the default device into `count` logical devices, 1 to 64; the first has the variables.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(count: impl IntoReplicaCount) -> Result<Self> {
        let count = count.checked()?;
        Ok(Self::with(split(&default_device()?, count)))
    }

    /// One replica on each of these devices; the first has the variables: `on([cpu(0), cuda(0)])`.
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

    fn with(devices: Vec<LogicalDevice>) -> Self {
        let (strategy, _handle) = Strategy::register(StrategyKind::CentralStorage, devices);
        Self { strategy, _handle }
    }
}

handle!(CentralStorageStrategy);

/// What it says of itself.
pub(super) struct CentralStorage;

impl Distribution for CentralStorage {
    fn type_name(&self) -> &'static str {
        "CentralStorageStrategy"
    }

    fn name(&self) -> &'static str {
        "central_storage"
    }

    fn storing(&self) -> Storing {
        Storing::Once
    }

    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, replicas) = (strategy.label(), strategy.replicas());
        let home = replicas.first().map_or("", |device| device.name.as_str());
        let each = text::count(replicas.len(), "replica");
        let why = format!(
            "made in the scope of `{label}`: one copy on {home} for its {each}, fetched before each batch"
        );
        Kind::whole(VariableKind::Central, why, vec![0])
    }

    fn step(&self, strategy: &Strategy) -> String {
        format!(
            "The weights are on the first device. Each of {} fetches them, computes its share of the batch, and sends \
             its gradients back, where their mean makes one update.",
            text::count(strategy.replicas().len(), "replica"),
        )
    }
}
