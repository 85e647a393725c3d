//! The devices of a strategy in words.

use stratoscope_render::text;

use super::{Shard, Strategy};
use crate::device::{DeviceKind, LogicalDevice};

impl Strategy {
    /// Its devices in words, and what they divide among them: `2 logical CPU devices, optimizer sharded (ZeRO-1)`.
    pub fn devices_in_words(&self) -> String {
        let devices = self.all_devices_in_words();
        if let Some(pipeline) = self.pipeline() {
            return format!("{devices}, {pipeline}");
        }
        if !self.model_devices().is_empty() {
            return match self.replicas().len() {
                1 => format!("{devices}, slices of each layer on all of them"),
                replicas => {
                    let each = self.devices_of_a_replica();
                    format!(
                        "{devices}, {replicas} replicas in slices of each layer on {each} devices"
                    )
                }
            };
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
        if let Some(devices) = self.distribution().devices(self) {
            return devices;
        }
        let devices = self.0.computing.as_slice();
        let Some(first) = devices.first() else {
            return "no device".to_owned();
        };
        let alike =
            |device: &LogicalDevice| device.kind == first.kind && device.backend == first.backend;
        if !devices.iter().all(alike) {
            let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
            return names.join(", ");
        }
        if let [only] = devices {
            return format!("{} ({})", only.name, only.description);
        }
        let kind = match first.kind {
            DeviceKind::Physical => "",
            DeviceKind::Logical => "logical ",
            DeviceKind::Simulated => "simulated ",
        };
        text::count(
            devices.len(),
            &format!("{kind}{} device", first.backend.title()),
        )
    }
}
