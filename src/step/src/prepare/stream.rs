//! A stream before the first step: labels by what its first pass has counted, texts in one pass over their tokens, some at a
//! time. What is said of a data set in memory is said here too, in the same words.

use std::sync::Arc;

use stratoscope_data::{
    Dataset, Encoded, EncodedExample, EncodedStream, Example, Stream, StreamTokens, TokensOf,
    encode_example,
};
use stratoscope_diagnostics::rules::{DataOfOtherHead, HeadWritten};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use super::labels::LabelRange;
use super::{
    are_numbered_alike, choices, in_batch, labels, pairs, report_truncated, sets, spans, texts,
    without_labels, words,
};
use stratoscope_arguments::context::warnings::notice;
use stratoscope_diagnostics::problem;
use stratoscope_metrics::loss::Loss;
use stratoscope_network::{Files, Task};

/// Examples by which a stream is described.
const SAMPLE: usize = 512;

/// Checks a stream against a model, and counts its tokens.
///
/// # Errors
/// As [`super::encode`]; SC0431 for a model whose examples cannot be streamed.
pub(super) fn encode(
    files: &dyn Files,
    head: &HeadWritten,
    loss: Option<Loss>,
    stream: &Stream,
    (max_length, keeps_lengths): (usize, bool),
    call: &str,
) -> Result<EncodedStream> {
    let range = |outputs: usize, largest: fn(&Example) -> Option<usize>| LabelRange {
        head,
        outputs,
        largest,
        call,
    };
    let compared = loss.filter(|loss| loss.compares_examples());
    let stream = match (files.task(), files.classes()) {
        (Task::Embedding, _) if compared.is_some() => {
            let checked = |loss| in_batch::checked_stream(files, loss, stream, call);
            compared.map_or(Ok(()), checked)?;
            stream.clone()
        }
        (Task::Masked, _) => stream.clone(),
        (Task::Words, Some(tags)) if stream.is_tagged() => {
            numbered(files, stream, &range(tags, words::largest_tag))?
        }
        _ if stream.is_tagged() => return Err(of_other_head(files, stream, call)),
        (Task::Set, Some(labels)) if stream.has_label_sets() => {
            numbered(files, stream, &range(labels, sets::largest))?
        }
        _ if stream.has_label_sets() => return Err(sets_for_other_head(files, stream, call)),
        (Task::Span, _) if stream.has_answers() => stream.clone(),
        _ if stream.has_answers() => return Err(of_other_head(files, stream, call)),
        (Task::Choice, Some(choices)) if stream.choices().is_some() => {
            choices::checked_stream(stream, choices, call)?;
            stream.clone()
        }
        _ if stream.choices().is_some() => return Err(of_other_head(files, stream, call)),
        (Task::Embedding, _) if stream.is_paired() => pairs::checked_stream(files, stream, call)?,
        (Task::Example, Some(classes)) => {
            with_classes(files, stream, &range(classes, Example::class))?
        }
        (Task::Example, None) => with_numbers(stream)?,
        _ => return Err(of_other_head(files, stream, call)),
    };
    let is_masked = files.task() == Task::Masked;
    let of = tokens_of(files, compared, max_length);
    let own = files.boxed();
    let encode = move |example: &Example| -> Result<Vec<EncodedExample>> {
        encode_example(own.tokenizer(), example, max_length, of)
    };
    let tokens = StreamTokens {
        encode: Arc::new(encode),
        tokenizer: files.tokenizer(),
        max_length,
        masking: is_masked.then(|| files.masking()),
        keeps_lengths,
    };
    let mut found = texts::Found::new(stream.source(), call);
    let mut targeted = spans::Targeted::new(stream.source(), max_length, call);
    let mut begins = words::Begins::of(stream.label_names(), stream.source(), call);
    let encoded = stream.tokenize(tokens, &mut |portion: &Dataset, encoded: &Encoded| {
        texts::in_vocabulary(files, portion, encoded, call)?;
        begins.add(&portion.examples);
        found.add_texts(portion);
        match files.task() {
            // Windows are not examples.
            Task::Span => targeted.add(portion, encoded),
            _ => found.add_tokens(portion, encoded, files.tokenizer()),
        }
        Ok(())
    })?;
    let similar = labels::similar(stream.label_names(), stream.source(), call);
    let findings = [similar, begins.finding(), targeted.finding(), found.empty()];
    findings.into_iter().flatten().try_for_each(notice)?;
    report_truncated(encoded.report(), call)?;
    let findings = [found.unknown(), found.one_segment()];
    findings.into_iter().flatten().try_for_each(notice)?;
    Ok(encoded)
}

