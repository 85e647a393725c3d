//! Questions about texts, as tokens: `[CLS] question [SEP] context [SEP]`. A context that does not fit is cut into windows
//! that overlap by `stride` tokens, each of them an input of its own; the target of a window is where in it the answer
//! begins and ends, or its first token where the answer is not in it as a whole. Source: Hugging Face's example for question
//! answering; Devlin et al. 2019, section 4.2 and 4.3.

use std::ops::Range;
use std::sync::Arc;

use stratoscope_diagnostics::Result;

use crate::annotation::{Annotation, Answer};
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::Example;
use crate::problem;
use crate::tokenize::{self, Form, Piece, Tokenize, Tokenized};

/// What an answer is read from and compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its example, counted from 0 in the data.
    pub example: usize,
    /// The text that is asked about.
    pub context: String,
    /// The answers that count as right; none where there is no answer.
    pub answers: Vec<String>,
}

/// The part of a context that is in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What it is a part of, shared by all windows of an example.
    pub passage: Arc<Passage>,
    /// Which of the windows of its example it is, counted from 0.
    pub part: usize,
    /// The position of its first token of the context.
    pub first: usize,
    /// The bytes of the context that each of its tokens stands for.
    pub ranges: Vec<Range<usize>>,
}

impl Example {
    /// A question about a text.
    pub(crate) fn of_question(question: &str, context: &str, answers: Vec<Answer>) -> Self {
        Self::new(question).with_pair(context).with_answers(answers)
    }

    /// The same as a question, with what is right to answer in its second text.
    pub(crate) fn with_answers(self, answers: Vec<Answer>) -> Self {
        Self {
            annotation: Some(Arc::new(Annotation::Answers(answers))),
            ..self
        }
    }

    /// The answers of a question that has been given some, or none.
    pub fn answers(&self) -> Option<&[Answer]> {
        match self.annotation.as_deref() {
            Some(Annotation::Answers(answers)) => Some(answers),
            _ => None,
        }
    }
}

impl Dataset {
    /// A data set of questions, each with a text and the part of it that is the answer. An empty answer says that
    /// the text has none. The answer is where it occurs first in the text.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_questions([
    ///     ("who wrote the manual ?", "the manual was written by Ada Lovelace", "Ada Lovelace"),
    ///     ("who wrote the code ?", "the manual was written by Ada Lovelace", ""),
    /// ])?;
    /// assert_eq!(data[0].answers().map(|answers| answers[0].range.clone()), Some(26..38));
    /// assert_eq!(data[1].answers(), Some(&[][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0432 for an answer that is not in its text; SC0914 if there is no question.
    pub fn from_questions<Q: AsRef<str>, C: AsRef<str>, A: AsRef<str>>(
        rows: impl IntoIterator<Item = (Q, C, A)>,
    ) -> Result<Self> {
        const SOURCE: &str = "questions in memory";
        let example = |(row, (question, context, answer)): (usize, (Q, C, A))| {
            let (question, context, answer) =
                (question.as_ref(), context.as_ref(), answer.as_ref());
            let answers = match (answer.is_empty(), context.find(answer)) {
                (true, _) => Vec::new(),
                (false, Some(start)) => vec![Answer::at(start, answer)],
                (false, None) => {
                    return Err(problem::outside(
                        SOURCE, row, question, answer, None, context,
                    ));
                }
            };
            Ok(Example::of_question(question, context, answers))
        };
        let examples: Result<Vec<Example>> = rows.into_iter().enumerate().map(example).collect();
        let examples = examples?;
        if examples.is_empty() {
            return Err(problem::empty(SOURCE, "Dataset::from_questions"));
        }
        Ok(Self::from_examples(examples, Vec::new(), SOURCE))
    }

    /// Whether the examples are questions with answers.
    pub fn has_answers(&self) -> bool {
        self.examples
            .iter()
            .any(|example| example.answers().is_some())
    }

