//! [`Batch`]: rows of equal length, padded to the longest of them.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::Label;
use crate::questions::Window;
use crate::tags::TagScheme;

/// Examples as rectangular arrays, row-major: B examples by S positions.
///
/// A batch is written for the worker that computes it, without what only the chief uses: which worker has which examples,
/// and what answers and entities are compared with. Who reads one checks it by [`Batch::is_consistent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What the loss of each example is multiplied with; `None`: all count alike.
    pub weights: Option<Vec<f32>>,
    /// S, the length of the longest row.
    pub seq: usize,
    /// How many sequences a row consists of, each of S / `choices` positions and padded by itself: those of multiple choice,
    /// the texts of an example that are read one by one ([`Labels::Apart`]), else 1.
    pub choices: usize,
    /// How many examples each worker has, in the order of workers and rows, where the data's `AutoShardPolicy` decides
    /// which ones; `None`: they are divided evenly.
    #[serde(skip)]
    pub by_worker: Option<Vec<usize>>,
}

/// The labels of a batch; all of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Labels {
    /// The data set has none.
    Absent,
    /// Class indices.
    Classes(Vec<i32>),
    /// Numbers to be predicted.
    Values(Vec<f32>),
    /// A class for each token.
    Tokens(TokenLabels),
    /// Where in each example the answer begins and ends.
    Spans(SpanLabels),
    /// The classes that each example has, in order.
    Sets(Vec<Arc<[usize]>>),
    /// None: the texts of the examples are compared with each other, and each is a sequence of its row.
    Apart {
        /// How many examples there are.
        rows: usize,
        /// The texts of each: one, the one that belongs to it, and others that do not.
        texts: usize,
    },
}

/// The answers of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanLabels {
    /// The positions of the first and the last token of each answer; 0 and 0 where there is none.
    pub spans: Vec<[i32; 2]>,
    /// What each answer is read from and compared with; empty where that is not asked for.
    #[serde(skip)]
    pub windows: Vec<Arc<Window>>,
    /// Whether some question of the data has no answer: then no answer is an answer.
    #[serde(skip)]
    pub has_unanswerable: bool,
}

/// Classes of the tokens of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLabels {
    /// B × S, row-major; −100 for tokens that count nothing: padding, special tokens, the further pieces of a word.
    pub classes: Vec<i32>,
    /// S, the tokens of a row that are answered.
    pub seq: usize,
    /// Where in its row each of them stands, B × S, for a head that answers some tokens only; `None`: all, in order.
    pub places: Option<Vec<i32>>,
    /// What the loss of a token counts: the examples of the whole batch over its tokens with a class. With it the loss of
    /// a batch, a sum over its examples like every other, divided by their number is the mean over tokens, on
    /// however many replicas it was computed. In an optimizer step of several batches, examples and tokens of all of
    /// them ([`TokenLabels::weigh_together`]).
    pub weight: f32,
    /// Which entities the tags make, where they are known.
    #[serde(skip)]
    pub scheme: Option<Arc<TagScheme>>,
}

impl TokenLabels {
    /// The label of tokens that count nothing: PyTorch's `ignore_index`.
    pub const IGNORED: i32 = -100;

    /// The labels of a whole batch of `examples` rows of `seq` answered tokens.
    pub(crate) fn of_batch(
        classes: Vec<i32>,
        seq: usize,
        places: Option<Vec<i32>>,
        examples: usize,
    ) -> Self {
        let mut labels = Self {
            classes,
            seq,
            places,
            weight: 0.0,
            scheme: None,
        };
        labels.weight = Self::weight_of(examples, labels.counted());
        labels
    }

    /// What the loss of a token counts among `counted` tokens of so many examples. Without any such token the loss is 0.
    fn weight_of(examples: usize, counted: usize) -> f32 {
        match counted {
            0 => 0.0,
            counted => (examples as f64 / counted as f64) as f32,
        }
    }

    /// Weighs the tokens of the batches of one optimizer step alike, whichever batch they are in: the loss of the step is
    /// the mean over all of its tokens with a class, as if it were one batch. Batches with other labels stay as they are.
    pub fn weigh_together(batches: &mut [Batch]) {
        let mut all: Vec<(usize, &mut Self)> = Vec::with_capacity(batches.len());
        for batch in batches {
            let examples = batch.size();
            if let Labels::Tokens(tokens) = &mut batch.labels {
                all.push((examples, tokens));
            }
        }
        let examples = all.iter().map(|(examples, _)| examples).sum();
        let counted = all.iter().map(|(_, tokens)| tokens.counted()).sum();
        let weight = Self::weight_of(examples, counted);
        for (_, tokens) in all {
            tokens.weight = weight;
        }
    }

