//! Lists that Python makes by a loop in brackets, as iterators: `[x * x for x in v]`, `{k: v for k, v in pairs}`, `sum(x for x in v)`.

use super::CellContext;
use super::habits::number_in;
use super::python_expressions::{Rewritten, double_quoted, end_of, segments_of};
use super::python_values::{rust_of, word_between};
use crate::CellSpan;

/// One `for target in items`, with the conditions that follow.
struct Clause {
    target: String,
    items: String,
    tests: Vec<String>,
}

/// What stands between two brackets.
struct Loop {
    element: String,
    clauses: Vec<Clause>,
}

/// The first list that a loop makes. In `code` texts and comments are blank.
pub(super) fn comprehension(text: &str, code: &str, context: &CellContext) -> Option<Rewritten> {
    let mut brackets = code.match_indices(['[', '(', '{']).map(|(at, _)| at);
    brackets.find_map(|open| rewritten(text, code, open, context))
}

/// The iterator for a list of Python that stands alone: `v.iter().cloned().map(|x| x * x).collect::<Vec<_>>()`.
pub fn iterator_form(list: &str) -> Option<String> {
    let code = super::scan::scan(list).code;
    let found = comprehension(list, &code, &CellContext::default())?;
    (found.span.start == 0 && found.span.end == list.trim_end().len()).then_some(found.rust)
}

fn rewritten(text: &str, code: &str, open: usize, context: &CellContext) -> Option<Rewritten> {
    let close = end_of(code, open + 1, &[]);
    let parsed = parsed(text, code, open + 1, close)?;
    let bracket = &code[open..=open];
    let before = &code[..open];
    let is_name = |it: char| it.is_alphanumeric() || "_.".contains(it);
    // `sum([…])` is as `sum(…)`.
    let around = match bracket {
        "[" if before.ends_with('(') && code[close + 1..].trim_start().starts_with(')') => {
            let end = close + 1 + code[close + 1..].find(')')? + 1;
            called(text, before.len() - 1).map(|(start, name)| (start, name, end))
        }
        "(" => called(text, open).map(|(start, name)| (start, name, close + 1)),
        _ => None,
    };
    let known = around.filter(|(_, name, _)| is_consumer(name));
    let (start, rust, end) = match (bracket, known) {
        (_, Some((start, name, end))) => {
            let annotated = annotated(&code[..start]);
            (
                start,
                consumed(&parsed, &name, annotated, code, context)?,
                end,
            )
        }
        ("[", None) => {
            let is_macro = before.ends_with("vec!");
            let start = if is_macro { open - "vec!".len() } else { open };
            if !is_macro && before.ends_with(is_name) {
                return None;
            }
            (
                start,
                format!("{}.collect::<Vec<_>>()", chain(&parsed, context)),
                close + 1,
            )
        }
        ("{", None) if !code[open + 1..close].contains('{') => {
            (open, mapped(&parsed, context), close + 1)
        }
        _ => return None,
    };
    let reason = match rust.contains(".collect::<") {
        true => "an iterator maps its items, and `collect` makes a list of them",
        false => "an iterator goes through its items, and its methods make one value of them",
    };
    Some(Rewritten {
        span: CellSpan { start, end },
        rust,
        reason,
    })
}

/// The parts of a loop between two places of the text.
fn parsed(text: &str, code: &str, start: usize, end: usize) -> Option<Loop> {
    let first = word_between(code, start, end, &["for"])?.0;
    let part = |from: usize, to: usize| text.get(from..to).map(|it| it.trim().to_owned());
    let element = part(start, first)?;
    if element.is_empty() || code[start..first].contains(';') {
        return None;
    }
    let mut clauses = Vec::new();
    let (mut at, mut word) = (first, "for");
    while at < end {
        let behind = at + word.len();
        if word == "for" {
            let (inside, _) = word_between(code, behind, end, &["in"])?;
            let items = inside + "in".len();
            let next = word_between(code, items, end, &["for", "if"]);
            let (until, following) = next.unwrap_or((end, ""));
            clauses.push(Clause {
                target: part(behind, inside)?,
                items: part(items, until)?,
                tests: Vec::new(),
            });
            (at, word) = (until, following);
        } else {
            let next = word_between(code, behind, end, &["for", "if"]);
            let (until, following) = next.unwrap_or((end, ""));
            clauses.last_mut()?.tests.push(part(behind, until)?);
            (at, word) = (until, following);
        }
    }
    let is_whole = clauses
        .iter()
        .all(|it| !it.items.is_empty() && !it.target.is_empty());
    is_whole.then_some(Loop { element, clauses })
}