    /// Tokenizes questions and their contexts, in parallel: windows of at most `max_length` tokens, of which two share
    /// `stride` tokens of the context. A question never takes more than half of a window.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize); SC0910 for a tokenizer that does not say where its tokens stand.
    pub fn tokenize_questions(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        stride: usize,
    ) -> Result<Encoded> {
        tokenize::has_places(tokenizer, &self.source)?;
        self.may_be_tokenized(max_length)?;
        let encode = |index: usize, example: &Example, whole: Tokenized| {
            windows(whole, example, index, (max_length, stride))
        };
        let (examples, kept) = self.encoded_by(tokenizer, &form(), encode)?;
        let encoded = Encoded::of(examples, tokenizer, max_length).with_kept(kept);
        let is_unanswerable = |it: &Example| it.answers().is_none_or(<[_]>::is_empty);
        Ok(encoded.with_unanswerable(self.examples.iter().any(is_unanswerable)))
    }
}

/// Whole contexts, which are cut into windows then.
pub(crate) fn form() -> Form {
    Form {
        max_length: usize::MAX,
        with_pieces: true,
        pair: |example| Some(example.pair.as_deref().unwrap_or_default()),
    }
}

/// The windows of a question and its context, of which all tokens are given: of at most so many tokens, with so many that
/// two of them share.
pub(crate) fn windows(
    tokenized: Tokenized,
    example: &Example,
    index: usize,
    (max_length, stride): (usize, usize),
) -> Vec<EncodedExample> {
    let Tokenized {
        encoding: whole,
        pieces,
    } = tokenized;
    let in_context = |piece: &Option<Piece>| piece.as_ref().is_some_and(|piece| piece.in_pair);
    let first = pieces
        .iter()
        .position(in_context)
        .unwrap_or(pieces.len().saturating_sub(1));
    let end = pieces
        .iter()
        .rposition(in_context)
        .map_or(first, |last| last + 1);
    let after: Vec<usize> = (end..pieces.len()).collect();
    // The question at most half of a window: what is cut is its end, not the separator.
    let most = (max_length / 2).max(3);
    let cut = first.saturating_sub(most);
    let before: Vec<usize> = match cut {
        0 => (0..first).collect(),
        _ => (0..most - 1).chain([first - 1]).collect(),
    };
    let room = max_length.saturating_sub(before.len() + after.len()).max(1);
    let step = room - stride.min(room - 1);
    let passage = Arc::new(Passage::of(example, index));
    let mut found = Vec::new();
    let mut begin = first;
    loop {
        let stop = (begin + room).min(end);
        let places = before
            .iter()
            .copied()
            .chain(begin..stop)
            .chain(after.iter().copied());
        let (ids, type_ids): (Vec<u32>, Vec<u32>) =
            places.map(|at| (whole.ids[at], whole.type_ids[at])).unzip();
        let ranges: Vec<Range<usize>> = pieces[begin..stop]
            .iter()
            .flatten()
            .map(|piece| piece.range.clone())
            .collect();
        let window = Window {
            passage: Arc::clone(&passage),
            part: found.len(),
            first: before.len(),
            ranges,
        };
        let targets = match example.answers() {
            Some(answers) => {
                let span = answers
                    .first()
                    .and_then(|answer| window.span_of(&answer.range));
                let (start, end) = span.unwrap_or((0, 0));
                Targets::Span([start as i32, end as i32])
            }
            None => Targets::Label,
        };
        found.push(EncodedExample {
            ids,
            type_ids,
            features: example.features.clone(),
            label: None,
            targets,
            index,
            weight: example.weight,
            window: Some(Arc::new(window)),
            truncated: if begin == first { cut } else { 0 },
        });
        if stop >= end {
            return found;
        }
        begin += step;
    }
}

impl Passage {
    fn of(example: &Example, index: usize) -> Self {
        let context = example.pair.clone().unwrap_or_default();
        let answers = example.answers().unwrap_or_default().iter();
        // `Dataset::check_places` has found all of them.
        let answers = answers.filter_map(|answer| context.get(answer.range.clone()));
        let answers = answers.map(str::to_owned);
        Self {
            example: index,
            answers: answers.collect(),
            context,
        }
    }
}

