//! Data before the first step: labels, names, lengths, tokens. What is wrong with any row is said
//! here; the loop meets nothing but good ones. What can be trained on and is probably not what was meant is
//! reported, and the call goes on. Calls: `fit`, `evaluate`, `predict`.

mod choices;
mod in_batch;
mod labels;
mod masked;
mod overlap;
mod pairs;
mod run_data;
mod sets;
mod shards;
mod spans;
mod splits;
mod stream;
mod texts;
mod weights;
mod words;

pub use choices::choosable;
pub use labels::label_value;
pub use masked::has_blanks;
pub use run_data::Prepared;
pub use shards::shard;
pub use spans::asked;
pub use stream::{in_memory_only, label_range};
pub use texts::in_vocabulary;

use std::borrow::Cow;

use stratoscope_data::{Data, Dataset, Encoded, Example, Label, Split, TokenReport};
use stratoscope_diagnostics::rules::{
    DataOfOtherHead, EmptyDataset, HeadWritten, MissingColumn, TextTooLong, TruncatedTexts,
};
use stratoscope_diagnostics::{Result, Rule};

use stratoscope_arguments::context::warnings::notice;
use stratoscope_arguments::{Compiled, FitPlan, Validation, default_max_length};
use stratoscope_metrics::loss::Loss;
use stratoscope_network::{Files, Input, Task};

/// Whether nobody gave any of these names: they are transformers' `LABEL_3`.
pub fn are_generic(names: &[String]) -> bool {
    let is_generic =
        |(index, name): (usize, &String)| name.strip_prefix("LABEL_") == Some(&index.to_string());
    names.iter().enumerate().all(is_generic)
}

/// Whether the classes of data have the numbers that the model gives them: by name, or because its own have no names.
fn are_numbered_alike(own: &[String], names: &[String]) -> bool {
    own.iter().zip(names).all(|(own, name)| own == name) || are_generic(own)
}

/// The data set's label names for the model, where the model has none of its own yet.
pub(crate) fn adopted_names(files: &dyn Files, names: &[String]) -> Option<Vec<String>> {
    let own = files.label_names();
    let unnamed = are_generic(own);
    let fits = (1..=own.len()).contains(&names.len());
    if files.classes().is_none() || !unnamed || !fits {
        return None;
    }
    let rest = own.iter().skip(names.len());
    Some(names.iter().chain(rest).cloned().collect())
}

/// What the one output of a model decides between, under a binary loss: the two names of the data's
/// classes, else those that it has, else `0` and `1`.
pub fn binary_labels(
    files: &dyn Files,
    loss: Option<Loss>,
    names: &[String],
) -> Option<[String; 2]> {
    if files.classes().is_some() || !loss.is_some_and(|loss| loss.is_binary()) {
        return None;
    }
    let of_data = <[String; 2]>::try_from(names.to_vec()).ok();
    let own = || files.binary_labels().cloned();
    of_data
        .or_else(own)
        .or_else(|| Some(["0", "1"].map(str::to_owned)))
}

/// The splits of a run, checked against the model and against each other, and tokenized.
///
/// # Errors
/// As [`encode`]; SC0701, SC0702, SC0703, SC0707, SC0308 and SC0410 where they are denied.
pub(crate) fn splits(
    files: &dyn Files,
    head: &HeadWritten,
    compiled: &Compiled,
    train: Data<'_>,
    validation: Option<Data<'_>>,
    plan: &FitPlan<'_>,
) -> Result<(Split, Option<Split>)> {
    let is_tail = matches!(plan.validation, Validation::Split(_));
    let first = match (validation, plan.validation_steps) {
        (Some(data), Some(batches)) => data.first(batches.saturating_mul(plan.batch_size))?,
        _ => None,
    };
    let validation = first.as_ref().map(Data::Held).or(validation);
    let tokens = |data, by_length| {
        let loss = compiled.loss;
        encode_data(files, head, loss, data, (plan.max_length, by_length), "fit")
    };
    let has_negatives = match train {
        Data::Held(train) => train.has_choices(),
        Data::Streamed(train) => train.choices().is_some(),
    };
    in_batch::batches(compiled.loss, plan, has_negatives)?;
    let encoded = tokens(train, plan.group_by_length)?;
    texts::has_lengths(&encoded, plan)?;
    let validated = validation.map(|data| tokens(data, false)).transpose()?;
    let (data, split) = match validation {
        Some(validation) => (validation, "validation"),
        None => (train, "training"),
    };
    let finding = match files.classes() {
        // Labels are not used, or say yes and no of what a text has, or of what belongs together.
        _ if matches!(files.task(), Task::Masked | Task::Set | Task::Embedding) => None,
        Some(_) => labels::majority(data, split, &compiled.metrics),
        None => match train {
            Data::Held(train) => labels::classes_as_numbers(train, compiled.loss),
            Data::Streamed(train) => stream::classes_as_numbers(train, compiled.loss)?,
        },
    };
    finding.map_or(Ok(()), notice)?;
    if let Some(validation) = validation {
        let finding = [
            match (train, validation) {
                (Data::Held(train), Data::Held(data)) => splits::overlap(train, data, is_tail),
                _ => overlap::of_streams(train, validation)?,
            },
            match files.task() {
                Task::Masked | Task::Set => None,
                _ => splits::other_classes(train, validation, is_tail),
            },
        ];
        finding.into_iter().flatten().try_for_each(notice)?;
    }
    let finding = [
        splits::never_seen(&encoded, plan)?,
        texts::padding(&encoded, plan),
    ];
    finding.into_iter().flatten().try_for_each(notice)?;
    Ok((encoded, validated))
}