/// The name before an opening bracket, a text with a method among it: `sum`, `", ".join`.
fn called(text: &str, open: usize) -> Option<(usize, String)> {
    let before = text.get(..open)?;
    if let Some(rest) = before.strip_suffix(".join") {
        let quote = rest.chars().next_back().filter(|it| "\"'".contains(*it))?;
        let start = rest[..rest.len() - 1].rfind(quote)?;
        return Some((start, before[start..].to_owned()));
    }
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let start = before.trim_end_matches(is_name).len();
    let is_alone = !before[..start].ends_with(['.', ':']);
    (start < open && is_alone).then(|| (start, before[start..].to_owned()))
}

fn is_consumer(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "all", "any", "dict", "len", "list", "max", "min", "set", "sum",
    ];
    NAMES.contains(&name) || name == "tuple" || name.ends_with(".join")
}

/// The type that is written before a value: `f64` of `let total: f64 = `.
fn annotated(before: &str) -> Option<String> {
    let line = before.rsplit(['\n', ';']).next()?;
    let (_, of_type) = line.trim().strip_suffix('=')?.rsplit_once(':')?;
    let of_type = of_type.trim();
    let is_number = of_type.starts_with(['i', 'u', 'f']) && of_type.len() < 6;
    is_number.then(|| of_type.to_owned())
}

/// What a function of Python makes of the items.
fn consumed(
    of: &Loop,
    name: &str,
    annotated: Option<String>,
    code: &str,
    context: &CellContext,
) -> Option<String> {
    let items = chain(of, context);
    let number = || annotated.or_else(|| number_of(of, code, context));
    Some(match name {
        "any" | "all" => match of.clauses.as_slice() {
            [only] if only.tests.is_empty() => {
                let (source, target) = (source(&only.items, context), pattern(&only.target));
                format!("{source}.{name}(|{target}| {})", element(of, context))
            }
            _ => format!("{items}.{name}(|it| it)"),
        },
        "sum" => format!("{items}.sum::<{}>()", number()?),
        "max" | "min" => match number()? {
            float if float.starts_with('f') => {
                format!("{items}.reduce({float}::{name}).expect(\"an element\")")
            }
            _ => format!("{items}.{name}().expect(\"an element\")"),
        },
        "len" => format!("{items}.count()"),
        "set" => format!("{items}.collect::<std::collections::HashSet<_>>()"),
        "dict" => format!("{items}.collect::<std::collections::HashMap<_, _>>()"),
        "list" | "tuple" => format!("{items}.collect::<Vec<_>>()"),
        join => {
            let text = double_quoted(join.strip_suffix(".join")?);
            format!("{items}.collect::<Vec<_>>().join({text})")
        }
    })
}

