//! Data sets of what is in memory: texts, pairs or rows of numbers, with labels or without, as in Keras's `x` and `y`.

use stratoscope_diagnostics::rules::LabelOutOfRange;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use crate::dataset::{Dataset, index_of, sorted_label_names};
use crate::example::{Example, Label};
use crate::input::{Input, IntoInput, IntoText};
use crate::problem;
use crate::target::{IntoTarget, Target};

/// The largest number of classes: each class has a name and an output, so larger integers in `y` are a mistake.
const MAX_CLASSES: i64 = 1 << 20;

const NUMBERS: &str = "arrays in memory";
const TEXTS: &str = "rows in memory";

impl Dataset {
    /// A data set of unlabeled texts, for predictions.
    pub fn from_texts<T: IntoText>(texts: impl IntoIterator<Item = T>) -> Self {
        let examples = texts.into_iter().map(|text| Example::new(text.into_text()));
        Self::from_examples(examples, Vec::new(), "texts in memory")
    }

    /// A data set of unlabeled pairs of texts.
    pub fn from_pairs<A: IntoText, B: IntoText>(pairs: impl IntoIterator<Item = (A, B)>) -> Self {
        let examples = pairs
            .into_iter()
            .map(|(text, pair)| Example::new(text.into_text()).with_pair(pair.into_text()));
        Self::from_examples(examples, Vec::new(), "pairs in memory")
    }

    /// A data set of rows of numbers, or of texts, without labels, for predictions.
    ///
    /// # Errors
    /// SC0914 for no rows, SC0915 for rows of different lengths.
    pub fn from_features<X: IntoInput>(x: impl IntoIterator<Item = X>) -> Result<Self> {
        Self::of_inputs(x, "Dataset::from_features")
    }

    /// A data set of texts with their labels. Classes are names or integers and are numbered in sorted order; floats are
    /// numbers to predict. An empty name means that the example has no label.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// let names = Dataset::from_labelled([("a game", "games"), ("a font", "fonts")]);
    /// let integers = Dataset::from_labelled(&[("a game", 1), ("a font", 0)]);
    /// assert_eq!((names.num_labels(), integers.label_names), (2, vec!["0".to_owned(), "1".to_owned()]));
    /// ```
    pub fn from_labelled<R: LabelledText>(rows: impl IntoIterator<Item = R>) -> Self {
        let rows = rows.into_iter().map(LabelledText::into_labelled);
        let (examples, targets): (Vec<Example>, Vec<Target>) = rows
            .map(|(text, target)| (Example::new(text), target))
            .unzip();
        Self::from_examples(examples, Vec::new(), TEXTS).with_named_targets(targets)
    }

    /// A data set from a list of texts, or of pairs of texts, and a list of their labels, like Keras's `x` and `y`.
    /// Classes are names or integers and are numbered in sorted order; floats are numbers to predict. Rows of numbers are
    /// taken as by [`from_arrays`](Self::from_arrays).
    ///
    /// # Errors
    /// SC0704 unless there are as many labels as texts; SC0914 if there are none; SC0416 for a label that is
    /// empty.
    pub fn from_rows<T: IntoInput, L: IntoTarget>(
        texts: impl IntoIterator<Item = T>,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        Self::of_both(texts, labels, "Dataset::from_rows")
    }

    /// A data set of pairs of texts and their labels, like MRPC: what [`from_rows`](Self::from_rows) does with a list of pairs.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let pairs = [("a chess game", "a game of chess"), ("a mail server", "a platform game")];
    /// let data = Dataset::from_pair_rows(pairs, ["same", "other"])?;
    /// assert!(data.is_paired() && data.label_names == ["other", "same"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0704 unless there are as many labels as pairs; SC0914 if there are none.
    pub fn from_pair_rows<A: IntoText, B: IntoText, L: IntoTarget>(
        pairs: impl IntoIterator<Item = (A, B)>,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let mut data = Self::of_both(pairs, labels, "Dataset::from_pair_rows")?;
        data.source = "pairs in memory".to_owned();
        Ok(data)
    }

