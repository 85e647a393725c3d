//! The one pass over files. Every row is looked at: for a data set, all rows go into memory; for a stream, the place of
//! every [`BLOCK`]th is written down, so that any block can be read later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stratoscope_diagnostics::rules::RaggedRow;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::classes::Classes;
use super::columns::Columns;
use super::conll::too_many_tags;
use super::files;
use super::foreign;
use super::index::{BLOCK, Index, Place, SourceFile};
use super::layout::Layout;
use super::raw::{At, Format};
use super::row::{Bad, Fields, Given, Row};
use super::rows::RawRows;
use crate::choices::unfit;
use crate::class_order::ClassOrder;
use crate::dataset::{SkippedRows, index_of, sorted_label_names};
use crate::example::Example;
use crate::problem;
use crate::tags::sorted_tags;
use crate::weights::widened;

impl Index {
    /// Looks through the files.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read, SC0912 for a row with more or fewer fields than the header, SC0313 and SC0417
    /// for columns, SC0416 for missing labels, SC0432 for an answer that does not stand where the row says, SC0913 for the number of no choice, SC0914 for a file without rows, SC0520
    /// after an interrupt.
    pub(crate) fn of(
        call: &'static str,
        format: Format,
        path: &Path,
        columns: &Columns,
    ) -> Result<Self> {
        let paths = files::of(call, format, path)?;
        let verb = ("looking through", "looked through");
        let work = Work::begin(verb, files::bytes(&paths), Unit::Bytes);
        let mut pass = Pass::new(call, format, columns, work, None);
        for path in paths {
            pass.file(path)?;
        }
        pass.index(path.display().to_string())
    }
}

/// A number of bytes.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Goes through the rows of files.
pub(super) struct Pass<'c> {
    call: &'static str,
    pub(super) format: Format,
    pub(super) columns: &'c Columns,
    files: Vec<SourceFile>,
    blocks: Vec<Place>,
    /// The rows that are examples, with their files and lines, where all of them are in memory.
    pub(super) in_memory: Option<Vec<Stored>>,
    /// The first file and what its rows are, for messages.
    first: Option<(String, String)>,
    is_tagged: bool,
    rows: usize,
    /// Of the files that are done.
    bytes: u64,
    pub(super) skipped: SkippedRows,
    classes: Classes,
    /// The classes that the files name.
    pub(super) order: ClassOrder,
    values: Option<(f32, f32)>,
    weights: Option<(f32, f32)>,
    /// How many texts the first row has to choose from.
    choices: Option<usize>,
    outside: Option<Outside>,
    /// Whether some question has no answer.
    has_unanswerable: bool,
    /// Whether some row has no label, or several.
    pub(super) has_sets: bool,
    pub(super) work: Work,
}

/// A row that is in memory.
pub(super) struct Stored {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
    pub(super) fields: Fields,
}

/// Rows whose label is the number of no choice.
struct Outside {
    file: String,
    /// Of the first one.
    line: usize,
    label: usize,
    rows: usize,
}

impl<'c> Pass<'c> {
    pub(super) fn new(
        call: &'static str,
        format: Format,
        columns: &'c Columns,
        work: Work,
        in_memory: Option<Vec<Stored>>,
    ) -> Self {
        Self {
            call,
            format,
            columns,
            files: Vec::new(),
            blocks: Vec::new(),
            in_memory,
            first: None,
            is_tagged: false,
            rows: 0,
            bytes: 0,
            skipped: SkippedRows::default(),
            classes: Classes::default(),
            order: ClassOrder::default(),
            values: None,
            weights: None,
            choices: None,
            outside: None,
            has_unanswerable: false,
            has_sets: false,
            work,
        }
    }

    fn file(&mut self, path: PathBuf) -> Result<()> {
        let (call, name) = (self.call, path.display().to_string());
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
        if !self.format.is_typed() {
            let has_columns = self.format != Format::Text;
            let found = foreign::foreign_file(&path, &name, has_columns);
            if let Some((reason, way)) = found.map_err(|error| unreadable(error.to_string()))? {
                return Err(problem::unreadable_with(call, &name, reason, &way));
            }
        }
        let rows = RawRows::open(&path, self.format);
        let rows = rows.map_err(|error| unreadable(error.to_string()))?;
        let before = self.rows;
        let (layout, begin) = self.rows(&name, metadata.len(), rows)?;
        self.files.push(SourceFile {
            // Whatever folder a later cell works in.
            path: std::path::absolute(&path).unwrap_or(path),
            layout,
            begin,
            rows: before..self.rows,
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        });
        Ok(())
    }

