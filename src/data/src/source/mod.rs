//! The sources of data sets: one file per format or collection. Each fills a
//! `Table`, which selects the columns, numbers the classes and handles rows without a label.

mod arrow;
mod choices;
mod classes;
mod columnar;
mod columns;
mod conll;
mod csv;
mod csv_rows;
mod debian;
mod encoding;
mod files;
mod foreign;
mod glue;
mod index;
mod jsonl;
mod layout;
mod lines;
mod one_hot;
mod parquet;
mod pass;
mod records;
mod row;
mod rows;
mod squad;
mod squad_rows;
mod tsv;
mod values;

use std::io::Read;
use std::path::Path;

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::rules::RaggedRow;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_render::text;

use crate::dataset::{Dataset, SkippedRows, index_of, sorted_label_names};
use crate::example::{Example, Label};
use crate::label_sets::names_in;
use crate::problem;
use crate::shards::AutoShardPolicy;
use crate::weights;

pub use columns::Columns;
pub use debian::{debian_entities, debian_pairs, debian_questions, debian_sections};
pub use glue::Glue;

pub(crate) use index::{BLOCK, Index, Names};
pub(crate) use rows::Format;

use columns::{Chosen, LabelColumn, Missing};

/// The largest file that is read. A data set is held in memory, so a larger file is refused before
/// the machine starts swapping.
const LARGEST_FILE_BYTES: u64 = 4 << 30;

/// Rows of named columns, as text, with the line each row begins at.
pub(crate) struct Table {
    /// The path or call, for messages.
    pub(crate) source: String,
    /// The function that reads it, for messages: `Dataset::tsv`.
    pub(crate) call: &'static str,
    /// The names of the columns.
    pub(crate) header: Vec<String>,
    /// As many fields as columns, in each.
    pub(crate) rows: Vec<TableRow>,
    /// Rows that are not there.
    pub(crate) skipped: SkippedRows,
    /// What the reader decided by itself.
    pub(crate) remarks: Vec<String>,
}

/// One row of a [`Table`].
pub(crate) struct TableRow {
    /// The line of the file it begins at, counted from 1.
    pub(crate) line: usize,
    /// As many as there are columns.
    pub(crate) fields: Vec<String>,
}

impl Table {
    /// Picks the columns, numbers the classes in sorted order, and makes the examples.
    fn dataset(mut self, columns: &Columns) -> Result<Dataset> {
        let remarks = std::mem::take(&mut self.remarks);
        let one_hot = columns.one_hot_names();
        let joined = one_hot.map(|names| self.join_one_hot(names, columns));
        let joined = joined.transpose()?;
        let data = self.without_remarks(joined.as_ref().unwrap_or(columns))?;
        Ok(Dataset { remarks, ..data })
    }

