//! The devices of a strategy in words.

use stratoscope_render::text;

use super::{Shard, Strategy, StrategyKind};
use crate::device::{DeviceKind, LogicalDevice};

impl Strategy {
    /// Its devices in words, and what they divide among them: `2 logical CPU devices, optimizer sharded (ZeRO-1)`.
    pub fn devices_in_words(&self) -> String {
        let devices = self.all_devices_in_words();
        if let Some(pipeline) = self.pipeline() {
            return format!("{devices}, {pipeline}");
        }
        if !self.model_devices().is_empty() {
            return format!("{devices}, slices of each layer on all of them");
        }
        let Some(shard) = self.shard() else {
            return devices;
        };
        let divided = match shard {
            Shard::Optimizer => "optimizer sharded",
            Shard::Gradients => "optimizer and gradients sharded",
            Shard::Parameters => "optimizer, gradients and weights sharded",
        };
        format!("{devices}, {divided} ({})", shard.zero())
    }

    fn all_devices_in_words(&self) -> String {
        let (replicas, servers) = (self.0.replicas.as_slice(), self.servers());
        match self.kind() {
            StrategyKind::Tpu => {
                let cores = text::count(replicas.len(), "simulated TPU core");
                return format!("{cores}, computed by the CPU");
            }
            StrategyKind::ParameterServer => {
                let way = match self.is_asynchronous() {
                    true => "asynchronous",
                    false => "synchronous (ours)",
                };
                let backend = replicas.first().map_or("", |device| device.backend.title());
                let workers = text::count(replicas.len(), &format!("logical {backend} worker"));
                let servers = text::count(servers.len(), "parameter server");
                return format!("{workers} and {servers}, {way}");
            }
            StrategyKind::MultiWorkerMirrored => {
                let workers = text::count(replicas.len(), "worker process");
                return format!("{workers}, the first of which is this one");
            }
            StrategyKind::OneDevice
            | StrategyKind::Mirrored
            | StrategyKind::CentralStorage
            | StrategyKind::Pipeline
            | StrategyKind::ModelParallel => {}
        }
        let Some(first) = replicas.first() else {
            return "no device".to_owned();
        };
        let alike =
            |device: &LogicalDevice| device.kind == first.kind && device.backend == first.backend;
        if !replicas.iter().all(alike) {
            let names: Vec<&str> = replicas.iter().map(|device| device.name.as_str()).collect();
            return names.join(", ");
        }
        if let [only] = replicas {
            return format!("{} ({})", only.name, only.description);
        }
        let kind = match first.kind {
            DeviceKind::Physical => "",
            DeviceKind::Logical => "logical ",
            DeviceKind::Simulated => "simulated ",
        };
        text::count(
            replicas.len(),
            &format!("{kind}{} device", first.backend.title()),
        )
    }
}
