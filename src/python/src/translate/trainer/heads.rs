//! Models of transformers by their heads, collators, adapters of PEFT, and `pipeline`.

use stratoscope_diagnostics::CellSpan;

use super::super::call::Made;
use super::super::thing::{ModelFacts, Thing};
use super::super::{Translator, Why, text};
use super::part::{HeadKind, Part};
use crate::model::{Call, Kind, Value};
use crate::trainer_rules;

/// The families of checkpoints that are read here: the beginning of their classes in transformers, and their names. The list of
/// docs/checkpoints.md.
const FAMILIES: &[(&str, &str)] = &[
    ("Bert", "BERT"),
    ("DistilBert", "DistilBERT"),
    ("Roberta", "RoBERTa"),
    ("XLMRoberta", "XLM-RoBERTa"),
    ("Camembert", "CamemBERT"),
    ("Electra", "ELECTRA"),
    ("ModernBert", "ModernBERT"),
    ("MPNet", "MPNet"),
    ("DebertaV2", "DeBERTa-v2 and -v3"),
    ("Albert", "ALBERT"),
];

/// What a checkpoint of an `Auto…` class must be.
pub(crate) fn one_of_families() -> String {
    let mut names: Vec<&str> = FAMILIES.iter().map(|(_, name)| *name).collect();
    let last = names.pop().unwrap_or_default();
    format!(
        "the checkpoint must be one of {} or {last}",
        names.join(", ")
    )
}

/// The heads by the end of their classes' names.
const HEADS: &[(&str, HeadKind)] = &[
    ("ForSequenceClassification", HeadKind::Sequence),
    ("ForTokenClassification", HeadKind::Tokens),
    ("ForQuestionAnswering", HeadKind::Answer),
    ("ForMultipleChoice", HeadKind::Choice),
    ("ForMaskedLM", HeadKind::Masked),
];

/// Collators, the heads they are for, and whether they pad only.
const COLLATORS: &[(&str, &[HeadKind])] = &[
    (
        "DataCollatorWithPadding",
        &[HeadKind::Sequence, HeadKind::Labels, HeadKind::Answer],
    ),
    (
        "DefaultDataCollator",
        &[
            HeadKind::Sequence,
            HeadKind::Labels,
            HeadKind::Answer,
            HeadKind::Tokens,
            HeadKind::Choice,
            HeadKind::Masked,
        ],
    ),
    (
        "default_data_collator",
        &[
            HeadKind::Sequence,
            HeadKind::Labels,
            HeadKind::Answer,
            HeadKind::Tokens,
            HeadKind::Choice,
            HeadKind::Masked,
        ],
    ),
    ("DataCollatorForTokenClassification", &[HeadKind::Tokens]),
    ("DataCollatorForLanguageModeling", &[HeadKind::Masked]),
    ("DataCollatorForWholeWordMask", &[HeadKind::Masked]),
    ("DataCollatorForMultipleChoice", &[HeadKind::Choice]),
    ("DataCollatorForSeq2Seq", &[]),
];

/// The head of a class of PyTorch's models; `None` for another class.
pub(crate) fn head_of(class: &str) -> Option<HeadKind> {
    let (end, head) = HEADS.iter().find(|(end, _)| class.ends_with(end))?;
    let family = class.strip_suffix(end)?;
    let is_known = family == "AutoModel" || FAMILIES.iter().any(|(start, _)| *start == family);
    is_known.then_some(*head)
}

/// Whether a class is a collator.
pub(crate) fn is_collator(class: &str) -> bool {
    COLLATORS.iter().any(|(name, _)| *name == class)
}

/// What a head is called in a message.
fn words(head: HeadKind) -> &'static str {
    match head {
        HeadKind::Sequence | HeadKind::Labels => "a classifier of texts",
        HeadKind::Tokens => "a classifier of tokens",
        HeadKind::Answer => "a model that answers questions",
        HeadKind::Choice => "a model that chooses",
        HeadKind::Masked => "a masked language model",
    }
}

