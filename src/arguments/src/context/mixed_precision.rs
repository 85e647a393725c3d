//! Mixed precision, with Keras's names: `set_global_policy("mixed_float16")` before a model is built makes
//! its layers put out float16 numbers; weights and what the optimizer keeps stay float32. float16 loses small
//! gradients, so `fit!` multiplies the loss with a number and divides the gradients by it again (Keras's
//! `LossScaleOptimizer`); an optimizer step whose gradients became infinite is skipped.
//!
//! `mixed_bfloat16` **is computed in bfloat16 on the CPU**: products multiply 16-bit numbers and add in float32, with AMX
//! (four times the speed of float32) or AVX512-BF16 (up to twice) where the processor has them; what the layers keep for
//! the backward pass is held in 16 bits and takes half the memory. On a processor with neither (or with
//! `STRATOSCOPE_CPU=x86-64-v4` or lower) the same numbers are multiplied in float32: the memory is saved, the time is not.
//! **On a GPU that has the type** (float16: CUDA and adapters of wgpu with `SHADER_F16`; bfloat16: CUDA) products read and put
//! out 16 bits, add in float32, and keep 16 bits for the backward pass. A GPU without it is refused (SC0714).
//! `mixed_float16` on the CPU is emulated: what a layer puts out is rounded (see `stratoscope_bert::ops::Precision`). It
//! shows what such a run learns and loses, not how fast it would be. The receipt of `compile!` tells which of these a model
//! does.

use std::fmt;

use serde::{Deserialize, Serialize};
use stratoscope_bert::ops::{Bfloat16, Precision, bfloat16_on_cpu};
use stratoscope_diagnostics::rules::{InvalidArgumentValue, PolicyNotOnDevice};
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice};

use super::RunContext;
use stratoscope_network::AnyNetwork;

/// Keras's initial scale of the loss under `mixed_float16`, 2¹⁵.
pub const INITIAL_LOSS_SCALE: f64 = 32_768.0;

