//! Placement reports: where the variables of a model are.
//!
//! `placement(&model);` shows it at once; `placement_of(&model)?` is the report itself, which is shown when
//! it is a cell's last expression.

use stratoscope_diagnostics::Result;
use stratoscope_models::Model;
use stratoscope_strategy::PlacementReport;
use stratoscope_strategy::placement::PlacementDiff;
use stratoscope_wire::MimeBundle;

use crate::display::{IntoBundle, html_and_plain};

/// The type of a comparison of two reports as data.
pub const PLACEMENT_DIFF: &str = "application/vnd.stratoscope.placement-diff+json";

/// Where the variables of a model are now: `let before = placement_of(&model)?;`. With
/// [`activations`](PlacementReport::activations), what the layers computed in the last step too:
/// `placement_of(&model)?.activations()`.
///
/// # Errors
/// SC0907 if a value cannot be read from its device.
pub fn placement_of(model: &Model) -> Result<PlacementReport> {
    model.placement()
}

/// The differences between two reports, of two strategies or before and after a step:
/// `placement_diff(&before, &after)`. Variables are matched by name.
pub fn placement_diff(before: &PlacementReport, after: &PlacementReport) -> PlacementDiff {
    before.diff(after)
}

impl IntoBundle for PlacementDiff {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = html_and_plain(self.to_html(), self.to_plain());
        bundle.insert(PLACEMENT_DIFF.to_owned(), self.to_json());
        bundle
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::LinearConfig;
    use stratoscope_strategy::{AsStrategy, MirroredStrategy, Origin, Replicas, scope};

    use super::*;

    #[test]
    fn a_comparison_has_every_representation() {
        let layer = LinearConfig::new(4, 3).init(&scope::device().expect("a processor"));
        let place = |strategy| {
            let replicas = Replicas::place_under(strategy, layer.clone(), &[], Origin::default());
            PlacementReport::of(&replicas.expect("the processor takes copies")).expect("checksums")
        };
        let two = MirroredStrategy::logical(2).expect("two logical devices");
        let bundle = placement_diff(&place(None), &place(Some(two.strategy()))).bundle();
        assert!(bundle["text/html"].to_string().contains("Local → "));
        assert!(
            bundle["text/plain"]
                .to_string()
                .contains("Local → Mirrored")
        );
        assert_eq!(bundle[PLACEMENT_DIFF]["moved"], 2);
    }
}
