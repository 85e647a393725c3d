//! A collective as a timeline: which device sends what to which, hop by hop. Hops that repeat the one before, as
//! those of a ring do, are shown once.

use serde::{Deserialize, Serialize};

use stratoscope_render::text;

use super::parts::SlotState;
use crate::collective::{ALL_GATHER, Collective, CrossDeviceOps, REDUCE_SCATTER};
use stratoscope_render::units::bytes;

/// The purpose of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The receiver adds what arrives.
    Sum,
    /// The receiver stores what arrives.
    Share,
}

/// A transfer from one replica to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arrow {
    /// The replica that sends.
    pub from: usize,
    /// The replica that receives.
    pub to: usize,
    /// The number of bytes; the largest one where hops are shown together.
    pub bytes: u64,
}

impl Arrow {
    /// The leftmost and the rightmost replica it touches.
    pub(super) fn ends(self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }
}

/// One hop, or several in which the same replicas send to the same ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Its number, counted from 1.
    pub first: usize,
    /// The number of the last of them; `first` where it is one.
    pub last: usize,
    /// What it is for.
    pub phase: Phase,
    /// The transfers of one of these hops, which happen at the same time.
    pub arrows: Vec<Arrow>,
    /// The bytes of all of these hops together.
    pub bytes: u64,
}

impl Hop {
    /// How many hops are shown together.
    pub fn count(&self) -> usize {
        self.last + 1 - self.first
    }

    /// `hop 2`, `hops 1–7`.
    pub(super) fn title(&self) -> String {
        match self.count() {
            1 => format!("hop {}", self.first),
            _ => format!("hops {}–{}", self.first, self.last),
        }
    }

    /// `87 B`, `8 messages of 87 B`; for hops that are shown together, what is sent in each.
    pub(super) fn amount(&self) -> String {
        let sizes = || self.arrows.iter().map(|arrow| arrow.bytes);
        let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        // Pieces of a ring differ by a few bytes where the whole cannot be divided.
        let upto = if bytes(least) == bytes(most) {
            ""
        } else {
            "up to "
        };
        let size = format!("{upto}{}", bytes(most));
        let each = if self.count() > 1 { " in each" } else { "" };
        match self.arrows.len() {
            1 => format!("{size}{each}"),
            messages => format!("{messages} messages of {size}{each}"),
        }
    }

    /// The arrows on as few lines as they need without overlaps, short ones first.
    pub(super) fn lanes(&self) -> Vec<Vec<Arrow>> {
        let mut arrows = self.arrows.clone();
        arrows.sort_by_key(|arrow| {
            let (left, right) = arrow.ends();
            (right - left, left, arrow.from)
        });
        let mut lanes: Vec<Vec<Arrow>> = Vec::new();
        for arrow in arrows {
            let (left, right) = arrow.ends();
            let fits = |lane: &Vec<Arrow>| {
                lane.iter().all(|other| {
                    let (from, to) = other.ends();
                    right <= from || to <= left
                })
            };
            match lanes.iter_mut().find(|lane| fits(lane)) {
                Some(lane) => lane.push(arrow),
                None => lanes.push(vec![arrow]),
            }
        }
        lanes
    }
}

/// A collective of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// What is done: `all-reduce of 39 gradients`.
    pub name: String,
    /// The communication pattern.
    pub ops: CrossDeviceOps,
    /// How many replicas take part.
    pub replicas: usize,
    /// The bytes that each replica contributes.
    pub payload_bytes: u64,
    /// Planned until a step was made.
    pub state: SlotState,
    /// The hops, in their order.
    pub hops: Vec<Hop>,
    /// Bytes that each device sends and receives; the busiest device determines how long the collective takes.
    /// Replicas first, then servers.
    pub traffic: Vec<u64>,
}

