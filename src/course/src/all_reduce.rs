//! Lesson 3: an all-reduce as a program of hops. A [`Cluster`] executes the student's program without numbers: it tracks whose
//! contributions each part of each device contains, so that a check can name what is missing or counted twice.

mod ring;

use std::collections::BTreeSet;

use stratoscope_render::text;

use crate::attempt::{Fault, attempt, judged};
use crate::verdict::Verdict;

/// A transfer between two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Its place in the order of time, counted from 0. Transfers of one hop go at the same time.
    pub hop: usize,
    /// The device that sends.
    pub from: usize,
    /// The device that receives.
    pub to: usize,
    /// How many parts.
    pub parts: usize,
}

/// What a device sends in a hop.
struct Sent {
    from: usize,
    to: usize,
    part: usize,
    adds: bool,
}

/// Devices that each hold a tensor in parts. Transfers between two calls of [`next_hop`](Self::next_hop) go at the same time:
/// each sends what its device holds at the beginning of the hop.
pub struct Cluster {
    devices: usize,
    parts: usize,
    /// By device and part: how often each device's numbers are in it.
    held: Vec<Vec<Vec<usize>>>,
    coming: Vec<Sent>,
    done: Vec<Sent>,
    /// For each transfer in `done`, its hop.
    hops: Vec<usize>,
    /// How many hops are over.
    over: usize,
    /// What is held after each hop, and before the first.
    history: Vec<Vec<Vec<Vec<usize>>>>,
    /// The first transfer that is none.
    invalid: Option<String>,
}

impl Cluster {
    /// Devices that hold a tensor of their own each, in `parts` parts.
    pub fn new(devices: usize, parts: usize) -> Self {
        let own = |device: usize| {
            let mut counts = vec![0; devices];
            counts[device] = 1;
            vec![counts; parts]
        };
        let held: Vec<_> = (0..devices).map(own).collect();
        Self {
            devices,
            parts,
            history: vec![held.clone()],
            held,
            coming: Vec::new(),
            done: Vec::new(),
            hops: Vec::new(),
            over: 0,
            invalid: None,
        }
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Into how many parts the tensor of each device is cut.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Device `from` sends its part; device `to` adds it to its own part with this number.
    pub fn send_and_add(&mut self, from: usize, to: usize, part: usize) {
        self.send(from, to, part, true);
    }

    /// Device `from` sends its part; device `to` stores it in place of its own part with this number.
    pub fn send_and_store(&mut self, from: usize, to: usize, part: usize) {
        self.send(from, to, part, false);
    }

    fn send(&mut self, from: usize, to: usize, part: usize, adds: bool) {
        let problem = if from >= self.devices || to >= self.devices {
            format!("there are the devices 0 to {}", self.devices - 1)
        } else if part >= self.parts {
            format!("there are the parts 0 to {}", self.parts - 1)
        } else if from == to {
            "a device does not send to itself".to_owned()
        } else {
            self.coming.push(Sent {
                from,
                to,
                part,
                adds,
            });
            return;
        };
        let sent = format!("part {part} from device {from} to device {to}: {problem}");
        self.invalid.get_or_insert(sent);
    }

    /// Ends the hop: what was sent arrives. A hop in which nothing was sent is not counted.
    pub fn next_hop(&mut self) {
        if self.coming.is_empty() {
            return;
        }
        let before = self.held.clone();
        for sent in self.coming.drain(..) {
            let arriving = &before[sent.from][sent.part];
            let own = &mut self.held[sent.to][sent.part];
            match sent.adds {
                true => own
                    .iter_mut()
                    .zip(arriving)
                    .for_each(|(own, new)| *own += new),
                false => own.clone_from(arriving),
            }
            self.done.push(sent);
            self.hops.push(self.over);
        }
        self.over += 1;
        self.history.push(self.held.clone());
    }

    /// How often the numbers of each device are in a part that a device holds.
    pub(crate) fn contributions(&self, device: usize, part: usize) -> &[usize] {
        &self.held[device][part]
    }

    /// The first transfer that is none, in words.
    pub(crate) fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }

    /// How many hops are over.
    pub fn hops(&self) -> usize {
        self.over
    }

