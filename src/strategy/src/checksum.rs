//! A checksum of a variable's bytes: XXH3 of 64 bits with seed 0 (Yann Collet, "XXH3 algorithm overview", the xxHash project).
//! Equal copies have equal checksums; different ones have different checksums, except with a probability of about 2⁻⁶⁴. It
//! is the same on all machines and in all versions. It is not cryptographic.

use std::fmt;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stratoscope_diagnostics::work::Work;
use stratoscope_diagnostics::{Diagnostic, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::problem;

/// A checksum of 64 bits. Written as 16 hexadecimal digits, because numbers in JSON would lose the last bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum(pub u64);

/// A checksum of bytes that come in portions.
#[derive(Clone)]
pub struct RunningChecksum(Xxh3);

impl Default for RunningChecksum {
    fn default() -> Self {
        Self(Xxh3::new())
    }
}

impl RunningChecksum {
    /// Adds the next portion.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all portions.
    pub fn finished(self) -> Checksum {
        Checksum(self.0.digest())
    }
}

impl Checksum {
    /// The checksum of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes))
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
        // It is the same in all versions: the values of the xxHash project's own library.
        let long = bytes.repeat(8);
        for (bytes, expected) in [
            (&[][..], "2d06800538d394c2"),
            (&bytes[..100], "004e4f921a64bd1c"),
            (&long, "dd420471ff96bd00"),
        ] {
            assert_eq!(Checksum::of(bytes).to_string(), expected);
        }
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
