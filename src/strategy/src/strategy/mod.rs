//! Distribution strategies: on which devices a model computes and where its variables are stored. Each strategy has a
//! file, with an implementation of `Distribution`, and a row in `list.rs`; this one holds what they share and the registry of
//! live strategies.
//!
//! A strategy has *handles*, the values that a cell binds (`let strategy = MirroredStrategy::…`), and
//! passive references ([`Strategy`]), which models, scopes and the default hold. It is **live**
//! while one of its handles exists. A model that is bound to it keeps it usable, but not live.

mod central_storage;
pub(crate) mod distribution;
mod explain;
pub(crate) mod list;
mod mesh;
mod mirrored;
pub(crate) mod model_parallel;
mod multi_worker;
mod one_device;
mod parameter_server;
mod partitioner;
mod pipeline;
pub(crate) mod shard;
mod tpu;
mod variable_name;
mod words;
mod workers;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use stratoscope_workers::{Precision, Team};

use self::distribution::{Distribution, Storing};
pub use self::explain::StepInWords;
pub use self::list::*;
pub use self::mesh::DeviceMesh;
pub use self::mirrored::IntoReplicaCount;
pub use self::model_parallel::LayoutMap;
pub use self::multi_worker::{build, cuda_device_of_worker, device_of_worker, start_workers_by};
pub use self::partitioner::Partitioner;
pub use self::pipeline::{
    HEAVY, PipelinePass, PipelineSchedule, PipelineSettings, PipelineStages, bubble,
};
pub use self::shard::Shard;
pub use self::variable_name::note_variable;
pub use self::workers::{Workers, html_of, text_of};
use crate::collective::CrossDeviceOps;
use crate::device::{BackendKind, DeviceKind, LogicalDevice};
use crate::origin::Origin;

/// A strategy's number, unique in the process, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StrategyId(pub u64);

/// A passive reference to a strategy. It does not keep the strategy live.
#[derive(Clone)]
pub struct Strategy(Arc<Inner>);

struct Inner {
    id: StrategyId,
    kind: StrategyKind,
    /// All that compute: a device for each replica; of a pipeline the stages, and of model parallelism the devices with
    /// slices, both one replica after the other.
    computing: Vec<LogicalDevice>,
    /// The first device of each replica.
    replicas: Vec<LogicalDevice>,
    servers: Vec<LogicalDevice>,
    settings: Mutex<Settings>,
    /// The processes of the other replicas.
    team: Option<Arc<Team>>,
    handle: Weak<()>,
    /// The statement that made it.
    made: Origin,
    /// The notebook's variable that holds a handle of it.
    variable: Mutex<Option<String>>,
}

/// What the methods of a handle set.
#[derive(Clone, Debug, Default)]
struct Settings {
    cross_device_ops: CrossDeviceOps,
    asynchronous: bool,
    partitioner: Option<Partitioner>,
    shard: Option<Shard>,
    pipeline: pipeline::Chosen,
    /// How `ModelParallel` cuts variables; none: as for BERT.
    layout: Option<LayoutMap>,
}

/// Held by every handle besides the reference: while one exists, the strategy is live.
type Handle = Arc<()>;

