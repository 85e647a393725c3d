//! What the loss of each example is multiplied with: Keras's `sample_weight`, as a part of the data.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::dataset::Dataset;
use crate::example::Example;
use crate::problem;

/// What a weight is.
const EXPECTS: &str = "finite numbers of 0 or more, one of them above 0";

impl Dataset {
    /// Gives each example a weight, with which its loss is multiplied in training and in evaluation. Metrics count all
    /// examples alike.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_labelled([("seen twice", "a"), ("a guess", "b")]).with_weights([2.0, 0.25])?;
    /// assert_eq!(data[1].weight, 0.25);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0704 unless there are as many weights as examples; SC0915 for a weight that is negative or not finite, and if all
    /// are 0.
    pub fn with_weights<W: Into<f64>>(
        mut self,
        weights: impl IntoIterator<Item = W>,
    ) -> Result<Self> {
        // As they are kept: a number may be too large for that, or so small that it is 0.
        let weights = weights.into_iter().map(|weight| weight.into() as f32);
        let weights: Vec<f32> = weights.collect();
        if weights.len() != self.len() {
            return Err(problem::lengths_of_weights(self.len(), weights.len()));
        }
        let wrong = weights.iter().find(|weight| !is_weight(**weight));
        if wrong.is_some() || weights.iter().all(|&weight| weight == 0.0) {
            let place = problem::call("Dataset::with_weights");
            let given = wrong.map_or_else(|| "0 for all".to_owned(), f32::to_string);
            return Err(problem::bad_size(place, "weights", given, EXPECTS));
        }
        for (example, weight) in self.examples.iter_mut().zip(weights) {
            example.weight = weight;
        }
        Ok(self)
    }

    /// `weighted from 0.25 to 2`; nothing where all examples count alike.
    pub(crate) fn weights_in_words(&self) -> Option<String> {
        range(self.examples.iter().map(|example| example.weight)).map(in_words)
    }
}

/// Whether a number is one that a loss can be multiplied with: finite, and 0 or more.
pub fn is_weight(number: f32) -> bool {
    number.is_finite() && number >= 0.0
}

/// The lowest and the highest weight; nothing where all are 1.
fn range(weights: impl Iterator<Item = f32>) -> Option<(f32, f32)> {
    let range = weights.fold(None, |range, weight| Some(widened(range, weight)));
    range.filter(|&range| range != (1.0, 1.0))
}

/// The lowest and the highest of some numbers and one more.
pub(crate) fn widened(range: Option<(f32, f32)>, number: f32) -> (f32, f32) {
    let (low, high) = range.unwrap_or((number, number));
    (low.min(number), high.max(number))
}

/// `weighted from 0.25 to 2`.
pub(crate) fn in_words((low, high): (f32, f32)) -> String {
    format!("weighted from {low} to {high}")
}

/// The weight of a row, 1 without a column of weights; or what is wrong with it.
pub(crate) fn written(
    header: &[String],
    fields: &[String],
    column: Option<usize>,
) -> std::result::Result<f32, String> {
    let Some(column) = column else {
        return Ok(1.0);
    };
    let given = fields.get(column).map_or("", String::as_str);
    match given.trim().parse::<f32>() {
        Ok(weight) if is_weight(weight) => Ok(weight),
        _ => {
            let name = header.get(column).map_or("", String::as_str);
            let given = text::excerpt(given, 40);
            Err(format!(
                "`{given}` in column `{name}` is no weight: a finite number of 0 or more"
            ))
        }
    }
}

impl Example {
    /// Sets what its loss is multiplied with: a finite number of 0 or more.
    #[must_use]
    pub fn with_weight(self, weight: f32) -> Self {
        Self { weight, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Dataset {
        Dataset::from_labelled([("a", "x"), ("b", "y"), ("c", "x")])
    }

    #[test]
    fn every_example_needs_a_weight_that_is_one() {
        let weighted = data().with_weights([0.5, 0.0, 3.0]).expect("weights");
        let weights: Vec<f32> = weighted.examples.iter().map(|it| it.weight).collect();
        assert_eq!(weights, [0.5, 0.0, 3.0]);
        assert!(
            weighted.to_plain().contains("weighted from 0 to 3"),
            "{weighted}"
        );
        assert_eq!(data().weights_in_words(), None);
        assert!(
            data().with_weights([1, 2, 3]).is_ok() && data().with_weights([1.0_f32; 3]).is_ok()
        );
        assert!(weighted.take(1).to_plain().contains("from 0.5 to 0.5"));
        let code = |weights: &[f64]| {
            let problem = data().with_weights(weights.to_vec());
            problem.expect_err("they are refused").code
        };
        assert_eq!(code(&[1.0, 2.0]), "SC0704");
        assert_eq!(code(&[1.0, -2.0, 1.0]), "SC0915");
        assert_eq!(code(&[1.0, f64::NAN, 1.0]), "SC0915");
        assert_eq!(code(&[0.0; 3]), "SC0915");
        assert_eq!(code(&[1e39, 1.0, 1.0]), "SC0915");
        assert_eq!(code(&[1e-60; 3]), "SC0915");
    }

    #[test]
    fn an_example_may_bring_its_weight() {
        let guess = Example::new("a guess").with_weight(0.25);
        assert_eq!((guess.text.as_str(), guess.weight), ("a guess", 0.25));
        let data = Dataset::from_examples([guess, Example::new("b")], Vec::new(), "here");
        let words = data.weights_in_words();
        assert_eq!(words.as_deref(), Some("weighted from 0.25 to 1"));
    }
}
