//! [`IntoTexts`]: what is a text, or texts, to `predict`.

use stratoscope_data::Dataset;

/// What `predict` takes.
#[diagnostic::on_unimplemented(
    message = "expected texts, got `{Self}`",
    label = "a text, a list of texts, or a data set: `[\"simple DNS server\", \"a platform game\"]`"
)]
pub trait IntoTexts {
    /// The texts as a data set; labels are not looked at.
    fn into_texts(self) -> Dataset;
}

impl IntoTexts for &Dataset {
    fn into_texts(self) -> Dataset {
        self.clone()
    }
}

impl IntoTexts for Dataset {
    fn into_texts(self) -> Dataset {
        self
    }
}

impl IntoTexts for &str {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts([self])
    }
}

impl IntoTexts for String {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts([self])
    }
}

impl<T: Into<String>, const N: usize> IntoTexts for [T; N] {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts(self)
    }
}

impl<T: Into<String>> IntoTexts for Vec<T> {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts(self)
    }
}

impl<T: Clone + Into<String>> IntoTexts for &[T] {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts(self.to_vec())
    }
}

impl<T: Clone + Into<String>> IntoTexts for &Vec<T> {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts(self.clone())
    }
}

impl<T: Clone + Into<String>, const N: usize> IntoTexts for &[T; N] {
    fn into_texts(self) -> Dataset {
        Dataset::from_texts(self.clone())
    }
}
