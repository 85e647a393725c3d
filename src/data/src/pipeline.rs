//! Transformations of a data set before training: map, filter, remove duplicates, and split
//! so that each class is in both parts. Each returns a new data set; rows keep the number
//! that they had in their source.

use std::collections::{HashMap, HashSet};

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::dataset::{Dataset, SkippedRows, sorted_label_names};
use crate::example::{Example, Label};
use crate::tags::sorted_tags;
use crate::{problem, random};

/// What is compared to find duplicates: both texts of a pair, the text and its choices, or all features. Labels may differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Content<'a> {
    text: &'a str,
    pair: Option<&'a str>,
    choices: &'a [String],
    // The text of a long numeric example shows its first features only.
    bits: Vec<u32>,
}

impl<'a> Content<'a> {
    pub(crate) fn of(example: &'a Example) -> Self {
        Self {
            text: &example.text,
            pair: example.pair.as_deref(),
            choices: example.choices().unwrap_or_default(),
            bits: example.features.iter().map(|x| x.to_bits()).collect(),
        }
    }
}

/// What the examples of a data set are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    features: usize,
    is_paired: bool,
    label: &'static str,
}

impl Kind {
    /// By the first example.
    fn of(data: &Dataset) -> Self {
        let first = data.examples.first();
        let label = match first.map(|example| (example.words(), example.answers(), example.label)) {
            _ if first.is_some_and(|example| example.classes().is_some()) => "sets of labels",
            _ if first.is_some_and(|example| example.choices().is_some()) => "choices",
            Some((Some(_), ..)) => "tags",
            Some((_, Some(_), _)) => "answers",
            Some((.., Some(Label::Class(_)))) => "classes",
            Some((.., Some(Label::Value(_)))) => "numbers to predict",
            Some((.., None)) | None => "no labels",
        };
        Self {
            features: data.num_features(),
            is_paired: data.is_paired(),
            label,
        }
    }

    fn words(self) -> String {
        let what = match (self.features, self.is_paired) {
            (0, false) => "texts".to_owned(),
            (0, true) => "pairs of texts".to_owned(),
            (features, _) => format!("rows of {}", text::count(features, "number")),
        };
        format!("{what} with {}", self.label)
    }
}

impl Dataset {
    /// The examples for which `keep` is true.
    pub fn filter(&self, keep: impl Fn(&Example) -> bool) -> Self {
        self.with_examples(self.examples.iter().filter(|example| keep(example)))
    }

    /// Applies `change` to each example. Classes keep their names.
    pub fn map(&self, change: impl Fn(Example) -> Example) -> Self {
        let changed = self.examples.iter().cloned().map(change);
        let changed = Self {
            examples: changed.collect(),
            label_names: self.label_names.clone(),
            source: self.source.clone(),
            skipped: self.skipped.clone(),
            remarks: self.remarks.clone(),
            auto_shard: self.auto_shard,
        };
        changed.with_names_in_examples()
    }

    /// Removes duplicates: of examples with the same texts, or the same features, the first one stays.
    pub fn dedupe(&self) -> Self {
        let mut seen = HashSet::new();
        let examples = self.examples.iter();
        self.with_examples(examples.filter(|&example| seen.insert(Content::of(example))))
    }

    /// The examples that are not in `other`, such as a validation split without the training examples
    /// (SC0701).
    pub fn without(&self, other: &Dataset) -> Self {
        let theirs: HashSet<Content<'_>> = other.examples.iter().map(Content::of).collect();
        self.filter(|example| !theirs.contains(&Content::of(example)))
    }

    /// The examples of this data set, then those of `other`. A class that both have is one class. If one of them has all
    /// classes, they have its order, else they are sorted. The rows get new numbers.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let games = Dataset::from_rows(["a chess game", "a mail server"], ["games", "mail"])?;
    /// let fonts = Dataset::from_rows(["a sans serif font", "a puzzle"], ["fonts", "games"])?;
    /// let both = games.concatenate(&fonts)?;
    /// assert_eq!(both.label_names, ["fonts", "games", "mail"]);
    /// assert_eq!(both.class_counts(), [1, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0915 for a data set of another kind, such as pairs and single texts.
    pub fn concatenate(&self, other: &Dataset) -> Result<Self> {
        let source = if self.source == other.source || other.is_empty() {
            self.source.clone()
        } else if self.is_empty() {
            other.source.clone()
        } else {
            format!("{} and {}", self.source, other.source)
        };
        Self::of_parts(vec![self.clone(), other.clone()], source)
    }