/// Checks and tokenizes data for a model: a data set at once, a stream some rows at a time. `loss`: what the model is trained
/// with, which decides whether the texts of an example are read one by one. `keeps_lengths`: the length of each row of a stream
/// stays known.
///
/// # Errors
/// As [`encode`].
pub fn encode_data(
    files: &dyn Files,
    head: &HeadWritten,
    loss: Option<Loss>,
    data: Data<'_>,
    (max_length, keeps_lengths): (Option<usize>, bool),
    call: &str,
) -> Result<Split> {
    match data {
        Data::Held(data) => encode(files, head, loss, data, max_length, call).map(Split::Held),
        Data::Streamed(stream) => {
            weights::checked(data, call)?;
            let max_length = checked_length(files, max_length, call)?;
            let tokens = (max_length, keeps_lengths);
            stream::encode(files, head, loss, stream, tokens, call).map(Split::Streamed)
        }
    }
}

/// The most tokens of an example, which may not be more than the model has positions.
fn checked_length(files: &dyn Files, max_length: Option<usize>, call: &str) -> Result<usize> {
    let limit = files.max_positions();
    let max_length = max_length.unwrap_or_else(|| default_max_length(limit));
    match max_length > limit {
        true => Err(TextTooLong {
            max_length,
            limit,
            call: call.to_owned(),
        }
        .error()),
        false => Ok(max_length),
    }
}

/// Checks and tokenizes a data set for a model that is trained with a loss.
///
/// # Errors
/// SC0914 for no example, SC0401 for a `max_length` above the model's positions, SC0313 for labels
/// that are missing, SC0301 for a label without an output, SC0913 for a class that the model does
/// not know by that name, SC0307 for numbers in place of classes; SC0314, SC0403, SC0405, SC0407,
/// SC0409 and SC0433 where they are denied.
pub fn encode(
    files: &dyn Files,
    head: &HeadWritten,
    loss: Option<Loss>,
    data: &Dataset,
    max_length: Option<usize>,
    call: &str,
) -> Result<Encoded> {
    if data.is_empty() {
        let source = format!("`{}`", data.source);
        return Err(EmptyDataset {
            source,
            wanted_by: format!("`{call}!`"),
        }
        .error());
    }
    weights::checked(Data::Held(data), call)?;
    labels::similar(&data.label_names, &data.source, call).map_or(Ok(()), notice)?;
    let max_length = checked_length(files, max_length, call)?;
    let compared = loss.filter(|loss| loss.compares_examples());
    let data = match files.classes() {
        Some(classes) if files.task() == Task::Words => {
            words::checked(files, head, data, classes, call)?
        }
        _ if files.task() == Task::Span => spans::checked(files, data, call)?,
        _ if files.task() == Task::Masked => Cow::Borrowed(data),
        _ if files.task() == Task::Embedding => match compared {
            Some(loss) => in_batch::checked(files, loss, data, call)?,
            None => pairs::checked(files, data, call)?,
        },
        Some(labels) if files.task() == Task::Set => {
            sets::checked(files, head, data, labels, call)?
        }
        Some(choices) if files.task() == Task::Choice => {
            choices::checked(files, data, choices, call)?
        }
        _ if is_of_other_head(data) => return Err(tagged(files, data, call)),
        Some(classes) => with_classes(files, head, data, classes, call)?,
        None => with_numbers(data)?,
    };
    let mut found = texts::Found::new(&data.source, call);
    found.add_texts(&data);
    found.empty().map_or(Ok(()), notice)?;
    let tokenizer = files.tokenizer();
    let encoded = match files.task() {
        Task::Embedding if compared.is_some() => data.tokenize_apart(tokenizer, max_length)?,
        Task::Example | Task::Set | Task::Embedding => data.tokenize(tokenizer, max_length)?,
        Task::Words => data.tokenize_words(tokenizer, max_length)?,
        Task::Span => data.tokenize_questions(tokenizer, max_length, files.stride(max_length))?,
        Task::Masked => data.tokenize_masked(tokenizer, max_length, files.masking())?,
        Task::Choice => data.tokenize_choices(tokenizer, max_length)?,
    };
    texts::in_vocabulary(files, &data, &encoded, call)?;
    report_truncated(encoded.report(), call)?;
    // Windows are not examples.
    if files.task() == Task::Span {
        let mut targeted = spans::Targeted::new(&data.source, max_length, call);
        targeted.add(&data, &encoded);
        targeted.finding().map_or(Ok(()), notice)?;
        return Ok(encoded);
    }
    found.add_tokens(&data, &encoded, tokenizer);
    let finding = [found.unknown(), found.one_segment()];
    finding.into_iter().flatten().try_for_each(notice)?;
    Ok(encoded)
}

