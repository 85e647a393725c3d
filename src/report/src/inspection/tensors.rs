//! [`TensorStatistics`]: the statistics of all gradients, weights, updates or activations, by name.

use std::fmt::{self, Write};
use std::ops::{Deref, Index};

use stratoscope_diagnostics::{problem, raise};
use stratoscope_render::html::{DATA_TABLE_STYLE, code, data_table, escape, picture};
use stratoscope_render::{text, units};

use super::layers::{layer_of, parts_of};
use super::statistics::Statistics;
use super::{distribution, notes_html, number, percent, title_html};
use crate::html::{CELL, HEAD};
use crate::text::table;

/// Rows of a table of layers, and of variables; the others are counted.
const MOST_LAYERS: usize = 60;
const MOST_ROWS: usize = 300;
/// Replicas that have a column.
const MOST_REPLICAS: usize = 8;

/// A tensor, or a part of the network with all its tensors. The numbers are its [`Statistics`].
#[derive(Clone, Debug, PartialEq)]
pub struct TensorRow {
    /// `bert.encoder.layer.0.output.dense.weight`, or a part: `bert.encoder.layer.0`.
    pub name: String,
    /// The shape of a tensor; empty for a part.
    pub shape: Vec<usize>,
    /// Of replica 0, of the mean over the replicas, or of all, as the title says.
    pub statistics: Statistics,
    /// Of each replica, where they differ; else empty.
    pub by_replica: Vec<Statistics>,
    /// The norm of what it is compared with: of the weights, for updates.
    pub compared_norm: Option<f64>,
}

impl TensorRow {
    /// The norm divided by that of what it is compared with: how far an update moves the weights.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.statistics.norm / self.compared_norm?)
    }

    /// An empty part.
    fn part(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            shape: Vec::new(),
            statistics: Statistics::empty(),
            by_replica: Vec::new(),
            compared_norm: None,
        }
    }

    fn add(&mut self, row: &Self) {
        self.statistics.merge(&row.statistics);
        (self.by_replica).resize_with(row.by_replica.len(), Statistics::empty);
        for (own, other) in self.by_replica.iter_mut().zip(&row.by_replica) {
            own.merge(other);
        }
        if let Some(norm) = row.compared_norm {
            self.compared_norm = Some(self.compared_norm.unwrap_or(0.0).hypot(norm));
        }
    }
}

impl Deref for TensorRow {
    type Target = Statistics;

    fn deref(&self) -> &Statistics {
        &self.statistics
    }
}

/// Statistics of tensors by name: `stats["classifier.weight"].norm`, `stats["encoder.layer.0"].zeros`.
#[derive(Clone, PartialEq)]
pub struct TensorStatistics {
    /// What they are of: `gradients of the coming step 12`.
    pub title: String,
    rows: Vec<TensorRow>,
    /// Every part of the network that has tensors, each after the parts that it belongs to.
    parts: Vec<TensorRow>,
    total: TensorRow,
    /// The devices of the replicas, where the rows have numbers of each.
    replicas: Vec<String>,
    /// What is to be known beside the table, a sentence each.
    pub notes: Vec<String>,
}

impl TensorStatistics {
    /// Of no tensors: the run is over.
    pub fn none(title: String) -> Self {
        Self::new(title, Vec::new(), Vec::new(), Vec::new())
    }

    /// Of these tensors: a row for each, in their order, with parts and layers added up. `replicas`: the devices of the replicas, where rows have numbers of each.
    pub fn new(
        title: String,
        rows: Vec<TensorRow>,
        replicas: Vec<String>,
        notes: Vec<String>,
    ) -> Self {
        let mut parts: Vec<TensorRow> = Vec::new();
        let mut total = TensorRow::part("");
        for row in &rows {
            total.add(row);
            for name in parts_of(&row.name) {
                // The part of the row before is the same, or a new one begins.
                let known = parts.iter_mut().rev().find(|part| part.name == name);
                match known {
                    Some(part) => part.add(row),
                    None => {
                        let mut part = TensorRow::part(name);
                        part.add(row);
                        parts.push(part);
                    }
                }
            }
        }
        Self {
            title,
            rows,
            parts,
            total,
            replicas,
            notes,
        }
    }

