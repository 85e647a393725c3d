//! A checksum of a variable's bytes. Equal copies have equal checksums; different ones have different checksums, except
//! with a probability of 2⁻⁶⁴. It is the same on all machines and in all versions. It is not cryptographic.

use std::fmt;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stratoscope_diagnostics::work::Work;
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::problem;

/// A checksum of 64 bits. Written as 16 hexadecimal digits, because numbers in JSON would lose the last bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum(pub u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ over the golden ratio

/// The full product, folded: a plain one would leave the highest bits of a word unmixed.
fn mix(lane: u64, word: u64) -> u64 {
    let product = u128::from(lane ^ word) * u128::from(ODD);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A checksum of bytes that come in portions.
#[derive(Clone, Debug)]
pub struct RunningChecksum {
    /// Four independent lanes, so that the processor can compute on four words at once.
    lanes: [u64; 4],
    /// Bytes that do not fill a block yet.
    rest: Vec<u8>,
    length: u64,
}

impl Default for RunningChecksum {
    fn default() -> Self {
        Self {
            lanes: [
                ODD,
                ODD.rotate_left(16),
                ODD.rotate_left(32),
                ODD.rotate_left(48),
            ],
            rest: Vec::new(),
            length: 0,
        }
    }
}

impl RunningChecksum {
    /// Adds the next portion.
    pub fn add(&mut self, mut bytes: &[u8]) {
        self.length += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if !self.rest.is_empty() {
            let missing = (32 - self.rest.len()).min(bytes.len());
            let (first, others) = bytes.split_at(missing);
            self.rest.extend_from_slice(first);
            bytes = others;
            if self.rest.len() < 32 {
                return;
            }
            let block = std::mem::take(&mut self.rest);
            self.blocks(&block);
        }
        let whole = bytes.len() / 32 * 32;
        self.blocks(&bytes[..whole]);
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    fn blocks(&mut self, bytes: &[u8]) {
        let (blocks, _) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in self.lanes.iter_mut().zip(words) {
                *lane = mix(*lane, u64::from_le_bytes(*word));
            }
        }
    }

    /// The checksum of all portions.
    pub fn finished(mut self) -> Checksum {
        for (index, byte) in self.rest.iter().enumerate() {
            let lane = &mut self.lanes[index % 4];
            *lane = mix(*lane, u64::from(*byte));
        }
        let all = self.lanes.into_iter().fold(self.length, mix);
        let all = (all ^ (all >> 32)).wrapping_mul(ODD);
        Checksum(all ^ (all >> 29))
    }
}

impl Checksum {
    /// The checksum of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut running = RunningChecksum::default();
        running.add(bytes);
        running.finished()
    }

    /// The first six digits, enough to see that two are equal.
    pub fn short(self) -> String {
        self.to_string().chars().take(6).collect()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        u64::from_str_radix(&digits, 16)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// The checksum of every variable of a module, in the order of its fields.
///
/// # Errors
/// SC0907 if a value cannot be read from its device, SC0520 if it is interrupted.
pub(crate) fn of_module<M: Module>(
    module: &M,
    device: &str,
    (work, done): (&mut Work, usize),
) -> Result<Vec<(ParamId, Checksum)>> {
    let mut sums = Sums {
        device,
        found: Vec::new(),
        problem: None,
        work,
        done,
    };
    module.visit(&mut sums);
    match sums.problem {
        Some(problem) => Err(problem),
        None => Ok(sums.found),
    }
}

struct Sums<'a> {
    device: &'a str,
    found: Vec<(ParamId, Checksum)>,
    problem: Option<Box<Diagnostic>>,
    work: &'a mut Work,
    /// Variables of other copies that were read before.
    done: usize,
}

impl Sums<'_> {
    /// Reads a variable, unless something has gone wrong or an interrupt has come.
    fn add<E: fmt::Display>(
        &mut self,
        id: ParamId,
        read: impl FnOnce() -> std::result::Result<TensorData, E>,
    ) {
        if self.problem.is_some() {
            return;
        }
        let read_before = self.done + self.found.len();
        if let Err(interrupted) = self.work.reached(read_before) {
            self.problem = Some(interrupted);
            return;
        }
        match read() {
            Ok(data) => self.found.push((id, Checksum::of(data.as_bytes()))),
            Err(error) => {
                self.problem
                    .get_or_insert_with(|| problem::backend_failed(self.device, error));
            }
        }
    }
}

impl ModuleVisitor for Sums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(param.id, || param.val().try_into_data());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param.id, || param.val().try_into_data());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(param.id, || param.val().try_into_data());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_bit_and_the_length_count() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 7, 8, 31, 32, 33, 100] {
            let mut seen = HashSet::from([Checksum::of(&bytes[..length])]);
            for bit in 0..length * 8 {
                let mut changed = bytes[..length].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(
                    seen.insert(Checksum::of(&changed)),
                    "bit {bit} of {length} bytes"
                );
            }
            assert!(
                seen.insert(Checksum::of(&bytes[..length + 1])),
                "{length} bytes and one"
            );
        }
        // Zeros of different lengths differ, as do words that change places.
        assert_ne!(Checksum::of(&[0; 32]), Checksum::of(&[0; 64]));
        let swapped: Vec<u8> = bytes[32..64].iter().chain(&bytes[..32]).copied().collect();
        assert_ne!(Checksum::of(&bytes[..64]), Checksum::of(&swapped));
    }

    #[test]
    fn portions_do_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        for portion in [1, 3, 7, 31, 32, 33, 100, 256] {
            let mut running = RunningChecksum::default();
            bytes.chunks(portion).for_each(|part| running.add(part));
            assert_eq!(running.finished(), Checksum::of(&bytes), "{portion}");
        }
        // It is the same in all versions.
        assert_eq!(Checksum::of(&bytes[..100]).to_string(), "3cfc9b40a055c392");
    }

    #[test]
    fn json_keeps_all_bits() {
        let sum = Checksum(0x0123_4567_89ab_cdef);
        let text = serde_json::to_string(&sum).expect("a string");
        assert_eq!(text, "\"0123456789abcdef\"");
        assert_eq!(
            serde_json::from_str::<Checksum>(&text).expect("what was written"),
            sum
        );
        assert_eq!(sum.short(), "012345");
    }
}