/// Checks texts that are asked about: SC0409 for empty ones, SC0407 for those that were cut.
///
/// # Errors
/// SC0402 for a token that the model does not have; SC0407 and SC0409, where they are denied.
pub fn report_texts(
    files: &dyn Files,
    data: &Dataset,
    encoded: &Encoded,
    call: &str,
) -> Result<()> {
    texts::in_vocabulary(files, data, encoded, call)?;
    if files.takes() == Input::Texts {
        let mut found = texts::Found::new(&data.source, call);
        found.add_texts(data);
        found.empty().map_or(Ok(()), notice)?;
    }
    report_truncated(encoded.report(), call)
}

/// SC0407, a note, if texts were cut.
///
/// # Errors
/// SC0407, where it is denied.
pub fn report_truncated(report: &TokenReport, call: &str) -> Result<()> {
    if report.truncated_rows == 0 {
        return Ok(());
    }
    let rule = TruncatedTexts {
        texts: report.truncated_rows,
        total: report.rows,
        tokens_lost: report.truncated_tokens,
        max_length: report.max_length,
        call: call.to_owned(),
    };
    notice(rule.diagnostic())
}

fn with_classes<'a>(
    files: &dyn Files,
    head: &HeadWritten,
    data: &'a Dataset,
    classes: usize,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    if let Some(finding) = labels::floats(data, classes, call) {
        return Err(Box::new(finding));
    }
    let without = |example: &Example| !matches!(example.label, Some(Label::Class(_)));
    if data.examples.iter().any(without) {
        return Err(without_labels(data, "label"));
    }
    let range = labels::LabelRange {
        head,
        outputs: classes,
        largest: Example::class,
        call,
    };
    range.check(data)?;
    let own = files.label_names();
    if are_numbered_alike(own, &data.label_names) {
        return Ok(Cow::Borrowed(data));
    }
    labels::other_order(own, &data.label_names, &data.source, call).map_or(Ok(()), notice)?;
    // The data numbers its classes in another order than the model, or has fewer of them.
    Ok(Cow::Owned(data.clone().with_label_names(own)?))
}

/// Whether the examples have more than a class or a number.
fn is_of_other_head(data: &Dataset) -> bool {
    data.is_tagged() || data.has_answers() || data.has_label_sets() || data.has_choices()
}

/// What the labels of the examples are, in words, and the model for them.
fn kind_of(data: &Dataset) -> (&'static str, Option<&'static str>) {
    match data.examples.iter().find_map(|example| example.label) {
        _ if data.is_tagged() => ("words with tags", Some("BertForTokenClassification")),
        _ if data.has_answers() => ("questions with answers", Some("BertForQuestionAnswering")),
        _ if data.has_label_sets() => (
            "a set of labels for each text",
            Some("BertForSequenceClassification::from_pretrained_multi_label"),
        ),
        _ if data.has_choices() => ("prompts with choices", Some("BertForMultipleChoice")),
        Some(Label::Class(_)) => (
            "a class for each text",
            Some("BertForSequenceClassification"),
        ),
        Some(Label::Value(_)) => (
            "a number for each text",
            Some("BertForSequenceClassification"),
        ),
        None => ("no labels", None),
    }
}

/// SC0431: tagged words for a model that answers a whole text.
fn tagged(
    files: &dyn Files,
    data: &Dataset,
    call: &str,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    let (has, fitting) = kind_of(data);
    let rule = DataOfOtherHead {
        model: files.model_name().to_owned(),
        wants: "a class or a number for each text",
        has,
        reader: "Dataset::tsv(\"train.tsv\")?",
        fitting,
        row: 0,
        source: data.source.clone(),
        call: call.to_owned(),
    };
    rule.error()
}

fn with_numbers(data: &Dataset) -> Result<Cow<'_, Dataset>> {
    if data.examples.iter().any(|example| example.label.is_none()) {
        return Err(without_labels(data, "a number"));
    }
    Ok(Cow::Borrowed(data))
}

fn without_labels(data: &Dataset, column: &str) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = MissingColumn {
        column: column.to_owned(),
        found: if data.is_paired() {
            vec!["text".into(), "pair".into()]
        } else {
            vec!["text".into()]
        },
        path: data.source.clone(),
        reader: None,
    };
    rule.error()
}