/// The type of the numbers that a loop makes, where the text and the notebook show it.
fn number_of(of: &Loop, code: &str, context: &CellContext) -> Option<String> {
    let element = of.element.as_str();
    let [only] = of.clauses.as_slice() else {
        return None;
    };
    let begins = |name: &str| element.starts_with(name);
    if begins("len(") || element == "1" {
        return Some("usize".to_owned());
    }
    if begins("float(") {
        return Some("f64".to_owned());
    }
    if begins("int(") {
        return Some("i64".to_owned());
    }
    let is_of_target = element
        .split(|it: char| !(it.is_alphanumeric() || it == '_' || it == '.'))
        .filter(|it| !it.is_empty())
        .all(|it| it == only.target || it.parse::<f64>().is_ok());
    if !is_of_target {
        return None;
    }
    if only.items.starts_with("range(") || only.items.contains("..") {
        return Some("i32".to_owned());
    }
    let of_notebook = context.variables.get(&only.items);
    of_notebook.and_then(|it| number_in(it)).or_else(|| {
        let bound = format!("{} = vec![", only.items);
        let (_, list) = code.split_once(bound.as_str())?;
        let list = list.split(']').next()?;
        let is_number = list.starts_with(|it: char| it.is_ascii_digit() || it == '-');
        is_number.then(|| if list.contains('.') { "f64" } else { "i32" }.to_owned())
    })
}

/// A set or a map of the items.
fn mapped(of: &Loop, context: &CellContext) -> String {
    let colon = end_of(&of.element, 0, &[':']);
    let Some(value) = of.element.get(colon + 1..).filter(|it| !it.is_empty()) else {
        let items = chain(of, context);
        return format!("{items}.collect::<std::collections::HashSet<_>>()");
    };
    let pair = format!("({}, {})", of.element[..colon].trim(), value.trim());
    let pairs = Loop {
        element: pair,
        clauses: of
            .clauses
            .iter()
            .map(|it| Clause {
                target: it.target.clone(),
                items: it.items.clone(),
                tests: it.tests.clone(),
            })
            .collect(),
    };
    let items = chain(&pairs, context);
    format!("{items}.collect::<std::collections::HashMap<_, _>>()")
}

/// The items of all clauses, one after the other, without what collects them.
fn chain(of: &Loop, context: &CellContext) -> String {
    let mut inner = None;
    for clause in of.clauses.iter().rev() {
        let (source, target) = (source(&clause.items, context), pattern(&clause.target));
        let tests: Vec<String> = clause
            .tests
            .iter()
            .map(|it| value(it, clause, context))
            .collect();
        let test = match tests.as_slice() {
            [one] => one.clone(),
            many => many
                .iter()
                .map(|it| format!("({it})"))
                .collect::<Vec<_>>()
                .join(" && "),
        };
        let written = match (inner.take(), tests.is_empty()) {
            (None, true) if of.element == clause.target => source,
            (None, true) => format!("{source}.map(|{target}| {})", element(of, context)),
            (None, false) => format!(
                "{source}.filter_map(|{target}| if {test} {{ Some({}) }} else {{ None }})",
                element(of, context)
            ),
            (Some(inner), true) => {
                format!("{source}.flat_map(|{target}| {inner}.collect::<Vec<_>>())")
            }
            (Some(inner), false) => format!(
                "{source}.flat_map(|{target}| if {test} {{ {inner}.collect::<Vec<_>>() }} else {{ Vec::new() }})"
            ),
        };
        inner = Some(written);
    }
    inner.unwrap_or_default()
}

fn element(of: &Loop, context: &CellContext) -> String {
    match of.clauses.last() {
        Some(clause) => value(&of.element, clause, context),
        None => rust_of(&of.element),
    }
}

/// A value of a clause: a row of a data set has fields.
fn value(value: &str, clause: &Clause, context: &CellContext) -> String {
    let mut value = value.to_owned();
    if is_data(&clause.items, context) {
        for (key, field) in [
            ("text", "text"),
            ("sentence", "text"),
            ("review", "text"),
            ("label", "class()"),
            ("labels", "class()"),
        ] {
            for quote in ['"', '\''] {
                let index = format!("{}[{quote}{key}{quote}]", clause.target);
                value = value.replace(&index, &format!("{}.{field}", clause.target));
            }
        }
        if value == format!("{}.text", clause.target) {
            value += ".clone()";
        }
    }
    rust_of(&value)
}

