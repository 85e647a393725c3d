//! What a cell asks a tokenizer itself: `tokenizer.tokenize("a text")`, `tokenizer("a text")["input_ids"]`, `decode`.

use std::collections::BTreeSet;

use stratoscope_diagnostics::CellSpan;

use super::number::{Type, Typed};
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Statement, StatementKind, Value, each_value};

/// Methods that ask for tokens.
const METHODS: &[&str] = &[
    "tokenize",
    "encode",
    "decode",
    "convert_ids_to_tokens",
    "convert_tokens_to_ids",
    "convert_tokens_to_string",
    "get_vocab",
];

const HAS: &str =
    "a tokenizer has `ids(\"a text\")?`, `pieces(\"a text\")?` and `decode(&ids)` here";

/// The names whose tokens a cell asks for: such a tokenizer is a variable.
pub(crate) fn asked_tokenizers(statements: &[Statement]) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    let mut made: Vec<(&str, &str)> = Vec::new();
    for statement in statements {
        if let StatementKind::Assign(targets, value) = &statement.kind
            && let Some(name) = targets.first().and_then(Value::name)
            && let Some(tokenizer) = value.call().and_then(|call| call.function.name())
        {
            made.push((name, tokenizer));
        }
    }
    each_value(statements, &mut |value| {
        for method in METHODS {
            let object = value.method(method).and_then(|(object, _)| object.name());
            asked.extend(object.map(str::to_owned));
        }
    });
    for statement in statements {
        if !matches!(
            statement.kind,
            StatementKind::Expression(_) | StatementKind::Assign(..)
        ) {
            continue;
        }
        for value in statement.values() {
            value.visit(&mut |inner| {
                let Some(object) = ids_of(inner) else {
                    return;
                };
                let called = object.call().and_then(|call| call.function.name());
                let of_name = object.name().and_then(|name| {
                    let found = made.iter().find(|(made, _)| *made == name);
                    found.map(|(_, tokenizer)| *tokenizer)
                });
                asked.extend(called.or(of_name).map(str::to_owned));
            });
        }
    }
    asked
}

/// `x` of `x["input_ids"]` and `x.input_ids`.
fn ids_of(value: &Value) -> Option<&Value> {
    match &value.kind {
        Kind::Index(object, key) if key.text() == Some("input_ids") => Some(object),
        Kind::Attribute(object, name) if name == "input_ids" => Some(object),
        _ => None,
    }
}

