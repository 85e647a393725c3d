//! SC0714 `policy-not-on-device`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A policy of mixed precision on a device without its 16-bit numbers.
#[derive(Clone, Debug)]
pub struct PolicyNotOnDevice {
    /// The policy: `mixed_bfloat16`.
    pub policy: String,
    /// The device: `wgpu:0`.
    pub device: String,
    /// A policy that the device can do, if there is one besides float32.
    pub instead: Option<String>,
}

impl Rule for PolicyNotOnDevice {
    const PAGE: RulePage = RulePage {
        code: "SC0714",
        name: "policy-not-on-device",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A model under `mixed_float16` or `mixed_bfloat16` on a GPU that cannot round to these numbers: \
                WebGPU has no bfloat16, and has float16 only if the adapter supports it.",
        why: "The policy rounds the outputs of layers to 16 bits on the device. A kernel with numbers that the \
              device does not support cannot be compiled.",
        bad: "set_global_policy(\"mixed_bfloat16\")?;\nlet strategy = OneDeviceStrategy::new(wgpu(0))?;\n\
              scope!(strategy, {\n    let model = Sequential([Dense(4).input_shape(5)])?;\n});",
        good: "set_global_policy(\"float32\")?;\nlet model = Sequential([Dense(4).input_shape(5)])?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs an adapter of wgpu");

    fn diagnostic(&self) -> Diagnostic {
        let Self { policy, device, .. } = self;
        let numbers = policy.trim_start_matches("mixed_");
        let mut diagnostic = Self::start(format!(
            "`{policy}` does not work on {device}: it has no {numbers}"
        ))
        .why("the policy rounds the outputs of layers to 16 bits, in kernels of the device")
        .why("`devices()` shows which 16-bit numbers a device has");
        if let Some(instead) = &self.instead {
            diagnostic = diagnostic.fix(format!("`set_global_policy(\"{instead}\")?` works there"));
        }
        diagnostic
            .fix("`set_global_policy(\"float32\")?` before the model is made")
            .fix("or make the model on the CPU: `OneDeviceStrategy::new(cpu(0))?`")
    }
}