impl Timeline {
    /// The timeline of a collective.
    pub fn of(collective: &Collective, state: SlotState) -> Self {
        let count = collective.hops();
        let mut hops: Vec<Hop> = Vec::new();
        for number in 0..count {
            let of_hop = collective.transfers.iter().filter(|t| t.hop == number);
            let arrows: Vec<Arrow> = of_hop
                .map(|transfer| Arrow {
                    from: transfer.from,
                    to: transfer.to,
                    bytes: transfer.bytes,
                })
                .collect();
            let hop = Hop {
                first: number + 1,
                last: number + 1,
                phase: phase(collective, number, count),
                bytes: arrows.iter().map(|arrow| arrow.bytes).sum(),
                arrows,
            };
            match hops.last_mut() {
                Some(before) if repeats(before, &hop) => {
                    before.last = hop.last;
                    before.bytes += hop.bytes;
                    for (arrow, other) in before.arrows.iter_mut().zip(&hop.arrows) {
                        arrow.bytes = arrow.bytes.max(other.bytes);
                    }
                }
                _ => hops.push(hop),
            }
        }
        let ends = collective.transfers.iter().flat_map(|t| [t.from, t.to]);
        let devices = ends
            .max()
            .map_or(0, |last| last + 1)
            .max(collective.replicas);
        let mut traffic = vec![0; devices];
        for transfer in &collective.transfers {
            traffic[transfer.from] += transfer.bytes;
            traffic[transfer.to] += transfer.bytes;
        }
        Self {
            name: collective.name.clone(),
            ops: collective.ops,
            replicas: collective.replicas,
            payload_bytes: collective.payload_bytes,
            state,
            hops,
            traffic,
        }
    }

    /// The number of hops: how often somebody waits for somebody else.
    pub fn hop_count(&self) -> usize {
        self.hops.last().map_or(0, |hop| hop.last)
    }

    /// All that goes between devices.
    pub fn moved_bytes(&self) -> u64 {
        self.hops.iter().map(|hop| hop.bytes).sum()
    }

    /// How many devices it runs over.
    pub(super) fn devices(&self) -> usize {
        self.traffic.len()
    }

    /// Name, pattern and size: ``gradients, ring: 348 B on each of 4 replicas (measured)``.
    pub(super) fn title(&self) -> String {
        format!(
            "{}, {}: {} on each of {} ({})",
            self.name,
            self.ops.title(),
            bytes(self.payload_bytes),
            text::count(self.replicas, "replica"),
            self.state.word(),
        )
    }

    /// What it costs: hops, bytes, and the device that everyone waits for.
    pub(super) fn total(&self, names: &[String]) -> String {
        let busiest = self.traffic.iter().max().copied().unwrap_or(0);
        let least = self.traffic.iter().min().copied().unwrap_or(0);
        let busy: Vec<&str> = (self.traffic.iter().zip(names))
            .filter(|(bytes, _)| **bytes == busiest)
            .map(|(_, name)| name.as_str())
            .collect();
        let (most, least) = (bytes(busiest), bytes(least));
        let through = match busy.as_slice() {
            _ if most == least => format!("every device sends and receives {most}"),
            [one] => format!("`{one}` sends and receives {most}, others {least} or more"),
            _ => format!("a device sends and receives {least} to {most}"),
        };
        let hops = match self.hop_count() {
            1 => "1 hop".to_owned(),
            hops => format!("{hops} hops, one after the other"),
        };
        format!("{hops}; {} in all, {through}", bytes(self.moved_bytes()))
    }

    /// What a hop does, in words. `names` are the devices'.
    pub(super) fn describe(&self, hop: &Hop, names: &[String]) -> String {
        match (self.ops, hop.phase) {
            _ if self.name == REDUCE_SCATTER && self.ops != CrossDeviceOps::Ring => {
                "each gets the rows that it updates, and adds in the order of the replicas"
                    .to_owned()
            }
            _ if self.name == ALL_GATHER && self.ops != CrossDeviceOps::Ring => {
                "each sends its rows to all others".to_owned()
            }
            (CrossDeviceOps::Ring, Phase::Sum) => {
                "each sends a piece to the next, which adds to it".to_owned()
            }
            (CrossDeviceOps::Ring, Phase::Share) => {
                "the finished pieces go round until each has all".to_owned()
            }
            (CrossDeviceOps::Chain, Phase::Sum) => {
                "each adds its own and sends the sum on, piece after piece".to_owned()
            }
            (CrossDeviceOps::Chain, Phase::Share) => {
                "the finished pieces go on until each has all".to_owned()
            }
            (CrossDeviceOps::Tree, Phase::Sum) => "in pairs: one sends, one adds".to_owned(),
            (CrossDeviceOps::Tree, Phase::Share) => "the sum goes back".to_owned(),
            (CrossDeviceOps::Centralized, Phase::Sum) => {
                let adds = "which adds in the order of the replicas";
                match (common(hop, names, true), common(hop, names, false)) {
                    (Some(from), Some(to)) => format!("from {from} to {to}"),
                    (None, Some(to)) => format!("all to {to}, {adds}"),
                    // Devices of replicas of several, each with its like; servers have one hop.
                    _ if self.hop_count() > 1 => {
                        format!("each to its like in the first replica, {adds}")
                    }
                    _ => "to the devices that store the variables, which add in order".to_owned(),
                }
            }
            (CrossDeviceOps::Centralized, Phase::Share) => {
                match (common(hop, names, true), common(hop, names, false)) {
                    (Some(from), Some(to)) => format!("from {from} to {to}"),
                    (Some(from), None) => format!("from {from} to all others"),
                    _ if self.hop_count() > 1 => {
                        "from the first replica to the same devices of the others".to_owned()
                    }
                    _ => "from the devices that store the variables to the replicas".to_owned(),
                }
            }
        }
    }
}

