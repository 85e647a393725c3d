//! The types of strategies.

use serde::{Deserialize, Serialize};

/// The strategies that exist, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyKind {
    /// Every variable once, on one device.
    OneDevice,
    /// A copy of every variable on each device, kept equal.
    Mirrored,
    /// Every variable once, on the first device; all devices compute.
    CentralStorage,
    /// Every variable once, on one parameter server, or split by rows over several where a [`Partitioner`](super::Partitioner) is given;
    /// workers compute.
    ParameterServer,
    /// As mirrored, on the eight cores of a simulated TPU.
    Tpu,
    /// As mirrored, each replica in a process of its own.
    MultiWorkerMirrored,
    /// Every variable once, on the device whose stage has its layer; micro-batches go from device to device.
    Pipeline,
    /// Every variable once, on the first device or in slices on all of them; they compute each layer together.
    ModelParallel,
}

impl StrategyKind {
    /// The name of its type: `MirroredStrategy`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::OneDevice => "OneDeviceStrategy",
            Self::Mirrored => "MirroredStrategy",
            Self::CentralStorage => "CentralStorageStrategy",
            Self::ParameterServer => "ParameterServerStrategy",
            Self::Tpu => "TpuStrategy",
            Self::MultiWorkerMirrored => "MultiWorkerMirroredStrategy",
            Self::Pipeline => "PipelineStrategy",
            Self::ModelParallel => "ModelParallel",
        }
    }

    /// The name in messages: `mirrored`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneDevice => "one_device",
            Self::Mirrored => "mirrored",
            Self::CentralStorage => "central_storage",
            Self::ParameterServer => "parameter_server",
            Self::Tpu => "tpu",
            Self::MultiWorkerMirrored => "multi_worker_mirrored",
            Self::Pipeline => "pipeline",
            Self::ModelParallel => "model_parallel",
        }
    }
}
