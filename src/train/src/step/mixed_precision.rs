//! Mixed precision, with Keras's names: `set_global_policy("mixed_float16")` before a model is built makes
//! its layers put out float16 numbers; weights and what the optimizer keeps stay float32. float16 loses small
//! gradients, so `fit!` multiplies the loss with a number and divides the gradients by it again (Keras's
//! `LossScaleOptimizer`); an optimizer step whose gradients became infinite is skipped.
//!
//! The 16-bit numbers are emulated, on every device: what a layer puts out is rounded (see
//! `stratoscope_bert::ops::Precision`). It shows what such a run learns and loses, not how fast it would be.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_bert::ops::Precision;
use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::{Place, Result, Rule};

use crate::network::Network;

/// What a model's layers compute in; its weights are float32 under each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `float32`, the default.
    #[default]
    Float32,
    /// `mixed_float16`, with a scaled loss.
    MixedFloat16,
    /// `mixed_bfloat16`: the range of float32, so that the loss need not be scaled.
    MixedBfloat16,
}

impl Policy {
    const ALL: [Self; 3] = [Self::Float32, Self::MixedFloat16, Self::MixedBfloat16];

    /// Keras's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::MixedFloat16 => "mixed_float16",
            Self::MixedBfloat16 => "mixed_bfloat16",
        }
    }

    /// That of a model that is made now.
    pub(crate) fn of<N: Network>() -> Self {
        match N::follows_policy() {
            true => global_policy(),
            false => Self::Float32,
        }
    }

    /// What the layers' outputs are rounded to.
    pub(crate) fn precision(self) -> Precision {
        match self {
            Self::Float32 => Precision::Float32,
            Self::MixedFloat16 => Precision::Float16,
            Self::MixedBfloat16 => Precision::Bfloat16,
        }
    }

    /// What is to be said beside `compile!`'s other settings.
    pub(crate) fn receipt<N: Network>(self) -> Option<String> {
        let global = global_policy();
        let scaled = match self {
            Self::Float32 if global == self => return None,
            Self::Float32 if N::follows_policy() => {
                return Some(format!(
                    "float32: it was built before the policy was `{global}`"
                ));
            }
            Self::Float32 => {
                return Some(format!(
                    "float32: a network of one's own does not follow `{global}`"
                ));
            }
            Self::MixedFloat16 => format!("; the loss is scaled, by {INITIAL_SCALE} at first"),
            Self::MixedBfloat16 => String::new(),
        };
        let half = self.name().trim_start_matches("mixed_");
        Some(format!(
            "{self}, emulated: what layers put out is rounded to {half}, weights and moments are float32{scaled}"
        ))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The place of the policy in force in [`Policy::ALL`].
static GLOBAL: AtomicU8 = AtomicU8::new(0);

/// The policy of models that are built from now on: `"float32"`, `"mixed_float16"` or `"mixed_bfloat16"`.
/// A model keeps the one it was built under. Returns the policy.
///
/// # Errors
/// SC0103 for any other name.
pub fn set_global_policy(policy: &str) -> Result<Policy> {
    let found = Policy::ALL.iter().position(|known| known.name() == policy);
    let Some(index) = found else {
        return Err(unknown(policy));
    };
    GLOBAL.store(index as u8, Ordering::Relaxed);
    Ok(global_policy())
}

/// The policy of models that are built now.
pub fn global_policy() -> Policy {
    let index = usize::from(GLOBAL.load(Ordering::Relaxed));
    Policy::ALL.get(index).copied().unwrap_or_default()
}

fn unknown(policy: &str) -> Box<stratoscope_diagnostics::Diagnostic> {
    const CALL: &str = "set_global_policy";
    let mixed = match policy.to_ascii_lowercase().as_str() {
        "float16" | "fp16" | "half" | "f16" | "mixed_fp16" | "mixed" => Some(Policy::MixedFloat16),
        "bfloat16" | "bf16" | "mixed_bf16" => Some(Policy::MixedBfloat16),
        "fp32" | "f32" | "float" => Some(Policy::Float32),
        _ => None,
    };
    let rule = InvalidArgumentValue {
        call: CALL.to_owned(),
        argument: "policy".to_owned(),
        given: format!("{policy:?}"),
        expects: "`\"float32\"`, `\"mixed_float16\"` or `\"mixed_bfloat16\"`".to_owned(),
        place: Place::call(CALL),
        replacement: None,
        arguments: Vec::new(),
    };
    let mut told = rule.diagnostic();
    if let Some(mixed) = mixed {
        told = told.suggest(format!("set_global_policy(\"{mixed}\")?"));
    }
    if matches!(policy, "float16" | "bfloat16") {
        told = told.why(
            "with weights of 16 bits most updates would be rounded away: a weight of 1 and a step of 5e-5 is 1 \
             again. The mixed policies keep weights in float32",
        );
    }
    Box::new(told)
}

/// Keras's initial scale of the loss, 2¹⁵.
const INITIAL_SCALE: f64 = 32_768.0;
/// After so many steps in a row with finite gradients it is doubled.
const GROWTH_STEPS: u64 = 2000;
/// Below this a gradient is not infinite because of the scale.
const LEAST_SCALE: f64 = 1.0;

/// What the loss is multiplied with, so that its gradients are numbers that float16 has: as Keras's
/// `LossScaleOptimizer` with its defaults. Always a power of two, so that nothing is rounded by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossScale {
    scale: f64,
    /// Steps with finite gradients since it changed.
    finite: u64,
}

