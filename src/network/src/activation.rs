//! What a layer does to each of its outputs.

use burn::tensor::Tensor;
use burn::tensor::activation;
use serde::{Deserialize, Serialize};
use stratoscope_bert::{operation, ops};
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
    /// `x · Φ(x)` with the normal distribution's Φ, exactly (Hendrycks and Gimpel 2016), as Keras's default.
    Gelu,
    /// `x · sigmoid(x)`, also called swish (Ramachandran et al. 2017).
    Silu,
    /// `x` above 0, `eˣ - 1` below (Clevert et al. 2015).
    Elu,
    /// `x` above 0, `0.2 · x` below, with the slope that Keras has for this name.
    LeakyRelu,
    /// `ln(1 + eˣ)`.
    Softplus,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 10] = [
        Self::Linear,
        Self::Relu,
        Self::Sigmoid,
        Self::Softmax,
        Self::Tanh,
        Self::Gelu,
        Self::Silu,
        Self::Elu,
        Self::LeakyRelu,
        Self::Softplus,
    ];

    /// The slope of [`Activation::LeakyRelu`] below 0.
    pub const LEAKY_SLOPE: f64 = 0.2;

    /// Its name in Keras: `relu`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Softmax => "softmax",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::Elu => "elu",
            Self::LeakyRelu => "leaky_relu",
            Self::Softplus => "softplus",
        }
    }

    /// Whether what comes out are probabilities.
    pub fn makes_probabilities(self) -> bool {
        matches!(self, Self::Sigmoid | Self::Softmax)
    }

    /// The activation of each number. Shape: kept.
    pub fn forward(self, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Linear => x,
            Self::Relu => operation!("relu", [x], activation::relu(x)),
            Self::Sigmoid => operation!("sigmoid", [x], activation::sigmoid(x)),
            Self::Softmax => operation!("softmax", [x], activation::softmax(x, 2)),
            Self::Tanh => operation!("tanh", [x], activation::tanh(x)),
            Self::Gelu => operation!("GELU", [x], ops::gelu(x)),
            Self::Silu => operation!("silu", [x], activation::silu(x)),
            Self::Elu => operation!("elu", [x], activation::elu(x, 1.0)),
            Self::LeakyRelu => operation!(
                "leaky relu",
                [x],
                activation::leaky_relu(x, Self::LEAKY_SLOPE)
            ),
            Self::Softplus => operation!("softplus", [x], activation::softplus(x, 1.0)),
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
        // Keras has two names for it.
        let name = if self == "swish" { "silu" } else { self };
        let mut known = Activation::ALL.into_iter();
        known.find(|it| it.name() == name).ok_or_else(|| {
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
    fn values_are_those_of_the_formulas() {
        // By Python's `math`: for gelu `x * (1 + erf(x / 2 ** 0.5)) / 2`, for silu `x / (1 + exp(-x))`.
        let expected = [
            (Activation::Gelu, [-0.045_500_3, -0.154_268_8, 1.399_789_2]),
            (Activation::Silu, [-0.238_405_8, -0.188_770_3, 1.226_361_4]),
            (Activation::Elu, [-0.864_664_7, -0.393_469_3, 1.5]),
            (Activation::LeakyRelu, [-0.4, -0.1, 1.5]),
            (Activation::Softplus, [0.126_928, 0.474_077, 1.701_413_3]),
        ];
        for (activation, expected) in expected {
            let x = Tensor::<1>::from_floats([-2.0, -0.5, 1.5], &burn::tensor::Device::flex());
            let found = activation.forward(x.reshape([1, 1, 3])).into_data();
            for (found, expected) in found.iter::<f32>().zip(expected) {
                let off: f32 = found - expected;
                assert!(off.abs() < 1e-6, "{activation:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn names_are_keras_own() {
        for activation in Activation::ALL {
            assert_eq!(activation.name().into_activation(), Ok(activation));
        }
        assert_eq!("swish".into_activation(), Ok(Activation::Silu));
        let finding = "rellu".into_activation().expect_err("a slip");
        assert_eq!(finding.code, "SC0105");
        assert!(
            finding.one_line().contains("did you mean `relu`?"),
            "{finding}"
        );
    }
}
