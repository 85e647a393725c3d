//! Functions and classes of a cell that only prepare texts for a model of transformers: `fit!` does what they do.

use stratoscope_diagnostics::CellSpan;

use super::super::arguments::see_whole;
use super::super::thing::Thing;
use super::super::{Translator, Why};
use super::part::Part;
use crate::model::{
    Class, Function, Kind, Statement, StatementKind, Value, each_statement, each_value,
};

impl Translator<'_> {
    /// `def tokenize(batch):` with more than the call of the tokenizer, `def compute_metrics(pred):`. `None`: another function.
    pub(crate) fn function_of_hub(
        &mut self,
        it: &Function,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if self.is_metric_function(it) {
            return Some(self.metric_function(it, span));
        }
        // A `return tokenizer(…)` alone is read where Keras cells are.
        if it.body.len() < 2 || !self.hub.mapped.contains(&it.name) {
            return None;
        }
        Some(self.preparation(it, span))
    }

    /// A function of `map` that tokenizes, and copies or aligns labels.
    fn preparation(&mut self, it: &Function, span: CellSpan) -> Result<(), Why> {
        let mut found = None;
        let mut calls: Vec<&Value> = Vec::new();
        each_value(&it.body, &mut |value| {
            calls.extend(value.call().map(|_| value))
        });
        let parameter = it
            .parameters
            .first()
            .map(|(name, _)| name.clone())
            .unwrap_or_default();
        for value in calls {
            let is_words = value
                .call()
                .is_some_and(|call| call.keyword("is_split_into_words").is_some());
            let is_windows = value.call().is_some_and(|call| {
                call.keyword("return_overflowing_tokens").is_some()
                    || call.keyword("stride").is_some()
            });
            if found.is_none()
                && let Some(tokenized) = self.tokenizes_for_hub(value)?
            {
                found = Some((tokenized, is_words, is_windows));
            }
        }
        let Some(((length, at), is_words, is_windows)) = found else {
            return Err(
                "a function of `map` is translated where it calls the tokenizer".to_owned(),
            );
        };
        if is_words {
            self.note(at, "the first piece of a word has its tag; further pieces and special tokens have −100, as in this function");
        } else if is_windows {
            self.note(at, "a long text is cut into windows, and the places of the answers are found, by `fit!`; `model.set_stride(128)` sets how many tokens they share");
        } else if let Some(other) = other_work(&it.body, &parameter) {
            let line = self.line(other.start);
            return Err(format!(
                "line {line} in it changes the texts or the labels; `data.map(|example| …)` does so here"
            ));
        }
        each_value(&it.body, &mut see_whole);
        self.skip_comments(span.end);
        self.push(
            "// The function only prepares the texts, as `fit!` does.",
            span,
        );
        self.things
            .insert(it.name.clone(), Thing::Tokenizes(length, at));
        Ok(())
    }

    /// The call of a tokenizer; its arguments for windows and words set nothing here.
    fn tokenizes_for_hub(
        &mut self,
        value: &Value,
    ) -> Result<Option<(Option<String>, CellSpan)>, Why> {
        if let Some(call) = value.call()
            && call
                .function
                .name()
                .is_some_and(|name| name.to_lowercase().contains("token"))
        {
            for name in [
                "is_split_into_words",
                "return_overflowing_tokens",
                "return_offsets_mapping",
                "return_special_tokens_mask",
                "truncation",
                "stride",
            ] {
                call.keyword(name);
            }
        }
        self.tokenizes(value)
    }

    /// `class Reviews(torch.utils.data.Dataset):` of encodings, or texts, with labels. `None`: another class.
    pub(crate) fn class_of_hub(&mut self, it: &Class, span: CellSpan) -> Option<Result<(), Why>> {
        let is_data = it.bases.iter().any(|base| {
            let full = self.names.full(base).unwrap_or_default();
            // The name without its import.
            let is_bare = base.name() == Some("Dataset") && full == "datasets.Dataset";
            is_bare
                || full == "torch.utils.data.Dataset"
                || full == "torch.utils.data.dataset.Dataset"
        });
        if !is_data {
            return None;
        }
        let init = it.body.iter().find_map(|statement| match &statement.kind {
            StatementKind::Function(function) if function.name == "__init__" => Some(function),
            _ => None,
        });
        let Some(init) = init else {
            return Some(Err(
                "a class of data is translated where `__init__` takes texts and labels".to_owned(),
            ));
        };
        let names: Vec<String> = init
            .parameters
            .iter()
            .skip(1)
            .map(|(name, _)| name.clone())
            .collect();
        let has = |words: &[&str]| {
            names
                .iter()
                .any(|name| words.iter().any(|word| name.contains(word)))
        };
        if !has(&["encod", "text", "sentence", "review"]) || !has(&["label", "target"]) {
            return Some(Err(
                "a class of data is translated where `__init__` takes texts and labels".to_owned(),
            ));
        }
        self.skip_comments(span.end);
        self.push(
            format!(
                "// `{}` holds texts and labels, as a `Dataset` does.",
                it.name
            ),
            span,
        );
        self.things
            .insert(it.name.clone(), Thing::Part(Box::new(Part::Encoded(names))));
        Some(Ok(()))
    }

    /// `Reviews(encodings, labels)`.
    pub(crate) fn encoded(
        &mut self,
        names: &[String],
        call: &crate::model::Call,
    ) -> Result<super::super::call::Made, Why> {
        let find = |words: &[&str]| {
            let place = names
                .iter()
                .position(|name| words.iter().any(|word| name.contains(word)))?;
            call.argument(&names[place], place)
        };
        let texts = find(&["encod", "text", "sentence", "review"]).ok_or("it gets no texts")?;
        let labels = find(&["label", "target"]).ok_or("it gets no labels")?;
        find(&["tokenizer"]);
        let length = find(&["max_len", "max_length", "maxlen"]);
        let mut data = self.data_of(texts, Some(labels))?;
        if let Some(length) = length {
            data.max_length = Some(self.value(length)?);
        }
        Ok((data.rust.clone(), Thing::Data(data)))
    }
}

/// A statement of a function of `map` that does more than to tokenize and to name labels.
fn other_work(body: &[Statement], parameter: &str) -> Option<CellSpan> {
    let mut found = None;
    each_statement(body, &mut |statement| {
        let is_plain = match &statement.kind {
            StatementKind::Assign(targets, value) => {
                let is_tokens = value.call().is_some_and(|call| {
                    call.function
                        .name()
                        .is_some_and(|name| name.to_lowercase().contains("token"))
                });
                // `tokens["labels"] = batch["label"]`, `texts = batch["text"]`.
                let is_column = |it: &Value| match &it.kind {
                    Kind::Index(object, key) => {
                        object.name() == Some(parameter) && key.text().is_some()
                    }
                    _ => false,
                };
                let copies = is_column(value) || value.method("copy").is_some();
                let _ = targets;
                is_tokens || copies
            }
            StatementKind::Return(_) | StatementKind::Nothing => true,
            _ => false,
        };
        if !is_plain && found.is_none() {
            found = Some(statement.span);
        }
    });
    found
}
