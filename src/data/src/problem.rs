//! The diagnostics of this crate: each function fills in the facts of a rule, and adds the call in the cell to the place
//! in the file.

use std::fmt::Display;
use std::path::Path;

use stratoscope_diagnostics::rules::{
    AnswerOutsideContext, DataUnreadable, DuplicateColumn, EmptyDataset, InvalidSize,
    LengthMismatch, MissingColumn, MissingLabels, RaggedRow, TokenizerUnusable, UnknownLabel,
    WriteFailed,
};
use stratoscope_diagnostics::{Diagnostic, Place, Rule};

use crate::annotation::Answer;
use crate::example::Example;

type Problem = Box<Diagnostic>;

/// SC0911: a file that is missing, not readable, too large or not text of its format.
pub(crate) fn unreadable(
    call: &str,
    path: &str,
    line: Option<usize>,
    reason: impl Into<String>,
) -> Problem {
    let rule = DataUnreadable {
        path: path.to_owned(),
        line,
        reason: reason.into(),
        fix: None,
    };
    called(call, "read here", rule.diagnostic())
}

/// Adds to SC0911 how a file of another encoding is read.
/// `word`: what its first other word is in Latin-1.
pub(crate) fn in_encoding(
    mut problem: Problem,
    call: &str,
    path: &str,
    (encoding, word): (&str, Option<&str>),
) -> Problem {
    if let Some(word) = word {
        *problem = problem.evidence("as Latin-1", format!("`{word}`"));
    }
    problem.fixes.clear();
    let takes_columns = ["Dataset::csv", "Dataset::tsv", "Dataset::jsonl"].contains(&call);
    Box::new(match takes_columns {
        true => problem.fix(format!(
            "name its encoding: `{call}_with({path:?}, &Columns::new().encoding({encoding:?}))?`"
        )),
        false => problem.fix(format!(
            "write it as UTF-8: `!iconv -f {} -t UTF-8 {path:?} > utf8.txt`",
            encoding.replace("latin-1", "LATIN1").to_uppercase()
        )),
    })
}

/// SC0911 with its own way out.
pub(crate) fn unreadable_with(call: &str, path: &str, reason: &str, fix: &str) -> Problem {
    let mut problem = unreadable(call, path, None, reason);
    problem.fixes.clear();
    Box::new(problem.fix(fix))
}

/// SC0912: rows with more or fewer fields than the header.
pub(crate) fn ragged_row(call: &str, rule: &RaggedRow) -> Problem {
    called(call, "read here", rule.diagnostic())
}

/// SC0313: a required column is missing.
pub(crate) fn missing_column(call: &str, path: &str, column: &str, found: &[String]) -> Problem {
    let rule = MissingColumn {
        column: column.to_owned(),
        found: found.to_vec(),
        path: path.to_owned(),
        reader: Some(call.to_owned()),
    };
    called(call, "read here", rule.diagnostic())
}

/// SC0417: a required column occurs more than once, at these places counted from 0.
pub(crate) fn duplicate_column(call: &str, path: &str, column: &str, places: &[usize]) -> Problem {
    let rule = DuplicateColumn {
        column: column.to_owned(),
        positions: places.iter().map(|place| place + 1).collect(),
        path: path.to_owned(),
    };
    called(call, "read here", rule.diagnostic())
}

/// SC0416: rows without a label. `missing`: the lines of the first ones, counted from 1, in a file, else their numbers,
/// counted from 0; and how many there are.
pub(crate) fn missing_labels(
    call: &str,
    source: &str,
    column: Option<&str>,
    (first, count): (&[usize], usize),
    rows: usize,
) -> Problem {
    const SHOWN: usize = 5;
    let rule = MissingLabels {
        source: source.to_owned(),
        column: column.map(str::to_owned),
        is_file: column.is_some(),
        first: first.iter().take(SHOWN).copied().collect(),
        count,
        rows,
        call: call.to_owned(),
    };
    match column {
        Some(_) => called(call, "read here", rule.diagnostic()),
        None => rule.error(),
    }
}

/// SC0913: labels that are not among the classes; `example` is the first, and `rows` examples have one.
pub(crate) fn unknown_label(
    path: &str,
    example: &Example,
    given: &str,
    known: &[String],
    rows: usize,
) -> Problem {
    let rule = UnknownLabel {
        label: given.to_owned(),
        path: path.to_owned(),
        // Data from memory has no lines; its rows are counted from 1.
        line: example.line.unwrap_or(example.row + 1),
        known: known.to_vec(),
        rows,
    };
    rule.error()
}

/// SC0911: the labels of a data set are not all of one kind.
pub(crate) fn mixed_labels(path: &str, first: &Example, other: &Example) -> Problem {
    let kind = |example: &Example| match example.label {
        None => "no label",
        Some(crate::Label::Class(_)) => "a class",
        Some(crate::Label::Value(_)) => "a number",
    };
    let reason = format!(
        "row {} has {}, row {} has {}",
        first.row,
        kind(first),
        other.row,
        kind(other)
    );
    let rule = DataUnreadable {
        path: path.to_owned(),
        line: other.line,
        reason,
        fix: Some("give all examples labels of one kind, or none"),
    };
    rule.error()
}

