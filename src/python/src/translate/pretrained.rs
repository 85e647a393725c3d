//! Models and tokenizers of Hugging Face.

use super::thing::{Encodings, ModelFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// Classes whose `from_pretrained` is BERT's classifier.
const CLASSIFIERS: &[&str] = &[
    "TFBertForSequenceClassification",
    "TFDistilBertForSequenceClassification",
    "TFRobertaForSequenceClassification",
    "TFXLMRobertaForSequenceClassification",
    "TFCamembertForSequenceClassification",
    "TFElectraForSequenceClassification",
    "TFAutoModelForSequenceClassification",
    "BertForSequenceClassification",
    "AutoModelForSequenceClassification",
];

impl Translator<'_> {
    /// `transformers.Class.from_pretrained(…)`.
    pub(crate) fn pretrained(&mut self, class: &str, call: &Call) -> Result<(String, Thing), Why> {
        let name = call
            .argument("pretrained_model_name_or_path", 0)
            .ok_or("it names no checkpoint")?;
        let checkpoint = match name.text() {
            Some(name) => text::text(name),
            None => format!("&{}", self.value(name)?),
        };
        let checkpoint = match (name.name(), checkpoint.strip_prefix('&')) {
            (Some(_), Some(name)) => name.to_owned(),
            _ => checkpoint,
        };
        if class.contains("Tokenizer") {
            self.note(
                call.span,
                "a model brings the tokenizer of its checkpoint: `fit!` and `predict` use it",
            );
            return Ok((String::new(), Thing::Tokenizer));
        }
        if !CLASSIFIERS.contains(&class) {
            return Err(format!(
                "there is no `{class}` here; there is `BertForSequenceClassification`"
            ));
        }
        if !class.starts_with("TF") {
            return Err(POINTER.to_owned());
        }
        if !class.contains("TFBert") && !class.contains("Auto") {
            self.note(call.span, "the checkpoint says which kind of model it is");
        }
        if class.contains("Auto") {
            self.note(
                call.span,
                "the checkpoint must be one of BERT, DistilBERT, RoBERTa or ELECTRA",
            );
        }
        let mut labels = "2".to_owned();
        let mut outputs = Some(2);
        match call.keyword("num_labels") {
            Some(keyword) => {
                labels = self.value(&keyword.value)?;
                outputs = self.integer(&keyword.value);
            }
            None => self.note(
                call.span,
                "without `num_labels` Hugging Face's heads have 2 outputs",
            ),
        }
        for keyword in &call.keywords {
            let says_nothing = matches!(
                keyword.name.as_str(),
                "num_labels"
                    | "pretrained_model_name_or_path"
                    | "from_pt"
                    | "cache_dir"
                    | "ignore_mismatched_sizes"
            );
            if !says_nothing && keyword.value.kind != Kind::None {
                let why = format!("`from_pretrained` has no `{}` here", keyword.name);
                self.leave_argument(keyword, why);
            }
        }
        let facts = ModelFacts {
            span: call.span,
            is_bert: true,
            activation: Some("linear".to_owned()),
            outputs,
            is_built: true,
            scope: self.scopes.last().cloned(),
            compiled: None,
        };
        let rust =
            format!("BertForSequenceClassification::from_pretrained({checkpoint}, {labels})?");
        Ok((rust, Thing::Model(facts)))
    }

    /// `tokenizer(texts, truncation=True, max_length=128, …)`.
    pub(crate) fn encodings(&mut self, call: &Call) -> Result<Encodings, Why> {
        let texts = call
            .argument("text", 0)
            .ok_or("the tokenizer gets no texts")?;
        let texts = self.list_of_texts(texts)?;
        let pair = match call.argument("text_pair", 1) {
            Some(pair) => Some(self.list_of_texts(pair)?),
            None => None,
        };
        let max_length = Some(self.length_of(call)?);
        Ok(Encodings {
            texts,
            pair,
            max_length,
        })
    }

    /// The greatest length in tokens that the call of a tokenizer names. Without one Hugging Face cuts at the positions of the
    /// model, which are 512 for all that are here, and `fit!` at 64.
    pub(crate) fn length_of(&mut self, call: &Call) -> Result<String, Why> {
        let given = call.keyword("max_length").map(|it| &it.value);
        match given.filter(|it| it.kind != Kind::None) {
            Some(given) => self.value(given),
            None => {
                self.note(
                    call.span,
                    "without `max_length` the tokenizer cuts at the 512 positions of the model; the default of `fit!` is 64",
                );
                Ok("512".to_owned())
            }
        }
    }

    /// `texts`, `list(texts)`, `texts.tolist()`.
    pub(crate) fn list_of_texts(&mut self, value: &Value) -> Result<String, Why> {
        let inner = match value.call() {
            Some(call) if call.function.name() == Some("list") => call.arguments.first(),
            _ => value.method("tolist").map(|(object, _)| object),
        };
        let value = inner.unwrap_or(value);
        let rust = self.value(value)?;
        if let Some(name) = value.name()
            && !self.things.contains_key(name)
        {
            self.free(
                name,
                "a list of texts, such as `vec![\"a game\", \"a font\"]`",
            )?;
        }
        Ok(rust)
    }
}

/// What a cell of PyTorch or of the Trainer is answered.
pub(crate) const POINTER: &str = "this is PyTorch, which is not translated: `compile!` and `fit!` replace the loop or the \
                                  `Trainer`, as `%help` shows";
