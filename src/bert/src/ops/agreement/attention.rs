//! The two forms of attention.

use super::*;

/// Shapes as [batch, sequence, heads, size]; the fourth has three blocks of query positions.
const ATTENTIONS: [[usize; 4]; 4] = [[1, 1, 1, 1], [4, 3, 2, 5], [7, 6, 3, 8], [2, 131, 2, 16]];

#[test]
fn attention_agrees() {
    for [batch, sequence, heads, size] in ATTENTIONS {
        let shape = [batch, sequence, heads * size];
        let threes = (1..=3).map(|salt| values(shape, salt)).collect();
        let case = Case {
            threes,
            twos: vec![],
            ones: vec![],
        };
        let mask = ragged(batch, sequence);
        let inputs = |c: &Case| {
            (
                c.threes[0].clone(),
                c.threes[1].clone(),
                c.threes[2].clone(),
            )
        };
        for rate in [None, Some((RATE, KEY))] {
            let dropped = rate.and_then(|(rate, key)| Mask::new(rate, key));
            check(
                "attention",
                &case,
                |c| {
                    let (q, k, v) = inputs(c);
                    attention(q, k, v, heads, mask.clone(), rate)
                },
                |c| {
                    let (q, k, v) = inputs(c);
                    portable::attention(q, k, v, heads, mask.clone(), dropped)
                },
            );
        }
    }
}

/// Windows from one neighbor on, in one block of queries and in several; each position has a token in its window.
#[test]
fn local_attention_agrees() {
    for ([batch, sequence, heads, size], window) in [
        ([2, 9, 2, 5], 1),
        ([3, 24, 3, 8], 4),
        ([3, 131, 2, 16], 7),
        ([2, 200, 1, 8], 70),
    ] {
        let shape = [batch, sequence, heads * size];
        let case = Case {
            threes: (1..=3).map(|salt| values(shape, salt)).collect(),
            twos: vec![],
            ones: vec![],
        };
        // As many positions of padding as the number of the sequence.
        let mask = ragged(batch, sequence);
        for rate in [None, Some((RATE, KEY))] {
            let dropped = rate.and_then(|(rate, key)| Mask::new(rate, key));
            let of = |c: &Case| [0, 1, 2].map(|index| c.threes[index].clone());
            check(
                "local attention",
                &case,
                |c| local_attention(of(c), heads, mask.clone(), Some(window), rate),
                |c| {
                    let ([q, k, v], mask) = (of(c), (mask.clone(), Some(window)));
                    portable::local_attention(q, k, v, heads, mask, dropped)
                },
            );
        }
    }
}

/// A window over all positions is none, bit for bit.
#[test]
fn a_wide_window_is_none() {
    let [q, k, v] = [1, 2, 3].map(|salt| values([2, 9, 8], salt));
    let mask = ragged(2, 9);
    let attended = |window| {
        let of = [q.clone(), k.clone(), v.clone()];
        numbers(local_attention(of, 2, mask.clone(), window, None))
    };
    assert_eq!(attended(Some(8)), attended(None));
    assert_ne!(attended(Some(7)), attended(None));
}

#[test]
fn rotation_agrees() {
    for [batch, sequence, heads, size] in [[1, 1, 1, 2], [2, 5, 3, 6], [3, 40, 2, 64]] {
        let case = Case {
            threes: vec![values([batch, sequence, heads * size], 1)],
            twos: vec![],
            ones: vec![],
        };
        let angles = rotary::Angles::new(sequence, size, 100.0);
        check(
            "rotation",
            &case,
            |c| rotary(c.threes[0].clone(), heads, 100.0),
            |c| portable::rotary(c.threes[0].clone(), heads, &angles),
        );
    }
}

pub(super) fn projections(c: &Case) -> [(Tensor<2>, Tensor<1>); 3] {
    [0, 1, 2].map(|index| (c.twos[index].clone(), c.ones[index].clone()))
}

#[test]
fn self_attention_agrees() {
    for [batch, sequence, heads, size] in ATTENTIONS {
        let hidden = heads * size;
        let case = Case {
            threes: vec![values([batch, sequence, 9], 1)],
            twos: (2..5).map(|salt| values([hidden, 9], salt) * 0.3).collect(),
            ones: (5..8).map(|salt| values([hidden], salt)).collect(),
        };
        let mask = ragged(batch, sequence);
        for rate in [None, Some((RATE, KEY))] {
            check(
                "self_attention",
                &case,
                |c| {
                    self_attention(
                        c.threes[0].clone(),
                        projections(c),
                        heads,
                        mask.clone(),
                        rate,
                    )
                },
                |c| {
                    let [q, k, v] =
                        projections(c).map(|(w, b)| portable::linear(c.threes[0].clone(), w, b));
                    let dropped = rate.and_then(|(rate, key)| Mask::new(rate, key));
                    portable::attention(q, k, v, heads, mask.clone(), dropped)
                },
            );
        }
    }
}

/// Some heads of a layer, in either form: what they are among all, since a mask depends on the number of a head in the layer.
#[test]
fn some_heads_are_what_they_are_among_all() {
    for [batch, sequence, heads, size] in [[3, 5, 6, 4], [2, 70, 4, 8]] {
        let all: Vec<Tensor<3>> = (1..=3)
            .map(|salt| values([batch, sequence, heads * size], salt))
            .collect();
        let mask = ragged(batch, sequence);
        let dropout = Some((RATE, KEY));
        let whole = |form: bool| {
            let [q, k, v] = [0, 1, 2].map(|index| all[index].clone());
            let dropped = Mask::new(RATE, KEY);
            match form {
                true => attention(q, k, v, heads, mask.clone(), dropout),
                false => portable::attention(q, k, v, heads, mask.clone(), dropped),
            }
        };
        for (first, count) in [(0, 2), (1, 3), (heads - 1, 1)] {
            let own = Heads {
                count,
                first,
                of: heads,
            };
            let part = |x: Tensor<3>| x.narrow(2, first * size, count * size);
            let cut = || [0, 1, 2].map(|index| part(all[index].clone()));
            let [q, k, v] = cut();
            let fused = attention(q, k, v, own, mask.clone(), dropout);
            assert_close("fused", &numbers(fused), &numbers(part(whole(true))), 1e-6);
            let [q, k, v] = cut();
            let dropped = Mask::new(RATE, KEY).map(|mask| mask.of_heads(own));
            let found = portable::attention(q, k, v, count, mask.clone(), dropped);
            assert_close(
                "portable",
                &numbers(found),
                &numbers(part(whole(false))),
                1e-6,
            );
        }
    }
}
