//! [`Dataset`]: examples and the names of their classes; how to create, renumber, shuffle and split them.

use std::collections::{HashMap, HashSet};
use std::ops::Index;
use std::sync::Arc;

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::example::{Example, Label};
use crate::pipeline::Content;
use crate::shards::AutoShardPolicy;
use crate::summary::Head;
use crate::{problem, random};

/// Examples with the names of their classes. Splitting keeps the names, so class 0 is the same class in all parts of a
/// data set.
#[derive(Clone, PartialEq)]
pub struct Dataset {
    /// The examples in order.
    pub examples: Vec<Example>,
    /// The name of each class, by index; empty when the labels are numbers or absent.
    pub label_names: Vec<String>,
    /// Where the examples come from: a path as the user gave it, or the call that made them.
    pub source: String,
    /// Rows of the source that are not among the examples because they cannot be read, as was asked for.
    pub skipped: SkippedRows,
    /// What the reader of the file decided by itself, such as the sign between two fields.
    pub remarks: Vec<String>,
    /// Which examples each worker sees.
    pub auto_shard: AutoShardPolicy,
}

/// Rows that were skipped, as [`crate::Columns::skip_bad_rows`] asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRows {
    /// How many.
    pub rows: usize,
    /// What is wrong with the first ones: `line 3 has 3 fields, the header has 2`.
    pub first: Vec<String>,
}

impl SkippedRows {
    /// Rows that are described.
    const DESCRIBED: usize = 5;

    /// One more; `what` is called for the first ones only.
    pub(crate) fn add(&mut self, what: impl FnOnce() -> String) {
        self.rows += 1;
        if self.first.len() < Self::DESCRIBED {
            self.first.push(what());
        }
    }

    /// Those of another part of the same data.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.rows += other.rows;
        let room = Self::DESCRIBED.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
    }

    /// `2 rows skipped: line 3 has 3 fields, the header has 2; …`; nothing without a row.
    pub fn sentence(&self) -> Option<String> {
        let mut sentence = format!(
            "{} skipped: {}",
            text::count(self.rows, "row"),
            self.first.join("; ")
        );
        if self.rows > self.first.len() {
            sentence += "; …";
        }
        (self.rows > 0).then_some(sentence)
    }
}

impl Dataset {
    /// A data set of examples; their `row` is set to their position.
    pub fn from_examples(
        examples: impl IntoIterator<Item = Example>,
        label_names: Vec<String>,
        source: impl Into<String>,
    ) -> Self {
        let number = |(row, example): (usize, Example)| Example { row, ..example };
        let data = Self {
            examples: examples.into_iter().enumerate().map(number).collect(),
            label_names,
            source: source.into(),
            skipped: SkippedRows::default(),
            remarks: Vec::new(),
            auto_shard: AutoShardPolicy::default(),
        };
        data.with_names_in_examples()
    }

