//! Inference of transformers: `model(**inputs).logits`, softmax, `argmax` and `id2label` are one `predict`, whose rows have the
//! label, the class and the probabilities.

use super::arguments::see_whole;
use super::devices::ON_DEFAULT;
use super::number::{Type, Typed};
use super::stages::{Found, Stage};
use super::thing::Thing;
use super::trainer::part::HeadKind;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// Methods that make an array or a list of another kind of the same numbers.
const SAME: &[&str] = &[
    "cpu", "detach", "numpy", "tolist", "squeeze", "flatten", "float", "to", "cuda", "view", "long",
];
/// Functions that do.
const SAME_FUNCTIONS: &[&str] = &["int", "float", "list"];

const OF_TEXTS: &str = "`model.predict([\"a text\"])?` takes the texts themselves, and returns the labels with their probabilities";

impl Translator<'_> {
    /// Whether a call is a model that gets what a tokenizer has made of texts: `model(**inputs)`.
    pub(crate) fn calls_with_encodings(&self, call: &Call) -> bool {
        let spread = call.spread.as_deref().and_then(|it| self.things.get(it));
        let is_encodings = matches!(spread, Some(Thing::Encodings(_)));
        is_encodings && self.is_model(&call.function)
    }

    /// Why `model(**inputs)` is not translated where the cell does not make `inputs`.
    pub(crate) fn inputs_of_another_cell(&self, call: &Call) -> Option<Why> {
        let name = call.spread.as_deref()?;
        let is_free = !self.things.contains_key(name);
        (is_free && self.is_model(&call.function))
            .then(|| format!("`{name}` is made by a tokenizer in another cell; {OF_TEXTS}"))
    }

    /// The encodings that a model gets: `**inputs`, `inputs`, or `input_ids=inputs["input_ids"]`.
    fn encodings_given(&self, call: &Call) -> Option<String> {
        if !self.is_model(&call.function) {
            return None;
        }
        let named = call.keywords.iter().map(|it| &it.value);
        let mut texts = None;
        let mut see = |name: Option<&str>| {
            if let Some(Thing::Encodings(it)) = name.and_then(|name| self.things.get(name))
                && it.pair.is_none()
            {
                texts = Some(it.texts.clone());
            }
        };
        see(call.spread.as_deref());
        for value in call.arguments.iter().chain(named) {
            value.visit(&mut |inner| see(inner.name()));
        }
        texts
    }

    /// `model.predict(texts)?` for `model(**inputs)`. `None`: another call.
    fn predicted_by_call(&mut self, value: &Value) -> Option<Result<String, Why>> {
        let call = value.call()?;
        let texts = self.encodings_given(call)?;
        let facts = self.facts(&call.function);
        let head = facts.and_then(|it| self.hub.heads.get(&it.span.start).copied());
        call.see_all();
        if matches!(
            head,
            Some(HeadKind::Tokens | HeadKind::Answer | HeadKind::Masked)
        ) {
            return Some(Err(
                "`model.predict([\"a text\"])?` takes the texts themselves, and returns the entities, the answers or the words for a mask"
                    .to_owned(),
            ));
        }
        Some(self.model_name(&call.function).map(|model| {
            let texts = match texts.strip_prefix("vec!") {
                Some(list) => list.to_owned(),
                None if texts.starts_with(['"', '&']) => texts,
                None => format!("&{texts}"),
            };
            format!("{model}.predict({texts})?")
        }))
    }

    /// A part of predictions; `None`: another value.
    pub(crate) fn part_of_predictions(&mut self, value: &Value) -> Option<Result<Found, Why>> {
        match &value.kind {
            Kind::Name(name) => match self.things.get(name) {
                Some(Thing::Staged(stage, base)) => Some(Ok(Found {
                    stage: *stage,
                    base: base.clone(),
                    at: (*stage == Stage::OneClass).then(|| text::name(name)),
                })),
                _ => None,
            },
            Kind::Attribute(object, name) if name == "logits" || name == "indices" => {
                let found = self.part_of_predictions(object)?;
                Some(found.map(|it| match it.stage {
                    Stage::Outputs => Found {
                        stage: Stage::Logits,
                        ..it
                    },
                    _ => it,
                }))
            }
            Kind::Index(object, index) => self.indexed_predictions(object, index),
            Kind::Comprehension(it) => {
                // `[model.config.id2label[p.item()] for p in pred]`
                let over = self.part_of_predictions(&it.items)?;
                let names = self.labels_of(&it.element, it.target.name()?);
                Some(match over {
                    Ok(found) if found.stage == Stage::Classes && names => {
                        see_whole(&it.element);
                        Ok(Found {
                            stage: Stage::Labels,
                            ..found
                        })
                    }
                    Ok(_) => Err("a row of predictions has `label`, `class` and `probabilities`: `for row in &predictions.rows`".to_owned()),
                    Err(why) => Err(why),
                })
            }
            Kind::Call(call) => self.called_on_predictions(value, call),
            _ => None,
        }
    }

    /// Whether a value is the name of a class: `model.config.id2label[p.item()]`.
    fn labels_of(&self, value: &Value, class: &str) -> bool {
        let Kind::Index(object, index) = &value.kind else {
            return false;
        };
        let mut is_of_class = false;
        index.visit(&mut |it| is_of_class |= it.name() == Some(class));
        is_of_class && is_names_of_labels(object)
    }

    fn indexed_predictions(&mut self, object: &Value, index: &Value) -> Option<Result<Found, Why>> {
        if is_names_of_labels(object) {
            let found = self.part_of_predictions(index)?;
            return Some(found.and_then(|it| match it.stage {
                Stage::Classes => Ok(Found {
                    stage: Stage::Labels,
                    at: it.at.or(Some("0".to_owned())),
                    ..it
                }),
                Stage::OneClass => Ok(Found {
                    stage: Stage::Labels,
                    ..it
                }),
                _ => Err("the name of a label has the number of its class".to_owned()),
            }));
        }
        let found = match self.part_of_predictions(object)? {
            Ok(found) => found,
            Err(why) => return Some(Err(why)),
        };
        // `outputs[0]` and `outputs["logits"]` are the logits.
        if found.stage == Stage::Outputs {
            return Some(Ok(Found {
                stage: Stage::Logits,
                ..found
            }));
        }
        if found.at.is_some() {
            // `probs[0][1]`
            if let (Stage::Probabilities, Some(class @ 0..)) = (found.stage, index.integer()) {
                let stage = Stage::Probability(usize::try_from(class).unwrap_or_default());
                return Some(Ok(Found { stage, ..found }));
            }
            // `probs[0][pred]`
            let of_class = self.part_of_predictions(index);
            return match of_class {
                Some(Ok(it)) if it.stage == Stage::Classes => Some(Ok(Found {
                    stage: Stage::Scores,
                    ..found
                })),
                _ => None,
            };
        }
        let at = match index.integer() {
            Some(at @ 0..) => at.to_string(),
            Some(_) => return None,
            None => match self.typed(index) {
                Ok(at) if at.kind == Type::Int => at.rust,
                _ => return None,
            },
        };
        Some(Ok(Found {
            at: Some(at),
            ..found
        }))
    }

    /// Softmax, `argmax`, `max` and conversions of predictions.
    fn called_on_predictions(&mut self, value: &Value, call: &Call) -> Option<Result<Found, Why>> {
        if let Some(made) = self.predicted_by_call(value) {
            return Some(made.map(|base| Found {
                stage: Stage::Outputs,
                base,
                at: None,
            }));
        }
        let full = self.names.called(value);
        let (object, name) = match (&full, &call.function.kind) {
            (Some(full), _) => (call.arguments.first()?, full.rsplit('.').next()?.to_owned()),
            (None, Kind::Attribute(object, name)) => (&**object, name.clone()),
            (None, Kind::Name(name)) if SAME_FUNCTIONS.contains(&name.as_str()) => {
                (call.arguments.first()?, name.clone())
            }
            // `softmax(logits, axis=1)` of scipy.
            (None, Kind::Name(name)) if name == "softmax" => {
                (call.arguments.first()?, name.clone())
            }
            _ => return None,
        };
        let stage = match name.as_str() {
            "softmax" | "sigmoid" => Some(Stage::Probabilities),
            "argmax" => Some(Stage::Classes),
            "max" => Some(Stage::Scores),
            "item" => None,
            name if SAME.contains(&name) || SAME_FUNCTIONS.contains(&name) => None,
            _ => return None,
        };
        let found = match self.part_of_predictions(object)? {
            Ok(found) => found,
            Err(why) => return Some(Err(why)),
        };
        call.see_all();
        let is_one = matches!(name.as_str(), "item" | "int") && found.at.is_none();
        Some(Ok(Found {
            stage: stage.unwrap_or(found.stage),
            at: found.at.or(is_one.then(|| "0".to_owned())),
            ..found
        }))
    }

    /// A part of predictions as Rust; `None`: another value.
    pub(crate) fn prediction(&mut self, value: &Value) -> Option<Result<Typed, Why>> {
        let is_plain_name = matches!(value.kind, Kind::Name(_));
        let found = match self.part_of_predictions(value)? {
            // A variable is itself, except for what has no line.
            Ok(it) if is_plain_name && !matches!(it.stage, Stage::Logits | Stage::Outputs) => {
                return None;
            }
            Ok(found) => found,
            Err(why) => return Some(Err(why)),
        };
        Some(Ok(found.rust()))
    }

    /// `outputs = model(**inputs)`, `probs = torch.softmax(logits, dim=-1)` and the like; `None`: another value.
    pub(crate) fn assign_prediction(
        &mut self,
        name: &str,
        value: &Value,
        span: stratoscope_diagnostics::CellSpan,
    ) -> Option<Result<(), Why>> {
        if self.moves_encodings(name, value) {
            see_whole(value);
            self.idle(span, ON_DEFAULT);
            return Some(Ok(()));
        }
        let found = match self.part_of_predictions(value)? {
            Ok(found) => found,
            Err(why) => return Some(Err(why)),
        };
        if let Err(why) = self.shadow(&[name], value, Some(&Thing::Value)) {
            return Some(Err(why));
        }
        Some(self.push_prediction(name, found, span))
    }

    fn push_prediction(
        &mut self,
        name: &str,
        mut found: Found,
        span: stratoscope_diagnostics::CellSpan,
    ) -> Result<(), Why> {
        let rust = text::name(name);
        let is_call = found.base.ends_with('?');
        let is_whole = matches!(found.stage, Stage::Outputs | Stage::Logits) && found.at.is_none();
        if is_call {
            self.note(
                span,
                "`predict` takes the texts, and its rows have `label`, `class`, `score` and `probabilities`, after softmax; logits are not returned",
            );
            let base = match is_whole {
                true => rust.clone(),
                false if self.names.has("predictions") => "predicted_rows".to_owned(),
                false => "predictions".to_owned(),
            };
            self.push(format!("let {base} = {};", found.base), span);
            found.base = base;
        } else if is_whole {
            self.idle(
                span,
                format!(
                    "`{}` has the predictions, which the next lines use",
                    found.base
                ),
            );
        }
        let thing = match &found.at {
            None => Thing::Staged(found.stage, found.base.clone()),
            Some(_) => Thing::of(found.rust().kind),
        };
        let one = matches!(found.stage, Stage::Classes) && found.at.is_some();
        if !is_whole {
            self.push(format!("let {rust} = {};", found.rust().rust), span);
        }
        let thing = match one {
            // The class of one text: `id2label[pred]` is its label.
            true => Thing::Staged(Stage::OneClass, found.base),
            false => thing,
        };
        self.things.insert(name.to_owned(), thing);
        Ok(())
    }

    /// `inputs = {k: v.to(device) for k, v in inputs.items()}`
    fn moves_encodings(&self, name: &str, value: &Value) -> bool {
        let source = self.source(value.span);
        let is_encodings = matches!(self.things.get(name), Some(Thing::Encodings(_)));
        let moves = source.contains(".to(") || source.contains(".cuda(");
        is_encodings && moves && source.contains(&format!("in {name}.items()"))
    }

    /// Whether a name is the classes of predictions; then those.
    pub(crate) fn classes_in(&self, value: &Value) -> Option<String> {
        match value.name().and_then(|name| self.things.get(name))? {
            Thing::Staged(Stage::Classes, base) => Some(base.clone()),
            _ => None,
        }
    }

    /// The names of a loop over the classes of predictions are classes: `id2label[p]` is the name of one.
    pub(crate) fn loop_over_classes(&mut self, target: &Value, items: &Value) {
        let lists = match (items.call(), &target.kind) {
            (Some(call), Kind::Tuple(names)) => names.iter().zip(&call.arguments).collect(),
            _ => vec![(target, items)],
        };
        for (name, list) in lists {
            if let (Some(name), Some(base)) = (name.name(), self.classes_in(list)) {
                let class = Thing::Staged(Stage::OneClass, base);
                self.things.insert(name.to_owned(), class);
            }
        }
    }

    /// `confidence, pred = torch.max(probs, dim=1)`; `None`: other values.
    pub(crate) fn assign_largest(
        &mut self,
        targets: &[Value],
        value: &Value,
        span: stratoscope_diagnostics::CellSpan,
    ) -> Option<Result<(), Why>> {
        let names: Option<Vec<&str>> = targets.iter().map(Value::name).collect();
        let [scores, classes] = names?[..] else {
            return None;
        };
        let found = match self.part_of_predictions(value)? {
            Ok(found) if found.stage == Stage::Scores => found,
            Ok(_) => return None,
            Err(why) => return Some(Err(why)),
        };
        let of_classes = Found {
            stage: Stage::Classes,
            ..found.clone()
        };
        let mut done = Ok(());
        for (name, found) in [(scores, found), (classes, of_classes)] {
            if done.is_ok() && name != "_" {
                done = self.push_prediction(name, found, span);
            }
        }
        Some(done)
    }
}

/// `model.config.id2label`, `id2label`, `model.config.id2label`'s keys as texts.
fn is_names_of_labels(value: &Value) -> bool {
    match &value.kind {
        Kind::Attribute(_, name) => name == "id2label",
        Kind::Name(name) => matches!(name.as_str(), "id2label" | "label_names" | "labels_map"),
        _ => false,
    }
}
