//! Values that any program has: numbers, texts, lists, names, and what `print` prints.

use super::literal::{form, kind_of_literal, percent, rows, type_of, whole};
use super::number::{Type, Typed};
use super::text;
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Piece, Value};

impl Translator<'_> {
    /// A value as Rust.
    pub(crate) fn value(&mut self, value: &Value) -> Result<String, Why> {
        Ok(self.typed(value)?.rust)
    }

    /// A value as Rust, and its type.
    pub(crate) fn typed(&mut self, value: &Value) -> Result<Typed, Why> {
        if let Some(share) = self.share_of(value)? {
            return Ok(share);
        }
        if let Some(why) = self.share_by_hand(value) {
            return Err(why);
        }
        if let Some(part) = self.prediction(value) {
            return part;
        }
        if let Some(of_tokenizer) = self.of_tokenizer(value) {
            return of_tokenizer;
        }
        if let Kind::Call(_) = value.kind
            && let Some(found) = self.typed_of_floats(value)?
        {
            return Ok(found);
        }
        match &value.kind {
            Kind::None => Err("`None` has no counterpart in this place".to_owned()),
            Kind::Bool(it) => Ok(Typed::new(it.to_string(), Type::Bool)),
            Kind::Int(number) => whole(number),
            Kind::Float(number) => Ok(Typed::new(number.clone(), Type::Float)),
            Kind::Text(it) => Ok(Typed::new(text::text(it), Type::Text)),
            Kind::Format(pieces) => {
                let (inside, values) = self.format(pieces)?;
                let values: String = values.iter().map(|value| format!(", {value}")).collect();
                Ok(Typed::new(
                    format!("format!(\"{inside}\"{values})"),
                    Type::Text,
                ))
            }
            Kind::List(values) => self.list(values),
            Kind::Tuple(values) => {
                let values: Result<Vec<String>, Why> =
                    values.iter().map(|it| self.value(it)).collect();
                let values = values?;
                let comma = if values.len() == 1 { "," } else { "" };
                Ok(Typed::new(
                    format!("({}{comma})", values.join(", ")),
                    Type::Unknown,
                ))
            }
            Kind::Name(name) => self.name(name),
            Kind::Unary("-", it) => {
                let it = self.typed(it)?;
                match it.kind {
                    Type::Int | Type::Float => {
                        Ok(Typed::new(format!("-{}", it.operand()), it.kind))
                    }
                    _ => Err("the type of its number is not known from the cell".to_owned()),
                }
            }
            Kind::Unary(_, it) => {
                let it = self.condition(it)?;
                Ok(Typed::new(format!("!{}", it.operand()), Type::Bool))
            }
            Kind::Binary(left, op, right) => self.binary(left, op, right),
            Kind::Call(call) => self.function_of_python(value, call),
            Kind::Attribute(object, name) => match self.rows_of_frame(value)? {
                Some(rows) => Ok(Typed::new(rows, Type::Int)),
                None => self.attribute(object, name),
            },
            Kind::Index(object, index) => self.index(object, index),
            Kind::Slice(..) => {
                Err("a range of an index is translated for lists of the cell only".to_owned())
            }
            Kind::Dict(_) => Err("a dictionary has no counterpart in this place".to_owned()),
            Kind::Comprehension(_) => Err(self.made_by_a_loop(value, "a list made by a loop")),
            Kind::Lambda(..) => Err("the types of a lambda's values are not known".to_owned()),
            Kind::Choice(parts) => self.choice(parts),
            Kind::Other(what) => Err(self.made_by_a_loop(value, what)),
        }
    }

    /// A name, unless it is one that was not made.
    pub(crate) fn name(&mut self, name: &str) -> Result<Typed, Why> {
        let kind = match self.things.get(name) {
            Some(Thing::Missing(_)) => return Err(self.missing(name).unwrap_or_default()),
            Some(Thing::Folded | Thing::Options(_)) => {
                return Err(format!("`{name}` has no counterpart of its own"));
            }
            Some(
                thing @ (Thing::Tokenizes(..)
                | Thing::Body(_)
                | Thing::Class(_)
                | Thing::Layers(..)
                | Thing::Layer(_)
                | Thing::Splits(..)
                | Thing::Callbacks(_)
                | Thing::Config(_)
                | Thing::Dict(_)
                | Thing::Encodings(_)
                | Thing::Part(_)
                | Thing::Epochs(_)
                | Thing::LabelsOf(_)
                | Thing::Generator(_)
                | Thing::Figure
                | Thing::Draws(..)
                | Thing::Step(_)),
            ) => {
                return Err(format!(
                    "`{name}` is {}, which is no value here",
                    thing.word()
                ));
            }
            Some(thing) => thing.kind(),
            None => {
                if self.in_function
                    && let Some(rust) = self.constants.get(name)
                {
                    return Ok(Typed::new(rust.clone(), kind_of_literal(rust)));
                }
                self.free(name, "")?;
                let known = self.known.variables.get(name);
                known.map_or(Type::Unknown, |kind| type_of(kind))
            }
        };
        Ok(Typed::new(text::name(name), kind))
    }

    /// A name that the cell does not make, and what is expected of it.
    pub(crate) fn free(&mut self, name: &str, what: &str) -> Result<(), Why> {
        if self.in_function {
            return Err(format!(
                "a function of Rust does not see `{name}`, which is outside of it"
            ));
        }
        let given = self.known.variables.contains_key(name);
        let list = &mut self.translation.free;
        match list.iter_mut().find(|it| it.name == name) {
            Some(known) if known.what.is_empty() => known.what = what.to_owned(),
            Some(_) => {}
            None => list.push(crate::Free {
                name: name.to_owned(),
                what: what.to_owned(),
                is_given: given,
            }),
        }
        Ok(())
    }

    fn list(&mut self, values: &[Value]) -> Result<Typed, Why> {
        let is_rows = values
            .iter()
            .all(|it| matches!(it.kind, Kind::List(_) | Kind::Tuple(_)));
        if is_rows && !values.is_empty() {
            return rows(values).map(|it| Typed::new(it, Type::Unknown));
        }
        let typed: Result<Vec<Typed>, Why> = values.iter().map(|it| self.typed(it)).collect();
        let typed = typed?;
        let has = |kind| typed.iter().any(|it| it.kind == kind);
        let is_mixed = has(Type::Int) && has(Type::Float);
        if has(Type::Text) && (has(Type::Int) || has(Type::Float) || has(Type::Bool)) {
            return Err("a list of Rust has values of one type".to_owned());
        }
        let written = typed.iter().map(|it| match it.kind {
            Type::Int if is_mixed => format!("{}.0", it.rust),
            _ => it.rust.clone(),
        });
        let written: Vec<String> = written.collect();
        Ok(Typed::new(
            format!("vec![{}]", written.join(", ")),
            Type::Unknown,
        ))
    }

    fn attribute(&mut self, object: &Value, name: &str) -> Result<Typed, Why> {
        let thing = object.name().and_then(|it| self.things.get(it)).cloned();
        match (thing, name) {
            (thing @ (Some(Thing::Strategy) | None), "num_replicas_in_sync")
                if thing.is_some() || object.name().is_some_and(|it| it.contains("strategy")) =>
            {
                let strategy = self.value(object)?;
                if let Some(name) = object.name().filter(|_| thing.is_none()) {
                    self.free(name, "a strategy, such as `MirroredStrategy::logical(2)?`")?;
                }
                Ok(Typed::new(
                    format!("{strategy}.replicas().len()"),
                    Type::Int,
                ))
            }
            (Some(Thing::History), _) => Err(
                "the values of a history are found by their names: `history[\"loss\"]`".to_owned(),
            ),
            (Some(Thing::Missing(_)), _) => {
                self.value(object)?;
                Err(format!("`.{name}` is not translated"))
            }
            _ => Err(format!("`.{name}` has no counterpart here")),
        }
    }

    /// `len(x)`, `int(x)` and the like, and functions of the cell.
    fn function_of_python(&mut self, value: &Value, call: &Call) -> Result<Typed, Why> {
        let name = call.function.name().unwrap_or_default();
        let is_own = self.names.has(name);
        if !is_own && matches!(name, "len" | "int" | "float" | "str") && call.keywords.is_empty() {
            call.see_all();
        }
        match (name, call.arguments.as_slice()) {
            ("len", [of]) if !is_own => {
                // Data that has batches is as long as they are many.
                let batch = match of.name().and_then(|name| self.things.get(name)) {
                    Some(Thing::Data(data)) => data.batch.clone(),
                    _ => None,
                };
                let of = self.value(of)?;
                let rust = match batch {
                    Some(batch) => format!("{of}.len().div_ceil({batch})"),
                    None => format!("{of}.len()"),
                };
                Ok(Typed::new(rust, Type::Int))
            }
            (_, [of]) if !is_own && let Some(number) = self.number_asked_for(name, of) => number,
            ("int", [of]) if !is_own => {
                let of = self.typed(of)?;
                match of.kind {
                    Type::Int => Ok(of),
                    Type::Float => Ok(Typed::new(format!("({}) as i64", of.rust), Type::Int)),
                    _ => Err("the type of its value is not known from the cell".to_owned()),
                }
            }
            ("float", [of]) if !is_own => {
                let of = self.typed(of)?;
                match of.kind {
                    Type::Float => Ok(of),
                    Type::Int => Ok(Typed::new(format!("({}) as f64", of.rust), Type::Float)),
                    _ => Err("the type of its value is not known from the cell".to_owned()),
                }
            }
            ("round", [of, digits]) if !is_own && digits.integer().is_some_and(|it| it >= 0) => {
                let of = self.typed(of)?;
                let digits = digits.integer().unwrap_or_default();
                match of.kind {
                    Type::Float => {
                        call.see_all();
                        let factor = format!("10_f64.powi({digits})");
                        let rust = format!("({} * {factor}).round() / {factor}", of.operand());
                        Ok(Typed::sum(rust, Type::Float))
                    }
                    _ => Err("the type of its value is not known from the cell".to_owned()),
                }
            }
            ("str", [of]) if !is_own => {
                let of = self.typed(of)?;
                Ok(Typed::new(
                    format!("{}.to_string()", of.operand()),
                    Type::Text,
                ))
            }
            _ => self.made_value(value),
        }
    }

    /// `print(…)` as `println!(…)`.
    pub(crate) fn print(&mut self, call: &Call) -> Result<String, Why> {
        if let Some(odd) = call.keywords.iter().find(|it| it.name != "flush") {
            return Err(format!("`println!` has no `{}`", odd.name));
        }
        call.arguments.iter().for_each(see_format);
        call.arguments.iter().enumerate().for_each(|(place, _)| {
            call.argument("", place);
        });
        let (mut inside, mut values) = (String::new(), Vec::new());
        for (index, argument) in call.arguments.iter().enumerate() {
            if index > 0 {
                inside.push(' ');
            }
            match &argument.kind {
                Kind::Text(it) => inside += &text::inside_format(it),
                Kind::Format(pieces) => {
                    let (more, given) = self.format(pieces)?;
                    inside += &more;
                    values.extend(given);
                }
                _ => {
                    let piece = self.formatted(argument);
                    let piece = piece.unwrap_or_else(|| vec![Piece::Value(argument.clone(), None)]);
                    let (more, given) = self.format(&piece)?;
                    inside += &more;
                    values.extend(given);
                }
            }
        }
        let values: String = values.iter().map(|value| format!(", {value}")).collect();
        Ok(match inside.is_empty() {
            true => "println!();".to_owned(),
            false => format!("println!(\"{inside}\"{values});"),
        })
    }

    /// `"{} of {:.2f}".format(a, b)` as an `f"…"`.
    fn formatted(&self, value: &Value) -> Option<Vec<Piece>> {
        let (object, call) = value.method("format")?;
        let (mut rest, mut values) = (object.text()?, call.arguments.iter());
        let mut pieces = Vec::new();
        while let Some((before, after)) = rest.split_once('{') {
            if after.starts_with('{') || before.contains('}') {
                return None;
            }
            let (inside, more) = after.split_once('}')?;
            let spec = match inside {
                "" => None,
                inside => Some(inside.strip_prefix(':')?.to_owned()),
            };
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Value(values.next()?.clone(), spec));
            rest = more;
        }
        if rest.contains('}') || values.next().is_some() || !call.keywords.is_empty() {
            return None;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Some(pieces)
    }

    /// The inside of a format string and its values.
    fn format(&mut self, pieces: &[Piece]) -> Result<(String, Vec<String>), Why> {
        let (mut inside, mut values) = (String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Text(it) => inside += &text::inside_format(it),
                Piece::Value(value, spec) => {
                    if let Some(digits) = spec.as_deref().and_then(percent) {
                        let typed = self.typed(value)?;
                        if typed.kind != Type::Float {
                            return Err(
                                "the type of its value is not known from the cell".to_owned()
                            );
                        }
                        inside += &format!("{{:.{digits}}}%");
                        values.push(format!("100.0 * {}", typed.operand()));
                        continue;
                    }
                    let spec = match spec {
                        Some(spec) => form(spec)?,
                        None => String::new(),
                    };
                    let typed = self.typed(value)?;
                    let debug = match (typed.kind, spec.is_empty()) {
                        (Type::Unknown, true) if !self.is_shown(value) => ":?".to_owned(),
                        _ => spec,
                    };
                    let is_name = value.name().is_some_and(|name| text::name(name) == name);
                    match is_name {
                        true => inside += &format!("{{{}{debug}}}", typed.rust),
                        false => {
                            inside += &format!("{{{debug}}}");
                            values.push(typed.rust);
                        }
                    }
                }
            }
        }
        Ok((inside, values))
    }

    /// Whether a value is printed as what it says, not as its parts.
    fn is_shown(&self, value: &Value) -> bool {
        let thing = value.name().and_then(|it| self.things.get(it));
        let called = value.call().and_then(|call| call.function.path());
        let is_matrix = called.is_some_and(|it| it.last() == Some(&"confusion_matrix"));
        matches!(thing, Some(Thing::Text | Thing::Bool | Thing::Report))
            || is_matrix
            || value.method("summary").is_some()
            || value
                .call()
                .is_some_and(|call| call.function.name() == Some("str"))
    }
}

/// The values of `"…".format(a, b)` are those of the format.
fn see_format(value: &Value) {
    if let Some((_, call)) = value.method("format") {
        call.see_all();
    }
}