/// The one device that all arrows come from, or go to.
fn common(hop: &Hop, names: &[String], from: bool) -> Option<String> {
    let end = |arrow: &Arrow| if from { arrow.from } else { arrow.to };
    let first = end(hop.arrows.first()?);
    let alike = hop.arrows.iter().all(|arrow| end(arrow) == first);
    let name = names.get(first).filter(|_| alike)?;
    Some(format!("`{name}`"))
}

/// Whether the same replicas send to the same ones for the same purpose.
fn repeats(before: &Hop, hop: &Hop) -> bool {
    let ends = |hop: &Hop| -> Vec<(usize, usize)> {
        hop.arrows
            .iter()
            .map(|arrow| (arrow.from, arrow.to))
            .collect()
    };
    before.phase == hop.phase && ends(before) == ends(hop)
}

/// Every all-reduce sums in the first half of its hops and shares in the second. A collective with a single hop sends
/// parameters to the replicas that read them, or anything else to be summed. A reduce-scatter and an all-gather are the
/// halves of an all-reduce.
fn phase(collective: &Collective, hop: usize, hops: usize) -> Phase {
    let sums = match hops {
        _ if collective.name == REDUCE_SCATTER => true,
        _ if collective.name == ALL_GATHER => false,
        1 => collective.name != "parameters",
        hops => hop < hops / 2,
    };
    if sums { Phase::Sum } else { Phase::Share }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Transfer;

    fn of(transfers: &[(usize, usize, usize, u64)]) -> Timeline {
        let transfer = |&(hop, from, to, bytes)| Transfer {
            hop,
            from,
            to,
            bytes,
        };
        let collective = Collective {
            name: "gradients".to_owned(),
            ops: CrossDeviceOps::Ring,
            replicas: 3,
            payload_bytes: 10,
            transfers: transfers.iter().map(transfer).collect(),
        };
        Timeline::of(&collective, SlotState::Measured)
    }

    #[test]
    fn hops_that_repeat_are_shown_once() {
        let timeline = of(&[(0, 0, 1, 4), (1, 0, 1, 3), (2, 0, 1, 3), (3, 1, 2, 5)]);
        let found: Vec<(String, Phase, u64, String)> = timeline
            .hops
            .iter()
            .map(|hop| (hop.title(), hop.phase, hop.bytes, hop.amount()))
            .collect();
        let expected = [
            ("hops 1–2", Phase::Sum, 7, "4 B in each"),
            ("hop 3", Phase::Share, 3, "3 B"),
            ("hop 4", Phase::Share, 5, "5 B"),
        ];
        let expected = expected.map(|(title, phase, bytes, amount)| {
            (title.to_owned(), phase, bytes, amount.to_owned())
        });
        assert_eq!(found, expected);
        assert_eq!((timeline.moved_bytes(), timeline.hop_count()), (15, 4));
        assert_eq!(timeline.traffic, [10, 15, 5]);
    }

    #[test]
    fn arrows_of_a_lane_do_not_lie_over_one_another() {
        let check = |arrows: &[(usize, usize)], expected: &[&[(usize, usize)]]| {
            let transfers = arrows.iter().map(|&(from, to)| (0, from, to, 1));
            let timeline = of(&transfers.collect::<Vec<_>>());
            let lanes = timeline.hops[0].lanes();
            let ends = |arrow: &Arrow| (arrow.from, arrow.to);
            let found: Vec<Vec<(usize, usize)>> = lanes
                .iter()
                .map(|lane| lane.iter().map(ends).collect())
                .collect();
            assert_eq!(found, expected);
        };
        check(&[(0, 1), (1, 2), (2, 0)], &[&[(0, 1), (1, 2)], &[(2, 0)]]);
        check(&[(1, 0), (3, 2)], &[&[(1, 0), (3, 2)]]);
        check(
            &[(1, 0), (2, 0), (3, 0)],
            &[&[(1, 0)], &[(2, 0)], &[(3, 0)]],
        );
    }
}
