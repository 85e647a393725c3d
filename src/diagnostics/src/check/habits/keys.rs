//! Values with names in the brackets of a usage: `shuffle(seed = 42)`, `encode(text, max_length = 16)`. A value stands in what is
//! written only under its own name; what has no place is named.

use super::fill::Parts;

/// The places that names have among the values of functions and methods of other libraries.
const PLACES: &[(&[&str], &[&[&str]])] = &[
    (
        &["train_test_split"],
        &[&["test_size"], &["seed", "random_state"]],
    ),
    (
        &["head", "tail", "take", "limit", "sample", "skip"],
        &[&["n", "k", "size", "count"]],
    ),
    (&["batch", "padded_batch"], &[&["batch_size"]]),
    (
        &[
            "set_seed",
            "manual_seed",
            "set_random_seed",
            "seed",
            "seed_everything",
        ],
        &[&["seed", "s"]],
    ),
    (
        &[
            "read_csv",
            "read_json",
            "read_parquet",
            "csv",
            "jsonl",
            "parquet",
            "from_csv",
            "from_json",
            "load_csv",
            "open",
        ],
        &[&[
            "filepath_or_buffer",
            "path",
            "path_or_buf",
            "file",
            "filename",
        ]],
    ),
    (
        &[
            "save",
            "save_model",
            "save_weights",
            "save_pretrained",
            "load_model",
            "load_weights",
            "to_csv",
        ],
        &[&[
            "filepath",
            "path",
            "save_directory",
            "path_or_buf",
            "filename",
        ]],
    ),
    (
        &["from_pretrained"],
        &[
            &["pretrained_model_name_or_path", "model_name", "model"],
            &["num_labels", "num_classes", "labels"],
        ],
    ),
    (&["predict", "embed"], &[&["x", "inputs", "texts", "data"]]),
    (&["encode", "tokenize"], &[&["text"]]),
    (&["decode"], &[&["token_ids", "ids"]]),
    (&["linspace"], &[&["start"], &["stop"], &["num"]]),
    (&["zeros", "ones"], &[&["shape", "size"]]),
    (
        &["sort_values", "sort", "groupby", "group_by"],
        &[&["by", "key"]],
    ),
    (&["filter", "map", "apply"], &[&["function", "func"]]),
    (
        &[
            "accuracy_score",
            "confusion_matrix",
            "classification_report",
            "f1_score",
            "precision_score",
            "recall_score",
        ],
        &[&["y_true"], &["y_pred"]],
    ),
    (&["sleep"], &[&["secs", "seconds"]]),
];

/// Names whose value changes nothing in what is written: the rest of the row is the same without them.
const WITHOUT_EFFECT: [&str; 16] = [
    "add_special_tokens",
    "batched",
    "buffer_size",
    "copy",
    "flush",
    "ignore_index",
    "index",
    "inplace",
    "num_proc",
    "padding",
    "reshuffle_each_iteration",
    "return_tensors",
    "show_shapes",
    "truncation",
    "use_fast",
    "verbose",
];
/// Functions of which an axis is the last one anyway.
const ALONG_THE_LAST: [&str; 3] = ["argmax", "argmin", "softmax"];

/// Values in order and those with names: a name that has a place stands in it.
pub(super) fn placed(
    function: &str,
    values: Vec<String>,
    mut keys: Vec<(String, String)>,
) -> (Vec<String>, Vec<(String, String)>) {
    let mut values = values;
    let row = PLACES.iter().find(|(names, _)| names.contains(&function));
    let Some((_, places)) = row else {
        return (values, keys);
    };
    // A function of that name is given the data first.
    let first = usize::from(function == "train_test_split" && values.len() == 1);
    while let Some(names) = places.get(values.len().saturating_sub(first)) {
        let at = keys
            .iter()
            .position(|(key, _)| names.contains(&key.as_str()));
        let Some(at) = at else { break };
        values.push(keys.remove(at).1);
    }
    (values, keys)
}

