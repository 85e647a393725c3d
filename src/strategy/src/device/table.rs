//! Devices as a table: what `devices()` and the replicas of a strategy look like in a notebook.

use stratoscope_render::text;

use super::{BackendKind, DeviceInfo, LogicalDevice};
use crate::placement::bytes;

/// The titles of a device's columns.
pub const COLUMNS: [&str; 5] = ["name", "backend", "kind", "memory", "what it is"];

impl BackendKind {
    /// burn's name for it: `flex`.
    fn word(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }
}

fn memory(size: Option<u64>) -> String {
    size.map_or_else(|| "unknown".to_owned(), bytes)
}

impl DeviceInfo {
    /// Its cells under [`COLUMNS`].
    pub fn row(&self) -> [String; 5] {
        let kind = match self.software {
            true => "software: runs on the processor",
            false => "physical",
        };
        let cores = self.cores.map(|cores| text::count(cores, "core"));
        let parts = [
            Some(self.description.clone()),
            cores,
            Some(self.driver.clone()),
        ];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        [
            self.name.clone(),
            self.backend.word().to_owned(),
            kind.to_owned(),
            memory(self.memory_bytes),
            parts.collect::<Vec<_>>().join(", "),
        ]
    }
}

impl LogicalDevice {
    /// Its cells under [`COLUMNS`].
    pub fn row(&self) -> [String; 5] {
        let kind = match self.shared_by {
            ..=1 => self.kind.word().to_owned(),
            shares => format!("{}, 1 of {shares}", self.kind.word()),
        };
        [
            self.name.clone(),
            self.backend.word().to_owned(),
            kind,
            memory(self.capacity_bytes),
            self.description.clone(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AsStrategy, MirroredStrategy};

    #[test]
    fn every_device_says_what_it_is() {
        let info = DeviceInfo {
            name: "wgpu:0".to_owned(),
            backend: BackendKind::Wgpu,
            description: "llvmpipe".to_owned(),
            driver: "Vulkan".to_owned(),
            software: true,
            cores: None,
            memory_bytes: None,
        };
        let software = "software: runs on the processor";
        assert_eq!(
            info.row(),
            ["wgpu:0", "wgpu", software, "unknown", "llvmpipe, Vulkan"]
        );
        let two = MirroredStrategy::logical(2).expect("two logical devices");
        let strategy = two.strategy();
        let [name, backend, kind, ..] = strategy.replicas()[1].row();
        assert_eq!([name, backend, kind], ["cpu:1", "flex", "logical, 1 of 2"]);
    }
}
