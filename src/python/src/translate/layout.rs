//! The keys of a `keras.distribution.LayoutMap`: regular expressions over paths such as `model/dense_1/kernel`, as patterns of the
//! names of variables here.
//!
//! A key is searched in the path up to Keras 3.13, and has to match the whole path from 3.14 on (keras-team/keras#22164). A search
//! is a pattern that begins with `*`; a key for the whole path that begins with `.*` is the same.

use super::Why;
use crate::model::{Kind, Value};

/// A key may have this many alternatives.
const MAX_ALTERNATIVES: usize = 16;

/// A key of a map of layouts, as it is written here.
pub(super) struct Cuts {
    /// The patterns, one for each alternative.
    pub patterns: Vec<String>,
    /// The layout of a variable, in Rust.
    pub axes: Vec<String>,
    /// What is different.
    pub notes: Vec<&'static str>,
}

/// The names of axes in a tuple: `(None, "model")`.
pub(super) fn axes(value: &Value) -> Result<Vec<Option<String>>, Why> {
    let elements = value.elements().ok_or("its layout is not written out")?;
    let axes = elements.iter().map(|it| match &it.kind {
        Kind::None => Ok(None),
        Kind::Text(name) => Ok(Some(name.clone())),
        _ => Err("its layout is not written out".to_owned()),
    });
    axes.collect()
}

/// The name that a variable of a layer has here, for the last word of its name in Keras.
fn variable_of(last: &str) -> Option<&'static str> {
    Some(match last {
        "kernel" | "embeddings" | "gamma" | "weight" => "weight",
        "bias" | "beta" => "bias",
        _ => return None,
    })
}

