//! Texts that belong together, for losses that compare the examples of a batch, before the first step. SC0103, SC0431, SC0434.

use std::borrow::Cow;
use std::collections::HashMap;

use stratoscope_data::{Dataset, Example, Stream};
use stratoscope_diagnostics::rules::{DataOfOtherHead, FalseNegatives};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;

use stratoscope_arguments::context::warnings::notice;
use stratoscope_arguments::{Choice, FitPlan};
use stratoscope_diagnostics::problem;
use stratoscope_metrics::loss::Loss;
use stratoscope_network::Files;

const PAIRS: (&str, &str) = (
    "pairs of texts that belong together",
    "Dataset::tsv_with(\"pairs.tsv\", &Columns::new().text(\"first\").pair(\"second\").unlabelled())?",
);
const TRIPLETS: (&str, &str) = (
    "triplets: a text, one that belongs to it, and one that does not",
    "Dataset::from_triplets([(\"send e-mail\", \"a mail server\", \"a game of chess\")])?",
);

/// What a loss takes, in words, and a call that reads it.
fn wanted(loss: Loss) -> (&'static str, &'static str) {
    match loss.min_texts() {
        2 => PAIRS,
        _ => TRIPLETS,
    }
}

/// Examples with as many texts as the loss needs, and equally many each. A note for texts that are in several of them.
///
/// # Errors
/// SC0431 for data of another kind; SC0103 for another number of texts, and for pairs with different labels; SC0434 where it is
/// denied.
pub(super) fn checked<'a>(
    files: &dyn Files,
    loss: Loss,
    data: &'a Dataset,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let is_other = data.is_tagged() || data.has_answers() || data.has_label_sets();
    let texts = |example: &Example| example.texts_apart().len();
    let is_unfit = |example: &&Example| is_other || texts(example) < loss.min_texts();
    if let Some(first) = data.examples.iter().find(is_unfit) {
        let (has, fitting) = match data.is_paired() && !is_other {
            true => ("pairs", None),
            false => super::kind_of(data),
        };
        return Err(other_kind(
            files,
            loss,
            (has, fitting),
            (first.row, &data.source),
            call,
        ));
    }
    let expected = data.examples.first().map_or(0, texts);
    if let Some(first) = data.examples.iter().find(|it| texts(it) != expected) {
        let given = format!("{} in row {}", text::count(texts(first), "text"), first.row);
        let expects = format!("{} in each row", text::count(expected, "text"));
        return Err(Box::new(problem::bad_value(call, "data", given, expects)));
    }
    if !data.has_choices() {
        let mut labels = data.examples.iter().map(|example| example.label);
        let first = labels.next().flatten();
        if labels.any(|label| label != first) {
            return Err(different_labels(call));
        }
    }
    if call == "fit" && loss.needs_several() {
        false_negatives(loss, data, call).map_or(Ok(()), notice)?;
    }
    Ok(Cow::Borrowed(data))
}

/// The same of a stream, by what its first pass has counted. Texts that are in several rows are not looked for.
///
/// # Errors
/// SC0431 and SC0103, as [`checked`].
pub(super) fn checked_stream(
    files: &dyn Files,
    loss: Loss,
    stream: &Stream,
    call: &str,
) -> Result<()> {
    let texts = match (stream.choices(), stream.is_paired()) {
        (Some(choices), _) => 1 + choices,
        (None, is_paired) => 1 + usize::from(is_paired),
    };
    let is_other = stream.is_tagged() || stream.has_answers() || stream.has_label_sets();
    if is_other || texts < loss.min_texts() {
        let has = match texts {
            2 if !is_other => "streamed pairs",
            _ => "streamed rows of another kind",
        };
        return Err(other_kind(
            files,
            loss,
            (has, None),
            (0, stream.source()),
            call,
        ));
    }
    let classes = stream
        .class_counts()
        .iter()
        .filter(|&&count| count > 0)
        .count();
    let differ = |(low, high): (f32, f32)| low != high;
    let are_different = classes > 1 || stream.value_range().is_some_and(differ);
    match stream.choices().is_none() && are_different {
        true => Err(different_labels(call)),
        false => Ok(()),
    }
}

/// SC0431.
fn other_kind(
    files: &dyn Files,
    loss: Loss,
    (has, fitting): (&'static str, Option<&'static str>),
    (row, source): (usize, &str),
    call: &str,
) -> Box<Diagnostic> {
    let (wants, reader) = wanted(loss);
    let rule = DataOfOtherHead {
        model: files.model_name().to_owned(),
        wants,
        has,
        reader,
        fitting,
        row,
        source: source.to_owned(),
        call: call.to_owned(),
    };
    rule.error()
}

/// SC0103: the loss would take pairs that do not belong together for pairs that do.
fn different_labels(call: &str) -> Box<Diagnostic> {
    let expects = "pairs that belong together, without labels or with the same one";
    let problem = problem::bad_value(call, "data", "pairs with different labels", expects);
    Box::new(
        problem
            .why("the loss takes every pair for one that belongs together, and never reads its label")
            .fix("keep those that do: `data.filter(|example| example.class() == Some(1))`"),
    )
}

/// SC0434 for texts that are in several examples.
fn false_negatives<'a>(loss: Loss, data: &'a Dataset, call: &str) -> Option<Diagnostic> {
    // By the place of the text in its example.
    let mut known: HashMap<(usize, &str), (usize, usize)> = HashMap::new();
    let own = |example: &'a Example| -> Vec<&'a str> {
        example.texts_apart().into_iter().take(2).collect()
    };
    let each: Vec<Vec<&str>> = data.examples.iter().map(own).collect();
    let mut first: Option<(String, [usize; 2])> = None;
    for (texts, example) in each.iter().zip(&data.examples) {
        for (at, &text) in texts.iter().enumerate() {
            let (row, count) = known.entry((at, text)).or_insert((example.row, 0));
            *count += 1;
            if *count > 1 && first.is_none() {
                first = Some((text.to_owned(), [*row, example.row]));
            }
        }
    }
    let is_shared = |texts: &&Vec<&str>| {
        let mut texts = texts.iter().enumerate();
        texts.any(|(at, &text)| known.get(&(at, text)).is_some_and(|it| it.1 > 1))
    };
    let rule = FalseNegatives {
        rows: each.iter().filter(is_shared).count(),
        total: data.len(),
        first: first?,
        loss: loss.name().to_owned(),
        source: data.source.clone(),
        call: call.to_owned(),
    };
    Some(rule.diagnostic())
}

/// Whether a run has batches in which there is something to compare, computed at once.
///
/// # Errors
/// SC0103 for batches of one example, and for batches that may be computed in parts.
pub(super) fn batches(loss: Option<Loss>, plan: &FitPlan<'_>, hard: bool) -> Result<()> {
    let Some(loss) = loss.filter(|loss| loss.needs_several()) else {
        return Ok(());
    };
    if plan.batch_size == 1 && !hard {
        let expects = "at least 2";
        let problem = problem::bad_value("fit", "batch_size", 1, expects);
        let why = format!(
            "`{}` takes the other examples of a batch as negatives: without any, every loss is 0",
            loss.name()
        );
        return Err(Box::new(problem.why(why)));
    }
    if plan.choice == Choice::Parts {
        let expects = "a number, such as `batch_size = 32`";
        let problem = problem::bad_value("fit", "batch_size", "auto(…)", expects);
        let why = "a batch that is computed in parts has the negatives of each part only";
        return Err(Box::new(problem.why(why)));
    }
    Ok(())
}
