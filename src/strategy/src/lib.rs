//! Devices, distribution strategies and the variables they place.
//!
//! A [`DeviceSpec`] such as [`cpu`]`(0)` names a device, [`devices`] lists the devices of the machine, and
//! [`default_device`] is the best of them that works. A
//! strategy ([`OneDeviceStrategy`], [`MirroredStrategy`]) holds one [`LogicalDevice`] per replica.
//! While its [`scope`] is active, [`Replicas::place`] stores a module's variables as the strategy requires, with real
//! copies, and records where they were created. [`collective`] keeps copies equal by
//! summing their gradients in a fixed order. A [`PlacementReport`] shows all of it.
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
//! Models, batches and optimizers belong to the crates above.
//!
//! Start reading at [`strategy`] and one strategy, such as `strategy/central_storage.rs`; then [`replicas`] for what a training step
//! calls, and `collective/patterns.rs` for the all-reduce itself.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod problem;

pub mod device;
pub mod origin;
pub mod scope;
pub mod strategy;

mod buffers;
mod checksum;
pub mod collective;
mod copy;
pub mod replicas;
pub mod replicated;
mod scaling;
mod shards;
mod threads;
mod values;
pub mod variable;

pub mod placement;

pub use checksum::{Checksum, RunningChecksum};
pub use collective::{Collective, CrossDeviceOps, Transfer};
pub use device::{
    BackendKind, DeviceInfo, DeviceKind, DeviceSpec, Devices, LogicalDevice, cpu, cuda,
    default_device, devices, gpu, wgpu,
};
pub use origin::Origin;
pub use placement::PlacementReport;
pub use replicas::{ReplicaId, Replicas, RunningValues, SavedValues, StoredPart};
pub use replicated::{Aggregation, IntoValue, ReplicatedVariable, Synchronization};
pub use scaling::{
    MeshCost, MeshOptions, MeshPrediction, MeshShape, NetworkSize, ScalingOptions,
    ScalingParameter, ScalingPattern, ScalingPrediction, ScalingRow, ScalingSource, predict_mesh,
    predict_meshes,
};
pub use scope::ScopeGuard;
pub use strategy::list::*;
pub use strategy::{
    AsStrategy, DeviceMesh, LayoutMap, Partitioner, PipelinePass, PipelineSchedule,
    PipelineSettings, PipelineStages, Shard, StepInWords, Strategy, StrategyId, Workers,
    note_variable,
};
pub use variable::{VariableKind, VariableRecord};