/// Translates a key with its layout.
pub(super) fn cuts(key: &str, axes: &[Option<String>]) -> Result<Cuts, Why> {
    let (alternatives, notes) = globs(key)?;
    let mut patterns = Vec::new();
    let mut order: Option<Vec<String>> = None;
    for glob in alternatives {
        let last = glob
            .rsplit(|it: char| !it.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        let of_keras = last.to_owned();
        let written = written(&glob, &of_keras, axes)?;
        if order.as_ref().is_some_and(|it| *it != written) {
            return Err(
                "the variables of its alternatives have their axes in different orders".to_owned(),
            );
        }
        order = Some(written);
        let pattern = match variable_of(&of_keras) {
            Some(here) => format!("{}{here}", &glob[..glob.len() - of_keras.len()]),
            None => glob,
        };
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Ok(Cuts {
        patterns,
        axes: order.unwrap_or_default(),
        notes,
    })
}

/// The layout of a variable in the order of its axes here.
fn written(glob: &str, last: &str, axes: &[Option<String>]) -> Result<Vec<String>, Why> {
    let some = |axis: &Option<String>| match axis {
        Some(name) => format!("Some({})", super::text::text(name)),
        None => "None".to_owned(),
    };
    let is_table = last == "embeddings" || glob.contains("embedding");
    let is_output = glob.contains("output");
    let through_heads = || {
        "it cuts through the heads, and a device has whole heads here: `(None, \"model\", None)` cuts between them".to_owned()
    };
    Ok(match (axes, last) {
        ([one], _) => vec![some(one)],
        ([_, dim], "bias") if dim.is_some() => return Err(through_heads()),
        ([heads, _], "bias") => vec![some(heads)],
        ([first, second], _) if is_table => vec![some(first), some(second)],
        // A kernel (inputs, outputs) is a weight [outputs, inputs].
        ([inputs, outputs], _) => vec![some(outputs), some(inputs)],
        // The kernel of an `EinsumDense`: (heads, size of a head, outputs), or (inputs, heads, size of a head).
        ([_, Some(_), _], "kernel") if is_output => return Err(through_heads()),
        ([heads, _, outputs], "kernel") if is_output => vec![some(outputs), some(heads)],
        ([_, _, Some(_)], "kernel") => return Err(through_heads()),
        ([inputs, heads, _], "kernel") => vec![some(heads), some(inputs)],
        _ => return Err(format!("no variable here has {} axes", axes.len())),
    })
}

/// The patterns of a regular expression, one for each alternative, and what is wider in them.
fn globs(key: &str) -> Result<(Vec<String>, Vec<&'static str>), Why> {
    let mut notes = Vec::new();
    let inner = key.strip_prefix('^').unwrap_or(key);
    let begins = key.len() != inner.len();
    let (inner, ends) = match inner.strip_suffix('$') {
        Some(inner) if !inner.ends_with('\\') => (inner, true),
        _ => (inner, false),
    };
    let mut found = Vec::new();
    for alternative in alternatives(inner)? {
        let mut glob = glob(&alternative, &mut notes)?;
        if !begins && !glob.starts_with('*') {
            glob.insert(0, '*');
        }
        let last = glob
            .rsplit(|it: char| !it.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        if !ends && !glob.ends_with('*') && variable_of(last).is_none() {
            glob.push('*');
        }
        found.push(glob);
    }
    Ok((found, notes))
}

/// `a(b|c)d` as `abd` and `acd`, also at the outside and one in another.
fn alternatives(key: &str) -> Result<Vec<String>, Why> {
    let unknown = || format!("`{key}` has no counterpart as a pattern with `*` and `?`");
    let mut done: Vec<String> = Vec::new();
    let mut open = vec![key.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= MAX_ALTERNATIVES {
            return Err(format!(
                "`{key}` has more than {MAX_ALTERNATIVES} alternatives"
            ));
        }
        // The innermost group, or all of it.
        let end = text.find(')');
        let start = text[..end.unwrap_or(text.len())].rfind('(');
        let (before, group, after) = match (start, end) {
            (Some(start), Some(end)) => (&text[..start], &text[start + 1..end], &text[end + 1..]),
            (None, None) => ("", text.as_str(), ""),
            _ => return Err(unknown()),
        };
        let is_group = start.is_some();
        let group = group.strip_prefix("?:").unwrap_or(group);
        let is_repeated = after.starts_with(['*', '+', '?', '{']);
        if is_group && (is_repeated || group.starts_with('?')) {
            return Err(unknown());
        }
        match is_group || group.contains('|') {
            // In the order of the key.
            true => open.extend(
                group
                    .split('|')
                    .rev()
                    .map(|it| format!("{before}{it}{after}")),
            ),
            false => done.push(text),
        }
    }
    Ok(done)
}

/// A regular expression without groups.
fn glob(key: &str, notes: &mut Vec<&'static str>) -> Result<String, Why> {
    const WIDER: &str = "`\\d` and sets of characters are `?` here, any character, and `*` where they repeat, any text";
    let unknown = || format!("`{key}` has no counterpart as a pattern with `*` and `?`");
    let mut glob = String::new();
    let mut rest = key;
    while let Some(first) = rest.chars().next() {
        let (what, length) = match first {
            '.' => ("?", 1),
            '/' => (".", 1),
            '\\' => match rest[1..].chars().next().ok_or_else(unknown)? {
                'd' | 'w' => ("?", 2),
                it @ ('.' | '/' | '-' | '_') => (if it == '/' { "." } else { &rest[1..2] }, 2),
                _ => return Err(unknown()),
            },
            '[' => ("?", rest.find(']').ok_or_else(unknown)? + 1),
            it if it.is_alphanumeric() || matches!(it, '_' | '-' | ':') => {
                (&rest[..it.len_utf8()], it.len_utf8())
            }
            _ => return Err(unknown()),
        };
        rest = &rest[length..];
        let is_any = what == "?";
        let repeats = rest.starts_with(['*', '+', '?', '{']);
        if repeats && (!is_any || rest.starts_with(['?', '{'])) {
            return Err(unknown());
        }
        if is_any && first != '.' && !notes.contains(&WIDER) {
            notes.push(WIDER);
        }
        match repeats {
            true => {
                let is_some = rest.starts_with('+');
                rest = &rest[1..];
                // A lazy repetition matches the same names.
                rest = rest.strip_prefix('?').unwrap_or(rest);
                glob.push_str(if is_some && first == '.' { "?*" } else { "*" });
            }
            false => glob.push_str(what),
        }
    }
    // `**` is `*`.
    while glob.contains("**") {
        glob = glob.replace("**", "*");
    }
    // Hugging Face's `layer_._0` in TensorFlow is `layer.0`.
    Ok(glob.replace("layer_?_", "layer."))
}

/// Refuses a mesh of which nothing is cut, and a batch that is divided along another axis than the first.
pub(super) fn check_axes(
    mesh: &[(String, Option<i64>)],
    batch: Option<&str>,
) -> Result<(), super::Why> {
    if let [(first, replicas), .., (model, Some(1))] = mesh
        && *replicas != Some(1)
    {
        return Err(format!(
            "the axis `{model}` has one device, so that nothing is cut, and `{first}` divides the batch: `MirroredStrategy::logical({})?`",
            replicas.unwrap_or(2)
        ));
    }
    match (batch, mesh.first()) {
        (Some(name), Some((first, _))) if name != first => Err(format!(
            "the batch is divided along `{name}`, and here along the first axis of the mesh, `{first}`"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(key: &str) -> Result<Vec<String>, Why> {
        let axes = [None, Some("model".to_owned())];
        cuts(key, &axes).map(|it| it.patterns)
    }

    #[test]
    fn keys_are_patterns() {
        for (key, expected) in [
            ("dense.*kernel", &["*dense*weight"][..]),
            (".*dense.*kernel", &["*dense*weight"]),
            ("^dense/kernel$", &["dense.weight"]),
            ("dense_1.kernel", &["*dense_1?weight"]),
            (
                r"layer\.\d+/self/(query|key|value)/kernel",
                &[
                    "*layer.*.self.query.weight",
                    "*layer.*.self.key.weight",
                    "*layer.*.self.value.weight",
                ],
            ),
            ("embedding.*embeddings", &["*embedding*weight"]),
            ("a/kernel|b/kernel", &["*a.weight", "*b.weight"]),
            (
                r"layer_._\d/output/dense/kernel",
                &["*layer.?.output.dense.weight"],
            ),
            (
                "layer_[0-9]+/(?:a|b(c|d))/kernel",
                &[
                    "*layer_*.a.weight",
                    "*layer_*.bc.weight",
                    "*layer_*.bd.weight",
                ],
            ),
            ("encoder.+dense", &["*encoder?*dense*"]),
        ] {
            assert_eq!(patterns(key).expect(key), expected, "{key}");
        }
        for key in [
            "dense(?!_1)/kernel",
            "a{2}/kernel",
            "den?se/kernel",
            "(a",
            "a)",
            "(a)*/kernel",
            r"\bdense",
            "[a",
            "\\",
        ] {
            assert!(patterns(key).is_err(), "{key}");
        }
        let many = "(a|b|c)(a|b|c)(a|b|c)(a|b|c)";
        assert!(patterns(many).is_err());
    }

    #[test]
    fn axes_are_in_the_order_of_weights_here() {
        let model = || Some("model".to_owned());
        for (key, axes, expected) in [
            (
                "dense.*kernel",
                vec![None, model()],
                Some("Some(\"model\"), None"),
            ),
            (
                "dense.*kernel",
                vec![model(), None],
                Some("None, Some(\"model\")"),
            ),
            ("dense.*bias", vec![model()], Some("Some(\"model\")")),
            (
                "embedding.*embeddings",
                vec![model(), None],
                Some("Some(\"model\"), None"),
            ),
            (
                "query.*kernel",
                vec![None, model(), None],
                Some("Some(\"model\"), None"),
            ),
            ("query.*bias", vec![model(), None], Some("Some(\"model\")")),
            (
                "attention_output.*kernel",
                vec![model(), None, None],
                Some("None, Some(\"model\")"),
            ),
            ("query.*kernel", vec![None, None, model()], None),
            ("query.*bias", vec![None, model()], None),
            ("conv2d.*kernel", vec![None, None, None, model()], None),
            (
                "(dense/kernel|embedding/embeddings)",
                vec![None, model()],
                None,
            ),
        ] {
            let found = cuts(key, &axes).ok().map(|it| it.axes.join(", "));
            assert_eq!(found.as_deref(), expected, "{key} {axes:?}");
        }
    }
}
