//! Examples of a batch with what the model makes of them: `run.batch()`.

use std::ops::Range;

use stratoscope_data::{Batch, Labels, TokenLabels};
use stratoscope_diagnostics::Result;

use super::Inspection;
use stratoscope_arguments::class_weight::ClassWeights;
use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::largest;
use stratoscope_network::Files;
use stratoscope_report::inspection::{BatchView, ExampleView, Piece};
use stratoscope_step::across;
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::head::{Head, losses, most_probable};

/// How examples are read.
pub(super) struct Reading<'a> {
    pub files: &'a dyn Files,
    pub head: Head,
    pub loss: Loss,
    pub class_weights: Option<&'a ClassWeights>,
    pub label_names: Vec<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(coming: &Inspection<'a>) -> Self {
        let head = coming.head();
        Self {
            files: coming.files,
            head,
            loss: coming.settings.loss,
            class_weights: coming.settings.class_weights.as_ref(),
            label_names: head.label_names(coming.files),
        }
    }

    /// The examples of a batch, by what the replicas computed for their parts.
    pub(super) fn examples(&self, micro_batch: usize, outputs: &BatchOutputs) -> Vec<ExampleView> {
        let mut examples = Vec::new();
        let compared = across::losses(self.loss, outputs);
        for (replica, (part, own)) in outputs.iter().enumerate() {
            let width = (own.outputs.len() / part.size().max(1)).max(1);
            let weights = (self.class_weights, part.weights.as_deref());
            let losses = match &compared {
                Some(losses) => losses[replica].clone(),
                None => losses(self.loss, weights, &own.outputs, &part.labels),
            };
            for (row, outputs) in own
                .outputs
                .chunks_exact(width)
                .enumerate()
                .take(part.size())
            {
                let loss = losses.get(row).copied().unwrap_or(0.0);
                let example = self.example(part, row, outputs, loss);
                examples.push(ExampleView {
                    micro_batch,
                    replica,
                    ..example
                });
            }
        }
        examples
    }

    fn example(&self, part: &Batch, row: usize, outputs: &[f32], loss: f64) -> ExampleView {
        let cosine = match &part.labels {
            Labels::Apart { texts, .. } => Some([cosine_of_first_two(outputs, *texts)]),
            _ => None,
        };
        let outputs = cosine.as_ref().map_or(outputs, |it| it.as_slice());
        let probabilities = self.head.probabilities(outputs);
        let predicted_class = match self.head {
            Head::Set { .. } => None,
            _ => most_probable(&probabilities),
        };
        let name = |class: usize| {
            let name = self.label_names.get(class).cloned();
            name.unwrap_or_else(|| class.to_string())
        };
        let tokens = match (self.head, &part.labels) {
            (Head::Masked, Labels::Tokens(labels)) => {
                Some(hidden_tokens(self.files, labels, row, outputs))
            }
            (Head::Set { .. }, Labels::Sets(sets)) => {
                let names = |set: &mut dyn Iterator<Item = usize>| -> String {
                    set.map(name).collect::<Vec<_>>().join(", ")
                };
                let all = probabilities.iter().enumerate();
                let mut taken = all.filter(|(_, it)| **it > 0.5).map(|(label, _)| label);
                Some((names(&mut sets[row].iter().copied()), names(&mut taken)))
            }
            _ => None,
        };
        let predicted = match (predicted_class, &tokens) {
            (Some(class), _) => name(class),
            (_, Some((_, predicted))) => predicted.clone(),
            _ => outputs.first().map_or_else(String::new, f32::to_string),
        };
        let class = self.head.class(&part.labels, row);
        let target = match (&part.labels, class) {
            (Labels::Values(values), None) => values.get(row).copied().map(f64::from),
            _ => None,
        };
        let label = class
            .map(name)
            .or_else(|| target.map(|it| (it as f32).to_string()))
            .or_else(|| tokens.map(|(hidden, _)| hidden));
        let width = part.width();
        let features = part.features[row * width..(row + 1) * width].to_vec();
        let pieces = pieces(self.files, part, row);
        ExampleView {
            row: part.rows[row],
            text: match pieces.is_empty() {
                true => features_text(&features),
                false => sequences_text(self.files, &pieces, part.choices),
            },
            pieces,
            features,
            label,
            class,
            target,
            predicted,
            predicted_class,
            probabilities,
            outputs: outputs.to_vec(),
            loss,
            micro_batch: 0,
            replica: 0,
        }
    }
}

/// The cosine of the vectors of a text and of the one that belongs to it: what is shown of vectors that are compared.
fn cosine_of_first_two(outputs: &[f32], texts: usize) -> f32 {
    let width = outputs.len() / texts.max(1);
    let (first, second) = (&outputs[..width], &outputs[width..2 * width]);
    first.iter().zip(second).map(|(a, b)| a * b).sum()
}

