//! SC0431 `data-of-other-head`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Data whose labels are of another kind than the model answers.
#[derive(Clone, Debug)]
pub struct DataOfOtherHead {
    /// The model: `BertForTokenClassification`.
    pub model: String,
    /// What it is trained on, in words: `words with tags`.
    pub wants: &'static str,
    /// What the data has, in words: `a class for each text`.
    pub has: &'static str,
    /// How such data is read: `Dataset::conll("train.conll")?`.
    pub reader: &'static str,
    /// The model for the data, where there is one.
    pub fitting: Option<&'static str>,
    /// The first row that does not fit.
    pub row: usize,
    /// Where the data comes from.
    pub source: String,
    /// The call: `fit`.
    pub call: String,
}

impl Rule for DataOfOtherHead {
    const PAGE: RulePage = RulePage {
        code: "SC0431",
        name: "data-of-other-head",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "Data whose labels do not fit the model, such as one class per text for a model that tags words.",
        why: "The predictions of the model cannot be compared with such labels.",
        bad: "let texts = Dataset::from_labelled([(\"Ada lived in London\", \"person\"), (\"it rains\", \"none\")]);\n\
              let tagger = BertForTokenClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
              compile!(tagger, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
              fit!(tagger, texts)?;",
        good: "let words = Dataset::from_words([(vec![\"Ada\", \"lived\"], vec![\"B-PER\", \"O\"])])?;\n\
               let tagger = BertForTokenClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(tagger, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
               fit!(tagger, words)?;",
        tensorflow: tensorflow::page("SC0431"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "`{}` takes {}; the data has {}",
            self.model, self.wants, self.has
        ))
        .label(
            Place::call(&self.call),
            format!("data of another kind from `{}`", self.source),
        )
        .why("the predictions of the model cannot be compared with these labels")
        .evidence("first row", self.row.to_string())
        .fix(format!(
            "read data of the kind that the model predicts: `{}`",
            self.reader
        ));
        match self.fitting {
            Some(model) => {
                diagnostic.fix(format!("or train a `{model}`, which takes {}", self.has))
            }
            None => diagnostic,
        }
    }
}