    /// Whether they can be those of a batch of `rows` examples with `seq` positions.
    fn are_of(&self, rows: usize, seq: usize) -> bool {
        let is_in = |&place: &i32| usize::try_from(place).is_ok_and(|place| place < seq);
        let answered = match &self.places {
            None => self.seq == seq,
            Some(places) => places.len() == self.classes.len() && places.iter().all(is_in),
        };
        answered && rows.checked_mul(self.seq) == Some(self.classes.len())
    }

    /// Tokens that have a class.
    pub fn counted(&self) -> usize {
        self.classes
            .iter()
            .filter(|&&class| class != Self::IGNORED)
            .count()
    }
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
    ///
    /// # Panics
    /// If the range goes past the end.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Classes(classes) => Self::Classes(classes[rows].to_vec()),
            Self::Values(values) => Self::Values(values[rows].to_vec()),
            Self::Sets(sets) => Self::Sets(sets[rows].to_vec()),
            Self::Apart { rows: all, texts } => {
                assert!(rows.end <= *all, "row {} of {all}", rows.end);
                Self::Apart {
                    rows: rows.len(),
                    texts: *texts,
                }
            }
            Self::Tokens(tokens) => {
                let own = rows.start * tokens.seq..rows.end * tokens.seq;
                Self::Tokens(TokenLabels {
                    classes: tokens.classes[own.clone()].to_vec(),
                    seq: tokens.seq,
                    places: tokens.places.as_ref().map(|it| it[own].to_vec()),
                    weight: tokens.weight,
                    scheme: tokens.scheme.clone(),
                })
            }
            Self::Spans(spans) => Self::Spans(SpanLabels {
                spans: spans.spans[rows.clone()].to_vec(),
                windows: spans.windows.get(rows).unwrap_or_default().to_vec(),
                has_unanswerable: spans.has_unanswerable,
            }),
        }
    }

    /// How many examples have a label.
    pub fn len(&self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Classes(classes) => classes.len(),
            Self::Values(values) => values.len(),
            Self::Sets(sets) => sets.len(),
            Self::Apart { rows, .. } => *rows,
            Self::Tokens(tokens) => tokens.classes.len() / tokens.seq.max(1),
            Self::Spans(spans) => spans.spans.len(),
        }
    }

    /// Whether no example has a label.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Batch {
    /// Whether all arrays have the length that the number of rows and positions asks for. A batch that another process sent
    /// may be anything.
    pub fn is_consistent(&self) -> bool {
        let rows = self.rows.len();
        let lengths = [self.ids.len(), self.mask.len(), self.type_ids.len()];
        let are_labels = match &self.labels {
            Labels::Absent => true,
            Labels::Tokens(tokens) => tokens.are_of(rows, self.seq),
            Labels::Apart { texts, .. } if *texts != self.choices => false,
            labels => labels.len() == rows,
        };
        rows > 0
            && self.choices > 0
            && self.seq.is_multiple_of(self.choices)
            && rows
                .checked_mul(self.seq)
                .is_some_and(|tokens| lengths == [tokens; 3])
            && self.features.len().is_multiple_of(rows)
            && self.weights.as_ref().is_none_or(|it| it.len() == rows)
            && are_labels
    }

    /// Pads examples to the longest of them. Without examples, `seq` is 0.
    pub(crate) fn of(examples: &[&EncodedExample], data: &Encoded) -> Self {
        let pad_id = data.pad_id();
        let choices = examples.iter().map(|it| it.sequences().len()).max();
        let choices = choices.unwrap_or(1).max(1);
        let lengths = examples.iter().flat_map(|example| example.sequences());
        let length = lengths.map(|own| own.len()).max().unwrap_or(0);
        let seq = choices * length;
        let area = examples.len() * seq;
        let weighted = examples.iter().any(|example| example.weight != 1.0);
        let mut batch = Self {
            ids: Vec::with_capacity(area),
            mask: Vec::with_capacity(area),
            type_ids: Vec::with_capacity(area),
            features: Vec::new(),
            labels: labels_of(examples, seq, data),
            rows: examples.iter().map(|example| example.index).collect(),
            weights: weighted.then(|| examples.iter().map(|example| example.weight).collect()),
            seq,
            choices,
            by_worker: None,
        };
        for example in examples {
            let end = batch.ids.len() + seq;
            for own in example.sequences() {
                let end = batch.ids.len() + length;
                let ids = &example.ids[own.clone()];
                batch.ids.extend(ids.iter().map(|&id| id as i32));
                batch.mask.resize(batch.ids.len(), 1);
                let types = &example.type_ids[own];
                batch.type_ids.extend(types.iter().map(|&id| id as i32));
                batch.pad_to(end, pad_id);
            }
            batch.pad_to(end, pad_id);
            batch.features.extend_from_slice(&example.features);
        }
        if let Some(hidden) = data.hidden() {
            batch.labels = hidden.in_batch(examples, seq, &mut batch.ids);
        }
        batch
    }

    /// Padding up to a number of positions.
    fn pad_to(&mut self, end: usize, pad_id: u32) {
        self.ids.resize(end, pad_id as i32);
        self.mask.resize(end, 0);
        self.type_ids.resize(end, 0);
    }

    /// B, the number of examples.
    pub fn size(&self) -> usize {
        self.rows.len()
    }

    /// W, the number of features of each example; 0 for texts.
    pub fn width(&self) -> usize {
        self.features.len() / self.size().max(1)
    }

    /// How many examples it counts as in the loss of its optimizer step. For tokens with a class: their share of all of the
    /// step, times the examples of the step.
    pub fn counted(&self) -> f64 {
        match &self.labels {
            Labels::Tokens(tokens) if tokens.weight > 0.0 => {
                tokens.counted() as f64 * f64::from(tokens.weight)
            }
            _ => self.size() as f64,
        }
    }

    /// How many positions hold a token; the others are padding.
    pub fn tokens(&self) -> usize {
        self.mask.iter().filter(|&&mask| mask == 1).count()
    }
}

