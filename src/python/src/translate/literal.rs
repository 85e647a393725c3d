//! Literals: types of variables, formats of numbers, rows of numbers.

use super::Why;
use super::number::{Type, Typed};
use crate::model::Value;

/// The type of a variable of the notebook.
pub(super) fn type_of(kind: &str) -> Type {
    match kind {
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            Type::Int
        }
        "f32" | "f64" => Type::Float,
        "bool" => Type::Bool,
        "String" | "&str" | "&'static str" => Type::Text,
        _ => Type::Unknown,
    }
}

/// The type of a value that is written out.
pub(super) fn kind_of_literal(rust: &str) -> Type {
    match rust {
        "true" | "false" => Type::Bool,
        text if text.starts_with('"') => Type::Text,
        number if number.parse::<i64>().is_ok() => Type::Int,
        number if number.parse::<f64>().is_ok() => Type::Float,
        _ => Type::Unknown,
    }
}

/// A whole number, which Rust writes as Python does.
pub(super) fn whole(number: &str) -> Result<Typed, Why> {
    let has_base = ["0x", "0b", "0o"].iter().any(|it| number.starts_with(it));
    match has_base || number.replace('_', "").parse::<i64>().is_ok() {
        true => Ok(Typed::new(number, Type::Int)),
        false => Err("the number is larger than Rust's integers".to_owned()),
    }
}

/// The digits of a format of percent: `.1%`; without a number there are six.
pub(super) fn percent(spec: &str) -> Option<usize> {
    match spec.trim_start_matches(':').strip_suffix('%')? {
        "" => Some(6),
        digits => digits.strip_prefix('.')?.parse().ok(),
    }
}

/// A format after the colon: `.4f` is `.4`.
pub(super) fn form(spec: &str) -> Result<String, Why> {
    let spec = spec.trim_start_matches(':');
    let (rest, kind) = match spec.chars().next_back() {
        Some(last @ ('f' | 'd' | 'e' | 's')) => (&spec[..spec.len() - 1], last),
        _ => (spec, ' '),
    };
    let is_plain = rest
        .chars()
        .all(|it| it.is_ascii_digit() || matches!(it, '.' | '<' | '>' | '^'));
    if !is_plain {
        return Err(format!("the format `{spec}` has no counterpart"));
    }
    // Without a number Python writes six digits.
    let digits = if kind == 'f' && !rest.contains('.') {
        ".6"
    } else {
        ""
    };
    let kind = if kind == 'e' { "e" } else { "" };
    Ok(match (rest.is_empty() && digits.is_empty(), kind) {
        (true, "") => String::new(),
        _ => format!(":{rest}{digits}{kind}"),
    })
}

/// Rows of numbers, which are `f32` in data sets.
pub(super) fn rows(values: &[Value]) -> Result<String, Why> {
    let mut written = Vec::new();
    for (index, row) in values.iter().enumerate() {
        let Some(numbers) = row.elements() else {
            return Err("the rows are of different kinds".to_owned());
        };
        let mut parts = Vec::new();
        for (place, value) in numbers.iter().enumerate() {
            let Some(number) = value.number() else {
                return Err("rows are translated when they are numbers".to_owned());
            };
            let suffix = if index == 0 && place == 0 { "_f32" } else { "" };
            parts.push(format!("{number:?}{suffix}"));
        }
        written.push(format!("[{}]", parts.join(", ")));
    }
    Ok(format!("vec![{}]", written.join(", ")))
}
