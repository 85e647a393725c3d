//! Random inputs, the same in every session: SplitMix64 (Steele, Lea, Flood 2014).

/// A generator with a seed.
pub struct Random(u64);

impl Random {
    /// The generator of an exercise.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number in `[low, high)`.
    pub fn number(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * unit
    }

    /// As [`Self::number`], rounded to two digits after the point, so that a card is easy to read.
    pub fn short(&mut self, low: f64, high: f64) -> f64 {
        (self.number(low, high) * 100.0).round() / 100.0
    }

    /// An integer from `low` to `high`, both included.
    pub fn integer(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }
}
