//! Words with tags before the first step: whether there are any, whether the model has a class for each tag, and whether
//! the tags say where entities begin. SC0301, SC0430, SC0431, SC0913.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example, TagScheme, Word};
use stratoscope_diagnostics::rules::{
    DataOfOtherHead, HeadWritten, LabelOutOfRange, TagsWithoutBegin,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use super::are_numbered_alike;
use crate::context::warnings::notice;
use crate::network::Files;

/// Words with tags, numbered as the model's classes.
///
/// # Errors
/// SC0431 for data without tagged words, SC0301 for a tag without an output, SC0913 for a tag that the model does not know
/// by that name; SC0430 where it is denied.
pub(super) fn checked<'a>(
    files: &impl Files,
    head: &HeadWritten,
    data: &'a Dataset,
    classes: usize,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let has_tags = |example: &&Example| {
        let words = example.words();
        words.is_some_and(|words| words.iter().all(|word| word.tag.is_some()))
    };
    if let Some(first) = data.examples.iter().find(|example| !has_tags(example)) {
        let (has, fitting) = super::kind_of(data);
        let rule = DataOfOtherHead {
            model: files.model_name().to_owned(),
            wants: "words with tags",
            has,
            reader: "Dataset::conll(\"train.conll\")?",
            fitting,
            row: first.row,
            source: data.source.clone(),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    without_begin(data, call).map_or(Ok(()), notice)?;
    let tags = |example: &Example| {
        let words = example.words().unwrap_or_default();
        words.iter().filter_map(|word| word.tag).max()
    };
    let too_large = |example: &&Example| tags(example).is_some_and(|tag| tag >= classes);
    if let Some(first) = data.examples.iter().find(too_large) {
        let largest = data.examples.iter().filter_map(tags).max();
        let rule = LabelOutOfRange {
            label: tags(first).unwrap_or_default() as i64,
            row: first.row,
            rows: data.examples.iter().filter(too_large).count(),
            largest: largest.unwrap_or_default() as i64,
            classes,
            head: Some(head.clone()),
            source: data.source.clone(),
            text: Some(first.text.clone()),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    let own = files.label_names();
    if are_numbered_alike(own, &data.label_names) {
        return Ok(Cow::Borrowed(data));
    }
    Ok(Cow::Owned(data.clone().with_label_names(own)?))
}

/// SC0430.
fn without_begin(data: &Dataset, call: &str) -> Option<Diagnostic> {
    let scheme = TagScheme::of(&data.label_names);
    let plain = data
        .label_names
        .iter()
        .filter(|name| !TagScheme::has_prefix(name));
    let mut rule = TagsWithoutBegin {
        plain: plain.cloned().collect(),
        words: 0,
        of: 0,
        first: None,
        source: data.source.clone(),
        call: call.to_owned(),
    };
    for example in &data.examples {
        let words = example.words().unwrap_or_default();
        let tags: Vec<usize> = words.iter().filter_map(|word| word.tag).collect();
        rule.of += tags.iter().filter(|&&tag| scheme.is_in_entity(tag)).count();
        let found = scheme.without_begin(&tags);
        rule.words += found.len();
        if let (None, Some(&at)) = (&rule.first, found.first()) {
            let text = |word: &Word| example.text[word.range.clone()].to_owned();
            rule.first = Some((text(&words[at]), example.row, example.line));
        }
    }
    (rule.words > 0).then(|| rule.diagnostic())
}
