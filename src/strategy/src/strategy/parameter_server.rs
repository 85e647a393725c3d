//! `ParameterServerStrategy`: servers store the variables, workers compute. A worker fetches the variables,
//! computes the gradients of its share of a batch and pushes them; the servers apply them at once, without waiting for
//! other workers. Keras: `tf.distribute.ParameterServerStrategy`, which is asynchronous too.
//!
//! On a cluster, the order of pushes depends on timing. Here it is fixed: in every batch the workers push in the order of
//! their numbers, and each fetches right after its own push. So gradients are computed from variables that are R − 1
//! updates old (their *staleness*), with R workers; in the first batch worker `i` has a staleness of `i`. The same
//! seed gives the same weights bit for bit.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::{
    Handle, IntoReplicaCount, Partitioner, Settings, Strategy, StrategyKind, handle, split,
};
use crate::device::{LogicalDevice, default_device};
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// A handle of a strategy with workers and parameter servers, all logical devices of the default device. A clone
/// is another handle of the same one.
#[derive(Clone)]
pub struct ParameterServerStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl ParameterServerStrategy {
    /// Splits the default device into `workers` and `servers`, 1 to 64 of each. A model's variables are
    /// assigned to the servers in turn, and not split unless a [partitioner](Self::variable_partitioner) is given.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(workers: impl IntoReplicaCount, servers: impl IntoReplicaCount) -> Result<Self> {
        let (workers, servers) = (workers.checked()?, servers.checked()?);
        let devices = split(&default_device()?, workers + servers);
        let name = |(index, device): (usize, LogicalDevice)| LogicalDevice {
            name: match index.checked_sub(workers) {
                None => format!("worker:{index}"),
                Some(server) => format!("ps:{server}"),
            },
            ..device
        };
        let mut workers_first: Vec<_> = devices.into_iter().enumerate().map(name).collect();
        let servers = workers_first.split_off(workers);
        let settings = Settings {
            asynchronous: true,
            ..Settings::default()
        };
        let kind = StrategyKind::ParameterServer;
        let (strategy, _handle) = Strategy::register_with(kind, workers_first, servers, settings);
        Ok(Self { strategy, _handle })
    }

    /// Workers wait for each other: the servers apply the mean of all gradients of a batch. This mode is an extension;
    /// TensorFlow's parameter servers are always asynchronous.
    pub fn synchronous(self) -> Self {
        self.strategy.settings().asynchronous = false;
        self
    }

    /// Splits variables that are created from now on by rows, so that a variable can be larger than the memory of one
    /// server. Shards are assigned to the servers in turn, like variables that are not split. A server stores
    /// the optimizer's moments of its rows, and workers send it the gradients of its rows.
    ///
    /// ```
    /// use stratoscope_strategy::{ParameterServerStrategy, Partitioner};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let strategy = ParameterServerStrategy::logical(2, 2)?.variable_partitioner(Partitioner::MinSize(256 << 10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0915 for 0 shards or shards of 0 bytes.
    pub fn variable_partitioner(self, partitioner: Partitioner) -> Result<Self> {
        self.strategy.settings().partitioner = Some(partitioner.checked()?);
        Ok(self)
    }

    /// The devices that store the variables.
    pub fn servers(&self) -> &[LogicalDevice] {
        self.strategy.servers()
    }
}

handle!(ParameterServerStrategy);

/// What it says of itself.
pub(super) struct ParameterServer;

impl Distribution for ParameterServer {
    fn type_name(&self) -> &'static str {
        "ParameterServerStrategy"
    }

    fn name(&self) -> &'static str {
        "parameter_server"
    }

    fn storing(&self) -> Storing {
        Storing::Once
    }

    /// Variables and shards go to the servers in turn (round robin).
    fn created(&self, strategy: &Strategy, taken: usize, rows: Option<Rows>) -> Kind {
        let (label, servers) = (strategy.label(), strategy.servers());
        let workers = strategy.replicas().len();
        let partitioner = strategy.variable_partitioner();
        let server = |number: usize| (taken + number) % servers.len().max(1);
        let shards = match (partitioner, rows) {
            (Some(partitioner), Some(Rows { count, bytes })) => {
                partitioner.cut(count, bytes, servers.len())
            }
            _ => Vec::new(),
        };
        if let (Some(partitioner), 2..) = (partitioner, shards.len()) {
            let count = shards.len();
            let homes = (0..count).map(|shard| workers + server(shard));
            return Kind {
                kind: VariableKind::Sharded,
                why: format!(
                    "made in the scope of `{label}`, where `{partitioner}` splits it by rows into {count} \
                     shards, each on a server"
                ),
                homes: homes.collect(),
                rows: shards,
                updated: Vec::new(),
            };
        }
        let server = server(0);
        let home = servers
            .get(server)
            .map_or("", |device| device.name.as_str());
        let why = match (servers.len(), partitioner) {
            (1, _) => format!("made in the scope of `{label}`: one copy on {home}, its server"),
            (count, None) => format!(
                "made in the scope of `{label}`: one copy on {home}; variables go to its {count} servers in turn"
            ),
            (_, Some(partitioner)) => format!(
                "not split by `{partitioner}`: one copy on {home}; variables and shards go to the servers of \
                 `{label}` in turn"
            ),
        };
        Kind::whole(VariableKind::Central, why, vec![workers + server])
    }

    fn step(&self, strategy: &Strategy) -> String {
        format!(
            "The weights are on {}. Each of {} fetches them, computes its share of the batch, and sends its gradients \
             to them; {}.",
            text::count(strategy.servers().len(), "server"),
            text::count(strategy.replicas().len(), "worker"),
            if strategy.is_asynchronous() {
                "each worker's gradients make an update of their own as soon as they arrive"
            } else {
                "the mean of all gradients makes one update"
            },
        )
    }

    fn devices(&self, strategy: &Strategy) -> Option<String> {
        let (replicas, servers) = (strategy.replicas(), strategy.servers());
        let way = if strategy.is_asynchronous() {
            "asynchronous"
        } else {
            "synchronous (ours)"
        };
        let backend = replicas.first().map_or("", |device| device.backend.title());
        let workers = text::count(replicas.len(), &format!("logical {backend} worker"));
        let servers = text::count(servers.len(), "parameter server");
        Some(format!("{workers} and {servers}, {way}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;

    #[test]
    fn workers_and_servers_have_names_of_their_own() {
        let strategy = ParameterServerStrategy::logical(2, 1).expect("three logical devices");
        let devices = strategy.strategy.devices();
        let names: Vec<_> = devices.iter().map(|d| (d.id, d.name.as_str())).collect();
        assert_eq!(names, [(0, "worker:0"), (1, "worker:1"), (2, "ps:0")]);
        assert!(
            devices
                .iter()
                .all(|d| d.kind == DeviceKind::Logical && d.shared_by == 3)
        );
        let label = strategy.strategy.label();
        let shown = format!(
            "ParameterServerStrategy `{label}`: 2 logical CPU workers and 1 parameter server, asynchronous"
        );
        assert_eq!(strategy.to_string(), shown);
        let waiting = strategy.synchronous().to_string();
        assert!(
            waiting.ends_with("1 parameter server, synchronous (ours)"),
            "{waiting}"
        );
    }

    #[test]
    fn counts_are_checked() {
        for error in [
            ParameterServerStrategy::logical(0, 1),
            ParameterServerStrategy::logical(1, 65),
        ] {
            assert_eq!(error.expect_err("outside the range").code, "SC0915");
        }
    }
}
