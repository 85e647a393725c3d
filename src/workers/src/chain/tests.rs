use std::net::TcpListener;
use std::time::Duration;

use super::*;
use crate::key::JobKey;
use crate::link::Link;

const PATIENCE: Duration = Duration::from_secs(5);

/// Chains of threads, connected over loopback.
fn group(size: usize, patience: Duration) -> Vec<Chain> {
    let key = JobKey::new().expect("a key");
    if size == 1 {
        return vec![Chain::alone()];
    }
    // Link i goes from member i to member i + 1.
    let mut links: Vec<(Link, Link)> = Vec::new();
    for _ in 0..size {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let own = key.clone();
        let dialed = std::thread::spawn(move || Link::dial(address, &own, patience));
        let (socket, _) = listener.accept().expect("a visitor");
        let accepted = Link::accept(socket, &key, patience).expect("of this job");
        let dialed = dialed.join().expect("no panic").expect("connected");
        links.push((dialed, accepted));
    }
    let (mut rights, mut lefts): (Vec<Link>, Vec<Link>) = links.into_iter().unzip();
    lefts.rotate_right(1);
    let hops = lefts.drain(..).zip(rights.drain(..)).enumerate();
    hops.map(|(position, (left, right))| Chain::new(position, size, left, right))
        .collect::<Outcome<_>>()
        .expect("connected")
}

