//! The texts of the tables with the parts of a usage in them.

use stratoscope_cell_syntax::Syntax;

use super::usage::{Usage, kind_of_literal};

/// What the places of a template stand for.
pub(super) struct Parts<'a> {
    /// The text of the cell.
    pub text: &'a str,
    /// The cell in which what is written is tried.
    pub cell: Option<&'a Syntax>,
    pub usage: &'a Usage,
    /// The type of the elements of a list, where it is known.
    pub elements: Option<String>,
    /// Which of two values in the brackets are predictions.
    pub predictions: usize,
}

impl Parts<'_> {
    /// A template with its places filled: `{it}` the receiver, `{0}` the first value in the brackets, `{..}` all of them,
    /// `{index}`, `{second}` the index behind it, `{key}` a text that is the index, `{max_length}` the value of that name, `{range}` a range that is it, with both ends, `{op}` an operator, `{value}` what is assigned, `{next}` the first value in the brackets of what follows its dot, `{name}`, `{elements}` the type of elements, `{print}` the values as one
    /// `println!`. `None` where the usage does not have the part.
    pub fn fill(&self, template: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let place = rest[open + 1..].split_once('}');
            let value = place.and_then(|(name, after)| Some((self.part(name, after)?, after)));
            match value {
                Some((value, after)) => {
                    filled.push_str(&rest[..open]);
                    filled.push_str(&value);
                    rest = after;
                }
                // A brace of Rust.
                None if place.is_none_or(|(name, _)| !is_place(name)) => {
                    filled.push_str(&rest[..=open]);
                    rest = &rest[open + 1..];
                }
                None => return None,
            }
        }
        filled.push_str(rest);
        Some(filled)
    }

    fn part(&self, name: &str, after: &str) -> Option<String> {
        let usage = self.usage;
        let values = usage.call.as_ref().map(|(values, _)| values.as_slice());
        let part = match name {
            "it" => {
                let span = usage.receiver?;
                self.text.get(span.start..span.end)?.to_owned()
            }
            "name" => return Some(usage.name.clone()),
            "index" => return Some(usage.index.as_ref()?.0.clone()),
            "second" => return Some(usage.second.as_ref()?.0.clone()),
            "key" => return Some(usage.index.as_ref()?.0.trim_matches('"').to_owned()),
            "op" => return Some(usage.name.trim_start_matches("op ").to_owned()),
            "range" => return self.range(),
            "value" => usage.assigned.as_ref()?.0.clone(),
            "next" => {
                // `{next}` of what is called itself is its own first value.
                let Some(next) = usage
                    .next
                    .as_ref()
                    .filter(|it| it.call.is_some() || it.index.is_some())
                else {
                    return values?.first().cloned();
                };
                let call = next.call.as_ref().and_then(|(values, _)| values.first());
                call.or(next.index.as_ref().map(|(value, _)| value))?
                    .clone()
            }
            ".." => {
                let keys = usage.keys.iter();
                let keys = keys.map(|(key, value)| format!("{key} = {value}"));
                let all: Vec<String> = values?.iter().cloned().chain(keys).collect();
                return Some(all.join(", "));
            }
            "print" => return printed(values?),
            "predictions" => predicted(values?.get(self.predictions)?).to_owned(),
            "folder" => folder(values?.first()?),
            "part" => return Some(self.usage.encoder.to_owned()),
            "data" => data_set(values?.get(1 - self.predictions)?).to_owned(),
            "elements" => return self.elements.clone(),
            _ => match name.parse::<usize>() {
                Ok(index) => values?.get(index)?.clone(),
                Err(_) => self.key(name)?.to_owned(),
            },
        };
        // Before a dot a value stands without its `&`, and in brackets if it is more than a name.
        let is_followed = after.starts_with('.') && !after.starts_with("..");
        Some(if is_followed { receiver(&part) } else { part })
    }
}

impl Parts<'_> {
    /// The value of a name in the brackets, or in those of what follows the dot.
    fn key(&self, name: &str) -> Option<&str> {
        let next = self.usage.next.iter().flat_map(|it| &it.keys);
        let mut keys = self.usage.keys.iter().chain(next);
        let (_, value) = keys.find(|(key, _)| key == name)?;
        Some(value)
    }

    /// The range in square brackets, with both of its ends.
    fn range(&self) -> Option<String> {
        let (range, _) = self.usage.index.as_ref()?;
        let (from, to) = range.split_once("..")?;
        let from = if from.trim().is_empty() { "0" } else { from };
        let to = match to.trim() {
            "" => format!("{}.len()", self.part("it", ".")?),
            to => to.to_owned(),
        };
        Some(format!("{from}..{to}"))
    }
}

