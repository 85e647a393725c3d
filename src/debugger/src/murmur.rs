//! The hash by which JupyterLab names a cell: `Murmur2` with 32 bits, by Austin Appleby, who has placed it in the public
//! domain. <https://github.com/aappleby/smhasher>

/// The seed that `debugInfo` announces.
pub const SEED: u32 = 0xc707_0a8b;

/// The factor of the hash.
const FACTOR: u32 = 0x5bd1_e995;

/// The hash of these bytes.
pub fn murmur2(bytes: &[u8], seed: u32) -> u32 {
    // Lengths are counted with 32 bits.
    let mut hash = seed ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ word.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (position, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * position);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_other_programs() {
        // Computed with ipykernel 7.4.0, `ipykernel.compiler.murmur2_x86`.
        let long = "x".repeat(1000);
        for (text, expected) in [
            ("", 4_026_249_947),
            ("a", 3_383_254_669),
            ("let x = 1;", 578_205_987),
            ("größe", 4_124_085_203),
            (&long, 2_040_282_329),
        ] {
            assert_eq!(murmur2(text.as_bytes(), SEED), expected, "{text:?}");
        }
    }
}
