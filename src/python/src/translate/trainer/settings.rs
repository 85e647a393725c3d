//! `TrainingArguments(…)`: its arguments, as they are written, until a `Trainer` uses them.

use std::collections::BTreeMap;

use stratoscope_diagnostics::CellSpan;
use stratoscope_diagnostics::check::suggest;

use super::super::call::Made;
use super::super::thing::Thing;
use super::super::{Translator, Why};
use super::arguments::{Becomes, becomes, is_default, names};
use super::part::Part;
use crate::model::{Call, Kind, Value};

/// The arguments of `TrainingArguments` that `compile!` and `fit!` have.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The call.
    pub span: CellSpan,
    given: BTreeMap<String, (Value, CellSpan)>,
}

impl Settings {
    /// Those of a `Trainer` without `args`.
    pub fn none(span: CellSpan) -> Self {
        Self {
            span,
            given: BTreeMap::new(),
        }
    }

    /// The value of an argument and its place.
    pub fn get(&self, name: &str) -> Option<(&Value, CellSpan)> {
        self.given.get(name).map(|(value, span)| (value, *span))
    }

    /// The first of several names of an argument that is written.
    pub fn first(&self, names: &[&str]) -> Option<(&Value, CellSpan)> {
        names.iter().find_map(|name| self.get(name))
    }

    /// An argument that is a text, or a member such as `IntervalStrategy.EPOCH`, in lower case.
    pub fn word(&self, names: &[&str]) -> Option<(String, CellSpan)> {
        let (value, span) = self.first(names)?;
        let word = match (&value.kind, value.path()) {
            (Kind::Text(it), _) => it.to_lowercase(),
            (_, Some(path)) if path.len() > 1 => path.last()?.to_lowercase(),
            (Kind::Bool(true), _) => "steps".to_owned(),
            (Kind::Bool(false), _) => "no".to_owned(),
            _ => return None,
        };
        Some((word, span))
    }

    /// Whether an argument is `True`, and where.
    pub fn flag(&self, name: &str) -> Option<CellSpan> {
        let (value, span) = self.get(name)?;
        (value.kind == Kind::Bool(true)).then_some(span)
    }

    /// The folder that the run writes to: transformers 5 calls it `trainer_output` unless it is named.
    pub fn folder(&self) -> Value {
        let named = self.get("output_dir").map(|(value, _)| value.clone());
        named.unwrap_or(Value {
            span: self.span,
            kind: Kind::Text("trainer_output".to_owned()),
        })
    }
}

impl Translator<'_> {
    /// `TrainingArguments(…)`, `Seq2SeqTrainingArguments(…)`.
    pub(crate) fn training_arguments(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let mut settings = Settings::none(call.span);
        match call.arguments.as_slice() {
            [] => {}
            [folder] => {
                let place = folder.span;
                let folder = (folder.clone(), place);
                settings.given.insert("output_dir".to_owned(), folder);
            }
            _ => return Err("the arguments of `TrainingArguments` are not all named".to_owned()),
        }
        self.push(
            "// The arguments of `compile!` and `fit!` below.",
            call.span,
        );
        for keyword in &call.keywords {
            let name = keyword.name.as_str();
            match becomes(name) {
                _ if keyword.value.kind == Kind::None => {
                    self.idle(keyword.span, "`None` is the default");
                }
                Some(Becomes::Read) => {
                    let given = (keyword.value.clone(), keyword.span);
                    settings.given.insert(name.to_owned(), given);
                }
                Some(Becomes::Nothing(why)) => self.idle(keyword.span, why),
                Some(Becomes::Left(default, _)) if is_default(&keyword.value, default) => {
                    self.idle(keyword.span, "it is the default");
                }
                Some(Becomes::Left(_, why)) => self.leave_argument(keyword, why.to_owned()),
                None => {
                    let similar = suggest::similar(name, names());
                    let meant = similar.first().map(|it| format!("; similar is `{it}`"));
                    let meant = meant.unwrap_or_default();
                    let why = format!("`TrainingArguments` has no `{name}`{meant}");
                    self.leave_argument(keyword, why);
                }
            }
        }
        let why = "no `Trainer` of this cell has them; paste the cells as one";
        let unused = (call.span, why.to_owned());
        self.hub.unused.insert(call.span.start, unused);
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::Settings(settings))),
        ))
    }
}