/// Every strategy that may be live, oldest first. Process-wide, because "which strategies exist" is a question about the
/// process: error cards list the strategies that a user could mean.
static REGISTRY: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Strategy {
    /// A new strategy with a replica on each of these devices, and its first handle.
    fn register(kind: StrategyKind, replicas: Vec<LogicalDevice>) -> (Self, Handle) {
        Self::register_with(kind, replicas, Vec::new(), Settings::default())
    }

    /// A new strategy with so many replicas, each of which has as many of these devices, and its first handle.
    fn register_in_groups(
        kind: StrategyKind,
        devices: Vec<LogicalDevice>,
        replicas: usize,
        settings: Settings,
    ) -> (Self, Handle) {
        Self::register_all(kind, (devices, replicas), Vec::new(), settings, None)
    }

    /// [`Self::register`] with servers, which only store variables, and settings.
    fn register_with(
        kind: StrategyKind,
        replicas: Vec<LogicalDevice>,
        servers: Vec<LogicalDevice>,
        settings: Settings,
    ) -> (Self, Handle) {
        let count = replicas.len();
        Self::register_all(kind, (replicas, count), servers, settings, None)
    }

    fn register_all(
        kind: StrategyKind,
        (mut computing, replicas): (Vec<LogicalDevice>, usize),
        mut servers: Vec<LogicalDevice>,
        settings: Settings,
        team: Option<Arc<Team>>,
    ) -> (Self, Handle) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        for (id, device) in computing.iter_mut().chain(&mut servers).enumerate() {
            device.id = id;
        }
        let each = (computing.len() / replicas.max(1)).max(1);
        let handle = Handle::new(());
        let strategy = Self(Arc::new(Inner {
            id: StrategyId(NEXT.fetch_add(1, Ordering::Relaxed)),
            kind,
            replicas: computing.iter().step_by(each).cloned().collect(),
            computing,
            servers,
            settings: Mutex::new(settings),
            team,
            handle: Arc::downgrade(&handle),
            made: Origin::current(),
            variable: Mutex::new(None),
        }));
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        registry.retain(|known| known.strong_count() > 0);
        registry.push(Arc::downgrade(&strategy.0));
        (strategy, handle)
    }

    /// Its number.
    pub fn id(&self) -> StrategyId {
        self.0.id
    }

    /// Its type.
    pub fn kind(&self) -> StrategyKind {
        self.0.kind
    }

    /// Its name in messages: `mirrored`.
    pub fn name(&self) -> &'static str {
        self.distribution().name()
    }

    /// Its name and number, `mirrored#1`, to distinguish strategies of one type.
    pub fn label(&self) -> String {
        format!("{}#{}", self.name(), self.0.id.0)
    }

    /// One device per replica, in the order of the replicas. A replica of several devices, the stages of a pipeline or those
    /// with slices of each layer, has its inputs on the first of them.
    pub fn replicas(&self) -> &[LogicalDevice] {
        &self.0.replicas
    }

    /// How many devices compute a replica together: the stages of a pipeline, or those with slices of each layer; else 1.
    pub fn devices_of_a_replica(&self) -> usize {
        self.0.computing.len() / self.0.replicas.len().max(1)
    }

    /// The devices that store variables and compute nothing: those of a parameter server strategy.
    pub fn servers(&self) -> &[LogicalDevice] {
        &self.0.servers
    }

    /// Replicas, then servers: the devices as a [`crate::Transfer`] and a variable's homes count them. Of a pipeline its
    /// stages, of model parallelism all that have slices; both one replica after the other.
    pub fn devices(&self) -> Vec<LogicalDevice> {
        [self.0.computing.as_slice(), self.servers()].concat()
    }

    /// The communication pattern of its all-reduce.
    pub fn cross_device_ops(&self) -> CrossDeviceOps {
        self.settings().cross_device_ops
    }

    /// Whether replicas push gradients and fetch variables without waiting for each other.
    pub fn is_asynchronous(&self) -> bool {
        self.settings().asynchronous
    }

    /// How variables are split over its servers; none if every variable is stored on one server.
    pub fn variable_partitioner(&self) -> Option<Partitioner> {
        self.settings().partitioner
    }

    /// What its replicas divide among them; none if each keeps all of it.
    pub fn shard(&self) -> Option<Shard> {
        self.settings().shard
    }

    /// The processes that compute the replicas, where they have processes of their own.
    pub fn team(&self) -> Option<&Arc<Team>> {
        self.0.team.as_ref()
    }

    /// The bytes in which a number of a gradient travels between worker processes.
    pub fn gradient_bytes(&self) -> usize {
        let precision = self
            .team()
            .map_or(Precision::Float32, |team| team.communication().gradients);
        precision.bytes()
    }

    /// Whether each replica stores a copy of every variable, which it can update by itself.
    pub fn has_copies(&self) -> bool {
        self.shard().is_none()
            && matches!(self.storing(), Storing::Copies | Storing::CopiesInProcesses)
    }

    /// What its type says of itself.
    pub(crate) fn distribution(&self) -> &'static dyn Distribution {
        self.kind().distribution()
    }

    /// Where the variables of a module are stored while it trains.
    pub(crate) fn storing(&self) -> Storing {
        self.distribution().storing()
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        let settings = self.0.settings.lock();
        settings.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one of its handles still exists.
    pub fn is_live(&self) -> bool {
        self.0.handle.strong_count() > 0
    }
}

impl PartialEq for Strategy {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Strategy {}

impl fmt::Display for Strategy {
    /// ``MirroredStrategy `mirrored#1`: 2 logical CPU devices``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} `{}`: {}",
            self.distribution().type_name(),
            self.label(),
            self.devices_in_words()
        )
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What can be entered, set as default or passed as `strategy = …`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a strategy",
    note = "strategies are made by `MirroredStrategy::logical(2)?`, `MirroredStrategy::new()?`, `OneDeviceStrategy::new(cpu(0))?`, \
            `CentralStorageStrategy::logical(2)?`, `ParameterServerStrategy::logical(2, 1)?`, `TpuStrategy::simulated()?`, \
            `MultiWorkerMirroredStrategy::workers(2)?`, `PipelineStrategy::logical(2)?` and `ModelParallel::logical(2)?`"
)]
pub trait AsStrategy {
    /// The strategy behind it.
    fn strategy(&self) -> Strategy;
}

impl AsStrategy for Strategy {
    fn strategy(&self) -> Strategy {
        self.clone()
    }
}