    /// The rows of a file, which has about so many bytes: its columns, and where the first row after the header begins.
    ///
    /// # Errors
    /// As [`Index::of`]; SC0915 for rows of another kind than those of the files before.
    pub(super) fn rows(
        &mut self,
        source: &str,
        bytes: u64,
        mut rows: RawRows,
    ) -> Result<(Layout, At)> {
        let mut layout = Layout::begin(self.call, self.format, source, self.columns, &mut rows)?;
        if let Some(names) = layout.class_names() {
            let added = self.order.add(source, names);
            added.map_err(|reason| layout.refused(None, reason))?;
            names.iter().for_each(|name| self.classes.know(name));
        }
        let (begin, before) = (rows.here(), self.rows);
        self.all(&mut layout, &mut rows)?;
        if self.rows == before {
            return Err(layout.empty());
        }
        self.bytes += bytes;
        self.is_tagged = layout.is_tagged();
        let kind = layout.kind();
        match &self.first {
            Some((first, expected)) if *expected != kind => {
                let expects = format!("{expected}, as `{first}` is");
                let place = problem::call(self.call);
                Err(problem::bad_size(place, source, kind, &expects))
            }
            _ => {
                self.first.get_or_insert_with(|| (source.to_owned(), kind));
                Ok((layout, begin))
            }
        }
    }

