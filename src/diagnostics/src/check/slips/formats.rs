//! Python's formats in the texts of `println!` and `format!`: `{:.3f}`, `{n:d}`.

use super::{Answer, Slip, edit};
use crate::Edit;

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    if message.ends_with("doesn't implement `std::fmt::Display`") {
        return of_a_list(slip);
    }
    if let Some(answer) = of_the_count(slip) {
        return Some(answer);
    }
    let is_format =
        message.starts_with("unknown format trait") || message.starts_with("invalid format string");
    if !is_format {
        return None;
    }
    let edits = rewritten(slip.cell.text());
    if edits.is_empty() {
        return message.contains("found `%`").then(|| {
            Answer::words("write `{:.2} %` and the value times 100: `println!(\"{:.2} %\", 100.0 * accuracy)`")
                .instead("Rust's formats have no percent sign")
        });
    }
    Some(Answer::of(edits).why(
        "Rust's formats have no letter for numbers and texts: `{:.3}` rounds, `{:>8}` aligns, `{:e}` has an exponent",
    ))
}

/// `println!("{} {}", a)`: more places than values.
fn of_the_count(slip: &Slip) -> Option<Answer> {
    let (places, rest) = slip.message().split_once(" positional argument")?;
    let (_, values) = rest.split_once(" in format string, but ")?;
    let values = match values {
        "no arguments were given" => "no value follows".to_owned(),
        it => {
            let count = it.split(' ').find(|it| it.parse::<usize>().is_ok())?;
            match count {
                "1" => "1 value follows".to_owned(),
                count => format!("{count} values follow"),
            }
        }
    };
    let places = match places {
        "1" => "1 place `{}`".to_owned(),
        count => format!("{count} places `{{}}`"),
    };
    Some(
        Answer::words(
            "write a value for each `{}`, behind the text and a comma, or leave out a `{}`",
        )
        .why("each `{}` takes the next value; `{name}` takes a variable by its name")
        .instead(format!("the text has {places}, and {values}")),
    )
}

/// `println!("{}", v)` of a list or a map, which have no text of their own.
fn of_a_list(slip: &Slip) -> Option<Answer> {
    const TYPES: [&str; 9] = [
        "Vec<",
        "VecDeque<",
        "HashMap<",
        "HashSet<",
        "BTreeMap<",
        "BTreeSet<",
        "[",
        "(",
        "()",
    ];
    let of_type = slip.message().split('`').nth(1)?.trim_start_matches('&');
    let of_type = of_type
        .strip_prefix("std::collections::")
        .unwrap_or(of_type);
    if !TYPES.iter().any(|it| of_type.starts_with(it)) {
        return None;
    }
    let places = slip.found.labels.iter().filter_map(|it| match it.place {
        crate::Place::Span(span) => Some(span),
        _ => None,
    });
    let mut edits = places.filter_map(|at| {
        let inside = slip.text(at).strip_prefix('{')?.strip_suffix('}')?;
        let is_place = !inside.contains(['{', '}', '?', ' ']);
        let colon = if inside.contains(':') { "" } else { ":" };
        is_place.then(|| edit(at.start, at.end, format!("{{{inside}{colon}?}}")))
    });
    let edit = edits.next_back()?;
    Some(
        Answer::of(vec![edit])
            .why("a list has no text of its own: `{:?}` shows its elements, `{:.2?}` rounds them"),
    )
}

/// The places of a text as Rust writes them.
fn rewritten(text: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{') {
        let start = at + open;
        if text[start..].starts_with("{{") {
            at = start + 2;
            continue;
        }
        at = start + 1;
        let Some(close) = text[at..].find(['{', '}', '\n', '"']) else {
            break;
        };
        let end = at + close;
        let inside = &text[at..end];
        if text[end..].starts_with('}')
            && let Some((name, format)) = inside.split_once(':')
            && let Some(new) = of_rust(name, format)
        {
            edits.push(edit(at, end, new));
        }
        at = end;
    }
    edits
}

/// `:.3` for `:.3f`; `None` where it is Rust's already, or has no counterpart.
fn of_rust(name: &str, format: &str) -> Option<String> {
    let is_place = name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let shape = format.trim_end_matches(['d', 'f', 's', 'g', 'i', 'F', 'G', 'n']);
    let shape = shape.replace(',', "");
    let is_shape = shape
        .chars()
        .all(|it| it.is_ascii_digit() || ".<>^+# ".contains(it));
    if !is_place || !is_shape || shape == format {
        return None;
    }
    Some(if shape.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{shape}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;
    use crate::{Fix, FixKind};

    #[test]
    fn formats_lose_their_letters() {
        for (text, expected) in [
            (
                "println!(\"{:.3f} {n:d} {x:>8.2f}\", a);",
                "println!(\"{:.3} {n} {x:>8.2}\", a);",
            ),
            (
                "println!(\"{:,} {:5s}\", a, b);",
                "println!(\"{} {:5}\", a, b);",
            ),
        ] {
            let fix = Fix {
                kind: FixKind::Change,
                title: String::new(),
                edits: rewritten(text),
            };
            assert_eq!(apply(text, &fix).as_deref(), Some(expected));
        }
        for text in [
            "println!(\"{:.2e} {:?} {{x:f}} {x}\", a);",
            "struct A { x: f64 }",
            "Loss { from_logits: true }",
        ] {
            assert_eq!(rewritten(text), Vec::new(), "{text}");
        }
    }
}
