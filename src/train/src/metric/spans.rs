//! Exact match and F1 of answers that are parts of a text, over the whole split. Of all windows of a context the best answer
//! counts; where some questions have no answer, none is said if every window says it more than the best answer. Source:
//! the evaluation scripts of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018); Hugging Face's example for the choice of
//! an answer. Exact match and F1 are shares here, not percents.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use stratoscope_data::{Passages, SpanLabels, Window};

/// Tokens of the longest answer.
pub(crate) const LONGEST: usize = 30;

/// The best answer of each window that was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    records: Vec<Record>,
    passages: Option<Arc<Passages>>,
}

/// The best answer in a window.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    window: usize,
    best: Best,
}

/// The best answer in a window, and how much is said for none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    /// The bytes of the context.
    pub bytes: Range<usize>,
    /// The sum of both logits; −∞ where the window has no token of the context.
    pub score: f64,
    /// The same of the first token, which stands for no answer.
    pub none: f64,
}

impl Best {
    /// By the outputs of a window: S numbers for the begin, S for the end.
    pub(crate) fn of(window: &Window, outputs: &[f32]) -> Self {
        let (starts, ends) = outputs.split_at(outputs.len() / 2);
        let number =
            |of: &[f32], at: usize| of.get(at).copied().map_or(f64::NEG_INFINITY, f64::from);
        let mut best = Self {
            bytes: 0..0,
            score: f64::NEG_INFINITY,
            none: number(starts, 0) + number(ends, 0),
        };
        let positions = window.positions();
        for start in positions.clone() {
            for end in start..positions.end.min(start + LONGEST) {
                let score = number(starts, start) + number(ends, end);
                // The first of equals.
                if score > best.score
                    && let Some(bytes) = window.bytes(start, end)
                {
                    (best.score, best.bytes) = (score, bytes);
                }
            }
        }
        best
    }

    /// The best of several windows of a context; none is said as little as in the window that says it least.
    pub(crate) fn of_windows<'b>(windows: impl Iterator<Item = &'b Self>) -> Option<Self> {
        windows.cloned().reduce(|best, other| {
            let none = best.none.min(other.none);
            let best = if other.score > best.score {
                other
            } else {
                best
            };
            Self { none, ..best }
        })
    }
}

impl Answers {
    /// Adds the windows of a batch: `outputs` are [B, 2·S].
    pub(super) fn add(&mut self, labels: &SpanLabels, outputs: &[f32]) {
        let Some(passages) = &labels.passages else {
            return;
        };
        let width = outputs.len() / labels.windows.len().max(1);
        if width == 0 {
            return;
        }
        for (&window, outputs) in labels.windows.iter().zip(outputs.chunks_exact(width)) {
            if let Some(known) = passages.windows.get(window) {
                let best = Best::of(known, outputs);
                self.records.push(Record { window, best });
            }
        }
        self.passages = Some(Arc::clone(passages));
    }

    /// Adds what another replica has answered.
    pub(super) fn merge(&mut self, other: &Self) {
        self.records.extend_from_slice(&other.records);
        self.records.sort_by_key(|record| record.window);
        self.passages = self.passages.take().or_else(|| other.passages.clone());
    }

    /// Windows that were answered.
    pub(super) fn windows(&self) -> usize {
        self.records.len()
    }

    /// The share of the questions whose answer is exactly a right one.
    pub(super) fn exact_match(&self) -> Option<f64> {
        self.mean(|found, right| f64::from(u8::from(words(found) == words(right))))
    }

    /// The mean F1 of the words of an answer.
    pub(super) fn f1(&self) -> Option<f64> {
        self.mean(f1)
    }

    /// The mean over the questions of the best score by any right answer; no right answer is the empty one.
    fn mean(&self, score: impl Fn(&str, &str) -> f64) -> Option<f64> {
        let passages = self.passages.as_ref()?;
        let mut by_example: BTreeMap<usize, Vec<&Best>> = BTreeMap::new();
        for record in &self.records {
            let window = passages.windows.get(record.window)?;
            by_example
                .entry(window.example)
                .or_default()
                .push(&record.best);
        }
        let of_example = |(example, windows): (&usize, &Vec<&Best>)| {
            let (context, right) = passages.examples.get(*example)?;
            let best = Best::of_windows(windows.iter().copied())?;
            let found = said(&best, context, passages.has_unanswerable).unwrap_or_default();
            let scores = right.iter().map(|right| score(found, right));
            Some(match right.is_empty() {
                true => score(found, ""),
                false => scores.fold(0.0, f64::max),
            })
        };
        let scores: Option<Vec<f64>> = by_example.iter().map(of_example).collect();
        let scores = scores.filter(|scores| !scores.is_empty())?;
        Some(scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// Window, begin, end, score of the best answer, score of none: a row for each window.
    pub(super) fn state(&self) -> (Vec<usize>, Vec<u8>) {
        let row = |record: &Record| {
            let Best { bytes, score, none } = &record.best;
            [
                record.window as f64,
                bytes.start as f64,
                bytes.end as f64,
                *score,
                *none,
            ]
        };
        let rows = self.records.iter().flat_map(row);
        (
            vec![self.records.len(), 5],
            rows.flat_map(f64::to_le_bytes).collect(),
        )
    }

    /// The same with what [`state`](Self::state) gave; `None` for bytes that are no such state.
    pub(super) fn with_state(&self, bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<f64> = numbers
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        let (rows, left) = numbers.as_chunks::<5>();
        let record = |&[window, start, end, score, none]: &[f64; 5]| Record {
            window: window as usize,
            best: Best {
                bytes: start as usize..end as usize,
                score,
                none,
            },
        };
        (rest.is_empty() && left.is_empty()).then(|| Self {
            records: rows.iter().map(record).collect(),
            passages: self.passages.clone(),
        })
    }
}

/// What is answered: a part of the context, or nothing.
pub(crate) fn said<'c>(best: &Best, context: &'c str, may_be_none: bool) -> Option<&'c str> {
    let is_none = (may_be_none && best.none > best.score) || best.score == f64::NEG_INFINITY;
    if is_none {
        None
    } else {
        context.get(best.bytes.clone())
    }
}

