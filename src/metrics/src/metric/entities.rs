//! Precision, recall and F1 of entities, over the whole split: an entity counts as right if its words and its type are
//! right. Source: the script `conlleval` of CoNLL-2000; seqeval's defaults (micro average).

use stratoscope_data::{TagScheme, TokenLabels};

use super::Tally;
use super::applicability::{Answers, Fit};
use super::correct::largest;
use super::measure::Measure;

/// Entities of a type: labeled, predicted, right.
pub type OfType = [u64; 3];

/// Adds the entities of a batch. `outputs` are [B, S·C].
pub(super) fn add(counts: &mut Vec<OfType>, labels: &TokenLabels, classes: usize, outputs: &[f32]) {
    let Some(scheme) = &labels.scheme else { return };
    counts.resize(counts.len().max(scheme.types().len()), [0; 3]);
    let width = labels.seq * classes;
    if width == 0 {
        return;
    }
    let rows = labels
        .classes
        .chunks(labels.seq)
        .zip(outputs.chunks_exact(width));
    for (own, outputs) in rows {
        let counted = own.iter().zip(outputs.chunks_exact(classes));
        let counted = counted.filter(|(class, _)| **class != TokenLabels::IGNORED);
        let answers = counted.map(|(&class, row)| (class as usize, largest(row)));
        let (labels, predicted): (Vec<usize>, Vec<usize>) = answers.unzip();
        add_sentence(counts, scheme, &labels, &predicted);
    }
}

/// Adds the entities of a sentence, by the tags of its words.
fn add_sentence(counts: &mut [OfType], scheme: &TagScheme, labels: &[usize], predicted: &[usize]) {
    let (labels, predicted) = (scheme.entities(labels), scheme.entities(predicted));
    for entity in &labels {
        counts[entity.of_type][0] += 1;
        counts[entity.of_type][2] += u64::from(predicted.contains(entity));
    }
    for entity in &predicted {
        counts[entity.of_type][1] += 1;
    }
}

/// Adds what another replica has counted.
pub(super) fn merge(counts: &mut Vec<OfType>, others: &[OfType]) {
    counts.resize(counts.len().max(others.len()), [0; 3]);
    for (count, other) in counts.iter_mut().zip(others) {
        count
            .iter_mut()
            .zip(other)
            .for_each(|(count, other)| *count += other);
    }
}

/// Labeled, predicted and right, over all types.
fn all(tally: &Tally) -> [f64; 3] {
    let mut sum = [0; 3];
    for of_type in tally.entities.iter().flatten() {
        for (sum, count) in sum.iter_mut().zip(of_type) {
            *sum += count;
        }
    }
    sum.map(|count| count as f64)
}

/// The share of predicted entities that are right; 0 where none is predicted and there are some, as seqeval has it.
fn precision(tally: &Tally) -> Option<f64> {
    let [labeled, predicted, right] = all(tally);
    share(right, predicted, labeled)
}

/// The share of entities that are found; 0 where there is none and some are predicted.
fn recall(tally: &Tally) -> Option<f64> {
    let [labeled, predicted, right] = all(tally);
    share(right, labeled, predicted)
}

/// The harmonic mean of both.
fn f1(tally: &Tally) -> Option<f64> {
    let [labeled, predicted, right] = all(tally);
    super::ratio(2.0 * right, labeled + predicted)
}

fn share(right: f64, of: f64, other: f64) -> Option<f64> {
    match (of, other) {
        (0.0, 0.0) => None,
        (0.0, _) => Some(0.0),
        _ => Some(right / of),
    }
}

/// A share of the entities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entities {
    name: &'static str,
    of: fn(&Tally) -> Option<f64>,
}

/// [`entity_f1`](super::entity_f1()).
pub(super) const F1: Entities = Entities {
    name: "entity_f1",
    of: f1,
};

/// [`entity_precision`](super::entity_precision()).
pub(super) const PRECISION: Entities = Entities {
    name: "entity_precision",
    of: precision,
};

/// [`entity_recall`](super::entity_recall()).
pub(super) const RECALL: Entities = Entities {
    name: "entity_recall",
    of: recall,
};

impl Measure for Entities {
    fn name(&self) -> &'static str {
        self.name
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        (self.of)(tally)
    }

    fn fit(&self, answers: Answers) -> Fit {
        if answers.are_classes() {
            return Fit::Instead(
                "a metric of classes: entities are made of tags of words (`BertForTokenClassification`)",
            );
        }
        Fit::when(answers == Answers::Words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of seqeval's documentation, and a sentence with a false alarm; values of seqeval 1.2.2.
    #[test]
    fn the_values_of_seqeval() {
        let names = ["O", "B-MISC", "I-MISC", "B-PER", "I-PER"].map(str::to_owned);
        let scheme = TagScheme::of(&names);
        let tags = |tags: &str| -> Vec<usize> {
            let index = |tag: &str| names.iter().position(|name| name == tag);
            tags.split(' ').filter_map(index).collect()
        };
        let mut tally = Tally::of_words(5);
        let mut counts = vec![[0; 3]; 2];
        let mut add = |labels: &str, predicted: &str| {
            add_sentence(&mut counts, &scheme, &tags(labels), &tags(predicted));
        };
        add(
            "O O O B-MISC I-MISC I-MISC O",
            "O O B-MISC I-MISC I-MISC I-MISC O",
        );
        add("B-PER I-PER O", "B-PER I-PER O");
        // MISC: 1 labeled, 1 predicted, 0 right; PER: 1, 1, 1.
        assert_eq!(counts, [[1, 1, 0], [1, 1, 1]]);
        tally.entities = Some(counts);
        assert_eq!(f1(&tally), Some(0.5));
        let mut none = Tally::of_words(5);
        assert_eq!((f1(&none), precision(&none)), (None, None));
        none.entities = Some(vec![[3, 0, 0]]);
        assert_eq!(
            (precision(&none), recall(&none), f1(&none)),
            (Some(0.0), Some(0.0), Some(0.0))
        );
    }

    #[test]
    fn only_words_with_a_class_count() {
        let names = ["O", "B-X", "I-X"].map(str::to_owned);
        let labels = TokenLabels {
            // Two sentences; the second token of the first is a further piece of its word.
            classes: vec![1, -100, 2, 0, 1, -100],
            seq: 3,
            weight: 1.0,
            places: None,
            scheme: Some(TagScheme::of(&names).into()),
        };
        let one_hot = |class: usize| (0..3).map(move |at| f32::from(u8::from(at == class)));
        let outputs: Vec<f32> = [1, 0, 2, 1, 1, 1].into_iter().flat_map(one_hot).collect();
        let mut counts = Vec::new();
        add(&mut counts, &labels, 3, &outputs);
        assert_eq!(counts, [[2, 3, 2]]);
    }
}
