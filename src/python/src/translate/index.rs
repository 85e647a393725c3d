//! Values by an index: elements and parts of lists, and the values of a history.

use super::number::{Type, Typed};
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// `object[index]`.
    pub(crate) fn index(&mut self, object: &Value, index: &Value) -> Result<Typed, Why> {
        if let Some(value) = self.of_environment(object, index) {
            return Ok(value);
        }
        let whole = Value {
            span: object.span,
            kind: Kind::Index(Box::new(object.clone()), Box::new(index.clone())),
        };
        if let Some(values) = self.typed_of_floats(&whole)? {
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
        if let Some(rows) = self.rows_of_frame(&whole)? {
            return Ok(Typed::new(rows, Type::Int));
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
            (_, Some(at)) if is_list => {
                let object = self.value(object)?;
                let at = match at {
                    0.. => at.to_string(),
                    _ => format!("{object}.len() - {}", at.unsigned_abs()),
                };
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

    pub(crate) fn is_data_set(&self, value: &Value) -> bool {
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
}
