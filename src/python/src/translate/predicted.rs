//! What is made of predictions: their classes, the share of right ones, and the reports of scikit-learn.

use super::arguments::see_whole;
use super::number::{Type, Typed};
use super::reasons::MEASURES;
use super::thing::{Predicted, Source, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// `model.predict(x)` with what it has predicted.
    pub(crate) fn predictions(&mut self, model: &Value, call: &Call) -> Result<Predicted, Why> {
        let rust = self.predict(model, call)?;
        let x = call.argument("x", 0).and_then(Value::name);
        let source = x.map(|name| {
            let known = self.known.variables.get(name);
            let is_set = match self.things.get(name) {
                Some(thing) => matches!(thing, Thing::Data(_)),
                None => known.is_some_and(|it| it.rsplit("::").next() == Some("Dataset")),
            };
            let is_given = self.things.contains_key(name) || known.is_some();
            let looks_like_rows = name.to_lowercase().starts_with('x');
            match is_set || (!is_given && !looks_like_rows) {
                true => Source::Set(text::name(name)),
                false => Source::Rows(text::name(name)),
            }
        });
        if let Some(Source::Rows(rows)) = &source
            && let Some(free) = self.translation.free.iter_mut().find(|it| it.name == *rows)
        {
            free.what = "rows of numbers, such as `vec![[1.0_f32, 2.0], [3.0, 4.0]]`".to_owned();
        }
        Ok(Predicted {
            rust: rust.clone(),
            made: rust,
            source,
        })
    }

    /// Predictions: by their name, a call of `predict`, or what the `Trainer` keeps of them. `None`: it is something else.
    fn predicted(&mut self, value: &Value) -> Result<Option<Predicted>, Why> {
        Ok(match &value.kind {
            Kind::Name(name) => match (self.things.get(name), self.known.variables.get(name)) {
                (Some(Thing::Predictions(it)), _) => Some(it.clone()),
                (None, Some(kind)) if kind.rsplit("::").next() == Some("Predictions") => {
                    Some(Predicted {
                        rust: text::name(name),
                        made: text::name(name),
                        source: None,
                    })
                }
                _ => None,
            },
            Kind::Attribute(object, name) if matches!(name.as_str(), "predictions" | "logits") => {
                self.predicted(object)?
            }
            Kind::Call(_) => match value.method("predict") {
                Some((model, call)) if self.names.full(model).is_none() => {
                    match self.made_by_method(model, "predict", call)? {
                        (_, Thing::Predictions(it)) => Some(it),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        })
    }

    /// The numbers of the classes of predictions: by their name, or made by `argmax`. `None`: it is something else.
    pub(crate) fn classes(&mut self, value: &Value) -> Result<Option<Predicted>, Why> {
        if let Some(name) = value.name() {
            return Ok(match self.things.get(name) {
                Some(Thing::Classes(it)) => Some(it.clone()),
                _ => None,
            });
        }
        if let Some(found) = self.above_half(value)? {
            return Ok(Some(found));
        }
        let Some(call) = value.call() else {
            return Ok(None);
        };
        let full = self.names.called(value).unwrap_or_default();
        let of = match full.as_str() {
            "numpy.argmax"
            | "tensorflow.argmax"
            | "tensorflow.math.argmax"
            | "torch.argmax"
            | "keras.ops.argmax" => call.arguments.first(),
            "" => value.method("argmax").map(|(object, _)| object),
            _ => None,
        };
        let found = match of {
            Some(of) => self.predicted(of)?,
            None => None,
        };
        if found.is_some() {
            call.see_all();
        }
        Ok(found)
    }

    /// `(model.predict(x) > 0.5).astype(int)` of a model that ends in a sigmoid: its classes.
    fn above_half(&mut self, value: &Value) -> Result<Option<Predicted>, Why> {
        let compared = match (&value.kind, self.converted(value)) {
            (_, Some(inner)) => {
                let found = self.above_half(&inner.clone())?;
                if found.is_some() {
                    see_whole(value);
                }
                return Ok(found);
            }
            (Kind::Binary(left, ">" | ">=", right), None) if right.number() == Some(0.5) => left,
            _ => return Ok(None),
        };
        let Some(found) = self.predicted(compared)? else {
            return Ok(None);
        };
        let model = found.made.split('.').next().unwrap_or_default();
        match self.things.get(model) {
            Some(Thing::Model(facts)) if facts.activation.as_deref() != Some("sigmoid") => Ok(None),
            _ => {
                self.note(
                    value.span,
                    "the class of an output of a sigmoid is 1 above 0.5",
                );
                see_whole(value);
                Ok(Some(found))
            }
        }
    }

    /// What is made of predictions; `None`: it is something else.
    pub(crate) fn of_predictions(&mut self, value: &Value) -> Result<Option<(String, Thing)>, Why> {
        if value.name().is_some() {
            return Ok(None);
        }
        if let Some(it) = self.classes(value)? {
            self.note(
                value.span,
                "`labels()` of predictions has the names of the classes, and `assess(&data)?` compares them with the labels",
            );
            let rust = format!(
                "{}.rows.iter().filter_map(|row| row.class).collect::<Vec<usize>>()",
                it.rust
            );
            return Ok(Some((rust, Thing::Classes(it))));
        }
        if let Some(share) = self.share_of(value)? {
            return Ok(Some((share.rust, Thing::Float)));
        }
        let Some(call) = value.call() else {
            return Ok(None);
        };
        let last = match (self.names.called(value), call.function.name()) {
            (Some(full), _) if full.starts_with("sklearn.metrics.") => {
                full.rsplit('.').next().map(str::to_owned)
            }
            (None, Some(name)) if !self.names.has(name) => Some(name.to_owned()),
            _ => None,
        };
        match last.as_deref() {
            Some(
                name @ ("accuracy_score"
                | "f1_score"
                | "confusion_matrix"
                | "classification_report"),
            ) => self.reported(name, call),
            _ => Ok(None),
        }
    }

    /// A measure of scikit-learn of labels and classes.
    fn reported(&mut self, name: &str, call: &Call) -> Result<Option<(String, Thing)>, Why> {
        let (Some(labels), Some(classes)) =
            (call.argument("y_true", 0), call.argument("y_pred", 1))
        else {
            return Ok(None);
        };
        let Some(predicted) = self.classes(classes)? else {
            return Ok(None);
        };
        let average = call.argument("average", usize::MAX).and_then(Value::text);
        if name == "f1_score" && average != Some("macro") {
            return Err(MEASURES.to_owned());
        }
        if name == "accuracy_score"
            && let Some(share) = self.equal_share(classes, &predicted, labels)?
        {
            return Ok(Some((share.rust, Thing::Float)));
        }
        let Some(data) = self.data_of_labels(labels, &predicted)? else {
            let of = &predicted.rust;
            return Err(format!(
                "`{of}.assess(&data)?` has accuracy, F1 and every class, and `{of}.confusion_matrix(&data)?` what was taken for what; `data` \
                 is the data set that was predicted"
            ));
        };
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "y_true" | "y_pred" | "average" => {}
                "target_names" | "labels" => {
                    self.idle(keyword.span, "the classes have the names of the data set");
                }
                "digits" => self.idle(keyword.span, "all values have four digits"),
                "zero_division" => self.idle(keyword.span, "a value that is not defined is `–`"),
                _ => continue,
            }
            call.keyword(&keyword.name);
        }
        let of = &predicted.rust;
        Ok(Some(match name {
            "confusion_matrix" => (format!("{of}.confusion_matrix({data})?"), Thing::Report),
            "classification_report" => (format!("{of}.assess({data})?"), Thing::Assessment),
            "f1_score" => (
                format!("{of}.assess({data})?.macro_f1().value"),
                Thing::Float,
            ),
            _ => (
                format!("{of}.assess({data})?.accuracy().value"),
                Thing::Float,
            ),
        }))
    }

    /// The data set of the labels of predictions, as a reference.
    fn data_of_labels(&mut self, labels: &Value, of: &Predicted) -> Result<Option<String>, Why> {
        let is_label = |it: &Value| matches!(it.text(), Some("label" | "labels" | "target"));
        Ok(match (&of.source, &labels.kind) {
            (Some(Source::Set(data)), Kind::Attribute(object, name)) if name == "label_ids" => {
                let own = self.predicted(object)?;
                own.filter(|own| own.source == of.source)
                    .map(|_| format!("&{data}"))
            }
            (Some(Source::Set(data)), Kind::Index(object, key)) if is_label(key) => {
                let is_own = object.name().is_some_and(|it| text::name(it) == *data);
                is_own.then(|| format!("&{data}"))
            }
            (Some(Source::Set(data)), Kind::Name(name)) => match self.things.get(name) {
                Some(Thing::LabelsOf(set)) if set == data => Some(format!("&{data}")),
                _ => None,
            },
            (Some(Source::Rows(rows)), Kind::Name(name)) => {
                let is_set = matches!(self.things.get(name), Some(Thing::LabelsOf(_)));
                if is_set {
                    return Ok(None);
                }
                let labels = self.labels_by_name(name)?;
                Some(format!("&Dataset::from_arrays(&{rows}, &{labels})?"))
            }
            _ => None,
        })
    }

    fn labels_by_name(&mut self, name: &str) -> Result<String, Why> {
        let rust = self.name(name)?.rust;
        if !self.things.contains_key(name) {
            self.free(name, "the number of the class of each row")?;
        }
        Ok(rust)
    }

    /// The share of right classes as `(classes == labels).mean()` writes it; `None`: it is something else.
    pub(crate) fn share_of(&mut self, value: &Value) -> Result<Option<Typed>, Why> {
        if let Kind::Binary(left, "*", right) = &value.kind {
            let (share, factor) = match (left.number(), right.number()) {
                (None, Some(factor)) => (left, factor),
                (Some(factor), None) => (right, factor),
                _ => return Ok(None),
            };
            let share = self.share_of(share)?;
            return Ok(share.map(|it| Typed::sum(format!("{} * {factor:?}", it.rust), Type::Float)));
        }
        let Some((predictions, labels)) = self.share(value) else {
            return Ok(None);
        };
        let (predictions, labels) = (predictions.clone(), labels.clone());
        let Some(predicted) = self.classes(&predictions)? else {
            return Ok(None);
        };
        let share = self.equal_share(&predictions, &predicted, &labels)?;
        if share.is_some() {
            see_whole(value);
        }
        Ok(share)
    }

    /// The share of the classes that are the labels.
    fn equal_share(
        &mut self,
        classes: &Value,
        predicted: &Predicted,
        labels: &Value,
    ) -> Result<Option<Typed>, Why> {
        let labels_name = labels.name().filter(|name| {
            let known = self.known.variables.get(*name);
            let is_list = known.is_none_or(|kind| {
                let inner = kind
                    .strip_prefix("Vec<")
                    .and_then(|it| it.strip_suffix('>'));
                inner.is_some_and(|it| it.len() <= 5 && !it.contains(['<', '[', '&']))
            });
            match self.things.get(*name) {
                Some(thing) => matches!(thing, Thing::List | Thing::Value | Thing::Classes(_)),
                None => is_list,
            }
        });
        match (classes.name(), labels_name) {
            (Some(classes), Some(labels)) => {
                let (classes, labels) = (text::name(classes), self.labels_by_name(labels)?);
                let rust = format!(
                    "{classes}.iter().zip(&{labels}).filter(|(class, label)| **class as i64 == **label as i64).count() as f64 / \
                     {classes}.len() as f64"
                );
                Ok(Some(Typed::sum(rust, Type::Float)))
            }
            _ => {
                let data = self.data_of_labels(labels, predicted)?;
                let of = &predicted.rust;
                Ok(data.map(|data| {
                    Typed::new(
                        format!("{of}.assess({data})?.accuracy().value"),
                        Type::Float,
                    )
                }))
            }
        }
    }
}