    /// A data set of rows of numbers and their labels, like Keras's `x` and `y`.
    /// Integers in `y` are classes, floats are numbers to predict, and texts are names of classes, which are numbered in
    /// sorted order. Texts in `x` are taken as by [`from_rows`](Self::from_rows).
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let prices = Dataset::from_arrays([[1.0, 2.0], [3.0, 4.0]], [0.5, 1.5])?;
    /// let kinds = Dataset::from_arrays(vec![[1.0, 2.0], [3.0, 4.0]], vec![0, 1])?;
    /// assert_eq!((prices.num_labels(), kinds.num_labels()), (0, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0704 unless `y` is as long as `x`, SC0914 for no rows, SC0915 for rows of different lengths
    /// or an integer that numbers no class, SC0301 for a class below 0, SC0416 for a label that is NaN.
    pub fn from_arrays<X: IntoInput, Y: IntoTarget>(
        x: impl IntoIterator<Item = X>,
        y: impl IntoIterator<Item = Y>,
    ) -> Result<Self> {
        Self::of_both(x, y, "Dataset::from_arrays")
    }

    /// Examples and their labels, which `call` was given.
    fn of_both<X: IntoInput, Y: IntoTarget>(
        x: impl IntoIterator<Item = X>,
        y: impl IntoIterator<Item = Y>,
        call: &str,
    ) -> Result<Self> {
        let data = Self::of_inputs(x, call)?;
        let targets: Vec<Target> = y.into_iter().map(IntoTarget::into_target).collect();
        if targets.len() != data.len() {
            return Err(problem::lengths_of_arrays(call, data.len(), targets.len()));
        }
        let missing: Vec<usize> = (0..targets.len())
            .filter(|&row| targets[row].is_missing())
            .collect();
        if !missing.is_empty() {
            let missing = (missing.as_slice(), missing.len());
            let rows = targets.len();
            return Err(problem::missing_labels(
                call,
                &data.source,
                None,
                missing,
                rows,
            ));
        }
        match data.num_features() {
            0 => Ok(data.with_named_targets(targets)),
            _ => data.with_targets(targets, call),
        }
    }

    /// Examples without labels, which `call` was given.
    ///
    /// # Errors
    /// As [`from_features`](Self::from_features), at that call.
    pub fn of_inputs<X: IntoInput>(x: impl IntoIterator<Item = X>, call: &str) -> Result<Self> {
        let mut inputs = x.into_iter().map(IntoInput::into_input).peekable();
        let source = match inputs.peek() {
            Some(first) if !first.is_numeric() => TEXTS,
            None if call != "Dataset::from_arrays" && call != "Dataset::from_features" => TEXTS,
            _ => NUMBERS,
        };
        let data = Self::from_examples(inputs.map(Input::into_example), Vec::new(), source);
        let Some(first) = data.examples.first() else {
            return Err(problem::empty(source, call));
        };
        if source == TEXTS {
            return Ok(data);
        }
        let width = first.features.len();
        let other = |example: &&Example| example.features.len() != width || width == 0;
        if let Some(odd) = data.examples.iter().find(other) {
            let name = format!("x[{}].len()", odd.row);
            let expects = match width {
                0 => "at least 1".to_owned(),
                _ => format!("{width}, the length of `x[0]`"),
            };
            let given = odd.features.len();
            let mut refused = problem::bad_size(problem::call(call), &name, given, &expects);
            refused.fixes.clear();
            return Err(Box::new(refused.fix("give all rows the same length")));
        }
        Ok(data)
    }

