//! `model.summary()`: layers or variables with their shapes, parameters and types, as Keras's.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::io::{self, Write as _};

use stratoscope_render::html::DATA_TABLE_STYLE;
use stratoscope_render::text;
use stratoscope_strategy::VariableRecord;
use stratoscope_strategy::placement::bytes;

use crate::html::{HEAD, escape};

/// Layers with so many variables are one row.
const FOLDED: usize = 5;

/// A layer of a network that knows the shapes of its outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerRow {
    /// What its variables' names begin with: `dense_1`.
    pub name: String,
    /// What it is called: `Dense`.
    pub class: &'static str,
    /// The shape of its outputs; `None` before it is known.
    pub shape: Option<String>,
}

/// The layers of a model as a table: what `model.summary()` returns. One that nobody looks at, as in
/// `model.summary();`, prints itself.
pub struct Summary {
    title: &'static str,
    built: bool,
    rows: Vec<Row>,
    total: Total,
    /// What the first two columns are.
    heads: [&'static str; 2],
    looked_at: Cell<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    shape: Option<String>,
    /// `None` before it is built.
    count: Option<Total>,
    dtype: String,
}

/// Numbers, and how many of them training changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    parameters: usize,
    trainable: usize,
    bytes: u64,
}

impl Summary {
    /// Of a model with this title. `layers`: where the network knows the shapes of their outputs; else its variables
    /// are shown.
    pub fn of(
        title: &'static str,
        built: bool,
        layers: Option<Vec<LayerRow>>,
        records: &[VariableRecord],
    ) -> Self {
        let (rows, heads) = match layers {
            Some(layers) => (of_layers(layers, records), ["layer", "output shape"]),
            None => (of_variables(records), ["variable", "shape"]),
        };
        Self {
            title,
            built,
            rows,
            total: Total::of(records.iter()),
            heads,
            looked_at: Cell::new(false),
        }
    }

    /// All parameters; `None` before the model is built.
    pub fn parameters(&self) -> Option<usize> {
        self.keep();
        self.built.then_some(self.total.parameters)
    }

    /// The parameters that training changes; `None` before the model is built.
    pub fn trainable(&self) -> Option<usize> {
        self.keep();
        self.built.then_some(self.total.trainable)
    }

    /// Somebody has it, or has seen it: it does not print itself.
    pub fn keep(&self) {
        self.looked_at.set(true);
    }

    fn last_line(&self) -> String {
        let Total {
            parameters,
            trainable,
            bytes: size,
        } = self.total;
        match self.built {
            true => format!(
                "parameters: {} ({}), trainable: {}, frozen: {}",
                text::thousands(parameters),
                bytes(size),
                text::thousands(trainable),
                text::thousands(parameters - trainable)
            ),
            false => "not built: the variables are made by `build((None, width))`, or when the first data \
                      comes"
                .to_owned(),
        }
    }

    fn heads(&self) -> [&'static str; 5] {
        let [name, shape] = self.heads;
        [name, shape, "parameters", "dtype", "trainable"]
    }

    fn cells(&self) -> impl Iterator<Item = [String; 5]> {
        self.rows.iter().map(|row| {
            let shape = row.shape.clone().unwrap_or_else(|| "?".to_owned());
            let (count, trainable) = match row.count {
                Some(count) => (text::thousands(count.parameters), count.is_trainable()),
                None => ("not built".to_owned(), ""),
            };
            let dtype = row.dtype.clone();
            [row.name.clone(), shape, count, dtype, trainable.to_owned()]
        })
    }

