//! Hugging Face's `Trainer` and what stands around it: `TrainingArguments`, collators, metrics, PEFT, `pipeline`.
//!
//! A `Trainer` is `compile!` where it is made and `fit!` where `train()` is called. What it gets are [`part::Part`]s: values
//! without a line of their own. Read `run` first.

mod arguments;
mod compile;
pub(crate) mod data;
mod fit;
mod functions;
pub(crate) mod heads;
pub(crate) mod metrics;
mod parameters;
pub(crate) mod part;
mod run;
mod sentence_training;
mod sentences;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use stratoscope_diagnostics::CellSpan;

use super::call::Made;
use super::devices::Asks;
use super::thing::Thing;
use super::tokens::asked_tokenizers;
use super::{Translator, Why};
use crate::model::{Call, Kind, Statement, Value, each_value};
use crate::names::Names;
pub(crate) use compile::{Plan, RunLength, WarmUp};
use part::{HeadKind, Part};
pub(crate) use run::in_order;

/// What is known of a cell of transformers and PyTorch besides its names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub {
    /// The heads of models, by the first byte of what makes them.
    pub heads: BTreeMap<usize, HeadKind>,
    /// The policy of mixed precision that is asked for, and where.
    pub policy: Option<(&'static str, CellSpan)>,
    /// It is in the cell.
    pub policy_is_written: bool,
    /// Functions that are given to `compute_metrics`.
    pub metric_functions: BTreeSet<String>,
    /// Functions that are given to `map`.
    pub mapped: BTreeSet<String>,
    /// How often a name is read by a schedule or a progress bar.
    pub schedule_uses: BTreeMap<String, usize>,
    /// Names that count the steps of the run.
    pub steps: BTreeSet<String>,
    /// Tokenizers whose tokens are asked for.
    pub asked_tokenizers: BTreeSet<String>,
    /// Those of them that are variables of the cell.
    pub tokenizers: BTreeSet<String>,
    /// Functions that count parameters.
    pub counting_functions: BTreeSet<String>,
    /// Softmax and sigmoid of PyTorch in the cell: their names, where they stand, what they get.
    pub activations: Vec<(String, CellSpan, Option<CellSpan>)>,
    /// Progress bars by their names.
    pub bars: BTreeMap<String, Value>,
    /// Functions that only set seeds, and their defaults.
    pub seed_functions: BTreeMap<String, Option<Value>>,
    /// Names of what was asked for: devices, memory, versions.
    pub asked: BTreeMap<String, Asks>,
    /// Parts that no `compile!` or `fit!` of the cell has, by their first bytes, and why.
    pub unused: BTreeMap<usize, (CellSpan, String)>,
    /// Metrics that were loaded, and that no `compile!` has yet.
    pub unused_metrics: Vec<CellSpan>,
}

impl Hub {
    /// Reads a cell.
    pub fn of(statements: &[Statement], names: &Names) -> Self {
        let mut hub = Self {
            asked_tokenizers: asked_tokenizers(statements),
            ..Self::default()
        };
        each_value(statements, &mut |value| {
            let Some(call) = value.call() else {
                return;
            };
            let full = names.full(&call.function).unwrap_or_default();
            for keyword in &call.keywords {
                let is_on = keyword.value.kind == Kind::Bool(true);
                match keyword.name.as_str() {
                    "fp16" if is_on => hub.policy = Some(("mixed_float16", keyword.span)),
                    "bf16" if is_on => hub.policy = Some(("mixed_bfloat16", keyword.span)),
                    "compute_metrics" => hub
                        .metric_functions
                        .extend(keyword.value.name().map(str::to_owned)),
                    _ => {}
                }
            }
            if full == "torch.autocast" || full.ends_with(".autocast") {
                let is_brain = call.keywords.iter().any(|it| {
                    it.value
                        .path()
                        .is_some_and(|path| path.last() == Some(&"bfloat16"))
                });
                let policy = if is_brain {
                    "mixed_bfloat16"
                } else {
                    "mixed_float16"
                };
                hub.policy = Some((policy, call.span));
            }
            let path = call.function.path().unwrap_or_default();
            let last = path.last().map(|it| it.to_lowercase()).unwrap_or_default();
            if full.starts_with("torch.") && matches!(last.as_str(), "softmax" | "sigmoid") {
                let is_function = !full.starts_with("torch.nn.S");
                let of = call.arguments.first().filter(|_| is_function);
                hub.activations
                    .push((last, call.span, of.map(|it| it.span)));
            }
            if full.contains("schedule") || path.last() == Some(&"tqdm") {
                value.visit(&mut |inner| {
                    if let Some(name) = inner.name() {
                        *hub.schedule_uses.entry(name.to_owned()).or_default() += 1;
                    }
                });
            }
            if let Some((_, call)) = value.method("map") {
                let function = call.arguments.first().or(call
                    .keywords
                    .iter()
                    .find(|it| it.name == "function")
                    .map(|it| &it.value));
                hub.mapped
                    .extend(function.and_then(Value::name).map(str::to_owned));
            }
        });
        hub
    }
}

