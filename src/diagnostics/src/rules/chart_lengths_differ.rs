//! SC1021 `chart-lengths-differ`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Lists of values for a chart that must have the same length.
#[derive(Clone, Debug)]
pub struct ChartLengthsDiffer {
    /// The function: `scatter`.
    pub chart: String,
    /// What the first list is: `xs`.
    pub first: String,
    /// Its length.
    pub first_length: usize,
    /// What the second list is: `ys`.
    pub second: String,
    /// Its length.
    pub second_length: usize,
}

impl Rule for ChartLengthsDiffer {
    const PAGE: RulePage = RulePage {
        code: "SC1021",
        name: "chart-lengths-differ",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`scatter` or `plot_xy` with different numbers of horizontal and vertical values, or `heatmap` with \
                rows of different lengths.",
        why: "A point has two values, and all rows of a grid have the same number of cells. If the longer list were cut, the chart would leave out values without a message.",
        bad: "scatter(&[1.0, 2.0, 3.0], &[0.5, 0.7])?",
        good: "scatter(&[1.0, 2.0], &[0.5, 0.7])?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}`: {} has {}, {} has {}",
            self.chart,
            self.first,
            text::count(self.first_length, "value"),
            self.second,
            text::count(self.second_length, "value")
        ))
        .fix(format!(
            "pass as many values in {} as in {}",
            self.second, self.first
        ))
    }
}