impl Translator<'_> {
    /// `AutoModelForTokenClassification.from_pretrained(…)` and the other heads but the classifier of texts.
    pub(crate) fn other_head(
        &mut self,
        head: HeadKind,
        checkpoint: &str,
        call: &Call,
    ) -> Result<Made, Why> {
        let labels = match (call.keyword("num_labels"), call.keyword("id2label")) {
            (Some(given), _) => Some(given.value.clone()),
            (None, Some(given)) => match &given.value.kind {
                Kind::Dict(items) => Some(Value {
                    span: given.span,
                    kind: Kind::Int(items.len().to_string()),
                }),
                _ => None,
            },
            _ => None,
        };
        for name in ["id2label", "label2id"] {
            if let Some(given) = call.keyword(name) {
                self.note_names_of_labels(&given.clone());
            }
        }
        let outputs = labels.as_ref().and_then(|it| self.integer(it));
        let rust = match head {
            HeadKind::Tokens => {
                let labels = labels.ok_or("it names no `num_labels`; `BertForTokenClassification::from_pretrained_labels(\"…\", data.label_names.clone())?` takes the tags of the data")?;
                format!(
                    "BertForTokenClassification::from_pretrained({checkpoint}, {})?",
                    self.value(&labels)?
                )
            }
            HeadKind::Answer => format!("BertForQuestionAnswering::from_pretrained({checkpoint})?"),
            HeadKind::Masked => format!("BertForMaskedLM::from_pretrained({checkpoint})?"),
            _ => {
                return Err("the number of choices is not in the text: `BertForMultipleChoice::from_pretrained(\"…\", 4)?` has four".to_owned());
            }
        };
        let facts = self.pretrained_facts(call, outputs);
        Ok((rust, Thing::Model(facts)))
    }

    /// The policy of mixed precision that the settings of the cell ask for, before the model is made.
    pub(crate) fn policy_before_model(&mut self) {
        if let (Some((policy, span)), false) = (self.hub.policy, self.hub.policy_is_written) {
            self.push(format!("set_global_policy({})?;", text::text(policy)), span);
            self.hub.policy_is_written = true;
        }
    }

    /// `DataCollatorWithPadding(tokenizer=tokenizer)`.
    pub(crate) fn collator(&mut self, class: &str, call: &Call) -> Result<Made, Why> {
        if class == "DataCollatorForLanguageModeling" {
            if let Some(given) = call.keyword("mlm")
                && given.value.kind == Kind::Bool(false)
            {
                return Err(
                    "without `mlm` it is for a model that writes text, and none is here".to_owned(),
                );
            }
            if let Some(given) = call.keyword("mlm_probability") {
                let share = self.float(&given.value)?;
                self.note(given.span, format!("`model.set_masking(Masking {{ share: {share}, whole_words: false }})?` sets the share of masked tokens, which is 0.15 here too"));
            }
        }
        if class == "DataCollatorForWholeWordMask" {
            self.note(call.span, "`model.set_masking(Masking { share: 0.15, whole_words: true })?` hides whole words");
        }
        call.see_all();
        self.idle(call.span, "`fit!` pads each batch to its longest text");
        let part = Part::Collator(class.to_owned(), call.span);
        Ok((String::new(), Thing::Part(Box::new(part))))
    }

    /// SC0141: the collator of a `Trainer` is one for another head.
    pub(crate) fn collator_of(
        &mut self,
        given: &Value,
        head: Option<HeadKind>,
        trainer: CellSpan,
    ) -> Result<(), Why> {
        let (class, span) = match given.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Part(part)) => match &**part {
                Part::Collator(class, span) => (class.clone(), *span),
                _ => return Ok(()),
            },
            Some(Thing::Missing(_)) => {
                self.leave(given.span, "`fit!` makes the batches itself, so a collator of the cell has no part in them");
                return Ok(());
            }
            _ => match self.names.called(given).or_else(|| self.names.full(given)) {
                Some(full) if is_collator(full.rsplit('.').next().unwrap_or_default()) => {
                    let class = full.rsplit('.').next().unwrap_or_default().to_owned();
                    if let Some(call) = given.call() {
                        self.collator(&class, call)?;
                    } else {
                        self.idle(given.span, "`fit!` pads each batch to its longest text");
                    }
                    (class, given.span)
                }
                _ => {
                    self.leave(given.span, "`fit!` makes the batches itself, so a collator of the cell has no part in them");
                    return Ok(());
                }
            },
        };
        let fits = COLLATORS
            .iter()
            .find(|(name, _)| *name == class)
            .map(|(_, heads)| *heads);
        if let (Some(head), Some(fits)) = (head, fits)
            && !fits.contains(&head)
        {
            let found = trainer_rules::collator_of_another_head(&class, words(head), span, trainer);
            self.find(found);
        }
        Ok(())
    }

    /// `LoraConfig(r=8, lora_alpha=16, …)`.
    pub(crate) fn lora(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        if !call.arguments.is_empty() {
            return Err("the arguments of `LoraConfig` are not all named".to_owned());
        }
        let find = |name: &str| {
            call.keywords
                .iter()
                .find(|it| it.name == name)
                .map(|it| it.value.clone())
        };
        // PEFT's defaults: 8, 8 and 0.
        let rank = find("r").map_or(Ok("8".to_owned()), |it| self.value(&it))?;
        let mut written = format!("Lora::new({rank})");
        let alpha = find("lora_alpha").map_or(Ok("8.0".to_owned()), |it| self.float(&it))?;
        written += &format!(".alpha({alpha})");
        for keyword in &call.keywords {
            match (keyword.name.as_str(), &keyword.value.kind) {
                ("r" | "lora_alpha", _) => {}
                (_, Kind::None) => self.idle(keyword.span, "`None` is the default"),
                ("lora_dropout", _) => {
                    written += &format!(".dropout({})", self.float(&keyword.value)?)
                }
                ("target_modules", Kind::Text(target)) if target != "all-linear" => {
                    return Err("its `target_modules` is a pattern; `.targets([\"query\", \"value\"])` names the layers".to_owned());
                }
                ("target_modules", _) => {
                    let targets = self.value(&keyword.value)?;
                    let targets = targets.trim_start_matches("vec!").to_owned();
                    let targets = if targets.starts_with('"') {
                        format!("[{targets}]")
                    } else {
                        targets
                    };
                    written += &format!(".targets({targets})");
                }
                ("task_type", _) => self.idle(keyword.span, "the class of the model is its task"),
                ("inference_mode", Kind::Bool(false))
                | ("bias", Kind::Text(_))
                | ("modules_to_save", _)
                    if keyword.name != "bias" || keyword.value.text() == Some("none") =>
                {
                    self.idle(
                        keyword.span,
                        "adapters and the head are trained, the rest is frozen",
                    );
                }
                (
                    "use_dora" | "use_rslora" | "fan_in_fan_out" | "init_lora_weights",
                    Kind::Bool(value),
                ) if (keyword.name == "init_lora_weights") == *value => {
                    self.idle(keyword.span, "it is the default");
                }
                _ => {
                    let why = format!(
                        "`Lora` has no `{}` here: only plain adapters are",
                        keyword.name
                    );
                    self.leave_argument(keyword, why);
                }
            }
        }
        self.push("// The adapters of `add_lora`.", call.span);
        Ok((String::new(), Thing::Part(Box::new(Part::Lora(written)))))
    }

    /// `model = get_peft_model(model, config)`, where the model keeps its name.
    pub(crate) fn peft_model(
        &mut self,
        target: &str,
        call: &Call,
        span: CellSpan,
    ) -> Result<(), Why> {
        let model = call.argument("model", 0).ok_or("it gets no model")?;
        let config = call
            .argument("peft_config", 1)
            .ok_or("it gets no configuration")?;
        let lora = match config.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Part(part)) => match &**part {
                Part::Lora(lora) => lora.clone(),
                other => return Err(format!("its configuration is {}", other.word())),
            },
            _ => match config.call().zip(self.names.called(config)) {
                Some((made, full)) if full.ends_with("LoraConfig") => match self.lora(made)?.1 {
                    Thing::Part(part) => match *part {
                        Part::Lora(lora) => lora,
                        _ => return Err("its configuration is not known".to_owned()),
                    },
                    _ => return Err("its configuration is not known".to_owned()),
                },
                _ => return Err("its configuration is no `LoraConfig` of the cell".to_owned()),
            },
        };
        let rust = self.model_name(model)?;
        self.keeps_outside(target)?;
        self.push(format!("{rust}.add_lora({lora})?;"), span);
        if model.name() != Some(target) {
            self.push_alone(format!("let {} = {rust};", text::name(target)));
        }
        if let Some(facts) = self.facts(model) {
            self.things.insert(target.to_owned(), Thing::Model(facts));
        }
        Ok(())
    }

    /// `pipeline("text-classification", model=model)`.
    pub(crate) fn pipe(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let task = call
            .argument("task", 0)
            .and_then(Value::text)
            .unwrap_or("text-classification")
            .to_owned();
        let (class, labels) = match task.as_str() {
            "text-classification" | "sentiment-analysis" => ("BertForSequenceClassification", true),
            "token-classification" | "ner" => ("BertForTokenClassification", true),
            "fill-mask" => ("BertForMaskedLM", false),
            "question-answering" => ("BertForQuestionAnswering", false),
            "feature-extraction" => ("BertForSentenceEmbedding", false),
            other => return Err(format!("there is no model for `{other}` here")),
        };
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "task" | "model" => {}
                "tokenizer" => self.idle(
                    keyword.span,
                    "a model brings the tokenizer of its checkpoint",
                ),
                "device" | "device_map" | "framework" | "batch_size" | "torch_dtype" | "dtype" => {
                    self.idle(
                        keyword.span,
                        "the model computes on the default device, in the batches that fit",
                    );
                }
                "top_k" | "return_all_scores" => self.idle(
                    keyword.span,
                    "a prediction has the probabilities of all labels",
                ),
                "truncation" | "max_length" | "padding" | "aggregation_strategy" => {
                    self.idle(
                        keyword.span,
                        "`predict` cuts at the length of the training and shows whole entities",
                    );
                }
                name => self.leave_argument(keyword, format!("`predict` has no `{name}` here")),
            }
        }
        let model = call.argument("model", 1).ok_or("it names no model")?;
        let rust = match (model.text(), model.name()) {
            (Some(checkpoint), _) => {
                if labels {
                    let checkpoint = text::text(checkpoint);
                    format!("{class}::from_pretrained_with({checkpoint}, &LoadOptions::new())?")
                } else {
                    format!("{class}::from_pretrained({})?", text::text(checkpoint))
                }
            }
            (None, Some(_)) => {
                let name = self.model_name(model)?;
                return Ok((String::new(), Thing::Part(Box::new(Part::Pipe(name)))));
            }
            _ => return Err("its model is not known from the cell".to_owned()),
        };
        let facts = ModelFacts {
            span: call.span,
            is_bert: true,
            activation: Some("linear".to_owned()),
            outputs: None,
            is_built: true,
            scope: None,
            compiled: None,
        };
        Ok((rust, Thing::Model(facts)))
    }
}
