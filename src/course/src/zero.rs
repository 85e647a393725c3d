//! Lesson 11: replicas that divide the state of training among them (ZeRO).

use crate::all_reduce::{Cluster, run};
use crate::attempt::{Fault, attempt, judged};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 200;

/// A function `replica_bytes(parameters, replicas, level)`: the bytes of weights, gradients and two moments on one replica in
/// float32, where the replicas divide moments (level 1), gradients too (2), weights too (3), or nothing (0). The parameters are a
/// multiple of the replicas.
pub fn check_replica_bytes(bytes: impl Fn(usize, usize, usize) -> usize) -> Verdict {
    judged("11.1", "replica_bytes", || of_bytes(&bytes))
}

fn of_bytes(bytes: &dyn Fn(usize, usize, usize) -> usize) -> Result<String, Fault> {
    let mut random = Random::new(111);
    for attempted in 0..TRIES {
        let (level, replicas) = ([0, 3, 1, 2][attempted % 4], random.integer(2, 9));
        let parameters = replicas * random.integer(1, 100_000);
        let call = format!("replica_bytes({parameters}, {replicas}, {level})");
        let got = attempt(call.clone(), || bytes(parameters, replicas, level))?;
        let (whole, piece) = (4 * parameters, 4 * parameters / replicas);
        let truth = |level: usize| match level {
            0 => 4 * whole,
            1 => 2 * whole + 2 * piece,
            2 => whole + 3 * piece,
            _ => 4 * piece,
        };
        if got == truth(level) {
            continue;
        }
        let (violated, look_at) = if 4 * got == truth(level) {
            ("a float32 has more than one byte", "numbers and bytes")
        } else if got == truth(0) {
            (
                "what is divided is on a replica only in part; here the level has no influence",
                "the third argument",
            )
        } else if level < 3 && got == truth(level + 1) {
            (
                "each level divides one kind of numbers more than the level before; here one is divided too early",
                "which numbers are still whole at this level",
            )
        } else if level > 0 && got == truth(level - 1) {
            (
                "each level divides one kind of numbers more than the level before; here one is divided too late",
                "which numbers are in pieces at this level",
            )
        } else {
            (
                "weights and gradients are as many numbers each, and Adam has two moments for each weight",
                "weights, gradients, moments: which are whole, which are in pieces?",
            )
        };
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!("{TRIES} models, with all levels"))
}

/// A program that leaves the finished sum of part `d` on device `d`, in R − 1 hops between neighbors.
pub fn check_reduce_scatter(program: impl Fn(&mut Cluster)) -> Verdict {
    judged("11.2", "reduce_scatter", || {
        for devices in [3, 4, 2, 5, 8] {
            let call = format!("reduce_scatter on {devices} devices");
            let cluster = attempt(call.clone(), || run(&program, devices, devices))?;
            of_sums(&call, &cluster)?;
        }
        Ok("2, 3, 4, 5 and 8 devices: each has the sum of its part, with the fewest hops and bytes".to_owned())
    })
}

fn of_sums(call: &str, cluster: &Cluster) -> Result<(), Fault> {
    let devices = cluster.devices();
    let wrong = |got: String, violated: &str, look_at: &str| {
        Err(Fault::wrong(call, got, violated, look_at))
    };
    if let Some(invalid) = cluster.invalid() {
        return wrong(
            invalid.to_owned(),
            "a transfer has two different devices and a part that exist",
            "the arithmetic modulo the number of devices",
        );
    }
    for device in 0..devices {
        let counts = cluster.contributions(device, device);
        let place = format!("part {device} of device {device}");
        if let Some(twice) = counts.iter().position(|&count| count > 1) {
            return wrong(
                format!(
                    "{place} contains the numbers of device {twice} {} times",
                    counts[twice]
                ),
                "each device's numbers are in the sum once",
                "which part a device sends in which hop",
            );
        }
        if let Some(missing) = counts.iter().position(|&count| count == 0) {
            let elsewhere = (0..devices).find(|&other| {
                cluster
                    .contributions(other, device)
                    .iter()
                    .all(|&count| count == 1)
            });
            return match elsewhere {
                Some(other) => wrong(
                    format!("the finished part {device} is on device {other}"),
                    "device d has the sum of part d at the end: it updates the rows of that part",
                    "the ring of lesson 3 ends with part d + 1 on device d. Which part is sent first here?",
                ),
                None => wrong(
                    format!("{place} lacks the numbers of device {missing}"),
                    "at the end every device has the sum of its own part",
                    "how many hops there are, and which part a device sends in each",
                ),
            };
        }
    }
    let parts: usize = cluster.transfers().iter().map(|it| it.parts).sum();
    if cluster.hops() > devices - 1 || parts > devices * (devices - 1) {
        return wrong(
            format!("{} hops, {parts} parts sent", cluster.hops()),
            "this takes R − 1 hops, in each of which every device sends one part",
            "whether finished parts are sent on: that is the all-gather, which comes after the update",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    fn right(parameters: usize, replicas: usize, level: usize) -> usize {
        let (whole, piece) = (4 * parameters, 4 * parameters / replicas);
        [
            4 * whole,
            2 * whole + 2 * piece,
            whole + 3 * piece,
            4 * piece,
        ][level]
    }

    #[test]
    fn mistakes_of_bytes_are_distinguished() {
        assert_eq!(check_replica_bytes(right).state, State::Right);
        type Bytes = fn(usize, usize, usize) -> usize;
        let cases: [(Bytes, &str); 5] = [
            (|p, r, l| right(p, r, l) / 4, "more than one byte"),
            (|p, r, _| right(p, r, 0), "no influence"),
            (|p, r, l| right(p, r, (l + 1).min(3)), "too early"),
            (|p, r, l| right(p, r, l.saturating_sub(1)), "too late"),
            (
                |p, r, l| right(p, r, if l == 2 { 1 } else { l }),
                "too late",
            ),
        ];
        for (bytes, expected) in cases {
            let verdict = check_replica_bytes(bytes);
            assert_eq!(verdict.state, State::Wrong);
            assert!(
                verdict.to_plain().contains(expected),
                "{}",
                verdict.to_plain()
            );
        }
    }

    /// Each hop sends the part that is `first` behind the device's number.
    fn around(first: usize, hops: usize) -> impl Fn(&mut Cluster) {
        move |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..(n - 1).min(hops) {
                for device in 0..n {
                    let part = (device + 2 * n - hop - first) % n;
                    cluster.send_and_add(device, (device + 1) % n, part);
                }
                cluster.next_hop();
            }
        }
    }

    #[test]
    fn a_reduce_scatter_ends_at_its_device() {
        assert_eq!(check_reduce_scatter(around(1, 9)).state, State::Right);
        let shifted = check_reduce_scatter(around(0, 9));
        assert!(shifted.to_plain().contains("lesson 3"), "{shifted:?}");
        let short = check_reduce_scatter(around(1, 1));
        assert!(short.to_plain().contains("lacks the numbers"), "{short:?}");
        let long = check_reduce_scatter(|cluster: &mut Cluster| {
            around(1, 9)(cluster);
            let n = cluster.devices();
            for device in 0..n {
                cluster.send_and_store(device, (device + 1) % n, device);
            }
            cluster.next_hop();
        });
        assert!(long.to_plain().contains("all-gather"), "{long:?}");
    }
}
