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
