//! `TpuStrategy`: a simulation of a TPU's topology, for teaching. There is no TPU and no XLA: eight
//! logical cores, each with a copy of every variable, are computed by the processor, and their
//! all-reduce uses a ring, as the chips of a TPU are connected. Transfers are real; times are not those of a
//! TPU. Keras: `tf.distribute.TPUStrategy`.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::{Handle, Settings, Strategy, StrategyKind, cross_device_ops, explain, handle, split};
use crate::collective::CrossDeviceOps;
use crate::device::{DeviceKind, LogicalDevice, cpu};
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// The cores of a TPU v2-8 or v3-8: four chips with two cores each.
const CORES: usize = 8;

/// A handle of a strategy on a simulated TPU. A clone is another handle of the same strategy. By default, gradients are
/// summed by a ring ([`CrossDeviceOps::Ring`]).
#[derive(Clone)]
pub struct TpuStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl TpuStrategy {
    /// Eight simulated cores, computed by the processor.
    ///
    /// # Errors
    /// None on a machine with a processor.
    pub fn simulated() -> Result<Self> {
        let core = |device: LogicalDevice| LogicalDevice {
            name: format!("tpu:{}", device.id),
            kind: DeviceKind::Simulated,
            description: format!(
                "simulated: core {} of chip {}, computed by the CPU",
                device.id % 2,
                device.id / 2
            ),
            ..device
        };
        let cores = split(&cpu(0).resolve()?, CORES).into_iter().map(core);
        let settings = Settings {
            cross_device_ops: CrossDeviceOps::Ring,
            ..Settings::default()
        };
        let cores = cores.collect();
        let (strategy, _handle) =
            Strategy::register_with(StrategyKind::Tpu, cores, Vec::new(), settings);
        Ok(Self { strategy, _handle })
    }
}

handle!(TpuStrategy);
cross_device_ops!(TpuStrategy);

/// What it says of itself.
pub(super) struct Tpu;

impl Distribution for Tpu {
    fn type_name(&self) -> &'static str {
        "TpuStrategy"
    }

    fn name(&self) -> &'static str {
        "tpu"
    }

    fn storing(&self) -> Storing {
        Storing::Copies
    }

    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, replicas) = (strategy.label(), strategy.replicas().len());
        let cores = text::count(replicas, "simulated core");
        let why = format!("made in the scope of `{label}`: a copy on each of its {cores}");
        Kind::whole(VariableKind::Mirrored, why, (0..replicas).collect())
    }

    fn step(&self, strategy: &Strategy) -> String {
        explain::all_reduced(strategy)
    }

    fn devices(&self, strategy: &Strategy) -> Option<String> {
        let cores = text::count(strategy.replicas().len(), "simulated TPU core");
        Some(format!("{cores}, computed by the CPU"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_that_it_is_simulated() {
        let strategy = TpuStrategy::simulated().expect("eight logical devices");
        let shown = strategy.to_string();
        assert!(
            shown.ends_with("8 simulated TPU cores, computed by the CPU"),
            "{shown}"
        );
        assert_eq!(strategy.replicas().len(), 8);
        for core in strategy.replicas() {
            assert_eq!(core.kind, DeviceKind::Simulated);
            assert!(
                core.description.starts_with("simulated"),
                "{}",
                core.description
            );
        }
    }
}
