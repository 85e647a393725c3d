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
    "MultiWorkerMirroredStrategy",
    "PipelineStrategy",
];

/// A strategy of TensorFlow that does not exist here.
#[derive(Clone, Debug)]
pub struct StrategyNotAvailable {
    /// The name as typed: `TPUStrategy`.
    pub given: String,
    /// Its place.
    pub place: Place,
}

impl Rule for StrategyNotAvailable {
    const PAGE: RulePage = RulePage {
        code: "SC0804",
        name: "strategy-not-available",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A strategy of TensorFlow that stratoscope does not have.",
        why: "A stand-in with the same name would train on other devices than the user expects.",
        bad: "let strategy = TPUStrategy::new()?;",
        good: "let strategy = TpuStrategy::simulated()?;",
        tensorflow: tensorflow::page("SC0804"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!("`{}` does not exist here", self.given))
            .label(self.place.clone(), "not available")
            .why(format!(
                "available strategies: {}",
                text::names(STRATEGIES, 8)
            ));
        let diagnostic = match self.given.as_str() {
            "TPUStrategy" => diagnostic.fix(
                "use `TpuStrategy::simulated()`: the topology of a TPU, eight cores and their ring, \
                 computed by the CPU",
            ),
            _ => diagnostic,
        };
        diagnostic.fix(
            "use `MirroredStrategy::logical(2)` to see replicas on one machine, or \
                 `MirroredStrategy::new()` for every device of the best kind",
        )
    }
}
