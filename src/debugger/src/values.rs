//! Values as the protocol's `Variable`s. A long list is divided into ranges that unfold, because a panel asks for all
//! children at once.

use serde_json::{Value, json};
use stratoscope_wire::{InspectedValue, ValuePath, Window};

use crate::references::{Parts, References, Referred};

/// Of indexed children, this many are listed; more are divided into ranges.
pub const PAGE: usize = 100;
/// More are not sent at once, whatever is asked for.
pub const MOST: usize = 10_000;

/// What is shown of a value that a cell has.
const IN_USE: &str = "(in use by the running cell)";

/// The windows of the children that a request asks for. `filter`, `start` and `count` are those of `variables`; a count
/// of 0 means all.
pub fn windows(
    referred: &Referred,
    filter: Option<&str>,
    start: usize,
    count: usize,
) -> (Window, Window) {
    let nothing = Window::default();
    let limit = |count: usize| match count {
        0 => MOST,
        count => count.min(MOST),
    };
    if let Some(part) = referred.parts.window {
        let start = start.min(part.count);
        let count = limit(count).min(part.count - start);
        let start = part.start.saturating_add(start);
        return match filter {
            Some("named") => (nothing, nothing),
            _ => (nothing, Window { start, count }),
        };
    }
    let page = |count: usize| match count {
        0 => PAGE,
        count => count.min(MOST),
    };
    let of = |start, count| Window { start, count };
    match filter {
        Some("named") => (of(start, limit(count)), nothing),
        Some("indexed") => (nothing, of(start, page(count))),
        _ if start == 0 && count == 0 => (of(0, MOST), of(0, PAGE)),
        // A part of both, one behind the other.
        _ => {
            let count = limit(count);
            let named = referred.named.saturating_sub(start).min(count);
            let first = start.saturating_sub(referred.named);
            (of(start, named), of(first, count - named))
        }
    }
}

/// Whether so long a list is divided into ranges when all of it is asked for.
pub fn is_divided(all: usize) -> bool {
    all > PAGE
}

/// The ranges of a list, or of a part of it: at most [`PAGE`], each of a power of [`PAGE`].
pub fn ranges(of: Window) -> Vec<Window> {
    let mut size = PAGE;
    while of.count.div_ceil(size) > PAGE {
        size *= PAGE;
    }
    let starts = (0..of.count).step_by(size);
    starts
        .map(|start| Window {
            start: of.start + start,
            count: size.min(of.count - start),
        })
        .collect()
}

/// A range as a `Variable` that unfolds.
pub fn range(references: &mut References, list: &Referred, window: Window) -> Value {
    let last = window.start + window.count - 1;
    let name = format!("[{} … {last}]", window.start);
    let number = references.number(Referred {
        parts: Parts {
            path: list.parts.path.clone(),
            window: Some(window),
        },
        ..list.clone()
    });
    json!({
        "name": name, "value": format!("{} elements", window.count), "variablesReference": number,
        "namedVariables": 0, "indexedVariables": window.count, "presentationHint": {"kind": "virtual"},
    })
}

/// A value as a `Variable`. `expression` names it.
pub fn variable(
    references: &mut References,
    value: InspectedValue,
    path: ValuePath,
    expression: String,
) -> Value {
    let has_children = value.named + value.indexed > 0;
    let number = match has_children {
        true => references.number(Referred {
            parts: Parts { path, window: None },
            expression: expression.clone(),
            named: value.named,
            indexed: value.indexed,
        }),
        false => 0,
    };
    let mut variable = json!({
        "name": value.name, "value": value.value.as_deref().unwrap_or(IN_USE),
        "evaluateName": expression, "variablesReference": number,
    });
    // JupyterLab's tree shows the type in place of the value, where there is one.
    let is_hidden = references.shows_types_as_values && !has_children;
    if !value.type_name.is_empty() && !is_hidden {
        variable["type"] = value.type_name.into();
    }
    if has_children {
        variable["namedVariables"] = value.named.into();
        variable["indexedVariables"] = value.indexed.into();
    }
    variable
}

/// The expression of a child.
pub fn of_child(parent: &str, name: &str) -> String {
    match name.starts_with('[') {
        true => format!("{parent}{name}"),
        false => format!("{parent}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(named: usize, indexed: usize, window: Option<Window>) -> Referred {
        Referred {
            parts: Parts {
                path: ValuePath::of("list"),
                window,
            },
            expression: "list".to_owned(),
            named,
            indexed,
        }
    }

    fn window(start: usize, count: usize) -> Window {
        Window { start, count }
    }

    #[test]
    fn a_request_asks_for_a_part() {
        let all = list(2, 1000, None);
        let none = window(0, 0);
        let cases = [
            (None, 0, 0, window(0, MOST), window(0, PAGE)),
            (Some("indexed"), 500, 20, none, window(500, 20)),
            (Some("named"), 1, 1, window(1, 1), none),
            // Two named ones come first.
            (None, 1, 10, window(1, 1), window(0, 9)),
            (None, 10, 10, window(10, 0), window(8, 10)),
            (
                Some("indexed"),
                usize::MAX,
                usize::MAX,
                none,
                window(usize::MAX, MOST),
            ),
        ];
        for (filter, start, count, named, indexed) in cases {
            let asked = windows(&all, filter, start, count);
            assert_eq!(asked, (named, indexed), "{filter:?} {start} {count}");
        }
        let part = list(2, 1000, Some(window(300, 100)));
        assert_eq!(windows(&part, None, 0, 0), (none, window(300, 100)));
        assert_eq!(
            windows(&part, Some("indexed"), 90, 50),
            (none, window(390, 10))
        );
        assert_eq!(windows(&part, None, usize::MAX, 1).1.count, 0);
    }

    #[test]
    fn a_million_elements_unfold_in_three_steps() {
        assert!(!is_divided(PAGE) && is_divided(PAGE + 1));
        let outer = ranges(window(0, 1_000_000));
        assert_eq!(outer.len(), 100);
        assert_eq!(outer[99], window(990_000, 10_000));
        let inner = ranges(outer[99]);
        assert_eq!(inner.len(), 100);
        assert_eq!(inner[99], window(999_900, 100));
        let odd = ranges(window(0, 10_001));
        assert_eq!(odd, [window(0, 10_000), window(10_000, 1)]);
    }

    #[test]
    fn expressions_name_children() {
        assert_eq!(of_child("list", "[3]"), "list[3]");
        assert_eq!(of_child("model", "bias"), "model.bias");
    }
}