    /// Rows of numbers with their labels. Integers are the indices of the classes.
    fn with_targets(mut self, targets: Vec<Target>, call: &str) -> Result<Self> {
        if targets.iter().any(|it| matches!(it, Target::Name(_))) {
            return Ok(self.with_named_targets(targets));
        }
        let too_large = |target: &Target| target.class().is_some_and(|class| class >= MAX_CLASSES);
        if let Some(row) = targets.iter().position(too_large) {
            let given = targets[row].class().unwrap_or_default();
            let expects = format!("below {MAX_CLASSES} to be a class, or a float to be predicted");
            let name = format!("y[{row}]");
            return Err(problem::bad_size(
                problem::call(call),
                &name,
                given,
                &expects,
            ));
        }
        let classes = targets.iter().filter_map(Target::class);
        let classes = classes.max().map_or(0, |most| (most + 1).max(0));
        for (row, target) in targets.iter().enumerate() {
            let label = match *target {
                Target::Class(class) => match usize::try_from(class) {
                    Ok(class) => Some(Label::Class(class)),
                    Err(_) => return Err(below_zero(&targets, row, classes, call)),
                },
                Target::Value(value) => Some(Label::Value(value)),
                Target::Name(_) => None,
            };
            self.examples[row].label = label;
        }
        self.label_names = (0..classes).map(|class| class.to_string()).collect();
        Ok(self.with_names_in_examples())
    }

    /// Examples with their labels. Integers and texts are the names of the classes.
    fn with_named_targets(mut self, targets: Vec<Target>) -> Self {
        let name = |target: &Target| match target {
            _ if target.is_missing() => None,
            Target::Class(class) => Some(class.to_string()),
            Target::Name(name) => Some(name.clone()),
            Target::Value(_) => None,
        };
        let names: Vec<Option<String>> = targets.iter().map(name).collect();
        let label_names = sorted_label_names(names.iter().flatten().map(String::as_str));
        let class_of = index_of(&label_names);
        for ((example, name), target) in self.examples.iter_mut().zip(&names).zip(&targets) {
            example.label = match (name, target) {
                (Some(name), _) => class_of.get(name.as_str()).copied().map(Label::Class),
                (None, Target::Value(value)) if !value.is_nan() => Some(Label::Value(*value)),
                (None, _) => None,
            };
        }
        self.label_names = label_names;
        self.with_names_in_examples()
    }
}

/// A text and its label.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no text with its label",
    label = "expected pairs such as `(\"a game\", \"games\")` or `(\"a game\", 1)`",
    note = "rows of numbers and their labels: `Dataset::from_arrays([[1.0, 2.0]], [0])?`"
)]
pub trait LabelledText {
    /// The text and the label.
    fn into_labelled(self) -> (String, Target);
}

impl<T: IntoText, L: IntoTarget> LabelledText for (T, L) {
    fn into_labelled(self) -> (String, Target) {
        (self.0.into_text(), self.1.into_target())
    }
}

impl<R: LabelledText + Clone> LabelledText for &R {
    fn into_labelled(self) -> (String, Target) {
        self.clone().into_labelled()
    }
}

/// SC0301 for a class below 0.
fn below_zero(targets: &[Target], row: usize, classes: i64, call: &str) -> Box<Diagnostic> {
    let negative = |target: &&Target| target.class().is_some_and(|class| class < 0);
    let rule = LabelOutOfRange {
        label: targets[row].class().unwrap_or_default(),
        row,
        rows: targets.iter().filter(negative).count(),
        // The fix is not another size of the head: the negative label has to go.
        largest: -1,
        smallest: None,
        classes: usize::try_from(classes).unwrap_or_default(),
        head: None,
        source: NUMBERS.to_owned(),
        text: None,
        call: call.to_owned(),
    };
    rule.error()
}

#[cfg(test)]
#[expect(
    clippy::needless_borrows_for_generic_args,
    reason = "references are accepted, too"
)]
mod tests {
    use super::*;

    /// Names of the classes, and the label of the last example in words.
    fn shown(data: &Dataset) -> String {
        let label = data.examples.last().and_then(|example| example.label);
        format!("{} {label:?}", data.label_names.join("|"))
    }