    /// The examples in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Example> {
        self.examples.iter()
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.examples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.examples.is_empty()
    }

    /// How many classes there are: 0 when the labels are numbers or absent.
    pub fn num_labels(&self) -> usize {
        self.label_names.len()
    }

    /// Whether the examples are pairs of texts.
    pub fn is_paired(&self) -> bool {
        self.examples.iter().any(|example| example.pair.is_some())
    }

    /// How many examples each class has, in the order of `label_names`; of tagged words, how many words.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.label_names.len()];
        let tags = self.examples.iter().filter_map(Example::words).flatten();
        let classes = self.examples.iter().filter_map(Example::class);
        let sets = self.examples.iter().filter_map(Example::classes);
        let of_sets = sets.flatten().copied();
        for class in classes
            .chain(tags.filter_map(|word| word.tag))
            .chain(of_sets)
        {
            if let Some(count) = counts.get_mut(class) {
                *count += 1;
            }
        }
        counts
    }

    /// Renumbers the classes as in `other`, usually the training set.
    ///
    /// # Errors
    /// SC0913 if there is a class that `other` does not have.
    pub fn with_labels_of(self, other: &Dataset) -> Result<Self> {
        self.with_label_names(&other.label_names)
    }

    /// Renumbers the classes by a list of names, such as that of a trained model.
    ///
    /// # Errors
    /// SC0913 if there is a class that is not in the list.
    pub fn with_label_names(mut self, label_names: &[String]) -> Result<Self> {
        let class_of = index_of(label_names);
        let mut first_unknown = None;
        let mut unknown_rows = 0;
        let names = &self.label_names;
        let renumbered = |tag: usize| class_of.get(names.get(tag)?.as_str()).copied();
        for (index, example) in self.examples.iter_mut().enumerate() {
            let unknown = Self::renumber_words(example, renumbered)
                .or_else(|| Self::renumber_classes(example, renumbered));
            if let Some(tag) = unknown {
                unknown_rows += 1;
                first_unknown.get_or_insert((index, names.get(tag).map_or("", String::as_str)));
            }
            let Some(Label::Class(class)) = example.label else {
                continue;
            };
            let name = self.label_names.get(class).map_or("", String::as_str);
            match class_of.get(name) {
                Some(&renumbered) => example.label = Some(Label::Class(renumbered)),
                None => {
                    unknown_rows += 1;
                    first_unknown.get_or_insert((index, name));
                }
            }
        }
        if let Some((index, name)) = first_unknown {
            let example = &self.examples[index];
            return Err(problem::unknown_label(
                &self.source,
                example,
                name,
                label_names,
                unknown_rows,
            ));
        }
        self.label_names = label_names.to_vec();
        Ok(self.with_names_in_examples())
    }

    /// Gives the classes other names, in the same order.
    ///
    /// # Errors
    /// SC0915 unless there is exactly one name for each class.
    pub fn rename_labels<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.len() != self.label_names.len() {
            let expects = format!("{}, one name for each class", self.label_names.len());
            let place = problem::call("rename_labels");
            return Err(problem::bad_size(place, "names", names.len(), &expects));
        }
        self.label_names = names;
        Ok(self.with_names_in_examples())
    }

    /// Updates the class name stored in each example after names or labels have changed.
    #[must_use]
    pub(crate) fn with_names_in_examples(mut self) -> Self {
        let names = self.label_names.iter();
        let names: Vec<Arc<str>> = names.map(|name| name.as_str().into()).collect();
        for example in &mut self.examples {
            example.label_name = match example.classes() {
                Some(classes) => {
                    let own: Vec<&str> = classes
                        .iter()
                        .filter_map(|&it| names.get(it))
                        .map(|it| &**it)
                        .collect();
                    Some(own.join(", ").into())
                }
                None => example.class().and_then(|class| names.get(class).cloned()),
            };
        }
        self
    }

    /// The first `count` examples as a table: `train.head(5)`.
    pub fn head(&self, count: usize) -> Head {
        Head::of(self.take(count), self.len())
    }

    /// The first `count` examples, or all if there are fewer.
    pub fn take(&self, count: usize) -> Self {
        self.with_examples(self.examples.iter().take(count))
    }

    /// All but the first `count` examples.
    pub fn skip(&self, count: usize) -> Self {
        self.with_examples(self.examples.iter().skip(count))
    }

    /// The examples in a random order, fixed by the seed.
    pub fn shuffled(&self, seed: u64) -> Self {
        let order = random::permutation(self.len(), seed, 0);
        self.with_examples(order.iter().map(|&index| &self.examples[index]))
    }

    /// Splits off the last `fraction` of the examples, as Keras's
    /// `validation_split` does, without shuffling. For a file sorted by class use
    /// [`stratified_split`](Self::stratified_split).
    ///
    /// # Errors
    /// SC0915 unless `fraction` lies between 0 and 1, both excluded; SC0914 if a part is empty.
    pub fn split(&self, fraction: f64) -> Result<(Self, Self)> {
        // This form of the condition also refuses NaN.
        if !(fraction > 0.0 && fraction < 1.0) {
            let place = problem::fit_argument("validation_split");
            let expects = "between 0 and 1, both excluded";
            return Err(problem::bad_size(
                place,
                "validation_split",
                fraction,
                expects,
            ));
        }
        // Keras: the training part ends at floor(rows × (1 − fraction)).
        let boundary = (self.len() as f64 * (1.0 - fraction)).floor() as usize;
        let parts = (self.take(boundary), self.skip(boundary));
        for part in [&parts.0, &parts.1] {
            if part.is_empty() {
                return Err(problem::empty(&self.source, "fit"));
            }
        }
        Ok(parts)
    }

    /// Pairs of row indices (in this data set, in `other`) whose examples have the same texts: rows that leaked
    /// from one split into the other. Both texts of a pair must agree; labels may differ.
    pub fn overlap(&self, other: &Dataset) -> Vec<(usize, usize)> {
        let theirs = other.examples.iter().enumerate().rev();
        let theirs: HashMap<Content<'_>, usize> = theirs
            .map(|(index, example)| (Content::of(example), index))
            .collect();
        let ours = self.examples.iter().enumerate();
        ours.filter_map(|(index, example)| Some((index, *theirs.get(&Content::of(example))?)))
            .collect()
    }

    /// A data set with the same names and source and these examples.
    pub(crate) fn with_examples<'a>(&self, examples: impl Iterator<Item = &'a Example>) -> Self {
        Self {
            examples: examples.cloned().collect(),
            label_names: self.label_names.clone(),
            source: self.source.clone(),
            skipped: self.skipped.clone(),
            remarks: self.remarks.clone(),
            auto_shard: self.auto_shard,
        }
    }
}

