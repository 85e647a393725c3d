//! `OneDeviceStrategy`: one replica on one device, without communication. Useful to run a program for several devices on
//! one of them. Keras: `tf.distribute.OneDeviceStrategy`.

use stratoscope_diagnostics::Result;

use super::{Handle, Strategy, StrategyKind, handle};
use crate::device::DeviceSpec;

/// A handle of a strategy with one replica. A clone is another handle of the same strategy.
#[derive(Clone)]
pub struct OneDeviceStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl OneDeviceStrategy {
    /// The strategy on this device, whose backend is started now.
    ///
    /// # Errors
    /// SC0906 for a device that is not there, SC0907 for one that does not start.
    pub fn new(device: impl Into<DeviceSpec>) -> Result<Self> {
        let device = device.into().resolve()?;
        let (strategy, _handle) = Strategy::register(StrategyKind::OneDevice, vec![device]);
        Ok(Self { strategy, _handle })
    }
}

handle!(OneDeviceStrategy);
