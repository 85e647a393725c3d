//! `CentralStorageStrategy`: every variable is stored once, on the first device, and all devices compute. Replicas fetch
//! the variables before each batch and send their gradients back, where one optimizer applies their mean. Compared with
//! mirroring, it saves memory (one copy instead of one per replica) and costs a transfer of all parameters per batch. Keras:
//! `tf.distribute.experimental.CentralStorageStrategy`, which keeps the variables on the CPU.

use stratoscope_diagnostics::Result;

use super::mirrored::distinct;
use super::{Handle, IntoReplicaCount, Strategy, StrategyKind, handle, split};
use crate::device::{DeviceSpec, LogicalDevice, default_device};

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
