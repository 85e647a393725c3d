//! Data sets by rows, histories by records, runs by what they have made so far.

use std::borrow::Borrow;
use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use stratoscope_data::{Dataset, Example, Label};
use stratoscope_models::History;
use stratoscope_render::text;
use stratoscope_wire::MimeBundle;

use super::lists::{ByDebug, List};
use super::{LINE, Leaf, View};
use crate::display::IntoBundle;
use crate::training::drawn;

/// A data set: names of labels and source, and its rows.
pub(crate) struct DatasetView<'a>(pub &'a Dataset);

impl View for DatasetView<'_> {
    fn line(&self) -> String {
        let mut line = text::count(self.0.len(), "example");
        if self.0.num_labels() > 0 {
            // Writing to a string cannot fail.
            let _ = write!(line, ", {}", text::count(self.0.num_labels(), "label"));
        }
        if !self.0.source.is_empty() {
            let _ = write!(line, ", from {}", self.0.source);
        }
        line
    }

    fn named(&self) -> usize {
        2
    }

    fn indexed(&self) -> usize {
        self.0.len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        Some(match position.checked_sub(self.named()) {
            None if position == 0 => (
                "label_names".to_owned(),
                Box::new(List(&self.0.label_names)),
            ),
            None => (
                "source".to_owned(),
                Box::new(Leaf::new(self.0.source.clone())),
            ),
            Some(row) => {
                let example = self.0.examples.get(row)?;
                let view = ExampleView::new(example, &self.0.label_names);
                (format!("[{row}]"), Box::new(view))
            }
        })
    }

    fn rich(&self) -> MimeBundle {
        self.0.bundle()
    }
}

/// A row: its text and its label in one line, its fields when it unfolds.
pub(crate) struct ExampleView<'a> {
    example: &'a Example,
    labels: &'a [String],
    fields: ByDebug<'a>,
}

impl<'a> ExampleView<'a> {
    pub(crate) fn new(example: &'a Example, labels: &'a [String]) -> Self {
        Self {
            example,
            labels,
            fields: ByDebug::new(example),
        }
    }

    fn label(&self) -> String {
        match self.example.label {
            None => String::new(),
            Some(Label::Value(value)) => format!(" → {value}"),
            Some(Label::Class(class)) => {
                let known = self.labels.get(class).map(String::as_str);
                let name = known.or(self.example.label_name.as_deref());
                format!(" → {}", name.unwrap_or(&class.to_string()))
            }
        }
    }
}

impl View for ExampleView<'_> {
    fn line(&self) -> String {
        let label = self.label();
        let room = LINE.saturating_sub(label.chars().count() + 2);
        text::excerpt(&self.example.texts(), room) + &label
    }

    fn named(&self) -> usize {
        self.fields.named()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        self.fields.child(position)
    }

    fn rich(&self) -> MimeBundle {
        self.example.bundle()
    }
}

/// A history: its records by epoch, by execution and by optimizer step.
pub(crate) struct HistoryView<H>(pub H);

impl<H: Borrow<History>> View for HistoryView<H> {
    fn line(&self) -> String {
        let history = self.0.borrow();
        let mut line = text::count(history.epochs.len(), "epoch");
        let _ = write!(line, ", {}", text::count(history.steps.len(), "step"));
        if let Some(last) = history.epochs.last() {
            let _ = write!(line, ", loss {:.4}", last.loss);
            for metric in &last.metrics {
                let value = metric.value.map_or("–".to_owned(), |it| format!("{it:.4}"));
                let _ = write!(line, ", {} {value}", metric.name);
            }
        }
        if history.interrupted {
            line += ", interrupted";
        }
        line
    }

    fn named(&self) -> usize {
        6
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let history = self.0.borrow();
        let (name, view): (_, Box<dyn View + '_>) = match position {
            0 => ("epochs", Box::new(Records(&history.epochs))),
            1 => ("executions", Box::new(Records(&history.executions))),
            2 => ("steps", Box::new(Records(&history.steps))),
            3 => ("edits", Box::new(Records(&history.edits))),
            4 => ("devices", Box::new(Leaf::new(history.devices.clone()))),
            5 => ("plot", Box::new(Curves(history))),
            _ => return None,
        };
        Some((name.to_owned(), view))
    }

    fn rich(&self) -> MimeBundle {
        self.0.borrow().bundle()
    }
}

/// The curves of a history.
struct Curves<'a>(&'a History);

impl View for Curves<'_> {
    fn line(&self) -> String {
        "its curves, as a rich view".to_owned()
    }

    fn rich(&self) -> MimeBundle {
        drawn(self.0.picture())
    }
}

/// Records of a history. Each is written as JSON only when it is shown.
struct Records<'a, T>(&'a [T]);

impl<T: Serialize> View for Records<'_, T> {
    fn line(&self) -> String {
        text::count(self.0.len(), "record")
    }

    fn indexed(&self) -> usize {
        self.0.len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let record = Json::of(self.0.get(position)?);
        Some((format!("[{position}]"), Box::new(record)))
    }
}

/// A value as JSON.
pub(crate) struct Json(Value);

impl Json {
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_value(value).unwrap_or_default())
    }
}

impl View for Json {
    fn line(&self) -> String {
        JsonPart(&self.0).line()
    }

    fn named(&self) -> usize {
        JsonPart(&self.0).named()
    }

    fn indexed(&self) -> usize {
        JsonPart(&self.0).indexed()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        JsonPart(&self.0).part(position)
    }
}

struct JsonPart<'a>(&'a Value);

impl<'a> JsonPart<'a> {
    fn part(&self, position: usize) -> Option<(String, Box<dyn View + 'a>)> {
        Some(match self.0 {
            Value::Object(fields) => {
                let (name, value) = fields.iter().nth(position)?;
                (name.clone(), Box::new(JsonPart(value)))
            }
            Value::Array(elements) => {
                let value = elements.get(position)?;
                (format!("[{position}]"), Box::new(JsonPart(value)))
            }
            _ => return None,
        })
    }
}

impl View for JsonPart<'_> {
    fn line(&self) -> String {
        match self.0 {
            Value::Object(fields) => {
                let parts = fields
                    .iter()
                    .filter(|(_, value)| value.is_number() || value.is_string());
                let parts: Vec<String> = parts
                    .map(|(name, value)| format!("{name}: {value}"))
                    .collect();
                parts.join(", ")
            }
            Value::Array(elements) => text::count(elements.len(), "element"),
            Value::Null => "–".to_owned(),
            other => other.to_string(),
        }
    }

    fn named(&self) -> usize {
        self.0.as_object().map_or(0, serde_json::Map::len)
    }

    fn indexed(&self) -> usize {
        self.0.as_array().map_or(0, Vec::len)
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        self.part(position)
    }
}