    /// The tensors, in the order of the network.
    pub fn iter(&self) -> std::slice::Iter<'_, TensorRow> {
        self.rows.iter()
    }

    /// How many tensors.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All tensors together: `stats.total().norm` is the global norm.
    pub fn total(&self) -> &TensorRow {
        &self.total
    }

    /// The names of the tensors.
    pub fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.name.as_str()).collect()
    }

    /// The tensors folded to layers: `bert.embeddings`, `bert.encoder.layer.0`, …, `classifier`.
    pub fn layers(&self) -> Vec<TensorRow> {
        let mut layers: Vec<TensorRow> = Vec::new();
        for row in &self.rows {
            let name = layer_of(&row.name);
            match layers.iter_mut().find(|layer| layer.name == name) {
                Some(layer) => layer.add(row),
                None => {
                    let mut layer = TensorRow::part(name);
                    layer.add(row);
                    layers.push(layer);
                }
            }
        }
        layers
    }

    /// A tensor or a part of the network, by its name or by the end of its name: `encoder.layer.0` is
    /// `bert.encoder.layer.0`. `None` where there is none.
    pub fn get(&self, name: &str) -> Option<&TensorRow> {
        let all = || self.rows.iter().chain(&self.parts);
        let ends = |row: &&TensorRow| {
            let rest = row.name.strip_suffix(name);
            rest.is_some_and(|rest| rest.ends_with('.'))
        };
        match name {
            "" => Some(&self.total),
            name => all()
                .find(|row| row.name == name)
                .or_else(|| all().find(ends)),
        }
    }

    /// Tensors with an element that is not finite.
    pub fn non_finite(&self) -> impl Iterator<Item = &TensorRow> {
        self.rows
            .iter()
            .filter(|row| row.statistics.non_finite() > 0)
    }

    fn replicas(&self) -> &[String] {
        &self.replicas[..self.replicas.len().min(MOST_REPLICAS)]
    }

    fn has_ratios(&self) -> bool {
        self.total.compared_norm.is_some()
    }

    fn columns(&self) -> Vec<String> {
        let fixed = [
            "elements",
            "norm",
            "RMS",
            "min",
            "max",
            "zero",
            "not finite",
        ];
        let mut columns: Vec<String> = fixed.map(str::to_owned).to_vec();
        if self.has_ratios() {
            columns.insert(2, "÷ weights".to_owned());
        }
        columns.extend(
            self.replicas()
                .iter()
                .map(|device| format!("norm {device}")),
        );
        columns
    }

    fn cells(&self, row: &TensorRow) -> Vec<String> {
        let own = &row.statistics;
        let mut cells = vec![
            units::count(own.elements as usize),
            number(own.norm),
            number(own.rms),
            number(own.min),
            number(own.max),
            percent(own.zeros, own.elements),
            match own.non_finite() {
                0 => "0".to_owned(),
                some => text::thousands(some as usize),
            },
        ];
        if self.has_ratios() {
            cells.insert(2, row.ratio().map_or_else(|| "–".to_owned(), number));
        }
        for replica in 0..self.replicas().len() {
            let own = row.by_replica.get(replica);
            cells.push(own.map_or_else(
                || "–".to_owned(),
                |own| match own.non_finite() {
                    0 => number(own.norm),
                    _ => "not finite".to_owned(),
                },
            ));
        }
        cells
    }

    /// Layers, and the tensors below where they are opened, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title);
        let layers = self.layers();
        let mut all = layers.clone();
        if layers.len() > 1 {
            all.push(TensorRow {
                name: "all".to_owned(),
                ..self.total.clone()
            });
        }
        self.table_html(&mut html, ("layer", &all, MOST_LAYERS));
        if self.rows.len() > layers.len() {
            let count = text::count(self.rows.len(), "tensor");
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<details style=\"font-size:13px;margin:4px 0\"><summary style=\"cursor:pointer\">{count}</summary>"
            );
            self.table_html(&mut html, ("tensor", &self.rows, MOST_ROWS));
            html.push_str("</details>");
        }
        html + &notes_html(&self.notes)
    }

    fn table_html(&self, html: &mut String, (first, rows, most): (&str, &[TensorRow], usize)) {
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "{}<thead><tr><th scope=\"col\" style=\"{HEAD};text-align:left\">{first}</th>",
            data_table(DATA_TABLE_STYLE)
        );
        for column in self.columns() {
            let _ = write!(
                html,
                "<th scope=\"col\" style=\"{HEAD}\">{}</th>",
                escape(&column)
            );
        }
        let _ = write!(
            html,
            "<th scope=\"col\" style=\"{HEAD}\">distribution</th></tr></thead><tbody>"
        );
        for row in rows.iter().take(most) {
            let bad = row.statistics.non_finite() > 0;
            let mark = if bad {
                ";color:#c8641e;font-weight:600"
            } else {
                ""
            };
            let _ = write!(
                html,
                "<tr><th scope=\"row\" style=\"{CELL};text-align:left;font-weight:400{mark}\">{}</th>",
                code(&row.name)
            );
            for cell in self.cells(row) {
                let _ = write!(html, "<td style=\"{CELL}{mark}\">{}</td>", escape(&cell));
            }
            let (drawn, words) = distribution::histogram(&row.name, &row.statistics);
            let _ = write!(
                html,
                "<td style=\"{CELL}\">{}</td></tr>",
                picture(&drawn, &words)
            );
        }
        html.push_str("</tbody></table>");
        if rows.len() > most {
            let _ = write!(
                html,
                "<div style=\"font-size:12px\">and {} more</div>",
                rows.len() - most
            );
        }
    }

    /// The tensors one by one, not folded to layers.
    pub(super) fn to_html_by_tensor(&self) -> String {
        let mut html = title_html(&self.title);
        self.table_html(&mut html, ("value", &self.rows, MOST_ROWS));
        html + &notes_html(&self.notes)
    }

    /// A line a tensor.
    pub(super) fn to_plain_by_tensor(&self) -> String {
        self.plain_table("value", &self.rows[..self.rows.len().min(MOST_ROWS)], false)
    }

    /// A line a layer.
    pub fn to_plain(&self) -> String {
        let mut layers = self.layers();
        layers.truncate(MOST_LAYERS);
        self.plain_table("layer", &layers, true)
    }

    /// `has_total`: with a last row of all tensors together.
    fn plain_table(&self, first: &str, shown: &[TensorRow], has_total: bool) -> String {
        let mut columns = self.columns();
        columns.insert(0, first.to_owned());
        let mut rows = Vec::new();
        for row in shown {
            let mut cells = self.cells(row);
            cells.insert(0, row.name.clone());
            rows.push(cells);
        }
        if has_total && rows.len() > 1 {
            let mut cells = self.cells(&self.total);
            cells.insert(0, "all".to_owned());
            rows.push(cells);
        }
        let mut plain = format!("{}\n{}", self.title, table(&columns, &rows));
        for note in &self.notes {
            plain += note;
            plain.push('\n');
        }
        plain
    }
}

