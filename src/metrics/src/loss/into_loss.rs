//! What `compile!` takes as its loss.

use stratoscope_diagnostics::arguments::IdentifierKind;
use stratoscope_diagnostics::{Result, problem};

use super::{
    BinaryCrossentropy, CategoricalCrossentropy, Hinge, Huber, KlDivergence, LabelSmoothing,
    LogCosh, Loss, MeanAbsoluteError, MeanSquaredError, SparseCategoricalCrossentropy,
    SquaredHinge,
};

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

macro_rules! into_loss {
    ($($loss:ident),*) => {$(
        impl IntoLoss for $loss {
            fn into_loss(self) -> Result<Loss> {
                Ok(Loss::$loss(self))
            }
        }
    )*};
}

into_loss!(
    SparseCategoricalCrossentropy,
    KlDivergence,
    MeanSquaredError,
    MeanAbsoluteError,
    LogCosh,
    Hinge,
    SquaredHinge
);

impl IntoLoss for Huber {
    fn into_loss(self) -> Result<Loss> {
        if self.is_valid() {
            return Ok(Loss::Huber(self));
        }
        let given = format!("Huber {{ delta: {:?} }}", self.delta);
        let expects = "a finite `delta` above 0";
        Err(Box::new(problem::bad_value(
            "compile", "loss", given, expects,
        )))
    }
}

impl IntoLoss for CategoricalCrossentropy {
    fn into_loss(self) -> Result<Loss> {
        LabelSmoothing::from(self).into_loss()
    }
}

impl IntoLoss for BinaryCrossentropy {
    fn into_loss(self) -> Result<Loss> {
        LabelSmoothing::from(self).into_loss()
    }
}

impl IntoLoss for LabelSmoothing<CategoricalCrossentropy> {
    fn into_loss(self) -> Result<Loss> {
        smoothed(self, Loss::CategoricalCrossentropy)
    }
}

impl IntoLoss for LabelSmoothing<BinaryCrossentropy> {
    fn into_loss(self) -> Result<Loss> {
        smoothed(self, Loss::BinaryCrossentropy)
    }
}

fn smoothed<L>(loss: LabelSmoothing<L>, build: impl Fn(LabelSmoothing<L>) -> Loss) -> Result<Loss> {
    if loss.is_valid() {
        return Ok(build(loss));
    }
    let (given, expects) = (loss.share, "a share from 0, below 1");
    let given = format!("….label_smoothing({given})");
    Err(Box::new(problem::bad_value(
        "compile", "loss", given, expects,
    )))
}

impl IntoLoss for &str {
    /// A cross-entropy or a divergence that is named by a text takes logits, unlike Keras's.
    fn into_loss(self) -> Result<Loss> {
        match IdentifierKind::Loss.canonical(self).unwrap_or(self) {
            "sparse_categorical_crossentropy" => {
                SparseCategoricalCrossentropy { from_logits: true }.into_loss()
            }
            "categorical_crossentropy" => CategoricalCrossentropy { from_logits: true }.into_loss(),
            "binary_crossentropy" => BinaryCrossentropy { from_logits: true }.into_loss(),
            "kl_divergence" => KlDivergence { from_logits: true }.into_loss(),
            "mean_squared_error" => MeanSquaredError.into_loss(),
            "mean_absolute_error" => MeanAbsoluteError.into_loss(),
            "huber" => Huber::default().into_loss(),
            "log_cosh" => LogCosh.into_loss(),
            "hinge" => Hinge.into_loss(),
            "squared_hinge" => SquaredHinge.into_loss(),
            _ => Err(problem::unknown_loss(self)),
        }
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
