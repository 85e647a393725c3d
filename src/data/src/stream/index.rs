//! The one pass over the files of a stream before it is used: every row is looked at, and of every [`BLOCK`]th the place is
//! written down, so that any block can be read later.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rayon::prelude::*;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};

use super::layout::{Bad, Classes, Fields, Given, Layout, Row};
use super::order::BLOCK;
use super::rows::{At, Format, RawRows};
use crate::dataset::{SkippedRows, index_of, sorted_label_names};
use crate::example::{Example, Label};
use crate::problem;
use crate::source::{Columns, FieldCount, TableRow, files_named, too_many_tags};
use crate::tags::sorted_tags;

/// What is known of the files.
pub(super) struct Index {
    format: Format,
    /// The path or pattern as it was given.
    pub(super) source: String,
    files: Vec<SourceFile>,
    /// Where each block begins.
    blocks: Vec<Place>,
    pub(super) rows: usize,
    pub(super) bytes: u64,
    pub(super) skipped: SkippedRows,
    /// The classes, in sorted order.
    pub(super) label_names: Vec<String>,
    pub(super) class_counts: Vec<usize>,
    class_of: HashMap<String, usize>,
    /// The lowest and the highest number, where numbers are to be predicted.
    pub(super) values: Option<(f32, f32)>,
    /// Whether a row has several labels.
    pub(super) has_label_sets: bool,
    /// Whether the path is that of the file, and no pattern.
    is_one: bool,
}

/// A file as it was when it was looked through.
struct SourceFile {
    path: PathBuf,
    layout: Layout,
    /// Its first row after the header.
    begin: At,
    bytes: u64,
    modified: Option<SystemTime>,
}

#[derive(Clone, Copy)]
struct Place {
    file: usize,
    at: At,
}

/// The names of the classes in the order in force.
pub(super) struct Names {
    pub(super) list: Vec<String>,
    shared: Vec<Arc<str>>,
    /// The class of each class of the files; `None`: they are the same.
    numbers: Option<Vec<usize>>,
}

impl Names {
    pub(super) fn new(list: Vec<String>, numbers: Option<Vec<usize>>) -> Self {
        Self {
            shared: list.iter().map(|name| name.as_str().into()).collect(),
            list,
            numbers,
        }
    }

    /// The class of a class of the files.
    pub(super) fn class(&self, of_files: usize) -> usize {
        match &self.numbers {
            Some(numbers) => numbers.get(of_files).copied().unwrap_or(of_files),
            None => of_files,
        }
    }
}

impl Index {
    /// Looks through the files.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read, SC0912 for a row with more or fewer fields than the header, SC0313 and SC0417
    /// for columns, SC0416 for missing labels, SC0914 for a file without rows, SC0520 after an interrupt.
    pub(super) fn of(format: Format, path: &Path, columns: &Columns) -> Result<Self> {
        let paths = files_named(format.call(), path)?;
        let sizes = paths
            .iter()
            .map(|path| path.metadata().map_or(0, |it| it.len()));
        let bytes: u64 = sizes.sum();
        let verb = ("looking through", "looked through");
        let total = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut pass = Pass {
            format,
            columns,
            files: Vec::new(),
            blocks: Vec::new(),
            rows: 0,
            bytes: 0,
            skipped: SkippedRows::default(),
            classes: Classes::default(),
            values: None,
            work: Work::begin(verb, total, Unit::Bytes),
        };
        let is_one = paths == [path];
        for path in paths {
            pass.file(path)?;
        }
        let index = pass.finished(path.display().to_string());
        Ok(Self { is_one, ..index })
    }

    /// How many files there are.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// The classes in the order that the file has for them. Files of a pattern have theirs sorted, as in memory.
    pub(super) fn class_names(&self) -> Option<&[String]> {
        let file = self.files.first().filter(|_| self.is_one);
        file?.layout.class_names()
    }

    /// Whether rows are pairs of texts.
    pub(super) fn is_paired(&self) -> bool {
        self.files.first().is_some_and(|it| it.layout.is_paired())
    }

    /// Whether rows are words with tags.
    pub(super) fn is_tagged(&self) -> bool {
        self.files.first().is_some_and(|it| it.layout.is_tagged())
    }

