//! Rows of typed values, as Parquet and Arrow files have them: what their columns are decides which examples are made of them.
//! Texts with labels have common names (see [`Columns`](super::Columns)); lists of words with a list of their tags are CoNLL's layout;
//! questions with their answers are SQuAD's. Hugging Face's `datasets` keeps the names of classes in the metadata of a
//! file, under `huggingface`; labels have these names and this order.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::columnar::{Read, ReadAs};
use super::values::Value;

/// The columns of words and of their tags, by the names that data sets on the hub have.
pub(super) const WORDS: [&str; 2] = ["tokens", "words"];
pub(super) const TAGS: [&str; 4] = ["ner_tags", "tags", "pos_tags", "labels"];
/// What the metadata of `datasets` is called.
pub(super) const METADATA: &str = "huggingface";

/// A column of a file.
pub(super) struct RecordColumn {
    pub(super) name: String,
    /// Whether its values are lists or structures.
    pub(super) is_nested: bool,
    /// What its values are, if they are not read: `maps`.
    pub(super) unreadable: Option<&'static str>,
}

/// What a file says about its rows.
pub(super) struct Records {
    pub(super) columns: Vec<RecordColumn>,
    /// The names of the classes of a column.
    pub(super) names: HashMap<String, Vec<String>>,
}

impl Records {
    /// The names of the columns.
    pub(super) fn header(&self) -> Vec<String> {
        self.columns.iter().map(|it| it.name.clone()).collect()
    }

    /// The classes that the file names for a column, in their order.
    pub(super) fn class_names(&self, column: &str) -> Option<&[String]> {
        self.names.get(column).map(Vec::as_slice)
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
    pub(super) fn words_and_tags(&self) -> Option<[usize; 2]> {
        let list = |names: &[&str]| names.iter().find_map(|name| self.nested(name));
        Some([list(&WORDS)?, list(&TAGS)?])
    }

    fn name(&self, column: usize) -> &str {
        &self.columns[column].name
    }

    /// The answers of a row of SQuAD as JSON, as they are; or why they are none.
    pub(super) fn answers_as_json(&self, column: usize, value: &Value) -> Read<String> {
        let json = match value {
            Value::Nothing => None,
            Value::Structure(_) | Value::List(_) => self.json(column, value).map(Some)?,
            _ => return Err(self.unfit(column, ReadAs::Answers)),
        };
        Ok(json.map_or_else(String::new, |json| json.to_string()))
    }

    fn json(&self, column: usize, value: &Value) -> Read<Json> {
        Ok(match value {
            Value::Nothing => Json::Null,
            Value::Integer(number) => Json::from(*number),
            Value::List(values) => {
                let values = values.iter().map(|value| self.json(column, value));
                Json::Array(values.collect::<Read<_>>()?)
            }
            Value::Structure(parts) => {
                let parts = parts.iter();
                let parts = parts.map(|(name, part)| Ok((name.clone(), self.json(column, part)?)));
                Json::Object(parts.collect::<Read<_>>()?)
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

    /// The texts of a list, none where it is missing; or why it has none.
    pub(super) fn texts(&self, column: usize, value: &Value) -> Read<Vec<String>> {
        match value {
            Value::List(elements) => {
                let texts = elements.iter().map(|element| self.text(column, element));
                texts.collect()
            }
            Value::Nothing => Ok(Vec::new()),
            _ => Err(format!("the column `{}` is no list", self.name(column))),
        }
    }

    /// The names of a list as JSON, or why it has none; a value that is no list as text.
    pub(super) fn json_of(&self, column: usize, value: &Value) -> Read<String> {
        if !matches!(value, Value::List(_)) {
            return self.text(column, value);
        }
        let names = self.texts(column, value)?;
        // Texts are JSON in any case.
        Ok(serde_json::to_string(&names).unwrap_or_default())
    }

    /// A value as text, or why it is none: of a class its name, nothing as the empty text.
    pub(super) fn text(&self, column: usize, value: &Value) -> Read<String> {
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