    /// The examples of all parts, one after the other.
    pub(crate) fn of_parts(parts: Vec<Dataset>, source: String) -> Result<Self> {
        // A part without an example is of any kind.
        let kinds = parts.iter().filter(|part| !part.is_empty());
        let mut kinds = kinds.map(|part| (part, Kind::of(part)));
        if let Some((first, kind)) = kinds.next()
            && let Some((other, found)) = kinds.find(|(_, other)| *other != kind)
        {
            let place = problem::call("concatenate");
            let expects = format!("{}, as `{}` is", kind.words(), first.source);
            return Err(problem::bad_size(
                place,
                &other.source,
                found.words(),
                &expects,
            ));
        }
        let names = Self::names_of_all(&parts);
        let mut whole = Self {
            examples: Vec::new(),
            label_names: names.clone(),
            source,
            skipped: SkippedRows::default(),
            remarks: Vec::new(),
            auto_shard: parts
                .first()
                .map(|part| part.auto_shard)
                .unwrap_or_default(),
        };
        // Of one file, a line says where a row is.
        let mut sources = parts.iter().filter(|part| !part.is_empty());
        let first = sources.next().map(|part| part.source.clone());
        let has_lines = sources.all(|part| Some(&part.source) == first.as_ref());
        for part in parts {
            whole.skipped.extend(&part.skipped);
            for remark in &part.remarks {
                if !whole.remarks.contains(remark) {
                    whole.remarks.push(remark.clone());
                }
            }
            let part = match names.is_empty() {
                true => part,
                false => part.with_label_names(&names)?,
            };
            for example in part.examples {
                let row = whole.examples.len();
                let line = example.line.filter(|_| has_lines);
                whole.examples.push(Example {
                    row,
                    line,
                    ..example
                });
            }
        }
        Ok(whole)
    }

    /// The classes of all parts: in the order of the first part that has all of them, which may be one that a file has or
    /// that was asked for; else sorted.
    fn names_of_all(parts: &[Dataset]) -> Vec<String> {
        let names = parts.iter().flat_map(|part| &part.label_names);
        let names: HashSet<&str> = names.map(String::as_str).collect();
        let mut lists = parts.iter().map(|part| &part.label_names);
        let has_all = |list: &&Vec<String>| {
            list.len() == names.len() && list.iter().collect::<HashSet<_>>().len() == names.len()
        };
        if let Some(whole) = lists.find(has_all) {
            return whole.clone();
        }
        match parts.iter().any(Dataset::is_tagged) {
            true => sorted_tags(names.into_iter()),
            false => sorted_label_names(names.into_iter()),
        }
    }

    /// All examples `count` times, one pass after the other.
    ///
    /// # Errors
    /// SC0915 for 0.
    pub fn repeat(&self, count: usize) -> Result<Self> {
        if count == 0 {
            return Err(problem::bad_size(
                problem::call("repeat"),
                "count",
                count,
                "at least 1",
            ));
        }
        let examples = std::iter::repeat_n(&self.examples, count).flatten();
        Ok(self.with_examples(examples))
    }

    /// Every `count`-th example, beginning with example `index`: the parts 0 to `count` − 1 have each example once.
    ///
    /// # Errors
    /// SC0915 unless `index` is smaller than `count`.
    pub fn shard(&self, count: usize, index: usize) -> Result<Self> {
        if index >= count {
            let expects = match count {
                0 => "a number of parts of at least 1".to_owned(),
                count => format!("0 to {}, as there are {count} parts", count - 1),
            };
            return Err(problem::bad_size(
                problem::call("shard"),
                "index",
                index,
                &expects,
            ));
        }
        let examples = self.examples.iter().skip(index).step_by(count);
        Ok(self.with_examples(examples))
    }

