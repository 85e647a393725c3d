//! Typical mistakes of a ring, distinguished by what its devices send in each hop.

use stratoscope_render::text;

use super::{Cluster, Sent};
use crate::attempt::Fault;

/// The fewest devices on which the mistakes differ.
const MIN_DEVICES: usize = 3;

/// The mistake of a program that leaves incomplete sums.
///
/// # Errors
/// The fault, if it is one of the typical ones.
pub(super) fn mistake(call: &str, cluster: &Cluster) -> Result<(), Fault> {
    let is_whole = |counts: &Vec<usize>| counts.iter().all(|&count| count == 1);
    let is_sum = cluster.held.iter().flatten().all(is_whole);
    if is_sum || cluster.invalid.is_some() || cluster.devices < MIN_DEVICES || cluster.over < 2 {
        return Ok(());
    }
    let found = (same_part(cluster))
        .or_else(|| wrong_operation(cluster))
        .or_else(|| not_passed_on(cluster))
        .or_else(|| no_all_gather(cluster));
    match found {
        Some([got, violated, look_at]) => Err(Fault::wrong(call, got, violated, look_at)),
        None => Ok(()),
    }
}

/// What was got, what is violated, what to look at.
type Hint = [String; 3];

/// The transfers of a hop.
fn of_hop(cluster: &Cluster, hop: usize) -> impl Iterator<Item = &Sent> {
    let all = cluster.done.iter().zip(&cluster.hops);
    all.filter(move |(_, its)| **its == hop)
        .map(|(sent, _)| sent)
}

/// Each device sends the part with its own number in every hop.
fn same_part(cluster: &Cluster) -> Option<Hint> {
    let is_own = |sent: &Sent| sent.part == sent.from;
    (cluster.over > 1 && cluster.done.iter().all(is_own)).then(|| {
        [
            "device 0 sends part 0 in every hop, device 1 part 1, and so on".to_owned(),
            "a part goes around the ring: from the second hop on, a device sends the part that it has just received".to_owned(),
            "the number of the part: it depends on the hop, too".to_owned(),
        ]
    })
}

/// A part is stored before it is a complete sum.
fn wrong_operation(cluster: &Cluster) -> Option<Hint> {
    let first_half = cluster.devices - 1;
    let (hop, sent) = (0..first_half)
        .flat_map(|hop| of_hop(cluster, hop).map(move |sent| (hop, sent)))
        .find(|(_, sent)| !sent.adds)?;
    let Sent { from, to, part, .. } = sent;
    Some([
        format!(
            "in hop {hop} device {to} stores part {part} of device {from}, and loses its own numbers"
        ),
        format!("in the first {first_half} hops a part is added to that of the neighbor"),
        "`send_and_add` and `send_and_store`".to_owned(),
    ])
}

/// A device sends another part than the one that it has received in the hop before.
fn not_passed_on(cluster: &Cluster) -> Option<Hint> {
    let first_half = cluster.devices - 1;
    for hop in 1..cluster.over {
        for sent in of_hop(cluster, hop) {
            let mut received = of_hop(cluster, hop - 1).filter(|it| it.to == sent.from);
            let (Some(one), None) = (received.next(), received.next()) else {
                return None;
            };
            if one.part == sent.part {
                continue;
            }
            let (device, part) = (sent.from, sent.part);
            let got = format!("in hop {hop} device {device} sends part {part}");
            return Some(match hop.cmp(&first_half) {
                std::cmp::Ordering::Equal => [
                    format!(
                        "the first {first_half} hops are right: each device has a finished part. Then {got}, which is not the finished one"
                    ),
                    "the all-gather begins with the finished parts".to_owned(),
                    format!(
                        "the first part that is stored: which part did device {device} receive last?"
                    ),
                ],
                _ => [
                    format!("{got}; it received another one in hop {}", hop - 1),
                    "a device passes on the part that it has just received".to_owned(),
                    "how the number of the part changes from one hop to the next".to_owned(),
                ],
            });
        }
    }
    None
}

/// The program ends when each device has one finished part.
fn no_all_gather(cluster: &Cluster) -> Option<Hint> {
    let hops = cluster.devices - 1;
    (cluster.over == hops).then(|| {
        [
            format!(
                "after {} each device has one finished part, and the program ends",
                text::count(hops, "hop")
            ),
            "at the end every device has all finished parts".to_owned(),
            "the all-gather: the finished parts go around the ring once more".to_owned(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use crate::all_reduce::{Cluster, check_ring, run};
    use crate::verdict::State;

    /// A ring whose halves send these parts of `n`, by device and hop of the half.
    fn ring(
        first: fn(usize, usize, usize) -> usize,
        second: fn(usize, usize, usize) -> usize,
    ) -> impl Fn(&mut Cluster) {
        move |cluster| {
            let n = cluster.devices();
            for hop in 0..n - 1 {
                (0..n).for_each(|it| cluster.send_and_add(it, (it + 1) % n, first(n, it, hop)));
                cluster.next_hop();
            }
            for hop in 0..n - 1 {
                (0..n).for_each(|it| cluster.send_and_store(it, (it + 1) % n, second(n, it, hop)));
                cluster.next_hop();
            }
        }
    }

    fn right_first(n: usize, device: usize, hop: usize) -> usize {
        (device + n - hop) % n
    }

    fn right_second(n: usize, device: usize, hop: usize) -> usize {
        (device + 1 + n - hop) % n
    }

    #[test]
    fn mistakes_have_hints_of_their_own() {
        let own = |devices| run(ring(right_first, right_second), devices, devices).transfers();
        let hint = |program: &dyn Fn(&mut Cluster)| {
            let verdict = check_ring(&program, &own);
            assert_eq!(verdict.state, State::Wrong, "{verdict:?}");
            let words = verdict.words();
            assert!(words.contains("ring on 3 devices"), "{words}");
            words
        };
        assert!(check_ring(&ring(right_first, right_second), &own).is_right());
        let always_own = hint(&ring(|_, it, _| it, |_, it, _| it));
        assert!(always_own.contains("in every hop") && !always_own.contains("stored"));
        // The second half begins with the part that the first one began with, or goes on with the same part.
        for second in [right_first, |_: usize, it: usize, _: usize| it] {
            let words = hint(&ring(right_first, second));
            assert!(words.contains("the first 2 hops are right"), "{words}");
            assert!(!words.contains("in every hop"), "{words}");
        }
        let other_way = hint(&ring(|n, it, hop| (it + hop) % n, right_second));
        assert!(
            other_way.contains("in hop 1 device 0 sends part 1; it received another one in hop 0"),
            "{other_way}"
        );
        let later = hint(&ring(right_first, |n, it, hop| (it + 1 + hop) % n));
        assert!(later.contains("in hop 3 device 0"), "{later}");
        let stores = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..2 * (n - 1) {
                (0..n).for_each(|it| {
                    cluster.send_and_store(it, (it + 1) % n, (it + 2 * n - hop) % n)
                });
                cluster.next_hop();
            }
        };
        assert!(hint(&stores).contains("loses its own numbers"));
        let half = |cluster: &mut Cluster| {
            let n = cluster.devices();
            for hop in 0..n - 1 {
                (0..n)
                    .for_each(|it| cluster.send_and_add(it, (it + 1) % n, right_first(n, it, hop)));
                cluster.next_hop();
            }
        };
        assert!(hint(&half).contains("and the program ends"));
    }
}
