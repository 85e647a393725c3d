//! Rows of typed values, as Parquet and Arrow files have them: what their columns are decides which data set is made of them.
//! Texts with labels have common names (see [`Columns`]); lists of words with a list of their tags are CoNLL's layout;
//! questions with their answers are SQuAD's. Hugging Face's `datasets` keeps the names of classes in the metadata of a
//! file, under `huggingface`; labels have these names and this order.

use std::collections::HashMap;

use serde_json::Value as Json;
use stratoscope_diagnostics::Result;

use super::columnar::{ReadAs, WholeFile};
use super::columns::LabelColumn;
use super::files::FileRows;
use super::jsonl::question_columns;
use super::squad::Question;
use super::values::Value;
use super::{Columns, Table, TableRow};
use crate::annotation;
use crate::dataset::{Dataset, SkippedRows};
use crate::problem;

/// The columns of words and of their tags, by the names that data sets on the hub have.
pub(super) const WORDS: [&str; 2] = ["tokens", "words"];
pub(super) const TAGS: [&str; 4] = ["ner_tags", "tags", "pos_tags", "labels"];
/// What the metadata of `datasets` is called.
pub(super) const METADATA: &str = "huggingface";

/// A column of a file.
pub(crate) struct RecordColumn {
    pub(super) name: String,
    /// Whether its values are lists or structures.
    pub(super) is_nested: bool,
    /// What its values are, if they are not read: `maps`.
    pub(super) unreadable: Option<&'static str>,
}

/// What a file says about its rows.
pub(crate) struct Records {
    /// The path, for messages.
    pub(super) source: String,
    /// The function that reads it, for messages.
    pub(super) call: &'static str,
    pub(super) columns: Vec<RecordColumn>,
    /// The names of the classes of a column.
    pub(super) names: HashMap<String, Vec<String>>,
}

impl Records {
    /// The data set that the columns make.
    pub(super) fn dataset(&self, rows: &WholeFile) -> Result<FileRows> {
        if let Some([words, tags]) = self.words_and_tags() {
            return self.sentences(rows, words, tags);
        }
        if let Some(columns) = question_columns(&self.header()) {
            return self.questions(rows, columns).map(FileRows::from);
        }
        self.table(rows, &Columns::new())
    }

    /// SC0911, at a row.
    pub(super) fn unreadable(
        &self,
        row: Option<usize>,
        reason: impl Into<String>,
    ) -> Box<stratoscope_diagnostics::Diagnostic> {
        problem::unreadable(self.call, &self.source, row.map(|row| row + 1), reason)
    }

