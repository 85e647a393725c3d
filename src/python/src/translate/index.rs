//! Values by an index: elements and parts of lists, and the values of a history.

use super::number::{Type, Typed};
use super::text;
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// Whether a value is a list of floats: the values of a history, or a list of them that is written out.
    pub(crate) fn are_floats(&self, value: &Value) -> bool {
        match &value.kind {
            Kind::Index(object, name) => {
                let is_history = |it: &Value| {
                    it.name()
                        .is_some_and(|it| matches!(self.things.get(it), Some(Thing::History)))
                };
                let of_run = match &object.kind {
                    Kind::Attribute(run, history) if history == "history" => is_history(run),
                    _ => false,
                };
                of_run && name.text().is_some()
            }
            Kind::List(values) => {
                !values.is_empty() && values.iter().all(|it| matches!(it.kind, Kind::Float(_)))
            }
            _ => false,
        }
    }

    /// `max(values)`, `min(values)` and `sum(values)` of floats.
    pub(crate) fn reduced(&mut self, name: &str, values: &Value) -> Result<Typed, Why> {
        let list = self.value(values)?;
        let rust = match name {
            "max" => format!("{list}.iter().copied().fold(f64::NEG_INFINITY, f64::max)"),
            "min" => format!("{list}.iter().copied().fold(f64::INFINITY, f64::min)"),
            _ => format!("{list}.iter().sum::<f64>()"),
        };
        Ok(Typed::new(rust, Type::Float))
    }

    /// `object[index]`.
    pub(crate) fn index(&mut self, object: &Value, index: &Value) -> Result<Typed, Why> {
        if let Some(values) = self.of_history(object, index)? {
            return Ok(values);
        }
        if let (Some(Thing::Dict(items)), Some(key)) = (
            object.name().and_then(|it| self.things.get(it)),
            index.text(),
        ) {
            let found = items.iter().find(|(name, _)| name == key);
            let value = found.map(|(_, value)| value.clone());
            return self.typed(&value.ok_or_else(|| format!("it has no value `{key}`"))?);
        }
        // `history.history["loss"][-1]`.
        if let (Kind::Index(inner, name), Some(at)) = (&object.kind, index.integer())
            && let Some(values) = self.of_history(inner, name)?
        {
            let rust = values.rust;
            let at = match at {
                0.. => at.to_string(),
                _ => format!("{rust}.len() - {}", at.unsigned_abs()),
            };
            return Ok(Typed::new(format!("{rust}[{at}]"), Type::Float));
        }
        // A history of the notebook: `history["loss"]`.
        if let (Some(name), Some(key)) = (object.name(), index.text())
            && self.is_history_of_notebook(name)
        {
            let rust = format!("{}[{}]", text::name(name), text::text(key));
            return Ok(Typed::new(rust, Type::Unknown));
        }
        if let Some(of_prediction) = self.of_prediction(object, index)? {
            return Ok(of_prediction);
        }
        if let Some(of_row) = self.of_row(object, index)? {
            return Ok(of_row);
        }
        let is_list = match object.name() {
            Some(name) => match self.things.get(name) {
                None => {
                    let kind = self.known.variables.get(name);
                    kind.is_some_and(|it| it.starts_with("Vec<"))
                }
                thing => matches!(thing, Some(Thing::List | Thing::Texts)),
            },
            None => false,
        };
        match (&index.kind, index.integer()) {
            (_, Some(at)) if is_list && at >= 0 => {
                let object = self.value(object)?;
                Ok(Typed::new(format!("{object}[{at}]"), Type::Unknown))
            }
            (Kind::Slice(start, end), _) if is_list => {
                let object = self.value(object)?;
                let (start, end) = (self.bound(start.as_deref())?, self.bound(end.as_deref())?);
                let rust = format!("{object}[{start}..{end}].to_vec()");
                Ok(Typed::new(rust, Type::Unknown))
            }
            _ => {
                let mut missing = None;
                object.visit(&mut |inner| {
                    let found = inner.name().and_then(|name| self.missing(name));
                    missing = missing.take().or(found);
                });
                Err(missing.unwrap_or_else(|| {
                    "an index is translated for lists of the cell only".to_owned()
                }))
            }
        }
    }

    fn is_history_of_notebook(&self, name: &str) -> bool {
        let kind = self.known.variables.get(name);
        !self.things.contains_key(name)
            && kind.is_some_and(|it| it.rsplit("::").next() == Some("History"))
    }

    /// `classifier(texts)[0]["label"]` of a `pipeline`; `None`: it is something else.
    fn of_prediction(&mut self, object: &Value, index: &Value) -> Result<Option<Typed>, Why> {
        let (Kind::Index(predicted, at), Some(field @ ("label" | "score"))) =
            (&object.kind, index.text())
        else {
            return Ok(None);
        };
        let is_model = |it: &Call| {
            let thing = it.function.name().and_then(|name| self.things.get(name));
            matches!(thing, Some(Thing::Model(_)))
        };
        let (true, Some(at @ 0..)) = (predicted.call().is_some_and(is_model), at.integer()) else {
            return Ok(None);
        };
        let rust = self.value(predicted)?;
        Ok(Some(Typed::new(
            format!("{rust}[{at}].{field}"),
            Type::Unknown,
        )))
    }

    /// `data["train"][0]` and `data["train"][0]["text"]`; `None`: it is something else.
    fn of_row(&mut self, object: &Value, index: &Value) -> Result<Option<Typed>, Why> {
        if let (Some(at @ 0..), true) = (index.integer(), self.is_data_set(object)) {
            let data = self.pipeline(object)?;
            let rust = format!("{}[{at}]", data.rust);
            return Ok(Some(Typed::new(rust, Type::Unknown)));
        }
        let field = match index.text() {
            Some("text" | "sentence" | "review" | "sentence1") => "text",
            Some("label" | "labels") => "class()",
            _ => return Ok(None),
        };
        let Kind::Index(data, at) = &object.kind else {
            return Ok(None);
        };
        match (at.integer(), self.is_data_set(data)) {
            (Some(at @ 0..), true) => {
                let data = self.pipeline(data)?;
                let rust = format!("{}[{at}].{field}", data.rust);
                Ok(Some(Typed::new(rust, Type::Unknown)))
            }
            _ => Ok(None),
        }
    }

    fn is_data_set(&self, value: &Value) -> bool {
        let named = value.name().and_then(|name| self.things.get(name));
        matches!(named, Some(Thing::Data(_))) || self.is_data(value)
    }

    /// The start or the end of a range of an index.
    fn bound(&mut self, bound: Option<&Value>) -> Result<String, Why> {
        match bound {
            None => Ok(String::new()),
            Some(bound) if bound.integer().is_some_and(|it| it < 0) => {
                Err("an index that counts from the end is `list.len() - n` here".to_owned())
            }
            Some(bound) => match self.typed(bound)? {
                typed if typed.kind == Type::Int => Ok(typed.operand()),
                _ => Err("the bounds of the range are no whole numbers of the cell".to_owned()),
            },
        }
    }

    /// `history.history["loss"]` as `history["loss"]`; `None`: it is something else.
    fn of_history(&mut self, object: &Value, index: &Value) -> Result<Option<Typed>, Why> {
        let (Kind::Attribute(owner, attribute), Some(name)) = (&object.kind, index.text()) else {
            return Ok(None);
        };
        let is_history = match owner.name().map(|it| self.things.get(it)) {
            Some(Some(Thing::History)) => true,
            Some(None) => owner.name().is_some_and(|it| it.contains("hist")),
            _ => false,
        };
        if attribute != "history" || !is_history {
            return Ok(None);
        }
        let rust = self.value(owner)?;
        if let Some(owner) = owner.name().filter(|it| !self.things.contains_key(*it)) {
            self.free(owner, "the `History` that `fit!` returns")?;
        }
        let rust = format!("{rust}[{}]", text::text(name));
        Ok(Some(Typed::new(rust, Type::Unknown)))
    }
}
