//! Devices, distribution strategies and the variables they place.
//!
//! A [`DeviceSpec`] such as [`cpu`]`(0)` names a device, [`devices`] lists what the machine has. A
//! strategy ([`OneDeviceStrategy`], [`MirroredStrategy`]) holds one [`LogicalDevice`] per replica.
//! While its [`scope`] is active, [`Replicas::place`] makes one real copy of a module's variables on
//! every replica and remembers who made them where; [`collective`] keeps the copies equal by
//! summing their gradients in a fixed order; a [`PlacementReport`] shows all of it.
//!
//! ```
//! use burn::nn::LinearConfig;
//! use stratoscope_strategy::{MirroredStrategy, Origin, PlacementReport, Replicas, scope};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let strategy = MirroredStrategy::logical(2)?;
//! let guard = scope::enter(&strategy)?;
//! let layer = LinearConfig::new(4, 3).init(&scope::device()?);
//! let replicas = Replicas::place(layer, &[], Origin::current())?;
//! drop(guard);
//!
//! assert_eq!(replicas.len(), 2);
//! assert_eq!(replicas.records().len(), 2);
//! let report = PlacementReport::of(&replicas)?;
//! assert!(report.copies_are_equal());
//! println!("{}", report.to_plain());
//! # Ok(())
//! # }
//! ```
//!
//! Models, batches and optimizers are left to the crates above.

mod problem;

pub mod device;
pub mod origin;
pub mod scope;
pub mod strategy;

mod checksum;
pub mod collective;
mod copy;
pub mod replicas;
pub mod replicated;
mod shards;
mod threads;
mod values;
pub mod variable;

pub mod placement;

pub use collective::{Collective, CrossDeviceOps, Transfer};
pub use device::{
    BackendKind, DeviceInfo, DeviceKind, DeviceSpec, LogicalDevice, cpu, cuda, devices, gpu, wgpu,
};
pub use origin::Origin;
pub use placement::PlacementReport;
pub use replicas::{ReplicaId, Replicas};
pub use replicated::{Aggregation, IntoValue, ReplicatedVariable, Synchronization};
pub use scope::ScopeGuard;
pub use strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, Partitioner, Strategy, StrategyId, StrategyKind, TpuStrategy,
};
pub use variable::{VariableKind, VariableRecord};
