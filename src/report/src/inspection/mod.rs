//! What one sees inside a run, as values: numbers to compute with, text, and static HTML with pictures.
//!
//! The crate `inspect` fills them in. None of them refers to the model: a value stays as it was when the run goes on.

mod attention;
mod confusion;
mod data_map;
mod distribution;
mod examples;
mod hindsight;
mod in_step;
mod layers;
mod ratios;
mod statistics;
mod tensors;
mod why;

pub use attention::AttentionMap;
pub use confusion::ConfusionMatrix;
pub use data_map::{DataMap, MappedExample};
pub use examples::{BatchView, ExampleView, Piece, RankedExamples};
pub use hindsight::{Collected, Direction, Hindsight, IntoCollected, Probe};
pub use in_step::{InStep, LayerPass, Place, passes_of};
pub use layers::layer_of;
pub use ratios::{LayerRatios, UpdateRatios};
pub use statistics::{Bin, Statistics};
pub use tensors::{TensorRow, TensorStatistics};
pub use why::{FirstNonFinite, Grown, Phase, Why};

use stratoscope_render::html::{TITLE_STYLE, escape};

/// A number of a table: four significant digits, short where it is very large or small.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value == f64::INFINITY => "inf".to_owned(),
        _ if value == f64::NEG_INFINITY => "−inf".to_owned(),
        0.0 => "0".to_owned(),
        1e-3..1e4 => {
            let digits = (3.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.2e}"),
    }
}

/// A share as a percentage.
fn percent(part: u64, whole: u64) -> String {
    stratoscope_render::units::share(part, whole)
}

/// A sentence below a table.
pub(crate) fn notes_html(notes: &[String]) -> String {
    let line = |note: &String| {
        format!(
            "<div style=\"font-size:12px;opacity:0.8\">{}</div>",
            stratoscope_render::html::prose(note)
        )
    };
    notes.iter().map(line).collect()
}

/// The heading of a value.
pub(crate) fn title_html(title: &str) -> String {
    format!("<div style=\"{TITLE_STYLE}\">{}</div>", escape(title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (-0.012_346, "-0.01235"),
            (1234.6, "1235"),
            (12_345.0, "1.23e4"),
            (1e-7, "1.00e-7"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "−inf"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}
