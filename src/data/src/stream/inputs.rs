//! [`Inputs`]: which inputs of the model the rows of a stream are: one each, or the windows of the text that a question is
//! about. An order is one of inputs; a file is read by rows.

use std::ops::Range;
use std::sync::Arc;

use super::order::pieces;

/// Which inputs each row is. They are numbered in the order of the rows.
#[derive(Clone)]
pub(super) struct Inputs {
    rows: usize,
    /// Behind the last input of each row; `None`: a row is one.
    ends: Option<Arc<[usize]>>,
}

impl Inputs {
    /// `ends`: behind the last input of each row, where a row may have several, and none has no input.
    pub(super) fn new(rows: usize, ends: Option<Vec<usize>>) -> Self {
        Self {
            rows,
            ends: ends.map(Arc::from),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.before(self.rows)
    }

    /// How many come before a row.
    fn before(&self, row: usize) -> usize {
        match (&self.ends, row.checked_sub(1)) {
            (None, _) => row,
            (Some(_), None) => 0,
            (Some(ends), Some(last)) => ends.get(last).copied().unwrap_or(0),
        }
    }

    /// How many a row has.
    pub(super) fn of_row(&self, row: usize) -> usize {
        self.before(row + 1) - self.before(row)
    }

    /// The rows of some inputs.
    pub(super) fn rows_of(&self, inputs: &Range<usize>) -> Range<usize> {
        let row_of = |input: usize| match &self.ends {
            None => input,
            Some(ends) => ends.partition_point(|&end| end <= input),
        };
        match inputs.is_empty() {
            true => 0..0,
            false => row_of(inputs.start)..row_of(inputs.end - 1) + 1,
        }
    }

    /// The inputs of some rows, block of rows by block.
    pub(super) fn pieces(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        pieces(rows).map(|rows| self.before(rows.start)..self.before(rows.end))
    }

    /// All of them, block of rows by block.
    pub(super) fn all_pieces(&self) -> Arc<[Range<usize>]> {
        self.pieces(0..self.rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_found_by_rows_and_rows_by_inputs() {
        let of_texts = Inputs::new(1000, None);
        assert_eq!((of_texts.len(), of_texts.of_row(7)), (1000, 1));
        assert_eq!(of_texts.rows_of(&(3..5)), 3..5);
        assert_eq!(of_texts.all_pieces()[..], [0..512, 512..1000]);

        // Rows of 1, 2, 3, 1, 2, 3, … windows.
        let counts = (0..1000).map(|row| 1 + row % 3);
        let ends = counts.clone().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let inputs = Inputs::new(1000, Some(ends.collect()));
        assert_eq!(inputs.len(), counts.clone().sum::<usize>());
        assert!((0..1000).map(|row| inputs.of_row(row)).eq(counts));
        assert_eq!(inputs.all_pieces()[..], [0..1023, 1023..1999]);
        for piece in inputs.all_pieces().iter() {
            let rows = inputs.rows_of(piece);
            assert!(rows == (0..512) || rows == (512..1000), "{rows:?}");
        }
        assert_eq!(inputs.rows_of(&(2..4)), 1..3);
        assert_eq!(inputs.rows_of(&(0..0)), 0..0);
    }
}
