//! What training passes say of each example, epoch by epoch: recorded by the loop, read by `run.data_map()`.

use std::sync::Arc;

use stratoscope_data::Encoded;

use super::examples::features_text;
use stratoscope_network::Files;
use stratoscope_report::inspection::{DataMap, MappedExample};
use stratoscope_step::changed::StepChange;
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::head::{Head, most_probable};

/// What is kept at most; a longer run on more examples is recorded as far as this goes.
const MOST_BYTES: usize = 256 << 20;

/// What a training pass said of an example in an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    /// The probability of the label; NaN where the example was not seen.
    of_label: f32,
    /// The most probable class.
    predicted: u32,
    /// Its probability.
    of_predicted: f32,
}

/// What is written of an example and an epoch.
pub const SAVED_BYTES: usize = 12;

const UNSEEN: Said = Said {
    of_label: f32::NAN,
    predicted: 0,
    of_predicted: f32::NAN,
};

/// What all passes have said. A clone shares the epochs, so that a snapshot of a run costs no copy of them.
#[derive(Clone, Debug, Default)]
pub struct ExampleLog {
    /// By epoch and row; an epoch that was taken up later has its own number.
    epochs: Vec<(u64, Arc<Vec<Said>>)>,
    /// Whether an epoch was not recorded for want of room.
    is_full: bool,
}

impl ExampleLog {
    /// Records the outputs of a batch of an epoch. `rows`: the examples of the data set. Costs a softmax an example on
    /// the host, where the outputs are anyway.
    pub fn record(&mut self, epoch: u64, rows: usize, head: Head, outputs: &BatchOutputs) {
        if matches!(head, Head::Number | Head::Words | Head::Span) {
            return;
        }
        if self.epochs.last().is_none_or(|(last, _)| *last != epoch) {
            let bytes = (self.epochs.len() + 1) * rows * size_of::<Said>();
            self.is_full |= bytes > MOST_BYTES;
            if self.is_full {
                return;
            }
            self.epochs.push((epoch, Arc::new(vec![UNSEEN; rows])));
        }
        let Some((_, said)) = self.epochs.last_mut() else {
            return;
        };
        // Shared with a snapshot, it is copied here, once.
        let said = Arc::make_mut(said);
        for (part, own) in outputs {
            let width = (own.outputs.len() / part.size().max(1)).max(1);
            let each = part.rows.iter().zip(own.outputs.chunks_exact(width));
            for (place, (&row, outputs)) in each.enumerate() {
                let probabilities = head.probabilities(outputs);
                let class = head.class(&part.labels, place);
                let of_label = class.and_then(|class| probabilities.get(class));
                let (Some(&of_label), Some(predicted), Some(said)) =
                    (of_label, most_probable(&probabilities), said.get_mut(row))
                else {
                    continue;
                };
                *said = Said {
                    of_label: of_label as f32,
                    predicted: predicted as u32,
                    of_predicted: probabilities[predicted] as f32,
                };
            }
        }
    }

    /// What was said in each epoch, as bytes for a checkpoint: three 32-bit words an example, little-endian.
    pub fn saved(&self) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
        self.epochs.iter().map(|(epoch, said)| {
            let words = said.iter().flat_map(|it| {
                let of_label = it.of_label.to_bits();
                [of_label, it.predicted, it.of_predicted.to_bits()]
            });
            (*epoch, words.flat_map(u32::to_le_bytes).collect())
        })
    }

    /// What [`Self::saved`] has written, in the order of the epochs.
    pub fn from_saved<'b>(
        epochs: impl IntoIterator<Item = (u64, &'b [u8])>,
        is_full: bool,
    ) -> Self {
        let word = |bytes: &[u8], at: usize| {
            let own = &bytes[4 * at..4 * at + 4];
            u32::from_le_bytes([own[0], own[1], own[2], own[3]])
        };
        let said = |bytes: &[u8]| Said {
            of_label: f32::from_bits(word(bytes, 0)),
            predicted: word(bytes, 1),
            of_predicted: f32::from_bits(word(bytes, 2)),
        };
        let each = epochs.into_iter().map(|(epoch, bytes)| {
            let said = bytes.chunks_exact(SAVED_BYTES).map(said);
            (epoch, Arc::new(said.collect()))
        });
        Self {
            epochs: each.collect(),
            is_full,
        }
    }

    /// Whether an epoch was not recorded for want of room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The memory that it takes, at most.
    pub fn bytes(&self) -> u64 {
        let epochs = self.epochs.iter();
        epochs
            .map(|(_, said)| size_of_val(said.as_slice()) as u64)
            .sum()
    }

    /// The epochs in which an example was seen with a number for its label.
    fn of_row(&self, row: usize) -> Vec<Said> {
        let said = self.epochs.iter().filter_map(|(_, said)| said.get(row));
        said.copied().filter(|it| it.of_label.is_finite()).collect()
    }
}

