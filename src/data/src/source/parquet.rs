//! Parquet files, as Hugging Face's `datasets` and pandas write them: columns of texts and labels, lists of words with a
//! list of their tags (CoNLL's layout), or questions with their answers (SQuAD's). Only the columns that are needed are
//! read. `datasets` keeps the names of classes in the file's metadata, under `huggingface`; labels have these names and
//! this order.

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde_json::Value;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::columns::LabelColumn;
use super::squad::{Given, Question};
use super::{Columns, LARGEST_FILE_BYTES, Reading, Table, TableRow, files};
use crate::dataset::{Dataset, SkippedRows};
use crate::problem;

const CALL: &str = "Dataset::parquet";
/// The columns of words and of their tags, by the names that data sets on the hub have.
const WORDS: [&str; 2] = ["tokens", "words"];
const TAGS: [&str; 4] = ["ner_tags", "tags", "pos_tags", "labels"];
/// The columns of SQuAD.
const QUESTION: [&str; 3] = ["question", "context", "answers"];

impl Dataset {
    /// Reads a Parquet file, compressed with Snappy, gzip or zstd or not at all. What its columns are decides what is made:
    /// lists `tokens` and `ner_tags` are tagged words; `question`, `context` and `answers` are questions; else the
    /// columns of texts and labels have common names (see [`Columns`]). In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn parquet(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), Self::one_parquet)
    }

    fn one_parquet(path: &Path) -> Result<Self> {
        let file = ParquetFile::open(path)?;
        let list = |names: &[&str]| names.iter().find_map(|name| file.list(name));
        if let (Some(words), Some(tags)) = (list(&WORDS), list(&TAGS)) {
            return file.sentences(words, tags);
        }
        if let [Some(question), Some(context), Some(answers)] = QUESTION.map(|it| file.column(it)) {
            return file.questions([question, context, answers]);
        }
        file.table(&Columns::new())
    }

    /// [`Self::parquet`] of texts, with named columns.
    ///
    /// # Errors
    /// As [`Self::parquet`].
    pub fn parquet_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            ParquetFile::open(path)?.table(columns)
        })
    }
}

/// An open file.
struct ParquetFile {
    source: String,
    reader: SerializedFileReader<fs::File>,
    /// Its columns, as trees of types.
    columns: Vec<Arc<Type>>,
    /// The names of the classes of a column.
    names: HashMap<String, Vec<String>>,
}