impl LossScale {
    /// Of a model under this policy.
    pub(crate) fn of(policy: Policy) -> Self {
        let scale = match policy {
            Policy::MixedFloat16 => INITIAL_SCALE,
            Policy::Float32 | Policy::MixedBfloat16 => LEAST_SCALE,
        };
        Self { scale, finite: 0 }
    }

    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// The scale, where the policy has one.
    pub(crate) fn told(&self, policy: Policy) -> Option<f64> {
        (policy == Policy::MixedFloat16).then_some(self.scale)
    }

    /// Whether a step with gradients that are not finite is to be skipped: under a scale they may be finite
    /// with a smaller one.
    pub(crate) fn skips(&self) -> bool {
        self.scale > LEAST_SCALE
    }

    /// A step was made. The scale is doubled after many, where there is one.
    pub(crate) fn stepped(&mut self, policy: Policy) {
        self.finite += 1;
        if policy == Policy::MixedFloat16 && self.finite == GROWTH_STEPS {
            *self = Self {
                scale: self.scale * 2.0,
                finite: 0,
            };
        }
    }

    /// A step was skipped.
    pub(crate) fn skipped(&mut self) {
        *self = Self {
            scale: (self.scale / 2.0).max(LEAST_SCALE),
            finite: 0,
        };
    }
}

/// The gradients of the loss itself, from those of the scaled loss.
pub(crate) fn unscaled<M: Module>(
    module: &M,
    gradients: GradientsParams,
    scale: f64,
) -> GradientsParams {
    struct Divide {
        gradients: GradientsParams,
        by: f32,
        divided: GradientsParams,
    }
    impl ModuleVisitor for Divide {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.remove::<D>(param.id) {
                self.divided
                    .register::<D>(param.id, gradient.div_scalar(self.by));
            }
        }
    }
    if scale == 1.0 {
        return gradients;
    }
    let mut divide = Divide {
        gradients,
        by: scale as f32,
        divided: GradientsParams::new(),
    };
    module.visit(&mut divide);
    divide.divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_keras() {
        let mut scale = LossScale::of(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 32_768.0);
        for _ in 0..1999 {
            scale.stepped(Policy::MixedFloat16);
        }
        assert_eq!(scale.scale(), 32_768.0);
        scale.stepped(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 65_536.0);
        // A skipped step halves it, and the steps are counted anew.
        for _ in 0..1999 {
            scale.stepped(Policy::MixedFloat16);
        }
        scale.skipped();
        assert_eq!(scale.scale(), 32_768.0);
        scale.stepped(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 32_768.0);
        for _ in 0..20 {
            scale.skipped();
        }
        assert_eq!((scale.scale(), scale.skips()), (1.0, false));
        let mut none = LossScale::of(Policy::MixedBfloat16);
        for _ in 0..2000 {
            none.stepped(Policy::MixedBfloat16);
        }
        assert_eq!((none.scale(), none.skips()), (1.0, false));
    }

    #[test]
    fn a_policy_that_does_not_exist_is_told_which_do() {
        let told = set_global_policy("float16").expect_err("not mixed");
        assert_eq!(told.code, "SC0103");
        let text = format!("{told:?}");
        assert!(
            text.contains("mixed_float16") && text.contains("rounded away"),
            "{text}"
        );
        assert_eq!(
            set_global_policy("int8").map_err(|told| told.code),
            Err("SC0103".into())
        );
        assert_eq!(global_policy(), Policy::Float32, "nothing was set");
    }
}
