//! What an example can be made of: a text, a pair of texts, a row of numbers. [`IntoInput`] is implemented for the types
//! that people have them in, so that a list of any of these is a data set.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use crate::example::Example;

/// An example without its label.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A text.
    Text(String),
    /// A text and a second one.
    Pair(String, String),
    /// A row of numbers.
    Row(Arc<[f32]>),
    /// A number by itself: a row of one number, unless what takes it knows better.
    Number(f32),
}

impl Input {
    /// Whether it is made of numbers.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Self::Row(_) | Self::Number(_))
    }

    /// The example.
    pub fn into_example(self) -> Example {
        match self {
            Self::Text(text) => Example::new(text),
            Self::Pair(text, pair) => Example::new(text).with_pair(pair),
            Self::Row(row) => Example::of_features(row),
            Self::Number(number) => Example::of_features(Arc::new([number])),
        }
    }
}

/// The elements of `x`: texts, pairs of texts, rows of numbers, or numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a text nor a row of numbers",
    label = "an example is a text such as `\"a game\"`, or numbers such as `[1.0, 2.0]`",
    note = "texts: `Dataset::from_rows([\"a game\", \"a font\"], [0, 1])?`",
    note = "rows of numbers: `Dataset::from_arrays([[1.0, 2.0], [3.0, 4.0]], [0, 1])?`"
)]
pub trait IntoInput {
    /// The example's input.
    fn into_input(self) -> Input;
}

/// A text in any of its types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no text",
    label = "expected a text, such as `\"a game\"`",
    note = "rows of numbers: `Dataset::from_features([[1.0, 2.0]])?`, or with labels \
            `Dataset::from_arrays([[1.0, 2.0]], [0])?`"
)]
pub trait IntoText {
    /// The text.
    fn into_text(self) -> String;
}

/// A number in any of its types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number",
    label = "expected numbers, such as `[1.0, 2.0]`"
)]
pub trait Number: Copy {
    /// The number as models have it.
    fn to_number(self) -> f32;
}

macro_rules! texts {
    ($($text:ty),*) => { $(
        impl IntoText for $text {
            fn into_text(self) -> String {
                self.into()
            }
        }

        impl IntoInput for $text {
            fn into_input(self) -> Input {
                Input::Text(self.into())
            }
        }
    )* };
}

texts!(&str, &mut str, String, Box<str>, Cow<'_, str>, char);

macro_rules! shared_texts {
    ($($text:ty),*) => { $(
        impl IntoText for $text {
            fn into_text(self) -> String {
                str::to_owned(&self)
            }
        }

        impl IntoInput for $text {
            fn into_input(self) -> Input {
                Input::Text(str::to_owned(&self))
            }
        }
    )* };
}

shared_texts!(Arc<str>, Rc<str>);

impl<T: IntoText + Clone> IntoText for &T {
    fn into_text(self) -> String {
        self.clone().into_text()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Number for $number {
            fn to_number(self) -> f32 {
                self as f32
            }
        }

        impl IntoInput for $number {
            fn into_input(self) -> Input {
                Input::Number(self as f32)
            }
        }
    )* };
}

numbers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

impl<T: Number> Number for &T {
    fn to_number(self) -> f32 {
        (*self).to_number()
    }
}

fn row<T: Number>(numbers: &[T]) -> Input {
    Input::Row(numbers.iter().map(|number| number.to_number()).collect())
}

impl<T: Number> IntoInput for &[T] {
    fn into_input(self) -> Input {
        row(self)
    }
}

macro_rules! rows {
    ($($row:ty),*) => { $(
        impl<T: Number> IntoInput for $row {
            fn into_input(self) -> Input {
                row(&self)
            }
        }
    )* };
}

rows!(Vec<T>, Box<[T]>, Arc<[T]>, Rc<[T]>);

impl<T: Number, const N: usize> IntoInput for [T; N] {
    fn into_input(self) -> Input {
        row(&self)
    }
}

impl<A: IntoText, B: IntoText> IntoInput for (A, B) {
    fn into_input(self) -> Input {
        Input::Pair(self.0.into_text(), self.1.into_text())
    }
}

impl<T: IntoInput + Clone> IntoInput for &T {
    fn into_input(self) -> Input {
        self.clone().into_input()
    }
}

impl IntoInput for Input {
    fn into_input(self) -> Input {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_pairs_and_numbers_are_taken_in_all_their_types() {
        let text = Input::Text("a".to_owned());
        let owned = String::from("a");
        let texts = [
            "a".into_input(),
            (&"a").into_input(),
            owned.clone().into_input(),
            (&owned).into_input(),
            'a'.into_input(),
            Cow::from("a").into_input(),
            Arc::<str>::from("a").into_input(),
            owned.into_boxed_str().into_input(),
        ];
        assert!(texts.iter().all(|it| *it == text));
        let row = Input::Row([1.0, 2.0].into());
        let rows = [
            [1, 2].into_input(),
            [1.0, 2.0].into_input(),
            (&[1_u8, 2]).into_input(),
            vec![1.0_f32, 2.0].into_input(),
            (&vec![1.0_f64, 2.0]).into_input(),
            [1.0_f64, 2.0][..].into_input(),
            vec![&1.0, &2.0].into_input(),
        ];
        assert!(rows.iter().all(|it| *it == row));
        assert_eq!(0.5.into_input(), Input::Number(0.5));
        let pair = Input::Pair("a".to_owned(), "b".to_owned());
        assert_eq!(("a", String::from("b")).into_input(), pair);
    }
}
