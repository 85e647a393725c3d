//! Variables of the environment, and dictionaries of settings.

use stratoscope_diagnostics::CellSpan;

use super::{Translator, Why};
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

    /// `os.environ`.
    pub(crate) fn is_environment(&self, object: &Value) -> bool {
        object.path().is_some_and(|path| path == ["os", "environ"])
    }

    /// `os.environ["TF_CONFIG"] = "…"` as `%env`.
    pub(crate) fn set_environment(
        &mut self,
        key: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Result<(), Why> {
        let name = key
            .text()
            .ok_or("the name of the variable is not written out")?;
        let is_setup = ["TF_CPP_", "XLA_", "KERAS_BACKEND", "TOKENIZERS_PARALLELISM"];
        if is_setup.iter().any(|start| name.starts_with(start)) {
            self.idle(span, "it sets up a library of Python");
            return Ok(());
        }
        let is_line = |text: &&str| !text.contains(['\n', '\r']) && text.trim() == *text;
        match value.text().filter(is_line) {
            Some(text) if self.depth == 0 => {
                self.push(format!("%env {name}={text}"), span);
                Ok(())
            }
            _ if name == "TF_CONFIG" => Err(
                "its text is not written out; set it by `%env TF_CONFIG=…`, without it a job of workers is SC0806"
                    .to_owned(),
            ),
            _ => Err(format!("its text is not written out; `%env {name}=…` sets it")),
        }
    }
}
