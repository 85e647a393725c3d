//! `ColocatedServersStrategy`: each device computes and is a parameter server too. Every variable is stored once; variables go to the
//! devices in turn, as TensorFlow's `replica_device_setter` assigns them to servers. A device fetches the variables of the others
//! before each batch and sends them its gradients of these, and the mean of all gradients makes one update.
//!
//! For R devices and P bytes that are divided evenly, a device sends its share of the variables to R − 1 others, and the gradients of
//! their shares: 2 · (R − 1)/R · P. This is what it sends in a ring all-reduce. Source: Jiang et al. 2020, "A Unified Architecture for
//! Accelerating Distributed DNN Training in Heterogeneous GPU/CPU Clusters" (BytePS), on servers beside the workers.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::explain::Row;
use super::{Handle, IntoReplicaCount, Strategy, StrategyKind, handle, split};
use crate::device::default_device;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// A handle of a strategy whose devices are workers and servers at once. A clone is another handle of the same one.
#[derive(Clone)]
pub struct ColocatedServersStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl ColocatedServersStrategy {
    /// Splits the default device into `count` logical devices, 1 to 64.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(count: impl IntoReplicaCount) -> Result<Self> {
        let devices = split(&default_device()?, count.checked()?);
        let (strategy, _handle) = Strategy::register(StrategyKind::ColocatedServers, devices);
        Ok(Self { strategy, _handle })
    }
}

handle!(ColocatedServersStrategy);

/// What it says of itself.
pub(super) struct ColocatedServers;

impl Distribution for ColocatedServers {
    fn type_name(&self) -> &'static str {
        "ColocatedServersStrategy"
    }

    fn name(&self) -> &'static str {
        "colocated_servers"
    }

    fn storing(&self) -> Storing {
        Storing::Once
    }

    fn created(&self, strategy: &Strategy, taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, devices) = (strategy.label(), strategy.replicas());
        let home = taken % devices.len().max(1);
        let name = devices.get(home).map_or("", |device| device.name.as_str());
        let each = text::count(devices.len(), "device");
        let why = format!(
            "made in the scope of `{label}`: one copy on {name}; variables go to its {each} in turn"
        );
        Kind::whole(VariableKind::Central, why, vec![home])
    }

    fn step(&self, strategy: &Strategy) -> String {
        let each = text::count(strategy.replicas().len(), "device");
        format!(
            "Each of {each} stores some of the variables. It fetches those of the others, computes its share of the batch, and sends \
             them its gradients of these; the mean of all gradients makes one update where a variable is stored."
        )
    }

    fn bytes(&self, strategy: &Strategy) -> Option<Vec<Row>> {
        let count = strategy.replicas().len();
        let devices = count as f64;
        let sent = format!("2 · {}/{count} · P", count - 1);
        Some(vec![
            Row::new(
                "weights, stored by each device",
                format!("P / {count}"),
                1.0 / devices,
            ),
            Row::new("moments there", format!("2 P / {count}"), 2.0 / devices),
            Row::new("weights, on each device while it computes", "P", 1.0),
            Row::new("gradients there", "P", 1.0),
            Row::new("sent by each device", sent, 2.0 * (devices - 1.0) / devices),
        ])
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::{Linear, LinearConfig};

    use super::super::list::strategy_in;
    use super::*;
    use crate::{AsStrategy, Origin, Replicas};

    /// Four variables of 256 bytes on four devices: P is 1024, so that each device sends 2 · 3/4 · 1024 bytes.
    #[test]
    fn each_device_sends_what_it_sends_in_a_ring() {
        let strategy = ColocatedServersStrategy::logical(4).expect("four logical devices");
        let passive = strategy.strategy();
        let device = passive.replicas()[0].training();
        let layer = |_| LinearConfig::new(8, 8).with_bias(false).init(&device);
        let layers: Vec<Linear> = (0..4).map(layer).collect();
        let replicas = Replicas::place_under(Some(passive), layers, &[], Origin::current());
        let replicas = replicas.expect("there is room");
        let homes = replicas.records().iter().map(|record| record.homes[0]);
        assert_eq!(homes.collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!((replicas.len(), replicas.copies()), (4, 1));
        let planned = replicas.planned_collectives();
        let transfers = || planned.iter().flat_map(|done| &done.transfers);
        for device in 0..4 {
            let sent = transfers().filter(|transfer| transfer.from == device);
            assert_eq!(sent.map(|transfer| transfer.bytes).sum::<u64>(), 1536);
        }
    }

    #[test]
    fn it_says_what_it_is() {
        let strategy = ColocatedServersStrategy::logical(4).expect("four logical devices");
        let label = strategy.strategy().label();
        assert!(label.starts_with("colocated_servers#"), "{label}");
        let shown = format!("ColocatedServersStrategy `{label}`: 4 logical CPU devices");
        assert_eq!(strategy.to_string(), shown);
        assert!(strategy.explain().to_plain().contains("2 · 3/4 · P"));
        assert_eq!(strategy_in(&strategy), Some(strategy.strategy()));
    }
}