impl Translator<'_> {
    /// A call of transformers, PEFT, evaluate or PyTorch; `None`: it is something else.
    pub(crate) fn made_by_hub(
        &mut self,
        value: &Value,
        full: &str,
        call: &Call,
    ) -> Option<Result<Made, Why>> {
        let last = full.rsplit('.').next().unwrap_or_default();
        let first = full.split('.').next().unwrap_or_default();
        Some(match (first, last) {
            ("transformers", "TrainingArguments" | "Seq2SeqTrainingArguments") => {
                self.training_arguments(call)
            }
            ("transformers", "Trainer" | "Seq2SeqTrainer") => self.trainer(call),
            ("transformers", "pipeline") => self.pipe(call),
            ("transformers", "EarlyStoppingCallback") => {
                let patience = call.argument("early_stopping_patience", 0).cloned();
                let threshold = call.argument("early_stopping_threshold", 1).cloned();
                Ok((
                    String::new(),
                    Thing::Part(Box::new(Part::Stopping(patience, threshold))),
                ))
            }
            ("transformers", class) if heads::is_collator(class) => self.collator(class, call),
            ("evaluate", "load" | "combine") | ("datasets", "load_metric") => {
                self.loaded_metric(call)
            }
            ("peft", "LoraConfig") => self.lora(call),
            ("peft", "get_peft_model") => {
                Err("it is translated where its result gets a name".to_owned())
            }
            ("datasets", _) => return self.dataset_of_hub(full, call),
            ("sentence_transformers", "SentenceTransformerTrainingArguments") => {
                self.training_arguments(call)
            }
            ("sentence_transformers", "SentenceTransformerTrainer") => self.trainer(call),
            ("sentence_transformers", _) => return self.made_by_sentences(full, call),
            ("torch" | "transformers" | "accelerate", _) => {
                return self.made_by_torch(value, full, call);
            }
            _ => return None,
        })
    }

    /// The call of a part: a trainer's method, a pipeline, a class of data.
    pub(crate) fn made_by_part(&mut self, call: &Call) -> Option<Result<Made, Why>> {
        let (object, method) = match &call.function.kind {
            Kind::Attribute(object, method) => (&**object, method.as_str()),
            _ => (&call.function, ""),
        };
        if let (Some(made), Some(full)) = (object.call(), self.names.called(object))
            && (full.starts_with("transformers.") || full.starts_with("sentence_transformers."))
            && full.ends_with("Trainer")
        {
            // `Trainer(…).train()`.
            return Some(self.trainer(made).and_then(|(_, thing)| match thing {
                Thing::Part(part) => match *part {
                    Part::Trainer(trainer) => self.trainer_method(&trainer, method, call),
                    other => Err(format!("it is {}", other.word())),
                },
                other => Err(format!("it is {}", other.word())),
            }));
        }
        if let Some(made) = self.method_of_sentences(object, method, call) {
            return Some(made);
        }
        let part = match object.name().and_then(|name| self.things.get(name))? {
            Thing::Part(part) => (**part).clone(),
            _ => return None,
        };
        Some(match (&part, method) {
            (Part::Trainer(trainer), method) if !method.is_empty() => {
                self.trainer_method(trainer, method, call)
            }
            (Part::Pipe(model), "") => self.piped(&model.clone(), call),
            (Part::Encoded(names), "") => self.encoded(names, call),
            (Part::Measures(_), "compute" | "add_batch" | "add") => {
                call.see_all();
                self.idle(
                    call.span,
                    "`evaluate!` and the validation of `fit!` compute the metrics of `compile!`",
                );
                Ok((String::new(), Thing::Folded))
            }
            (part, _) => return self.method_of_torch(part, method, call),
        })
    }

    /// `classifier("a text")`.
    fn piped(&mut self, model: &str, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let texts = call.arguments.first().ok_or("it gets no text")?;
        for keyword in &call.keywords {
            self.idle(
                keyword.span,
                "a prediction has the probabilities of all labels",
            );
        }
        let texts = self.value(texts)?;
        let texts = texts.trim_start_matches("vec!");
        Ok((format!("{model}.predict({texts})?"), Thing::Value))
    }

    /// `model = get_peft_model(model, config)`, `device = "cuda" if … else "cpu"`, and other names without a line of their own.
    pub(crate) fn assign_of_hub(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some(examples) = self.input_examples(value) {
            return Some(examples.and_then(|data| self.assign_data(name, value, data, span)));
        }
        if let (Some(call), Some("peft.get_peft_model")) =
            (value.call(), self.names.called(value).as_deref())
        {
            return Some(self.peft_model(name, call, span));
        }
        if let Some(done) = self.assign_tokenizer(name, value, span) {
            return Some(done);
        }
        self.assign_of_torch(name, value, span)
    }

    /// A statement that is one call of a part, of a model of PyTorch or of a library; `None`: it is something else.
    pub(crate) fn statement_of_hub(
        &mut self,
        value: &Value,
        call: &Call,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some(done) = self.seeded_by_function(call, span) {
            return Some(done);
        }
        if let Kind::Attribute(_, method) = &call.function.kind
            && method == "push_to_hub"
        {
            return Some(Err(
                "nothing is uploaded: `save_pretrained` writes the files that the hub takes, and the program `hf upload` sends the folder"
                    .to_owned(),
            ));
        }
        if let Some(made) = self.made_by_part(call) {
            return Some(made.map(|(rust, _)| match rust.is_empty() {
                true => (),
                false => self.push(format!("{rust};"), span),
            }));
        }
        if let Kind::Attribute(object, method) = &call.function.kind {
            let is_tokenizer = object
                .name()
                .is_some_and(|name| match self.things.get(name) {
                    Some(Thing::Tokenizer) => true,
                    None => name.contains("tokenizer"),
                    _ => false,
                });
            if is_tokenizer
                && self
                    .hub
                    .asked_tokenizers
                    .iter()
                    .all(|it| object.name() != Some(it))
            {
                call.see_all();
                self.idle(span, "a model brings the tokenizer of its checkpoint, and `save_pretrained` writes it too");
                return Some(Ok(()));
            }
            if method == "print_trainable_parameters" {
                return Some(self.model_name(object).map(|model| {
                    self.push(format!("println!(\"{{}}\", {model}.summary());"), span)
                }));
            }
            if method == "merge_and_unload" {
                return Some(
                    self.model_name(object)
                        .map(|model| self.push(format!("{model}.merge_lora()?;"), span)),
                );
            }
        }
        self.statement_of_torch(value, call, span)
    }

    /// `EarlyStoppingCallback` among the callbacks of a `Trainer`; others are named.
    pub(crate) fn stopping_of(&mut self, callbacks: &Value) -> Result<Option<fit::Stopping>, Why> {
        let one = [callbacks.clone()];
        let mut found = None;
        for callback in callbacks.elements().unwrap_or(&one) {
            let thing = match callback.name().and_then(|name| self.things.get(name)) {
                Some(thing) => Some(thing.clone()),
                None if callback.call().is_some() => self.made(callback).ok().map(|it| it.1),
                None => None,
            };
            match thing {
                Some(Thing::Part(part)) => match *part {
                    Part::Stopping(patience, threshold) => found = Some((patience, threshold)),
                    other => self.leave(callback.span, format!("it is {}, no callback", other.word())),
                },
                _ => self.leave(callback.span, "a callback of the cell is not translated; `on_epoch_end(|epoch| …)` in `callbacks` is called after each epoch"),
            }
        }
        Ok(found)
    }

    /// Names the parts that nothing in the cell uses: what they set would be lost.
    pub(crate) fn unused_parts(&mut self) {
        for (_, (span, why)) in std::mem::take(&mut self.hub.unused) {
            self.leave(span, why);
        }
        for span in std::mem::take(&mut self.hub.unused_metrics) {
            self.leave(
                span,
                "no `compile!` of this cell has it; `metrics = [accuracy()]` names metrics",
            );
        }
    }

    /// A name in the cell, for a line that is a comment.
    pub(crate) fn nothing(
        &mut self,
        name: &str,
        what: &'static str,
        span: CellSpan,
        why: &str,
    ) -> Result<(), Why> {
        self.idle(span, why);
        self.things
            .insert(name.to_owned(), Thing::Part(Box::new(Part::Nothing(what))));
        Ok(())
    }
}
