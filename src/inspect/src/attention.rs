//! How a head attends to word pieces: `run.attention(layer, head, example)`.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use stratoscope_bert::taps::Taps;
use stratoscope_data::Batch;
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::Inspection;
use super::examples::pieces;

use stratoscope_bert::pattern::matches;
use stratoscope_diagnostics::problem;
use stratoscope_report::inspection::AttentionMap;

/// The name by which a layer hands out its attention probabilities, [B, N, S, S].
const PROBABILITIES: &str = "attention.self.probabilities";

/// The attention probabilities of a layer for one example.
#[derive(Default)]
struct Seen {
    /// Layers with attention in the network.
    layers: usize,
    /// [1, N, S, S]
    shape: Vec<usize>,
    elements: Vec<f32>,
}

impl Inspection<'_> {
    /// How one head attends to the word pieces of an example of the coming step, counted from 0 in the order of
    /// `run.batch()`; without dropout, as in evaluation.
    ///
    /// # Errors
    /// SC0103 for an example, a layer or a head that does not exist, and for a network without attention; SC0520 if it
    /// is interrupted, SC0907 if a device fails.
    pub fn attention(&self, layer: usize, head: usize, example: usize) -> Result<AttentionMap> {
        let Some((index, batch, row)) = self.find(example) else {
            return Err(bad(
                "example",
                example,
                match self.examples() {
                    0 => "an example, but no batch is left: the run is over".to_owned(),
                    count => format!("an example of the coming step, 0 to {}", count - 1),
                },
            ));
        };
        let one = batch.slice(row..row + 1);
        let seen = self.probabilities(index, &one, layer)?;
        let [_, heads, sequence, _] = seen.shape[..] else {
            return Err(bad(
                "layer",
                layer,
                match seen.layers {
                    0 => "a network with attention layers: this one has none that are known"
                        .to_owned(),
                    layers => format!("an encoder layer, 0 to {}", layers - 1),
                },
            ));
        };
        if head >= heads {
            return Err(bad("head", head, format!("a head, 0 to {}", heads - 1)));
        }
        let pieces = pieces(self.files, &one, 0);
        let kept: Vec<usize> = (0..sequence)
            .filter(|&at| pieces.get(at).is_some_and(|piece| piece.attended))
            .collect();
        let size = sequence * sequence;
        let of_head = &seen.elements[head * size..(head + 1) * size];
        let row_of = |&from: &usize| {
            let own = kept
                .iter()
                .map(|&to| f64::from(of_head[from * sequence + to]));
            own.collect()
        };
        let padding = sequence - kept.len();
        let mut notes = vec!["without dropout, as in evaluation".to_owned()];
        if one.choices > 1 {
            notes.push(format!("of the first of {} choices", one.choices));
        }
        if padding > 0 {
            let positions = text::count(padding, "position");
            notes.push(format!("{positions} of padding left out"));
        }
        Ok(AttentionMap {
            layer,
            head,
            row: one.rows[0],
            probabilities: kept.iter().map(row_of).collect(),
            pieces: kept.iter().map(|&at| pieces[at].text.clone()).collect(),
            notes,
        })
    }

    /// What a layer hands out for one example; nothing where there is no such layer.
    fn probabilities(&self, index: usize, one: &Batch, layer: usize) -> Result<Seen> {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (counted, sink) = (Arc::clone(&seen), Arc::clone(&seen));
        let wanted = format!("layer.{layer}.{PROBABILITIES}");
        let taps = Taps::new(
            move |name| {
                let mut seen = counted.lock().unwrap_or_else(PoisonError::into_inner);
                seen.layers += usize::from(name.ends_with(PROBABILITIES));
                matches(&wanted, name)
            },
            move |_, shape, elements: Tensor<1>| {
                let data = elements.into_data().convert::<f32>();
                let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
                seen.shape = shape.to_vec();
                seen.elements = data.iter::<f32>().collect();
            },
        );
        self.outputs(index, one, false, &[taps], "attention")?;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *seen))
    }

    /// The batch of an example of the coming step: its index, and the example's place in it.
    pub fn find(&self, example: usize) -> Option<(usize, &Batch, usize)> {
        let mut first = 0;
        for (index, batch) in self.batches.iter().enumerate() {
            if example < first + batch.size() {
                return Some((index, batch, example - first));
            }
            first += batch.size();
        }
        None
    }
}

/// SC0103
fn bad(argument: &str, given: usize, expects: String) -> Box<Diagnostic> {
    Box::new(problem::bad_value("attention", argument, given, expects))
}
