//! `pd.DataFrame({"text": ["a", "b"], "label": [0, 1]})` in a cell of Rust: a data set, where one of the columns has labels, else a
//! table.

use stratoscope_render::text as texts;

use super::python_expressions::{double_quoted, end_of, segments_of};
use super::{CellContext, fixed};
use crate::rules::{A_NAME, NameOfAnotherLibrary};
use crate::{Diagnostic, Edit, Place, Rule};

/// Calls that take a dictionary of columns.
const CALLS: [&str; 7] = [
    "pd.DataFrame.from_dict(",
    "pandas.DataFrame(",
    "pd.DataFrame(",
    "pl.DataFrame(",
    "DataFrame::new(",
    "Dataset.from_dict(",
    "Dataset::from_dict(",
];
/// Names of columns of labels.
const LABELS: [&str; 8] = [
    "label",
    "labels",
    "target",
    "targets",
    "y",
    "class",
    "category",
    "sentiment",
];

/// A column: its name, its value, and the elements of the value if they are written out.
struct Column {
    name: String,
    value: String,
    elements: Option<Vec<String>>,
}

/// SC0130 for the first such call. In `code` texts and comments are blank.
pub(super) fn answer(text: &str, code: &str, context: &CellContext) -> Option<Diagnostic> {
    let (start, open) = CALLS.iter().find_map(|call| {
        let start = code.find(call)?;
        let behind = start + call.len();
        let open = behind + code[behind..].len() - code[behind..].trim_start().len();
        code[open..].starts_with('{').then_some((start, open))
    })?;
    let close = end_of(code, open + 1, &[]);
    let end = end_of(code, close + 1, &[]) + ")".len();
    let columns = columns(text, code, open + 1, close)?;
    let (written, is_whole) = match data_set(&columns).or_else(|| table(&columns)) {
        Some(written) => (written, true),
        None => ("Dataset::from_rows(texts, labels)?".to_owned(), false),
    };
    let place = Place::span(start, end.min(text.len()));
    let edit = Edit {
        place: place.clone(),
        replacement: written.clone(),
    };
    let edits = match is_whole {
        true => fixed::settled_by(text, vec![edit], context),
        false => Vec::new(),
    };
    let facts = NameOfAnotherLibrary {
        given: texts::excerpt(text.get(start..end)?, 60),
        written: Some(texts::excerpt(&written, 100)),
        place,
        reason: "there are no data frames here: a data set has texts or rows of numbers, and their labels; `Table` shows any \
                 other table"
            .to_owned(),
        edits,
        label: A_NAME,
    };
    Some(facts.diagnostic())
}

/// The columns between two braces.
fn columns(text: &str, code: &str, start: usize, end: usize) -> Option<Vec<Column>> {
    let parts = segments_of(code, start, end);
    let parts = parts.into_iter().filter(|part| {
        !code[part.start..part.end].trim().is_empty()
            || !text[part.start..part.end].trim().is_empty()
    });
    parts
        .map(|part| {
            let colon = end_of(code, part.start, &[':']);
            if colon >= part.end {
                return None;
            }
            let name = text[part.start..colon].trim();
            let name = name.trim_matches(['"', '\'']).to_owned();
            let first = colon + 1 + code[colon + 1..].find(|it: char| !it.is_whitespace())?;
            let value = text[colon + 1..part.end].trim();
            let is_list = value.starts_with('[') && value.ends_with(']');
            let elements = is_list.then(|| {
                let elements = segments_of(code, first + 1, end_of(code, first + 1, &[]));
                let elements = elements.into_iter().map(|it| text[it.start..it.end].trim());
                let elements = elements.filter(|it| !it.is_empty());
                elements.map(double_quoted).collect()
            });
            Some(Column {
                name,
                value: double_quoted(value),
                elements,
            })
        })
        .collect()
}

