//! Expressions of Python in a cell that is Rust otherwise: `[x * x for x in v]`, `lambda x: x + 1`, `a if b else c`,
//! `v[1:3]`.

use super::CellContext;
use super::comprehensions::comprehension;
use super::syntax::is_rust;
use crate::render::apply;
use crate::rules::PythonSpelling;
use crate::{CellSpan, Diagnostic, Edit, Fix, FixKind, Place, Rule};
use stratoscope_render::text;

/// An expression, and how it is written here.
pub(super) struct Rewritten {
    pub span: CellSpan,
    pub rust: String,
    pub reason: &'static str,
}

/// SC0127 for the first expression, if the cell is Rust without it. In `code` texts and comments are blank.
pub(super) fn answer(text: &str, code: &str, context: &CellContext) -> Option<Diagnostic> {
    // A line of Python has no `;`, no `let` and no `!` of a macro.
    let is_rust_else = [";", "let ", "!("].iter().any(|it| code.contains(it));
    if !is_rust_else && !context.uses_a_variable(text) {
        return None;
    }
    let list = comprehension(text, code, context);
    let index = slice(text, code, &|name| Sliced::of(name, code, context));
    let found = [lambda, condition].into_iter();
    let found = found.map(|read| read(text, code));
    let found = [list].into_iter().chain(found).chain([index]);
    found
        .flatten()
        .find_map(|Rewritten { span, rust, reason }| {
            let place = Place::Span(span);
            let title = format!("write `{}`", text::excerpt(&rust, 76));
            let mut edits = vec![Edit {
                place: place.clone(),
                replacement: rust,
            }];
            edits.extend(bound(text, code, span, context));
            let fix = Fix {
                kind: FixKind::Change,
                title,
                edits,
            };
            is_rust(&apply(text, &fix)?).then_some(())?;
            let facts = PythonSpelling {
                given: text::excerpt(&text[span.start..span.end], 60),
                reason: reason.to_owned(),
                places: vec![place],
                fix,
            };
            Some(facts.diagnostic())
        })
}

