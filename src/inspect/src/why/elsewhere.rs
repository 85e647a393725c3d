//! What can be wrong beside the layers: weights before the step, features and labels, the loss of finite outputs.

use stratoscope_data::Labels;
use stratoscope_render::text;

use super::super::Inspection;
use super::super::trace::{Tapped, inputs, origin};
use super::Traced;

use stratoscope_report::inspection::{
    ExampleView, FirstNonFinite, Phase, TensorRow, Why, layer_of,
};
use stratoscope_step::finite::first_non_finite;
use stratoscope_step::traced::outside;

/// The first operation of the loss whose result is not finite.
fn loss_operation(seen: &[Tapped]) -> Option<usize> {
    let of_loss = |it: &Tapped| it.part == "loss" && !it.is_input && !it.is_gradient;
    seen.iter().position(|it| of_loss(it) && it.bad.is_some())
}

impl Inspection<'_> {
    pub(super) fn in_the_weights(&self) -> Option<Why> {
        let found = first_non_finite(self.step.replicas.first())?;
        let verdict = format!(
            "the weight `{}` is not finite before the step computes anything",
            found.name
        );
        let causes = match self.step.steps {
            0 => vec!["the weights that the run began with: the checkpoint, or what was done to them before".to_owned()],
            _ => vec!["an update of an earlier step: a rate that is too high, or a gradient that was not clipped".to_owned()],
        };
        Some(Why {
            first: Some(FirstNonFinite {
                phase: Phase::Weights,
                layer: layer_of(&found.name).to_owned(),
                operation: None,
                name: found.name,
                value: found.value,
                row: None,
                text: None,
                piece: None,
            }),
            causes,
            fixes: vec!["load or restore weights that are finite, then lower the rate or set `global_clipnorm(1.0)`".to_owned()],
            ..self.answer(verdict)
        })
    }

    /// Features and labels that are not finite.
    pub(super) fn in_the_data(&self) -> Option<Why> {
        for batch in self.batches {
            let width = batch.width();
            let feature = batch
                .features
                .iter()
                .position(|feature| !feature.is_finite());
            let label = match &batch.labels {
                Labels::Values(values) => values.iter().position(|value| !value.is_finite()),
                _ => None,
            };
            let (row, name, value) = match (feature, label, &batch.labels) {
                (Some(at), ..) => {
                    let name = format!("feature {}", at % width.max(1));
                    (at / width.max(1), name, batch.features[at])
                }
                (None, Some(at), Labels::Values(values)) => (at, "label".to_owned(), values[at]),
                _ => continue,
            };
            let verdict = format!("the {name} of row {} is not finite", batch.rows[row]);
            return Some(Why {
                first: Some(FirstNonFinite {
                    phase: Phase::Data,
                    layer: name.clone(),
                    operation: None,
                    name,
                    value: f64::from(value),
                    row: Some(batch.rows[row]),
                    text: Some(self.text(batch, row)),
                    piece: None,
                }),
                causes: vec!["a missing or a divided value in the source of the data".to_owned()],
                fixes: vec![
                    "remove such rows with `data.filter(…)`, or fill them in with `data.map(…)`"
                        .to_owned(),
                ],
                ..self.answer(verdict)
            });
        }
        None
    }

    /// A class for which the network has no output.
    pub(super) fn in_the_labels(&self, own: &Traced) -> Option<Why> {
        let outputs = own.outputs.outputs.len() / own.part.size().max(1);
        let (row, class) = outside(self.settings.loss, &own.part.labels, outputs)?;
        let verdict = format!(
            "the label of row {} is class {class}, and the network puts out {} for classes 0 to {}",
            own.part.rows[row],
            text::count(outputs, "number"),
            outputs.saturating_sub(1)
        );
        Some(Why {
            first: Some(FirstNonFinite {
                phase: Phase::Data,
                name: "label".to_owned(),
                layer: "label".to_owned(),
                operation: Some("pick by label".to_owned()),
                value: class as f64,
                row: Some(own.part.rows[row]),
                text: Some(self.text(&own.part, row)),
                piece: None,
            }),
            causes: vec![format!(
                "a label out of range: classes are counted from 0, and there are {outputs}"
            )],
            fixes: vec![
                "make the last layer as wide as there are classes, or map the labels to 0, 1, …"
                    .to_owned(),
            ],
            ..self.answer(verdict)
        })
    }

    pub(super) fn in_the_loss(&self, examples: &[ExampleView], traced: &[Traced]) -> Option<Why> {
        let example = examples.iter().find(|example| !example.loss.is_finite())?;
        let loss = self.settings.loss;
        let verdict = format!(
            "the outputs are finite, but the loss of row {} is not",
            example.row
        );
        // The operation of the loss, and what it took.
        let of_operation = traced.iter().find_map(|own| {
            let at = origin(&own.seen).or_else(|| loss_operation(&own.seen))?;
            let tapped = &own.seen[at];
            (tapped.part == "loss").then(|| {
                let taken = inputs(&own.seen, at).map(|it| it.row.clone());
                let rows: Vec<TensorRow> = taken.chain([tapped.row.clone()]).collect();
                (tapped.operation.clone(), rows)
            })
        });
        let (operation, trail) = of_operation.unwrap_or_default();
        let (cause, fix) = match loss.from_logits() {
            Some(false) => (
                "a logarithm of a probability of 0",
                "let the model put out logits, and set `from_logits: true`",
            ),
            _ => (
                "outputs or a label so large that the loss of one example is beyond float32",
                "scale the targets, lower the learning rate, or use a loss that grows slower, such as `Huber`",
            ),
        };
        Some(Why {
            first: Some(FirstNonFinite {
                phase: Phase::Loss,
                name: loss.name().to_owned(),
                layer: loss.name().to_owned(),
                operation,
                value: example.loss,
                row: Some(example.row),
                text: Some(example.text.clone()),
                piece: None,
            }),
            trail,
            causes: vec![cause.to_owned()],
            fixes: vec![fix.to_owned()],
            ..self.answer(verdict)
        })
    }
}
