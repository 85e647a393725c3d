//! Models of `sentence_transformers`: the vectors of texts, and how similar they are.

use super::super::call::Made;
use super::super::thing::{ModelFacts, Thing};
use super::super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// Arguments of `encode` that change no vector here.
const PLAIN: &[&str] = &[
    "batch_size",
    "show_progress_bar",
    "convert_to_tensor",
    "convert_to_numpy",
    "device",
    "normalize_embeddings",
    "output_value",
];

impl Translator<'_> {
    /// `SentenceTransformer("all-MiniLM-L6-v2")`, `util.cos_sim(a, b)`. `None`: something else.
    pub(crate) fn made_by_sentences(
        &mut self,
        full: &str,
        call: &Call,
    ) -> Option<Result<Made, Why>> {
        Some(match full {
            "sentence_transformers.SentenceTransformer" => self.sentence_model(call),
            "sentence_transformers.util.cos_sim" | "sentence_transformers.util.pytorch_cos_sim" => {
                self.similarity(call)
            }
            _ if full.ends_with("Loss") => {
                let class = full.rsplit('.').next().unwrap_or_default();
                self.sentence_loss(class, call)
            }
            _ if full.ends_with("InputExample") => Err(
                "an example alone is `Example::new(\"a text\").with_pair(\"another\").with_label(Label::Value(0.8))`, and a list of them a data set"
                    .to_owned(),
            ),
            _ => return None,
        })
    }

    fn sentence_model(&mut self, call: &Call) -> Result<Made, Why> {
        let name = call
            .argument("model_name_or_path", 0)
            .ok_or("it names no checkpoint")?;
        let checkpoint = match name.text() {
            Some(name) => text::text(name),
            None => self.value(name)?,
        };
        for keyword in call.unseen_keywords() {
            self.idle(keyword.span, "the model is on the default device");
        }
        call.see_all();
        self.note(
            call.span,
            "a vector is the mean of the last hidden states, with length 1, whatever pooling the checkpoint names",
        );
        let facts = ModelFacts {
            span: call.span,
            is_bert: true,
            activation: None,
            outputs: None,
            is_built: true,
            scope: self.scope_of_models(),
            compiled: None,
        };
        let rust = format!("BertForSentenceEmbedding::from_pretrained({checkpoint})?");
        Ok((rust, Thing::Model(facts)))
    }

    /// `model.encode(texts)`, `model.similarity(a, b)`. `None`: another method, or no model.
    pub(crate) fn method_of_sentences(
        &mut self,
        object: &Value,
        method: &str,
        call: &Call,
    ) -> Option<Result<Made, Why>> {
        let is_model = matches!(
            object.name().and_then(|name| self.things.get(name)),
            Some(Thing::Model(_))
        );
        match method {
            "encode" if is_model => Some(self.encoded_texts(object, call)),
            "similarity" if is_model => Some(self.similarity(call)),
            "fit" if is_model && has_objectives(call) => Some(self.fit_of_sentences(object, call)),
            _ => None,
        }
    }

    fn encoded_texts(&mut self, model: &Value, call: &Call) -> Result<Made, Why> {
        let rust = self.model_name(model)?;
        let texts = call.argument("sentences", 0).ok_or("it gets no texts")?;
        let is_name = matches!(texts.kind, Kind::Name(_));
        let texts = self.list_of_texts(texts)?;
        let texts = match is_name {
            true => format!("{texts}.clone()"),
            false => texts.trim_start_matches("vec!").to_owned(),
        };
        for keyword in call.unseen_keywords() {
            if PLAIN.contains(&keyword.name.as_str()) {
                self.idle(
                    keyword.span,
                    "the vectors have length 1, and `embed` chooses its batches",
                );
                call.keyword(&keyword.name);
            }
        }
        Ok((format!("{rust}.embed({texts})?"), Thing::Value))
    }

    fn similarity(&mut self, call: &Call) -> Result<Made, Why> {
        let [a, b] = call.arguments.as_slice() else {
            return Err("it gets no two sets of vectors".to_owned());
        };
        call.see_all();
        let (a, b) = (self.value(a)?, self.value(b)?);
        Ok((format!("{a}.similarity(&{b})?"), Thing::Value))
    }
}

/// Whether a call of `fit` gets pairs of data and loss: `[(loader, loss)]`.
fn has_objectives(call: &Call) -> bool {
    let is_pair = |value: &Value| matches!(&value.kind, Kind::Tuple(pair) if pair.len() == 2);
    let first = call.arguments.first().and_then(Value::elements);
    call.keyword("train_objectives").is_some()
        || first.is_some_and(|it| !it.is_empty() && it.iter().all(is_pair))
}