    /// The function that made it, for messages.
    pub(super) fn call(&self) -> &'static str {
        self.format.call()
    }

    /// The examples of some blocks, block by block. They are read in parallel.
    ///
    /// # Errors
    /// SC0911 if a file cannot be read, or has changed.
    pub(super) fn read(&self, blocks: &[usize], names: &Names) -> Result<Vec<Example>> {
        let each: Result<Vec<Vec<Example>>> = blocks
            .par_iter()
            .map(|&block| self.block(block, names))
            .collect();
        Ok(each?.into_iter().flatten().collect())
    }

    fn block(&self, block: usize, names: &Names) -> Result<Vec<Example>> {
        let first = block * BLOCK;
        let count = BLOCK.min(self.rows.saturating_sub(first));
        let mut examples = Vec::with_capacity(count);
        let Some(&Place { mut file, mut at }) = self.blocks.get(block) else {
            return Ok(examples);
        };
        while let Some(source) = self.files.get(file) {
            let mut rows = source.open_at(self.format, at)?;
            while examples.len() < count {
                let raw = rows.next();
                let raw = raw.map_err(|error| source.layout.unreadable(at.line, &error))?;
                let Some(raw) = raw else { break };
                let line = raw.at.line;
                if let Row::Example(fields) = source.layout.row(raw) {
                    let row = first + examples.len();
                    let example = self.example(fields, (row, line), names);
                    examples.push(example.ok_or_else(|| source.changed())?);
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
        let class = |name: &String| Some(names.class(*self.class_of.get(name)?));
        let classes = |given: &[String]| given.iter().map(class).collect::<Option<Vec<usize>>>();
        let mut example = Example::new(fields.text);
        let label = match fields.label {
            Given::Nothing => None,
            Given::Value(value) => Some(Label::Value(value)),
            Given::Class(name) => Some(Label::Class(class(&name)?)),
            Given::Several(given) => {
                example = example.with_classes(classes(&given)?);
                None
            }
            Given::Tags { words, tags } => {
                let tags = classes(&tags)?.into_iter().map(Some);
                example = Example::of_words(words.iter().map(String::as_str).zip(tags));
                None
            }
        };
        let label_name = match (label, example.classes()) {
            (Some(Label::Class(class)), _) => names.shared.get(class).cloned(),
            (_, Some(classes)) => {
                let own = classes.iter().filter_map(|&it| names.shared.get(it));
                let own: Vec<&str> = own.map(|it| &**it).collect();
                Some(own.join(", ").into())
            }
            _ => None,
        };
        Some(Example {
            pair: fields.pair,
            label,
            label_name,
            row,
            // Of several files a line does not say which.
            line: (self.files.len() == 1).then_some(line),
            ..example
        })
    }
}

impl SourceFile {
    /// The rows from a place on.
    ///
    /// # Errors
    /// SC0911 if the file is not what was looked through.
    fn open_at(&self, format: Format, at: At) -> Result<RawRows> {
        let unreadable = |error| self.layout.unreadable(at.line, &error);
        let metadata = self.path.metadata().map_err(unreadable)?;
        if metadata.len() != self.bytes || metadata.modified().ok() != self.modified {
            return Err(self.changed());
        }
        let rows = match self.layout.typed() {
            Some(file) => file.rows(&self.path, at.line - 1).map(RawRows::Typed),
            None => RawRows::open_at(&self.path, format, at),
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

/// The first pass.
struct Pass<'c> {
    format: Format,
    columns: &'c Columns,
    files: Vec<SourceFile>,
    blocks: Vec<Place>,
    rows: usize,
    /// Of the files that are done.
    bytes: u64,
    skipped: SkippedRows,
    classes: Classes,
    values: Option<(f32, f32)>,
    work: Work,
}

impl Pass<'_> {
    fn file(&mut self, path: PathBuf) -> Result<()> {
        let (call, name) = (self.format.call(), path.display().to_string());
        let unreadable = |reason: String| problem::unreadable(call, &name, None, reason);
        let metadata = path
            .metadata()
            .map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            let reason = match metadata.is_dir() {
                true => "it is a folder, not a file",
                false => "it is no regular file, and a stream reads its files more than once",
            };
            return Err(unreadable(reason.to_owned()));
        }
        let rows = RawRows::open(&path, self.format);
        let mut rows = rows.map_err(|error| unreadable(error.to_string()))?;
        let mut layout = Layout::begin(self.format, &name, self.columns, &mut rows)?;
        for name in layout.class_names().into_iter().flatten() {
            self.classes.know(name);
        }
        let begin = rows.here();
        let before = self.rows;
        self.all(&mut layout, &mut rows)?;
        if self.rows == before {
            return Err(layout.empty());
        }
        if let Some(first) = self.files.first()
            && first.layout.kind() != layout.kind()
        {
            return Err(unreadable(format!(
                "it has {}, and `{}` has {}",
                layout.kind(),
                first.layout.source(),
                first.layout.kind()
            )));
        }
        self.bytes += metadata.len();
        self.files.push(SourceFile {
            // Whatever folder a later cell works in.
            path: std::path::absolute(&path).unwrap_or(path),
            layout,
            begin,
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        });
        Ok(())
    }

    /// All rows of a file.
    fn all(&mut self, layout: &mut Layout, rows: &mut RawRows) -> Result<()> {
        // Not for every row: reading a row takes about a microsecond, and so does the check.
        const ROWS_BETWEEN: usize = 256;
        let (mut field_count, mut seen) = (FieldCount::new(layout.header()), 0_usize);
        let (mut first_missing, mut missing) = (Vec::new(), 0);
        loop {
            let line = rows.here().line;
            let raw = rows.next();
            let raw = raw.map_err(|error| layout.unreadable(line, &error))?;
            let Some(raw) = raw else { break };
            let at = raw.at;
            seen += 1;
            if seen.is_multiple_of(ROWS_BETWEEN) {
                let done = usize::try_from(self.bytes + at.offset);
                self.work.reached(done.unwrap_or(usize::MAX))?;
            }
            match layout.first_row(raw)? {
                Row::Example(fields) => self.add(layout, at, fields.label)?,
                Row::Dropped => {}
                Row::Unlabelled => {
                    missing += 1;
                    if missing <= 8 {
                        first_missing.push(at.line);
                    }
                }
                Row::Bad(Bad::Ragged(fields)) => {
                    let line = at.line;
                    field_count.accepts(layout.source(), &TableRow { line, fields });
                }
                Row::Bad(Bad::Other { listed, .. }) if self.columns.skips_bad_rows() => {
                    self.skipped.add(|| listed);
                }
                Row::Bad(Bad::Other { reason, .. }) => {
                    let (call, source) = (layout.call(), layout.source());
                    return Err(problem::unreadable(call, source, Some(at.line), reason));
                }
            }
        }
        let ragged = field_count.finish(layout.call(), self.columns)?;
        self.skipped.extend(&ragged);
        match missing {
            0 => Ok(()),
            _ => Err(problem::missing_labels(
                layout.call(),
                layout.source(),
                layout.label_column(),
                (&first_missing, missing),
                seen,
            )),
        }
    }

    /// A row that is an example.
    fn add(&mut self, layout: &Layout, at: At, label: Given) -> Result<()> {
        if self.rows.is_multiple_of(BLOCK) {
            let file = self.files.len();
            self.blocks.push(Place { file, at });
        }
        self.rows += 1;
        match label {
            Given::Nothing => {}
            Given::Class(name) if self.classes.add(&name) => {}
            Given::Several(mut names) => {
                // Named twice, a row has a label once.
                names.sort_unstable();
                names.dedup();
                if !names.iter().all(|name| self.classes.add(name)) {
                    return Err(Classes::too_many(layout, at));
                }
            }
            Given::Class(_) => return Err(Classes::too_many(layout, at)),
            Given::Tags { tags, .. } => {
                for tag in &tags {
                    self.classes.add(tag);
                }
                if let Some(reason) = too_many_tags(self.classes.len()) {
                    let (call, source) = (layout.call(), layout.source());
                    return Err(problem::unreadable(call, source, Some(at.line), reason));
                }
            }
            Given::Value(value) => {
                let (low, high) = self.values.unwrap_or((value, value));
                self.values = Some((low.min(value), high.max(value)));
            }
        }
        Ok(())
    }

    fn finished(self, source: String) -> Index {
        self.work.finished();
        let is_tagged = self.files.first().is_some_and(|it| it.layout.is_tagged());
        let label_names = match is_tagged {
            true => sorted_tags(self.classes.names()),
            false => sorted_label_names(self.classes.names()),
        };
        let class_of = index_of(&label_names).into_iter();
        Index {
            format: self.format,
            has_label_sets: self.columns.has_label_sets(),
            is_one: false,
            source,
            files: self.files,
            blocks: self.blocks,
            rows: self.rows,
            bytes: self.bytes,
            skipped: self.skipped,
            class_counts: label_names
                .iter()
                .map(|it| self.classes.count(it))
                .collect(),
            class_of: class_of.map(|(name, at)| (name.to_owned(), at)).collect(),
            label_names,
            values: self.values,
        }
    }
}
