//! The tensors of a checkpoint as another strategy lays them out: rows and columns of each variable are put together and cut
//! again, and what the optimizer keeps beside them likewise. No number changes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use safetensors::tensor::{Dtype, TensorView};
use stratoscope_strategy::StoredPart;

use super::convert::Refused;
use super::laid_out::{LaidOut, Variable};
use stratoscope_optim::StoredTensor;

/// How the tensors lie in the file, and how the run that goes on wants them.
pub(super) struct Relaid<'a> {
    pub then: &'a LaidOut,
    pub now: &'a LaidOut,
}

/// A tensor of a variable that the run that goes on has, or of the optimizer.
pub(super) struct Piece<'a> {
    /// What it is called but for copy and variable: `weights`, `first_moment`.
    kind: &'a str,
    name: &'a str,
    then: &'a Variable,
    /// The rows that are wanted.
    now: &'a StoredPart,
}

impl Relaid<'_> {
    /// The tensor of this name in the layout of now. `None` for what is not divided, such as the weights of the best epoch.
    pub(super) fn piece<'n>(&'n self, name: &'n str) -> Option<Piece<'n>> {
        let (kind, rest) = name.split_once('.')?;
        let is_kept = StoredTensor::ALL.iter().any(|kept| kept.name() == kind);
        if kind != "weights" && !is_kept {
            return None;
        }
        let (module, name) = rest.split_once('.')?;
        let module: usize = module.parse().ok()?;
        let mut now = self.now.variables.get(name)?.parts.iter();
        Some(Piece {
            kind,
            name,
            then: self.then.variables.get(name)?,
            now: now.find(|part| part.module == module)?,
        })
    }
}

impl Piece<'_> {
    fn written(&self, part: &StoredPart) -> String {
        format!("{}.{}.{}", self.kind, part.module, self.name)
    }

    /// Whether all that it is made of is there.
    pub(super) fn is_written(&self, file: &HashMap<String, TensorView<'_>>) -> bool {
        // A part without rows is not written.
        let mut parts = self.then.parts.iter().filter(|part| !part.rows.is_empty());
        parts.all(|part| file.contains_key(&self.written(part)))
    }

    /// Its bytes. Those that it was made of are noted in `taken`.
    pub(super) fn bytes<'b>(
        &self,
        file: &HashMap<String, TensorView<'b>>,
        taken: &mut HashSet<String>,
        dtype: Option<Dtype>,
    ) -> Result<Cow<'b, [u8]>, Refused> {
        let mut parts = Vec::new();
        for part in self.then.parts.iter().filter(|part| !part.rows.is_empty()) {
            let name = self.written(part);
            let found = file.get(&name);
            let found = found.ok_or_else(|| format!("`{name}` is missing"))?;
            if Some(found.dtype()) != dtype {
                return Err(format!("`{name}` is of another type"));
            }
            parts.push((part, found.data()));
            taken.insert(name);
        }
        let shape = self.then.rows();
        let numbers: usize = shape.iter().product();
        let size = parts.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() / numbers.max(1);
        let is_all = self.now.rows.len() == shape[self.now.axis];
        let whole = match parts.as_slice() {
            // What is not divided keeps its form, such as the means of Adafactor, which have fewer numbers.
            [(_, bytes)] if is_all => return Ok(Cow::Borrowed(*bytes)),
            [(_, bytes)] => Cow::Borrowed(*bytes),
            parts => Cow::Owned(self.joined(parts, &shape, size)?),
        };
        if whole.len() != numbers * size || size == 0 {
            return Err(format!(
                "`{}` of `{}` cannot be divided",
                self.kind, self.name
            ));
        }
        match is_all {
            true => Ok(whole),
            false => Ok(Cow::Owned(cut(&whole, &shape, self.now, size))),
        }
    }

    fn joined(
        &self,
        parts: &[(&StoredPart, &[u8])],
        shape: &[usize],
        size: usize,
    ) -> Result<Vec<u8>, Refused> {
        let mut whole = vec![0; shape.iter().product::<usize>() * size];
        for (part, bytes) in parts {
            let numbers: usize = self.then.shape_of(part).iter().product();
            if bytes.len() != numbers * size {
                return Err(format!("`{}` is of another size", self.written(part)));
            }
            for (own, place) in rows(shape, part, size) {
                whole[place..place + own.len()].copy_from_slice(&bytes[own]);
            }
        }
        Ok(whole)
    }
}

/// The bytes of a part of a whole tensor.
fn cut(whole: &[u8], shape: &[usize], part: &StoredPart, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (own, place) in rows(shape, part, size) {
        bytes.extend_from_slice(&whole[place..place + own.len()]);
    }
    bytes
}

/// The pieces of a part that lie together in the whole: which of its bytes, and where they are there.
fn rows(
    shape: &[usize],
    part: &StoredPart,
    size: usize,
) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
    let before: usize = shape[..part.axis].iter().product();
    let row = shape[part.axis + 1..].iter().product::<usize>() * size;
    let (own, whole) = (part.rows.len() * row, shape[part.axis] * row);
    let start = part.rows.start * row;
    (0..before).map(move |number| {
        let from = number * own;
        (from..from + own, number * whole + start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(module: usize, rows: Range<usize>, axis: usize) -> StoredPart {
        StoredPart { module, rows, axis }
    }

    /// Rows on servers in turn become columns on two devices, and the other way.
    #[test]
    fn rows_become_columns() {
        let (then, columns) = (
            Variable {
                shape: vec![3, 4],
                parts: vec![part(1, 0..2, 0), part(0, 2..3, 0)],
            },
            [part(0, 0..1, 1), part(1, 1..4, 1)],
        );
        let whole: Vec<u8> = (0..12).collect();
        let file = [("weights.1.w", &whole[..8]), ("weights.0.w", &whole[8..])];
        let view = |(name, bytes): (&str, &'static [u8])| {
            let rows = bytes.len() / 4;
            let view = TensorView::new(Dtype::U8, vec![rows, 4], bytes).expect("a tensor");
            (name.to_owned(), view)
        };
        let file: HashMap<String, TensorView<'_>> = file
            .map(|(name, bytes)| (name, &*bytes.to_vec().leak()))
            .map(view)
            .into();
        let expected: [&[u8]; 2] = [&[0, 4, 8], &[1, 2, 3, 5, 6, 7, 9, 10, 11]];
        for (now, expected) in columns.iter().zip(expected) {
            let piece = Piece {
                kind: "weights",
                name: "w",
                then: &then,
                now,
            };
            let mut taken = HashSet::new();
            assert!(piece.is_written(&file));
            let bytes = piece.bytes(&file, &mut taken, Some(Dtype::U8));
            assert_eq!(&*bytes.expect("it is whole"), expected);
            assert_eq!(taken.len(), 2);
            assert!(piece.bytes(&file, &mut taken, Some(Dtype::F32)).is_err());
        }
    }
}
