//! What a run has measured: values of a history by their names, lists of such values, and what is computed of them.

use super::arguments::see_whole;
use super::number::{Type, Typed};
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// What the names of the cell are of the type `History` is in the notebook.
const HISTORY: &str = "History";

impl Translator<'_> {
    /// The name of the run that a value is: `history`, `history.history`, `pd.DataFrame(history.history)`.
    pub(crate) fn run(&self, value: &Value) -> Option<String> {
        match &value.kind {
            Kind::Name(name) => {
                let is_run = match (self.things.get(name), self.known.variables.get(name)) {
                    (Some(thing), _) => matches!(thing, Thing::History),
                    (None, Some(kind)) => kind.rsplit("::").next() == Some(HISTORY),
                    (None, None) => is_name_of_run(name) && !self.names.has(name),
                };
                is_run.then(|| text::name(name))
            }
            Kind::Attribute(object, name) if name == "history" => self.run(object),
            Kind::Call(call) if self.names.called(value).as_deref() == Some("pandas.DataFrame") => {
                self.run(call.arguments.first()?)
            }
            _ => None,
        }
    }

    /// A list of floats, and the run that they are of; `None`: it is something else.
    fn floats(&mut self, value: &Value) -> Result<Option<(String, Option<String>)>, Why> {
        Ok(match &value.kind {
            Kind::Name(name) => match (self.things.get(name), self.known.variables.get(name)) {
                (Some(Thing::Floats(run)), _) => Some((text::name(name), run.clone())),
                (None, Some(kind)) if kind == "Vec<f64>" => Some((text::name(name), None)),
                _ => None,
            },
            Kind::Index(object, index) => match (self.run(object), &index.kind) {
                (Some(run), Kind::Text(key)) => {
                    if !self.things.contains_key(&run) {
                        self.free(&run, "the `History` that `fit!` returns")?;
                    }
                    let key = self.measured_name(key, index);
                    Some((format!("{run}[{}]", text::text(&key)), Some(run)))
                }
                (None, Kind::Slice(start, end)) => match self.floats(object)? {
                    Some((list, run)) => {
                        let start = self.bound_of(&list, start.as_deref())?;
                        let end = self.bound_of(&list, end.as_deref())?;
                        Some((format!("{list}[{start}..{end}]"), run))
                    }
                    None => None,
                },
                _ => None,
            },
            Kind::List(values) => {
                let are_floats =
                    !values.is_empty() && values.iter().all(|it| matches!(it.kind, Kind::Float(_)));
                match are_floats {
                    true => Some((self.value(value)?, None)),
                    false => None,
                }
            }
            Kind::Call(call) => {
                let full = self.names.called(value).unwrap_or_default();
                let is_same = matches!(full.as_str(), "numpy.array" | "numpy.asarray")
                    || call.function.name() == Some("list");
                match (is_same, call.arguments.as_slice()) {
                    (true, [one]) if call.keywords.is_empty() && one.elements().is_none() => {
                        let found = self.floats(one)?;
                        if found.is_some() {
                            call.see_all();
                        }
                        found
                    }
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// The name of a metric as it is here: Keras's older one of the accuracy is `acc`.
    fn measured_name(&mut self, key: &str, index: &Value) -> String {
        let name = match key {
            "acc" => "accuracy",
            "val_acc" => "val_accuracy",
            "lr" => "learning_rate",
            other => return other.to_owned(),
        };
        self.note(index.span, format!("`{key}` is called `{name}` here"));
        name.to_owned()
    }

    /// A bound of a range, counted from the end where it is below 0.
    fn bound_of(&mut self, list: &str, bound: Option<&Value>) -> Result<String, Why> {
        match bound.map(|it| (it, it.integer())) {
            None => Ok(String::new()),
            Some((_, Some(at))) if at < 0 => Ok(format!(
                "{list}.len().saturating_sub({})",
                at.unsigned_abs()
            )),
            Some((_, Some(at))) => Ok(at.to_string()),
            Some((bound, None)) => match self.typed(bound)? {
                typed if typed.kind == Type::Int => Ok(format!("{} as usize", typed.operand())),
                _ => Err("the bounds of the range are no whole numbers of the cell".to_owned()),
            },
        }
    }

    /// Whether a value is a list of floats.
    pub(crate) fn are_floats(&self, value: &Value) -> bool {
        match &value.kind {
            Kind::Name(name) => match self.things.get(name) {
                Some(thing) => matches!(thing, Thing::Floats(_)),
                None => self
                    .known
                    .variables
                    .get(name)
                    .is_some_and(|it| it == "Vec<f64>"),
            },
            Kind::Index(object, index) => match &index.kind {
                Kind::Text(_) => self.run(object).is_some(),
                Kind::Slice(..) => self.are_floats(object),
                _ => false,
            },
            Kind::List(values) => {
                !values.is_empty() && values.iter().all(|it| matches!(it.kind, Kind::Float(_)))
            }
            Kind::Call(call) => {
                let full = self.names.called(value).unwrap_or_default();
                let is_same = matches!(full.as_str(), "numpy.array" | "numpy.asarray")
                    || call.function.name() == Some("list");
                let one = call.arguments.first().filter(|_| call.arguments.len() == 1);
                is_same && one.is_some_and(|it| it.elements().is_none() && self.are_floats(it))
            }
            _ => false,
        }
    }

    /// What is made of floats: the values of a run, one of them, or what a function computes of them. `None`: something else.
    pub(crate) fn of_floats(&mut self, value: &Value) -> Result<Option<(String, Thing)>, Why> {
        if self.missing_anywhere(value) {
            return Ok(None);
        }
        if !matches!(value.kind, Kind::Name(_) | Kind::List(_))
            && let Some((list, run)) = self.floats(value)?
        {
            let rust = match list.ends_with(']')
                && matches!(value.kind, Kind::Index(_, ref at) if matches!(at.kind, Kind::Slice(..)))
            {
                true => format!("{list}.to_vec()"),
                false => format!("{list}.clone()"),
            };
            return Ok(Some((rust, Thing::Floats(run))));
        }
        match &value.kind {
            Kind::Index(object, index) => {
                let Some((list, _)) = self.floats(object)? else {
                    return Ok(None);
                };
                let at = match (index.integer(), index.name()) {
                    (Some(at), _) if at < 0 => format!("{list}.len() - {}", at.unsigned_abs()),
                    (Some(at), _) => at.to_string(),
                    (None, _) => match self.typed(index)? {
                        typed if typed.kind == Type::Int => format!("{} as usize", typed.operand()),
                        _ => return Ok(None),
                    },
                };
                Ok(Some((format!("{list}[{at}]"), Thing::Float)))
            }
            Kind::Call(call) => self.computed(value, call),
            Kind::Attribute(object, name) if name == "history" && self.run(object).is_some() => {
                let run = self.run(object).unwrap_or_default();
                Ok(Some((format!("{run}.clone()"), Thing::History)))
            }
            _ => Ok(None),
        }
    }

    /// `max(values)`, `np.argmin(values)`, `history.history.keys()` and the like.
    fn computed(&mut self, value: &Value, call: &Call) -> Result<Option<(String, Thing)>, Why> {
        if let Some((object, _)) = value.method("keys")
            && let Some(run) = self.run(object)
        {
            return Ok(Some((format!("{run}.names()"), Thing::Value)));
        }
        if let (Some("list" | "sorted"), [one]) = (call.function.name(), call.arguments.as_slice())
            && let Some((object, _)) = one.method("keys")
            && let Some(run) = self.run(object)
        {
            call.see_all();
            return Ok(Some((format!("{run}.names()"), Thing::Value)));
        }
        if self.names.called(value).as_deref() == Some("pandas.DataFrame")
            && let Some(run) = self.run(value)
        {
            see_whole(value);
            self.note(value.span, format!("the history has its values by their names, and as the last line of a cell it is a table: `{run}`"));
            return Ok(Some((format!("{run}.clone()"), Thing::History)));
        }
        // `values.index(max(values))`
        if let (Some((list, _)), Some(inner)) = (value.method("index"), call.arguments.first())
            && let Some(of) = inner.call()
            && let Some(name @ ("max" | "min")) = of.function.name()
            && of
                .arguments
                .first()
                .is_some_and(|it| self.source(it.span) == self.source(list.span))
            && let Some((list, _)) = self.floats(list)?
        {
            see_whole(value);
            return Ok(Some((place_of_best(&list, name), Thing::Int(None))));
        }
        let full = self.names.called(value);
        let last = match (&full, call.function.name()) {
            (Some(full), _) if full.starts_with("numpy.") => full.rsplit('.').next(),
            (None, Some(name)) if !self.names.has(name) => Some(name),
            _ => None,
        };
        let last = last.map(str::to_owned);
        let (object, name) = match (last, &call.function.kind) {
            (Some(name), _) => (call.arguments.first(), name),
            (None, Kind::Attribute(object, name)) if full.is_none() => {
                (Some(&**object), name.clone())
            }
            _ => return Ok(None),
        };
        let Some(values) = object.filter(|it| self.are_floats(it)) else {
            return Ok(None);
        };
        let is_plain = call.keywords.is_empty();
        let known = [
            "max", "min", "amax", "amin", "nanmax", "nanmin", "sum", "mean", "average", "argmax",
            "argmin",
        ];
        if !is_plain || !known.contains(&name.as_str()) || call.arguments.len() > 1 {
            return Ok(None);
        }
        let Some((list, _)) = self.floats(values)? else {
            return Ok(None);
        };
        call.see_all();
        Ok(Some(match name.as_str() {
            "argmax" => (place_of_best(&list, "max"), Thing::Int(None)),
            "argmin" => (place_of_best(&list, "min"), Thing::Int(None)),
            "sum" => (format!("{list}.iter().sum::<f64>()"), Thing::Float),
            "mean" | "average" => (
                format!("{list}.iter().sum::<f64>() / {list}.len() as f64"),
                Thing::Float,
            ),
            name if name.contains("max") => (
                format!("{list}.iter().copied().fold(f64::NEG_INFINITY, f64::max)"),
                Thing::Float,
            ),
            _ => (
                format!("{list}.iter().copied().fold(f64::INFINITY, f64::min)"),
                Thing::Float,
            ),
        }))
    }

    /// What is computed of floats, as a value in an expression.
    pub(crate) fn typed_of_floats(&mut self, value: &Value) -> Result<Option<Typed>, Why> {
        let found = self.of_floats(value)?;
        Ok(found.map(|(rust, thing)| {
            // In an expression a list stays where it is.
            let rust = match &thing {
                Thing::Floats(_) => rust.trim_end_matches(".clone()").to_owned(),
                _ => rust,
            };
            match rust.contains(" / ") {
                true => Typed::sum(rust, thing.kind()),
                false => Typed::new(rust, thing.kind()),
            }
        }))
    }

    /// `range(1, len(loss) + 1)`: the numbers of the epochs of a run.
    pub(crate) fn epochs_of(&self, value: &Value) -> Option<String> {
        let call = value.call()?;
        let is_range = call.function.name() == Some("range")
            || self.names.called(value).as_deref() == Some("numpy.arange");
        let run = self.run_of(value).filter(|_| is_range)?;
        see_whole(value);
        Some(run)
    }

    fn missing_anywhere(&self, value: &Value) -> bool {
        let mut is_missing = false;
        value.visit(&mut |inner| {
            is_missing |= inner
                .name()
                .is_some_and(|name| self.missing(name).is_some());
        });
        is_missing
    }
}

/// Whether a name that nothing is known of is usual for the result of a `fit`.
fn is_name_of_run(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("hist") && !name.contains("histogram")
}

/// The place of the greatest or the least value; of several, the first one.
fn place_of_best(list: &str, which: &str) -> String {
    match which {
        "max" => format!(
            "(0..{list}.len()).rev().max_by(|&a, &b| {list}[a].total_cmp(&{list}[b])).unwrap_or(0)"
        ),
        _ => format!(
            "(0..{list}.len()).min_by(|&a, &b| {list}[a].total_cmp(&{list}[b])).unwrap_or(0)"
        ),
    }
}
