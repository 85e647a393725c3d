//! Models of `sentence_transformers`: the vectors of texts, and how similar they are.

use super::super::call::Made;
use super::super::thing::{ModelFacts, Thing};
use super::super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// Arguments of `encode` that change no vector here, and why.
const PLAIN: &[(&str, &str)] = &[
    ("batch_size", "`embed` chooses its batches"),
    ("show_progress_bar", "`embed` shows no progress"),
    (
        "convert_to_tensor",
        "the vectors are lists of numbers, `embeddings.vectors`",
    ),
    (
        "convert_to_numpy",
        "the vectors are lists of numbers, `embeddings.vectors`",
    ),
    ("device", "the model is on the default device"),
    ("normalize_embeddings", "the vectors have length 1"),
    ("output_value", "a vector for each text is the default"),
];

/// A part of a set of vectors: the set as Rust, and the rows that are wanted of it.
type Rows = (String, Option<String>);

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
            "sentence_transformers.util.dot_score" => {
                self.note(call.span, "vectors have length 1, so the product of two is their cosine");
                self.similarity(call)
            }
            "sentence_transformers.util.semantic_search" => self.search(call),
            _ if full.starts_with("sentence_transformers.util.") => Err(
                "of these functions `similarity` and `nearest` are here: `embeddings.nearest(&embeddings, 3)?` finds the most similar texts of each"
                    .to_owned(),
            ),
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
        ) || self.is_encoder_of_notebook(object);
        match method {
            "encode" if is_model => Some(self.encoded_texts(object, call)),
            "similarity" if is_model => Some(self.similarity(call)),
            "fit" if is_model && has_objectives(call) => Some(self.fit_of_sentences(object, call)),
            _ => None,
        }
    }

    /// A model of another cell, by its type or its usual name.
    fn is_encoder_of_notebook(&self, object: &Value) -> bool {
        let Some(name) = object
            .name()
            .filter(|name| !self.things.contains_key(*name))
        else {
            return false;
        };
        match self.known.variables.get(name) {
            Some(kind) => kind.contains("SentenceEncoder"),
            None => matches!(name, "model" | "encoder" | "embedder" | "sbert"),
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
            if let Some((_, why)) = PLAIN.iter().find(|(name, _)| *name == keyword.name) {
                self.idle(keyword.span, *why);
                call.keyword(&keyword.name);
            }
        }
        Ok((format!("{rust}.embed({texts})?"), Thing::Value))
    }

    /// `util.cos_sim(a, b)`, also of parts: `util.cos_sim(a[0], b[1:])` is a part of the whole table.
    fn similarity(&mut self, call: &Call) -> Result<Made, Why> {
        let [a, b] = call.arguments.as_slice() else {
            return Err("it gets no two sets of vectors".to_owned());
        };
        call.see_all();
        let ((a, rows), (b, columns)) = (self.vectors(a)?, self.vectors(b)?);
        let mut rust = format!("{a}.similarity(&{b})?");
        match (rows, columns) {
            (None, None) => {}
            (Some(rows), None) => rust += &format!("[{rows}].to_vec()"),
            (rows, Some(columns)) => {
                let rows = rows.map_or(String::new(), |rows| format!("[{rows}]"));
                rust += &format!(
                    "{rows}.iter().map(|row| row[{columns}].to_vec()).collect::<Vec<_>>()"
                );
            }
        }
        Ok((rust, Thing::Value))
    }

    /// `util.semantic_search(queries, corpus, top_k=2)`.
    fn search(&mut self, call: &Call) -> Result<Made, Why> {
        let queries = call
            .argument("query_embeddings", 0)
            .ok_or("it gets no queries")?;
        let corpus = call
            .argument("corpus_embeddings", 1)
            .ok_or("it gets no vectors to search")?;
        let count = match call.argument("top_k", 4) {
            Some(count) => self.value(count)?,
            // The default of sentence-transformers.
            None => "10".to_owned(),
        };
        let ((queries, rows), (corpus, part)) = (self.vectors(queries)?, self.vectors(corpus)?);
        if part.is_some() {
            return Err(
                "`nearest` searches all vectors of a set; `embed` the texts that are wanted"
                    .to_owned(),
            );
        }
        for keyword in call.unseen_keywords().cloned().collect::<Vec<_>>() {
            match keyword.name.as_str() {
                "score_function" => {
                    self.leave_argument(&keyword, "`nearest` compares cosines".to_owned())
                }
                _ => self.idle(keyword.span, "all vectors are compared at once"),
            }
        }
        call.see_all();
        let rows = rows.map_or(String::new(), |rows| format!("[{rows}].to_vec()"));
        self.note(
            call.span,
            "each of the nearest texts has `text`, `index` and `similarity`",
        );
        Ok((
            format!("{corpus}.nearest(&{queries}, {count})?{rows}"),
            Thing::Value,
        ))
    }

    /// A set of vectors, or a part of one by an index: `embeddings[0]`, `embeddings[1:]`.
    fn vectors(&mut self, value: &Value) -> Result<Rows, Why> {
        let Kind::Index(object, index) = &value.kind else {
            return Ok((self.value(value)?, None));
        };
        let bound = |it: &Option<Box<Value>>| match it {
            None => Some(String::new()),
            Some(it) => it.integer().filter(|it| *it >= 0).map(|it| it.to_string()),
        };
        let rows = match (&index.kind, index.integer()) {
            (Kind::Slice(start, end), _) => bound(start)
                .zip(bound(end))
                .map(|(a, b)| format!("{a}..{b}")),
            (_, Some(at @ 0..)) => Some(format!("{at}..{}", at + 1)),
            _ => None,
        };
        let rows = rows.ok_or(
            "a part of vectors is named by whole numbers: `embeddings.similarity(&embeddings)?[0][1..].to_vec()`",
        )?;
        Ok((self.value(object)?, Some(rows)))
    }
}

/// Whether a call of `fit` gets pairs of data and loss: `[(loader, loss)]`.
fn has_objectives(call: &Call) -> bool {
    let is_pair = |value: &Value| matches!(&value.kind, Kind::Tuple(pair) if pair.len() == 2);
    let first = call.arguments.first().and_then(Value::elements);
    call.keyword("train_objectives").is_some()
        || first.is_some_and(|it| !it.is_empty() && it.iter().all(is_pair))
}
