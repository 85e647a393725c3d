//! Example facts of the rules of scopes and of models of numbers.

use stratoscope_diagnostics::rules::*;
use stratoscope_diagnostics::{Diagnostic, Rule, RulePage};

pub fn examples() -> Vec<(RulePage, Diagnostic)> {
    fn told<R: Rule>(facts: R) -> (RulePage, Diagnostic) {
        (R::PAGE, facts.diagnostic())
    }
    vec![
        told(StrategyNotUsed {
            replicas: 2,
            device: "cpu:0/logical:0".into(),
        }),
        told(ReplicaGradientsSummed {
            replicas: 4,
            norm: 3.25,
        }),
        told(FitInAnotherScope {
            active: "mirrored#1".into(),
            bound: None,
            device: "cpu:0".into(),
        }),
        told(InputDoesNotFit {
            model: "Sequential".into(),
            wants: Examples::Numbers(Some(8)),
            given: Examples::Numbers(Some(5)),
            source: "make_regression(16, 5, 0)".into(),
            call: "fit".into(),
        }),
    ]
}
