//! Several labels a text: each class holds or does not, by itself.

use std::sync::Arc;

use serde_json::Value;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::annotation::Annotation;
use crate::dataset::{Dataset, index_of, sorted_label_names};
use crate::example::Example;
use crate::problem;

impl Example {
    /// Adds the classes that it has: each once, in order; none is allowed.
    pub fn with_classes(mut self, classes: impl IntoIterator<Item = usize>) -> Self {
        let mut classes: Vec<usize> = classes.into_iter().collect();
        classes.sort_unstable();
        classes.dedup();
        self.annotation = Some(Arc::new(Annotation::Classes(classes)));
        self
    }

    /// The classes that it has, if it has a set of them.
    pub fn classes(&self) -> Option<&[usize]> {
        match self.annotation.as_deref() {
            Some(Annotation::Classes(classes)) => Some(classes),
            _ => None,
        }
    }
}

impl Dataset {
    /// A data set of texts, each with the names of the labels that it has; none is allowed. Labels are numbered in
    /// sorted order.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_label_sets([
    ///     ("a mail server with a web page", vec!["web", "mail"]),
    ///     ("a game of chess", vec![]),
    /// ])?;
    /// assert_eq!(data.label_names, ["mail", "web"]);
    /// assert_eq!(data[0].classes(), Some(&[0, 1][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0914 if there is no text; SC0911 for a label without a name.
    pub fn from_label_sets<T: Into<String>, L: AsRef<str>>(
        rows: impl IntoIterator<Item = (T, Vec<L>)>,
    ) -> Result<Self> {
        const CALL: &str = "Dataset::from_label_sets";
        let source = "texts in memory";
        let (texts, sets): (Vec<T>, Vec<Vec<L>>) = rows.into_iter().unzip();
        if texts.is_empty() {
            return Err(problem::empty(source, CALL));
        }
        let is_unnamed = |set: &Vec<L>| set.iter().any(|label| label.as_ref().trim().is_empty());
        if let Some(row) = sets.iter().position(is_unnamed) {
            let reason = format!("row {row} has a label without a name");
            return Err(problem::unreadable(CALL, source, None, reason));
        }
        let names = sorted_label_names(sets.iter().flatten().map(AsRef::as_ref));
        let class_of = index_of(&names);
        let examples = texts.into_iter().zip(&sets).map(|(text, set)| {
            let classes = set.iter().filter_map(|label| class_of.get(label.as_ref()));
            Example::new(text).with_classes(classes.copied())
        });
        let examples: Vec<Example> = examples.collect();
        Ok(Self::from_examples(examples, names.clone(), source))
    }

    /// Whether the examples have sets of labels.
    pub fn has_label_sets(&self) -> bool {
        let mut examples = self.examples.iter();
        examples.any(|example| example.classes().is_some())
    }

    /// Renumbers the classes of an example; the first one that `class_of` does not have, if there is one.
    pub(crate) fn renumber_classes(
        example: &mut Example,
        class_of: impl Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        let classes = example.classes()?.to_vec();
        let mut renumbered = Vec::with_capacity(classes.len());
        for class in classes {
            match class_of(class) {
                Some(class) => renumbered.push(class),
                None => return Some(class),
            }
        }
        *example = example.clone().with_classes(renumbered);
        None
    }
}