    fn without_remarks(mut self, columns: &Columns) -> Result<Dataset> {
        let chosen = columns.choose(self.call, &self.source, &self.header)?;
        if !chosen.choices.is_empty() {
            return self.multiple_choice(&chosen, columns);
        }
        if let LabelColumn::Class(column) | LabelColumn::Value(column) = chosen.label {
            self.settle_missing(column, columns.missing())?;
        }
        if let LabelColumn::Several(column) = chosen.label {
            self.check_label_sets(column, columns)?;
        }
        let weights = self.weights(&chosen, columns)?;
        if self.rows.is_empty() {
            return Err(problem::empty(&self.source, self.call));
        }
        let names_of = |field: &str| names_in(field, columns.separator()).unwrap_or_default();
        let label_names = match chosen.label {
            LabelColumn::Class(column) => {
                sorted_label_names(self.rows.iter().map(|row| row.fields[column].as_str()))
            }
            LabelColumn::Several(column) => {
                let sets = self.rows.iter().map(|row| names_of(&row.fields[column]));
                let names: Vec<String> = sets.flatten().collect();
                sorted_label_names(names.iter().map(String::as_str))
            }
            LabelColumn::Value(_) | LabelColumn::Absent => Vec::new(),
        };
        let class_of = index_of(&label_names);
        let mut examples = Vec::with_capacity(self.rows.len());
        let mut skipped = std::mem::take(&mut self.skipped);
        for (TableRow { line, fields }, weight) in self.rows.iter().zip(weights) {
            let label = match chosen.label {
                LabelColumn::Class(column) => class_of
                    .get(fields[column].as_str())
                    .map(|&class| Label::Class(class)),
                LabelColumn::Value(column) => match self.value(*line, column, &fields[column]) {
                    Ok(value) => Some(value),
                    Err(_) if columns.skips_bad_rows() => {
                        let (text, name) =
                            (text::excerpt(&fields[column], 40), &self.header[column]);
                        skipped.add(|| {
                            format!("line {line} has `{text}` as {name}, which is no number")
                        });
                        continue;
                    }
                    Err(problem) => return Err(problem),
                },
                LabelColumn::Several(_) | LabelColumn::Absent => None,
            };
            let example = Example::new(&fields[chosen.text]);
            let example = match chosen.label {
                LabelColumn::Several(column) => {
                    let names = names_of(&fields[column]);
                    let classes = names.iter().filter_map(|name| class_of.get(name.as_str()));
                    example.with_classes(classes.copied())
                }
                _ => example,
            };
            examples.push(Example {
                pair: chosen.pair.map(|pair| fields[pair].clone()),
                label,
                weight,
                row: examples.len(),
                line: Some(*line),
                ..example
            });
        }
        if examples.is_empty() {
            return Err(problem::empty(&self.source, self.call));
        }
        let data = Dataset {
            examples,
            label_names,
            source: self.source,
            skipped,
            remarks: Vec::new(),
            auto_shard: AutoShardPolicy::default(),
        };
        Ok(data.with_names_in_examples())
    }