/// `_, max_length = _` for the values and those names that have an effect; `None` without any.
pub(super) fn form(blanks: &str, keys: &[(String, String)]) -> Option<String> {
    let names = keys.iter().map(|(key, _)| key.as_str());
    let mut names: Vec<&str> = names.filter(|it| !WITHOUT_EFFECT.contains(it)).collect();
    names.sort_unstable();
    let keys: Vec<String> = names.iter().map(|it| format!("{it} = _")).collect();
    let blanks = Some(blanks).filter(|it| !it.is_empty());
    let parts = blanks.map(str::to_owned).into_iter().chain(keys);
    (!names.is_empty()).then(|| parts.collect::<Vec<_>>().join(", "))
}

/// What is said of the names that a template has no place for, and whether the edit would change the meaning.
pub(super) fn left(parts: &Parts<'_>, template: &str, end: usize) -> (Option<String>, bool) {
    let usage = parts.usage;
    let next = usage.next.as_ref().filter(|it| it.named.start < end);
    let of_next = next
        .iter()
        .flat_map(|it| it.keys.iter().map(|key| (it.name.as_str(), key)));
    let own = usage.keys.iter().map(|key| (usage.name.as_str(), key));
    let has_all = template.contains("{..}");
    let is_left = |(_, (key, _)): &(&str, &(String, String))| {
        !has_all && !template.contains(&format!("{{{key}}}"))
    };
    let left: Vec<(&str, &(String, String))> = own.chain(of_next).filter(is_left).collect();
    if left.is_empty() {
        return (None, false);
    }
    let has_no_effect = |function: &str, key: &str| {
        WITHOUT_EFFECT.contains(&key)
            || (matches!(key, "axis" | "dim") && ALONG_THE_LAST.contains(&function))
    };
    let is_changed = !left
        .iter()
        .all(|(function, (key, _))| has_no_effect(function, key));
    let names: Vec<String> = left
        .iter()
        .map(|(_, (key, value))| format!("`{key} = {value}`"))
        .collect();
    let verb = match (is_changed, names.len()) {
        (true, 1) => "has no place in it",
        (true, _) => "have no place in it",
        (false, 1) => "is left out",
        (false, _) => "are left out",
    };
    (Some(format!("{} {verb}", names.join(", "))), is_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_name_has_its_place_whatever_the_order() {
        for (function, values, given, expected, left) in [
            (
                "train_test_split",
                vec!["&rows"],
                vec![("random_state", "42"), ("test_size", "0.25")],
                vec!["&rows", "0.25", "42"],
                vec![],
            ),
            (
                "train_test_split",
                vec![],
                vec![("seed", "1"), ("test_size", "0.2")],
                vec!["0.2", "1"],
                vec![],
            ),
            ("head", vec![], vec![("n", "3")], vec!["3"], vec![]),
            (
                "encode",
                vec!["t"],
                vec![("padding", "true"), ("max_length", "16")],
                vec!["t"],
                vec![("padding", "true"), ("max_length", "16")],
            ),
            ("other", vec![], vec![("a", "3")], vec![], vec![("a", "3")]),
        ] {
            let values = values.into_iter().map(str::to_owned).collect();
            let (values, keys_left) = placed(function, values, keys(&given));
            assert_eq!(
                (values, keys_left),
                (
                    expected.into_iter().map(str::to_owned).collect(),
                    keys(&left)
                )
            );
        }
    }

    #[test]
    fn a_form_has_the_names_that_have_an_effect() {
        let all = keys(&[("padding", "true"), ("max_length", "16"), ("a", "1")]);
        assert_eq!(form("_", &all).as_deref(), Some("_, a = _, max_length = _"));
        assert_eq!(
            form("", &keys(&[("seed", "1")])).as_deref(),
            Some("seed = _")
        );
        assert_eq!(form("_", &keys(&[("padding", "true")])), None);
    }
}