    /// Splits at random, determined by the seed, so that both parts have each class in the same
    /// proportion. The second part has the `fraction`, rounded for each class, but never all examples of a class.
    /// Without classes it is a random split.
    ///
    /// ```
    /// use stratoscope_data::make_classification;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let (train, dev) = make_classification(80, 3, 4, 7)?.stratified_split(0.25, 0)?;
    /// assert_eq!(train.class_counts(), [15; 4]);
    /// assert_eq!(dev.class_counts(), [5; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0915 unless `fraction` lies between 0 and 1, both excluded; SC0914 if a part is empty.
    pub fn stratified_split(&self, fraction: f64, seed: u64) -> Result<(Self, Self)> {
        // This form of the condition also refuses NaN.
        if !(fraction > 0.0 && fraction < 1.0) {
            let place = problem::call("stratified_split");
            let expects = "between 0 and 1, both excluded";
            return Err(problem::bad_size(place, "fraction", fraction, expects));
        }
        let class = |example: &Example| match example.label {
            Some(Label::Class(class)) => Some(class),
            _ => None,
        };
        let order = random::permutation(self.len(), seed, 0);
        let mut left: HashMap<Option<usize>, usize> = HashMap::new();
        for example in &self.examples {
            *left.entry(class(example)).or_default() += 1;
        }
        for count in left.values_mut() {
            let share = (*count as f64 * fraction).round() as usize;
            *count = share.min(count.saturating_sub(1));
        }
        let mut in_second = vec![false; self.len()];
        for &index in &order {
            if let Some(count) = left.get_mut(&class(&self.examples[index]))
                && *count > 0
            {
                *count -= 1;
                in_second[index] = true;
            }
        }
        let part = |second: bool| {
            let chosen = order.iter().filter(|&&index| in_second[index] == second);
            self.with_examples(chosen.map(|&index| &self.examples[index]))
        };
        let parts = (part(false), part(true));
        match parts.0.is_empty() || parts.1.is_empty() {
            true => Err(problem::empty(&self.source, "stratified_split")),
            false => Ok(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(data: &Dataset) -> Vec<&str> {
        data.examples.iter().map(|e| e.text.as_str()).collect()
    }

    fn sorted() -> Dataset {
        let rows = (0..40).map(|row| (format!("text {row}"), ["a", "b"][row / 30]));
        Dataset::from_labelled(rows)
    }

    #[test]
    fn rows_keep_their_number_and_classes_their_names() {
        let data = Dataset::from_labelled([("x", "no"), ("", "yes"), ("z", "yes")]);
        let kept = data.filter(|example| !example.text.is_empty());
        assert_eq!(texts(&kept), ["x", "z"]);
        assert_eq!((kept.examples[1].row, kept.num_labels()), (2, 2));
        let shouted = data.map(|mut example| {
            example.text = example.text.to_uppercase();
            example
        });
        assert_eq!(texts(&shouted), ["X", "", "Z"]);
        assert_eq!(shouted.label_names, data.label_names);
    }

    #[test]
    fn what_is_there_twice_goes() {
        let pairs = [("a", "b"), ("b", "a"), ("a", "b"), ("a", "c")];
        let data = Dataset::from_pairs(pairs);
        let once = data.dedupe();
        let rows: Vec<usize> = once.examples.iter().map(|e| e.row).collect();
        assert_eq!(rows, [0, 1, 3], "both texts decide, the first one stays");
        let rest = data.without(&Dataset::from_pairs([("a", "b")]));
        assert_eq!(rest.len(), 2);
        assert!(data.without(&data).is_empty());
        let numbers = Dataset::from_features([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]).unwrap();
        assert_eq!(numbers.dedupe().len(), 2);
    }

    #[test]
    fn an_empty_part_is_of_any_kind() {
        let data = sorted();
        let rest = data.skip(10);
        for (first, second) in [(data.take(0), rest.clone()), (rest.clone(), data.take(0))] {
            let both = first.concatenate(&second).unwrap();
            assert_eq!(texts(&both), texts(&rest));
            assert_eq!(both.label_names, ["a", "b"]);
            assert_eq!(both.source, data.source);
        }
        let empty = Dataset::from_texts([""; 0]);
        assert_eq!(empty.concatenate(&data).unwrap().len(), data.len());
        assert!(empty.concatenate(&empty).unwrap().is_empty());
        let problem = data.concatenate(&Dataset::from_texts(["x"])).unwrap_err();
        let words =
            "is texts with no labels, but must be texts with classes, as `rows in memory` is";
        assert!(problem.message.contains(words), "{problem}");
    }

    #[test]
    fn each_class_is_divided_alike() {
        let (train, dev) = sorted().stratified_split(0.2, 7).unwrap();
        assert_eq!(train.class_counts(), [24, 8]);
        assert_eq!(dev.class_counts(), [6, 2]);
        assert!(train.overlap(&dev).is_empty());
        let again = sorted().stratified_split(0.2, 7).unwrap();
        assert!(again == (train, dev.clone()), "the seed fixes it");
        assert!(sorted().stratified_split(0.2, 8).unwrap().1 != dev);
        // The only example of a class goes to the training part.
        let rare = Dataset::from_labelled([("x", "a"), ("y", "a"), ("z", "b")]);
        let (train, dev) = rare.stratified_split(0.9, 0).unwrap();
        assert_eq!(
            (train.class_counts(), dev.class_counts()),
            (vec![1, 1], vec![1, 0])
        );
        let unlabelled = Dataset::from_texts(["p", "q", "r", "s"]);
        let (train, dev) = unlabelled.stratified_split(0.25, 0).unwrap();
        assert_eq!((train.len(), dev.len()), (3, 1));
    }

    #[test]
    fn a_division_that_leaves_nothing_is_refused() {
        let code = |fraction| {
            sorted()
                .stratified_split(fraction, 0)
                .expect_err("refused")
                .code
        };
        for fraction in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(code(fraction), "SC0915");
        }
        assert_eq!(code(0.001), "SC0914");
    }

    #[test]
    fn pairs_come_with_their_labels() {
        let data = Dataset::from_pair_rows([("a", "b"), ("c", "d")], ["y", "x"]).unwrap();
        assert_eq!(data.examples[1].pair.as_deref(), Some("d"));
        assert_eq!(data.examples[0].class(), Some(1));
        let error = Dataset::from_pair_rows([("a", "b")], ["x", "y"]).expect_err("two labels");
        assert_eq!(error.code, "SC0704");
    }
}