impl ParquetFile {
    fn open(path: &Path) -> Result<Self> {
        let source = path.display().to_string();
        let unreadable = |reason: String| problem::unreadable(CALL, &source, None, reason);
        let file = fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            let reason = "it is not a file: rows of Parquet are read from one file at a time";
            return Err(unreadable(reason.to_owned()));
        }
        // The reader maps no memory, but what it says of damaged files is not always an error.
        let reader = catch_unwind(AssertUnwindSafe(|| SerializedFileReader::new(file)));
        let reader = match reader {
            Ok(Ok(reader)) => reader,
            Ok(Err(error)) => {
                return Err(unreadable(format!(
                    "it is no Parquet file: {}",
                    reason_of(&error)
                )));
            }
            Err(_) => return Err(unreadable("it is a damaged Parquet file".to_owned())),
        };
        let schema = reader.metadata().file_metadata();
        let columns = schema.schema().get_fields().to_vec();
        let facts = schema.key_value_metadata().into_iter().flatten();
        let facts = facts.filter(|fact| fact.key == "huggingface");
        let names = facts.filter_map(|fact| class_names(fact.value.as_deref()?));
        Ok(Self {
            names: names.flatten().collect(),
            source,
            columns,
            reader,
        })
    }

    fn unreadable(
        &self,
        row: Option<usize>,
        reason: impl Into<String>,
    ) -> Box<stratoscope_diagnostics::Diagnostic> {
        problem::unreadable(CALL, &self.source, row.map(|row| row + 1), reason)
    }

    /// The place of a column.
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|it| it.name() == name)
    }

    /// The place of a column whose values are lists.
    fn list(&self, name: &str) -> Option<usize> {
        self.column(name).filter(|&at| self.columns[at].is_group())
    }

    fn name(&self, column: usize) -> &str {
        self.columns[column].name()
    }

    /// Goes through all rows; `each` gets the number of the row, from 0, and its fields in the order of `wanted`.
    fn each(
        &self,
        wanted: &[usize],
        mut each: impl FnMut(usize, &[&Field]) -> Result<()>,
    ) -> Result<()> {
        let metadata = self.reader.metadata();
        let groups = metadata.row_groups().iter();
        let roots = metadata.file_metadata().schema_descr();
        let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
        let chunks = chunks.filter(|(leaf, _)| wanted.contains(&roots.get_column_root_idx(*leaf)));
        let bytes: u64 = chunks
            .map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add);
        if bytes > LARGEST_FILE_BYTES {
            let reason = format!(
                "the columns that are needed hold more than {} GiB",
                LARGEST_FILE_BYTES >> 30
            );
            return Err(self.unreadable(None, reason));
        }
        // A row of the projection has its fields in the order of the file.
        let mut places = wanted.to_vec();
        places.sort_unstable();
        let order = wanted
            .iter()
            .map(|it| places.partition_point(|other| other < it));
        let order: Vec<usize> = order.collect();
        let fields = places.iter().map(|&place| Arc::clone(&self.columns[place]));
        let projection = Type::group_type_builder(metadata.file_metadata().schema().name())
            .with_fields(fields.collect())
            .build();
        let damaged = |row| self.unreadable(row, "it is a damaged Parquet file");
        let rows = projection.and_then(|it| self.reader.get_row_iter(Some(it)));
        let mut rows = rows.map_err(|error| self.unreadable(None, reason_of(&error)))?;
        let mut reading = Reading::begin(usize::try_from(bytes).unwrap_or(usize::MAX));
        let (mut row, mut read) = (0, 0_u64);
        loop {
            reading.row(usize::try_from(read).unwrap_or(usize::MAX))?;
            let next = catch_unwind(AssertUnwindSafe(|| rows.next()));
            let fields = match next {
                Ok(None) => break,
                Ok(Some(Ok(fields))) => fields,
                Ok(Some(Err(error))) => return Err(self.unreadable(Some(row), reason_of(&error))),
                Err(_) => return Err(damaged(Some(row))),
            };
            let fields: Vec<&Field> = fields.get_column_iter().map(|(_, it)| it).collect();
            read += fields.iter().copied().map(size_of_field).sum::<u64>();
            // Few bytes of a file may stand for many rows.
            if read > LARGEST_FILE_BYTES {
                return Err(damaged(Some(row)));
            }
            let ordered = order.iter();
            let ordered = ordered.map(|&at| fields.get(at).copied().unwrap_or(&Field::Null));
            each(row, &ordered.collect::<Vec<_>>())?;
            row += 1;
        }
        reading.finished();
        match row {
            0 => Err(problem::empty(&self.source, CALL)),
            _ => Ok(()),
        }
    }

    fn table(&self, columns: &Columns) -> Result<Dataset> {
        let table = |header, rows| Table {
            source: self.source.clone(),
            call: CALL,
            header,
            rows,
            skipped: SkippedRows::default(),
        };
        let header = self.columns.iter().map(|it| it.name().to_owned());
        let chosen = columns.choose(&table(header.collect(), Vec::new()))?;
        let label = match chosen.label {
            LabelColumn::Class(label) | LabelColumn::Value(label) | LabelColumn::Several(label) => {
                Some(label)
            }
            LabelColumn::Absent => None,
        };
        let mut wanted = vec![chosen.text];
        for column in [chosen.pair, label].into_iter().flatten() {
            if !wanted.contains(&column) {
                wanted.push(column);
            }
        }
        let is_list =
            |column: usize| matches!(chosen.label, LabelColumn::Several(label) if label == column);
        let mut rows = Vec::new();
        self.each(&wanted, |row, fields| {
            let fields = wanted.iter().zip(fields);
            let fields = fields.map(|(&column, &field)| match field {
                Field::ListInternal(_) if is_list(column) => self.list_as_json(row, column, field),
                _ => self.text_of(row, column, field),
            });
            rows.push(TableRow {
                line: row + 1,
                fields: fields.collect::<Result<_>>()?,
            });
            Ok(())
        })?;
        let header = wanted.iter().map(|&it| self.name(it).to_owned());
        let data = table(header.collect(), rows).dataset(columns)?;
        match chosen.label {
            LabelColumn::Class(label) | LabelColumn::Several(label) => self.numbered(data, label),
            LabelColumn::Value(_) | LabelColumn::Absent => Ok(data),
        }
    }

    fn sentences(&self, words: usize, tags: usize) -> Result<Dataset> {
        let mut sentences = Vec::new();
        self.each(&[words, tags], |row, fields| {
            let texts = |at: usize, column| -> Result<Vec<String>> {
                let fields = self.elements(row, column, fields[at])?.iter();
                fields
                    .map(|field| self.text_of(row, column, field))
                    .collect()
            };
            sentences.push((texts(0, words)?, texts(1, tags)?));
            Ok(())
        })?;
        let mut data = Dataset::of_sentences(&self.source, CALL, &sentences)?;
        for example in &mut data.examples {
            example.line = Some(example.row + 1);
        }
        self.numbered(data, tags)
    }

    /// The classes in the order that the file has for a column, if it has one.
    fn numbered(&self, data: Dataset, column: usize) -> Result<Dataset> {
        match self.names.get(self.name(column)) {
            Some(names) => data.with_label_names(names),
            None => Ok(data),
        }
    }

    fn questions(&self, columns: [usize; 3]) -> Result<Dataset> {
        let mut examples = Vec::new();
        self.each(&columns, |row, fields| {
            let question = Question {
                question: self.text_of(row, columns[0], fields[0])?,
                answers: self.answers(row, columns[2], fields[2])?,
                is_impossible: false,
            };
            let context = self.text_of(row, columns[1], fields[1])?;
            let mut example = question.example(&self.source, row, &context)?;
            example.line = Some(row + 1);
            examples.push(example);
            Ok(())
        })?;
        Ok(Dataset::from_examples(examples, Vec::new(), &self.source))
    }

    /// The answers of a row of SQuAD: a list of texts, and a list of where they begin.
    fn answers(&self, row: usize, column: usize, field: &Field) -> Result<Vec<Given>> {
        let Field::Group(answers) = field else {
            let reason = format!(
                "the column `{}` is no structure of `text` and `answer_start`",
                self.name(column)
            );
            return Err(self.unreadable(Some(row), reason));
        };
        let part = |name: &str| {
            let mut parts = answers.get_column_iter();
            let part = parts
                .find(|(part, _)| *part == name)
                .map(|(_, field)| field);
            self.elements(row, column, part.unwrap_or(&Field::Null))
        };
        let (texts, starts) = (part("text")?, part("answer_start")?);
        if texts.len() != starts.len() {
            let reason = format!("{} answers begin at {} places", texts.len(), starts.len());
            return Err(self.unreadable(Some(row), reason));
        }
        let given = texts.iter().zip(starts).map(|(text, start)| {
            let answer_start = integer(start).and_then(|start| usize::try_from(start).ok());
            Ok(Given {
                text: self.text_of(row, column, text)?,
                answer_start: answer_start.ok_or_else(|| {
                    self.unreadable(Some(row), "an answer begins at no number of characters")
                })?,
            })
        });
        given.collect()
    }

    /// The elements of a list; a missing one is empty.
    fn elements<'f>(&self, row: usize, column: usize, field: &'f Field) -> Result<&'f [Field]> {
        match field {
            Field::ListInternal(list) => Ok(list.elements()),
            Field::Null => Ok(&[]),
            _ => {
                let reason = format!("the column `{}` is no list", self.name(column));
                Err(self.unreadable(Some(row), reason))
            }
        }
    }

    /// The names of a list, as JSON.
    fn list_as_json(&self, row: usize, column: usize, field: &Field) -> Result<String> {
        let elements = self.elements(row, column, field)?.iter();
        let names: Vec<String> = elements
            .map(|element| self.text_of(row, column, element))
            .collect::<Result<_>>()?;
        // Texts are JSON in any case.
        Ok(serde_json::to_string(&names).unwrap_or_default())
    }

    /// A value as text: of a class its name, nothing as the empty text.
    fn text_of(&self, row: usize, column: usize, field: &Field) -> Result<String> {
        let name = self.name(column);
        if let (Some(names), Some(class)) = (self.names.get(name), integer(field)) {
            // `datasets` writes −1 where a row has no class.
            return match usize::try_from(class) {
                Err(_) => Ok(String::new()),
                Ok(class) => names.get(class).cloned().ok_or_else(|| {
                    let last = names.len().saturating_sub(1);
                    let reason = format!("`{name}` is {class}, and its classes are 0 to {last}");
                    self.unreadable(Some(row), reason)
                }),
            };
        }
        match field {
            Field::Null => Ok(String::new()),
            Field::Str(text) => Ok(text.clone()),
            // Older writers do not say that bytes are text.
            Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => {
                    let reason = format!("`{name}` is not UTF-8 text");
                    Err(self.unreadable(Some(row), reason))
                }
            },
            Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
                let reason = format!("the column `{name}` has lists or structures, not texts");
                Err(self.unreadable(Some(row), reason))
            }
            Field::Bool(value) => Ok(value.to_string()),
            Field::Float(value) => Ok(value.to_string()),
            Field::Double(value) => Ok(value.to_string()),
            other => Ok(match integer(other) {
                Some(value) => value.to_string(),
                None => other.to_string(),
            }),
        }
    }
}

