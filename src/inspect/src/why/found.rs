//! What is said of a value or of a gradient that is not finite: its place, its example, what it was computed from.

use stratoscope_data::Batch;

use super::super::Inspection;
use super::super::examples::pieces;
use super::super::trace::{Backwards, Tapped, inputs, overflow};
use super::Traced;
use super::causes::Case;
use stratoscope_report::inspection::{FirstNonFinite, Phase, TensorRow, Why, layer_of};

/// Outputs that are shown before the first one that is not finite, where operations are not known.
const SHOWN: usize = 3;

/// The outputs of parts of the network before this one, the latest last.
fn outputs_before(seen: &[Tapped], at: usize) -> Vec<&Tapped> {
    let outputs = seen[..at]
        .iter()
        .filter(|it| !it.is_gradient && it.operation.is_none());
    let mut latest: Vec<&Tapped> = outputs.rev().take(SHOWN).collect();
    latest.reverse();
    latest
}

impl Inspection<'_> {
    /// Where an element of a tensor is: its example and, in sequences, its position. `None` for tensors that are not of
    /// examples, such as weights.
    pub(super) fn locate(
        &self,
        part: &Batch,
        tapped: &Tapped,
        element: usize,
    ) -> Option<(usize, Option<usize>)> {
        let shape = &tapped.row.shape;
        let is_parameter = matches!(tapped.row.name.as_str(), "weight" | "bias" | "table");
        // Weights are rounded too.
        let rounds = tapped.operation.as_deref() == Some("round to 16 bits") && shape.len() < 3;
        let is_parameter = (tapped.is_input && is_parameter) || rounds;
        if shape.len() < 2 || is_parameter {
            return None;
        }
        let own = |from: usize| shape.iter().skip(from).product::<usize>().max(1);
        // [B·S, …]: the rows of a product.
        if shape.len() == 2 && part.seq > 1 && shape[0] == part.size() * part.seq {
            let row = element / own(1);
            return Some((row / part.seq, Some(row % part.seq)));
        }
        // The sequences of an example's choices are one row of the batch.
        let choices = part.choices.max(1);
        if choices > 1 && shape[0] == part.size() * choices {
            let sequence = element / own(1);
            let begin = sequence % choices * (part.seq / choices);
            let position = (shape.len() == 3).then(|| begin + element % own(1) / own(2));
            return Some((sequence / choices, position));
        }
        if shape[0] != part.size() {
            return None;
        }
        // [B, S, …]: a position; [B, N, S, S] is of a head, and [B, C] of none.
        let position = match shape.len() {
            3 => Some(element % own(1) / own(2)),
            4 => Some(element % own(2) / own(3)),
            _ => None,
        };
        Some((
            (element / own(1)).min(part.size().saturating_sub(1)),
            position,
        ))
    }

    /// The first value that is not finite, of an operation or of a part of the network.
    pub(super) fn of_value(&self, own: &Traced, at: usize) -> Why {
        let tapped = &own.seen[at];
        let (index, value) = tapped.bad.unwrap_or((0, f32::NAN));
        let before = outputs_before(&own.seen, at);
        let taken: Vec<&Tapped> = match tapped.operation {
            Some(_) => inputs(&own.seen, at).collect(),
            None => before.clone(),
        };
        let mut trail: Vec<TensorRow> = taken.iter().map(|it| it.row.clone()).collect();
        trail.push(tapped.row.clone());
        let (causes, fixes) = self.causes(&Case {
            part: &own.part,
            made: tapped,
            inputs: match tapped.operation {
                Some(_) => taken,
                None => before.last().copied().into_iter().collect(),
            },
            value: f64::from(value),
        });
        let place = self.place(tapped);
        let verdict = match &tapped.operation {
            Some(operation) => {
                format!(
                    "`{operation}` in `{place}` is the first operation whose result is not finite"
                )
            }
            None => format!("`{place}` is the first output that is not finite"),
        };
        let at = self.locate(&own.part, tapped, index);
        Why {
            first: Some(self.found(own, Phase::Forward, tapped, (f64::from(value), at))),
            trail,
            causes,
            fixes,
            notes: vec!["replayed with the dropout masks of this step".to_owned()],
            ..self.answer(verdict)
        }
    }

    /// A value that is not finite and has no effect on the outputs, such as an infinity that something is divided by.
    pub(super) fn without_effect(&self, own: &Traced) -> Option<String> {
        let tapped = &own.seen[overflow(&own.seen)?];
        let (element, _) = tapped.bad?;
        let operation = tapped.operation.as_deref().unwrap_or_default();
        let row = match self.locate(&own.part, tapped, element) {
            Some((example, _)) => format!(" for row {}", own.part.rows[example]),
            None => String::new(),
        };
        Some(format!(
            "`{operation}` in `{}` is not finite{row}, which does not reach the outputs: what is divided by an infinity \
             is 0",
            self.place(tapped)
        ))
    }

    /// The name of the part of the network that something is of. A network without names has its own.
    pub(super) fn place(&self, tapped: &Tapped) -> String {
        match tapped.part.as_str() {
            "" => self.files.model_name().to_owned(),
            part => part.to_owned(),
        }
    }

    pub(super) fn found(
        &self,
        own: &Traced,
        phase: Phase,
        tapped: &Tapped,
        (value, at): (f64, Option<(usize, Option<usize>)>),
    ) -> FirstNonFinite {
        let name = self.place(tapped);
        let example = at.map(|(example, _)| example);
        let piece = at.and_then(|(example, position)| {
            let pieces = pieces(self.files, &own.part, example);
            let position = position?;
            Some((position, pieces.get(position)?.text.clone()))
        });
        FirstNonFinite {
            phase,
            layer: layer_of(&name).to_owned(),
            name,
            operation: tapped.operation.clone(),
            value,
            row: example.and_then(|it| own.part.rows.get(it).copied()),
            text: example.map(|it| self.text(&own.part, it)),
            piece,
        }
    }

    /// The first gradient that is not finite, in the order of the backward pass.
    pub(super) fn of_gradient(&self, own: &Traced, first: &Backwards) -> Why {
        let gradient = &own.seen[first.gradient];
        let (index, value) = gradient.bad.unwrap_or((0, f32::NAN));
        let by = first.by.map_or(gradient, |at| &own.seen[at]);
        let taken: Vec<&Tapped> = match (first.by, &by.operation) {
            (Some(at), Some(_)) => inputs(&own.seen, at).collect(),
            (Some(at), None) => outputs_before(&own.seen, at)
                .into_iter()
                .rev()
                .take(1)
                .collect(),
            (None, _) => Vec::new(),
        };
        let above = own.seen.iter().find(|it| {
            it.is_gradient
                && !it.is_input
                && it.call == by.call
                && (it.call != gradient.call || gradient.is_input)
        });
        let mut trail: Vec<TensorRow> = taken.iter().map(|it| it.row.clone()).collect();
        let named = |it: &Tapped, name: String| TensorRow {
            name,
            ..it.row.clone()
        };
        trail.extend(above.map(|it| named(it, format!("gradient by its result, {}", it.row.name))));
        trail.push(named(
            gradient,
            format!("gradient by {}", gradient.row.name),
        ));
        let (causes, fixes) = self.causes_of_gradient(&taken, above);
        let place = self.place(by);
        let what = match &by.operation {
            Some(operation) => format!("the backward pass of `{operation}` in `{place}`"),
            None if first.by.is_some() => format!("the backward pass of `{place}`"),
            None => "the backward pass".to_owned(),
        };
        let what = match first.by_adding {
            true => format!("{what}, or the sum with the gradients of other uses,"),
            false => what,
        };
        let of = match gradient.is_input || gradient.operation.is_some() {
            true => gradient.row.name.clone(),
            false => gradient.part.clone(),
        };
        let verdict =
            format!("the loss is finite, but the gradient by `{of}` is not: {what} made it first");
        // Of a weight all examples have a part; the one with the largest gradient behind it has the most.
        let at = self.locate(&own.part, gradient, index).or_else(|| {
            let above = above?;
            self.locate(&own.part, above, above.peak)
        });
        Why {
            first: Some(self.found(own, Phase::Backward, by, (f64::from(value), at))),
            trail,
            causes,
            fixes,
            notes: vec![
                "in the order of the backward pass, from the loss to the inputs".to_owned(),
            ],
            ..self.answer(verdict)
        }
    }
}