    /// Drops rows whose label is missing, or fills it in.
    ///
    /// # Errors
    /// SC0416 if neither was requested.
    fn settle_missing(&mut self, column: usize, missing: &Missing) -> Result<()> {
        let is_missing = |row: &TableRow| row.fields[column].trim().is_empty();
        match missing {
            Missing::Dropped => self.rows.retain(|row| !is_missing(row)),
            Missing::Filled(label) => {
                for row in self.rows.iter_mut().filter(|row| is_missing(row)) {
                    row.fields[column].clone_from(label);
                }
            }
            Missing::Refused => {
                let rows = self.rows.iter().filter(|row| is_missing(row));
                let lines: Vec<usize> = rows.map(|row| row.line).collect();
                if !lines.is_empty() {
                    return Err(problem::missing_labels(
                        self.call,
                        &self.source,
                        Some(&self.header[column]),
                        (&lines, lines.len()),
                        self.rows.len(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether each row has names of labels. Rows that have not are left out, if that was asked for.
    ///
    /// # Errors
    /// SC0911 for such a row.
    fn check_label_sets(&mut self, column: usize, columns: &Columns) -> Result<()> {
        let separator = columns.separator();
        self.read_from_rows(columns, |_, fields| {
            names_in(&fields[column], separator).map(drop)
        })?;
        Ok(())
    }

    /// The weight of each row. Rows whose weight is none are left out, if that was asked for.
    ///
    /// # Errors
    /// SC0911 for such a row.
    fn weights(&mut self, chosen: &Chosen, columns: &Columns) -> Result<Vec<f32>> {
        self.read_from_rows(columns, |header, fields| {
            weights::written(header, fields, chosen.weight)
        })
    }

    /// What `read` makes of the fields of each row. Rows of which it says what is wrong are left out, if that was asked for.
    fn read_from_rows<T>(
        &mut self,
        columns: &Columns,
        read: impl Fn(&[String], &[String]) -> std::result::Result<T, String>,
    ) -> Result<Vec<T>> {
        let rows = std::mem::take(&mut self.rows);
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            match read(&self.header, &row.fields) {
                Ok(value) => {
                    found.push(value);
                    self.rows.push(row);
                }
                Err(reason) if columns.skips_bad_rows() => {
                    self.skipped.add(|| format!("line {}: {reason}", row.line));
                }
                Err(reason) => {
                    let (call, source) = (self.call, &self.source);
                    return Err(problem::unreadable(call, source, Some(row.line), reason));
                }
            }
        }
        Ok(found)
    }

    /// A label that is a number.
    fn value(&self, line: usize, column: usize, text: &str) -> Result<Label> {
        match text.trim().parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(Label::Value(value)),
            _ => {
                let name = &self.header[column];
                let reason = format!(
                    "`{}` in column `{name}` is not a number",
                    text::excerpt(text, 40)
                );
                Err(problem::unreadable(
                    self.call,
                    &self.source,
                    Some(line),
                    reason,
                ))
            }
        }
    }
}

/// Reads a whole file as text, without a byte order mark.
fn read_text(call: &'static str, path: &Path) -> Result<String> {
    read_encoded(call, path, None)
}

/// The same of a file whose encoding the columns may name.
fn read_encoded(call: &'static str, path: &Path, encoding: Option<&str>) -> Result<String> {
    let name = path.display().to_string();
    let unreadable = |reason: String| problem::unreadable(call, &name, None, reason);
    let file = files::open(path).map_err(unreadable)?;
    let metadata = file
        .metadata()
        .map_err(|error| unreadable(error.to_string()))?;
    let too_large = format!("it is larger than {} GiB", LARGEST_FILE_BYTES >> 30);
    if metadata.len() > LARGEST_FILE_BYTES {
        return Err(unreadable(too_large));
    }
    let mut bytes = Vec::new();
    // A file may grow while it is read.
    file.take(LARGEST_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        return Err(unreadable(too_large));
    }
    let has_columns = call != "Dataset::text";
    if let Some((reason, way)) = foreign::foreign(&bytes, &name, has_columns) {
        return Err(problem::unreadable_with(call, &name, reason, &way));
    }
    encoding::decoded(bytes, encoding).map_err(|undecoded| {
        let problem = problem::unreadable(call, &name, undecoded.line, undecoded.reason);
        let word = undecoded.word.as_deref();
        match undecoded.probably {
            Some(probably) => problem::in_encoding(problem, call, &name, (probably, word)),
            None => problem,
        }
    })
}

/// The progress of reading rows: for a large file it shows progress and checks for interrupts.
struct Reading {
    work: Work,
    rows: usize,
}

impl Reading {
    /// `bytes`: the length of the text.
    fn begin(bytes: usize) -> Self {
        Self {
            work: Work::begin(("reading rows of", "read rows of"), bytes, Unit::Bytes),
            rows: 0,
        }
    }

    /// A row is about to be read; those before it end at byte `offset`.
    ///
    /// # Errors
    /// SC0520 after an interrupt.
    fn row(&mut self, offset: usize) -> Result<()> {
        // Not for every row: reading a row takes well under a microsecond, and so does the check.
        const ROWS_BETWEEN: usize = 256;
        self.rows += 1;
        match self.rows % ROWS_BETWEEN {
            0 => self.work.reached(offset),
            _ => Ok(()),
        }
    }

    fn finished(self) {
        self.work.finished();
    }
}

/// Counts rows whose number of fields is not the header's.
pub(crate) struct FieldCount {
    expected: usize,
    first: Option<RaggedRow>,
    skipped: SkippedRows,
}

impl FieldCount {
    pub(crate) fn new(header: &[String]) -> Self {
        Self {
            expected: header.len(),
            first: None,
            skipped: SkippedRows::default(),
        }
    }

    /// Whether the row is as long as the header; if not, it is recorded or counted.
    pub(crate) fn accepts(&mut self, source: &str, row: &TableRow) -> bool {
        if row.fields.len() == self.expected {
            return true;
        }
        let (line, found) = (row.line, row.fields.len());
        self.skipped.add(|| {
            let found = text::count(found, "field");
            format!("line {line} has {found}, the header has {}", self.expected)
        });
        match &mut self.first {
            Some(first) => first.rows += 1,
            None => {
                self.first = Some(RaggedRow {
                    path: source.to_owned(),
                    line: row.line,
                    expected: self.expected,
                    found: row.fields.len(),
                    text: row.fields.join(" ⇥ "),
                    rows: 1,
                });
            }
        }
        false
    }

    /// The rows that were not accepted, if they are to be skipped.
    ///
    /// # Errors
    /// SC0912 if any row was not accepted, and they are not.
    pub(crate) fn finish(self, call: &str, columns: &Columns) -> Result<SkippedRows> {
        match self.first {
            Some(rule) if !columns.skips_bad_rows() => Err(problem::ragged_row(call, &rule)),
            _ => Ok(self.skipped),
        }
    }
}
