//! SC1020 `nothing-to-draw`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A chart of values none of which can be drawn.
#[derive(Clone, Debug)]
pub struct NothingToDraw {
    /// The function: `plot`.
    pub chart: String,
    /// How many values there are, none of them a finite number.
    pub values: usize,
}

impl Rule for NothingToDraw {
    const PAGE: RulePage = RulePage {
        code: "SC1020",
        name: "nothing-to-draw",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`plot`, `scatter`, `histogram` or `heatmap` of no values, or of values that are all NaN or infinite.",
        why: "An empty chart looks like a chart of something. NaN and infinite values are left out of a chart, and the text below it counts them. If no other values are left, there is no chart.",
        bad: "histogram(&[f64::NAN, f64::NAN])?",
        good: "histogram(&[0.5, f64::NAN, 0.7])?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let chart = &self.chart;
        match self.values {
            0 => Self::start(format!("`{chart}` has no values to draw"))
                .fix("check where the values come from: a filter that keeps nothing, a run without a step"),
            values => Self::start(format!(
                "`{chart}` has {}, but no finite number",
                text::count(values, "value")
            ))
            .why("NaN and infinite values are left out of a chart")
            .fix("look for the first of them: 0 / 0, a logarithm of 0 and numbers that grow too large make such values"),
        }
    }
}
