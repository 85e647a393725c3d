//! [`Batch`]: rows of equal length, padded to the longest of them.

use std::ops::Range;

use crate::encoded::{Encoded, EncodedExample};
use crate::example::Label;
use crate::prefetch::Prefetch;

/// Examples as rectangular arrays, row-major: B examples by S positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Token ids, B × S; the padding id after the end of a short row.
    pub ids: Vec<i32>,
    /// 1 = token, 0 = padding, B × S.
    pub mask: Vec<i32>,
    /// Segments, B × S; 0 in padding.
    pub type_ids: Vec<i32>,
    /// The features of numeric examples, B × W. Empty for texts; for numeric examples the three fields above are empty.
    pub features: Vec<f32>,
    /// The labels, one for each example.
    pub labels: Labels,
    /// The index of each example in its data set.
    pub rows: Vec<usize>,
    /// S, the length of the longest row.
    pub seq: usize,
}

/// The labels of a batch; all of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// The data set has none.
    Absent,
    /// Class indices.
    Classes(Vec<i32>),
    /// Numbers to be predicted.
    Values(Vec<f32>),
}

impl Labels {
    /// The label of one example.
    pub fn of(label: Option<Label>) -> Self {
        match label {
            None => Self::Absent,
            Some(Label::Class(class)) => Self::Classes(vec![class as i32]),
            Some(Label::Value(value)) => Self::Values(vec![value]),
        }
    }

    /// The labels of some rows.
    fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Classes(classes) => Self::Classes(classes[rows].to_vec()),
            Self::Values(values) => Self::Values(values[rows].to_vec()),
        }
    }
}

impl Batch {
    /// Pads examples to the longest of them. Without examples, `seq` is 0.
    fn of(examples: &[&EncodedExample], pad_id: u32) -> Self {
        let seq = examples
            .iter()
            .map(|example| example.ids.len())
            .max()
            .unwrap_or(0);
        let area = examples.len() * seq;
        let mut batch = Self {
            ids: Vec::with_capacity(area),
            mask: Vec::with_capacity(area),
            type_ids: Vec::with_capacity(area),
            features: Vec::new(),
            labels: labels_of(examples),
            rows: examples.iter().map(|example| example.index).collect(),
            seq,
        };
        for example in examples {
            let end = batch.ids.len() + seq;
            batch.ids.extend(example.ids.iter().map(|&id| id as i32));
            batch.mask.resize(batch.ids.len(), 1);
            batch
                .type_ids
                .extend(example.type_ids.iter().map(|&id| id as i32));
            batch.ids.resize(end, pad_id as i32);
            batch.mask.resize(end, 0);
            batch.type_ids.resize(end, 0);
            batch.features.extend_from_slice(&example.features);
        }
        batch
    }

    /// B, the number of examples.
    pub fn size(&self) -> usize {
        self.rows.len()
    }

    /// W, the number of features of each example; 0 for texts.
    pub fn width(&self) -> usize {
        self.features.len() / self.size().max(1)
    }

    /// How many positions hold a token; the others are padding.
    pub fn tokens(&self) -> usize {
        self.mask.iter().filter(|&&mask| mask == 1).count()
    }

    /// Divides the batch over replicas, in order. If it does not divide evenly, the first replicas get one example
    /// more: 5 over 2 is 3 + 2. All parts keep the row length of the full batch, so
    /// every replica computes on the same shapes. With fewer examples than replicas there are
    /// as many parts as examples, and the other replicas skip the step.
    pub fn split(&self, replicas: usize) -> Vec<Batch> {
        let (share, remainder) = (self.size() / replicas.max(1), self.size() % replicas.max(1));
        let mut start = 0;
        let mut parts = Vec::with_capacity(replicas.min(self.size()));
        for replica in 0..replicas.max(1).min(self.size()) {
            let end = start + share + usize::from(replica < remainder);
            parts.push(self.slice(start..end));
            start = end;
        }
        parts
    }

    /// A range of the examples, at the same row length.
    ///
    /// # Panics
    /// If the range goes past the end.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let positions = rows.start * self.seq..rows.end * self.seq;
        let numbers = rows.start * self.width()..rows.end * self.width();
        Self {
            ids: self.ids[positions.clone()].to_vec(),
            mask: self.mask[positions.clone()].to_vec(),
            type_ids: self.type_ids[positions].to_vec(),
            features: self.features[numbers].to_vec(),
            labels: self.labels.slice(rows.clone()),
            rows: self.rows[rows].to_vec(),
            seq: self.seq,
        }
    }
}

/// The batches of an epoch, in order.
#[derive(Clone, Debug)]
pub struct Batches {
    encoded: Encoded,
    batch_size: usize,
    position: usize,
}

impl Batches {
    pub(crate) fn new(encoded: Encoded, batch_size: usize) -> Self {
        Self {
            encoded,
            batch_size,
            position: 0,
        }
    }

    /// Prepares up to `depth` batches ahead on a thread of its own.
    pub fn prefetch(self, depth: usize) -> Prefetch<Batch> {
        Prefetch::new(self, depth)
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let end = self
            .position
            .saturating_add(self.batch_size)
            .min(self.encoded.len());
        let examples: Vec<&EncodedExample> = (self.position..end)
            .filter_map(|position| self.encoded.get(position))
            .collect();
        self.position = end;
        (!examples.is_empty()).then(|| Batch::of(&examples, self.encoded.pad_id()))
    }

