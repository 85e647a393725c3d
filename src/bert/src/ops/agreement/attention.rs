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