/// The map of a data set by what was recorded, with the labels that a run has changed.
pub fn data_map(
    log: &ExampleLog,
    (data, changes): (&Encoded, Option<&StepChange>),
    files: &dyn Files,
    head: Head,
) -> DataMap {
    let names = head.label_names(files);
    let name = |class: usize| {
        names
            .get(class)
            .cloned()
            .unwrap_or_else(|| class.to_string())
    };
    let mut by_row: Vec<usize> = (0..data.len()).collect();
    by_row.sort_by_key(|&position| data.get(position).map(|example| example.index));
    let mut examples = Vec::new();
    for position in by_row {
        let Some(encoded) = data.get(position) else {
            continue;
        };
        let said = log.of_row(encoded.index);
        let changed = changes.and_then(|changes| changes.label(encoded.index));
        let labels = stratoscope_data::Labels::of(changed.or(encoded.label));
        let (Some(class), false) = (head.class(&labels, 0), said.is_empty()) else {
            continue;
        };
        let text = shown_text(files, encoded);
        examples.push(mapped(encoded.index, text, class, &said, &name));
    }
    let last = |row: usize| log.of_row(row).last().copied();
    suspect(&mut examples, names.len(), &last);
    DataMap {
        examples,
        epochs: log.epochs.len(),
        notes: notes(log, head),
    }
}

/// The text of a tokenized example, or its first numbers.
pub fn shown_text(files: &dyn Files, example: &stratoscope_data::EncodedExample) -> String {
    match example.features.is_empty() {
        true => text_of(files, example),
        false => features_text(&example.features),
    }
}

/// The text of a tokenized example without what the model adds to it.
fn text_of(files: &dyn Files, example: &stratoscope_data::EncodedExample) -> String {
    let tokenizer = files.tokenizer();
    let texts = tokenizer.tokens(&example.ids);
    let each = example.ids.iter().zip(&example.type_ids).zip(texts);
    let pieces = each.map(
        |((&id, &segment), text)| stratoscope_report::inspection::Piece {
            text,
            id,
            segment,
            attended: true,
            unknown: id == tokenizer.unk_id(),
        },
    );
    super::examples::decoded(files, &pieces.collect::<Vec<_>>())
}

fn mapped(
    row: usize,
    text: String,
    class: usize,
    said: &[Said],
    name: &dyn Fn(usize) -> String,
) -> MappedExample {
    let count = said.len() as f64;
    let of_label = || said.iter().map(|it| f64::from(it.of_label));
    let confidence = of_label().sum::<f64>() / count;
    let squares: f64 = of_label().map(|it| (it - confidence).powi(2)).sum();
    let right = said.iter().filter(|it| it.predicted as usize == class);
    let times = |class: u32| said.iter().filter(|it| it.predicted == class).count();
    // Of equally frequent answers the latest one.
    let predicted = said
        .iter()
        .map(|it| it.predicted)
        .max_by_key(|&class| times(class));
    let predicted_class = predicted.map_or(class, |class| class as usize);
    MappedExample {
        row,
        text,
        label: name(class),
        class,
        confidence,
        variability: (squares / count).sqrt(),
        correctness: right.count() as f64 / count,
        predicted_class,
        predicted: name(predicted_class),
        suspected: false,
        epochs: said.len(),
    }
}

/// Marks examples whose label training passes contradict: another class was predicted in more than half of the epochs,
/// and in the last one with a probability at least as high as examples that have this class as their label get for it
/// on average.
fn suspect(examples: &mut [MappedExample], classes: usize, last: &dyn Fn(usize) -> Option<Said>) {
    let mut sums = vec![(0.0, 0_usize); classes];
    for example in examples.iter() {
        if let (Some(sum), Some(said)) = (sums.get_mut(example.class), last(example.row)) {
            sum.0 += f64::from(said.of_label);
            sum.1 += 1;
        }
    }
    let usual = |class: usize| match sums.get(class) {
        Some(&(sum, count)) if count > 0 => sum / count as f64,
        _ => f64::INFINITY,
    };
    for example in examples {
        let other = example.predicted_class != example.class && example.correctness < 0.5;
        let said = last(example.row);
        example.suspected = other
            && said.is_some_and(|said| {
                let class = said.predicted as usize;
                class != example.class && f64::from(said.of_predicted) >= usual(class)
            });
    }
}

