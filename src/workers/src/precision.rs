//! In how many bits the numbers of an all-reduce travel.

use serde::{Deserialize, Serialize};

/// How the numbers of an all-reduce travel. Additions are of float32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    /// With all bits.
    #[default]
    Float32,
    /// Rounded to bfloat16, in half of the bytes: each value, and the sum behind each addition of a value. It is rounded
    /// where nothing travels, too, so that the sum does not depend on how values are divided over processes.
    Bfloat16,
}

impl Precision {
    /// The bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Bfloat16 => 2,
        }
    }

    /// The nearest numbers that travel, ties to even.
    pub(crate) fn round(self, values: &mut [f32]) {
        if self == Self::Bfloat16 {
            for value in values {
                *value = f32::from_bits(u32::from(upper(*value)) << 16);
            }
        }
    }

    /// Numbers that were rounded, as bytes.
    pub(crate) fn encode(self, values: &[f32], bytes: &mut Vec<u8>) {
        bytes.clear();
        match self {
            Self::Float32 => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            Self::Bfloat16 => {
                bytes.extend(values.iter().flat_map(|value| upper(*value).to_le_bytes()));
            }
        }
    }

    /// The other way; false for another number of bytes than `values` have.
    pub(crate) fn decode(self, bytes: &[u8], values: &mut [f32]) -> bool {
        if bytes.len() != values.len() * self.bytes() {
            return false;
        }
        match self {
            Self::Float32 => {
                for (value, word) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *value = f32::from_le_bytes(*word);
                }
            }
            Self::Bfloat16 => {
                for (value, word) in values.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = f32::from_bits(u32::from(u16::from_le_bytes(*word)) << 16);
                }
            }
        }
        true
    }
}

/// A number as bfloat16: the upper half of its bits, rounded to nearest, ties to even. What is no number stays none.
fn upper(value: f32) -> u16 {
    let bits = value.to_bits();
    let half = match value.is_nan() {
        true => bits | 0x0040_0000,
        false => bits + 0x7fff + ((bits >> 16) & 1),
    };
    (half >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f32) -> f32 {
        let mut values = [value];
        Precision::Bfloat16.round(&mut values);
        values[0]
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        let exact = [
            0.0,
            -0.0,
            1.0,
            -2.5,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1.5e-45 * 65536.0,
        ];
        for value in exact {
            assert_eq!(rounded(value).to_bits(), value.to_bits(), "{value}");
        }
        // Steps of 2^-7 above 1: in the middle to the even one.
        let step = f32::powi(2.0, -7);
        assert_eq!(rounded(1.0 + 0.4 * step), 1.0);
        assert_eq!(rounded(1.0 + 0.5 * step), 1.0);
        assert_eq!(rounded(1.0 + 1.5 * step), 1.0 + 2.0 * step);
        assert_eq!(rounded(-1.0 - 0.6 * step), -1.0 - step);
        assert_eq!(rounded(f32::MAX), f32::INFINITY);
        assert!(rounded(f32::NAN).is_nan());
        assert!(rounded(f32::from_bits(0x7f80_0001)).is_nan());
    }

    #[test]
    fn what_travels_comes_back() {
        let values = [1.5, -0.0, 3.0e38, f32::NEG_INFINITY];
        for precision in [Precision::Float32, Precision::Bfloat16] {
            let mut given = values;
            precision.round(&mut given);
            let (mut bytes, mut found) = (Vec::new(), [9.0; 4]);
            precision.encode(&given, &mut bytes);
            assert_eq!(bytes.len(), 4 * precision.bytes());
            assert!(precision.decode(&bytes, &mut found));
            assert_eq!(given.map(f32::to_bits), found.map(f32::to_bits));
            assert!(!precision.decode(&bytes[1..], &mut found));
        }
    }
}
