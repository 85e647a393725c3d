//! Example facts of the rules of scopes and of models of numbers.

use stratoscope_diagnostics::rules::*;
use stratoscope_diagnostics::{Diagnostic, Rule, RulePage};

pub fn examples() -> Vec<(RulePage, Diagnostic)> {
    fn example<R: Rule>(facts: R) -> (RulePage, Diagnostic) {
        (R::PAGE, facts.diagnostic())
    }
    vec![
        example(StrategyNotUsed {
            replicas: 2,
            device: "cpu:0/logical:0".into(),
        }),
        example(ReplicaGradientsSummed {
            replicas: 4,
            norm: 3.25,
        }),
        example(UnknownDefaultDevice {
            by: "%device".into(),
            given: "wpgu:0".into(),
            known: vec!["wgpu:0".into(), "cpu:0".into(), "auto".into()],
            meant: Some("wgpu:0".into()),
            reason: None,
        }),
        example(DefaultDeviceFellBack {
            failed: vec![(
                "cuda:0".into(),
                "NVRTC (libnvrtc.so), which compiles CUDA kernels, was not found".into(),
            )],
            used: "cpu:0".into(),
        }),
        example(PolicyNotOnDevice {
            policy: "mixed_bfloat16".into(),
            device: "wgpu:0".into(),
            instead: Some("mixed_float16".into()),
        }),
        example(FitInAnotherScope {
            active: "mirrored#1".into(),
            bound: None,
            device: "cpu:0".into(),
        }),
        example(InputShapeMismatch {
            model: "Sequential".into(),
            wants: Examples::Numbers(Some(8)),
            given: Examples::Numbers(Some(5)),
            source: "make_regression(16, 5, 0)".into(),
            call: "fit".into(),
            is_validation: false,
        }),
    ]
}
