//! [`UpdateRatios`]: how much the latest steps have changed each layer.

use std::fmt::{self, Write};

use serde::Serialize;
use stratoscope_render::html::{DATA_TABLE_STYLE, code, data_table, escape};
use stratoscope_render::text;

use super::{notes_html, number, title_html};
use crate::html::{CELL, HEAD};
use crate::text::table;

/// Layers of a table; of more the first ones are listed.
const MOST: usize = 60;

/// The norm of a layer's update as a share of the norm of its weights, `‖Δw‖/‖w‖`, at each of some steps. Around 1e-3 is
/// usual; near 1 a step overwrites the layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRatios {
    /// The layer: `bert.encoder.layer.3`.
    pub layer: String,
    /// One for each step; NaN where the step has not changed the layer.
    pub ratios: Vec<f64>,
}

impl LayerRatios {
    /// Of the last step.
    pub fn last(&self) -> f64 {
        self.ratios.last().copied().unwrap_or(f64::NAN)
    }

    /// The median over the steps that have changed the layer.
    pub fn median(&self) -> f64 {
        let mut sorted = self.ratios.clone();
        sorted.retain(|ratio| !ratio.is_nan());
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The largest one.
    pub fn largest(&self) -> f64 {
        self.ratios.iter().copied().fold(f64::NAN, f64::max)
    }
}

/// How much each of the latest steps has changed the layers: `run.update_ratios()?`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpdateRatios {
    /// The steps, at most 20, the oldest first.
    pub steps: Vec<u64>,
    /// In the order of the network.
    pub layers: Vec<LayerRatios>,
    /// What is missing, and why.
    pub notes: Vec<String>,
}

impl UpdateRatios {
    /// The layer with this name, or the only one whose name ends with it.
    pub fn get(&self, layer: &str) -> Option<&LayerRatios> {
        let ends = |name: &str| name.strip_suffix(layer).is_some_and(|it| it.ends_with('.'));
        let exact = self.layers.iter().find(|it| it.layer == layer);
        exact.or_else(|| {
            let mut found = self.layers.iter().filter(|it| ends(&it.layer));
            found.next().filter(|_| found.next().is_none())
        })
    }

    fn title(&self) -> String {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) if first != last => {
                format!("updates as a share of the weights, steps {first} to {last}")
            }
            (Some(step), _) => format!("updates as a share of the weights, step {step}"),
            _ => "updates as a share of the weights".to_owned(),
        }
    }

    /// Layer, last, median, largest, and the step of the largest.
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |layer: &LayerRatios| {
            let largest = layer.largest();
            let mut pairs = self.steps.iter().zip(&layer.ratios);
            let at = pairs.find(|(_, ratio)| **ratio == largest);
            vec![
                layer.layer.clone(),
                number(layer.last()),
                number(layer.median()),
                number(largest),
                at.map_or_else(|| "–".to_owned(), |(step, _)| step.to_string()),
            ]
        };
        self.layers.iter().take(MOST).map(row).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.layers.len() > MOST {
            let more = text::count(self.layers.len() - MOST, "more layer");
            notes.push(format!("and {more}"));
        }
        notes
    }

    /// A table as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        if !self.layers.is_empty() {
            html += &(data_table(DATA_TABLE_STYLE) + "<thead><tr>");
            for (at, column) in COLUMNS.iter().enumerate() {
                let side = if at == 0 { ";text-align:left" } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(
                    html,
                    "<th scope=\"col\" style=\"{HEAD}{side}\">{column}</th>"
                );
            }
            html += "</tr></thead><tbody>";
            for row in self.rows() {
                let _ = write!(
                    html,
                    "<tr><th scope=\"row\" style=\"{CELL};text-align:left;font-weight:400\">{}</th>",
                    code(&row[0])
                );
                for cell in &row[1..] {
                    let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(cell));
                }
                html += "</tr>";
            }
            html += "</tbody></table>";
        }
        html + &notes_html(&self.notes())
    }

    /// A line a layer.
    pub fn to_plain(&self) -> String {
        let columns = COLUMNS.map(str::to_owned);
        let mut plain = self.title() + "\n";
        if !self.layers.is_empty() {
            plain += &table(&columns, &self.rows());
        }
        for note in self.notes() {
            plain += &note;
            plain.push('\n');
        }
        plain
    }
}

const COLUMNS: [&str; 5] = ["layer", "last", "median", "largest", "at step"];

impl fmt::Display for UpdateRatios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_its_last_its_usual_and_its_largest_ratio() {
        let layer = |name: &str, ratios: &[f64]| LayerRatios {
            layer: name.to_owned(),
            ratios: ratios.to_vec(),
        };
        let ratios = UpdateRatios {
            steps: vec![4, 5, 6],
            layers: vec![
                layer("encoder.layer.0", &[1e-3, 4e-3, 2e-3]),
                layer("<head>", &[f64::NAN, 0.5, 0.25]),
            ],
            notes: vec!["a note".to_owned()],
        };
        let found = ratios.get("layer.0").expect("it is there");
        assert_eq!(
            (found.last(), found.median(), found.largest()),
            (2e-3, 2e-3, 4e-3)
        );
        assert!(ratios.get("layer").is_none());
        let plain = ratios.to_plain();
        assert!(
            plain.starts_with("updates as a share of the weights, steps 4 to 6\n"),
            "{plain}"
        );
        assert!(
            plain.contains("<head>") && plain.contains("0.5000") && plain.contains("a note"),
            "{plain}"
        );
        let html = ratios.to_html();
        assert!(
            html.contains("&lt;head&gt;") && html.contains("<th scope=\"row\""),
            "{html}"
        );
    }
}
