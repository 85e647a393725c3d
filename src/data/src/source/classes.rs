//! [`Classes`]: what is written as a class, with how many rows have each.

use std::collections::HashMap;

use stratoscope_diagnostics::Diagnostic;
use stratoscope_render::text;

use super::layout::Layout;
use super::raw::At;

/// Classes by what is written in the files, in the order in which they were met, with how many rows have each.
#[derive(Default)]
pub(super) struct Classes {
    numbers: HashMap<String, usize>,
    counts: Vec<usize>,
}

impl Classes {
    /// More classes than this are no classes of a stream.
    const MAX_STREAMED: usize = 100_000;

    /// A class that a row may have.
    pub(super) fn know(&mut self, name: &str) {
        if !self.numbers.contains_key(name) {
            self.numbers.insert(name.to_owned(), self.counts.len());
            self.counts.push(0);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// A row has this class. False: there are too many.
    pub(super) fn add(&mut self, name: &str) -> bool {
        match self.numbers.get(name) {
            Some(&number) => self.counts[number] += 1,
            None => {
                self.numbers.insert(name.to_owned(), self.counts.len());
                self.counts.push(1);
            }
        }
        self.counts.len() <= Self::MAX_STREAMED
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.numbers.keys().map(String::as_str)
    }

    /// How many rows have a class.
    pub(super) fn count(&self, name: &str) -> usize {
        let number = self.numbers.get(name);
        number.map_or(0, |&number| self.counts[number])
    }

    /// SC0911 for a column with too many of them.
    pub(super) fn too_many(layout: &Layout, at: At) -> Box<Diagnostic> {
        let column = layout.label_column().unwrap_or_default();
        let most = text::thousands(Self::MAX_STREAMED);
        let reason = format!(
            "column `{column}` has more than {most} different labels; for a number to predict write \
             `Columns::new().value(\"{column}\")`"
        );
        layout.refused(Some(at.line), reason)
    }
}
