//! The strategies. A row is a variant of [`StrategyKind`], the file and the type in it that implements `Distribution`, and the type
//! of its handles.

use std::any::Any;

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::{AsStrategy, Strategy};

macro_rules! strategies {
    ($($(#[$doc:meta])* $kind:ident($file:ident::$type:ident), $handle:ident;)*) => {
        $(pub use super::$file::$handle;)*

        /// The strategies that exist, by type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum StrategyKind {
            $($(#[$doc])* $kind,)*
        }

        impl StrategyKind {
            /// The strategy itself.
            pub(crate) fn distribution(self) -> &'static dyn Distribution {
                match self {
                    $(Self::$kind => &super::$file::$type,)*
                }
            }
        }

        /// The strategy that a handle of any type is of.
        pub(crate) fn strategy_in(value: &dyn Any) -> Option<Strategy> {
            $(if let Some(handle) = value.downcast_ref::<super::$file::$handle>() {
                return Some(handle.strategy());
            })*
            None
        }

        #[cfg(test)]
        const ALL: [StrategyKind; [$(stringify!($kind)),*].len()] = [$(StrategyKind::$kind),*];
    };
}

strategies! {
    /// Every variable once, on one device.
    OneDevice(one_device::OneDevice), OneDeviceStrategy;
    /// A copy of every variable on each device, kept equal.
    Mirrored(mirrored::Mirrored), MirroredStrategy;
    /// Every variable once, on the first device; all devices compute.
    CentralStorage(central_storage::CentralStorage), CentralStorageStrategy;
    /// Every variable once, on one parameter server, or split by rows over several where a [`Partitioner`](super::Partitioner) is given;
    /// workers compute.
    ParameterServer(parameter_server::ParameterServer), ParameterServerStrategy;
    /// As mirrored, on the eight cores of a simulated TPU.
    Tpu(tpu::Tpu), TpuStrategy;
    /// As mirrored, each replica in a process of its own.
    MultiWorkerMirrored(multi_worker::MultiWorkerMirrored), MultiWorkerMirroredStrategy;
    /// Every variable once, on the device whose stage has its layer; micro-batches go from device to device.
    Pipeline(pipeline::Pipeline), PipelineStrategy;
    /// Every variable once, on the first device or in slices on all of them; they compute each layer together.
    ModelParallel(model_parallel::Slices), ModelParallel;
}

impl StrategyKind {
    /// The name of its type: `MirroredStrategy`.
    pub fn type_name(self) -> &'static str {
        self.distribution().type_name()
    }

    /// The name in messages: `mirrored`.
    pub fn name(self) -> &'static str {
        self.distribution().name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name in a placement report as JSON is the one in messages.
    #[test]
    fn names_in_messages_and_in_files_are_equal() {
        for kind in ALL {
            let written = serde_json::to_value(kind).expect("a name");
            assert_eq!(written, kind.name());
        }
    }

    #[test]
    fn names_are_unique() {
        for (index, kind) in ALL.iter().enumerate() {
            let others = &ALL[index + 1..];
            assert!(others.iter().all(|other| other.name() != kind.name()));
            assert!(
                others
                    .iter()
                    .all(|other| other.type_name() != kind.type_name())
            );
        }
    }
}