    /// For a heat map: a row before the first hop and one after each; a column for each part of each device, with the number of
    /// devices whose numbers it contains.
    pub fn picture(&self) -> Vec<Vec<usize>> {
        let row =
            |held: &Vec<Vec<Vec<usize>>>| held.iter().flatten().map(|it| it.iter().sum()).collect();
        self.history.iter().map(row).collect()
    }

    /// The transfers, those of one hop between the same two devices as one.
    pub fn transfers(&self) -> Vec<Hop> {
        let mut all: Vec<Hop> = Vec::new();
        for (sent, &hop) in self.done.iter().zip(&self.hops) {
            let same = |it: &&mut Hop| (it.hop, it.from, it.to) == (hop, sent.from, sent.to);
            match all.iter_mut().find(same) {
                Some(known) => known.parts += 1,
                None => all.push(Hop {
                    hop,
                    from: sent.from,
                    to: sent.to,
                    parts: 1,
                }),
            }
        }
        all.sort_unstable();
        all
    }
}

/// Executes a program on a cluster: `run(ring, 4, 4).picture()`. The last hop ends by itself.
pub fn run(program: impl FnOnce(&mut Cluster), devices: usize, parts: usize) -> Cluster {
    let mut cluster = Cluster::new(devices, parts);
    program(&mut cluster);
    cluster.next_hop();
    cluster
}

/// A ring on tensors that are cut into as many parts as there are devices. `own` is the project's plan for a number of devices,
/// in parts.
pub fn check_ring(program: &dyn Fn(&mut Cluster), own: &dyn Fn(usize) -> Vec<Hop>) -> Verdict {
    judged("3.1", "ring", || {
        // Three devices are the fewest on which the parts of a hop tell typical mistakes apart.
        for devices in [3, 4, 2, 5, 8] {
            let call = format!("ring on {devices} devices");
            let cluster = attempt(call.clone(), || run(program, devices, devices))?;
            ring::mistake(&call, &cluster)?;
            is_a_sum(&call, &cluster)?;
            if let Some(far) = (cluster.transfers().iter())
                .find(|it| ![1, devices - 1].contains(&((it.to + devices - it.from) % devices)))
            {
                let got = format!(
                    "device {} sends to device {} in hop {}",
                    far.from, far.to, far.hop
                );
                let violated = "in a ring each device is connected to its two neighbors only";
                return Err(Fault::wrong(call, got, violated, ""));
            }
            is_as_good(&call, &cluster, &own(devices))?;
        }
        Ok("2, 3, 4, 5 and 8 devices: all sums are complete, with the hops and the bytes of the project's own ring".to_owned())
    })
}

/// A tree on tensors in one piece. `own` as in [`check_ring`].
pub fn check_tree(program: &dyn Fn(&mut Cluster), own: &dyn Fn(usize) -> Vec<Hop>) -> Verdict {
    judged("3.2", "tree", || {
        for devices in [2, 4, 8, 3, 5, 6, 7] {
            let call = format!("tree on {devices} devices");
            let cluster = attempt(call.clone(), || run(program, devices, 1))?;
            is_a_sum(&call, &cluster)?;
            is_as_good(&call, &cluster, &own(devices))?;
        }
        Ok("2 to 8 devices: all sums are complete, with the hops and the bytes of the project's own tree".to_owned())
    })
}

