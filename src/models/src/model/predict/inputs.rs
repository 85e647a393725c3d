//! [`IntoExamples`]: what `predict` and `embed` answer: texts, rows of numbers, a data set.

use stratoscope_data::{Dataset, Example, Input, IntoInput, IntoText};
use stratoscope_diagnostics::Result;

/// What `predict` takes.
#[diagnostic::on_unimplemented(
    message = "a model cannot answer `{Self}`",
    label = "expected a text, a list of texts, rows of numbers, or a data set",
    note = "a list of texts: `model.predict([\"simple DNS server\", \"a platform game\"])?`",
    note = "rows of numbers: `model.predict([[1.0, 2.0, 3.0]])?`",
    note = "a data set: `model.predict(&data)?`"
)]
pub trait IntoExamples {
    /// The examples as a data set; labels are not looked at. `width`: how many numbers a row of the model has, where it
    /// takes numbers.
    ///
    /// # Errors
    /// SC0915 for rows of different lengths.
    fn into_examples(self, width: Option<usize>) -> Result<Dataset>;
}

/// The examples of a list. Numbers in a list are one row, unless a row of the model is one number.
fn listed(inputs: Vec<Input>, width: Option<usize>) -> Result<Dataset> {
    if inputs.is_empty() {
        return Ok(Dataset::from_examples([], Vec::new(), "an empty list"));
    }
    let numbers = inputs.iter().map(|input| match input {
        Input::Number(number) => Some(*number),
        _ => None,
    });
    let numbers: Option<Vec<f32>> = numbers.collect();
    match numbers {
        Some(row) if width != Some(1) => Dataset::of_inputs([row], "predict"),
        _ => Dataset::of_inputs(inputs, "predict"),
    }
}

fn each<T: IntoInput>(inputs: impl IntoIterator<Item = T>) -> Vec<Input> {
    inputs.into_iter().map(IntoInput::into_input).collect()
}

impl IntoExamples for Dataset {
    fn into_examples(self, _: Option<usize>) -> Result<Dataset> {
        Ok(self)
    }
}

impl IntoExamples for &Dataset {
    fn into_examples(self, _: Option<usize>) -> Result<Dataset> {
        Ok(self.clone())
    }
}

impl IntoExamples for Example {
    fn into_examples(self, _: Option<usize>) -> Result<Dataset> {
        Ok(Dataset::from_examples([self], Vec::new(), "an example"))
    }
}

impl IntoExamples for &Example {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        self.clone().into_examples(width)
    }
}

macro_rules! single {
    ($($one:ty),*) => { $(
        impl IntoExamples for $one {
            fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
                listed(each([self]), width)
            }
        }
    )* };
}

single!(&str, String, &String, f32, f64, i32, i64, u8, u32, usize);

impl<A: IntoText, B: IntoText> IntoExamples for (A, B) {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each([self]), width)
    }
}

impl<T: IntoInput, const N: usize> IntoExamples for [T; N] {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each(self), width)
    }
}

impl<T: IntoInput> IntoExamples for Vec<T> {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each(self), width)
    }
}

impl<T: IntoInput + Clone> IntoExamples for &[T] {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each(self), width)
    }
}

impl<T: IntoInput + Clone> IntoExamples for &Vec<T> {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each(self), width)
    }
}

impl<T: IntoInput + Clone, const N: usize> IntoExamples for &[T; N] {
    fn into_examples(self, width: Option<usize>) -> Result<Dataset> {
        listed(each(self), width)
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_borrows_for_generic_args,
    reason = "references are accepted, too"
)]
mod tests {
    use super::*;

    /// The examples as they are shown, and how many numbers each has.
    fn shown(given: impl IntoExamples, width: Option<usize>) -> String {
        let data = given.into_examples(width).expect("examples");
        let texts: Vec<String> = data.examples.iter().map(Example::texts).collect();
        format!("{}: {}", data.num_features(), texts.join("; "))
    }

    #[test]
    fn texts_and_numbers_are_taken_in_all_their_types() {
        let texts = vec!["a".to_owned(), "b".to_owned()];
        for (given, expected) in [
            (shown("a", None), "0: a"),
            (shown(&texts[0], None), "0: a"),
            (shown(["a", "b"], None), "0: a; b"),
            (shown(&["a", "b"], None), "0: a; b"),
            (shown(&texts, None), "0: a; b"),
            (shown(&texts[..], None), "0: a; b"),
            (shown(texts.iter().collect::<Vec<_>>(), None), "0: a; b"),
            (shown(("a", "b"), None), "0: a | b"),
            (shown([("a", "b")], None), "0: a | b"),
            (shown(&Dataset::from_texts(["a"])[0], None), "0: a"),
            (shown([[1.0, 2.0]], Some(2)), "2: 1, 2"),
            (shown([[1, 2], [3, 4]], None), "2: 1, 2; 3, 4"),
            (shown(vec![vec![0.5_f64, 2.0]], Some(2)), "2: 0.5, 2"),
            (shown(&vec![vec![0.5_f32, 2.0]], Some(2)), "2: 0.5, 2"),
            (shown(&[vec![1_u8, 2]][..], Some(2)), "2: 1, 2"),
            // One row without its list.
            (shown([1.0, 2.0], Some(2)), "2: 1, 2"),
            (shown(vec![1.0_f32, 2.0], None), "2: 1, 2"),
            // A model of one number: each is a row.
            (shown([1.0, 2.0], Some(1)), "1: 1; 2"),
            (shown(10.0, Some(1)), "1: 10"),
        ] {
            assert_eq!(given, expected);
        }
        let nothing: [&str; 0] = [];
        assert!(nothing.into_examples(None).expect("no example").is_empty());
        let ragged = vec![vec![1.0, 2.0], vec![3.0]].into_examples(Some(2));
        assert_eq!(ragged.expect_err("it is refused").code, "SC0915");
    }
}
