//! Words with tags before the first step: whether there are any, whether the model has a class for each tag, and whether
//! the tags say where entities begin. SC0301, SC0430, SC0431, SC0913.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example, TagScheme, Word};
use stratoscope_diagnostics::rules::{DataOfOtherHead, HeadWritten, TagsWithoutBegin};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use super::are_numbered_alike;
use super::labels::LabelRange;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_network::Files;

/// Words with tags, numbered as the model's classes.
///
/// # Errors
/// SC0431 for data without tagged words, SC0301 for a tag without an output, SC0913 for a tag that the model does not know
/// by that name; SC0430 where it is denied.
pub(super) fn checked<'a>(
    files: &dyn Files,
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
    let mut begins = Begins::of(&data.label_names, &data.source, call);
    begins.add(&data.examples);
    begins.finding().map_or(Ok(()), notice)?;
    let range = LabelRange {
        head,
        outputs: classes,
        largest: largest_tag,
        call,
    };
    range.check(data)?;
    let own = files.label_names();
    if are_numbered_alike(own, &data.label_names) {
        return Ok(Cow::Borrowed(data));
    }
    Ok(Cow::Owned(data.clone().with_label_names(own)?))
}

/// The largest of the tags of an example.
pub(super) fn largest_tag(example: &Example) -> Option<usize> {
    let words = example.words().unwrap_or_default();
    words.iter().filter_map(|word| word.tag).max()
}

/// SC0430: whether tags say where entities begin.
pub(super) struct Begins {
    scheme: TagScheme,
    rule: TagsWithoutBegin,
}

impl Begins {
    pub(super) fn of(label_names: &[String], source: &str, call: &str) -> Self {
        let plain = label_names
            .iter()
            .filter(|name| !TagScheme::has_prefix(name));
        Self {
            scheme: TagScheme::of(label_names),
            rule: TagsWithoutBegin {
                plain: plain.cloned().collect(),
                words: 0,
                of: 0,
                first: None,
                source: source.to_owned(),
                call: call.to_owned(),
            },
        }
    }

    pub(super) fn add(&mut self, examples: &[Example]) {
        let Self { scheme, rule } = self;
        for example in examples {
            let words = example.words().unwrap_or_default();
            let tags: Vec<usize> = words.iter().filter_map(|word| word.tag).collect();
            rule.of += tags.iter().filter(|&&tag| scheme.is_in_entity(tag)).count();
            let found = scheme.without_begin(&tags);
            rule.words += found.len();
            if let (None, Some(&at)) = (&rule.first, found.first()) {
                // Words that a changed text does not have are reported when it is tokenized.
                let text = |word: &Word| {
                    let found = example.text.get(word.range.clone());
                    found.unwrap_or_default().to_owned()
                };
                rule.first = Some((text(&words[at]), example.row, example.line));
            }
        }
    }

    pub(super) fn finding(self) -> Option<Diagnostic> {
        (self.rule.words > 0).then(|| self.rule.diagnostic())
    }
}