/// What a model's layers compute in; its weights are float32 under each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub fn of(network: &AnyNetwork) -> Self {
        if network.follows_policy() {
            global_policy()
        } else {
            Self::Float32
        }
    }

    /// Whether these devices can round to its numbers.
    ///
    /// # Errors
    /// SC0714 for a GPU that does not have them.
    pub fn check_devices(policy: Self, devices: &[LogicalDevice]) -> Result<()> {
        let has = |policy: Self, device: &LogicalDevice| match policy.precision().half() {
            // The CPU backend computes with both.
            Some(half) if device.backend != BackendKind::Flex => device.burn.supports_dtype(half),
            _ => true,
        };
        let Some(device) = devices.iter().find(|device| !has(policy, device)) else {
            return Ok(());
        };
        let others = Self::ALL.into_iter().skip(1);
        let instead = others.into_iter().find(|&other| has(other, device));
        let rule = PolicyNotOnDevice {
            policy: policy.name().to_owned(),
            device: device.name.clone(),
            instead: instead.map(|other| other.name().to_owned()),
        };
        Err(rule.error())
    }

    /// What the layers' outputs are rounded to.
    pub fn precision(self) -> Precision {
        match self {
            Self::Float32 => Precision::Float32,
            Self::MixedFloat16 => Precision::Float16,
            Self::MixedBfloat16 => Precision::Bfloat16,
        }
    }

    /// What is to be said beside `compile!`'s other settings, of a model on these devices.
    pub fn receipt(self, network: &AnyNetwork, devices: &[LogicalDevice]) -> Option<String> {
        let global = global_policy();
        match self {
            Self::Float32 if global == self => None,
            Self::Float32 if network.follows_policy() => Some(format!(
                "float32: it was built before the policy was `{global}`"
            )),
            Self::Float32 => Some(format!(
                "float32: a network of one's own does not follow `{global}`"
            )),
            Self::MixedFloat16 => {
                let (cpus, gpus) = kinds(devices);
                Some(format!(
                    "{}; the loss is scaled, by {INITIAL_LOSS_SCALE} at first",
                    self.in_float16(cpus, gpus)
                ))
            }
            Self::MixedBfloat16 => {
                let (cpus, gpus) = kinds(devices);
                Some(self.in_bfloat16(cpus, gpus, bfloat16_on_cpu()))
            }
        }
    }

    /// What computes in 16 bits on GPUs, in words.
    fn on_gpus(self) -> String {
        let half = self.name().trim_start_matches("mixed_");
        format!(
            "{self}: products on the GPU read and put out {half}, add in float32, and keep {half} for the backward pass; \
             weights, moments and what lies between products are float32"
        )
    }

    /// What computes in float16 on so many CPUs and GPUs, in words.
    fn in_float16(self, cpus: usize, gpus: usize) -> String {
        match (cpus, gpus) {
            (_, 0) => format!(
                "{self}, emulated: what layers put out is rounded to float16, weights and moments are float32"
            ),
            (0, _) => self.on_gpus(),
            _ => format!(
                "{}; on the CPU it is emulated: what layers put out is rounded",
                self.on_gpus()
            ),
        }
    }

    /// What computes in bfloat16 on so many CPUs and GPUs, in words.
    fn in_bfloat16(self, cpus: usize, gpus: usize, on_cpu: Bfloat16) -> String {
        if cpus == 0 {
            return self.on_gpus();
        }
        let what = match on_cpu {
            Bfloat16::Amx => "native: products multiply bfloat16 with AMX and add in float32",
            Bfloat16::Avx512Bf16 => {
                "native: products multiply bfloat16 with AVX512-BF16 and add in float32"
            }
            Bfloat16::Emulated => {
                "emulated: neither AMX nor AVX512-BF16 is there, so products round to bfloat16 and multiply in float32, \
                 which saves memory but no time"
            }
        };
        let on_gpus = match gpus {
            0 => "",
            _ => "; products on the GPU read and put out bfloat16 and add in float32",
        };
        format!(
            "{self}, {what}; activations are kept in bfloat16, weights and moments in float32{on_gpus}"
        )
    }
}

/// How many of the devices are CPUs, and how many are not.
fn kinds(devices: &[LogicalDevice]) -> (usize, usize) {
    let flex = |device: &&LogicalDevice| device.backend == BackendKind::Flex;
    let cpus = devices.iter().filter(flex).count();
    (cpus, devices.len() - cpus)
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
    fn the_receipt_tells_what_multiplies() {
        let text = |cpus, gpus, on_cpu| Policy::MixedBfloat16.in_bfloat16(cpus, gpus, on_cpu);
        let native = text(1, 0, Bfloat16::Avx512Bf16);
        assert!(native.starts_with("mixed_bfloat16, native"), "{native}");
        let emulated = text(2, 0, Bfloat16::Emulated);
        assert!(
            emulated.starts_with("mixed_bfloat16, emulated") && emulated.contains("no time"),
            "{emulated}"
        );
        let gpu = text(0, 1, Bfloat16::Avx512Bf16);
        assert!(
            gpu.contains("read and put out bfloat16") && !gpu.contains("emulated"),
            "{gpu}"
        );
        let both = text(1, 1, Bfloat16::Avx512Bf16);
        assert!(
            both.contains("native") && both.contains("on the GPU"),
            "{both}"
        );
    }

    #[test]
    fn the_receipt_tells_where_float16_is_computed() {
        let text = |cpus, gpus| Policy::MixedFloat16.in_float16(cpus, gpus);
        assert!(text(2, 0).contains("emulated"), "{}", text(2, 0));
        let gpu = text(0, 1);
        assert!(
            gpu.contains("read and put out float16") && !gpu.contains("emulated"),
            "{gpu}"
        );
        assert!(text(1, 1).contains("on the CPU it is emulated"));
    }

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
