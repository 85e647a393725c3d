//! Mixed precision, with Keras's names: `set_global_policy("mixed_float16")` before a model is built makes
//! its layers put out float16 numbers; weights and what the optimizer keeps stay float32. float16 loses small
//! gradients, so `fit!` multiplies the loss with a number and divides the gradients by it again (Keras's
//! `LossScaleOptimizer`); an optimizer step whose gradients became infinite is skipped.
//!
//! The 16-bit numbers are emulated, on every device: what a layer puts out is rounded (see
//! `stratoscope_bert::ops::Precision`). It shows what such a run learns and loses, not how fast it would be.

use std::fmt;

use stratoscope_bert::ops::Precision;
use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::{Place, Result, Rule};

use super::RunContext;
use crate::network::Network;

/// Keras's initial scale of the loss under `mixed_float16`, 2¹⁵.
pub(crate) const INITIAL_LOSS_SCALE: f64 = 32_768.0;

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
            Self::MixedFloat16 => format!("; the loss is scaled, by {INITIAL_LOSS_SCALE} at first"),
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

/// Sets the policy of models that are built from now on: `"float32"`, `"mixed_float16"` or `"mixed_bfloat16"`.
/// A model keeps the one it was built under. Returns the policy.
///
/// # Errors
/// SC0103 for any other name.
pub fn set_global_policy(policy: &str) -> Result<Policy> {
    let known = Policy::ALL.into_iter().find(|known| known.name() == policy);
    let policy = known.ok_or_else(|| unknown(policy))?;
    RunContext::current().set_precision(policy);
    Ok(policy)
}

/// The policy of models that are built now.
pub fn global_policy() -> Policy {
    RunContext::current().precision()
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
    let mut finding = rule.diagnostic();
    if let Some(mixed) = mixed {
        finding = finding.suggest(format!("set_global_policy(\"{mixed}\")?"));
    }
    if matches!(policy, "float16" | "bfloat16") {
        finding = finding.why(
            "with weights of 16 bits most updates would be rounded away: a weight of 1 and a step of 5e-5 is 1 \
             again. The mixed policies keep weights in float32",
        );
    }
    Box::new(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_policy_lists_the_known_ones() {
        let finding = set_global_policy("float16").expect_err("not mixed");
        assert_eq!(finding.code, "SC0103");
        let text = format!("{finding:?}");
        assert!(
            text.contains("mixed_float16") && text.contains("rounded away"),
            "{text}"
        );
        assert_eq!(
            set_global_policy("int8").map_err(|finding| finding.code),
            Err("SC0103".into())
        );
        assert_eq!(global_policy(), Policy::Float32, "nothing was set");
    }
}
