//! JSON Lines: one object per line. The keys of the first object are the columns. Later objects may have more keys, which
//! are not read, and may lack keys that are not read.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::records::{TAGS, WORDS};
use super::squad::{COLUMNS, Question};
use super::{Columns, Reading, Table, TableRow, files, read_encoded};
use crate::annotation;
use crate::dataset::{Dataset, SkippedRows};
use crate::example::Example;
use crate::problem;

const CALL: &str = "Dataset::jsonl";

impl Dataset {
    /// Reads a file of JSON objects, one per line, whose keys have common names (see
    /// [`Columns`]). Labels may be strings, numbers or booleans. The keys `question`, `context` and `answers` make
    /// questions, whose answers are an object of lists `text` and `answer_start`, as Hugging Face's `datasets` writes
    /// SQuAD, or a list of objects. Lists under `tokens` or `words`, and under `ner_tags`, `tags`, `pos_tags` or `labels`,
    /// are words with their tags. A file that is one JSON array of such objects is read alike.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, or a line is no object or lacks a key that is read,
    /// SC0313 if a key is missing from the first line, SC0432 for an answer that does not stand where its line
    /// says, SC0914 if there is no line.
    pub fn jsonl(path: impl AsRef<Path>) -> Result<Self> {
        Self::jsonl_with(path, &Columns::new())
    }

    /// [`Self::jsonl`] with named keys.
    ///
    /// # Errors
    /// As [`Dataset::jsonl`].
    pub fn jsonl_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let text = read_encoded(CALL, path, columns.encoding_name())?;
            let source = path.display().to_string();
            let (text, remarks) = match lines_of_array(&source, &text)? {
                Some(lines) => (
                    lines,
                    vec!["it is a JSON array; line 1 is its first object".to_owned()],
                ),
                None => (text, Vec::new()),
            };
            let (table, kind) = table(&source, &text, columns)?;
            let data = match kind {
                Some(Own::Question(own)) => questions(&table, own),
                Some(Own::Words(own)) => sentences(&table, own),
                None => table.dataset(columns),
            }?;
            Ok(Dataset { remarks, ..data })
        })
    }
}

/// The objects of a JSON array, or of the one array in an object such as `{"data": […]}`, one a line.
///
/// # Errors
/// SC0911 for an object over several lines that is neither.
fn lines_of_array(source: &str, text: &str) -> Result<Option<String>> {
    let begin = text.trim_start();
    let first = begin.lines().next().unwrap_or_default();
    let is_whole = begin.starts_with('[')
        || (begin.starts_with('{') && serde_json::from_str::<Value>(first).is_err());
    if !is_whole {
        return Ok(None);
    }
    let objects = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(objects)) => Some(objects),
        Ok(Value::Object(parts)) => {
            let mut lists = parts.into_iter().filter_map(|(_, part)| match part {
                Value::Array(objects) if objects.first().is_some_and(Value::is_object) => {
                    Some(objects)
                }
                _ => None,
            });
            match (lists.next(), lists.next()) {
                (Some(objects), None) => Some(objects),
                _ => {
                    let reason = "it is one JSON object over several lines, not one object a line";
                    let fix = "write an object a line; in pandas `df.to_json(\"data.jsonl\", orient=\"records\", \
                               lines=True)`";
                    return Err(problem::unreadable_with(CALL, source, reason, fix));
                }
            }
        }
        // The line that is wrong is named where lines are read.
        _ => None,
    };
    let lines = objects.map(|objects| {
        let lines = objects.iter().map(Value::to_string);
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(lines)
}

fn table(source: &str, text: &str, columns: &Columns) -> Result<(Table, Option<Own>)> {
    let mut keys: Option<Keys> = None;
    let (mut rows, mut skipped) = (Vec::new(), SkippedRows::default());
    let mut reading = Reading::begin(text.len());
    let mut offset = 0;
    let lines = text.lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        reading.row(offset)?;
        offset += line.len() + 1;
        let line_number = index + 1;
        let object = object(line);
        if let (None, Ok(first)) = (&keys, &object) {
            keys = Some(Keys::of(source, first, columns)?);
        }
        let fields = object.and_then(|object| match &keys {
            Some(keys) => values(&object, &keys.header, &keys.needed),
            None => Ok(Vec::new()),
        });
        match fields {
            Ok(fields) => rows.push(TableRow {
                line: line_number,
                fields,
            }),
            Err(reason) if columns.skips_bad_rows() => {
                skipped.add(|| format!("line {line_number}: {reason}"));
            }
            Err(reason) => {
                return Err(problem::unreadable(CALL, source, Some(line_number), reason));
            }
        }
    }
    reading.finished();
    if rows.is_empty() {
        return Err(problem::empty(source, CALL));
    }
    let (header, own) = match keys {
        Some(keys) => (keys.header, keys.own),
        None => (Vec::new(), None),
    };
    let table = Table {
        source: source.to_owned(),
        call: CALL,
        header,
        rows,
        skipped,
        remarks: Vec::new(),
    };
    Ok((table, own))
}

/// What rows are that are no texts with labels, and the columns of its parts.
#[derive(Clone, Copy)]
enum Own {
    /// A question, its context and its answers.
    Question([usize; 3]),
    /// Words and their tags.
    Words([usize; 2]),
}

impl Own {
    fn of(header: &[String], first: &Map<String, Value>) -> Option<Self> {
        if let Some(columns) = question_columns(header) {
            return Some(Self::Question(columns));
        }
        let list = |names: &[&str]| {
            let is_list = |name: &&&str| first.get(**name).is_some_and(Value::is_array);
            let name = names.iter().find(is_list)?;
            header.iter().position(|it| it == name)
        };
        Some(Self::Words([list(&WORDS)?, list(&TAGS)?]))
    }

