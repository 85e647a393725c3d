//! `run.why()`: the coming step is replayed with taps after every operation, forward and backward, and the first value that
//! is not finite is named with what it was computed from. In the order of a step: weights, data, forward pass, loss, backward
//! pass. `elsewhere` looks at what is not of the layers, `found` says what is known of a value, `causes` what the likely cause is,
//! `spike` where numbers have grown in a step that is finite.

mod causes;
mod elsewhere;
mod found;
mod spike;

use stratoscope_bert::taps::Taps;
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::Inspection;
use super::examples::{Reading, decoded, features_text, pieces};
use super::trace::{Tapped, Trace, first_gradient, of_layers, of_operations, origin, seen};

use stratoscope_report::inspection::{ExampleView, FirstNonFinite, Phase, Why, layer_of};
use stratoscope_step::forward::{BatchOutputs, PartOutputs};

pub use spike::WORTH_A_LOOK;

/// The share of the largest output by which single operations may differ from fused ones.
const SAME: f64 = 1e-3;

/// What a replica computed for its part of a batch, and all that was seen of it.
struct Traced {
    part: Batch,
    outputs: PartOutputs,
    seen: Vec<Tapped>,
}

/// What is wrong with a batch.
#[derive(Default)]
struct InBatch {
    /// A value of the forward pass or a loss.
    forward: Option<Why>,
    /// A gradient.
    backward: Option<Why>,
    examples: Vec<ExampleView>,
    note: Option<String>,
}