/// Every device holds every device's numbers once.
fn is_a_sum(call: &str, cluster: &Cluster) -> Result<(), Fault> {
    if let Some(invalid) = &cluster.invalid {
        let violated = "a transfer has two different devices and a part that exist";
        return Err(Fault::wrong(
            call,
            invalid,
            violated,
            "the arithmetic modulo the number of devices",
        ));
    }
    if cluster.over == 0 {
        let violated = "at the end every device has the sum of all devices";
        return Err(Fault::wrong(
            call,
            "nothing was sent",
            violated,
            "`send_and_add`, `send_and_store` and `next_hop`",
        ));
    }
    for (device, parts) in cluster.held.iter().enumerate() {
        for (part, counts) in parts.iter().enumerate() {
            let place = match cluster.parts {
                1 => format!("device {device}"),
                _ => format!("part {part} of device {device}"),
            };
            let hops = text::count(cluster.over, "hop");
            if let Some(twice) = counts.iter().position(|&count| count > 1) {
                let got = format!(
                    "after {hops} {place} contains the numbers of device {twice} {} times",
                    counts[twice]
                );
                let violated = "each device's numbers are in the sum once";
                let look_at =
                    "where a part is added that is a finished sum already: it has to be stored";
                return Err(Fault::wrong(call, got, violated, look_at));
            }
            if let Some(missing) = counts.iter().position(|&count| count == 0) {
                let got = format!("after {hops} {place} lacks the numbers of device {missing}");
                let violated = "at the end every device has the sum of all devices";
                let look_at = match cluster.over {
                    1 => {
                        "`next_hop`: what is sent in one hop is what the device had at its beginning"
                            .to_owned()
                    }
                    _ => picture_of(cluster),
                };
                return Err(Fault::wrong(call, got, violated, look_at));
            }
        }
    }
    Ok(())
}

/// The call that draws a program of this size.
fn picture_of(cluster: &Cluster) -> String {
    let (devices, parts) = (cluster.devices, cluster.parts);
    let name = if parts == 1 { "tree" } else { "ring" };
    format!(
        "`heatmap(&course::run({name}, {devices}, {parts}).picture())?` in a cell of its own: in which hop does this part stop growing?"
    )
}

