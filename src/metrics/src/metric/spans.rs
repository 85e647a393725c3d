//! Exact match and F1 of answers that are parts of a text, over the whole split. Of all windows of a context the best answer
//! counts; where some questions have no answer, none is said if every window says it more than the best answer. Source:
//! the evaluation scripts of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018); Hugging Face's example for the choice of
//! an answer. Exact match and F1 are shares here, not percents.

use std::collections::BTreeMap;
use std::ops::Range;

use stratoscope_data::{Passage, SpanLabels, Window};

use super::Tally;
use super::applicability::{Answers as Kind, Fit};
use super::measure::Measure;

/// Tokens of the longest answer.
const LONGEST: usize = 30;

/// The best answer of each window that was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answers {
    records: Vec<Record>,
}

/// The best answer in a window, and how right it is.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    /// The question.
    example: usize,
    /// Which of its windows it is.
    part: usize,
    /// Of the best answer, as of [`Best`].
    score: f64,
    /// The same of none; −∞ where every question has an answer.
    none: f64,
    /// Whether the best answer is exactly a right one, 1 or 0, and its F1.
    found: Scores,
    /// The same of no answer, for which both are 1 or 0.
    of_none: f64,
}

/// How right an answer is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scores {
    exact: f64,
    f1: f64,
}

/// The best answer in a window, and how much is said for none.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The bytes of the context.
    pub bytes: Range<usize>,
    /// The sum of both logits; −∞ where the window has no token of the context.
    pub score: f64,
    /// The same of the first token, which stands for no answer.
    pub none: f64,
}

