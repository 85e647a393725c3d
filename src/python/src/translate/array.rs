//! Arrays that are written out, and models that are loaded.

use super::arguments::{is_float, is_int};
use super::call::Made;
use super::callback::folder;
use super::thing::{ModelFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// An array that is written out. Numbers of a type of floats have a point here, and other types are not known.
    pub(crate) fn array_of(&mut self, list: &Value, call: &Call) -> Result<Made, Why> {
        let dtype = call.argument("dtype", 1).map(|it| (it, is_float(it)));
        let rust = match dtype {
            None => self.value(list)?,
            Some((_, true)) => {
                let floats = list
                    .elements()
                    .map(|all| all.iter().map(as_float).collect::<Option<Vec<Value>>>());
                match floats.flatten() {
                    Some(all) => self.value(&Value {
                        span: list.span,
                        kind: Kind::List(all),
                    })?,
                    None => self.value(list)?,
                }
            }
            Some((given, false)) if is_int(given) => self.value(list)?,
            Some(_) => return Err("its `dtype` has no counterpart here".to_owned()),
        };
        if let Some(given) = call.written("dtype", 1) {
            self.idle(given, "numbers with a point are float32, others whole");
        }
        Ok((rust, Thing::List))
    }

    /// `tf.keras.models.load_model("net.keras")`.
    pub(crate) fn loaded_model(&mut self, call: &Call) -> Result<Made, Why> {
        let path = call.argument("filepath", 0).ok_or("it names no file")?;
        let folder = match path.text() {
            Some(path) => text::text(&folder(path)),
            None => self.value(path)?,
        };
        self.note(
            path.span,
            "`load` reads what `model.save` has written here, and `compile!` sets its loss and optimizer again; files of Keras are others",
        );
        let facts = ModelFacts {
            span: call.span,
            is_bert: false,
            activation: None,
            outputs: None,
            is_built: true,
            scope: self.scope_of_models(),
            compiled: None,
        };
        Ok((format!("Sequential::load({folder})?"), Thing::Model(facts)))
    }
}

/// A whole number with a point; `None` where it is no number.
fn as_float(value: &Value) -> Option<Value> {
    let kind = match &value.kind {
        Kind::Int(number) => Kind::Float(format!("{number}.0")),
        Kind::Float(number) => Kind::Float(number.clone()),
        _ => return None,
    };
    Some(Value {
        span: value.span,
        kind,
    })
}