    /// Skipped batches are not built, so a resumed run begins at once.
    fn nth(&mut self, batches: usize) -> Option<Batch> {
        let skipped = batches.saturating_mul(self.batch_size);
        self.position = self
            .position
            .saturating_add(skipped)
            .min(self.encoded.len());
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.encoded.len() - self.position).div_ceil(self.batch_size);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batches {}

/// The labels of examples. All have the same kind of label, which tokenization has checked.
fn labels_of(examples: &[&EncodedExample]) -> Labels {
    let classes = examples.iter().filter_map(|example| match example.label {
        Some(Label::Class(class)) => Some(class as i32),
        _ => None,
    });
    let values = examples.iter().filter_map(|example| match example.label {
        Some(Label::Value(value)) => Some(value),
        _ => None,
    });
    match examples.first().and_then(|example| example.label) {
        None => Labels::Absent,
        Some(Label::Class(_)) => Labels::Classes(classes.collect()),
        Some(Label::Value(_)) => Labels::Values(values.collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokenize::letters::Letters;
    use crate::{Dataset, Tokenize};

    fn encoded(texts: &[&str]) -> Encoded {
        Dataset::from_texts(texts.to_vec())
            .tokenize(&Letters, 64)
            .unwrap()
    }

    #[test]
    fn a_batch_is_padded_to_its_own_longest_row() {
        let batches: Vec<Batch> = encoded(&["a", "abc", "ab"]).batch(2).unwrap().collect();
        assert_eq!(batches[0].seq, 5);
        assert_eq!(batches[0].ids, [29, 3, 30, 0, 0, 29, 3, 4, 5, 30]);
        assert_eq!(batches[0].mask, [1, 1, 1, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(
            (batches[1].seq, batches[1].size(), batches[1].tokens()),
            (4, 1, 4)
        );
        assert_eq!(batches.len(), 2);
    }

    #[test]
    fn skipped_batches_are_left_out_and_not_made() {
        let data = encoded(&["a", "b", "c", "d", "e"]);
        let all: Vec<Batch> = data.batch(2).unwrap().collect();
        for skipped in 0..5 {
            let rest: Vec<Batch> = data.batch(2).unwrap().skip(skipped).collect();
            assert_eq!(rest, all[skipped.min(3)..]);
        }
    }

    #[test]
    fn the_second_text_is_segment_1_and_padding_is_segment_0() {
        let data = Dataset::from_pairs([("a", "bc"), ("a", "b")]);
        let batch = data
            .tokenize(&Letters, 64)
            .unwrap()
            .batch(2)
            .unwrap()
            .next()
            .unwrap();
        assert_eq!(batch.type_ids, [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn five_over_two_is_three_and_two() {
        let batch = encoded(&["a", "b", "abc", "c", "d"])
            .batch(5)
            .unwrap()
            .next()
            .unwrap();
        let parts = batch.split(2);
        assert_eq!(parts.iter().map(Batch::size).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(
            parts[1].seq, 5,
            "the length of the whole batch, not of the part"
        );
        assert_eq!(parts[1].rows, [3, 4]);
    }

    #[test]
    fn replicas_without_an_example_get_no_part() {
        let batch = encoded(&["a", "b"]).batch(8).unwrap().next().unwrap();
        assert_eq!(batch.split(4).len(), 2);
        assert_eq!(batch.split(1), std::slice::from_ref(&batch));
        assert_eq!(
            batch.split(0),
            std::slice::from_ref(&batch),
            "no replicas: the whole"
        );
    }

    #[test]
    fn sizes_are_checked_and_a_huge_one_is_one_batch() {
        let data = encoded(&["a", "b"]);
        assert_eq!(data.batch(0).expect_err("0 is refused").code, "SC0915");
        assert_eq!(data.batch(usize::MAX).unwrap().len(), 1);
        assert_eq!(data.batch(usize::MAX).unwrap().next().unwrap().size(), 2);
    }

    proptest! {
        #[test]
        fn batches_and_parts_hold_every_example_once(
            texts in prop::collection::vec("[a-z]{0,12}", 1..40),
            batch_size in 1_usize..50,
            replicas in 1_usize..6,
            depth in 0_usize..4,
        ) {
            let data = Dataset::from_texts(texts.clone()).tokenize(&Letters, 64).unwrap();
            let batches = data.shuffle(1, 2).batch(batch_size).unwrap();
            prop_assert_eq!(batches.len(), texts.len().div_ceil(batch_size));
            let mut seen = Vec::new();
            for batch in batches.prefetch(depth) {
                let parts = batch.split(replicas);
                let sizes: Vec<usize> = parts.iter().map(Batch::size).collect();
                prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
                let ids: Vec<i32> = parts.iter().flat_map(|part| part.ids.clone()).collect();
                prop_assert_eq!(&ids, &batch.ids);
                for (part_row, &row) in batch.rows.iter().enumerate() {
                    let positions = part_row * batch.seq..(part_row + 1) * batch.seq;
                    let length = batch.mask[positions.clone()].iter().sum::<i32>() as usize;
                    let ids: Vec<u32> =
                        batch.ids[positions].iter().take(length).map(|&id| id as u32).collect();
                    prop_assert_eq!(Letters.decode(&ids), format!("[{}]", texts[row]));
                }
                seen.extend(batch.rows);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..texts.len()).collect::<Vec<_>>());
        }
    }
}
