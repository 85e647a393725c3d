//! Where the variables of earlier cells were declared. evcxr declares them again in every cell, so rustc's suggestion to
//! add `mut` is about a line that the user has not typed; it is replaced by one about the line of the earlier cell.

use std::collections::BTreeMap;

use stratoscope_diagnostics::{CellSpan, Diagnostic, Edit, Fix, Place};

use stratoscope_cell_text::rewrite::line_of;

/// The most characters of a line that are shown.
const MOST: usize = 80;

/// Where a variable was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declaration {
    cell: u64,
    line: usize,
    /// The line, as typed, with `mut` before the name; `None` where it cannot be put there.
    mutable: Option<String>,
}

/// By name.
#[derive(Default)]
pub struct Declared(BTreeMap<String, Declaration>);

impl Declared {
    /// Cell `cell`, of this text, has bound the variable.
    pub fn note(&mut self, name: &str, cell: u64, code: &str) {
        let Some(at) = declaration_of(name, code) else {
            self.0.remove(name);
            return;
        };
        let line = line_of(code, at);
        let text = code.lines().nth(line - 1).unwrap_or_default();
        let begin: usize = code
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let within = at - begin;
        let mutable = format!("{}mut {}", &text[..within], &text[within..]);
        let mutable = mutable.trim();
        let mutable = (mutable.chars().count() <= MOST).then(|| mutable.to_owned());
        let declaration = Declaration {
            cell,
            line,
            mutable,
        };
        self.0.insert(name.to_owned(), declaration);
    }

    /// Only those that there are.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// Adds to rustc's error about a variable of an earlier cell without `mut` where that stands.
    pub fn explain(&self, mut found: Diagnostic, code: &str) -> Diagnostic {
        let known = immutable(&found).map(str::to_owned);
        let known = known.and_then(|name| Some((self.0.get(&name)?, name)));
        let Some((declared, name)) = known else {
            return found;
        };
        let Some(Place::Span(span)) = found.labels.first().map(|label| label.place.clone()) else {
            return found;
        };
        // One that this cell declares itself is rustc's to explain.
        if declaration_of(&name, &code[..span.start]).is_some() {
            return found;
        }
        let Declaration { cell, line, .. } = declared;
        found.message = format!(
            "{}: In[{cell}], line {line}, declares it without `mut`",
            found.message
        );
        let there = match &declared.mutable {
            Some(text) => format!("write `mut` there, and run In[{cell}] again: `{text}`"),
            None => format!("write `mut` there, and run In[{cell}] again: `let mut {name} = …;`"),
        };
        let here = format!("or make it mutable from here on: `let mut {name} = {name};`");
        let fixes = [
            Fix {
                kind: stratoscope_diagnostics::FixKind::Change,
                title: there,
                edits: Vec::new(),
            },
            Fix {
                kind: stratoscope_diagnostics::FixKind::Change,
                title: here,
                edits: vec![before_its_line(code, span, &name)],
            },
        ];
        found.fixes.splice(0..0, fixes);
        found
    }
}

/// A line of its own before that of a place.
fn before_its_line(code: &str, span: CellSpan, name: &str) -> Edit {
    let start = code[..span.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    Edit {
        place: Place::span(start, start),
        replacement: format!("let mut {name} = {name};\n"),
    }
}

/// The variable that rustc says is not declared as mutable.
fn immutable(found: &Diagnostic) -> Option<&str> {
    let message = found.message.as_str();
    let quoted = |text: &'_ str| -> Option<(usize, usize)> {
        let start = text.find('`')? + 1;
        Some((start, start + text[start..].find('`')?))
    };
    let place = match found.code.as_str() {
        "E0384" => quoted(message)?,
        // "as `p` is not declared as mutable", or "as it is".
        "E0594" | "E0596" => {
            let end = message.find("is not declared as mutable")?;
            let before = message[..end].trim_end();
            match before
                .strip_suffix('`')
                .and_then(|it| Some((it.rfind('`')? + 1, it.len())))
            {
                Some(place) => place,
                None => quoted(message)?,
            }
        }
        _ => return None,
    };
    // Of a field or an element, `p.x`, the variable.
    let name = &message[place.0..place.1];
    let name = name.split(['.', '[']).next().unwrap_or(name);
    let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
    is_name.then_some(name)
}

/// Where a cell's last `let` of the name has it.
fn declaration_of(name: &str, code: &str) -> Option<usize> {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let is_word = |at: usize, length: usize| {
        !is_part(code[..at].chars().next_back()) && !is_part(code[at + length..].chars().next())
    };
    let lets = code.match_indices("let ").filter(|(at, _)| is_word(*at, 3));
    lets.filter_map(|(at, _)| {
        let begin = at + "let ".len();
        let end = code[begin..]
            .find(['=', ';'])
            .map_or(code.len(), |length| begin + length);
        // The type of a variable is no pattern.
        let pattern = &code[begin..end];
        let places = pattern.match_indices(name).map(|(at, _)| begin + at);
        let mut places = places.filter(|at| is_word(*at, name.len()));
        places.next()
    })
    .last()
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Severity;

    use super::*;

    fn check(declaration: &str, code: &str, message: &str, at: &str, expected: &[&str]) {
        let mut declared = Declared::default();
        declared.note("n", 3, declaration);
        let start = code.find(at).expect("stands in the cell");
        let found = Diagnostic::new("E0384", Severity::Error, message)
            .label(Place::span(start, start + at.len()), "");
        let found = declared.explain(found, code);
        let titles: Vec<&str> = found.fixes.iter().map(|fix| fix.title.as_str()).collect();
        assert_eq!(titles, expected, "{}", found.message);
    }

    #[test]
    fn the_line_that_lacks_mut_is_shown_as_it_was_typed() {
        let message = "cannot assign twice to immutable variable `n`";
        check(
            "// numbers\nlet n = 5;",
            "n += 1;",
            message,
            "n += 1",
            &[
                "write `mut` there, and run In[3] again: `let mut n = 5;`",
                "or make it mutable from here on: `let mut n = n;`",
            ],
        );
        check(
            "let (n, other) = (1, 2);",
            "n += 1;",
            message,
            "n += 1",
            &[
                "write `mut` there, and run In[3] again: `let (mut n, other) = (1, 2);`",
                "or make it mutable from here on: `let mut n = n;`",
            ],
        );
        // The cell's own is rustc's to explain.
        check("let n = 5;", "let n = 1; n += 1;", message, "n += 1", &[]);
    }

    #[test]
    fn rustc_names_the_variable_in_several_ways() {
        for (code, message, expected) in [
            (
                "E0384",
                "cannot assign twice to immutable variable `n`",
                Some("n"),
            ),
            (
                "E0596",
                "cannot borrow `v` as mutable, as it is not declared as mutable",
                Some("v"),
            ),
            (
                "E0594",
                "cannot assign to `p.x`, as `p` is not declared as mutable",
                Some("p"),
            ),
            (
                "E0596",
                "cannot borrow `*r` as mutable, as it is behind a `&` reference",
                None,
            ),
            ("E0308", "mismatched types `n`", None),
        ] {
            let found = Diagnostic::new(code, Severity::Error, message);
            assert_eq!(immutable(&found), expected, "{message}");
        }
    }
}