fn notes(log: &ExampleLog, head: Head) -> Vec<String> {
    let mut notes = vec![
        "evidence of the training set: probabilities of the training passes, with dropout, while the weights changed; \
         a model that has learned its examples by heart is sure of wrong labels too"
            .to_owned(),
    ];
    match (head, log.epochs.len()) {
        (Head::Number, _) => {
            notes.push("this model predicts a number: no label has a probability".to_owned())
        }
        (Head::Span, _) => notes.push(
            "this model answers with a part of a text: no label has a probability".to_owned(),
        ),
        (Head::Words, _) => {
            notes.push("this model answers each word: an example has no single label".to_owned())
        }
        (_, 0) => notes.push("no batch was made yet".to_owned()),
        (_, 1) => notes.push("one epoch only: variability needs at least two".to_owned()),
        _ => {}
    }
    if log.is_full {
        notes.push(format!(
            "recorded up to epoch {} only: more does not fit into {} MiB",
            log.epochs.last().map_or(0, |(epoch, _)| epoch + 1),
            MOST_BYTES >> 20
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use stratoscope_data::{Batch, Labels};

    use super::*;
    use stratoscope_step::forward::PartOutputs;

    fn batch(rows: &[usize], classes: &[i32], outputs: &[f32]) -> BatchOutputs {
        let part = Batch {
            ids: Vec::new(),
            mask: Vec::new(),
            type_ids: Vec::new(),
            features: vec![0.0; rows.len()],
            labels: Labels::Classes(classes.to_vec()),
            rows: rows.to_vec(),
            seq: 0,
            choices: 1,
            by_worker: None,
            weights: None,
        };
        let outputs = PartOutputs {
            outputs: outputs.to_vec(),
            loss: 0.0,
            squares: None,
        };
        vec![(part, outputs)]
    }

    const HEAD: Head = Head::Classes { are_logits: false };

    #[test]
    fn confidence_and_variability_are_mean_and_deviation_over_the_epochs() {
        let mut log = ExampleLog::default();
        for (epoch, yes) in [(0, 0.2), (1, 0.4), (2, 0.9)] {
            log.record(epoch, 2, HEAD, &batch(&[1], &[1], &[1.0 - yes, yes]));
        }
        let said = log.of_row(1);
        assert!(log.of_row(0).is_empty() && log.of_row(9).is_empty());
        let name = |class: usize| class.to_string();
        let found = mapped(1, String::new(), 1, &said, &name);
        assert!((found.confidence - 0.5).abs() < 1e-6, "{found:?}");
        // √((0.09 + 0.01 + 0.16) / 3)
        assert!((found.variability - (0.26_f64 / 3.0).sqrt()).abs() < 1e-6);
        assert!((found.correctness - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((found.predicted_class, found.epochs), (0, 3));
    }

    #[test]
    fn a_clone_is_not_changed_by_what_follows() {
        let mut log = ExampleLog::default();
        log.record(0, 2, HEAD, &batch(&[0], &[1], &[0.5, 0.5]));
        let before = log.clone();
        log.record(0, 2, HEAD, &batch(&[1], &[1], &[0.25, 0.75]));
        assert!(before.of_row(1).is_empty() && log.of_row(1).len() == 1);
        log.record(0, 2, Head::Number, &batch(&[0], &[1], &[9.0]));
        assert_eq!(log.epochs.len(), 1);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut log = ExampleLog::default();
        log.record(
            1,
            3,
            HEAD,
            &batch(&[0, 2], &[1, 0], &[0.5, 0.5, 0.25, 0.75]),
        );
        log.record(2, 3, HEAD, &batch(&[1], &[1], &[0.125, 0.875]));
        let written: Vec<(u64, Vec<u8>)> = log.saved().collect();
        assert_eq!(written[0].1.len(), 3 * SAVED_BYTES);
        let epochs = written.iter().map(|(epoch, bytes)| (*epoch, &bytes[..]));
        let read = ExampleLog::from_saved(epochs, true);
        assert!(read.is_full());
        for row in 0..3 {
            assert_eq!(read.of_row(row), log.of_row(row));
        }
        assert!(read.epochs.iter().map(|it| it.0).eq([1, 2]));
    }

    #[test]
    fn what_is_not_finite_is_not_counted() {
        let mut log = ExampleLog::default();
        let logits = Head::Classes { are_logits: true };
        log.record(0, 1, logits, &batch(&[0], &[0], &[f32::NAN, 1.0]));
        assert!(log.of_row(0).is_empty());
        // Neither is a row or a class that does not exist.
        log.record(1, 1, HEAD, &batch(&[5], &[0], &[0.5, 0.5]));
        log.record(2, 1, HEAD, &batch(&[0], &[7], &[0.5, 0.5]));
        assert!(log.of_row(0).is_empty() && log.of_row(5).is_empty());
    }
}