/// SC0911: the text of an example was changed, and its words are not where they were marked.
pub(crate) fn moved_words(path: &str, example: &Example) -> Problem {
    let reason = format!(
        "the words of row {} do not stand in its text where they were marked: the text was changed, as `map` does",
        example.row
    );
    let rule = DataUnreadable {
        path: path.to_owned(),
        line: example.line,
        reason,
        fix: Some(
            "change the words first, and make the data set of them: `Dataset::from_words(rows)?`",
        ),
    };
    rule.error()
}

/// SC0432: the context of a question was changed, and an answer is not where it was.
pub(crate) fn moved_answer(source: &str, example: &Example, answer: &Answer) -> Problem {
    let context = example.pair.as_deref().unwrap_or_default();
    let before = context.char_indices();
    let start = before.take_while(|(at, _)| *at < answer.range.start);
    let rule = AnswerOutsideContext {
        was_there: true,
        ..outside_rule(
            source,
            example.row,
            &example.text,
            &answer.text,
            Some(start.count()),
            context,
        )
    };
    rule.error()
}

/// SC0914: an empty data set.
pub(crate) fn empty(source: &str, wanted_by: &str) -> Problem {
    let rule = EmptyDataset {
        source: format!("`{source}`"),
        wanted_by: format!("`{wanted_by}`"),
    };
    called(wanted_by, "needs at least one", rule.diagnostic())
}

/// SC0915: a size that is zero or out of its range.
pub(crate) fn bad_size(place: Place, name: &str, given: impl Display, expects: &str) -> Problem {
    let rule = InvalidSize {
        what: name.to_owned(),
        given: given.to_string(),
        expects: expects.to_owned(),
        place: Some(place),
    };
    rule.error()
}

/// SC0704 for weights of examples.
pub(crate) fn lengths_of_weights(examples: usize, weights: usize) -> Problem {
    let rule = LengthMismatch {
        first: "examples".to_owned(),
        first_length: examples,
        second: "weights".to_owned(),
        second_length: weights,
    };
    called(
        "Dataset::with_weights",
        "the lists differ in length",
        rule.diagnostic(),
    )
}

/// SC0704 for the examples and the labels of a call.
pub(crate) fn lengths_of_arrays(call: &str, examples: usize, labels: usize) -> Problem {
    let [first, second, lists] = match call {
        "Dataset::from_rows" => ["texts", "labels", "the lists"],
        "Dataset::from_pair_rows" => ["pairs", "labels", "the lists"],
        _ => ["rows in `x`", "in `y`", "`x` and `y`"],
    };
    let rule = LengthMismatch {
        first: first.to_owned(),
        first_length: examples,
        second: second.to_owned(),
        second_length: labels,
    };
    called(
        call,
        &format!("{lists} differ in length"),
        rule.diagnostic(),
    )
}

/// A call, as a place.
pub(crate) fn call(call: &str) -> Place {
    Place::Call {
        call: call.to_owned(),
    }
}

/// An argument of `fit!`, as a place.
pub(crate) fn fit_argument(name: &str) -> Place {
    Place::Argument {
        call: "fit".to_owned(),
        name: name.to_owned(),
    }
}

/// Adds the call where the problem occurred; the place in the file stays the primary one.
fn called(name: &str, text: &str, diagnostic: Diagnostic) -> Problem {
    Box::new(diagnostic.label(call(name), text))
}

/// SC0908: a file that cannot be written.
pub(crate) fn not_written(path: &Path, reason: impl Display) -> Problem {
    let rule = WriteFailed {
        path: path.display().to_string(),
        reason: reason.to_string(),
    };
    called("packed", "written here", rule.diagnostic())
}

/// SC0910: a tokenizer that does not say where its tokens stand.
pub(crate) fn no_places(source: &str) -> Problem {
    let rule = TokenizerUnusable {
        path: source.to_owned(),
        reason:
            "the tokenizer does not say where in the text its tokens stand, so words have no tokens"
                .to_owned(),
    };
    rule.error()
}

/// SC0910: a tokenizer without a mask.
pub(crate) fn no_mask(source: &str) -> Problem {
    let rule = TokenizerUnusable {
        path: source.to_owned(),
        reason: "the vocabulary of the tokenizer has no token that hides others, such as `[MASK]`"
            .to_owned(),
    };
    rule.error()
}

/// SC0432: an answer that is not in its context, or not at the character `start`.
pub(crate) fn outside(
    source: &str,
    row: usize,
    question: &str,
    answer: &str,
    start: Option<usize>,
    context: &str,
) -> Problem {
    outside_rule(source, row, question, answer, start, context).error()
}

fn outside_rule(
    source: &str,
    row: usize,
    question: &str,
    answer: &str,
    start: Option<usize>,
    context: &str,
) -> AnswerOutsideContext {
    const SHOWN: usize = 80;
    let rest = context.chars().skip(start.unwrap_or(0));
    let elsewhere = match answer.is_empty() {
        true => None,
        false => context.find(answer),
    };
    AnswerOutsideContext {
        source: source.to_owned(),
        row,
        question: question.to_owned(),
        answer: answer.to_owned(),
        start,
        found: rest.take(SHOWN).collect(),
        length: context.chars().count(),
        elsewhere: elsewhere.map(|at| context[..at].chars().count()),
        was_there: false,
    }
}
