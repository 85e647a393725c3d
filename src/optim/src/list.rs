//! The optimizers. A row is a variant of [`UpdateRule`] and its numbers, whose file has an implementation of `Rule` and one of
//! `OnTensors`; and the texts that name an optimizer with this rule, with Keras's default rate.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use super::rule::{OnTensors, Rule};
use super::step::{Moments, VariableUpdate};
use super::{
    Adafactor, AdafactorRule, Adam, AdamRule, AdamW, IntoOptimizer, Lamb, LambRule, Lion, LionRule,
    Optimizer, RMSprop, RmspropRule, SGD, SgdRule,
};

macro_rules! optimizers {
    ($($(#[$doc:meta])* $rule:ident($type:ty), $($text:literal => $named:expr),+;)*) => {
        /// How one element moves.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub enum UpdateRule {
            $($(#[$doc])* $rule($type),)*
        }

        impl UpdateRule {
            /// The rule itself.
            pub(crate) fn as_rule(&self) -> &dyn Rule {
                match self {
                    $(Self::$rule(rule) => rule,)*
                }
            }

            /// The rule itself, to be changed.
            pub(crate) fn as_rule_mut(&mut self) -> &mut dyn Rule {
                match self {
                    $(Self::$rule(rule) => rule,)*
                }
            }

            /// An update as tensor operations.
            pub(crate) fn on_tensors<const D: usize>(
                &self,
                weights: &mut Tensor<D>,
                gradient: Tensor<D>,
                moments: &mut Moments,
                update: &VariableUpdate,
            ) {
                match self {
                    $(Self::$rule(rule) => rule.on_tensors(weights, gradient, moments, update),)*
                }
            }
        }

        /// The optimizer that a text in lower case names.
        pub(crate) fn named(text: &str) -> Option<Result<Optimizer>> {
            match text {
                $($($text => Some($named.into_optimizer()),)+)*
                _ => None,
            }
        }
    };
}

optimizers! {
    /// Adam and AdamW.
    Adam(AdamRule), "adam" => Adam::new(1e-3), "adamw" => AdamW::new(1e-3);
    /// Stochastic gradient descent.
    Sgd(SgdRule), "sgd" => SGD::new(1e-2);
    /// RMSprop.
    Rmsprop(RmspropRule), "rmsprop" => RMSprop::new(1e-3);
    /// Lion.
    Lion(LionRule), "lion" => Lion::new(1e-4);
    /// LAMB.
    Lamb(LambRule), "lamb" => Lamb::new(1e-3);
    /// Adafactor.
    Adafactor(AdafactorRule), "adafactor" => Adafactor::new(1e-3);
}