    /// A row a layer, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const CELL: &str = "padding:3px 12px;border-bottom:1px solid #80808059;text-align";
        const SIDES: [&str; 5] = ["left", "left", "right", "left", "left"];
        self.keep();
        let mut html = format!(
            "<div style=\"font-size:13px;font-weight:600\">{}</div>\
             <table style=\"{DATA_TABLE_STYLE}\"><tr>",
            escape(self.title)
        );
        // Writing to a string cannot fail.
        for (head, side) in self.heads().iter().zip(SIDES) {
            let head_style = HEAD.replace("text-align:right", &format!("text-align:{side}"));
            let _ = write!(html, "<th style=\"{head_style}\">{head}</th>");
        }
        html.push_str("</tr>");
        for cells in self.cells() {
            html.push_str("<tr>");
            for (cell, side) in cells.iter().zip(SIDES) {
                let _ = write!(html, "<td style=\"{CELL}:{side}\">{}</td>", escape(cell));
            }
            html.push_str("</tr>");
        }
        let _ = write!(
            html,
            "</table><div style=\"font-size:13px\">{}</div>",
            crate::html::prose(&self.last_line())
        );
        html
    }

    /// A line a layer.
    pub fn to_plain(&self) -> String {
        self.keep();
        let heads = self.heads().map(str::to_owned);
        let lines: Vec<[String; 5]> = std::iter::once(heads).chain(self.cells()).collect();
        let widths: [usize; 5] = std::array::from_fn(|column| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.max().unwrap_or(0)
        });
        let mut text = format!("{}\n", self.title);
        for [name, shape, count, dtype, trainable] in &lines {
            let [a, b, c, d, _] = widths;
            let line = format!("{name:<a$}  {shape:<b$}  {count:>c$}  {dtype:<d$}  {trainable}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text + &self.last_line()
    }
}

impl Drop for Summary {
    fn drop(&mut self) {
        if !self.looked_at.get() && !std::thread::panicking() {
            // A standard output that is closed shows nothing.
            let _ = writeln!(io::stdout(), "{}", self.to_plain());
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl Total {
    fn of<'a>(records: impl Iterator<Item = &'a VariableRecord>) -> Self {
        records.fold(Self::default(), |sum, record| {
            let elements = record.shape.iter().product::<usize>();
            Self {
                parameters: sum.parameters + elements,
                trainable: sum.trainable + if record.trainable { elements } else { 0 },
                bytes: sum.bytes + record.bytes,
            }
        })
    }

    fn is_trainable(self) -> &'static str {
        match (self.parameters, self.trainable) {
            (0, _) => "",
            (_, 0) => "no",
            (all, some) if all == some => "yes",
            _ => "partly",
        }
    }
}

/// The element types of some variables: `f32`.
fn dtypes<'a>(records: impl Iterator<Item = &'a VariableRecord>) -> String {
    let mut found: Vec<&str> = records.map(|record| record.dtype.as_str()).collect();
    found.sort_unstable();
    found.dedup();
    found.join(", ")
}

/// A row a layer, with the variables that have its name.
fn of_layers(layers: Vec<LayerRow>, records: &[VariableRecord]) -> Vec<Row> {
    let row = |layer: LayerRow| {
        let own = |record: &&VariableRecord| {
            let parts = record.name.rsplit_once('.');
            parts.is_some_and(|parts| parts.0 == layer.name)
        };
        let own: Vec<&VariableRecord> = records.iter().filter(own).collect();
        Row {
            count: (layer.shape.as_ref()).map(|_| Total::of(own.iter().copied())),
            dtype: dtypes(own.iter().copied()),
            name: format!("{} ({})", layer.name, layer.class),
            shape: layer.shape,
        }
    };
    layers.into_iter().map(row).collect()
}

/// A row a variable; layers that are numbered and have many variables are folded.
fn of_variables(records: &[VariableRecord]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut rest = records;
    while let Some(first) = rest.first() {
        let layers = repeated(rest);
        let count = layers.iter().map(|layer| layer.len()).sum::<usize>();
        let Some(one) = layers.first().filter(|layer| layer.len() >= FOLDED) else {
            rows.push(of_group(first.name.clone(), None, &rest[..1]));
            rest = &rest[1..];
            continue;
        };
        let last = layers.last().and_then(|layer| numbered(&layer[0].name));
        let last = last.and_then(|name| name.rsplit('.').next());
        let name = numbered(&first.name).unwrap_or_default();
        let (name, shape) = match layers.len() {
            1 => (name.to_owned(), text::count(one.len(), "variable")),
            many => (
                format!("{name}–{}", last.unwrap_or_default()),
                format!("{many} × {}", text::count(one.len(), "variable")),
            ),
        };
        rows.push(of_group(name, Some(shape), &rest[..count]));
        rest = &rest[count..];
    }
    rows
}

