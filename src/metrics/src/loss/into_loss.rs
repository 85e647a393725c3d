//! What `compile!` takes as its loss.

use stratoscope_diagnostics::arguments::IdentifierKind;
use stratoscope_diagnostics::{Result, problem};

use super::Loss;

/// What `compile!` takes as its loss: a type, or a text that names one.
#[diagnostic::on_unimplemented(
    message = "expected a loss, got `{Self}`",
    label = "`SparseCategoricalCrossentropy {{ from_logits: true }}`, `BinaryCrossentropy {{ … }}`, `MeanSquaredError`, `Huber {{ delta: 1.0 }}`, or a text that names one"
)]
pub trait IntoLoss {
    /// The loss.
    ///
    /// # Errors
    /// SC0105 for a text that names none, SC0103 for a label smoothing that is no share and a `delta` that is
    /// no size.
    fn into_loss(self) -> Result<Loss>;
}

impl IntoLoss for Loss {
    fn into_loss(self) -> Result<Loss> {
        Ok(self)
    }
}

impl IntoLoss for &str {
    /// A cross-entropy or a divergence that is named by a text takes logits, unlike Keras's.
    fn into_loss(self) -> Result<Loss> {
        let text = IdentifierKind::Loss.canonical(self).unwrap_or(self);
        Loss::named(text).ok_or_else(|| problem::unknown_loss(self))
    }
}

impl IntoLoss for String {
    fn into_loss(self) -> Result<Loss> {
        self.as_str().into_loss()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CategoricalCrossentropy, Huber, MeanAbsoluteError, MeanSquaredError};

    #[test]
    fn texts_are_resolved_or_refused() {
        let loss = "mse".into_loss().expect("a loss");
        assert_eq!(loss, Loss::MeanSquaredError(MeanSquaredError));
        let loss = "MAE".into_loss().expect("a loss");
        assert_eq!(loss, Loss::MeanAbsoluteError(MeanAbsoluteError));
        let written = "huber".into_loss().expect("a loss").to_string();
        assert_eq!(written, "Huber { delta: 1.0 }");
        for delta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let finding = Huber { delta }.into_loss().expect_err("no size");
            assert_eq!(finding.code, "SC0103", "{finding}");
        }
        let finding = "sparse_categorical_crossentropi"
            .into_loss()
            .expect_err("a slip");
        assert_eq!(finding.code, "SC0105");
        assert!(
            finding
                .one_line()
                .contains("did you mean `sparse_categorical_crossentropy`?")
        );
        let smoothed = |share| {
            let loss = CategoricalCrossentropy { from_logits: true };
            let loss = loss.label_smoothing(share).into_loss();
            loss.map(|loss| loss.to_string())
                .map_err(|finding| finding.code)
        };
        let written = "CategoricalCrossentropy { from_logits: true }.label_smoothing(0.1)";
        assert_eq!(smoothed(0.1), Ok(written.to_owned()));
        assert_eq!(smoothed(1.0), Err("SC0103".to_owned()));
    }

    #[test]
    fn every_text_of_the_table_names_something() {
        use stratoscope_diagnostics::arguments::LOSSES;
        assert!(LOSSES.iter().all(|name| name.into_loss().is_ok()));
    }
}
