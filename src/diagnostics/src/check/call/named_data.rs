//! Data with a name, as others have it: `fit!(model, x = train, epochs = 3)`.

use super::super::kind;
use super::Checker;
use crate::{Edit, Fix, Place};
use stratoscope_render::text;

/// Whether an argument has the name that others give to the data.
pub(super) fn is_named_data(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "x",
        "data",
        "dataset",
        "train",
        "train_data",
        "train_dataset",
        "training_data",
        "inputs",
    ];
    NAMES.contains(&name)
}

impl Checker<'_> {
    /// `fit!(model, x = train, epochs = 3)` and `fit!(model, x = rows, y = labels)` as they are written here.
    pub(super) fn named_data(&self) -> Option<Fix> {
        let call = &self.parsed.call;
        let features = call.arguments.iter().find(|it| is_named_data(&it.name))?;
        let labels = call.argument("y");
        let operand = match labels {
            Some(labels) if self.are_texts(&features.value) => {
                kind::from_rows(&features.value, &labels.value)
            }
            Some(labels) => kind::from_arrays(&features.value, &labels.value),
            None => features.value.clone(),
        };
        // The data is the first behind the model.
        let is_first = call
            .arguments
            .first()
            .is_some_and(|it| it.name == features.name);
        let mut edits = vec![Edit {
            place: Place::Span(features.span),
            replacement: operand.clone(),
        }];
        if let Some(labels) = labels {
            edits.push(Edit {
                place: Place::Span(labels.drop_span),
                replacement: String::new(),
            });
        }
        let title = format!(
            "write `{}!({}, {}, …)`",
            call.name,
            call.operands.last()?.text,
            text::excerpt(&operand, 60)
        );
        Some(Fix {
            kind: crate::FixKind::Change,
            title,
            edits: if is_first { edits } else { Vec::new() },
        })
    }
}