    #[test]
    fn texts_take_every_kind_of_label() {
        let owned = ["a".to_owned(), "b".to_owned()];
        let borrowed: &[&str] = &["a", "b"];
        let cases = [
            (Dataset::from_rows(["a", "b"], [0, 1]), "0|1 Some(Class(1))"),
            (
                Dataset::from_rows(["a", "b"], [10, 9]),
                "9|10 Some(Class(0))",
            ),
            (
                Dataset::from_rows(["a", "b"], [-1, 1]),
                "-1|1 Some(Class(1))",
            ),
            (
                Dataset::from_rows(&owned, vec![1_u8, 0]),
                "0|1 Some(Class(0))",
            ),
            (
                Dataset::from_rows(owned.clone(), &[1, 0]),
                "0|1 Some(Class(0))",
            ),
            (
                Dataset::from_rows(borrowed, [true, false]),
                "0|1 Some(Class(0))",
            ),
            (
                Dataset::from_rows(vec!["a", "b"], ["y", "x"]),
                "x|y Some(Class(0))",
            ),
            (
                Dataset::from_rows(["a", "b"], [0.5, 2.5]),
                " Some(Value(2.5))",
            ),
            (Dataset::from_rows([("a", "b")], [1]), "1 Some(Class(0))"),
            (
                Dataset::from_pair_rows([("a", "b")], ["x"]),
                "x Some(Class(0))",
            ),
            (
                Dataset::from_arrays(["a", "b"], [0, 1]),
                "0|1 Some(Class(1))",
            ),
            (
                Dataset::from_rows([[1.0], [2.0]], [0, 2]),
                "0|1|2 Some(Class(2))",
            ),
            (
                Dataset::from_arrays([[1.0], [2.0]], ["b", "a"]),
                "a|b Some(Class(0))",
            ),
            (
                Dataset::from_arrays([1, 2, 3], [2, 4, 6]),
                "0|1|2|3|4|5|6 Some(Class(6))",
            ),
            (
                Dataset::from_arrays([1.0, 2.0], [2.0, 4.0]),
                " Some(Value(4.0))",
            ),
            (
                Dataset::from_arrays(vec![vec![1.0_f64]], [0.5_f32]),
                " Some(Value(0.5))",
            ),
        ];
        for (number, (data, expected)) in cases.into_iter().enumerate() {
            let data = data.unwrap_or_else(|problem| panic!("{number}: {problem:?}"));
            assert_eq!(shown(&data), expected, "case {number}");
        }
    }

    #[test]
    fn labels_stand_beside_their_texts() {
        let cases = [
            (
                Dataset::from_labelled([("a", 0), ("b", 1)]),
                "0|1 Some(Class(1))",
            ),
            (Dataset::from_labelled(&[("a", 3)]), "3 Some(Class(0))"),
            (
                Dataset::from_labelled(vec![("a".to_owned(), 'x')]),
                "x Some(Class(0))",
            ),
            (
                Dataset::from_labelled([("a", "x".to_owned()), ("b", " ".to_owned())]),
                "x None",
            ),
            (
                Dataset::from_labelled([("a", 0.5), ("b", f64::NAN)]),
                " None",
            ),
        ];
        for (number, (data, expected)) in cases.into_iter().enumerate() {
            assert_eq!(shown(&data), expected, "case {number}");
        }
    }

    #[test]
    fn labels_that_are_missing_or_too_few_are_refused() {
        let code = |data: Result<Dataset>| data.expect_err("it is refused").code;
        assert_eq!(code(Dataset::from_rows(["a", "b"], [0])), "SC0704");
        assert_eq!(code(Dataset::from_rows(["a", "b"], ["x", ""])), "SC0416");
        assert_eq!(code(Dataset::from_rows(["a"], [f32::NAN])), "SC0416");
        assert_eq!(code(Dataset::from_rows([""; 0], [0; 0])), "SC0914");
        assert_eq!(
            code(Dataset::from_pair_rows([("a", "b")], [0, 1])),
            "SC0704"
        );
    }
}