/// `a, b` as a pattern of a closure.
fn pattern(target: &str) -> String {
    let bare = target.trim_start_matches('(').trim_end_matches(')');
    if bare.contains(',') {
        format!("({bare})")
    } else {
        bare.to_owned()
    }
}

fn is_data(items: &str, context: &CellContext) -> bool {
    let of_type = context.variables.get(items);
    of_type.is_some_and(|it| it.ends_with("Dataset"))
}

/// What a loop goes over, as an iterator of values.
fn source(items: &str, context: &CellContext) -> String {
    if let Some(source) = of_call(items, context).or_else(|| of_method(items)) {
        return source;
    }
    if is_data(items, context) {
        return format!("{items}.examples.iter()");
    }
    match context.variables.get(items).map(String::as_str) {
        Some("String" | "&str" | "&'static str") => return format!("{items}.chars()"),
        Some(of_type) if of_type.contains("HashMap<") => return format!("{items}.keys().cloned()"),
        _ => {}
    }
    // `texts[:10]` and `texts[10:]`.
    if let Some((list, bounds)) = items.split_once('[')
        && let Some((from, to)) = bounds.strip_suffix(']').and_then(|it| it.split_once(':'))
        && [from, to]
            .iter()
            .all(|it| it.chars().all(|it| it.is_ascii_digit()))
    {
        let call = |name: &str, count: &str| match count {
            "" => String::new(),
            count => format!(".{name}({count})"),
        };
        return format!(
            "{list}.iter(){}{}.cloned()",
            call("take", to),
            call("skip", from)
        );
    }
    if items.contains("..") && !items.contains(['(', '[']) {
        return format!("({items})");
    }
    format!("{}.iter().cloned()", rust_of(items))
}

/// The items of `range(…)`, `enumerate(…)`, `zip(…)` and `reversed(…)`.
fn of_call(items: &str, context: &CellContext) -> Option<String> {
    let (name, inside) = items.strip_suffix(')')?.split_once('(')?;
    let parts = segments_of(inside, 0, inside.len()).into_iter();
    let values = parts.map(|it| inside[it.start..it.end].trim());
    let values: Vec<String> = values
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    Some(match (name, values.as_slice()) {
        ("range", [end]) => format!("(0..{})", rust_of(end)),
        ("range", [from, to]) => format!("({}..{})", rust_of(from), rust_of(to)),
        ("range", [from, to, step]) => format!(
            "({}..{}).step_by({})",
            rust_of(from),
            rust_of(to),
            rust_of(step)
        ),
        ("enumerate", [list]) => format!("{}.enumerate()", source(list, context)),
        ("zip", [first, second]) => {
            format!(
                "{}.zip({})",
                source(first, context),
                source(second, context)
            )
        }
        ("reversed", [list]) => format!("{}.rev()", source(list, context)),
        _ => return None,
    })
}