fn is_place(name: &str) -> bool {
    matches!(
        name,
        "it" | "name"
            | "index"
            | "key"
            | "second"
            | "op"
            | "range"
            | "value"
            | "next"
            | ".."
            | "print"
            | "elements"
            | "predictions"
            | "data"
            | "folder"
            | "part"
    ) || name.parse::<usize>().is_ok()
}

fn receiver(part: &str) -> String {
    let part = part.trim_start_matches('&').trim();
    let part = part.strip_prefix("mut ").unwrap_or(part);
    if part.starts_with('"') || is_simple(part) {
        part.to_owned()
    } else {
        format!("({part})")
    }
}

/// Whether no operator stands outside of brackets.
fn is_simple(part: &str) -> bool {
    let mut depth = 0_usize;
    let outside = part.chars().filter(|it| {
        match it {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let outside: String = outside.collect();
    let is_part = |it: char| it.is_alphanumeric() || "_.\")]?:!".contains(it);
    outside.chars().all(is_part) && !outside.contains("..")
}

/// The data set of a column: `dev` of `dev.labels`, `dev["label"]`, `&dev`.
pub(super) fn data_set(value: &str) -> &str {
    let value = value.trim_start_matches('&').trim();
    let columns = [
        ".labels()",
        ".label()",
        ".labels",
        ".label",
        ".targets",
        ".y",
        "[\"label\"]",
        "[\"labels\"]",
    ];
    columns
        .iter()
        .find_map(|it| value.strip_suffix(it))
        .unwrap_or(value)
}

/// The predictions that classes are taken from: `preds` of `preds.labels()`, `&preds.classes()`, `preds.argmax(1)`.
pub(super) fn predicted(value: &str) -> &str {
    let value = value.trim_start_matches('&').trim();
    let ends = [
        ".labels()",
        ".labels",
        ".classes()",
        ".classes",
        ".argmax()",
        ".argmax(1)",
        ".argmax(-1)",
        ".class",
        ".label",
        "[\"label\"]",
    ];
    let end = ends.iter().find_map(|it| value.strip_suffix(it));
    let mapped = || value.split_once(".iter().map(").map(|(it, _)| it);
    end.or_else(mapped).unwrap_or(value)
}

/// The name of a folder for that of a file with weights: `"net"` for `"net.weights.h5"`.
fn folder(value: &str) -> String {
    let ends = [
        ".weights.h5\"",
        ".h5\"",
        ".keras\"",
        ".hdf5\"",
        ".ckpt\"",
        ".pt\"",
        ".pth\"",
        ".bin\"",
    ];
    let name = ends.iter().find_map(|it| value.strip_suffix(it));
    match name {
        Some(name) if name.starts_with('"') && name.len() > 1 => format!("{name}\""),
        _ => value.to_owned(),
    }
}

/// `println!("n is {:?}", n)` for the values `"n is", n`.
fn printed(values: &[String]) -> Option<String> {
    let mut text = Vec::new();
    let mut arguments = Vec::new();
    for value in values {
        let formatted = value
            .strip_prefix("format!(")
            .and_then(|it| it.strip_suffix(')'));
        if let ([_], Some(inside)) = (values, formatted) {
            return Some(format!("println!({inside})"));
        }
        if kind_of_literal(value) == Some("\"\"") {
            let inside = &value[1..value.len() - 1];
            text.push(inside.replace('{', "{{").replace('}', "}}"));
        } else {
            text.push("{:?}".to_owned());
            arguments.push(format!(", {value}"));
        }
    }
    if values.is_empty() {
        return Some("println!()".to_owned());
    }
    Some(format!(
        "println!(\"{}\"{})",
        text.join(" "),
        arguments.concat()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_are_one_macro() {
        let printed = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|it| (*it).to_owned()).collect();
            printed(&values).expect("it can be printed")
        };
        assert_eq!(printed(&["\"a{b}\""]), "println!(\"a{{b}}\")");
        assert_eq!(printed(&["\"n is\"", "n"]), "println!(\"n is {:?}\", n)");
        assert_eq!(printed(&["format!(\"{v}\")"]), "println!(\"{v}\")");
        assert_eq!(printed(&[]), "println!()");
    }

    #[test]
    fn what_a_method_is_called_on_is_no_reference() {
        for (part, expected) in [
            ("&v", "v"),
            ("a + b", "(a + b)"),
            ("f(x)?[0]", "f(x)?[0]"),
            ("f([1, 2 - x])?[0]", "f([1, 2 - x])?[0]"),
            ("v[0] + f(x)", "(v[0] + f(x))"),
            ("0..f(3)", "(0..f(3))"),
            ("-5", "(-5)"),
        ] {
            assert_eq!(receiver(part), expected);
        }
    }
}