/// What becomes tokens of a row.
fn tokens_of(files: &dyn Files, compared: Option<Loss>, max_length: usize) -> TokensOf {
    match files.task() {
        Task::Masked => TokensOf::Masked,
        Task::Words => TokensOf::Words,
        Task::Choice => TokensOf::Choices,
        Task::Span => TokensOf::Windows {
            stride: files.stride(max_length),
        },
        _ if compared.is_some() => TokensOf::Apart,
        _ => TokensOf::Texts,
    }
}

/// SC0431 for a stream whose rows are of another kind than the model's examples.
fn of_other_head(files: &dyn Files, stream: &Stream, call: &str) -> Box<Diagnostic> {
    let (wants, reader) = match files.task() {
        Task::Words => ("words with tags", "Stream::conll(\"train.conll\")?"),
        Task::Example => (
            "a class or a number for each text",
            "Stream::csv(\"train.csv\")?",
        ),
        Task::Span => ("questions with answers", "Stream::squad(\"train.json\")?"),
        Task::Set => (
            "a set of labels for each text, since it is multi-label",
            "Stream::csv_with(\"train.csv\", &Columns::new().labels(\"labels\", \",\"))?",
        ),
        Task::Choice => (
            choices::WANTED,
            "Stream::csv_with(\"train.csv\", &Columns::new().text(\"prompt\").choices([\"first\", \"second\"]))?",
        ),
        _ => (
            pairs::WANTED,
            "Stream::tsv_with(\"pairs.tsv\", &Columns::new().text(\"first\").pair(\"second\").value(\"similarity\"))?",
        ),
    };
    let (has, fitting) = match stream.is_tagged() {
        true => ("streamed words with tags", "BertForTokenClassification"),
        false if stream.has_answers() => (
            "streamed questions with answers",
            "BertForQuestionAnswering",
        ),
        false if stream.choices().is_some() => {
            ("streamed prompts with choices", "BertForMultipleChoice")
        }
        false => (
            "streamed texts with a class or a number each",
            "BertForSequenceClassification",
        ),
    };
    let rule = DataOfOtherHead {
        model: files.model_name().to_owned(),
        wants,
        has,
        reader,
        fitting: Some(fitting),
        row: 0,
        source: stream.source().to_owned(),
        call: call.to_owned(),
    };
    rule.error()
}

/// SC0431 for sets of labels where a model has no output for each by itself.
fn sets_for_other_head(files: &dyn Files, stream: &Stream, call: &str) -> Box<Diagnostic> {
    let rule = DataOfOtherHead {
        model: files.model_name().to_owned(),
        wants: "a class or a number for each text",
        has: "a set of labels for each text",
        reader: "Stream::csv(\"train.csv\")?",
        fitting: Some("BertForSequenceClassification::from_pretrained_multi_label"),
        row: 0,
        source: stream.source().to_owned(),
        call: call.to_owned(),
    };
    rule.error()
}

/// The first example that a function finds, an empty one if there is none, and how many it finds.
///
/// # Errors
/// SC0911 if a file has changed.
pub(super) fn rows_that(
    stream: &Stream,
    is_meant: impl Fn(&Example) -> bool,
) -> Result<(Example, usize)> {
    let (mut first, mut rows) = (None, 0);
    for portion in stream.portions() {
        for example in portion?.examples {
            if is_meant(&example) {
                rows += 1;
                first.get_or_insert(example);
            }
        }
    }
    Ok((first.unwrap_or_else(|| Example::new("")), rows))
}

