//! What a layer does to each of its outputs.

use burn::tensor::Tensor;
use burn::tensor::activation;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::UnknownIdentifier;
use stratoscope_diagnostics::{Place, Result, Rule};

/// A function of the outputs of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activation {
    /// None: `x`.
    #[default]
    Linear,
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// `eˣ` over its sum over the outputs.
    Softmax,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 5] = [
        Self::Linear,
        Self::Relu,
        Self::Sigmoid,
        Self::Softmax,
        Self::Tanh,
    ];

    /// Its name in Keras: `relu`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Softmax => "softmax",
            Self::Tanh => "tanh",
        }
    }

    /// Whether what comes out are probabilities.
    pub fn makes_probabilities(self) -> bool {
        matches!(self, Self::Sigmoid | Self::Softmax)
    }

    pub(crate) fn forward(self, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Linear => x,
            Self::Relu => operation!("relu", [x], activation::relu(x)),
            Self::Sigmoid => operation!("sigmoid", [x], activation::sigmoid(x)),
            Self::Softmax => operation!("softmax", [x], activation::softmax(x, 2)),
            Self::Tanh => operation!("tanh", [x], activation::tanh(x)),
        }
    }
}

/// What `activation(…)` takes.
#[diagnostic::on_unimplemented(
    message = "expected an activation, got `{Self}`",
    label = "a text such as \"relu\", or `Activation::Relu`"
)]
pub trait IntoActivation {
    /// The activation.
    ///
    /// # Errors
    /// SC0105 for a text that names none.
    fn into_activation(self) -> Result<Activation>;
}

impl IntoActivation for Activation {
    fn into_activation(self) -> Result<Activation> {
        Ok(self)
    }
}

impl IntoActivation for &str {
    fn into_activation(self) -> Result<Activation> {
        let mut known = Activation::ALL.into_iter();
        known.find(|it| it.name() == self).ok_or_else(|| {
            let names = Activation::ALL.map(Activation::name);
            let rule = UnknownIdentifier {
                kind: "activation".to_owned(),
                given: self.to_owned(),
                place: Place::call("activation"),
                similar: similar(self, names),
                known: names.map(str::to_owned).to_vec(),
                hint: None,
                arguments: Vec::new(),
            };
            rule.error()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_keras_own() {
        for activation in Activation::ALL {
            assert_eq!(activation.name().into_activation(), Ok(activation));
        }
        let finding = "rellu".into_activation().expect_err("a slip");
        assert_eq!(finding.code, "SC0105");
        assert!(
            finding.one_line().contains("did you mean `relu`?"),
            "{finding}"
        );
    }
}