impl<'a> IntoIterator for &'a TensorStatistics {
    type Item = &'a TensorRow;
    type IntoIter = std::slice::Iter<'a, TensorRow>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

/// `stats["encoder.layer.0"]`, as [`TensorStatistics::get`].
impl Index<&str> for TensorStatistics {
    type Output = TensorRow;

    /// # Panics
    /// There is no such tensor. In a notebook that is SC0105, which lists similar names.
    fn index(&self, name: &str) -> &TensorRow {
        self.get(name).unwrap_or_else(|| {
            let names = self
                .rows
                .iter()
                .chain(&self.parts)
                .map(|row| row.name.as_str());
            raise(problem::unknown_tensor(name, names.collect()))
        })
    }
}

impl fmt::Display for TensorStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for TensorStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, elements: &[f32]) -> TensorRow {
        TensorRow {
            shape: vec![elements.len()],
            statistics: Statistics::of(elements),
            ..TensorRow::part(name)
        }
    }

    fn some() -> TensorStatistics {
        let rows = vec![
            row("bert.encoder.layer.0.dense.weight", &[3.0]),
            row("bert.encoder.layer.0.dense.bias", &[4.0]),
            row("bert.encoder.layer.1.dense.weight", &[0.0, f32::NAN]),
            row("classifier.<b>", &[12.0]),
        ];
        TensorStatistics::new("gradients".to_owned(), rows, Vec::new(), Vec::new())
    }

    #[test]
    fn parts_are_found_by_name_and_by_the_end_of_it() {
        let stats = some();
        assert_eq!(stats["bert.encoder.layer.0"].norm, 5.0);
        assert_eq!(stats["encoder.layer.0"].norm, 5.0);
        assert_eq!(stats["layer.0.dense.bias"].norm, 4.0);
        assert_eq!((stats["bert"].elements, stats["bert"].nans), (4, 1));
        assert_eq!(stats.total().norm, 13.0);
        assert!(stats.get("ncoder.layer.0").is_none() && stats.get("layer.7").is_none());
        let layers: Vec<_> = stats.layers().into_iter().map(|it| it.name).collect();
        let expected = ["bert.encoder.layer.0", "bert.encoder.layer.1", "classifier"];
        assert_eq!(layers, expected);
        let norms: Vec<f64> = (&stats).into_iter().map(|row| row.norm).collect();
        assert_eq!(norms, [3.0, 4.0, 0.0, 12.0]);
        let bad: Vec<_> = stats.non_finite().map(|row| row.name.as_str()).collect();
        assert_eq!(bad, ["bert.encoder.layer.1.dense.weight"]);
    }

    #[test]
    fn a_page_has_headers_and_one_escape() {
        let html = some().to_html();
        assert!(html.contains("classifier.&lt;b&gt;") && !html.contains("classifier.<b>"));
        assert!(html.contains("<th scope=\"row\"") && html.contains("<th scope=\"col\""));
        assert!(
            html.contains("<details") && html.contains("alt=\"bert.encoder.layer.0: histogram")
        );
        assert!(!html.contains("<svg"), "front ends remove it");
        let plain = some().to_plain();
        assert!(plain.contains("all") && plain.contains("13.00"), "{plain}");
        let none = TensorStatistics::none("none".to_owned());
        assert!(none.is_empty() && none.to_html().contains("none") && none.layers().is_empty());
    }
}