/// The stream with its labels, or tags, numbered as the model's, which has outputs for a range of them.
fn numbered(files: &dyn Files, stream: &Stream, range: &LabelRange<'_>) -> Result<Stream> {
    let counts = stream.class_counts();
    let most = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    if most >= range.outputs {
        let (first, rows) = rows_that(stream, |it| range.is_exceeded_by(it))?;
        return Err(range.exceeded(stream.source(), &first, rows, (None, most)));
    }
    match are_numbered_alike(files.label_names(), stream.label_names()) {
        true => Ok(stream.clone()),
        false => stream.with_label_names(files.label_names()),
    }
}

/// The stream with its classes numbered as the model's.
fn with_classes(files: &dyn Files, stream: &Stream, range: &LabelRange<'_>) -> Result<Stream> {
    let &LabelRange {
        outputs: classes,
        call,
        ..
    } = range;
    if stream.value_range().is_some() {
        let sample = Dataset {
            source: stream.source().to_owned(),
            ..stream.first(SAMPLE)?
        };
        return Err(Box::new(
            labels::floats(&sample, classes, call).unwrap_or_else(|| *unlabelled(&sample)),
        ));
    }
    if stream.num_labels() == 0 {
        return Err(unlabelled(&stream.first(1)?));
    }
    let counts = stream.class_counts();
    let rows: usize = counts.iter().skip(classes).sum();
    if rows > 0 {
        let first = stream.find(|example| range.is_exceeded_by(example))?;
        let first = first.unwrap_or_else(|| Example::new(""));
        return Err(range.exceeded(stream.source(), &first, rows, (None, counts.len() - 1)));
    }
    let (own, names) = (files.label_names(), stream.label_names());
    if are_numbered_alike(own, names) {
        return Ok(stream.clone());
    }
    labels::other_order(own, names, stream.source(), call).map_or(Ok(()), notice)?;
    stream.with_label_names(own)
}

pub(super) fn with_numbers(stream: &Stream) -> Result<Stream> {
    match stream.value_range().is_some() || stream.num_labels() > 0 {
        true => Ok(stream.clone()),
        false => Err(without_labels(&stream.first(1)?, "a number")),
    }
}

fn unlabelled(sample: &Dataset) -> Box<Diagnostic> {
    without_labels(sample, "label")
}

/// SC0308, by the first rows.
///
/// # Errors
/// SC0911 if a file has changed.
pub(super) fn classes_as_numbers(
    stream: &Stream,
    loss: Option<Loss>,
) -> Result<Option<Diagnostic>> {
    let sample = stream.first(SAMPLE)?;
    let shown = stratoscope_render::text::thousands(sample.len());
    let sample = Dataset {
        source: format!("the first {shown} rows of {}", stream.source()),
        ..sample
    };
    Ok(labels::classes_as_numbers(&sample, loss))
}

/// SC0103 for what needs all examples in memory.
pub fn in_memory_only(call: &str, argument: &str, given: &str, why: &str) -> Box<Diagnostic> {
    let expects = "a data set in memory, such as `Dataset::csv(…)?`: this run has a stream";
    Box::new(problem::bad_value(call, argument, given, expects).why(why))
}

/// The largest number that a label is, and whether one is outside of what a binary loss takes.
pub fn label_range(stream: &Stream) -> Option<(f64, f64)> {
    // A set of labels is no number.
    let counts = match stream.has_label_sets() {
        true => Vec::new(),
        false => stream.class_counts(),
    };
    let largest = counts.iter().rposition(|&count| count > 0);
    match (stream.value_range(), largest) {
        (Some((low, high)), _) => Some((f64::from(low), f64::from(high))),
        (None, Some(largest)) => Some((0.0, largest as f64)),
        (None, None) => None,
    }
}