impl Window {
    /// The positions of the first and the last token of some bytes of the context, if all of them are in the window.
    fn span_of(&self, bytes: &Range<usize>) -> Option<(usize, usize)> {
        let start = self
            .ranges
            .iter()
            .position(|range| range.end > bytes.start)?;
        let end = self
            .ranges
            .iter()
            .rposition(|range| range.start < bytes.end)?;
        // A window that begins in the middle of the answer has its end only.
        let is_whole = self.ranges[start].start <= bytes.start && self.ranges[end].end >= bytes.end;
        (is_whole && start <= end).then_some((self.first + start, self.first + end))
    }

    /// The bytes of the context from one position of the input to another, without blanks at either end; `None` outside
    /// of the context.
    pub fn bytes(&self, start: usize, end: usize) -> Option<Range<usize>> {
        let at = |position: usize| self.ranges.get(position.checked_sub(self.first)?);
        let whole = at(start)?.start..at(end)?.end;
        Some(tokenize::trimmed(&self.passage.context, &whole))
    }

    /// The positions of its tokens of the context.
    pub fn positions(&self) -> Range<usize> {
        self.first..self.first + self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Labels;
    use crate::tokenize::letters::Letters;

    fn data() -> Dataset {
        Dataset::from_questions([("q", "abcdefgh", "fg"), ("q", "ab", "")]).expect("they are in it")
    }

    #[test]
    fn long_contexts_are_windows_that_overlap() {
        // [ q ] and ] leave room for 4 letters of the context; two windows share 2.
        let encoded = data()
            .tokenize_questions(&Letters, 8, 2)
            .expect("it has places");
        let ids = |at: usize| encoded.get(at).expect("a window").ids.clone();
        let text = |at: usize| Letters.tokens(&ids(at)).concat();
        let texts: Vec<String> = (0..encoded.len()).map(text).collect();
        assert_eq!(texts, ["[q]abcd]", "[q]cdef]", "[q]efgh]", "[q]ab]"]);
        let targets = |at: usize| encoded.get(at).expect("a window").targets.clone();
        // `fg` is only in the third as a whole.
        let expected = [[0, 0], [0, 0], [4, 5], [0, 0]].map(Targets::Span);
        assert_eq!((0..4).map(targets).collect::<Vec<_>>(), expected);
        let batch = encoded.batch(4).expect("4").next().expect("a batch");
        assert_eq!(batch.rows, [0, 0, 0, 1]);
        let Labels::Spans(labels) = batch.slice(1..3).labels else {
            panic!("{:?}", batch.labels);
        };
        assert_eq!(labels.spans, [[0, 0], [4, 5]]);
        assert!(labels.has_unanswerable);
        let [middle, last] = &labels.windows[..] else {
            panic!("{:?}", labels.windows);
        };
        assert_eq!((middle.part, last.part), (1, 2));
        assert_eq!(last.bytes(4, 5), Some(5..7));
        assert_eq!(last.bytes(0, 0), None);
        assert_eq!(
            (last.passage.example, &last.passage.answers[..]),
            (0, &["fg".to_owned()][..])
        );
    }

    #[test]
    fn a_long_question_leaves_room() {
        let data = Dataset::from_questions([("qqqqqqqqqq", "abcd", "b")]).expect("it is in it");
        let encoded = data
            .tokenize_questions(&Letters, 8, 1)
            .expect("it has places");
        assert!((0..encoded.len()).all(|at| encoded.get(at).is_some_and(|it| it.ids.len() <= 8)));
        let shown = Letters
            .tokens(&encoded.get(0).expect("a window").ids)
            .concat();
        assert_eq!(
            (shown.as_str(), encoded.report().truncated_rows),
            ("[qq]abc]", 1)
        );
    }

    #[test]
    fn an_answer_must_be_in_its_context() {
        let problem = Dataset::from_questions([("q", "abc", "x")]).expect_err("it is not in it");
        assert_eq!(problem.code, "SC0432");
        assert!(format!("{problem:?}").contains('x'));
    }
}