/// The items of a map or of a text that is split.
fn of_method(items: &str) -> Option<String> {
    if let Some(map) = items.strip_suffix(".items()") {
        return Some(format!("{map}.clone().into_iter()"));
    }
    if let Some(text) = items.strip_suffix(".split()") {
        return Some(format!("{text}.split_whitespace()"));
    }
    let is_part_of_map = [".keys()", ".values()"]
        .iter()
        .any(|it| items.ends_with(it));
    if is_part_of_map {
        return Some(format!("{items}.cloned()"));
    }
    let is_split = items.contains(".split(") && items.ends_with(')');
    is_split.then(|| double_quoted(items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::scan::scan;

    #[test]
    fn loops_in_brackets_are_iterators() {
        let context = CellContext::with_variables([
            ("v", "Vec<f64>"),
            ("dev", "stratoscope::prelude::Dataset"),
            ("texts", "Vec<&str>"),
        ]);
        for (python, expected) in [
            (
                "[x * x for x in v]",
                "v.iter().cloned().map(|x| x * x).collect::<Vec<_>>()",
            ),
            (
                "[len(t) for t in texts]",
                "texts.iter().cloned().map(|t| t.len()).collect::<Vec<_>>()",
            ),
            (
                "[x ** 2 for x in range(1, 5)]",
                "(1..5).map(|x| x * x).collect::<Vec<_>>()",
            ),
            (
                "vec![i for i in range(0, 10, 2)]",
                "(0..10).step_by(2).collect::<Vec<_>>()",
            ),
            (
                "[x for x in v if x > 1.0 and x < 3.0]",
                "v.iter().cloned().filter_map(|x| if x > 1.0 && x < 3.0 { Some(x) } else { None }).collect::<Vec<_>>()",
            ),
            (
                "[(i, t) for i, t in enumerate(texts)]",
                "texts.iter().cloned().enumerate().map(|(i, t)| (i, t)).collect::<Vec<_>>()",
            ),
            (
                "[a * b for a, b in zip(v, v)]",
                "v.iter().cloned().zip(v.iter().cloned()).map(|(a, b)| a * b).collect::<Vec<_>>()",
            ),
            (
                "[y for row in rows for y in row]",
                "rows.iter().cloned().flat_map(|row| row.iter().cloned().collect::<Vec<_>>()).collect::<Vec<_>>()",
            ),
            (
                "[1 if x > 0 else 0 for x in v]",
                "v.iter().cloned().map(|x| if x > 0 { 1 } else { 0 }).collect::<Vec<_>>()",
            ),
            (
                "[row[\"text\"] for row in dev]",
                "dev.examples.iter().map(|row| row.text.clone()).collect::<Vec<_>>()",
            ),
            (
                "{w: len(w) for w in texts}",
                "texts.iter().cloned().map(|w| (w, w.len())).collect::<std::collections::HashMap<_, _>>()",
            ),
            (
                "{t.lower() for t in texts}",
                "texts.iter().cloned().map(|t| t.to_lowercase()).collect::<std::collections::HashSet<_>>()",
            ),
            ("sum(x for x in v)", "v.iter().cloned().sum::<f64>()"),
            (
                "sum([len(t) for t in texts])",
                "texts.iter().cloned().map(|t| t.len()).sum::<usize>()",
            ),
            (
                "max(x * 2.0 for x in v)",
                "v.iter().cloned().map(|x| x * 2.0).reduce(f64::max).expect(\"an element\")",
            ),
            (
                "any(x > 2.0 for x in v)",
                "v.iter().cloned().any(|x| x > 2.0)",
            ),
            (
                "len([x for x in v if x > 2.0])",
                "v.iter().cloned().filter_map(|x| if x > 2.0 { Some(x) } else { None }).count()",
            ),
            (
                "', '.join(str(x) for x in v)",
                "v.iter().cloned().map(|x| x.to_string()).collect::<Vec<_>>().join(\", \")",
            ),
            (
                "[t for t in texts[2:5]]",
                "texts.iter().take(5).skip(2).cloned().collect::<Vec<_>>()",
            ),
            (
                "[w for w in name.split()]",
                "name.split_whitespace().collect::<Vec<_>>()",
            ),
        ] {
            let cell = format!("let it = {python};");
            let found = comprehension(&cell, &scan(&cell).code, &context);
            let found = found.unwrap_or_else(|| panic!("{python}"));
            assert_eq!(found.rust, expected);
            assert_eq!(&cell[found.span.start..found.span.end], python);
        }
        for cell in [
            "let a = [1, 2;",
            "for x in v { f(x); }",
            "let s = sum(f(x) for x in v);",
        ] {
            assert!(
                comprehension(cell, &scan(cell).code, &context).is_none(),
                "{cell}"
            );
        }
        let form = iterator_form("[len(t) for t in texts]");
        assert_eq!(
            form.as_deref(),
            Some("texts.iter().cloned().map(|t| t.len()).collect::<Vec<_>>()")
        );
        assert_eq!(iterator_form("f([x for x in v])"), None);
    }
}
