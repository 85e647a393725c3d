//! The one pass over the files of a stream before it is used: every row is looked at, and of every [`BLOCK`]th the place is
//! written down, so that any block can be read later.

use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::arrow::files_of as arrow_files;
use super::classes::Classes;
use super::columns::Columns;
use super::conll::too_many_tags;
use super::files::named as files_named;
use super::index::{BLOCK, Index, Place, SourceFile};
use super::layout::Layout;
use super::row::{Bad, Given, Row};
use super::rows::{At, Format, RawRows};
use super::{FieldCount, TableRow};
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
    pub(crate) fn of(format: Format, path: &Path, columns: &Columns) -> Result<Self> {
        let paths = match format {
            Format::Arrow => arrow_files(format.call(), path)?,
            _ => files_named(format.call(), path)?,
        };
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
            order: ClassOrder::default(),
            values: None,
            weights: None,
            choices: None,
            outside: None,
            has_unanswerable: false,
            work: Work::begin(verb, total, Unit::Bytes),
        };
        for path in paths {
            pass.file(path)?;
        }
        pass.finished(path.display().to_string())
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
    /// The classes that the files name.
    order: ClassOrder,
    values: Option<(f32, f32)>,
    weights: Option<(f32, f32)>,
    /// How many texts the first row has to choose from.
    choices: Option<usize>,
    outside: Option<Outside>,
    /// Whether some question has no answer.
    has_unanswerable: bool,
    work: Work,
}

/// Rows whose label is the number of no choice.
struct Outside {
    file: String,
    /// Of the first one.
    line: usize,
    label: usize,
    rows: usize,
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
        if let Some(names) = layout.class_names() {
            self.order.add(&name, names).map_err(unreadable)?;
            names.iter().for_each(|name| self.classes.know(name));
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
            rows: before..self.rows,
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
                Row::Example(fields) => {
                    self.weights = Some(widened(self.weights, fields.weight));
                    self.add(layout, at, fields.label)?;
                }
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
            Given::Answers(answers) => self.has_unanswerable |= answers.is_empty(),
            Given::Choice { choices, right } => self.add_choice(layout, at, &choices, right)?,
            Given::Value(value) => self.values = Some(widened(self.values, value)),
        }
        Ok(())
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
            let (call, source) = (layout.call(), layout.source());
            return Err(problem::unreadable(call, source, Some(at.line), reason));
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

    fn finished(self, source: String) -> Result<Index> {
        self.work.finished();
        let is_tagged = self.files.first().is_some_and(|it| it.layout.is_tagged());
        let label_names = match is_tagged {
            true => sorted_tags(self.classes.names()),
            false => sorted_label_names(self.classes.names()),
        };
        if let Some(Outside {
            file,
            line,
            label,
            rows,
        }) = self.outside
        {
            let first = Example {
                line: Some(line),
                ..Example::new("")
            };
            let given = label.to_string();
            return Err(problem::unknown_label(
                &file,
                &first,
                &given,
                &label_names,
                rows,
            ));
        }
        let class_of = index_of(&label_names).into_iter();
        Ok(Index {
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
