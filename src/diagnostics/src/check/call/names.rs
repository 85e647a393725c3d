//! Names of arguments that the call does not know: what they look like, where they belong, what they mean in
//! Keras.

use super::super::calls::CallArgument;
use super::super::{moved, suggest};
use super::Checker;
use super::named_data::is_named_data;
use crate::arguments;
use crate::rules::{
    MisplacedArgument, TwoStepsPerExecution, UnknownArgument, UnknownCompileArgument,
    UnknownEvaluateArgument, UnknownFitArgument,
};
use crate::{Diagnostic, Place, Rule};
use stratoscope_render::text;

impl Checker<'_> {
    /// SC0101, SC0104, SC0106, SC0114, SC0115: names that the call does not know.
    pub(super) fn names(&mut self) {
        for (index, argument, _) in self.given() {
            if self.knows(&argument.name) || self.is_data_with_a_name(&argument.name) {
                continue;
            }
            let diagnostic = self.unknown(argument);
            self.found(vec![index], diagnostic);
        }
    }

    /// The data, of which `without_data` says that it has no name.
    fn is_data_with_a_name(&self, name: &str) -> bool {
        let call = &self.parsed.call;
        let lacks_data = call.name != "compile" && call.operands.len() == 1;
        let has_data = || call.arguments.iter().any(|it| is_named_data(&it.name));
        lacks_data && (is_named_data(name) || (name == "y" && has_data()))
    }

    fn unknown(&self, argument: &CallArgument) -> Diagnostic {
        let call = &self.parsed.call;
        let name = argument.name.as_str();
        let place = Place::Span(argument.name_span);
        if call.name == "compile" {
            if name == "experimental_steps_per_execution"
                && let Some(current) = call.argument("steps_per_execution")
            {
                return TwoStepsPerExecution {
                    experimental: Place::Span(argument.span),
                    experimental_drop: Place::Span(argument.drop_span),
                    current: Place::Span(current.span),
                    arguments: Vec::new(),
                }
                .diagnostic();
            }
            if let Some(elsewhere) = arguments::belongs_elsewhere("compile", name) {
                let (written, edits) = moved::to_optimizer(call, self.chains, argument)
                    .unwrap_or_else(|| (written(&elsewhere, argument), Vec::new()));
                return MisplacedArgument {
                    given: name.to_owned(),
                    place,
                    owner: elsewhere.owner.to_owned(),
                    written,
                    edits,
                    arguments: Vec::new(),
                }
                .diagnostic();
            }
        }
        let facts = UnknownArgument {
            given: name.to_owned(),
            place,
            drop: Place::Span(argument.drop_span),
            similar: self.similar(name),
            hint: self.hint(argument),
            arguments: Vec::new(),
        };
        match call.name.as_str() {
            "compile" => UnknownCompileArgument(facts).diagnostic(),
            "fit" | "start" => UnknownFitArgument(facts).of_call(&call.name),
            _ => UnknownEvaluateArgument(facts).diagnostic(),
        }
    }

    /// Names at distance 1, then the translation of another library's name, then names further off.
    pub(super) fn similar(&self, name: &str) -> Vec<String> {
        let known = self.table.arguments.iter().map(|argument| argument.name);
        let mut similar = suggest::similar(name, known);
        if let Some(translated) = arguments::translated(self.table.name, name) {
            similar.retain(|other| other != translated);
            let near = similar
                .iter()
                .take_while(|other| suggest::distance(name, other) == 1)
                .count();
            let own = suggest::distance(name, translated) == 1;
            similar.insert(if own { 0 } else { near }, translated.to_owned());
        }
        similar
    }

    /// A sentence on what the name means in Keras or in another call.
    fn hint(&self, argument: &CallArgument) -> Option<String> {
        let (call, name) = (self.table.name, argument.name.as_str());
        if let Some(text) = arguments::explained(call, name) {
            return Some(text.to_owned());
        }
        if let Some(elsewhere) = arguments::belongs_elsewhere(call, name) {
            let written = written(&elsewhere, argument);
            return Some(format!(
                "`{name}` belongs to {}: `{written}`",
                elsewhere.owner
            ));
        }
        (name == "experimental_steps_per_execution").then(|| {
            "TensorFlow 2.3 has `steps_per_execution` under this name; later versions dropped the prefix"
                .to_owned()
        })
    }
}

/// How an argument is written where it belongs, with its own value.
fn written(elsewhere: &arguments::Elsewhere, argument: &CallArgument) -> String {
    let value = if argument.value.is_empty() {
        "…"
    } else {
        argument.value.as_str()
    };
    let value = text::excerpt(value, 60);
    match elsewhere.written {
        // The optimizer and the loss: the value has a place of its own.
        pattern if pattern.contains("{}") => pattern.replacen("{}", &value, 1),
        // The calls: `…` stands for `name = value`.
        pattern => pattern.replacen('…', &format!("{} = {value}", argument.name), 1),
    }
}
