//! [`Index`]: what the first pass over the files of a stream has found, by which any block of [`BLOCK`] rows can be read.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rayon::prelude::*;
use stratoscope_diagnostics::{Diagnostic, Result};

use super::layout::Layout;
use super::raw::{At, Format};
use super::row::{Fields, Row};
use super::rows::RawRows;
use crate::dataset::SkippedRows;
use crate::example::Example;
use crate::problem;

/// The rows of a block.
pub(crate) const BLOCK: usize = 512;

/// What is known of the files.
pub(crate) struct Index {
    /// The function that made it, for messages.
    pub(super) call: &'static str,
    pub(super) format: Format,
    /// The path or pattern as it was given.
    pub(crate) source: String,
    pub(crate) files: Vec<SourceFile>,
    /// Where each block begins.
    pub(crate) blocks: Vec<Place>,
    pub(crate) rows: usize,
    pub(crate) bytes: u64,
    pub(crate) skipped: SkippedRows,
    /// The classes, in sorted order.
    pub(crate) label_names: Vec<String>,
    pub(crate) class_counts: Vec<usize>,
    pub(crate) class_of: HashMap<String, usize>,
    /// The lowest and the highest number, where numbers are to be predicted.
    pub(crate) values: Option<(f32, f32)>,
    /// The lowest and the highest weight, where not all are 1.
    pub(crate) weights: Option<(f32, f32)>,
    /// Whether a row has several labels.
    pub(crate) has_label_sets: bool,
    /// How many texts each row has to choose from, where it has some.
    pub(crate) choices: Option<usize>,
    /// Whether some question has no answer.
    pub(crate) has_unanswerable: bool,
    /// The classes in the order that the files have for them, where they have one.
    pub(crate) class_order: Option<Vec<String>>,
}

/// A file as it was when it was looked through.
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) layout: Layout,
    /// Its first row after the header.
    pub(crate) begin: At,
    /// Its rows among those of all files.
    pub(crate) rows: Range<usize>,
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) at: At,
}

/// The names of the classes in the order in force.
pub(crate) struct Names {
    pub(crate) list: Vec<String>,
    shared: Vec<Arc<str>>,
    /// The class of each class of the files; `None`: they are the same.
    numbers: Option<Vec<usize>>,
}

impl Names {
    pub(crate) fn new(list: Vec<String>, numbers: Option<Vec<usize>>) -> Self {
        Self {
            shared: list.iter().map(|name| name.as_str().into()).collect(),
            list,
            numbers,
        }
    }

    /// The class of a class of the files.
    pub(crate) fn class(&self, of_files: usize) -> usize {
        match &self.numbers {
            Some(numbers) => numbers.get(of_files).copied().unwrap_or(of_files),
            None => of_files,
        }
    }
}

impl Index {
    /// How many files there are.
    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Whether rows are pairs of texts.
    pub(crate) fn is_paired(&self) -> bool {
        self.files.first().is_some_and(|it| it.layout.is_paired())
    }

    /// Whether rows are words with tags.
    pub(crate) fn is_tagged(&self) -> bool {
        self.files.first().is_some_and(|it| it.layout.is_tagged())
    }

    /// Whether rows are questions with answers.
    pub(crate) fn has_answers(&self) -> bool {
        self.files.first().is_some_and(|it| it.layout.has_answers())
    }

    /// The function that made it, for messages.
    pub(crate) fn call(&self) -> &'static str {
        self.call
    }

    /// The examples of some pieces of blocks, piece by piece. They are read in parallel.
    ///
    /// # Errors
    /// SC0911 if a file cannot be read, or has changed.
    pub(crate) fn read(&self, pieces: &[Range<usize>], names: &Names) -> Result<Vec<Example>> {
        let each: Result<Vec<Vec<Example>>> = pieces
            .par_iter()
            .map(|piece| self.piece(piece, names))
            .collect();
        Ok(each?.into_iter().flatten().collect())
    }

    fn piece(&self, rows: &Range<usize>, names: &Names) -> Result<Vec<Example>> {
        let block = rows.start / BLOCK;
        let file = self
            .files
            .partition_point(|file| file.rows.end <= rows.start);
        let (from, place) = match self.files.get(file) {
            // What is before the file in its block is not read.
            Some(source) if source.rows.start > block * BLOCK => {
                let at = source.begin;
                (source.rows.start, Place { file, at })
            }
            _ => match self.blocks.get(block) {
                Some(&place) => (block * BLOCK, place),
                None => return Ok(Vec::new()),
            },
        };
        let mut examples = self.rows_at(place, from..rows.end, names)?;
        examples.drain(..rows.start - from);
        Ok(examples)
    }

    /// These rows, the first of which stands at this place.
    fn rows_at(&self, place: Place, wanted: Range<usize>, names: &Names) -> Result<Vec<Example>> {
        let Range { start: first, end } = wanted;
        let count = end.min(self.rows).saturating_sub(first);
        let mut examples = Vec::with_capacity(count);
        let Place { mut file, mut at } = place;
        while let Some(source) = self.files.get(file) {
            let mut rows = source.open_at(at)?;
            let name: Arc<str> = source.layout.source().into();
            while examples.len() < count {
                let raw = rows.next();
                let raw =
                    raw.map_err(|error| source.layout.unreadable(rows.failed_line(at), &error))?;
                let Some(raw) = raw else { break };
                let line = raw.at.line;
                if let Row::Example(fields) = source.layout.row(raw) {
                    let row = first + examples.len();
                    let example = self.example(fields, (row, line), names);
                    let example = example.ok_or_else(|| source.changed())?;
                    examples.push(Example {
                        file: Some(Arc::clone(&name)),
                        ..example
                    });
                }
            }
            if examples.len() == count {
                return Ok(examples);
            }
            file += 1;
            at = self.files.get(file).map_or(at, |next| next.begin);
        }
        // There were more rows before.
        Err(self.files[file - 1].changed())
    }

    /// `None` for a class that the files did not have.
    fn example(
        &self,
        fields: Fields,
        (row, line): (usize, usize),
        names: &Names,
    ) -> Option<Example> {
        let class = |name: &str| Some(names.class(*self.class_of.get(name)?));
        let example = fields.example(class, &names.shared)?;
        // Of several files a line does not say which.
        let has_lines = self.files.len() == 1 && self.format.has_lines();
        Some(Example {
            row,
            line: has_lines.then_some(line),
            ..example
        })
    }
}

impl SourceFile {
    /// The rows from a place on.
    ///
    /// # Errors
    /// SC0911 if the file is not what was looked through.
    fn open_at(&self, at: At) -> Result<RawRows> {
        let unreadable = |error| self.layout.unreadable(Some(at.line), &error);
        let metadata = self.path.metadata().map_err(unreadable)?;
        if metadata.len() != self.bytes || metadata.modified().ok() != self.modified {
            return Err(self.changed());
        }
        let rows = match self.layout.typed() {
            Some(file) => {
                let rows = file.rows(&self.path, at.line - 1);
                rows.map(|rows| RawRows::Typed(Box::new(rows)))
            }
            None => RawRows::open_at(&self.path, self.layout.format(), at),
        };
        rows.map_err(unreadable)
    }

    /// SC0911.
    fn changed(&self) -> Box<Diagnostic> {
        let (call, source) = (self.layout.call(), self.layout.source());
        let reason =
            format!("it has changed since `{call}` looked through it; make the stream anew");
        problem::unreadable(call, source, None, reason)
    }
}