/// `train[0]`: an example by its position.
impl Index<usize> for Dataset {
    type Output = Example;

    /// # Panics
    /// The data set has no such example.
    #[track_caller]
    fn index(&self, position: usize) -> &Example {
        let Some(example) = self.examples.get(position) else {
            let examples = text::count(self.len(), "example");
            match self.len() {
                0 => panic!("the data set is empty: it has no example {position}"),
                length => panic!(
                    "the data set has {examples}, numbered 0 to {}: there is no example {position}",
                    length - 1
                ),
            }
        };
        example
    }
}

/// The distinct labels in order: as numbers if all of them are numbers, else as text.
pub(crate) fn sorted_label_names<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<String> {
    let distinct: HashSet<&str> = labels.collect();
    let mut names: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
    // Equal numbers can be written differently (`1`, `01`, `1.0`): their order is that of the texts.
    names.sort();
    if names.iter().all(|name| name.parse::<i64>().is_ok()) {
        names.sort_by_key(|name| name.parse::<i64>().unwrap_or_default());
    } else if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|a, b| {
            let [a, b] = [a, b].map(|name| number(name).unwrap_or_default());
            a.total_cmp(&b)
        });
    }
    names
}

/// A finite number that is written as a label.
fn number(name: &str) -> Option<f64> {
    name.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The index of each class by its name.
pub(crate) fn index_of(label_names: &[String]) -> HashMap<&str, usize> {
    let numbered = label_names.iter().enumerate();
    numbered
        .map(|(index, name)| (name.as_str(), index))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[&str]) -> Vec<String> {
        sorted_label_names(labels.iter().copied())
    }

    #[test]
    fn classes_are_numbered_in_sorted_order() {
        assert_eq!(names(&["net", "admin", "net"]), ["admin", "net"]);
        assert_eq!(
            names(&["10", "9", "-1"]),
            ["-1", "9", "10"],
            "numbers as numbers"
        );
        assert_eq!(names(&["10", "9", "x"]), ["10", "9", "x"], "else as text");
        assert_eq!(names(&["10.0", "2.0", "0.0"]), ["0.0", "2.0", "10.0"]);
        assert_eq!(names(&["10", "2.5", "-1"]), ["-1", "2.5", "10"]);
        assert_eq!(names(&["10.0", "inf", "2.0"]), ["10.0", "2.0", "inf"]);
    }

    #[test]
    fn a_second_split_takes_the_numbers_of_the_first() {
        let train = Dataset::from_labelled([("a", "admin"), ("b", "fonts"), ("c", "games")]);
        let dev = Dataset::from_labelled([("d", "games"), ("e", "fonts")]);
        assert_eq!(
            dev.examples[0].label,
            Some(Label::Class(1)),
            "numbered on its own"
        );
        let dev = dev.with_labels_of(&train).unwrap();
        assert_eq!(
            dev.examples[0].label,
            Some(Label::Class(2)),
            "numbered as in train"
        );
        assert_eq!(dev.label_names, train.label_names);
        let stranger = Dataset::from_labelled([("d", "games"), ("f", "gmaes")]);
        let error = stranger.with_labels_of(&train).expect_err("unknown label");
        assert_eq!(error.code, "SC0913");
        let text = format!("{error:?}");
        assert!(text.contains("gmaes") && text.contains("admin"), "{text}");
    }

    #[test]
    fn a_split_takes_the_tail_as_keras_does() {
        let data = Dataset::from_texts((0..10).map(|number| number.to_string()));
        let (train, validation) = data.split(0.25).unwrap();
        assert_eq!((train.len(), validation.len()), (7, 3));
        assert_eq!(validation.examples[0].row, 7, "rows keep their number");
        for fraction in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(data.split(fraction).expect_err("refused").code, "SC0915");
        }
        assert_eq!(
            data.take(1).split(0.5).expect_err("empty part").code,
            "SC0914"
        );
    }

    #[test]
    fn leaked_rows_are_found_by_both_texts() {
        let train = Dataset::from_pairs([("a", "b"), ("a", "c"), ("d", "e")]);
        let dev = Dataset::from_pairs([("a", "c"), ("b", "a"), ("d", "e"), ("d", "e")]);
        assert_eq!(train.overlap(&dev), [(1, 0), (2, 2)]);
    }

    #[test]
    fn lists_of_different_lengths_are_refused() {
        let data = Dataset::from_rows(["a", "b"], ["y", "x"]).unwrap();
        assert_eq!(data.examples[0].label, Some(Label::Class(1)));
        let code = |result: Result<Dataset>| result.expect_err("it is refused").code;
        assert_eq!(code(Dataset::from_rows(["a", "b"], ["x"])), "SC0704");
        assert_eq!(code(Dataset::from_rows([""; 0], [""; 0])), "SC0914");
    }

    #[test]
    fn an_example_knows_the_name_of_its_class() {
        let name = |data: &Dataset, at: usize| data[at].label_name.as_deref().map(str::to_owned);
        let data = Dataset::from_labelled([("a", "no"), ("b", "yes")]);
        assert_eq!(name(&data, 1).as_deref(), Some("yes"));
        let renamed = data.clone().rename_labels(["0", "1"]).unwrap();
        assert_eq!(name(&renamed, 1).as_deref(), Some("1"));
        let both = ["maybe", "no", "yes"].map(str::to_owned);
        let renumbered = data.clone().with_label_names(&both).unwrap();
        assert_eq!(
            (name(&renumbered, 0).as_deref(), renumbered[0].class()),
            (Some("no"), Some(1))
        );
        let changed = data.map(|example| example.with_label(Label::Class(0)));
        assert_eq!(name(&changed, 1).as_deref(), Some("no"));
        assert_eq!(name(&Dataset::from_texts(["a"]), 0), None);
    }

    #[test]
    #[should_panic(expected = "has 2 examples, numbered 0 to 1: there is no example 2")]
    fn an_example_that_is_not_there_is_named() {
        let _ = &Dataset::from_texts(["a", "b"])[2];
    }

    #[test]
    fn names_are_changed_one_for_one() {
        let data = Dataset::from_labelled([("a", "0"), ("b", "1")]);
        let renamed = data.clone().rename_labels(["no", "yes"]).unwrap();
        assert_eq!(renamed.label_names, ["no", "yes"]);
        assert_eq!(
            data.rename_labels(["no"])
                .expect_err("one name for two")
                .code,
            "SC0915"
        );
    }
}
