//! `OneDeviceStrategy`: one replica on one device, without communication. Useful to run a program for several devices on
//! one of them. Keras: `tf.distribute.OneDeviceStrategy`.

use stratoscope_diagnostics::Result;

use super::distribution::{Distribution, Storing};
use super::{Handle, Strategy, StrategyKind, handle};
use crate::device::DeviceSpec;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

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

/// What it says of itself.
pub(super) struct OneDevice;

impl Distribution for OneDevice {
    fn type_name(&self) -> &'static str {
        "OneDeviceStrategy"
    }

    fn name(&self) -> &'static str {
        "one_device"
    }

    fn storing(&self) -> Storing {
        Storing::Copies
    }

    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let label = strategy.label();
        let why = format!("made in the scope of `{label}`, which has one device");
        Kind::whole(VariableKind::Local, why, vec![0])
    }

    fn step(&self, _strategy: &Strategy) -> String {
        "One device computes the whole batch forward and backward, and updates its weights. Nothing is sent.".to_owned()
    }
}