/// `Dataset::from_rows([…], […])?`, if a column has labels and the others are one column of texts, or numbers.
fn data_set(columns: &[Column]) -> Option<String> {
    let labels = columns
        .iter()
        .find(|it| LABELS.contains(&it.name.to_lowercase().as_str()))?;
    let others: Vec<&Column> = columns.iter().filter(|it| it.name != labels.name).collect();
    let inputs = match others.as_slice() {
        [] => return None,
        [one] if one.elements.is_none() || is_of(one, |it| it.starts_with('"')) => {
            one.value.clone()
        }
        many if many
            .iter()
            .all(|it| is_of(it, |it| it.parse::<f64>().is_ok())) =>
        {
            let lists: Vec<&Vec<String>> =
                many.iter().filter_map(|it| it.elements.as_ref()).collect();
            let length = lists.first()?.len();
            if lists.iter().any(|it| it.len() != length) {
                return None;
            }
            let row = |at: usize| {
                let numbers: Vec<String> = lists.iter().map(|it| float(&it[at])).collect();
                format!("[{}]", numbers.join(", "))
            };
            let rows: Vec<String> = (0..length).map(row).collect();
            format!("[{}]", rows.join(", "))
        }
        _ => return None,
    };
    Some(format!("Dataset::from_rows({inputs}, {})?", labels.value))
}

/// `Table::new(["a", "b"]).row(["1", "x"])`, if all columns are written out.
fn table(columns: &[Column]) -> Option<String> {
    let lists: Option<Vec<&Vec<String>>> = columns.iter().map(|it| it.elements.as_ref()).collect();
    let lists = lists?;
    let length = lists.first()?.len();
    if lists.iter().any(|it| it.len() != length) {
        return None;
    }
    let quoted = |it: &str| format!("\"{}\"", it.trim_matches('"'));
    let joined = |cells: Vec<String>| cells.join(", ");
    let titles = joined(columns.iter().map(|it| quoted(&it.name)).collect());
    let rows: String = (0..length)
        .map(|at| {
            let cells = lists.iter().map(|it| quoted(&it[at])).collect();
            format!(".row([{}])", joined(cells))
        })
        .collect();
    Some(format!("Table::new([{titles}]){rows}"))
}

/// Whether all elements are written out and are so.
fn is_of(column: &Column, is_so: impl Fn(&str) -> bool) -> bool {
    let elements = column.elements.as_ref();
    elements.is_some_and(|it| !it.is_empty() && it.iter().all(|one| is_so(one)))
}

/// A number with a point.
fn float(number: &str) -> String {
    match number.contains(['.', 'e']) {
        true => number.to_owned(),
        false => format!("{number}.0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::scan::scan;
    use crate::render::apply;

    #[test]
    fn a_data_frame_is_a_data_set_or_a_table() {
        for (cell, expected) in [
            (
                "let df = pd.DataFrame({\"text\": [\"good, really\", \"bad\"], \"label\": [1, 0]});",
                Some("let df = Dataset::from_rows([\"good, really\", \"bad\"], [1, 0])?;"),
            ),
            (
                "let df = pd.DataFrame({'review': ['it is fine', 'no'], 'sentiment': ['pos', 'neg']});",
                Some("let df = Dataset::from_rows([\"it is fine\", \"no\"], [\"pos\", \"neg\"])?;"),
            ),
            (
                "let df = pd.DataFrame({\n    \"a\": [1, 2],\n    \"b\": [0.5, 1.5],\n    \"y\": [0, 1],\n});",
                Some("let df = Dataset::from_rows([[1.0, 0.5], [2.0, 1.5]], [0, 1])?;"),
            ),
            (
                "let df = pd.DataFrame({\"name\": [\"Ada\", \"Bob\"], \"age\": [36, 41]});",
                Some(
                    "let df = Table::new([\"name\", \"age\"]).row([\"Ada\", \"36\"]).row([\"Bob\", \"41\"]);",
                ),
            ),
            (
                "let df = pd.DataFrame({\"text\": texts, \"label\": labels});",
                Some("let df = Dataset::from_rows(texts, labels)?;"),
            ),
            (
                "let df = pd.DataFrame({\"a\": first, \"b\": second});",
                None,
            ),
        ] {
            let context = CellContext::default();
            let found = answer(cell, &scan(cell).code, &context).expect("a data frame");
            assert_eq!(
                apply(cell, &found.fixes[0]).as_deref(),
                expected,
                "{found:?}"
            );
        }
        let cell = "let m = f({\"a\": 1});";
        assert_eq!(
            answer(cell, &scan(cell).code, &CellContext::default()),
            None
        );
    }
}