/// The labels in a field of a table: a JSON list, or names between separators. Numbers and booleans of a list are names
/// as they are written, and a `null` is none. Names may stand in brackets.
///
/// # Errors
/// What is wrong with a field that looks like a list and is none.
pub(crate) fn names_in(field: &str, separator: &str) -> std::result::Result<Vec<String>, String> {
    let field = field.trim();
    let inner = field.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let names = match inner.and_then(|_| names_of_list(field)) {
        Some(names) => names,
        None if inner.is_some_and(|it| it.trim_start().starts_with(['"', '\'', '[', '{'])) => {
            let given = text::excerpt(field, 40);
            return Err(format!("`{given}` is not a JSON list of names"));
        }
        None => field.split(separator).map(str::to_owned).collect(),
    };
    let names = names.iter().map(|name| name.trim().to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
}

/// The names in a JSON list, if it is one.
fn names_of_list(field: &str) -> Option<Vec<String>> {
    let values = serde_json::from_str::<Vec<Value>>(field).ok()?;
    let names = values.into_iter().filter(|value| !value.is_null());
    let name = |value: Value| match value {
        Value::String(name) => Some(name),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    names.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Labels;
    use crate::source::Columns;
    use crate::tokenize::letters::Letters;

    fn data() -> Dataset {
        let rows = [
            ("ab", vec!["net", "mail"]),
            ("c", vec![]),
            ("d", vec!["mail", "mail"]),
        ];
        Dataset::from_label_sets(rows).expect("labels with names")
    }

    #[test]
    fn batches_have_the_sets() {
        let data = data();
        assert_eq!(data.label_names, ["mail", "net"]);
        assert_eq!(data.class_counts(), [2, 1]);
        let encoded = data.tokenize(&Letters, 64).expect("texts");
        let batch = encoded.batch(3).expect("3").next().expect("a batch");
        let Labels::Sets(sets) = &batch.labels else {
            panic!("{:?}", batch.labels);
        };
        assert_eq!(
            sets.iter().map(|set| set.to_vec()).collect::<Vec<_>>(),
            [vec![0, 1], vec![], vec![0]]
        );
        assert_eq!(batch.labels.slice(2..3).len(), 1);
        assert!(
            data.head(3).to_string().contains("mail, net"),
            "{}",
            data.head(3)
        );
    }

    #[test]
    fn sets_take_the_numbers_of_another_split() {
        let dev = Dataset::from_label_sets([("x", vec!["net"])]).expect("a label");
        let dev = dev.with_labels_of(&data()).expect("a known label");
        assert_eq!(dev[0].classes(), Some(&[1][..]));
        let other = Dataset::from_label_sets([("x", vec!["web"])]).expect("a label");
        let problem = other.with_labels_of(&data()).expect_err("an unknown label");
        assert_eq!(problem.code, "SC0913");
        let unnamed = Dataset::from_label_sets([("x", vec![" "])]).expect_err("no name");
        assert_eq!(unnamed.code, "SC0911");
        let none: [(&str, Vec<&str>); 0] = [];
        assert_eq!(
            Dataset::from_label_sets(none).expect_err("nothing").code,
            "SC0914"
        );
    }

    #[test]
    fn files_have_lists_or_separated_names() {
        for (field, expected) in [
            ("a| b ||a", Ok(vec!["a", "b", "a"])),
            ("[\"a|b\", \"c\"]", Ok(vec!["a|b", "c"])),
            (
                "[3, 10, null, true, 0.5]",
                Ok(vec!["3", "10", "true", "0.5"]),
            ),
            ("", Ok(vec![])),
            ("[]", Ok(vec![])),
            ("[draft", Ok(vec!["[draft"])),
            ("[draft]", Ok(vec!["[draft]"])),
            ("[bug]|[ui]", Ok(vec!["[bug]", "[ui]"])),
            (
                "['a', 'b']",
                Err("`['a', 'b']` is not a JSON list of names"),
            ),
            (
                "[[1], [2]]",
                Err("`[[1], [2]]` is not a JSON list of names"),
            ),
        ] {
            let expected = expected
                .map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
                .map_err(str::to_owned);
            assert_eq!(names_in(field, "|"), expected, "{field}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.csv");
        std::fs::write(&path, "text,tags\na server,net;mail\na game,\n").expect("room");
        let columns = Columns::new().text("text").labels("tags", ";");
        let data = Dataset::csv_with(&path, &columns).expect("two rows");
        assert_eq!(data.label_names, ["mail", "net"]);
        assert_eq!(data[0].classes(), Some(&[0, 1][..]));
        assert_eq!(data[1].classes(), Some(&[][..]));
        let path = folder.path().join("data.jsonl");
        std::fs::write(&path, "{\"text\": \"a\", \"tags\": [\"x\", \"y\"]}\n").expect("room");
        let data = Dataset::jsonl_with(&path, &columns).expect("a row");
        assert_eq!(data.label_names, ["x", "y"]);
        std::fs::write(&path, "{\"text\": \"a\", \"tags\": [3, 10]}\n").expect("room");
        let data = Dataset::jsonl_with(&path, &columns).expect("a row");
        assert_eq!(data.label_names, ["3", "10"]);
        let lines = "{\"text\": \"a\", \"tags\": [[3]]}\n{\"text\": \"b\", \"tags\": [4]}\n";
        std::fs::write(&path, lines).expect("room");
        let problem = Dataset::jsonl_with(&path, &columns).expect_err("a list in a list");
        let shown = format!("{problem:?}");
        assert!(
            problem.code == "SC0911" && shown.contains("`[[3]]` is not a JSON list of names"),
            "{shown}"
        );
        let data = Dataset::jsonl_with(&path, &columns.skip_bad_rows()).expect("a row");
        assert_eq!(
            (data.label_names.join(" "), data.skipped.rows),
            ("4".to_owned(), 1)
        );
    }
}