impl Best {
    /// By the outputs of a window: S numbers for the begin, S for the end.
    pub fn of(window: &Window, outputs: &[f32]) -> Self {
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

    /// What is answered: a part of the context, or nothing.
    pub fn said<'c>(&self, context: &'c str, may_be_none: bool) -> Option<&'c str> {
        let is_none = (may_be_none && self.none > self.score) || self.score == f64::NEG_INFINITY;
        match is_none {
            true => None,
            false => context.get(self.bytes.clone()),
        }
    }

    /// The best of several windows of a context; none is said as little as in the window that says it least.
    pub fn of_windows<'b>(windows: impl Iterator<Item = &'b Self>) -> Option<Self> {
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

impl Record {
    fn of(window: &Window, outputs: &[f32], may_be_none: bool) -> Self {
        let best = Best::of(window, outputs);
        let Passage {
            example,
            context,
            answers,
        } = &*window.passage;
        Self {
            example: *example,
            part: window.part,
            score: best.score,
            none: match may_be_none {
                true => best.none,
                false => f64::NEG_INFINITY,
            },
            // None is decided over all windows.
            found: Scores::of(best.said(context, false).unwrap_or_default(), answers),
            of_none: Scores::of("", answers).exact,
        }
    }
}

impl Scores {
    /// The best by any right answer; no right answer is the empty one.
    fn of(found: &str, right: &[String]) -> Self {
        let best = |score: fn(&str, &str) -> f64| match right.is_empty() {
            true => score(found, ""),
            false => right.iter().map(|it| score(found, it)).fold(0.0, f64::max),
        };
        Self {
            exact: best(|found, right| f64::from(u8::from(words(found) == words(right)))),
            f1: best(f1),
        }
    }
}

/// The numbers of a record.
const COLUMNS: usize = 7;

impl Answers {
    /// Adds the windows of a batch: `outputs` are [B, 2·S].
    pub(super) fn add(&mut self, labels: &SpanLabels, outputs: &[f32]) {
        let width = outputs.len() / labels.windows.len().max(1);
        if width == 0 {
            return;
        }
        let windows = labels.windows.iter().zip(outputs.chunks_exact(width));
        let records =
            windows.map(|(window, outputs)| Record::of(window, outputs, labels.has_unanswerable));
        self.records.extend(records);
    }

    /// Adds what another replica has answered.
    pub(super) fn merge(&mut self, other: &Self) {
        self.records.extend_from_slice(&other.records);
        self.records
            .sort_by_key(|record| (record.example, record.part));
    }

    /// Windows that were answered.
    pub(super) fn windows(&self) -> usize {
        self.records.len()
    }

    /// The share of the questions whose answer is exactly a right one.
    pub(super) fn exact_match(&self) -> Option<f64> {
        self.mean(|scores| scores.exact)
    }

    /// The mean F1 of the words of an answer.
    pub(super) fn f1(&self) -> Option<f64> {
        self.mean(|scores| scores.f1)
    }

    /// The mean over the questions of the score of what is answered: the best of all windows, the first of equals, or none,
    /// if that is said more where it is said least.
    fn mean(&self, score: fn(&Scores) -> f64) -> Option<f64> {
        let mut by_example: BTreeMap<usize, (&Record, f64)> = BTreeMap::new();
        for record in &self.records {
            let (best, none) = by_example
                .entry(record.example)
                .or_insert((record, record.none));
            *none = none.min(record.none);
            if record.score > best.score {
                *best = record;
            }
        }
        let scores = by_example.values().map(|&(best, none)| {
            match none > best.score || best.score == f64::NEG_INFINITY {
                true => best.of_none,
                false => score(&best.found),
            }
        });
        match by_example.len() {
            0 => None,
            questions => Some(scores.sum::<f64>() / questions as f64),
        }
    }

    /// A row of numbers for each window.
    pub(super) fn state(&self) -> (Vec<usize>, Vec<u8>) {
        let row = |it: &Record| -> [f64; COLUMNS] {
            let Scores { exact, f1 } = it.found;
            let [example, part] = [it.example, it.part].map(|it| it as f64);
            [example, part, it.score, it.none, exact, f1, it.of_none]
        };
        let rows = self.records.iter().flat_map(row);
        (
            vec![self.records.len(), COLUMNS],
            rows.flat_map(f64::to_le_bytes).collect(),
        )
    }

    /// What [`state`](Self::state) gave; `None` for bytes that are no such state.
    pub(super) fn of_state(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<f64> = numbers
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        let (rows, left) = numbers.as_chunks::<COLUMNS>();
        let record = |&[example, part, score, none, exact, f1, of_none]: &[f64; COLUMNS]| Record {
            example: example as usize,
            part: part as usize,
            score,
            none,
            found: Scores { exact, f1 },
            of_none,
        };
        (rest.is_empty() && left.is_empty()).then(|| Self {
            records: rows.iter().map(record).collect(),
        })
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

/// [`exact_match`](super::exact_match()).
#[derive(Clone, Copy, Debug)]
pub(super) struct ExactMatch;

impl Measure for ExactMatch {
    fn name(&self) -> &'static str {
        "exact_match"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        match &tally.sets {
            Some(sets) => sets.exact(),
            None => tally.answers.as_ref()?.exact_match(),
        }
    }

    fn fit(&self, answers: Kind) -> Fit {
        if answers == Kind::Set {
            return Fit::Yes;
        }
        fit(answers)
    }
}

/// [`answer_f1`](super::answer_f1()).
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerF1;

impl Measure for AnswerF1 {
    fn name(&self) -> &'static str {
        "answer_f1"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        tally.answers.as_ref()?.f1()
    }

    fn fit(&self, answers: Kind) -> Fit {
        fit(answers)
    }
}

fn fit(answers: Kind) -> Fit {
    if answers.are_classes() {
        return Fit::Instead(
            "a metric of classes: answers in texts are those of `BertForQuestionAnswering`",
        );
    }
    Fit::when(answers == Kind::Span)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Two windows of one context, and a question without an answer.
    fn windows() -> Vec<Arc<Window>> {
        let fox = Arc::new(Passage {
            example: 0,
            context: "the red fox ran".to_owned(),
            answers: vec!["red fox".to_owned(), "fox".to_owned()],
        });
        let rain = Arc::new(Passage {
            example: 1,
            context: "it rains".to_owned(),
            answers: Vec::new(),
        });
        let window = |passage: &Arc<Passage>, part: usize, ranges: &[Range<usize>]| {
            Arc::new(Window {
                passage: Arc::clone(passage),
                part,
                first: 2,
                ranges: ranges.to_vec(),
            })
        };
        vec![
            window(&fox, 0, &[0..3, 4..7]),
            window(&fox, 1, &[8..11, 12..15]),
            window(&rain, 0, &[0..2, 3..8]),
        ]
    }

    fn answered(outputs: &[f32], has_unanswerable: bool) -> Answers {
        let mut answers = Answers::default();
        let labels = SpanLabels {
            spans: vec![[0, 0]; 3],
            windows: windows(),
            has_unanswerable,
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
        let answers = answered(&outputs, true);
        // "fox", with 4 + 4; then none, with 5 + 5.
        assert_eq!(
            (answers.exact_match(), answers.f1()),
            (Some(1.0), Some(1.0))
        );
        // Where every question has an answer, none is not said.
        assert_eq!(answered(&outputs, false).exact_match(), Some(0.5));
        let bytes = answers.state().1;
        assert_eq!(Answers::of_state(&bytes), Some(answers.clone()));
        assert_eq!(Answers::of_state(&bytes[1..]), None);
        // The other replica's windows come in any order.
        let mut parts = answers.clone();
        let last = parts.records.split_off(1);
        let mut sum = Answers { records: last };
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
        let best = Best::of(&windows()[0], &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
        assert_eq!((best.score, best.none), (5.0, 0.0));
        assert_eq!(best.bytes.len(), 3, "one word");
    }
}