/// The labels of examples. All have the same kind of label, which tokenization has checked.
fn labels_of(examples: &[&EncodedExample], seq: usize, data: &Encoded) -> Labels {
    match examples.first().map(|example| &example.targets) {
        Some(Targets::Tokens(_)) => {
            return Labels::Tokens(token_labels(examples, seq, data.scheme()));
        }
        Some(Targets::Apart(lengths)) => {
            return Labels::Apart {
                rows: examples.len(),
                texts: lengths.len(),
            };
        }
        Some(Targets::Set(_)) => {
            let set = |example: &&EncodedExample| match &example.targets {
                Targets::Set(classes) => Arc::clone(classes),
                _ => Arc::default(),
            };
            return Labels::Sets(examples.iter().map(set).collect());
        }
        Some(Targets::Span(_)) => {
            let span = |example: &&EncodedExample| match example.targets {
                Targets::Span(span) => span,
                _ => [0; 2],
            };
            return Labels::Spans(SpanLabels {
                spans: examples.iter().map(span).collect(),
                windows: examples
                    .iter()
                    .filter_map(|example| example.window.clone())
                    .collect(),
                has_unanswerable: data.has_unanswerable,
            });
        }
        _ => {}
    }
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

/// The classes of the tokens of examples, padded to `seq`.
fn token_labels(
    examples: &[&EncodedExample],
    seq: usize,
    scheme: Option<&Arc<TagScheme>>,
) -> TokenLabels {
    let mut classes = Vec::with_capacity(examples.len() * seq);
    for example in examples {
        let end = classes.len() + seq;
        if let Targets::Tokens(own) = &example.targets {
            classes.extend_from_slice(own);
        }
        classes.resize(end, TokenLabels::IGNORED);
    }
    TokenLabels {
        scheme: scheme.cloned(),
        ..TokenLabels::of_batch(classes, seq, None, examples.len())
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
        let parts: Vec<Batch> = batch.split(2).into_iter().flatten().collect();
        assert_eq!(parts.iter().map(Batch::size).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(
            parts[1].seq, 5,
            "the length of the whole batch, not of the part"
        );
        assert_eq!(parts[1].rows, [3, 4]);
    }

    #[test]
    fn parts_are_the_batches_of_their_size() {
        let data = encoded(&["ab", "b", "abc", "c", "d"]);
        let whole = data.batch(5).unwrap().next().unwrap();
        for most in 1..6 {
            let batches: Vec<Batch> = data.batch(most).unwrap().collect();
            assert_eq!(whole.in_parts_of(most), batches, "{most}");
        }
        // Of numbers, which have no padding.
        let numbers = Dataset::from_features([[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
        let numbers = numbers.tokenize(&Letters, 64).unwrap();
        let whole = numbers.batch(3).unwrap().next().unwrap();
        let batches: Vec<Batch> = numbers.batch(2).unwrap().collect();
        assert_eq!(whole.in_parts_of(2), batches);
    }

    #[test]
    fn replicas_without_an_example_get_no_part() {
        let batch = encoded(&["a", "b"]).batch(8).unwrap().next().unwrap();
        assert_eq!(batch.split(4).iter().flatten().count(), 2);
        assert!(batch.split(4)[2..].iter().all(Option::is_none));
        assert_eq!(batch.split(1), [Some(batch.clone())]);
        assert_eq!(batch.split(0), [Some(batch)], "no replicas: the whole");
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
                let parts: Vec<Batch> = batch.split(replicas).into_iter().flatten().collect();
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
