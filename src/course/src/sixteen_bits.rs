//! Lesson 9: the memory of training, and numbers of 16 bits.

use crate::attempt::{Fault, attempt, judged};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 200;

/// A function `training_bytes(parameters, moments)`: the bytes of the weights, of their gradients and of the optimizer's
/// moments, `moments` for each parameter, all in float32.
pub fn check_training_bytes(bytes: impl Fn(usize, usize) -> usize) -> Verdict {
    judged("9.1", "training_bytes", || of_bytes(&bytes))
}

fn of_bytes(bytes: &dyn Fn(usize, usize) -> usize) -> Result<String, Fault> {
    let mut random = Random::new(91);
    for attempted in 0..TRIES {
        let (parameters, moments) = (random.integer(1, 1_000_000), [0, 2, 1][attempted % 3]);
        let call = format!("training_bytes({parameters}, {moments})");
        let got = attempt(call.clone(), || bytes(parameters, moments))?;
        let each = 4 * parameters;
        let (violated, look_at) = if got == each * (2 + moments) {
            continue;
        } else if got == parameters * (2 + moments) {
            ("a float32 has more than one byte", "numbers and bytes")
        } else if got == each * (1 + moments) {
            (
                "the optimizer reads a gradient for every weight, so both are in memory",
                "which of the three kinds of numbers is missing",
            )
        } else if got == each * 2 {
            (
                "SGD has no moments, SGD with momentum has one, Adam two for every weight; here their number has no influence",
                "the second argument",
            )
        } else {
            (
                "without moments there are as many weights as gradients, and nothing else",
                "weights, gradients, moments: count each once",
            )
        };
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!("{TRIES} models, with 0 to 2 moments"))
}

/// The nearest bfloat16, ties to even: the definition of IEEE 754 on the upper 16 bits of a float32.
fn nearest(x: f32) -> f32 {
    let bits = x.to_bits();
    let half = 0x7FFF + ((bits >> 16) & 1);
    f32::from_bits(bits.wrapping_add(half) & 0xFFFF_0000)
}

/// A function `to_bfloat16(x)`: the float32 nearest to a finite `x` whose lower 16 bits are 0.
pub fn check_bfloat16(round: impl Fn(f32) -> f32) -> Verdict {
    judged("9.2", "to_bfloat16", || of_bfloat16(&round))
}

fn of_bfloat16(round: &dyn Fn(f32) -> f32) -> Result<String, Fault> {
    let mut random = Random::new(92);
    for attempted in 0..TRIES {
        // Ordinary numbers, then those in the middle between two.
        let x = match attempted < TRIES / 2 {
            true => random.number(-300.0, 300.0) as f32,
            false => {
                let bits = (random.number(-300.0, 300.0) as f32).to_bits();
                f32::from_bits((bits & 0xFFFF_0000) | 0x8000)
            }
        };
        let call = format!("to_bfloat16({x:?})");
        let got = attempt(call.clone(), || round(x))?;
        let truth = nearest(x);
        if got == truth {
            continue;
        }
        let cut = f32::from_bits(x.to_bits() & 0xFFFF_0000);
        let away = f32::from_bits(x.to_bits().wrapping_add(0x8000) & 0xFFFF_0000);
        let (violated, look_at) = if got.to_bits() & 0xFFFF != 0 {
            (
                "a bfloat16 has the upper 16 bits of a float32; in this result lower bits are set",
                "`to_bits`, a mask, `from_bits`",
            )
        } else if got == away {
            (
                "in the middle between two neighbors the one with an even last bit is taken, so that errors do not add up",
                "inputs whose lower 16 bits are 0x8000, and the bit above them",
            )
        } else if got == cut {
            (
                "the result is the nearest of the two neighbors; here it is always the one closer to 0",
                "what has to be added before the lower bits are removed",
            )
        } else {
            (
                "the result is one of the two neighbors of the input",
                "the sign, the exponent and seven bits of the fraction stay; 16 bits are removed",
            )
        };
        return Err(Fault::wrong(call, format!("{got:?}"), violated, look_at));
    }
    Ok(format!(
        "{TRIES} numbers, half of them in the middle between two neighbors"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    #[test]
    fn typical_sums_get_their_hint() {
        assert!(check_training_bytes(|p, m| 4 * p * (2 + m)).is_right());
        let plain = |bytes: fn(usize, usize) -> usize| check_training_bytes(bytes).words();
        assert!(plain(|p, m| p * (2 + m)).contains("more than one byte"));
        assert!(plain(|p, m| 4 * p * (1 + m)).contains("which of the three"));
        assert!(plain(|p, _| 8 * p).contains("no influence"));
        assert!(plain(|_, _| todo!()).contains("still to be"));
    }

    #[test]
    fn typical_roundings_get_their_hint() {
        assert!(check_bfloat16(nearest).is_right());
        assert_eq!(
            (nearest(257.0), nearest(259.0), nearest(1.0)),
            (256.0, 260.0, 1.0)
        );
        let bits = |change: fn(u32) -> u32| {
            check_bfloat16(move |x| f32::from_bits(change(x.to_bits()))).words()
        };
        assert!(bits(|it| it & 0xFFFF_0000).contains("closer to 0"));
        assert!(bits(|it| (it + 0x8000) & 0xFFFF_0000).contains("even last bit"));
        assert!(bits(|it| it).contains("lower bits are set"));
        assert_eq!(check_bfloat16(|_| todo!()).state, State::Open);
    }
}
