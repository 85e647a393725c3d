//! Rows of numbers on their way to the first member. A row is a frame with its length, then its pieces.

use super::{PIECE, read, write};
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hop::Hop;

/// The longest row: far more than a machine has memory for.
const MOST: u64 = 1 << 38;

/// The length of the row that comes.
fn length(left: &mut dyn Hop, step: u64) -> Outcome<usize> {
    let frame = left.receive()?;
    if (frame.kind, frame.step) != (Kind::Values, step) {
        let found = frame.kind;
        return Err(Fault::refused(format!("{found:?} of step {}", frame.step)));
    }
    let bytes = <[u8; 8]>::try_from(frame.payload.as_slice());
    match bytes.map(u64::from_le_bytes) {
        Ok(length) if length <= MOST => Ok(length as usize),
        _ => Err(Fault::refused("a row without a length")),
    }
}

/// The lengths of the pieces of a row.
fn pieces(length: usize) -> impl Iterator<Item = usize> {
    (0..length)
        .step_by(PIECE)
        .map(move |start| PIECE.min(length - start))
}

/// So many rows.
pub(super) fn take(left: &mut dyn Hop, step: u64, rows: usize) -> Outcome<Vec<Vec<f32>>> {
    let row = |_| {
        let mut row = Vec::new();
        let mut piece = vec![0.0; PIECE];
        for length in pieces(length(left, step)?) {
            let piece = &mut piece[..length];
            read(left, (Kind::Values, step), piece)?;
            row.extend_from_slice(piece);
        }
        Ok(row)
    };
    (0..rows).map(row).collect()
}

/// Sends on the rows of the members before, then `own`.
pub(super) fn pass(
    (left, right): (&mut dyn Hop, &mut dyn Hop),
    step: u64,
    before: usize,
    own: &[f32],
) -> Outcome<()> {
    let kind = (Kind::Values, step);
    let (mut piece, mut bytes) = (vec![0.0; PIECE], Vec::new());
    for _ in 0..before {
        let length = length(left, step)?;
        right.send(Kind::Values, step, &(length as u64).to_le_bytes())?;
        for length in pieces(length) {
            read(left, kind, &mut piece[..length])?;
            write(right, kind, &piece[..length], &mut bytes)?;
        }
    }
    right.send(Kind::Values, step, &(own.len() as u64).to_le_bytes())?;
    own.chunks(PIECE)
        .try_for_each(|piece| write(right, kind, piece, &mut bytes))
}
