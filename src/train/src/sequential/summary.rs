//! `model.summary()`: the layers with the shapes of their outputs and their parameters.

use std::fmt::{self, Write};

use stratoscope_diagnostics::words;

use super::layers::Layers;
use crate::html::{CELL, HEAD, escape};
use crate::model::Model;
use crate::network::Network;

/// The layers of a model as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Name and kind, shape of the outputs, parameters; the latter two are missing before it is built.
    rows: Vec<(String, Option<String>, Option<usize>)>,
}

impl Model<Layers> {
    /// The layers, the shapes of their outputs and their parameters. A model that is not built has no
    /// shapes yet, and says so.
    pub fn summary(&self) -> Summary {
        self.with_network(Summary::of)
    }
}

impl Summary {
    fn of(network: &Layers) -> Self {
        let names = network.names();
        let parameters = network.parameters();
        let shapes = network.input_width().map(|width| network.shapes(width));
        let rows = network.plan().iter().zip(names).enumerate();
        let rows = rows.map(|(index, (layer, name))| {
            let own = |known: &&stratoscope_bert::NamedParameter| {
                known.name.rsplit_once('.').is_some_and(|it| it.0 == name)
            };
            let elements = parameters.iter().filter(own);
            let elements = elements.map(|known| known.shape.iter().product::<usize>());
            let shape = shapes.as_ref().map(|shapes| shapes[index].to_string());
            let count = shape.as_ref().map(|_| elements.sum());
            (format!("{name} ({})", layer.class()), shape, count)
        });
        Self {
            rows: rows.collect(),
        }
    }

    /// All parameters; `None` before the model is built.
    pub fn parameters(&self) -> Option<usize> {
        self.rows.iter().map(|(_, _, count)| *count).sum()
    }

    fn last_line(&self) -> String {
        match self.parameters() {
            Some(total) => format!("parameters: {}", words::thousands(total)),
            None => "not built: the variables are made by `build((None, width))`, or when the first data \
                     comes"
                .to_owned(),
        }
    }

    fn cells(&self) -> impl Iterator<Item = [String; 3]> {
        self.rows.iter().map(|(layer, shape, count)| {
            let shape = shape.clone().unwrap_or_else(|| "?".to_owned());
            let count = count.map_or_else(|| "not built".to_owned(), words::thousands);
            [layer.clone(), shape, count]
        })
    }

    /// A row a layer, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = String::from(
            "<table style=\"border-collapse:collapse;font-size:13px;margin:4px 0\"><tr>",
        );
        // Writing to a string cannot fail.
        for head in ["layer", "output shape", "parameters"] {
            let _ = write!(html, "<th style=\"{HEAD}\">{head}</th>");
        }
        html.push_str("</tr>");
        for cells in self.cells() {
            html.push_str("<tr>");
            for cell in cells {
                let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(&cell));
            }
            html.push_str("</tr>");
        }
        let _ = write!(
            html,
            "</table><div style=\"font-size:13px\">{}</div>",
            escape(&self.last_line())
        );
        html
    }

    /// A line a layer.
    pub fn to_plain(&self) -> String {
        let heads = ["layer", "output shape", "parameters"].map(str::to_owned);
        let lines: Vec<[String; 3]> = std::iter::once(heads).chain(self.cells()).collect();
        let width = |column: usize| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let mut text = String::new();
        for [layer, shape, count] in &lines {
            let _ = writeln!(
                text,
                "{layer:<a$}  {shape:<b$}  {count:>c$}",
                a = widths[0],
                b = widths[1],
                c = widths[2]
            );
        }
        text + &self.last_line()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
