//! What stands in a cell of the grid, where a row and a device meet, and the mark of a row.

use std::ops::Range;

use stratoscope_render::text;

use crate::checksum::Checksum;

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::placement) enum Mark {
    Right,
    /// The strategy did not place it.
    Outside,
    /// Its copies have to be equal and are not.
    Unequal,
}

impl Mark {
    /// The sign before the row's name in text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Right => "",
            Self::Outside => "✗ ",
            Self::Unequal => "≠ ",
        }
    }
}

/// What a device has of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::placement) enum Cell {
    /// Nothing, where a copy should be.
    Missing,
    /// Nothing, as expected for the kind of the variable.
    Elsewhere,
    /// A copy.
    Copy {
        checksum: Checksum,
        /// Bytes of each part.
        parts: Vec<u64>,
        /// Whether checksums prove that it equals the other copies, as it has to.
        proved: bool,
        /// Whether it differs from most copies, though it has to be equal.
        odd: bool,
        /// The rows that are here, for a sharded variable.
        rows: Option<Range<usize>>,
        /// What `rows` counts: 0 for rows, 1 for columns.
        axis: usize,
        /// The rows that this device updates, where replicas divide the update.
        updated: Option<Range<usize>>,
    },
    /// A layer's copies.
    Copies {
        variables: usize,
        parts: Vec<u64>,
        proved: bool,
        /// How many copies differ from most.
        odd: usize,
        /// Whether some of them are rows of a sharded variable.
        piece: bool,
    },
}

impl Cell {
    /// The cell as text: the first digits of a checksum, `rows 0–95`, `✓ 16`, `no copy`.
    pub fn words(&self) -> String {
        match self {
            Self::Missing => "no copy".to_owned(),
            Self::Elsewhere => "–".to_owned(),
            // A shard has seldom another copy to compare with, so its rows say more than its checksum.
            Self::Copy {
                rows: Some(rows),
                axis,
                odd,
                ..
            } => match odd {
                true => format!("≠{}", in_words(rows, *axis)),
                false => in_words(rows, *axis),
            },
            Self::Copy { checksum, odd, .. } => match odd {
                true => format!("≠{}", checksum.short()),
                false => checksum.short(),
            },
            Self::Copies { odd, .. } if *odd > 0 => format!("{odd} ≠"),
            Self::Copies {
                variables, proved, ..
            } => match proved {
                true => format!("✓ {variables}"),
                false => variables.to_string(),
            },
        }
    }

    /// Whether it differs from what most replicas have.
    pub fn is_odd(&self) -> bool {
        match self {
            Self::Copy { odd, .. } => *odd,
            Self::Copies { odd, .. } => *odd > 0,
            Self::Missing | Self::Elsewhere => false,
        }
    }

    /// The cell in full, for its tooltip.
    pub fn title(&self) -> String {
        match self {
            Self::Missing => "this device has no copy".to_owned(),
            Self::Elsewhere => "not stored here".to_owned(),
            Self::Copy {
                checksum,
                odd,
                rows,
                axis,
                updated,
                ..
            } => {
                let what = match rows {
                    Some(rows) => format!("{}, checksum", in_words(rows, *axis)),
                    None => "checksum".to_owned(),
                };
                let differs = if *odd {
                    ", unlike that of most copies"
                } else {
                    ""
                };
                let updates = match updated {
                    Some(rows) if rows.is_empty() => "; others update it".to_owned(),
                    Some(rows) => format!("; updates {}", in_words(rows, 0)),
                    None => String::new(),
                };
                format!("{what} {checksum}{differs}{updates}")
            }
            Self::Copies {
                variables,
                odd,
                piece,
                ..
            } => match (odd, piece) {
                (0, true) => format!("parts of {}", text::count(*variables, "variable")),
                (0, false) => text::count(*variables, "variable"),
                (odd, _) => {
                    format!("{odd} of {variables} copies differ from those of most replicas")
                }
            },
        }
    }
}

/// `rows 0–95`, counted from 0, the last one included; `row 4`; `columns 0–95`.
fn in_words(rows: &Range<usize>, axis: usize) -> String {
    let what = if axis == 0 { "row" } else { "column" };
    match rows.len() {
        1 => format!("{what} {}", rows.start),
        _ => format!("{what}s {}–{}", rows.start, rows.end.saturating_sub(1)),
    }
}
