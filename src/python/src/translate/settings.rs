//! Dictionaries of settings.

use super::Translator;
use crate::model::{Kind, Value};

impl Translator<'_> {
    /// The items of a dictionary of numbers and texts.
    pub(crate) fn constants_of(&self, value: &Value) -> Option<Vec<(String, Value)>> {
        let is_constant = |it: &Value| {
            it.number().is_some() || it.text().is_some() || matches!(it.kind, Kind::Bool(_))
        };
        if let Some(call) = value.call() {
            // `dict(epochs=3)`.
            let is_dict = call.function.name() == Some("dict") && !self.names.has("dict");
            if !is_dict || !call.arguments.is_empty() || call.starred.is_some() {
                return None;
            }
            call.see_all();
            let items = call.keywords.iter();
            let items =
                items.map(|it| is_constant(&it.value).then(|| (it.name.clone(), it.value.clone())));
            return items
                .collect::<Option<Vec<_>>>()
                .filter(|it| !it.is_empty());
        }
        let Kind::Dict(items) = &value.kind else {
            return None;
        };
        let items = items.iter().map(|(key, value)| {
            let key = key.text()?.to_owned();
            is_constant(value).then(|| (key, value.clone()))
        });
        items
            .collect::<Option<Vec<_>>>()
            .filter(|it| !it.is_empty())
    }
}