    fn columns(self) -> Vec<usize> {
        match self {
            Self::Question(columns) => columns.to_vec(),
            Self::Words(columns) => columns.to_vec(),
        }
    }
}

/// The keys of the first object.
struct Keys {
    header: Vec<String>,
    /// Those that are read, as indices into the header.
    needed: Vec<usize>,
    own: Option<Own>,
}

impl Keys {
    fn of(source: &str, first: &Map<String, Value>, columns: &Columns) -> Result<Self> {
        let header: Vec<String> = first.keys().cloned().collect();
        // Named columns are those of texts.
        let own = match columns.are_usual() {
            true => Own::of(&header, first),
            false => None,
        };
        let needed = match own {
            Some(own) => own.columns(),
            None => columns.choose(CALL, source, &header)?.columns(),
        };
        Ok(Self {
            header,
            needed,
            own,
        })
    }
}

/// The columns of a question, its context and its answers, where rows have all three.
pub(crate) fn question_columns(header: &[String]) -> Option<[usize; 3]> {
    let column = |name: &str| header.iter().position(|it| it == name);
    let [question, context, answers] = COLUMNS.map(column);
    Some([question?, context?, answers?])
}

/// The data set of questions.
fn questions(table: &Table, columns: [usize; 3]) -> Result<Dataset> {
    let mut examples = Vec::with_capacity(table.rows.len());
    for (row, TableRow { line, fields }) in table.rows.iter().enumerate() {
        let [question, context, answers] = columns.map(|column| fields[column].as_str());
        let asked = Question::written(question, answers);
        let asked = asked
            .map_err(|reason| problem::unreadable(CALL, &table.source, Some(*line), reason))?;
        let example = asked.example(&table.source, row, context)?;
        examples.push(Example {
            line: Some(*line),
            ..example
        });
    }
    Ok(Dataset::from_examples(examples, Vec::new(), &table.source))
}

/// The data set of words with their tags.
fn sentences(table: &Table, columns: [usize; 2]) -> Result<Dataset> {
    let mut all = Vec::with_capacity(table.rows.len());
    for TableRow { line, fields } in &table.rows {
        let lists = columns.map(|column| serde_json::from_str::<Vec<Value>>(&fields[column]));
        let unreadable =
            |reason: String| problem::unreadable(CALL, &table.source, Some(*line), reason);
        let [Ok(words), Ok(tags)] = lists else {
            let [words, tags] = columns.map(|column| table.header[column].as_str());
            return Err(unreadable(format!(
                "`{words}` and `{tags}` are not both lists"
            )));
        };
        let [words, tags] = [words, tags].map(|list| list.iter().map(text_of).collect::<Vec<_>>());
        if let Some(what) = annotation::unfit(&words, &tags) {
            return Err(unreadable(format!("it has {what}")));
        }
        all.push((words, tags));
    }
    let mut data = Dataset::of_sentences(&table.source, CALL, &all)?;
    for (example, row) in data.examples.iter_mut().zip(&table.rows) {
        example.line = Some(row.line);
    }
    data.skipped = table.skipped.clone();
    Ok(data)
}

/// The keys of a line, in their order; or what is wrong with it.
pub(crate) fn json_keys(line: &str) -> std::result::Result<Vec<String>, String> {
    Ok(object(line)?.keys().cloned().collect())
}

/// The values of a line for the keys of the first one, of which `needed` are read; or what is wrong with the line.
pub(crate) fn json_values(
    line: &str,
    header: &[String],
    needed: &[usize],
) -> std::result::Result<Vec<String>, String> {
    values(&object(line)?, header, needed)
}

fn object(line: &str) -> std::result::Result<Map<String, Value>, String> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| not_an_object(&error))?;
    // The parser keeps the last of them.
    if let Some(key) = key_that_is_there_twice(line) {
        let key = text::excerpt(&key, 40);
        return Err(format!("the key `{key}` occurs twice"));
    }
    Ok(object)
}

fn values(
    object: &Map<String, Value>,
    header: &[String],
    needed: &[usize],
) -> std::result::Result<Vec<String>, String> {
    let value = |(column, key): (usize, &String)| match object.get(key) {
        Some(value) => Ok(text_of(value)),
        None if !needed.contains(&column) => Ok(String::new()),
        None => {
            let keys: Vec<&String> = object.keys().collect();
            let found = text::names(&keys, 12);
            Err(format!(
                "the key `{key}` of the first line is missing; found {found}"
            ))
        }
    };
    header.iter().enumerate().map(value).collect()
}

/// The first key of a JSON object that occurs again in it; `line` is one.
fn key_that_is_there_twice(line: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let (mut depth, mut last) = (0_usize, None);
    let mut rest = line;
    while let Some(at) = rest.find(['{', '[', '}', ']', '"', ':']) {
        let (sign, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = after;
        match sign {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_text(after)?;
                last = Some(&after[..end]);
                rest = &after[end + 1..];
            }
            // A colon of the object itself: the string before it is a key.
            _ if depth == 1 => {
                let key = last.take()?;
                // Escapes are decoded: two spellings of a key are one key.
                let key: String = serde_json::from_str(&format!("\"{key}\"")).ok()?;
                if !seen.insert(key.clone()) {
                    return Some(key);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where the quote stands that ends a text, before which `text` begins.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// A value as text: a string without its quotes, everything else as JSON writes it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The parser's message without its line number, which is always 1 here.
fn not_an_object(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    let reason = match reason.split_once(" at line ") {
        Some((reason, _)) => format!("{reason} at column {}", error.column()),
        None => reason,
    };
    format!("it is not a JSON object: {reason}")
}