/// The words of an answer as they are compared: in lower case, without punctuation and articles.
fn words(answer: &str) -> Vec<String> {
    let lower = answer.to_lowercase();
    let kept: String = lower
        .chars()
        .filter(|sign| !sign.is_ascii_punctuation())
        .collect();
    let words = kept
        .split_whitespace()
        .filter(|word| !matches!(*word, "a" | "an" | "the"));
    words.map(str::to_owned).collect()
}

/// F1 of the words of two answers; of two empty ones, 1.
fn f1(found: &str, right: &str) -> f64 {
    let (found, right) = (words(found), words(right));
    if found.is_empty() || right.is_empty() {
        return f64::from(u8::from(found == right));
    }
    let mut left = right.clone();
    let mut shared = 0;
    for word in &found {
        if let Some(at) = left.iter().position(|other| other == word) {
            left.swap_remove(at);
            shared += 1;
        }
    }
    2.0 * f64::from(shared) / (found.len() + right.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two windows of one context, and a question without an answer.
    fn passages() -> Arc<Passages> {
        let window = |example: usize, ranges: &[Range<usize>]| Window {
            example,
            first: 2,
            ranges: ranges.to_vec(),
        };
        Arc::new(Passages {
            examples: vec![
                (
                    "the red fox ran".to_owned(),
                    vec!["red fox".to_owned(), "fox".to_owned()],
                ),
                ("it rains".to_owned(), Vec::new()),
            ],
            windows: vec![
                window(0, &[0..3, 4..7]),
                window(0, &[8..11, 12..15]),
                window(1, &[0..2, 3..8]),
            ],
            has_unanswerable: true,
        })
    }

    fn answered(outputs: &[f32]) -> Answers {
        let mut answers = Answers::default();
        let labels = SpanLabels {
            spans: vec![[0, 0]; 3],
            windows: vec![0, 1, 2],
            passages: Some(passages()),
        };
        answers.add(&labels, outputs);
        answers
    }

    #[test]
    fn the_best_answer_of_all_windows_counts() {
        // Positions: [CLS], a word of the question, two of the context.
        let outputs = [
            [0.0, 9.0, 1.0, 2.0, 0.0, 9.0, 0.0, 3.0],
            [-1.0, 0.0, 4.0, 0.0, -1.0, 0.0, 4.0, 0.0],
            [5.0, 0.0, 1.0, 0.0, 5.0, 0.0, 0.0, 1.0],
        ]
        .concat();
        let answers = answered(&outputs);
        // "fox", with 4 + 4; then none, with 5 + 5.
        assert_eq!(
            (answers.exact_match(), answers.f1()),
            (Some(1.0), Some(1.0))
        );
        let bytes = answers.state().1;
        let restored = Answers {
            records: Vec::new(),
            ..answers.clone()
        };
        assert_eq!(restored.with_state(&bytes), Some(answers.clone()));
        assert_eq!(restored.with_state(&bytes[1..]), None);
        // The other replica's windows come in any order.
        let mut parts = answers.clone();
        let last = parts.records.split_off(1);
        let mut sum = Answers {
            records: last,
            passages: None,
        };
        sum.merge(&parts);
        assert_eq!(sum, answers);
    }

    /// Values of SQuAD's script for these pairs.
    #[test]
    fn words_are_compared_as_in_the_script() {
        assert_eq!(words("The Red, fox!"), ["red", "fox"]);
        assert!((f1("the red fox", "Red dog.") - 0.5).abs() < 1e-12);
        assert_eq!(f1("", ""), 1.0);
        assert_eq!(f1("", "fox"), 0.0);
        assert!((f1("fox fox", "fox") - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Answers::default().f1(), None);
    }

    #[test]
    fn an_answer_does_not_end_before_it_begins() {
        let window = &passages().windows[0];
        let best = Best::of(window, &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
        assert_eq!((best.score, best.none), (5.0, 0.0));
        assert_eq!(best.bytes.len(), 3, "one word");
    }
}
