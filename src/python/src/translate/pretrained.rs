//! Models and tokenizers of Hugging Face.

use stratoscope_diagnostics::CellSpan;

use super::arguments::without_effect;
use super::thing::{Encodings, ModelFacts, Thing};
use super::trainer::heads::{head_of, one_of_families};
use super::trainer::part::HeadKind;
use super::{Translator, Why, text};
use crate::model::{Call, Keyword, Kind, Value};

/// Classes whose `from_pretrained` is BERT's classifier.
const CLASSIFIERS: &[&str] = &[
    "TFBertForSequenceClassification",
    "TFDistilBertForSequenceClassification",
    "TFRobertaForSequenceClassification",
    "TFXLMRobertaForSequenceClassification",
    "TFCamembertForSequenceClassification",
    "TFElectraForSequenceClassification",
    "TFAlbertForSequenceClassification",
    "TFAutoModelForSequenceClassification",
];

/// More labels are not named one by one.
const MAX_NAMED_LABELS: i64 = 64;

/// What a head is made with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// The number of its outputs.
    pub num_labels: Option<Value>,
    /// A text may have several labels.
    pub has_several: bool,
}

impl Head {
    /// The model of a checkpoint with this head.
    fn written(&self, checkpoint: &str, labels: &str, outputs: Option<i64>) -> Result<String, Why> {
        Ok(match (self.has_several, outputs) {
            (false, _) => {
                format!("BertForSequenceClassification::from_pretrained({checkpoint}, {labels})?")
            }
            (true, Some(count @ 1..=MAX_NAMED_LABELS)) => {
                // The names that Hugging Face gives labels without names.
                let names: Vec<String> = (0..count).map(|it| format!("\"LABEL_{it}\"")).collect();
                format!(
                    "BertForSequenceClassification::from_pretrained_multi_label({checkpoint}, [{}])?",
                    names.join(", ")
                )
            }
            (true, _) => return Err(
                "several labels for one text need their names: `from_pretrained_multi_label(\"…\", [\"a\", \"b\"])?`"
                    .to_owned(),
            ),
        })
    }
}