impl Translator<'_> {
    /// `tokenizer = AutoTokenizer.from_pretrained("…")` where its tokens are asked for. `None`: it needs no line.
    pub(crate) fn assign_tokenizer(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let full = self.names.called(value)?;
        let call = value.call()?;
        let is_tokenizer = full.starts_with("transformers.")
            && full.contains("Tokenizer")
            && full.ends_with(".from_pretrained");
        if !is_tokenizer || !self.hub.asked_tokenizers.contains(name) {
            return None;
        }
        let checkpoint = call.argument("pretrained_model_name_or_path", 0)?;
        Some(self.value(checkpoint).map(|checkpoint| {
            let line = format!(
                "let {} = BertForMaskedLM::from_pretrained({checkpoint})?.tokenizer();",
                text::name(name)
            );
            self.push(line, span);
            self.note(
                span,
                "a tokenizer is that of a model: `fit!` and `predict` use it by themselves",
            );
            self.hub.tokenizers.insert(name.to_owned());
            self.things.insert(name.to_owned(), Thing::Tokenizer);
        }))
    }

    /// A tokenizer as Rust; `None`: another value.
    fn tokenizer(&mut self, value: &Value) -> Option<Result<String, Why>> {
        let name = value.name()?.to_owned();
        let kind = self.known.variables.get(&name).cloned();
        let is_known = kind.is_some_and(|it| it.ends_with("Tokenizer"));
        match self.things.get(&name) {
            Some(Thing::Tokenizer) if self.hub.tokenizers.contains(&name) => {
                return Some(Ok(text::name(&name)));
            }
            Some(Thing::Tokenizer) => {}
            None if is_known || name.to_lowercase().contains("tokenizer") => {}
            _ => return None,
        }
        if is_known {
            return Some(Ok(text::name(&name)));
        }
        // That of the model in the cell or in the notebook.
        let mut models = self.things.iter();
        let of_cell = models.find_map(|(name, thing)| match thing {
            Thing::Model(facts) if facts.is_bert => Some(name.clone()),
            _ => None,
        });
        let is_bert = |kind: &str| kind.starts_with("ModelOf<") && kind.contains("bert");
        let mut variables = self.known.variables.iter();
        let of_notebook = variables.find_map(|(name, kind)| is_bert(kind).then(|| name.clone()));
        let model = of_cell
            .or(of_notebook)
            .unwrap_or_else(|| "model".to_owned());
        let rust = text::name(&model);
        if !self.things.contains_key(&model) {
            let done = self.free(&model, "a model, such as `BertForSequenceClassification`");
            if let Err(why) = done {
                return Some(Err(why));
            }
        }
        Some(Ok(format!("{rust}.tokenizer()")))
    }

    /// What a tokenizer makes of a text; `None`: another value.
    pub(crate) fn of_tokenizer(&mut self, value: &Value) -> Option<Result<Typed, Why>> {
        if let Some(object) = ids_of(value) {
            return self.ids_of_text(object);
        }
        if let Kind::Attribute(object, name) = &value.kind
            && name == "shape"
        {
            // One row, as tokenizers of Python return it.
            let ids = self.ids_of_text(ids_of(object)?)?;
            return Some(
                ids.map(|it| Typed::new(format!("[1, {}.len()]", it.rust), Type::Unknown)),
            );
        }
        let call = value.call()?;
        let Kind::Attribute(object, method) = &call.function.kind else {
            return None;
        };
        if !METHODS.contains(&method.as_str()) {
            return None;
        }
        let tokenizer = match self.tokenizer(object)? {
            Ok(tokenizer) => tokenizer,
            Err(why) => return Some(Err(why)),
        };
        Some(self.asked_of_tokenizer(&tokenizer, method, call))
    }

    fn asked_of_tokenizer(
        &mut self,
        tokenizer: &str,
        method: &str,
        call: &Call,
    ) -> Result<Typed, Why> {
        let first = call
            .arguments
            .first()
            .or(call.keywords.first().map(|it| &it.value));
        let first = first.ok_or("it gets no text")?.clone();
        match method {
            "tokenize" => self.of_text(tokenizer, "pieces", &first, call),
            "encode" => self.of_text(tokenizer, "ids", &first, call),
            "convert_ids_to_tokens" => {
                let ids = self.text_of_ids(&first);
                let (tokenizer, text) =
                    ids.ok_or("`tokenizer.pieces(\"a text\")?` has the tokens of a text")?;
                call.see_all();
                Ok(Typed::new(
                    format!("{tokenizer}.pieces({text})?"),
                    Type::Unknown,
                ))
            }
            "decode" => {
                let ids = self.typed(&first)?;
                call.argument("", 0);
                let is_kept = |it: &&crate::model::Keyword| {
                    it.name == "skip_special_tokens" && it.value.kind == Kind::Bool(true)
                };
                if let Some(keyword) = call.keywords.iter().find(is_kept).cloned() {
                    self.leave_argument(
                        &keyword,
                        "`decode` has the special tokens of the model too".to_owned(),
                    );
                }
                call.see_all();
                Ok(Typed::new(
                    format!("{tokenizer}.decode(&{})", ids.rust),
                    Type::Text,
                ))
            }
            _ => Err(HAS.to_owned()),
        }
    }

    /// `ids` or `pieces` of a text, or of each text of a list.
    fn of_text(
        &mut self,
        tokenizer: &str,
        method: &str,
        given: &Value,
        call: &Call,
    ) -> Result<Typed, Why> {
        call.argument("text", 0);
        for keyword in call.unseen_keywords().cloned().collect::<Vec<_>>() {
            match (keyword.name.as_str(), &keyword.value.kind) {
                ("add_special_tokens", Kind::Bool(false)) | ("truncation", Kind::Bool(true)) => {
                    let why = format!(
                        "`{method}` has the special tokens of the model, and the whole text"
                    );
                    self.leave_argument(&keyword, why);
                }
                _ => self.idle(keyword.span, "`ids` returns a list of numbers, not padded"),
            }
        }
        call.see_all();
        if method == "pieces" {
            self.note(
                call.span,
                "`pieces` has the special tokens of the model too",
            );
        }
        let is_list = given.elements().is_some()
            || matches!(
                given.name().map(|it| self.things.get(it)),
                Some(Some(Thing::Texts))
            );
        let rust = self.value(given)?;
        Ok(match (is_list, given.text().is_some()) {
            (true, _) => {
                let list = rust.trim_start_matches("vec!");
                Typed::new(
                    format!(
                        "{list}.iter().map(|it| {tokenizer}.{method}(it)).collect::<std::result::Result<Vec<_>, _>>()?"
                    ),
                    Type::Unknown,
                )
            }
            (false, true) => Typed::new(format!("{tokenizer}.{method}({rust})?"), Type::Unknown),
            (false, false) => Typed::new(format!("{tokenizer}.{method}(&{rust})?"), Type::Unknown),
        })
    }

    /// `tokenizer("a text")["input_ids"]`, `encoded.input_ids`.
    fn ids_of_text(&mut self, object: &Value) -> Option<Result<Typed, Why>> {
        if let Some(Thing::Encodings(given)) = object.name().and_then(|it| self.things.get(it)) {
            let texts = given.texts.clone();
            let name = given.tokenizer.clone()?;
            let tokenizer = match self.tokenizer(&name)? {
                Ok(tokenizer) => tokenizer,
                Err(why) => return Some(Err(why)),
            };
            return Some(Ok(match texts.strip_prefix("vec!") {
                None if texts.starts_with('"') => {
                    Typed::new(format!("{tokenizer}.ids({texts})?"), Type::Unknown)
                }
                list => Typed::new(
                    format!(
                        "{}.iter().map(|it| {tokenizer}.ids(it)).collect::<std::result::Result<Vec<_>, _>>()?",
                        list.unwrap_or(&texts)
                    ),
                    Type::Unknown,
                ),
            }));
        }
        let call = object.call()?;
        let tokenizer = match self.tokenizer(&call.function)? {
            Ok(tokenizer) => tokenizer,
            Err(why) => return Some(Err(why)),
        };
        let given = call.arguments.first()?.clone();
        Some(self.of_text(&tokenizer, "ids", &given, call))
    }

    /// The tokenizer and the text of ids that are made of one text where they are used.
    fn text_of_ids(&mut self, value: &Value) -> Option<(String, String)> {
        let object = ids_of(value).unwrap_or(value);
        let ids = match (object.name(), value.method("encode")) {
            (Some(_), _) | (_, Some(_)) => self.of_tokenizer(value)?,
            _ => self.ids_of_text(object)?,
        };
        let rust = ids.ok()?.rust;
        let (tokenizer, rest) = rust.split_once(".ids(")?;
        Some((tokenizer.to_owned(), rest.strip_suffix(")?")?.to_owned()))
    }
}