fn of_group(name: String, shape: Option<String>, records: &[VariableRecord]) -> Row {
    let own = || text::shape(&records[0].shape);
    Row {
        name,
        shape: Some(shape.unwrap_or_else(own)),
        count: Some(Total::of(records.iter())),
        dtype: dtypes(records.iter()),
    }
}

/// The numbered layers at the beginning that have the same variables, each a slice. Empty where the first
/// variable belongs to none.
fn repeated(records: &[VariableRecord]) -> Vec<&[VariableRecord]> {
    let mut layers: Vec<&[VariableRecord]> = Vec::new();
    let mut rest = records;
    while let Some(layer) = rest.first().and_then(|record| numbered(&record.name)) {
        let length = rest
            .iter()
            .take_while(|record| numbered(&record.name) == Some(layer))
            .count();
        let (one, others) = rest.split_at(length);
        if layers.first().is_some_and(|first| !are_alike(first, one)) {
            break;
        }
        layers.push(one);
        rest = others;
    }
    layers
}

/// Whether two layers differ in their number alone.
fn are_alike(one: &[VariableRecord], other: &[VariableRecord]) -> bool {
    let parts = |record: &VariableRecord| {
        let layer = numbered(&record.name).unwrap_or_default();
        let of = layer.rsplit_once('.').map_or("", |parts| parts.0);
        (of.to_owned(), record.name[layer.len()..].to_owned())
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            parts(one) == parts(other)
                && (&one.shape, &one.dtype, one.trainable)
                    == (&other.shape, &other.dtype, other.trainable)
        })
}

/// `encoder.layer.0` of `encoder.layer.0.output.weight`; `None` for a name without a number in it.
fn numbered(name: &str) -> Option<&str> {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(&name[..end]);
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use burn::tensor::DType;
    use stratoscope_strategy::Origin;

    use super::*;

    fn variable(name: &str, shape: &[usize], trainable: bool) -> VariableRecord {
        VariableRecord {
            trainable,
            ..VariableRecord::on_read(name, shape, DType::F32, None, Origin::default())
        }
    }

    fn layers(numbers: std::ops::Range<usize>, width: usize) -> Vec<VariableRecord> {
        let names = ["a.weight", "a.bias", "b.weight", "b.bias", "norm.weight"];
        let of = |layer: usize| {
            names.map(|name| variable(&format!("encoder.layer.{layer}.{name}"), &[width], true))
        };
        numbers.flat_map(of).collect()
    }

    fn names(records: &[VariableRecord]) -> Vec<(String, String, usize, &'static str)> {
        let rows = of_variables(records).into_iter();
        let parts = rows.map(|row| {
            let count = row.count.unwrap_or_default();
            let shape = row.shape.unwrap_or_default();
            (row.name, shape, count.parameters, count.is_trainable())
        });
        parts.collect()
    }

    #[test]
    fn equal_layers_are_folded() {
        let mut records = vec![variable("words.weight", &[10, 4], false)];
        records.extend(layers(0..3, 4));
        // Another width: not the same layers.
        records.extend(layers(3..4, 8));
        records.push(variable("head.weight", &[2, 4], true));
        let row = |name: &str, shape: &str, count, trainable| {
            (name.to_owned(), shape.to_owned(), count, trainable)
        };
        assert_eq!(
            names(&records),
            [
                row("words.weight", "[10, 4]", 40, "no"),
                row("encoder.layer.0–2", "3 × 5 variables", 60, "yes"),
                row("encoder.layer.3", "5 variables", 40, "yes"),
                row("head.weight", "[2, 4]", 8, "yes"),
            ]
        );
    }

    #[test]
    fn small_layers_are_not() {
        let records = [
            variable("layers.0.weight", &[3, 2], true),
            variable("layers.0.bias", &[3], true),
            variable("layers.1.weight", &[3, 3], true),
        ];
        let found = names(&records);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(names(&[]).is_empty());
    }
}
