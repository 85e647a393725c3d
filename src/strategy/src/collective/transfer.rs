//! What a collective moved: the transfers between devices, hop by hop.

use serde::{Deserialize, Serialize};

/// The communication pattern by which replicas sum their tensors. Keras: `cross_device_ops`.
///
/// Every pattern moves the same number of bytes in all, `2 · (R − 1) · payload` for R replicas; they differ
/// in how many hops come one after the other and in how much goes through the busiest device. The sums of
/// [`Self::Chain`] and [`Self::Centralized`] are equal to the bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossDeviceOps {
    /// Each tensor is cut into chunks, which pass around a ring of devices twice: first to be summed, then to be
    /// shared. `2 · (R − 1)` hops; every device sends and receives the same number of bytes.
    Ring,
    /// Pairs of devices, then pairs of pairs, and back: `2 · ⌈log₂ R⌉` hops.
    Tree,
    /// All devices send to the first one, which sends the sum back: 2 hops, all through one device.
    /// TensorFlow: `ReductionToOneDevice`.
    #[default]
    Centralized,
    /// The first device sends to the second, which adds its own and sends the sum on; the last one has the sum and sends
    /// it around: `2 · (R − 1)` hops. Between worker processes the pieces of a tensor follow each other, so that all work
    /// at the same time.
    Chain,
}

impl CrossDeviceOps {
    /// All patterns.
    pub const ALL: [Self; 4] = [Self::Ring, Self::Tree, Self::Centralized, Self::Chain];

    /// The name on the report: `ring`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::Centralized => "centralized",
            Self::Chain => "chain",
        }
    }
}

/// Bytes that one device sent to another.
///
/// Devices are counted as the strategy counts them: its replicas first, then, for a parameter server strategy, its
/// servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transfer {
    /// Its place in the order of time, counted from 0. Transfers of one hop go at the same time.
    pub hop: usize,
    /// The device that sent.
    pub from: usize,
    /// The device that received.
    pub to: usize,
    /// The number of bytes.
    pub bytes: u64,
}

/// One collective, with every transfer it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// What was moved: `gradients`, `parameters`, `OnRead totals`.
    pub name: String,
    /// The communication pattern.
    pub ops: CrossDeviceOps,
    /// How many replicas took part.
    pub replicas: usize,
    /// The bytes that each replica contributes.
    pub payload_bytes: u64,
    /// In the order of their hops; those of one hop in the order of the sending devices. The transfers of
    /// one hop between the same two devices are one.
    pub transfers: Vec<Transfer>,
}

impl Collective {
    /// Counts devices instead of replicas, of which each has so many devices: it sends from its first one to others' first ones.
    pub(crate) fn spread(&mut self, each: usize) {
        for transfer in &mut self.transfers {
            transfer.from *= each;
            transfer.to *= each;
        }
    }

    /// How many hops come one after the other.
    pub fn hops(&self) -> usize {
        self.transfers
            .iter()
            .map(|transfer| transfer.hop + 1)
            .max()
            .unwrap_or(0)
    }

    /// How many bytes went between devices, all together.
    pub fn moved_bytes(&self) -> u64 {
        self.transfers.iter().map(|transfer| transfer.bytes).sum()
    }

    /// How many bytes the busiest device sent and received.
    pub fn busiest_bytes(&self) -> u64 {
        let devices = self.transfers.iter().flat_map(|t| [t.from, t.to]).max();
        let through = |device: usize| {
            let touches = |t: &&Transfer| t.from == device || t.to == device;
            let bytes = self.transfers.iter().filter(touches).map(|t| t.bytes);
            bytes.sum::<u64>()
        };
        (0..=devices.unwrap_or(0)).map(through).max().unwrap_or(0)
    }
}