impl<S: AsStrategy + ?Sized> AsStrategy for &S {
    fn strategy(&self) -> Strategy {
        (**self).strategy()
    }
}

/// The methods and traits of every handle.
macro_rules! handle {
    ($type:ident) => {
        impl $type {
            /// Makes the strategy active for the cells that follow, until another is set or
            /// [`crate::scope::reset_to_default`] is called.
            pub fn set_default(&self) {
                $crate::scope::set_default(self);
            }

            /// What an optimizer step under the strategy does, in a paragraph and in bytes.
            pub fn explain(&self) -> $crate::strategy::StepInWords {
                self.strategy.explain()
            }

            /// One device per replica.
            pub fn replicas(&self) -> &[$crate::device::LogicalDevice] {
                self.strategy.replicas()
            }

            /// A variable under this strategy, outside of any model. The strategy decides its kind:
            /// Mirrored or OnRead if each replica has a copy, Central or Sharded if it is stored once for all
            /// replicas, Local on one device. `record().why` gives the reason.
            ///
            /// # Errors
            /// SC0915 for a value without any number.
            #[track_caller]
            pub fn variable(
                &self,
                name: &str,
                value: impl $crate::replicated::IntoValue,
                synchronization: $crate::replicated::Synchronization,
                aggregation: $crate::replicated::Aggregation,
            ) -> stratoscope_diagnostics::Result<$crate::replicated::ReplicatedVariable> {
                let origin = $crate::origin::Origin::current();
                let strategy = self.strategy.clone();
                $crate::replicated::ReplicatedVariable::new(
                    strategy,
                    name,
                    value,
                    synchronization,
                    aggregation,
                    origin,
                )
            }
        }

        impl $crate::strategy::AsStrategy for $type {
            fn strategy(&self) -> $crate::strategy::Strategy {
                self.strategy.clone()
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.strategy, f)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.strategy, f)
            }
        }
    };
}
pub(crate) use handle;

/// The live strategies, oldest first.
pub fn live() -> Vec<Strategy> {
    let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry
        .iter()
        .filter_map(Weak::upgrade)
        .map(Strategy)
        .filter(Strategy::is_live)
        .collect()
}

/// The setting of strategies with an all-reduce.
macro_rules! cross_device_ops {
    ($type:ident) => {
        impl $type {
            /// The communication pattern by which gradients are summed: `CrossDeviceOps::Ring`, `Tree` or
            /// `Centralized`. The sums are equal up to rounding; the transfers differ. The type documents its
            /// default.
            pub fn cross_device_ops(self, ops: $crate::collective::CrossDeviceOps) -> Self {
                self.strategy.settings().cross_device_ops = ops;
                self
            }
        }
    };
}
pub(crate) use cross_device_ops;

/// Splits a device into `count` equal logical ones, named after its backend.
fn split(device: &LogicalDevice, count: usize) -> Vec<LogicalDevice> {
    let shares = u64::try_from(count).unwrap_or(u64::MAX).max(1);
    let share = |id: usize| LogicalDevice {
        id,
        name: match device.backend {
            BackendKind::Flex => format!("cpu:{id}"),
            // Some machines have a real `cuda:1`, so the name of a share contains that of its device.
            BackendKind::Wgpu | BackendKind::Cuda => format!("{}/{id}", device.name),
        },
        kind: DeviceKind::Logical,
        capacity_bytes: device.capacity_bytes.map(|bytes| bytes / shares),
        memory_limit: device.memory_limit.map(|bytes| bytes / shares),
        shared_by: count,
        ..device.clone()
    };
    (0..count).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;

    #[test]
    fn a_strategy_lives_as_long_as_a_handle() {
        let lives = |id: StrategyId| live().iter().any(|strategy| strategy.id() == id);
        let handle = MirroredStrategy::logical(2).expect("two logical devices");
        let (bound, second) = (handle.strategy(), handle.clone());
        assert!(lives(bound.id()));
        drop(handle);
        assert!(lives(bound.id()), "a clone of the handle is a handle");
        drop(second);
        assert!(!lives(bound.id()), "a bound model does not keep it live");
        assert!(!bound.is_live());
        assert_eq!(bound.replicas().len(), 2, "but usable");
    }

    #[test]
    fn strategies_say_what_they_are() {
        let mirrored = MirroredStrategy::logical(2).expect("two logical devices");
        let id = mirrored.strategy().id().0;
        let shown = format!("MirroredStrategy `mirrored#{id}`: 2 logical CPU devices");
        assert_eq!(mirrored.to_string(), shown);
        assert_eq!(format!("{mirrored:?}"), shown);
        let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
        assert!(one.to_string().contains("`: cpu:0 ("), "{one}");
        assert_eq!(one.strategy().name(), "one_device");
    }
}