/// Not more hops and not more bytes than the project's own program, in all and through the busiest device.
fn is_as_good(call: &str, cluster: &Cluster, own: &[Hop]) -> Result<(), Fault> {
    let transfers = cluster.transfers();
    let hops = |all: &[Hop]| all.iter().map(|it| it.hop).collect::<BTreeSet<_>>().len();
    let total = |all: &[Hop]| all.iter().map(|it| it.parts).sum::<usize>();
    let busiest = |all: &[Hop]| {
        let through = |device| {
            let touches = all.iter().filter(|it| it.from == device || it.to == device);
            touches.map(|it| it.parts).sum::<usize>()
        };
        (0..cluster.devices).map(through).max().unwrap_or(0)
    };
    let complete = "the sums are complete";
    if total(&transfers) > total(own) {
        let got = format!("{complete}, with {} parts sent in all", total(&transfers));
        let violated = "no pattern has to send more than the project's own, and this one does";
        return Err(Fault::wrong(
            call,
            got,
            violated,
            "transfers whose part nobody needs any more",
        ));
    }
    if busiest(&transfers) > busiest(own) {
        let got = format!(
            "{complete}; the busiest device sends and receives {} parts",
            busiest(&transfers)
        );
        let violated =
            "in the project's own program no device has that much to send and to receive";
        return Err(Fault::wrong(
            call,
            got,
            violated,
            "who is the busiest, and which of its work another could do at the same time",
        ));
    }
    if hops(&transfers) > hops(own) {
        let got = format!("{complete}, after {}", text::count(hops(&transfers), "hop"));
        let violated =
            "the project's own program needs fewer hops: more devices send at the same time";
        return Err(Fault::wrong(
            call,
            got,
            violated,
            "the places of `next_hop`",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    fn ring(cluster: &mut Cluster) {
        let n = cluster.devices();
        for hop in 0..n - 1 {
            for device in 0..n {
                cluster.send_and_add(device, (device + 1) % n, (device + n - hop) % n);
            }
            cluster.next_hop();
        }
        for hop in 0..n - 1 {
            for device in 0..n {
                cluster.send_and_store(device, (device + 1) % n, (device + 1 + n - hop) % n);
            }
            cluster.next_hop();
        }
    }

    fn tree(cluster: &mut Cluster) {
        let n = cluster.devices();
        let mut distances = Vec::new();
        let mut distance = 1;
        while distance < n {
            distances.push(distance);
            distance *= 2;
        }
        for &distance in &distances {
            for to in (0..n - distance).step_by(2 * distance) {
                cluster.send_and_add(to + distance, to, 0);
            }
            cluster.next_hop();
        }
        for &distance in distances.iter().rev() {
            for from in (0..n - distance).step_by(2 * distance) {
                cluster.send_and_store(from, from + distance, 0);
            }
            cluster.next_hop();
        }
    }

    fn own(program: fn(&mut Cluster), in_parts: bool) -> impl Fn(usize) -> Vec<Hop> {
        move |devices| run(program, devices, if in_parts { devices } else { 1 }).transfers()
    }

    #[test]
    fn right_programs_pass() {
        assert_eq!(check_ring(&ring, &own(ring, true)).state, State::Right);
        assert_eq!(check_tree(&tree, &own(tree, false)).state, State::Right);
        let picture = run(ring, 4, 4).picture();
        assert_eq!((picture.len(), picture[0].len()), (7, 16));
        assert!(picture[0].iter().all(|&count| count == 1));
        assert!(picture[6].iter().all(|&count| count == 4));
    }

    #[test]
    fn typical_rings_get_their_hint() {
        let plain = |program: fn(&mut Cluster)| {
            let verdict = check_ring(&program, &own(ring, true));
            assert_ne!(verdict.state, State::Right, "{verdict:?}");
            verdict.words()
        };
        assert!(plain(|_| todo!()).contains("still to be filled in"));
        assert!(plain(|_| {}).contains("nothing was sent"));
        let half = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..n - 1 {
                (0..n).for_each(|it| cluster.send_and_add(it, (it + 1) % n, (it + n - hop) % n));
                cluster.next_hop();
            }
        };
        assert!(plain(half).contains("and the program ends"));
        let one_hop = |cluster: &mut Cluster| {
            let n = cluster.devices();
            (0..n).for_each(|it| cluster.send_and_store(it, (it + 1) % n, it));
        };
        assert!(plain(one_hop).contains("next_hop"));
        let adds_always = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..2 * (n - 1) {
                (0..n)
                    .for_each(|it| cluster.send_and_add(it, (it + 1) % n, (it + 2 * n - hop) % n));
                cluster.next_hop();
            }
        };
        assert!(plain(adds_always).contains("has to be stored"));
        let past_the_end = |cluster: &mut Cluster| {
            let n = cluster.devices();
            (0..n).for_each(|it| cluster.send_and_add(it, it + 1, 0));
        };
        assert!(plain(past_the_end).contains("modulo"));
        let one_after_another = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..2 * (n - 1) {
                for it in 0..n {
                    match hop < n - 1 {
                        true => cluster.send_and_add(it, (it + 1) % n, (it + n - hop) % n),
                        false => cluster.send_and_store(it, (it + 1) % n, (it + 2 * n - hop) % n),
                    }
                    cluster.next_hop();
                }
            }
        };
        assert!(plain(one_after_another).contains("needs fewer hops"));
        let through_one = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for part in 0..n {
                (1..n).for_each(|it| cluster.send_and_add(it, 0, part));
            }
            cluster.next_hop();
            for part in 0..n {
                (1..n).for_each(|it| cluster.send_and_store(0, it, part));
            }
        };
        let hint = plain(through_one);
        assert!(
            hint.contains("neighbors only") || hint.contains("busiest"),
            "{hint}"
        );
    }

    #[test]
    fn typical_trees_get_their_hint() {
        let chain = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for it in (1..n).rev() {
                cluster.send_and_add(it, it - 1, 0);
                cluster.next_hop();
            }
            for it in 1..n {
                cluster.send_and_store(it - 1, it, 0);
                cluster.next_hop();
            }
        };
        let verdict = check_tree(&chain, &own(tree, false));
        assert!(verdict.words().contains("fewer hops"), "{verdict:?}");
        let only_powers = |cluster: &mut Cluster| {
            let n = cluster.devices();
            let mut distance = 1;
            while distance < n {
                for to in (0..n).step_by(2 * distance) {
                    cluster.send_and_add(to + distance, to, 0);
                }
                cluster.next_hop();
                distance *= 2;
            }
            while distance > 1 {
                distance /= 2;
                for from in (0..n).step_by(2 * distance) {
                    cluster.send_and_store(from, from + distance, 0);
                }
                cluster.next_hop();
            }
        };
        let plain = check_tree(&only_powers, &own(tree, false)).words();
        assert!(
            plain.contains("tree on 3 devices") && plain.contains("there are the devices 0 to 2"),
            "{plain}"
        );
    }
}
