//! SC0123 for `name: value`: one fix for all of them in the call.

use super::super::calls::CallArgument;
use super::super::segments::Slip;
use super::Checker;
use crate::rules::{ArgumentNotNamed, Unnamed};
use crate::{CellSpan, Edit, Fix, FixKind, Place, Rule};

impl Checker<'_> {
    /// The argument is written with a colon.
    pub(super) fn colon(&mut self, argument: usize) {
        let parsed = self.parsed;
        let given = &parsed.call.arguments[argument];
        let edits = parsed.slips.iter().flat_map(|slip| match slip {
            Slip::Colon { argument, sign } => self.equals(&parsed.call.arguments[*argument], *sign),
            _ => Vec::new(),
        });
        let facts = ArgumentNotNamed {
            call: parsed.call.name.clone(),
            given: Unnamed::Colon(given.name.clone()),
            place: Place::Span(given.span),
            fix: Fix {
                kind: FixKind::Change,
                title: format!("write `{} = {}{}`", given.name, given.value, field(given)),
                edits: edits.collect(),
            },
            arguments: Vec::new(),
        };
        self.found(vec![argument], facts.diagnostic());
    }

    /// `=` in place of the sign, and the field that a loss lacks.
    fn equals(&self, argument: &CallArgument, sign: CellSpan) -> Vec<Edit> {
        // Only the sign: what stands around it stays.
        let spaced = self.text[..sign.start].ends_with(char::is_whitespace);
        let replacement = if spaced { "=" } else { " =" };
        let mut edits = vec![Edit {
            place: Place::Span(sign),
            replacement: replacement.to_owned(),
        }];
        let field = field(argument);
        if !field.is_empty() {
            let end = argument.value_span.end;
            edits.push(Edit {
                place: Place::span(end, end),
                replacement: field.to_owned(),
            });
        }
        edits
    }
}

/// What a loss without its field lacks.
fn field(argument: &CallArgument) -> &'static str {
    const WITH_LOGITS: [&str; 3] = [
        "BinaryCrossentropy",
        "CategoricalCrossentropy",
        "SparseCategoricalCrossentropy",
    ];
    if WITH_LOGITS.contains(&argument.value.as_str()) {
        " { from_logits: true }"
    } else {
        ""
    }
}