fn numbers(replica: usize, elements: usize) -> Vec<f32> {
    let number = |i: usize| {
        let x = ((i * 7919 + replica * 104_729) % 10_007) as f32;
        (x - 5000.0) * 1.37e-3
    };
    (0..elements).map(number).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// However six values are divided over processes, the sum has the bits of one process.
#[test]
fn the_sum_has_the_bits_of_one_process() {
    for elements in [1, 7, PIECE, 3 * PIECE + 11] {
        let mut expected = numbers(0, elements);
        for replica in 1..6 {
            add(&mut expected, &numbers(replica, elements));
        }
        for division in [
            vec![6],
            vec![1, 5],
            vec![3, 3],
            vec![2, 1, 3],
            vec![1, 2, 2, 1],
            vec![1; 6],
        ] {
            let mut next = 0;
            let mut members = Vec::new();
            for (chain, &count) in group(division.len(), PATIENCE).into_iter().zip(&division) {
                let own: Vec<Vec<f32>> = (next..next + count)
                    .map(|replica| numbers(replica, elements))
                    .collect();
                next += count;
                members.push(std::thread::spawn(move || {
                    let (mut chain, mut own) = (chain, own);
                    for step in 0..2 {
                        let mut again = own.clone();
                        chain.all_reduce(step, &mut again, Precision::Float32)?;
                        if step == 1 {
                            own = again;
                        }
                    }
                    chain.barrier(2)?;
                    Ok::<_, Fault>(own.swap_remove(0))
                }));
            }
            for member in members {
                let found = member.join().expect("no panic").expect("reduced");
                assert_eq!(bits(&found), bits(&expected), "{division:?} {elements}");
            }
        }
    }
}

#[test]
fn all_get_the_values_of_the_first() {
    let elements = 2 * PIECE + 3;
    let members = group(3, PATIENCE).into_iter().map(|mut chain| {
        std::thread::spawn(move || {
            let mut own = numbers(chain.position(), elements);
            chain.broadcast(9, &mut own).map(|()| own)
        })
    });
    for member in members.collect::<Vec<_>>() {
        let found = member.join().expect("no panic").expect("sent");
        assert_eq!(bits(&found), bits(&numbers(0, elements)));
    }
}

/// A member that never comes: the others end when the links' patience does, or at once when it is gone or aborts.
#[test]
fn a_missing_member_ends_the_collective_for_all() {
    #[derive(Clone, Copy, PartialEq)]
    enum Missing {
        Silent,
        Gone,
        Aborts,
    }
    for missing in [Missing::Silent, Missing::Gone, Missing::Aborts] {
        // The others wait for a silent member only.
        let patience = if missing == Missing::Silent {
            Duration::from_millis(700)
        } else {
            Duration::from_secs(60)
        };
        let mut chains = group(3, patience);
        let absent = chains.remove(1);
        let members: Vec<_> = chains
            .into_iter()
            .map(|mut chain| {
                std::thread::spawn(move || {
                    chain.all_reduce(0, &mut [numbers(0, 5 * PIECE)], Precision::Float32)
                })
            })
            .collect();
        match missing {
            Missing::Silent => {}
            Missing::Gone => drop(absent.hops.expect("a group of three")),
            Missing::Aborts => absent.abort(),
        }
        let faults = members.into_iter().map(|member| {
            let reduced = member.join().expect("no panic");
            reduced.map(drop).expect_err("one is missing")
        });
        let faults: Vec<Fault> = faults.collect();
        let is_waited_for = faults.iter().any(|fault| matches!(fault, Fault::Silent(_)));
        assert_eq!(is_waited_for, missing == Missing::Silent, "{faults:?}");
    }
}

#[test]
fn members_in_different_steps_refuse_each_other() {
    let members: Vec<_> = group(2, PATIENCE)
        .into_iter()
        .map(|mut chain| {
            std::thread::spawn(move || {
                let step = chain.position() as u64;
                let outcome = chain.all_reduce(step, &mut [numbers(0, 10)], Precision::Float32);
                (
                    outcome,
                    chain.all_reduce(5, &mut [numbers(0, 10)], Precision::Float32),
                )
            })
        })
        .collect();
    let found: Vec<_> = members
        .into_iter()
        .map(|it| it.join().expect("no panic"))
        .collect();
    let refused = |outcome: &Outcome<()>| matches!(outcome, Err(Fault::Refused(_)));
    assert!(found.iter().any(|(first, _)| refused(first)), "{found:?}");
    for (first, second) in &found {
        assert!(first.is_err());
        assert_eq!(second, &Err(Fault::Aborted), "it must be formed anew");
    }
}

/// Rows of any length come to the first member, in the order of the members and with all bits.
#[test]
fn rows_come_to_the_first_member() {
    let row = |member: usize| match member {
        0 | 2 => Vec::new(),
        member => [vec![-0.0; 3], numbers(member, member * PIECE + 5)].concat(),
    };
    for size in [1, 2, 4] {
        let members = group(size, PATIENCE).into_iter().enumerate();
        let members: Vec<_> = members
            .map(|(member, mut chain)| {
                std::thread::spawn(move || {
                    let rows = chain.gather(1, &row(member));
                    chain.barrier(2).and(rows)
                })
            })
            .collect();
        for (member, thread) in members.into_iter().enumerate() {
            let rows = thread.join().expect("no panic").expect("gathered");
            let found: Vec<_> = rows.iter().map(|row| bits(row)).collect();
            let expected: Vec<_> = match member {
                0 => (1..size).map(|other| bits(&row(other))).collect(),
                _ => Vec::new(),
            };
            assert_eq!(found, expected, "member {member} of {size}");
        }
    }
}

/// Rounded sums do not depend on who adds, are near the exact ones, and travel in half of the bytes.
#[test]
fn sums_in_bfloat16_are_those_of_one_process_in_half_of_the_bytes() {
    let elements = 2 * PIECE + 3;
    let reduced = |division: &[usize], precision: Precision| {
        let mut next = 0;
        let mut members = Vec::new();
        for (mut chain, &count) in group(division.len(), PATIENCE).into_iter().zip(division) {
            let mut own: Vec<Vec<f32>> = (next..next + count)
                .map(|replica| numbers(replica, elements))
                .collect();
            next += count;
            members.push(std::thread::spawn(move || {
                chain.all_reduce(0, &mut own, precision).expect("reduced");
                (own.swap_remove(0), chain.bytes_sent())
            }));
        }
        let members = members.into_iter().map(|it| it.join().expect("no panic"));
        let (sums, sent): (Vec<_>, Vec<u64>) = members.unzip();
        for sum in &sums[1..] {
            assert_eq!(bits(sum), bits(&sums[0]), "all members have the same");
        }
        (sums[0].clone(), sent)
    };
    let (alone, _) = reduced(&[6], Precision::Bfloat16);
    for division in [vec![1, 5], vec![2, 1, 3], vec![1; 6]] {
        let (sum, half) = reduced(&division, Precision::Bfloat16);
        assert_eq!(bits(&sum), bits(&alone), "{division:?}");
        let (exact, whole) = reduced(&division, Precision::Float32);
        assert_eq!(half.iter().map(|it| 2 * it).collect::<Vec<_>>(), whole);
        for (index, (rounded, exact)) in sum.iter().zip(&exact).enumerate() {
            let size: f32 = (0..6).map(|it| numbers(it, index + 1)[index].abs()).sum();
            if index > 64 {
                break;
            }
            assert!(
                (rounded - exact).abs() <= 6.0 * size / 256.0,
                "{rounded} {exact}"
            );
        }
    }
}
