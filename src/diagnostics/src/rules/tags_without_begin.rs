//! SC0430 `tags-without-begin`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Tags of words of which some do not say where an entity begins.
#[derive(Clone, Debug)]
pub struct TagsWithoutBegin {
    /// The tags that have no `B-` or `I-` at all.
    pub plain: Vec<String>,
    /// Words with an `I-` that continues no entity.
    pub words: usize,
    /// Words that are in an entity.
    pub of: usize,
    /// The first such word: its text, its row, and the line of the file where its sentence begins.
    pub first: Option<(String, usize, Option<usize>)>,
    /// Where the data comes from.
    pub source: String,
    /// The call: `fit`.
    pub call: String,
}

impl Rule for TagsWithoutBegin {
    const PAGE: RulePage = RulePage {
        code: "SC0430",
        name: "tags-without-begin",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Tags of words in which an entity begins with `I-`, or that have neither `B-` nor `I-`.",
        why: "Two neighboring entities of one type then look like one. Such a word counts as the beginning of an entity, as in seqeval, and a model that is trained on it learns `I-` as a beginning.",
        bad: "let words = Dataset::from_words([(vec![\"Ada\", \"lived\"], vec![\"I-PER\", \"O\"])])?;\n\
              let tagger = BertForTokenClassification::from_pretrained(\"all-MiniLM-L6-v2\", 3)?;\n\
              compile!(tagger, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
              fit!(tagger, words)?;",
        good: "let words = Dataset::from_words([(vec![\"Ada\", \"lived\"], vec![\"I-PER\", \"O\"])])?;\n\
               let words = words.with_begin_tags()?;\n\
               let tagger = BertForTokenClassification::from_pretrained(\"all-MiniLM-L6-v2\", 3)?;\n\
               compile!(tagger, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
               fit!(tagger, words)?;",
        tensorflow: tensorflow::page("SC0430"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let message = match self.plain.is_empty() {
            true => format!(
                "{} with an `I-` tag, but no entity before it",
                text::count(self.words, "word")
            ),
            false => format!("tags without `B-` or `I-`: {}", text::names(&self.plain, 5)),
        };
        let mut diagnostic = Self::start(message)
            .label(Place::call(&self.call), format!("the tags of `{}`", self.source))
            .why("two neighboring entities of one type look like one; each such word counts as a beginning, as in seqeval");
        if let Some((word, row, line)) = &self.first {
            let line = line.map_or_else(String::new, |line| format!(", sentence of line {line}"));
            let shown = text::excerpt(word, 40);
            diagnostic = diagnostic.evidence("first word", format!("`{shown}` in row {row}{line}"));
        }
        diagnostic
            .evidence("words in entities", text::thousands(self.of))
            .fix("give the first word of every entity a tag of its own: `let train = train.with_begin_tags()?;`")
    }
}