/// The `let` and the `;` of a line that gives a new name to the expression: `squares = [x * x for x in v]`.
fn bound(text: &str, code: &str, span: CellSpan, context: &CellContext) -> Vec<Edit> {
    let line = code[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let before = text[line..span.start].trim();
    let name = before.strip_suffix('=').map(str::trim).unwrap_or_default();
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    // There, a `let` binds a variable of the notebook again.
    let at_the_top = !text[line..].starts_with([' ', '\t']);
    let is_new = !name.is_empty()
        && name.chars().all(is_name)
        && (at_the_top || !context.variables.contains_key(name))
        && !code.contains(&format!("let mut {name}"));
    if !is_new {
        return Vec::new();
    }
    let start = line + text[line..].len() - text[line..].trim_start().len();
    let insert = |at: usize, sign: &str| Edit {
        place: Place::span(at, at),
        replacement: sign.to_owned(),
    };
    let mut edits = vec![insert(start, "let ")];
    let rest = code[span.end..].lines().next().unwrap_or_default().trim();
    if rest.is_empty() {
        edits.push(insert(span.end, ";"));
    }
    edits
}

/// The parts between the commas outside of brackets, from one place to another.
pub(super) fn segments_of(code: &str, start: usize, end: usize) -> Vec<CellSpan> {
    let (mut parts, mut at) = (Vec::new(), start);
    while at <= end {
        let comma = end_of(code, at, &[',']).min(end);
        parts.push(CellSpan {
            start: at,
            end: comma,
        });
        at = comma + 1;
    }
    parts
}

/// A value with its texts in double quotes.
pub(super) fn double_quoted(value: &str) -> String {
    let mut written = String::with_capacity(value.len());
    let mut quote = None;
    let mut escaped = false;
    for sign in value.chars() {
        match (quote, sign) {
            _ if escaped => {
                escaped = false;
                written.push(sign);
            }
            (Some(_), '\\') => {
                escaped = true;
                written.push(sign);
            }
            (None, '"' | '\'') => {
                quote = Some(sign);
                written.push('"');
            }
            (Some(open), _) if open == sign => {
                quote = None;
                written.push('"');
            }
            (Some('\''), '"') => written.push_str("\\\""),
            _ => written.push(sign),
        }
    }
    written
}

/// Where a sign stands outside of brackets, from `start` on; the end of the brackets around it, or of the text, at the latest.
pub(super) fn end_of(code: &str, start: usize, stops: &[char]) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in code[start..].char_indices() {
        match sign {
            _ if depth == 0 && stops.contains(&sign) => return start + at,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return start + at,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// `lambda x: x + 1`.
fn lambda(text: &str, code: &str) -> Option<Rewritten> {
    const WORD: &str = "lambda ";
    let start = code.find(WORD)?;
    let colon = start + code[start..].find(':')?;
    let end = end_of(code, colon + 1, &[';', ',', '\n']);
    let names = text.get(start + WORD.len()..colon)?.trim();
    let value = text.get(colon + 1..end)?.trim();
    Some(Rewritten {
        span: CellSpan { start, end },
        rust: format!("|{names}| {value}"),
        reason: "a function without a name is a closure: its parameters stand between two bars",
    })
}

/// `a if b else c`.
fn condition(text: &str, code: &str) -> Option<Rewritten> {
    let word = code.find(" if ")?;
    let otherwise = word + code[word..].find(" else ")?;
    if code[word..otherwise].contains(['{', ';', '\n']) {
        return None;
    }
    let begin = code[..word].rfind(['=', '(', ',', ';', '\n', '{', '['])? + 1;
    let start = begin + code[begin..].len() - code[begin..].trim_start().len();
    let start = if code[start..].starts_with("return ") {
        start + 7
    } else {
        start
    };
    let end = end_of(code, otherwise + 6, &[';', ',', '\n']);
    let part = |from: usize, to: usize| text.get(from..to).map(str::trim);
    let (yes, test, no) = (
        part(start, word)?,
        part(word + 4, otherwise)?,
        part(otherwise + 6, end)?,
    );
    Some(Rewritten {
        span: CellSpan { start, end },
        rust: format!("if {test} {{ {yes} }} else {{ {no} }}"),
        reason: "`if` is an expression, with its condition first and both values in braces",
    })
}

/// What is sliced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sliced {
    List,
    Tensor,
    Dataset,
}

impl Sliced {
    /// What a name of the notebook or of the cell is; a list where nothing says more.
    fn of(name: &str, code: &str, context: &CellContext) -> Self {
        let of_notebook = context.variables.get(name).map(String::as_str);
        let is = |of_type: &str, path: &str| {
            let made = [
                format!("let {name} = {path}"),
                format!("let mut {name} = {path}"),
            ];
            of_notebook.is_some_and(|it| it.contains(of_type))
                || made.iter().any(|it| code.contains(it))
        };
        if is("Tensor<", "Tensor::") {
            Self::Tensor
        } else if is("Dataset", "Dataset::") {
            Self::Dataset
        } else {
            Self::List
        }
    }
}

/// `data[10:20]` of a data set: `data.skip(10).take(20 - 10)`, and what needs fewer calls.
fn part_of_data(name: &str, range: &str) -> Option<String> {
    let (from, to) = range.split_once("..")?;
    let numbers = from.parse::<usize>().ok().zip(to.parse::<usize>().ok());
    Some(match (from, to, numbers) {
        ("" | "0", "", _) => format!("{name}.clone()"),
        ("" | "0", to, _) => format!("{name}.take({to})"),
        (from, "", _) => format!("{name}.skip({from})"),
        (from, _, Some((first, end))) => {
            format!("{name}.skip({from}).take({})", end.checked_sub(first)?)
        }
        (from, to, None) => format!("{name}.take({to}).skip({from})"),
    })
}

/// `1..3` of `1:3`, and of `1` what holds it alone; an end that counts from the last needs the length.
fn range(part: &str, length: &str) -> Option<String> {
    let place = |at: &str| match at.strip_prefix('-') {
        Some(back) => format!("{length} - {back}"),
        None => at.to_owned(),
    };
    let Some((from, to)) = part.split_once(':') else {
        let next = part.parse::<usize>().ok()? + 1;
        return Some(format!("{part}..{next}"));
    };
    Some(format!("{}..{}", place(from.trim()), place(to.trim())))
}

/// `v[1:3]` of a list or a data set, `t[:, 0]` and `t[0, 1]` of a tensor, `rows[0, 1]` of a list of rows.
fn slice(text: &str, code: &str, sliced: &dyn Fn(&str) -> Sliced) -> Option<Rewritten> {
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let open = code.match_indices('[').map(|(at, _)| at).find(|at| {
        let inside = &code[at + 1..end_of(code, at + 1, &[])];
        let is_of_a_name = code[..*at].ends_with(is_name);
        let is_range = inside.contains(':') && !inside.contains("::");
        let is_list = inside.contains(',') && !inside.contains(['(', '{', ';']);
        is_of_a_name && (is_range || is_list)
    })?;
    let close = end_of(code, open + 1, &[]);
    let name = &code[code[..open].trim_end_matches(is_name).len()..open];
    let parts: Vec<&str> = text
        .get(open + 1..close)?
        .split(',')
        .map(str::trim)
        .collect();
    let sliced = sliced(name);
    let is_a_tensor =
        sliced == Sliced::Tensor || parts.len() > 1 && parts.iter().any(|it| it.contains(':'));
    let (rust, reason) = if parts.len() > 1 && !is_a_tensor {
        let indices: Vec<String> = parts.iter().map(|it| format!("[{it}]")).collect();
        let reason = "a list of rows is indexed twice; a tensor has `slice`";
        (format!("{name}{}", indices.concat()), reason)
    } else if let ([part], false) = (parts.as_slice(), is_a_tensor) {
        let range = range(part, &format!("{name}.len()"))?;
        match sliced {
            Sliced::Dataset => (
                part_of_data(name, &range)?,
                "`skip` and `take` choose a part of a data set",
            ),
            _ => (
                format!("{name}[{range}].to_vec()"),
                "a range is written with two dots; `to_vec()` makes a list of the part",
            ),
        }
    } else {
        let of_dimension = |(at, part): (usize, &&str)| {
            let length = format!("{name}.dims()[{at}]");
            let range = range(part, &length)?;
            let range = if range.starts_with("..") {
                format!("0{range}")
            } else {
                range
            };
            Some(if range.ends_with("..") {
                format!("{range}{length}")
            } else {
                range
            })
        };
        let ranges: Option<Vec<String>> = parts.iter().enumerate().map(of_dimension).collect();
        let reason = "`slice` takes a range for each dimension of a tensor";
        let is_number = parts.iter().all(|it| !it.contains(':'));
        let scalar = if is_number && parts.len() > 1 {
            ".into_scalar::<f32>()"
        } else {
            ""
        };
        (
            format!("{name}.clone().slice([{}]){scalar}", ranges?.join(", ")),
            reason,
        )
    };
    Some(Rewritten {
        span: CellSpan {
            start: open - name.len(),
            end: close + 1,
        },
        rust,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_written_in_rust() {
        for (text, expected) in [
            (
                "let m = t[:, 0];",
                "let m = t.clone().slice([0..t.dims()[0], 0..1]);",
            ),
            (
                "let m = t[1:];",
                "let m = t.clone().slice([1..t.dims()[0]]);",
            ),
            (
                "let m = t[0, 1];",
                "let m = t.clone().slice([0..1, 1..2]).into_scalar::<f32>();",
            ),
            ("let m = rows[0, 1];", "let m = rows[0][1];"),
            ("let w = v[1:3];", "let w = v[1..3].to_vec();"),
            ("let d = dev[0:10];", "let d = dev.take(10);"),
            ("let d = dev[:10];", "let d = dev.take(10);"),
            ("let d = dev[10:];", "let d = dev.skip(10);"),
            ("let d = dev[10:30];", "let d = dev.skip(10).take(20);"),
            ("let d = dev[a:b];", "let d = dev.take(b).skip(a);"),
            ("let d = dev[-5:];", "let d = dev.skip(dev.len() - 5);"),
            ("let w = v[-2:];", "let w = v[v.len() - 2..].to_vec();"),
            (
                "let a = [x * x for x in v];",
                "let a = v.iter().cloned().map(|x| x * x).collect::<Vec<_>>();",
            ),
            (
                "let a = [x for x in range(3)];",
                "let a = (0..3).collect::<Vec<_>>();",
            ),
            (
                "f([x for x in v if x > 1]);",
                "f(v.iter().cloned().filter_map(|x| if x > 1 { Some(x) } else { None }).collect::<Vec<_>>());",
            ),
            ("let f = lambda x: x + 1;", "let f = |x| x + 1;"),
            (
                "let a = n if n > 3 else 0;",
                "let a = if n > 3 { n } else { 0 };",
            ),
        ] {
            let context = CellContext::with_variables([
                ("t", "stratoscope::prelude::Tensor<2>"),
                ("dev", "Dataset"),
            ]);
            let found = answer(text, text, &context).expect("an expression of Python");
            assert_eq!(apply(text, &found.fixes[0]).as_deref(), Some(expected));
        }
        for text in [
            "let a = [1, 2;",
            "x = [y for y in z]",
            "let a = if b { 1 } else { 2 }",
        ] {
            assert_eq!(answer(text, text, &CellContext::default()), None, "{text}");
        }
    }
}
