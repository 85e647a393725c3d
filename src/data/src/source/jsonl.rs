//! JSON Lines: one object per line. The keys of the first object are the columns. Later objects may have more keys, which
//! are not read, and may lack keys that are not read.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::records::{TAGS, WORDS};
use super::squad::COLUMNS;
use crate::problem;

pub(super) const CALL: &str = "Dataset::jsonl";

/// The objects of a JSON array, or of the one array in an object such as `{"data": […]}`, one a line.
///
/// # Errors
/// SC0911 for an object over several lines that is neither.
pub(super) fn lines_of_array(source: &str, text: &str) -> Result<Option<String>> {
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

/// The columns of the first object: its keys, and in place of the key of an object those of that, behind a dot:
/// `review.body`, as pandas' `json_normalize` names them.
pub(super) fn columns(first: &Map<String, Value>) -> Vec<String> {
    /// Objects that lie deeper stay whole.
    const DEEPEST: usize = 4;
    fn add(prefix: &str, object: &Map<String, Value>, depth: usize, columns: &mut Vec<String>) {
        for (key, value) in object {
            let name = format!("{prefix}{key}");
            match value {
                Value::Object(inner) if depth < DEEPEST && !inner.is_empty() => {
                    add(&format!("{name}."), inner, depth + 1, columns);
                }
                _ => columns.push(name),
            }
        }
    }
    let keys: Vec<String> = first.keys().cloned().collect();
    if question_columns(&keys).is_some() {
        return keys;
    }
    let mut columns = Vec::new();
    add("", first, 0, &mut columns);
    columns
}

/// The value of a column, whose name may lead into objects.
fn value<'a>(object: &'a Map<String, Value>, column: &str) -> Option<&'a Value> {
    object.get(column).or_else(|| {
        column.match_indices('.').find_map(|(at, _)| {
            let inner = object.get(&column[..at])?.as_object()?;
            value(inner, &column[at + 1..])
        })
    })
}

/// Whether the one object of a file has a column under each key, by the numbers of the rows, as pandas writes by default.
pub(super) fn is_by_columns(first: &Map<String, Value>) -> bool {
    let is_number = |key: &String| !key.is_empty() && key.bytes().all(|it| it.is_ascii_digit());
    let is_column = |value: &Value| {
        let rows = value.as_object();
        rows.is_some_and(|rows| !rows.is_empty() && rows.keys().all(is_number))
    };
    !first.is_empty() && first.values().all(is_column)
}

/// SC0911 for it.
pub(super) fn by_columns(source: &str) -> Box<Diagnostic> {
    let reason = "it is one object with the columns of a table, as pandas writes by default, not one object a line";
    let fix =
        "write an object a line: `df.to_json(\"data.jsonl\", orient=\"records\", lines=True)`";
    problem::unreadable_with(CALL, source, reason, fix)
}

/// The columns of a question, its context and its answers, where rows have all three.
pub(super) fn question_columns(header: &[String]) -> Option<[usize; 3]> {
    let column = |name: &str| header.iter().position(|it| it == name);
    let [question, context, answers] = COLUMNS.map(column);
    Some([question?, context?, answers?])
}

/// The columns of words and of their tags, where the first object has lists there and is no question.
pub(super) fn words_and_tags(header: &[String], first: &Map<String, Value>) -> Option<[usize; 2]> {
    let list = |names: &[&str]| {
        let is_list = |name: &&&str| first.get(**name).is_some_and(Value::is_array);
        let name = names.iter().find(is_list)?;
        header.iter().position(|it| it == name)
    };
    match question_columns(header) {
        Some(_) => None,
        None => Some([list(&WORDS)?, list(&TAGS)?]),
    }
}

/// The texts of a JSON list, none where nothing is written; `None` for what is no list.
pub(super) fn texts(list: &str) -> Option<Vec<String>> {
    if list.is_empty() {
        return Some(Vec::new());
    }
    let values: Vec<Value> = serde_json::from_str(list).ok()?;
    Some(values.iter().map(text_of).collect())
}

/// The object that a line is; or what is wrong with it.
pub(super) fn object(line: &str) -> std::result::Result<Map<String, Value>, String> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| not_an_object(line, &error))?;
    // The parser keeps the last of them.
    if let Some(key) = key_that_is_there_twice(line) {
        let key = text::excerpt(&key, 40);
        return Err(format!("the key `{key}` occurs twice"));
    }
    Ok(object)
}

/// The values of a line for the keys of the first one, of which those that are not `needed` are empty; or what is wrong
/// with the line.
pub(super) fn fields(
    line: &str,
    header: &[String],
    needed: &[usize],
) -> std::result::Result<Vec<String>, String> {
    let object = object(line)?;
    let mut fields = vec![String::new(); header.len()];
    for &column in needed {
        let key = &header[column];
        let value = value(&object, key).ok_or_else(|| {
            let keys: Vec<&String> = object.keys().collect();
            let found = text::names(&keys, 12);
            format!("the key `{key}` of the first line is missing; found {found}")
        })?;
        if value.is_object() && *key != COLUMNS[2] {
            return Err(format!("`{key}` is an object, not a text"));
        }
        fields[column] = text_of(value);
    }
    Ok(fields)
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
fn not_an_object(line: &str, error: &serde_json::Error) -> String {
    if !line.trim_start().starts_with('{') {
        let begin = text::excerpt(line.trim(), 40);
        let separated = ['\t', ',', ';', '|']
            .into_iter()
            .find(|&it| line.contains(it));
        let other = match separated {
            Some('\t') => ", as a table does that `Dataset::tsv` reads",
            Some(_) => ", as a table does that `Dataset::csv` reads",
            None => "",
        };
        return format!("it is not a JSON object: it begins with `{begin}`{other}");
    }
    let reason = error.to_string();
    let reason = match reason.split_once(" at line ") {
        Some((reason, _)) => format!("{reason} at column {}", error.column()),
        None => reason,
    };
    format!("it is not a JSON object: {reason}")
}