    /// All rows of a file.
    fn all(&mut self, layout: &mut Layout, rows: &mut RawRows) -> Result<()> {
        // Not for every row: reading a row takes about a microsecond, and so does the check.
        const ROWS_BETWEEN: usize = 256;
        let file: Arc<str> = layout.source().into();
        let (mut ragged, mut seen) = (None, 0_usize);
        let (mut first_missing, mut missing) = (Vec::new(), 0);
        loop {
            let begun = rows.here();
            let raw = rows.next();
            let raw = raw.map_err(|error| layout.unreadable(rows.failed_line(begun), &error))?;
            let Some(raw) = raw else { break };
            let at = raw.at;
            seen += 1;
            if seen.is_multiple_of(ROWS_BETWEEN) {
                self.work.reached(size(self.bytes + at.offset))?;
            }
            match layout.first_row(raw)? {
                Row::Example(fields) => self.add(layout, &file, at, fields)?,
                Row::Dropped => {}
                Row::Misplaced(asked, context) => {
                    asked.example(layout.source(), seen - 1, &context)?;
                }
                Row::Unlabelled => {
                    missing += 1;
                    if missing <= 8 {
                        first_missing.push(at.line);
                    }
                }
                Row::Bad(Bad::Ragged(fields)) => {
                    self.add_ragged(&mut ragged, layout, at.line, &fields);
                }
                Row::Bad(Bad::Other { listed, .. }) if self.columns.skips_bad_rows() => {
                    self.skipped.add(|| listed);
                }
                Row::Bad(Bad::Other { reason, .. }) => {
                    return Err(layout.refused(Some(at.line), reason));
                }
            }
        }
        if let Some(rule) = ragged {
            return Err(problem::ragged_row(layout.call(), &rule));
        }
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

    /// A row with more or fewer fields than the header: it is skipped, if that was asked for, or counted for an error.
    fn add_ragged(
        &mut self,
        ragged: &mut Option<RaggedRow>,
        layout: &Layout,
        line: usize,
        fields: &[String],
    ) {
        let expected = layout.header().len();
        if self.columns.skips_bad_rows() {
            self.skipped.add(|| {
                let found = text::count(fields.len(), "field");
                format!("line {line} has {found}, the header has {expected}")
            });
            return;
        }
        let rule = ragged.get_or_insert_with(|| RaggedRow {
            path: layout.source().to_owned(),
            line,
            expected,
            found: fields.len(),
            text: fields.join(" ⇥ "),
            rows: 0,
        });
        rule.rows += 1;
    }

    /// A row that is an example.
    fn add(&mut self, layout: &Layout, file: &Arc<str>, at: At, fields: Fields) -> Result<()> {
        self.weights = Some(widened(self.weights, fields.weight));
        if self.in_memory.is_none() && self.rows.is_multiple_of(BLOCK) {
            let file = self.files.len();
            self.blocks.push(Place { file, at });
        }
        self.rows += 1;
        match &fields.label {
            Given::Nothing => {}
            Given::Class(name) => self.add_class(layout, at, name)?,
            Given::Several(names) => {
                self.has_sets |= names.len() != 1;
                // Named twice, a row has a label once.
                let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
                names.sort_unstable();
                names.dedup();
                for name in names {
                    self.add_class(layout, at, name)?;
                }
            }
            Given::Tags { tags, .. } => {
                for tag in tags {
                    self.classes.add(tag);
                }
                let is_limited = self.in_memory.is_none() || self.format == Format::Conll;
                if is_limited && let Some(reason) = too_many_tags(self.classes.len()) {
                    return Err(layout.refused(Some(at.line), reason));
                }
            }
            Given::Answers(answers) => self.has_unanswerable |= answers.is_empty(),
            Given::Choice { choices, right } => self.add_choice(layout, at, choices, *right)?,
            Given::Value(value) => self.values = Some(widened(self.values, *value)),
        }
        if let Some(rows) = &mut self.in_memory {
            rows.push(Stored {
                file: Arc::clone(file),
                line: at.line,
                fields,
            });
        }
        Ok(())
    }

    /// A row has this class. A stream has a limited number of them.
    fn add_class(&mut self, layout: &Layout, at: At, name: &str) -> Result<()> {
        match self.classes.add(name) || self.in_memory.is_some() {
            true => Ok(()),
            false => Err(Classes::too_many(layout, at)),
        }
    }

    /// A row of texts to choose from, as many as the first row has.
    fn add_choice(
        &mut self,
        layout: &Layout,
        at: At,
        choices: &[String],
        right: Option<usize>,
    ) -> Result<()> {
        let is_first = self.choices.is_none();
        let expected = *self.choices.get_or_insert(choices.len());
        if let Some(reason) = unfit(self.rows - 1, choices.len(), expected) {
            return Err(layout.refused(Some(at.line), reason));
        }
        if is_first {
            (0..expected).for_each(|number| self.classes.know(&number.to_string()));
        }
        match right {
            Some(label) if label >= expected => {
                let outside = self.outside.get_or_insert_with(|| Outside {
                    file: layout.source().to_owned(),
                    line: at.line,
                    label,
                    rows: 0,
                });
                outside.rows += 1;
            }
            Some(label) => {
                self.classes.add(&label.to_string());
            }
            None => {}
        }
        Ok(())
    }

    /// The names of the classes in their order.
    ///
    /// # Errors
    /// SC0913 for the number of no choice.
    pub(super) fn label_names(&self) -> Result<Vec<String>> {
        let label_names = match self.is_tagged {
            true => sorted_tags(self.classes.names()),
            false => sorted_label_names(self.classes.names()),
        };
        match &self.outside {
            Some(outside) => Err(outside.problem(&label_names)),
            None => Ok(label_names),
        }
    }

    /// What is known of the files.
    fn index(self, source: String) -> Result<Index> {
        let label_names = self.label_names()?;
        self.work.finished();
        let class_of = index_of(&label_names).into_iter();
        Ok(Index {
            call: self.call,
            format: self.format,
            has_label_sets: self.columns.has_label_sets(),
            choices: self.choices,
            has_unanswerable: self.has_unanswerable,
            class_order: self.order.into_names(),
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
            weights: self.weights.filter(|&range| range != (1.0, 1.0)),
        })
    }
}

impl Outside {
    /// SC0913.
    fn problem(&self, label_names: &[String]) -> Box<Diagnostic> {
        let first = Example {
            line: Some(self.line),
            ..Example::new("")
        };
        let given = self.label.to_string();
        problem::unknown_label(&self.file, &first, &given, label_names, self.rows)
    }
}
