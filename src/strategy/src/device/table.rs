//! The replicas of a strategy as a table; that of `devices()` is in `listed.rs`.

use super::{BackendKind, LogicalDevice};
use crate::placement::bytes;

/// The titles of a device's columns.
pub const COLUMNS: [&str; 5] = ["name", "backend", "kind", "memory", "what it is"];

impl BackendKind {
    /// burn's name for it: `flex`.
    pub(super) fn word(self) -> &'static str {
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
    use crate::{AsStrategy, MirroredStrategy};

    #[test]
    fn a_share_says_what_it_is() {
        let two = MirroredStrategy::logical(2).expect("two logical devices");
        let strategy = two.strategy();
        let [name, backend, kind, ..] = strategy.replicas()[1].row();
        assert_eq!([name, backend, kind], ["cpu:1", "flex", "logical, 1 of 2"]);
    }
}