impl Inspection<'_> {
    /// Why the coming step has a value that is not finite; or that it has none.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn why(&self) -> Result<Why> {
        if self.batches.is_empty() {
            return Ok(self.answer("no batch is left: the run is over".to_owned()));
        }
        if let Some(why) = self.in_the_weights() {
            return Ok(why);
        }
        if let Some(why) = self.in_the_data() {
            return Ok(why);
        }
        let (mut examples, mut backward) = (Vec::new(), None);
        let mut notes = Vec::new();
        for (index, batch) in self.batches.iter().enumerate() {
            let found = self.in_the_batch(index, batch)?;
            notes.extend(found.note);
            if let Some(mut why) = found.forward {
                why.notes.extend(notes);
                return Ok(why);
            }
            examples.extend(found.examples);
            backward = backward.or(found.backward);
        }
        let backward = match backward {
            Some(why) => Some(why),
            None => self.in_the_backward_pass()?,
        };
        let mut why = backward.unwrap_or_else(|| self.all_finite(&examples));
        why.notes.extend(notes);
        Ok(why)
    }

    fn answer(&self, verdict: String) -> Why {
        Why {
            step: self.number(),
            verdict,
            first: None,
            grown: None,
            trail: Vec::new(),
            causes: Vec::new(),
            fixes: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A batch forward and backward, watched by operation: what each replica computed for its part, and what was seen.
    fn traced(&self, index: usize, batch: &Batch) -> Result<Vec<Traced>> {
        let replicas = self.step.replicas.len();
        let traces: Vec<Trace> = (0..replicas).map(|_| Trace::default()).collect();
        let taps: Vec<Taps> = traces.iter().map(of_operations).collect();
        let outputs = self.watched(index, batch, &taps, "why")?;
        let each = outputs.into_iter().zip(&traces);
        Ok(each
            .map(|((part, outputs), trace)| Traced {
                part,
                outputs,
                seen: seen(trace),
            })
            .collect())
    }

    /// Why a value of the batch is not finite, in the forward pass or in the loss. And why a gradient is not; that is only
    /// of interest where all losses of the step are.
    fn in_the_batch(&self, index: usize, batch: &Batch) -> Result<InBatch> {
        let traced = self.traced(index, batch)?;
        let mut found = InBatch::default();
        for own in &traced {
            if let Some(why) = self.in_the_labels(own) {
                found.forward = Some(why);
                return Ok(found);
            }
            if !own.outputs.outputs.iter().all(|output| output.is_finite())
                && let Some(at) = origin(&own.seen)
            {
                found.forward = Some(self.of_value(own, at));
                return Ok(found);
            }
        }
        // With the operations of the run itself; they may be others on the CPU.
        let outputs = self.outputs(index, batch, true, &[], "why")?;
        found.examples = Reading::of(self).examples(index, &outputs);
        found.forward = self.in_the_loss(&found.examples, &traced);
        found.note = self.fused(index, batch, &traced, &outputs, &mut found.forward)?;
        if found.forward.is_none() {
            let backward = |own: &Traced| {
                let first = first_gradient(&own.seen)?;
                Some(self.of_gradient(own, &first))
            };
            found.backward = traced.iter().find_map(backward);
            if found.backward.is_none() && found.note.is_none() {
                found.note = traced.iter().find_map(|own| self.without_effect(own));
            }
        }
        Ok(found)
    }

    /// What the fused operations of the CPU give beside the single ones that were looked at. Where they alone have a value
    /// that is not finite, the layer is named.
    fn fused(
        &self,
        index: usize,
        batch: &Batch,
        traced: &[Traced],
        outputs: &BatchOutputs,
        forward: &mut Option<Why>,
    ) -> Result<Option<String>> {
        let mut difference = 0.0_f64;
        let mut largest = 0.0_f64;
        for (own, (part, fused)) in traced.iter().zip(outputs) {
            if forward.is_none() && !fused.outputs.iter().all(|output| output.is_finite()) {
                *forward = self.of_fused(index, batch, part)?;
                return Ok(None);
            }
            for (single, fused) in own.outputs.outputs.iter().zip(&fused.outputs) {
                difference = difference.max(f64::from((single - fused).abs()));
                largest = largest.max(f64::from(fused.abs()));
            }
        }
        let differs = difference > SAME * largest.max(1.0);
        Ok(differs.then(|| {
            format!(
                "operations were computed one by one, and their outputs differ from those of the run's own, fused \
                 operations by up to {difference:.3e}, of {largest:.3e}"
            )
        }))
    }

    fn of_fused(&self, index: usize, batch: &Batch, part: &Batch) -> Result<Option<Why>> {
        let replicas = self.step.replicas.len();
        let traces: Vec<Trace> = (0..replicas).map(|_| Trace::default()).collect();
        let taps: Vec<Taps> = traces.iter().map(of_layers).collect();
        let outputs = self.watched(index, batch, &taps, "why")?;
        let mut each = outputs.into_iter().zip(&traces);
        let Some(((part, outputs), trace)) = each.find(|it| it.0.0.rows == part.rows) else {
            return Ok(None);
        };
        let traced = Traced {
            part,
            outputs,
            seen: seen(trace),
        };
        Ok(origin(&traced.seen).map(|at| {
            let mut why = self.of_value(&traced, at);
            why.notes.push(
                "the same operations computed one by one are finite: the fused ones of the CPU are not"
                    .to_owned(),
            );
            why
        }))
    }

    /// What only the sum over micro-batches and replicas shows: a variable whose gradient is not finite.
    fn in_the_backward_pass(&self) -> Result<Option<Why>> {
        let gradients = self.gradients()?;
        let Some(bad) = gradients.non_finite().last() else {
            return Ok(None);
        };
        let verdict = format!(
            "the gradients of all examples are finite, but their sum for `{}` is not",
            bad.name
        );
        let (causes, fixes) = self.causes_of_gradient(&[], None);
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
                operation: None,
                value,
                row: None,
                text: None,
                piece: None,
            }),
            trail: vec![bad.clone()],
            causes,
            fixes,
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
                "row {} (\"{}\") contributes {:.0} % of the loss of this step, {:.4}",
                worst.row,
                text::excerpt(&worst.text, 80),
                100.0 * worst.loss / sum,
                sum / examples.len() as f64
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
