//! JSON Lines: one object per line. The keys of the first object are the columns. Later objects may have more keys, which
//! are not read, and may lack keys that are not read.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::squad::{COLUMNS, Question};
use super::{Columns, Reading, Table, TableRow, files, read_text};
use crate::dataset::{Dataset, SkippedRows};
use crate::example::Example;
use crate::problem;

const CALL: &str = "Dataset::jsonl";

impl Dataset {
    /// Reads a file of JSON objects, one per line, whose keys have common names (see
    /// [`Columns`]). Labels may be strings, numbers or booleans. The keys `question`, `context` and `answers` make
    /// questions, whose answers are an object of lists `text` and `answer_start`, as Hugging Face's `datasets` writes
    /// SQuAD, or a list of objects.
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
            let text = read_text(CALL, path)?;
            let table = table(&path.display().to_string(), &text, columns)?;
            // Named columns are those of texts.
            match question_columns(&table.header) {
                Some(own) if *columns == Columns::new() => questions(&table, own),
                _ => table.dataset(columns),
            }
        })
    }
}

fn table(source: &str, text: &str, columns: &Columns) -> Result<Table> {
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
    Ok(Table {
        source: source.to_owned(),
        call: CALL,
        header: keys.map(|keys| keys.header).unwrap_or_default(),
        rows,
        skipped,
    })
}

/// The keys of the first object.
struct Keys {
    header: Vec<String>,
    /// Those that are read, as indices into the header.
    needed: Vec<usize>,
}

impl Keys {
    fn of(source: &str, first: &Map<String, Value>, columns: &Columns) -> Result<Self> {
        let header: Vec<String> = first.keys().cloned().collect();
        let needed = match question_columns(&header) {
            // Named columns are those of texts.
            Some(own) if *columns == Columns::new() => own.to_vec(),
            _ => columns.choose(CALL, source, &header)?.columns(),
        };
        Ok(Self { header, needed })
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