/// `transformers.BertConfig`, `transformers.AutoConfig.from_pretrained`.
pub(crate) fn is_config(full: &str) -> bool {
    let class = full.strip_prefix("transformers.");
    class.is_some_and(|it| it.trim_end_matches(".from_pretrained").ends_with("Config"))
}

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
        self.policy_before_model();
        let head = head_of(class);
        if let Some(head) = head {
            self.hub.heads.insert(call.span.start, head);
            if head != HeadKind::Sequence {
                return self.other_head(head, &checkpoint, call);
            }
        }
        if head.is_none() && (class == "AutoModel" || class.ends_with("Model")) {
            return Err(format!(
                "a model without a head computes the vectors of texts here: `BertForSentenceEmbedding::from_pretrained({checkpoint})?.embed([\"a text\"])?`"
            ));
        }
        if head.is_none() && !CLASSIFIERS.contains(&class) {
            return Err(format!(
                "there is no `{class}` here; there is `BertForSequenceClassification`"
            ));
        }
        if !class.contains("TFBert") && !class.starts_with("Bert") && !class.contains("Auto") {
            self.note(call.span, "the checkpoint says which kind of model it is");
        }
        if class.contains("Auto") {
            self.note(call.span, one_of_families());
        }
        let given = self.given_to_head(call)?;
        let (labels, outputs) = match &given.num_labels {
            Some(number) => (self.value(number)?, self.integer(number)),
            None => {
                self.note(
                    call.span,
                    "it names no `num_labels`: a head of Hugging Face has 2 outputs unless its checkpoint says otherwise",
                );
                ("2".to_owned(), Some(2))
            }
        };
        let facts = self.pretrained_facts(call, outputs);
        if given.has_several {
            self.hub.heads.insert(call.span.start, HeadKind::Labels);
        }
        let rust = given.written(&checkpoint, &labels, outputs)?;
        Ok((rust, Thing::Model(facts)))
    }

    /// What is known of a model of `from_pretrained`. The arguments that nobody has looked at are named on the card.
    pub(super) fn pretrained_facts(&mut self, call: &Call, outputs: Option<i64>) -> ModelFacts {
        for keyword in call.unseen_keywords() {
            if without_effect(&keyword.name, &keyword.value).is_none() {
                let why = format!("`from_pretrained` has no `{}` here", keyword.name);
                self.leave_argument(keyword, why);
                call.keyword(&keyword.name);
            }
        }
        ModelFacts {
            span: call.span,
            is_bert: true,
            activation: Some("linear".to_owned()),
            outputs,
            is_built: true,
            scope: self.scope_of_models(),
            compiled: None,
        }
    }

    /// What the arguments of `from_pretrained`, and the `config` among them, say of the head.
    fn given_to_head(&mut self, call: &Call) -> Result<Head, Why> {
        let mut head = match call.keyword("config").map(|it| &it.value) {
            None => Head::default(),
            Some(config) if config.kind == Kind::None => Head::default(),
            Some(config) => match config.name().and_then(|name| self.things.get(name)) {
                Some(Thing::Config(head)) => (**head).clone(),
                Some(_) => return Err("its `config` is none that is known from the cell".to_owned()),
                None => match self.names.called(config).zip(config.call()) {
                    Some((full, made)) if is_config(&full) => self.config(made)?,
                    _ => return Err("its `config` is not made in this cell, and it may set the number of labels".to_owned()),
                },
            },
        };
        if let Some(labels) = call.keyword("num_labels") {
            head.num_labels = Some(labels.value.clone());
        }
        match (call.keyword("id2label"), call.keyword("label2id")) {
            (Some(names), same) => {
                self.names_of_labels(names, &mut head)?;
                if let Some(same) = same {
                    self.idle(same.span, "it has the names of `id2label`");
                }
            }
            (None, Some(names)) => self.names_of_labels(names, &mut head)?,
            (None, None) => {}
        }
        if let Some(problem) = call.keyword("problem_type") {
            self.problem_type(&problem.value, problem.span, &mut head)?;
        }
        Ok(head)
    }

    /// `id2label={0: "games", 1: "fonts"}` says how many labels there are; the labels of the data have their own names.
    fn names_of_labels(&mut self, names: &Keyword, head: &mut Head) -> Result<(), Why> {
        match &names.value.kind {
            Kind::None => {}
            Kind::Dict(items) => {
                let count = Value {
                    span: names.value.span,
                    kind: Kind::Int(items.len().to_string()),
                };
                head.num_labels.get_or_insert(count);
            }
            _ if head.num_labels.is_some() => {}
            _ => return Err("the names of its labels are not written out".to_owned()),
        }
        self.note_names_of_labels(names);
        Ok(())
    }

    /// Where the names of classes come from, and how the names of the cell are given to them.
    pub(crate) fn note_names_of_labels(&mut self, given: &Keyword) {
        let Kind::Dict(items) = &given.value.kind else {
            self.idle(
                given.span,
                "the classes have the names that the data gives them, `train.label_names`",
            );
            return;
        };
        // `{0: "NEG"}` or `{"NEG": 0}`.
        let mut names: Vec<(i64, &str)> = Vec::new();
        for (key, value) in items {
            let pair = match (key.integer(), key.text()) {
                (Some(at), _) => value.text().map(|name| (at, name)),
                (_, Some(name)) => value.integer().map(|at| (at, name)),
                _ => None,
            };
            names.extend(pair);
        }
        names.sort_unstable();
        let owned = |name: &str| format!("{}.to_owned()", text::text(name));
        let list: Vec<String> = names.iter().map(|(_, name)| owned(name)).collect();
        let source = self.source(given.span).split_whitespace();
        let source = source.collect::<Vec<&str>>().join(" ");
        self.note(
            given.span,
            format!(
                "`{source}`: the classes have the names that the data gives them; where these are numbers, `let mut train = train.clone(); \
                 train.label_names = vec![{}];` names them before the training",
                list.join(", ")
            ),
        );
    }

    fn problem_type(&mut self, value: &Value, span: CellSpan, head: &mut Head) -> Result<(), Why> {
        match value.text() {
            Some("multi_label_classification") => head.has_several = true,
            Some("single_label_classification") => self.idle(span, "it is the default"),
            Some("regression") => {
                self.idle(span, "one output with `MeanSquaredError` is a regression")
            }
            _ if value.kind == Kind::None => self.idle(span, "`None` is the default"),
            _ => return Err("its `problem_type` is not known".to_owned()),
        }
        Ok(())
    }

    /// `BertConfig.from_pretrained("…", num_labels=3)`, `BertConfig(num_labels=3)`.
    pub(crate) fn config(&mut self, call: &Call) -> Result<Head, Why> {
        let head = self.given_to_head(call)?;
        let name = call.argument("pretrained_model_name_or_path", 0);
        if let Some(name) = name {
            self.idle(name.span, "a model reads the config of its checkpoint");
        }
        Ok(head)
    }

    /// `tokenizer(texts, truncation=True, max_length=128, …)`.
    pub(crate) fn encodings(&mut self, call: &Call) -> Result<Encodings, Why> {
        let texts = call
            .argument("text", 0)
            .ok_or("the tokenizer gets no texts")?;
        let is_asked = |it: &str| self.hub.asked_tokenizers.contains(it);
        if let Some(literal) = texts.text()
            && !call.function.name().is_some_and(is_asked)
        {
            self.note(
                texts.span,
                format!(
                    "the ids of one text are `model.tokenizer().ids({})?`",
                    text::text(literal)
                ),
            );
        }
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
            tokenizer: Some(call.function.clone()),
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
            Some(call) if call.function.name() == Some("list") => call.argument("iterable", 0),
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
