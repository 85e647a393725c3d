//! The order of completions after a dot: frequently called methods first, methods that every type has last.

use stratoscope_session::Completion;

/// What people call of a model, a history, a data set, in this order.
const FIRST: &[&str] = &[
    "fit",
    "step",
    "epoch",
    "until",
    "finish",
    "predict",
    "evaluate",
    "compile",
    "summary",
    "save_pretrained",
    "placement",
    "plot",
    "get",
    "names",
    "head",
    "len",
    "split",
    "shuffled",
    "label_names",
    "num_parameters",
    "strategy",
    "freeze",
    "unfreeze",
    "add_lora",
    "merge_lora",
    "tokenizer",
];

/// What nearly every value has.
const LAST: &[&str] = &[
    "as_any",
    "borrow",
    "borrow_mut",
    "clone",
    "clone_from",
    "clone_into",
    "cmp",
    "eq",
    "fmt",
    "ge",
    "gt",
    "hash",
    "into",
    "le",
    "lt",
    "ne",
    "partial_cmp",
    "to_owned",
    "to_string",
    "try_into",
    "type_id",
];

/// Puts members in order; those of equal rank stay in theirs.
pub fn sort(items: &mut [Completion]) {
    let place = |names: &[&str], text: &str| names.iter().position(|name| *name == text);
    items.sort_by_key(|item| {
        let text = item.text.as_str();
        match place(FIRST, text) {
            Some(at) => (0, at),
            None if place(LAST, text).is_some() => (2, 0),
            None => (1, 0),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assist::item;

    #[test]
    fn what_people_call_comes_first() {
        let offered = ["try_into", "build", "summary", "fit", "clone", "apply"];
        let mut items = offered.map(|name| item(name, "function", ""));
        sort(&mut items);
        let found = items.map(|item| item.text);
        let expected = ["fit", "summary", "build", "apply", "try_into", "clone"];
        assert_eq!(found, expected);
    }
}
