//! `run.why()`: the coming step is replayed with a tap at every output, and the first value that is not finite is named
//! with what it was computed from. In the order of a step: weights, data, forward pass, loss, backward pass.

use std::sync::PoisonError;

use stratoscope_bert::taps::Taps;
use stratoscope_data::{Batch, Labels};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::Inspection;
use super::examples::{Reading, decoded, features_text, pieces};
use super::trace::{Tapped, Trace, culprit, row, taps};
use crate::network::Network;
use crate::report::inspection::{
    ExampleView, FirstNonFinite, Phase, Statistics, TensorRow, Why, layer_of,
};
use crate::step::finite::first_non_finite;
use crate::step::forward::BatchOutputs;

/// The largest number of float16.
const LARGEST_F16: f64 = 65_504.0;
/// Weights and outputs beyond this have grown: a trained network has none.
const GROWN: f64 = 1e6;
/// The exponential of more is infinite in float32.
const LARGEST_EXPONENT: f64 = 88.0;
/// Outputs that are shown before the first one that is not finite.
const SHOWN: usize = 3;

fn largest(statistics: &Statistics) -> f64 {
    // A NaN stands for no finite element.
    statistics.min.abs().max(statistics.max.abs())
}

impl<N: Network> Inspection<'_, N> {
    /// Why the coming step has a value that is not finite; or that it has none.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub(crate) fn why(&self) -> Result<Why> {
        if self.batches.is_empty() {
            return Ok(self.answer("no batch is left: the run is over".to_owned()));
        }
        if let Some(why) = self.in_the_weights() {
            return Ok(why);
        }
        if let Some(why) = self.in_the_data() {
            return Ok(why);
        }
        let mut examples = Vec::new();
        for (index, batch) in self.batches.iter().enumerate() {
            match self.in_the_forward_pass(index, batch)? {
                Ok(own) => examples.extend(own),
                Err(why) => return Ok(why),
            }
        }
        if let Some(why) = self.in_the_loss(&examples) {
            return Ok(why);
        }
        match self.in_the_backward_pass()? {
            Some(why) => Ok(why),
            None => Ok(self.all_finite(&examples)),
        }
    }

    fn answer(&self, verdict: String) -> Why {
        Why {
            step: self.number(),
            verdict,
            first: None,
            trail: Vec::new(),
            causes: Vec::new(),
            fixes: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn in_the_weights(&self) -> Option<Why> {
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
    fn in_the_data(&self) -> Option<Why> {
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

    /// The examples of the batch; or why an output of it is not finite.
    fn in_the_forward_pass(
        &self,
        index: usize,
        batch: &Batch,
    ) -> Result<std::result::Result<Vec<ExampleView>, Why>> {
        let traces: Vec<Trace> = (0..self.step.replicas.len())
            .map(|_| Trace::default())
            .collect();
        let taps: Vec<Taps> = traces.iter().map(taps).collect();
        let outputs = self.outputs(index, batch, true, &taps, "why")?;
        for (replica, (part, own)) in outputs.iter().enumerate() {
            if own.outputs.iter().all(|output| output.is_finite()) {
                continue;
            }
            let mut trace = traces[replica]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let width = own.outputs.len() / part.size().max(1);
            trace.push(Tapped::of("outputs", &[part.size(), width], &own.outputs));
            if let Some(at) = culprit(&trace) {
                return Ok(Err(self.of_output(part, &trace, at)));
            }
        }
        Ok(Ok(self.examples_of(index, &outputs)))
    }

    fn examples_of(&self, index: usize, outputs: &BatchOutputs) -> Vec<ExampleView> {
        Reading::of(self).examples(index, outputs)
    }

    fn of_output(&self, part: &Batch, trace: &[Tapped], at: usize) -> Why {
        let Tapped { row, bad } = &trace[at];
        let (index, value) = bad.unwrap_or((0, f32::NAN));
        let own = |from: usize| row.shape.iter().skip(from).product::<usize>().max(1);
        let example = (index / own(1)).min(part.size().saturating_sub(1));
        // [B, S, …]: a position; [B, N, S, …] is of a head, and [B, C] of none.
        let position = match row.shape.len() {
            3 => Some(index % own(1) / own(2)),
            4 => Some(index % own(2) / own(3)),
            _ => None,
        };
        let pieces = pieces(self.files, part, example);
        let piece = position.and_then(|at| Some((at, pieces.get(at)?.text.clone())));
        let shown = &trace[at.saturating_sub(SHOWN)..=at];
        let (causes, fixes) = self.causes(&trace[..at], row, f64::from(value));
        let verdict = format!("`{}` is the first output that is not finite", row.name);
        Why {
            first: Some(FirstNonFinite {
                phase: Phase::Forward,
                layer: layer_of(&row.name).to_owned(),
                name: row.name.clone(),
                value: f64::from(value),
                row: part.rows.get(example).copied(),
                text: Some(self.text(part, example)),
                piece,
            }),
            trail: shown.iter().map(|tapped| tapped.row.clone()).collect(),
            causes,
            fixes,
            notes: vec!["replayed with the dropout masks of this step".to_owned()],
            ..self.answer(verdict)
        }
    }

    /// Likely causes of an output, by what was computed before it, and what helps.
    fn causes(
        &self,
        before: &[Tapped],
        here: &TensorRow,
        value: f64,
    ) -> (Vec<String>, Vec<String>) {
        let (mut causes, mut fixes) = (Vec::new(), Vec::new());
        let input = before.last().map(|tapped| &tapped.row.statistics);
        let range = input.map_or(0.0, largest);
        let weights = self.weights();
        let of_layer = |name: &str| weights.get(name).map(|row| largest(&row.statistics));
        let weight = of_layer(&here.name)
            .or_else(|| of_layer(layer_of(&here.name)))
            .unwrap_or(0.0);
        let half = self.step.policy.precision().half().is_some();
        let largest_output = largest(&here.statistics);
        if half && (value.is_infinite() || largest_output > 0.01 * LARGEST_F16) && weight < GROWN {
            causes.push(format!(
                "a number beyond float16, which ends at 65 504: the finite outputs here reach {largest_output:.3e}"
            ));
            fixes.push(
                "use `mixed_bfloat16`, which has the range of float32, or float32".to_owned(),
            );
        }
        if weight >= GROWN || range >= GROWN {
            causes.push(format!(
                "numbers that have grown: weights of the layer reach {weight:.3e}, its input {range:.3e}"
            ));
            fixes.push("lower the learning rate and set `global_clipnorm(1.0)`; go back to a step before they grew".to_owned());
        }
        let masked = before
            .last()
            .is_some_and(|it| it.bad.is_some() && !it.is_harmful());
        if masked && causes.is_empty() {
            causes.push(
                "a softmax of a line that is −∞ everywhere: nothing is left to attend to"
                    .to_owned(),
            );
            fixes.push(
                "mask with a large finite number, such as −1e9, or leave lines without a token out"
                    .to_owned(),
            );
        }
        if let Some(input) = input.filter(|_| causes.is_empty()) {
            if input.zeros > 0 {
                causes.push(format!(
                    "a division by 0 or a logarithm of 0: {} of its input are 0",
                    text::count(input.zeros as usize, "element")
                ));
                fixes.push("add a small number to what is divided by, or clamp it".to_owned());
            }
            if value.is_nan() && input.min < 0.0 {
                causes.push(format!(
                    "a root or a logarithm of a negative number: its input begins at {:.3e}",
                    input.min
                ));
                fixes.push("clamp the input at 0".to_owned());
            }
            if input.max > LARGEST_EXPONENT {
                causes.push(format!(
                    "an exponential of more than 88: its input reaches {:.3e}",
                    input.max
                ));
                fixes.push(
                    "subtract the maximum before the exponential, as a softmax does".to_owned(),
                );
            }
        }
        if causes.is_empty() {
            causes.push(
                "an operation of the layer that has no finite result for this input".to_owned(),
            );
            fixes.push(
                "hand out what the layer computes on its way with `tap(\"name\", tensor)`, and ask again".to_owned(),
            );
        }
        (causes, fixes)
    }

    fn in_the_loss(&self, examples: &[ExampleView]) -> Option<Why> {
        let example = examples.iter().find(|example| !example.loss.is_finite())?;
        let loss = self.settings.loss;
        let verdict = format!(
            "the outputs are finite, but the loss of row {} is not",
            example.row
        );
        let outputs = row("outputs", &[example.outputs.len()], &example.outputs);
        let (cause, fix) = match loss.from_logits() {
            Some(false) => (
                "a logarithm of a probability of 0",
                "let the model put out logits, and set `from_logits: true`",
            ),
            _ => (
                "outputs so large that the loss of one example is beyond float32",
                "scale the targets, lower the learning rate, or use a loss that grows slower, such as `Huber`",
            ),
        };
        Some(Why {
            first: Some(FirstNonFinite {
                phase: Phase::Loss,
                name: loss.name().to_owned(),
                layer: loss.name().to_owned(),
                value: example.loss,
                row: Some(example.row),
                text: Some(example.text.clone()),
                piece: None,
            }),
            trail: vec![outputs],
            causes: vec![cause.to_owned()],
            fixes: vec![fix.to_owned()],
            ..self.answer(verdict)
        })
    }

    /// The backward pass goes from the last variable to the first: the last one that is not finite was there first.
    fn in_the_backward_pass(&self) -> Result<Option<Why>> {
        let gradients = self.gradients()?;
        let Some(bad) = gradients.non_finite().last() else {
            return Ok(None);
        };
        let verdict = format!(
            "the loss is finite, but the gradient of `{}` is not",
            bad.name
        );
        let scaled = self.step.loss_scale.skips();
        let (cause, fix) = match scaled {
            true => (
                format!("float16 overflows under the scale of the loss, {:.0}", self.step.loss_scale.scale()),
                "nothing: the step will be skipped and the scale halved; `mixed_bfloat16` needs no scale".to_owned(),
            ),
            false => (
                "a slope that is infinite: of a root or a logarithm at 0, or of numbers that are too large".to_owned(),
                "add a small number below a root or a logarithm; lower the learning rate".to_owned(),
            ),
        };
        let value = if bad.nans > 0 {
            f64::NAN
        } else {
            f64::INFINITY
        };
        Ok(Some(Why {
            first: Some(FirstNonFinite {
                phase: Phase::Backward,
                layer: layer_of(&bad.name).to_owned(),
                name: bad.name.clone(),
                value,
                row: None,
                text: None,
                piece: None,
            }),
            trail: gradients
                .iter()
                .filter(|row| layer_of(&row.name) == layer_of(&bad.name))
                .cloned()
                .collect(),
            causes: vec![cause],
            fixes: vec![fix],
            notes: vec![
                "gradients are known by variable: the operation is one behind this variable"
                    .to_owned(),
            ],
            ..self.answer(verdict)
        }))
    }

    /// Nothing is wrong with the numbers: what the step's loss is made of.
    fn all_finite(&self, examples: &[ExampleView]) -> Why {
        let verdict =
            "every value of the step is finite: weights, data, outputs, losses and gradients"
                .to_owned();
        let mut why = self.answer(verdict);
        let sum: f64 = examples.iter().map(|example| example.loss).sum();
        let worst = examples.iter().max_by(|a, b| a.loss.total_cmp(&b.loss));
        if let Some(worst) = worst.filter(|_| sum > 0.0) {
            why.notes.push(format!(
                "of the step's loss {:.4}, row {} has a share of {:.0} %: {}",
                sum / examples.len() as f64,
                worst.row,
                100.0 * worst.loss / sum,
                text::excerpt(&worst.text, 80)
            ));
        }
        why
    }

    /// The text of an example, or its features.
    fn text(&self, part: &Batch, example: usize) -> String {
        let pieces = pieces(self.files, part, example);
        let width = part.width();
        match pieces.is_empty() {
            true => features_text(&part.features[example * width..(example + 1) * width]),
            false => decoded(self.files, &pieces),
        }
    }
}