/// A value that is a whole number.
fn integer(field: &Field) -> Option<i64> {
    match *field {
        Field::Byte(value) => Some(value.into()),
        Field::Short(value) => Some(value.into()),
        Field::Int(value) => Some(value.into()),
        Field::Long(value) => Some(value),
        Field::UByte(value) => Some(value.into()),
        Field::UShort(value) => Some(value.into()),
        Field::UInt(value) => Some(value.into()),
        Field::ULong(value) => i64::try_from(value).ok(),
        _ => None,
    }
}

/// About what a value takes in memory.
fn size_of_field(field: &Field) -> u64 {
    const FIXED: u64 = 32;
    match field {
        Field::Str(text) => FIXED + text.len() as u64,
        Field::Bytes(bytes) => FIXED + bytes.len() as u64,
        Field::Group(row) => {
            let parts = row.get_column_iter();
            FIXED + parts.map(|(_, field)| size_of_field(field)).sum::<u64>()
        }
        Field::ListInternal(list) => FIXED + list.elements().iter().map(size_of_field).sum::<u64>(),
        _ => FIXED,
    }
}

/// The names of classes that `datasets` keeps: of each column that is a `ClassLabel`, or a list of them.
fn class_names(metadata: &str) -> Option<HashMap<String, Vec<String>>> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let features = metadata.pointer("/info/features")?.as_object()?;
    let names = features.iter().filter_map(|(column, feature)| {
        let feature = feature.get("feature").unwrap_or(feature);
        let names = feature.get("names")?.as_array()?.iter();
        let names: Option<Vec<String>> = names.map(|it| Some(it.as_str()?.to_owned())).collect();
        Some((column.clone(), names?))
    });
    Some(names.collect())
}

/// What the reader says, without saying that it is about Parquet.
fn reason_of(error: &parquet::errors::ParquetError) -> String {
    let reason = error.to_string();
    let reason = reason.strip_prefix("Parquet error: ").unwrap_or(&reason);
    text::excerpt(reason, 200)
}