    /// The place of a column.
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|it| it.name == name)
    }

    /// The place of a column whose values are lists.
    fn nested(&self, name: &str) -> Option<usize> {
        self.column(name).filter(|&at| self.columns[at].is_nested)
    }

    /// The columns of words and of their tags.
    pub(crate) fn words_and_tags(&self) -> Option<[usize; 2]> {
        let list = |names: &[&str]| names.iter().find_map(|name| self.nested(name));
        Some([list(&WORDS)?, list(&TAGS)?])
    }

    fn name(&self, column: usize) -> &str {
        &self.columns[column].name
    }

    /// Texts with labels.
    pub(super) fn table(&self, rows: &WholeFile, columns: &Columns) -> Result<FileRows> {
        let header = self.columns.iter().map(|it| it.name.clone());
        let chosen = columns.choose(self.call, &self.source, &header.collect::<Vec<_>>())?;
        let wanted = chosen.columns();
        let is_list = |column: usize| {
            chosen.choices.contains(&column)
                || matches!(chosen.label, LabelColumn::Several(label) if label == column)
        };
        let mut found = Vec::new();
        rows.each(&wanted, &mut |row, values| {
            let fields = wanted.iter().zip(values);
            let fields = fields.map(|(&column, value)| match value {
                Value::List(_) if is_list(column) => self.list_as_json(row, column, value),
                _ => self.text_of(row, column, value),
            });
            found.push(TableRow {
                line: row + 1,
                fields: fields.collect::<Result<_>>()?,
            });
            Ok(())
        })?;
        let header = wanted.iter().map(|&it| self.name(it).to_owned());
        let table = Table {
            source: self.source.clone(),
            call: self.call,
            header: header.collect(),
            rows: found,
            skipped: SkippedRows::default(),
            remarks: Vec::new(),
        };
        let data = table.dataset(columns)?;
        match chosen.label {
            // The label is the number of a choice, whatever name it has.
            _ if data.has_choices() => Ok(data.into()),
            LabelColumn::Class(label) | LabelColumn::Several(label) => self.numbered(data, label),
            LabelColumn::Value(_) | LabelColumn::Absent => Ok(data.into()),
        }
    }

    fn sentences(&self, rows: &WholeFile, words: usize, tags: usize) -> Result<FileRows> {
        let mut sentences = Vec::new();
        rows.each(&[words, tags], &mut |row, values| {
            let texts = |at: usize, column| -> Result<Vec<String>> {
                let values = self.elements(row, column, &values[at])?.iter();
                values
                    .map(|value| self.text_of(row, column, value))
                    .collect()
            };
            let (words, tags) = (texts(0, words)?, texts(1, tags)?);
            if let Some(what) = annotation::unfit(&words, &tags) {
                return Err(self.unreadable(Some(row), format!("it has {what}")));
            }
            sentences.push((words, tags));
            Ok(())
        })?;
        let mut data = Dataset::of_sentences(&self.source, self.call, &sentences)?;
        for example in &mut data.examples {
            example.line = Some(example.row + 1);
        }
        self.numbered(data, tags)
    }

    /// The classes in the order that the file has for a column, if it has one.
    fn numbered(&self, data: Dataset, column: usize) -> Result<FileRows> {
        match self.names.get(self.name(column)) {
            Some(names) => Ok(FileRows {
                data: data.with_label_names(names)?,
                class_names: Some(names.clone()),
            }),
            None => Ok(data.into()),
        }
    }

    fn questions(&self, rows: &WholeFile, columns: [usize; 3]) -> Result<Dataset> {
        let mut examples = Vec::new();
        rows.each(&columns, &mut |row, values| {
            let question = self.text_of(row, columns[0], &values[0])?;
            let answers = self.answers_as_json(columns[2], &values[2]);
            let asked = answers.and_then(|answers| Question::written(&question, &answers));
            let asked = asked.map_err(|reason| self.unreadable(Some(row), reason))?;
            let context = self.text_of(row, columns[1], &values[1])?;
            let mut example = asked.example(&self.source, row, &context)?;
            example.line = Some(row + 1);
            examples.push(example);
            Ok(())
        })?;
        Ok(Dataset::from_examples(examples, Vec::new(), &self.source))
    }

    /// The answers of a row of SQuAD as JSON, as they are; or why they are none.
    pub(super) fn answers_as_json(
        &self,
        column: usize,
        value: &Value,
    ) -> std::result::Result<String, String> {
        let json = match value {
            Value::Nothing => None,
            Value::Structure(_) | Value::List(_) => self.json(column, value).map(Some)?,
            _ => return Err(self.unfit(column, ReadAs::Answers)),
        };
        Ok(json.map_or_else(String::new, |json| json.to_string()))
    }

    fn json(&self, column: usize, value: &Value) -> std::result::Result<Json, String> {
        Ok(match value {
            Value::Nothing => Json::Null,
            Value::Integer(number) => Json::from(*number),
            Value::List(values) => {
                let values = values.iter().map(|value| self.json(column, value));
                Json::Array(values.collect::<std::result::Result<_, String>>()?)
            }
            Value::Structure(parts) => {
                let parts = parts.iter();
                let parts = parts.map(|(name, part)| Ok((name.clone(), self.json(column, part)?)));
                Json::Object(parts.collect::<std::result::Result<_, String>>()?)
            }
            Value::Text(_) | Value::Bytes(_) | Value::Shown(_) => {
                Json::String(self.text(column, value)?)
            }
        })
    }

    /// Why a column is not what it is to be read as.
    pub(super) fn unfit(&self, column: usize, read_as: ReadAs) -> String {
        let name = self.name(column);
        match read_as {
            ReadAs::Answers => {
                format!("the column `{name}` is no structure of `text` and `answer_start`")
            }
            ReadAs::Text | ReadAs::List => {
                format!("the column `{name}` has lists or structures, not texts")
            }
        }
    }

    /// The elements of a list; a missing one is empty.
    fn elements<'v>(&self, row: usize, column: usize, value: &'v Value) -> Result<&'v [Value]> {
        match value {
            Value::List(elements) => Ok(elements),
            Value::Nothing => Ok(&[]),
            _ => {
                let reason = format!("the column `{}` is no list", self.name(column));
                Err(self.unreadable(Some(row), reason))
            }
        }
    }

    /// The names of a list, as JSON.
    fn list_as_json(&self, row: usize, column: usize, value: &Value) -> Result<String> {
        let json = self.json_of(column, value);
        json.map_err(|reason| self.unreadable(Some(row), reason))
    }

    /// The names of a list as JSON, or why it has none; a value that is no list as text.
    pub(super) fn json_of(
        &self,
        column: usize,
        value: &Value,
    ) -> std::result::Result<String, String> {
        let Value::List(elements) = value else {
            return self.text(column, value);
        };
        let names = elements.iter().map(|element| self.text(column, element));
        let names = names.collect::<std::result::Result<Vec<String>, String>>()?;
        // Texts are JSON in any case.
        Ok(serde_json::to_string(&names).unwrap_or_default())
    }

    /// A value as text: of a class its name, nothing as the empty text.
    fn text_of(&self, row: usize, column: usize, value: &Value) -> Result<String> {
        let text = self.text(column, value);
        text.map_err(|reason| self.unreadable(Some(row), reason))
    }

    /// A value as text, or why it is none.
    pub(super) fn text(&self, column: usize, value: &Value) -> std::result::Result<String, String> {
        let name = self.name(column);
        if let (Some(names), Value::Integer(class)) = (self.names.get(name), value) {
            // `datasets` writes −1 where a row has no class.
            return match usize::try_from(*class) {
                Err(_) => Ok(String::new()),
                Ok(class) => names.get(class).cloned().ok_or_else(|| {
                    let last = names.len().saturating_sub(1);
                    format!("`{name}` is {class}, and its classes are 0 to {last}")
                }),
            };
        }
        match value {
            Value::Nothing => Ok(String::new()),
            Value::Text(text) | Value::Shown(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            // Older writers do not say that bytes are text.
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(format!("`{name}` is not UTF-8 text")),
            },
            Value::List(_) | Value::Structure(_) => Err(self.unfit(column, ReadAs::Text)),
        }
    }
}

/// The names of classes that `datasets` keeps: of each column that is a `ClassLabel`, or a list of them.
pub(super) fn class_names(metadata: &str) -> Option<HashMap<String, Vec<String>>> {
    let metadata: Json = serde_json::from_str(metadata).ok()?;
    let features = metadata.pointer("/info/features")?.as_object()?;
    let names = features.iter().filter_map(|(column, feature)| {
        // Older versions write a list of one feature for a list.
        let feature = feature.get("feature").or(feature.get(0)).unwrap_or(feature);
        let names = feature.get("names")?.as_array()?.iter();
        let names: Option<Vec<String>> = names.map(|it| Some(it.as_str()?.to_owned())).collect();
        Some((column.clone(), names?))
    });
    Some(names.collect())
}
