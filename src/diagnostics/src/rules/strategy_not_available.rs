//! SC0804 `strategy-not-available`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// The strategies that exist here.
pub const STRATEGIES: &[&str] = &[
    "OneDeviceStrategy",
    "MirroredStrategy",
    "CentralStorageStrategy",
    "ParameterServerStrategy",
    "TpuStrategy",
];

/// A strategy of TensorFlow that does not exist here.
#[derive(Clone, Debug)]
pub struct StrategyNotAvailable {
    /// The name as typed: `MultiWorkerMirroredStrategy`.
    pub given: String,
    /// Where it stands.
    pub place: Place,
}

impl Rule for StrategyNotAvailable {
    const PAGE: RulePage = RulePage {
        code: "SC0804",
        name: "strategy-not-available",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A strategy that TensorFlow has and this product has not.",
        why: "One that only pretended to be there would train on other devices than the reader believes.",
        bad: "let strategy = MultiWorkerMirroredStrategy::new()?;",
        good: "let strategy = MirroredStrategy::logical(2)?;",
        tensorflow: tensorflow::page("SC0804"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!("there is no `{}` here", self.given))
            .label(self.place.clone(), "not available")
            .why(format!(
                "strategies that exist: {}",
                text::names(STRATEGIES, 8)
            ));
        let told = match self.given.as_str() {
            "TPUStrategy" => told.fix(
                "use `TpuStrategy::simulated()`: the topology of a TPU, eight cores and their ring, \
                 computed by the CPU",
            ),
            _ => told,
        };
        told.fix(
            "use `MirroredStrategy::logical(2)` to see replicas on one machine, or \
                 `MirroredStrategy::new()` for every device of the best kind",
        )
    }
}
