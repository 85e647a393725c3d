//! The report of a load: where the values of each variable came from.

use std::fmt::{self, Write};

use stratoscope_render::html::escape;

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedTensor {
    /// The checkpoint's key.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where its values came from, or that it was not used.
    pub origin: Origin,
}

/// Where the values of a tensor came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The variable has the checkpoint's values.
    Loaded,
    /// The checkpoint lacks it: the variable has new, random values and has to be trained.
    New,
    /// The checkpoint has it and the network does not.
    Unused,
}

impl Origin {
    fn words(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::New => "newly initialized",
            Self::Unused => "unused",
        }
    }
}

/// Name, shape and origin of every tensor of the network and of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The folder that was read.
    pub source: String,
    /// In the network's order; tensors that the network does not have come last.
    pub tensors: Vec<LoadedTensor>,
}

impl LoadReport {
    /// The tensors of one origin.
    pub fn of(&self, origin: Origin) -> impl Iterator<Item = &LoadedTensor> {
        self.tensors
            .iter()
            .filter(move |tensor| tensor.origin == origin)
    }

    /// One line: `101 tensors loaded, 2 newly initialized (classifier.weight, …), 0 unused`.
    pub fn summary(&self) -> String {
        let count = |origin| self.of(origin).count();
        let mut new: Vec<&str> = self
            .of(Origin::New)
            .map(|tensor| tensor.name.as_str())
            .collect();
        let more = new.len() > 4;
        new.truncate(4);
        let mut names = new.join(", ");
        if more {
            names.push_str(", …");
        }
        let new = match names.is_empty() {
            true => "0 newly initialized".to_owned(),
            false => format!("{} newly initialized ({names})", count(Origin::New)),
        };
        format!(
            "{} tensors loaded, {new}, {} unused",
            count(Origin::Loaded),
            count(Origin::Unused)
        )
    }

    /// The report as a table of plain text.
    pub fn to_plain(&self) -> String {
        let width = self
            .tensors
            .iter()
            .map(|tensor| tensor.name.len())
            .max()
            .unwrap_or(0);
        let shapes: Vec<String> = self
            .tensors
            .iter()
            .map(|tensor| crate::problem::shape(&tensor.shape))
            .collect();
        let shape_width = shapes.iter().map(String::len).max().unwrap_or(0);
        let mut text = format!("{}\n", self.summary());
        for (tensor, shape) in self.tensors.iter().zip(&shapes) {
            let origin = tensor.origin.words();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:width$}  {shape:shape_width$}  {origin}",
                tensor.name
            );
        }
        text
    }

    /// The report as HTML with literal inline styles, the table folded under its summary. Colors
    /// are readable on light and dark backgrounds.
    pub fn to_html(&self) -> String {
        let mut html = String::from("<details style=\"font-size:13px;margin:4px 0\"><summary>");
        html.push_str(&escape(&self.summary()));
        html.push_str("</summary><table style=\"border-collapse:collapse;margin-top:6px\"><tr>");
        const CELL: &str = "padding:2px 10px;text-align:left;border-bottom:1px solid #80808059";
        for title in ["variable", "shape", "origin"] {
            let _ = write!(html, "<th style=\"{CELL}\">{title}</th>");
        }
        html.push_str("</tr>");
        for tensor in &self.tensors {
            let color = match tensor.origin {
                Origin::Loaded => "",
                Origin::New => ";color:#b26a00;font-weight:600",
                Origin::Unused => ";color:#808080",
            };
            let name = escape(&tensor.name);
            let shape = crate::problem::shape(&tensor.shape);
            let origin = tensor.origin.words();
            let _ = write!(
                html,
                "<tr><td style=\"{CELL};font-family:monospace\">{name}</td>\
                 <td style=\"{CELL};font-family:monospace\">{shape}</td>\
                 <td style=\"{CELL}{color}\">{origin}</td></tr>"
            );
        }
        html.push_str("</table></details>");
        html
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadReport {
        let tensor = |name: &str, shape: &[usize], origin| LoadedTensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            origin,
        };
        LoadReport {
            source: "model".to_owned(),
            tensors: vec![
                tensor("bert.pooler.dense.bias", &[32], Origin::Loaded),
                tensor("classifier.weight", &[3, 32], Origin::New),
                tensor("<script>", &[1], Origin::Unused),
            ],
        }
    }

    #[test]
    fn plain_text_is_a_table_under_its_summary() {
        let expected = "\
1 tensors loaded, 1 newly initialized (classifier.weight), 1 unused
bert.pooler.dense.bias  [32]     loaded
classifier.weight       [3, 32]  newly initialized
<script>                [1]      unused
";
        assert_eq!(report().to_plain(), expected);
    }

    #[test]
    fn html_has_no_markup_from_the_file() {
        let html = report().to_html();
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"));
        assert!(!html.contains("<style") && !html.contains("class="));
        assert_eq!(html.matches("<tr>").count(), 4);
    }
}