/// The tokens that were hidden in an example, and those that are predicted for them.
fn hidden_tokens(
    files: &dyn Files,
    labels: &TokenLabels,
    row: usize,
    outputs: &[f32],
) -> (String, String) {
    let own = row * labels.seq..(row + 1) * labels.seq;
    let classes = labels.classes.get(own).unwrap_or_default();
    let width = (outputs.len() / classes.len().max(1)).max(1);
    let each = classes.iter().zip(outputs.chunks_exact(width));
    let pairs = each.filter_map(|(&class, row)| Some((u32::try_from(class).ok()?, largest(row))));
    let (hidden, predicted): (Vec<u32>, Vec<u32>) =
        pairs.map(|(class, best)| (class, best as u32)).unzip();
    let text = |ids: &[u32]| files.tokenizer().tokens(ids).join(" ");
    (text(&hidden), text(&predicted))
}

/// The word pieces of an example of a batch, padding included.
pub(super) fn pieces(files: &dyn Files, part: &Batch, row: usize) -> Vec<Piece> {
    if part.ids.is_empty() {
        return Vec::new();
    }
    let positions = row * part.seq..(row + 1) * part.seq;
    let ids: Vec<u32> = part.ids[positions.clone()]
        .iter()
        .map(|&id| id as u32)
        .collect();
    let tokenizer = files.tokenizer();
    let texts = tokenizer.tokens(&ids);
    let each = ids.iter().zip(texts).zip(positions);
    each.map(|((&id, text), at)| Piece {
        text,
        id,
        segment: part.type_ids[at] as u32,
        attended: part.mask[at] != 0,
        unknown: id == tokenizer.unk_id() && part.mask[at] != 0,
    })
    .collect()
}

/// The texts of the sequences of an example: of choices each with its prompt.
fn sequences_text(files: &dyn Files, pieces: &[Piece], choices: usize) -> String {
    let length = (pieces.len() / choices.max(1)).max(1);
    let texts = pieces.chunks(length).map(|own| decoded(files, own));
    texts.collect::<Vec<_>>().join(" / ")
}

/// The text of word pieces without what the model adds to each text; two texts have a bar between them.
pub(super) fn decoded(files: &dyn Files, pieces: &[Piece]) -> String {
    const ADDED: [&str; 6] = ["[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>"];
    let of_segment = |second: bool| {
        let own = pieces
            .iter()
            .filter(|piece| piece.attended && (piece.segment > 0) == second);
        let own = own.filter(|piece| !ADDED.contains(&piece.text.as_str()));
        let ids: Vec<u32> = own.map(|piece| piece.id).collect();
        match ids.is_empty() {
            true => String::new(),
            false => files.tokenizer().decode(&ids),
        }
    };
    match (of_segment(false), of_segment(true)) {
        (first, second) if second.is_empty() => first,
        (first, second) => format!("{first} | {second}"),
    }
}

/// The first features of an example as text.
pub(super) fn features_text(features: &[f32]) -> String {
    const SHOWN: usize = 12;
    let shown = features.iter().take(SHOWN).map(f32::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match features.len() > SHOWN {
        true => format!("{shown}, … ({} numbers)", features.len()),
        false => shown,
    }
}

impl Inspection<'_> {
    /// What losses are multiplied with; nothing where all examples count alike. `is_weighted`: by weights of their own.
    pub(super) fn weights_in_words(&self, is_weighted: bool) -> Option<String> {
        let of = match (self.settings.class_weights.is_some(), is_weighted) {
            (true, true) => "classes and of the examples",
            (true, false) => "classes",
            (false, true) => "examples",
            (false, false) => return None,
        };
        Some(format!("losses are multiplied by the weights of the {of}"))
    }

    /// The examples of the coming step with the predictions and losses that training will see.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn batch(&self) -> Result<BatchView> {
        self.batches_in(0..self.batches.len())
    }

    /// As [`batch`](Self::batch), the examples of one micro-batch.
    ///
    /// # Errors
    /// As there.
    pub fn micro_batch(&self, index: usize) -> Result<BatchView> {
        self.batches_in(index..index + 1)
    }

    fn batches_in(&self, range: Range<usize>) -> Result<BatchView> {
        let reading = Reading::of(self);
        let mut examples = Vec::new();
        for (index, batch) in self.batches.iter().enumerate() {
            if !range.contains(&index) {
                continue;
            }
            let outputs = self.outputs(index, batch, true, &[], "batch")?;
            examples.extend(reading.examples(index, &outputs));
        }
        let mut notes = Vec::new();
        if !self.batches.is_empty() {
            notes.push(
                "predictions, probabilities and losses are those of the training pass: with the dropout masks of this \
                 step, before its update"
                    .to_owned(),
            );
        }
        if self.batches.len() > 1 {
            notes.push(format!(
                "the step accumulates the gradients of {} micro-batches",
                self.batches.len()
            ));
        }
        let is_weighted = self.batches.iter().any(|batch| batch.weights.is_some());
        notes.extend(self.weights_in_words(is_weighted));
        Ok(BatchView {
            step: self.number(),
            loss: examples.iter().map(|example| example.loss).sum::<f64>() / examples.len() as f64,
            examples,
            notes,
        })
    }
}
