//! Functions that build a model, functions that tokenize, steps by hand, and subclasses of `Model`.

use stratoscope_diagnostics::CellSpan;

use super::layer::Layer;
use super::number::Type;
use super::reasons::{OF_REPLICAS, distributes_a_step, of_class};
use super::thing::{ModelFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Class, Function, Kind, Statement, StatementKind, Value, each_value};

impl Translator<'_> {
    /// A value that functions may use: it is written out where they do.
    pub(crate) fn remember_constant(&mut self, name: &str, rust: &str, thing: &Thing) {
        let is_plain = matches!(
            thing,
            Thing::Int(_) | Thing::Float | Thing::Text | Thing::Bool
        );
        if self.depth == 0 && is_plain && !self.changing.contains(name) {
            self.constants.insert(name.to_owned(), rust.to_owned());
        }
    }

    /// `def name(…):`.
    pub(crate) fn function(&mut self, it: &Function, span: CellSpan) -> Result<(), Why> {
        if it.has_more {
            return Err("a function of Rust has a fixed list of arguments".to_owned());
        }
        if self.is_seeding(it, span) || self.draws_run(it, span) {
            return Ok(());
        }
        if let Some(done) = self.function_of_hub(it, span) {
            return done;
        }
        if let Some(tape) = self.tape_in(&it.body) {
            self.note_part(it, span);
            self.skip_comments(span.end);
            self.used_bodies(&it.body);
            self.bodies.insert(it.name.clone(), span);
            self.things
                .insert(it.name.clone(), Thing::Step(Box::new(tape)));
            return Ok(());
        }
        if let [
            Statement {
                kind: StatementKind::Return(Some(value)),
                ..
            },
        ] = last_of(&it.body)
            && let Some((length, at)) = self.tokenizes(value)?
        {
            self.skip_comments(span.end);
            self.push("// The function only tokenizes, as `fit!` does.", span);
            self.things
                .insert(it.name.clone(), Thing::Tokenizes(length, at));
            return Ok(());
        }
        let returns = it
            .body
            .iter()
            .any(|inner| matches!(inner.kind, StatementKind::Return(_)));
        if it.parameters.is_empty() && !returns {
            self.bodies.insert(it.name.clone(), span);
            self.things
                .insert(it.name.clone(), Thing::Body(Box::new(it.clone())));
            return Ok(());
        }
        if distributes_a_step(&it.body) {
            return Err(OF_REPLICAS.to_owned());
        }
        let Some(StatementKind::Return(Some(result))) = it.body.last().map(|it| &it.kind) else {
            return Err("a function is translated where it returns a model at its end".to_owned());
        };
        let parameters = self.parameters(it)?;
        let outer = std::mem::take(&mut self.things);
        let scopes = std::mem::take(&mut self.scopes);
        let inside = std::mem::take(&mut self.inside);
        let repeats = std::mem::take(&mut self.repeats);
        for (name, thing) in &outer {
            if matches!(
                thing,
                Thing::Builder(..) | Thing::Class(_) | Thing::Missing(_)
            ) {
                self.things.insert(name.clone(), thing.clone());
            }
        }
        for ((name, _), kind) in it.parameters.iter().zip(&parameters) {
            self.things.insert(name.clone(), Thing::of(*kind));
        }
        let was_inside = std::mem::replace(&mut self.in_function, true);
        let of_scope = self.in_scopes.contains(&it.name);
        let was_of_scope = std::mem::replace(&mut self.of_scope, of_scope);
        let made = self.builder(it, &parameters, result, span);
        self.in_function = was_inside;
        self.of_scope = was_of_scope;
        self.things = outer;
        self.scopes = scopes;
        self.inside = inside;
        self.repeats = repeats;
        let facts = made?;
        let builder = Thing::Builder(facts, it.parameters.clone());
        self.things.insert(it.name.clone(), builder);
        Ok(())
    }

    fn builder(
        &mut self,
        it: &Function,
        parameters: &[Type],
        result: &Value,
        span: CellSpan,
    ) -> Result<ModelFacts, Why> {
        let given: Vec<String> = it
            .parameters
            .iter()
            .zip(parameters)
            .map(|((name, _), kind)| format!("{}: {}", text::name(name), rust_type(*kind)))
            .collect();
        let at = self.translation.lines.len();
        let body = &it.body[..it.body.len() - 1];
        self.nested("fn".to_owned(), body, span)?;
        self.depth += 1;
        let returned = self.returned(result);
        self.depth -= 1;
        let facts = returned?;
        self.account_value(result);
        let class = if facts.is_bert {
            "BertForSequenceClassification"
        } else {
            "Sequential"
        };
        let head = format!(
            "fn {}({}) -> stratoscope::diagnostics::Result<{class}> {{",
            text::name(&it.name),
            given.join(", ")
        );
        if let Some(line) = self.translation.lines.get_mut(at) {
            line.text = head;
        }
        self.push_alone("}");
        Ok(facts)
    }

    /// The functions that are named in these statements are used in the cell.
    pub(crate) fn used_bodies(&mut self, body: &[Statement]) {
        each_value(body, &mut |value| {
            if let Some(name) = value.name() {
                self.bodies.remove(name);
            }
        });
    }

    /// Names the functions whose statements would stand where they are called, and that nothing calls.
    pub(crate) fn unused_bodies(&mut self) {
        for (name, span) in std::mem::take(&mut self.bodies) {
            let why = format!("nothing in this cell calls `{name}`");
            self.leave(span, why);
        }
    }

    /// `return model`, `return Sequential([…])`.
    fn returned(&mut self, result: &Value) -> Result<ModelFacts, Why> {
        self.materialize(result, "")?;
        let (rust, thing) = match result
            .name()
            .and_then(|name| self.things.get(name))
            .cloned()
        {
            Some(thing @ Thing::Model(_)) => (self.value(result)?, thing),
            _ => self.made(result)?,
        };
        let Thing::Model(facts) = thing else {
            return Err("a function is translated where it returns a model of the cell".to_owned());
        };
        let rust = match rust.strip_suffix('?') {
            Some(made) => made.to_owned(),
            None => format!("Ok({rust})"),
        };
        self.push(rust, result.span);
        Ok(facts)
    }

    /// The types of parameters, by their defaults and by what they are used for.
    fn parameters(&mut self, it: &Function) -> Result<Vec<Type>, Why> {
        let mut types = Vec::new();
        for (name, default) in &it.parameters {
            let by_default = match default.as_ref().map(|value| &value.kind) {
                Some(Kind::Int(_)) => Type::Int,
                Some(Kind::Float(_)) => Type::Float,
                Some(Kind::Text(_)) => Type::Text,
                Some(Kind::Bool(_)) => Type::Bool,
                _ => Type::Unknown,
            };
            let kind = match by_default {
                Type::Unknown => self.used_as(name, &it.body),
                known => known,
            };
            if kind == Type::Unknown {
                return Err(format!(
                    "a function is translated where it builds a model; the type of its argument `{name}` is not known"
                ));
            }
            if default.is_some() {
                self.note(
                    default
                        .as_ref()
                        .map_or(CellSpan { start: 0, end: 0 }, |it| it.span),
                    format!(
                        "Rust has no defaults: calls of this cell get that of `{name}` written out"
                    ),
                );
            }
            types.push(kind);
        }
        Ok(types)
    }

    /// What a parameter is used for in the layers of a function.
    fn used_as(&self, name: &str, body: &[Statement]) -> Type {
        let mut found = Type::Unknown;
        each_value(body, &mut |value| {
            let (Some(call), Some(full)) = (value.call(), self.names.called(value)) else {
                return;
            };
            let is = |value: Option<&Value>| value.is_some_and(|value| value.name() == Some(name));
            let class = full.rsplit('.').next().unwrap_or_default();
            found = match class {
                "Dense" if is(call.argument("units", 0)) => Type::Int,
                "Dense" if is(call.argument("activation", 1)) => Type::Text,
                "Dropout" if is(call.argument("rate", 0)) => Type::Float,
                "Embedding"
                    if is(call.argument("input_dim", 0)) || is(call.argument("output_dim", 1)) =>
                {
                    Type::Int
                }
                "Adam" | "AdamW" | "SGD" | "RMSprop" | "Lion" | "Lamb" | "Adafactor"
                    if is(call.argument("learning_rate", 0)) =>
                {
                    Type::Float
                }
                "from_pretrained" if is(call.arguments.first()) => Type::Text,
                "from_pretrained" if is(call.keyword("num_labels").map(|it| &it.value)) => {
                    Type::Int
                }
                _ => {
                    let shape = call
                        .keyword("input_shape")
                        .or(call.keyword("shape"))
                        .or(call.keyword("input_dim"));
                    let is_in_shape = shape.is_some_and(|shape| {
                        is(Some(&shape.value))
                            || shape
                                .value
                                .elements()
                                .is_some_and(|it| it.iter().any(|it| is(Some(it))))
                    });
                    if is_in_shape { Type::Int } else { found }
                }
            };
        });
        found
    }

    /// `class Name(tf.keras.Model):`.
    pub(crate) fn class(&mut self, it: &Class, span: CellSpan) -> Result<(), Why> {
        const NO_CHAIN: &str = "a subclass of `Model` is translated where it is a chain of layers; any other is a `Network` \
                                of your own, as in notebooks/model_outside_scope.ipynb";
        if let Some(done) = self.class_of_hub(it, span) {
            return done;
        }
        if let Some(done) = self.module_of_torch(it, span) {
            return done;
        }
        let is_model = it
            .bases
            .iter()
            .any(|base| self.names.full(base).as_deref() == Some("keras.Model"));
        if !is_model {
            let bases: Vec<String> = it
                .bases
                .iter()
                .filter_map(|base| self.names.full(base))
                .collect();
            return Err(of_class(it, &bases));
        }
        let method = |name: &str| {
            it.body.iter().find_map(|statement| match &statement.kind {
                StatementKind::Function(function) if function.name == name => Some(function),
                _ => None,
            })
        };
        let (Some(init), Some(call)) = (method("__init__"), method("call")) else {
            return Err(NO_CHAIN.to_owned());
        };
        let others = it.body.iter().any(|statement| match &statement.kind {
            StatementKind::Function(it) => {
                !matches!(it.name.as_str(), "__init__" | "call" | "get_config")
            }
            StatementKind::Nothing => false,
            _ => true,
        });
        if others || init.parameters.len() != 1 {
            return Err(NO_CHAIN.to_owned());
        }
        let outer = self.things.clone();
        let was_inside = std::mem::replace(&mut self.in_function, true);
        let layers = self.layers_of_class(init, call);
        self.in_function = was_inside;
        self.things = outer;
        let layers = layers.map_err(|why| format!("{why}. {NO_CHAIN}"))?;
        for statement in init.body.iter().chain(&call.body) {
            self.account(statement);
        }
        self.class_of_layers(&it.name, layers, span);
        Ok(())
    }

    /// A class is a chain of these layers: what is made of it is a `Sequential`.
    pub(super) fn class_of_layers(&mut self, name: &str, layers: Vec<Layer>, span: CellSpan) {
        self.skip_comments(span.end);
        let comment = format!("// `{name}` is a chain of layers: a `Sequential`.");
        self.push(comment, span);
        self.things.insert(name.to_owned(), Thing::Class(layers));
    }

    fn layers_of_class(
        &mut self,
        init: &Function,
        call: &Function,
    ) -> Result<Vec<super::layer::Layer>, Why> {
        for statement in init.body.iter().chain(&call.body) {
            let is_super = matches!(&statement.kind, StatementKind::Expression(it) if it.method("__init__").is_some());
            if !is_super {
                self.written_out(statement)?;
            }
        }
        for statement in &init.body {
            match &statement.kind {
                StatementKind::Assign(targets, value) => {
                    let path = targets
                        .first()
                        .and_then(Value::path)
                        .filter(|_| targets.len() == 1);
                    let path = path.ok_or("`__init__` sets something else than layers")?;
                    let (_, thing) = self.made(value)?;
                    let Thing::Layer(layer) = thing else {
                        return Err("`__init__` sets something else than layers".to_owned());
                    };
                    self.things.insert(path.join("."), Thing::Layer(layer));
                }
                // `super().__init__()`.
                StatementKind::Expression(value) if value.method("__init__").is_some() => {}
                StatementKind::Nothing => {}
                _ => return Err("`__init__` does something else than to set layers".to_owned()),
            }
        }
        let inputs = call.parameters.get(1).ok_or("`call` gets no inputs")?;
        self.things
            .insert(inputs.0.clone(), Thing::Layers(Vec::new(), None));
        for statement in &call.body {
            match &statement.kind {
                StatementKind::Assign(targets, value) => {
                    let name = targets
                        .first()
                        .and_then(Value::name)
                        .filter(|_| targets.len() == 1);
                    let name = name.ok_or("`call` is no chain of layers")?.to_owned();
                    let (layers, _) = self
                        .chained(value)
                        .ok_or("`call` is no chain of layers")??;
                    self.things.insert(name, Thing::Layers(layers, None));
                }
                StatementKind::Return(Some(value)) => {
                    let (layers, _) = self
                        .chained(value)
                        .ok_or("`call` is no chain of layers")??;
                    return Ok(layers);
                }
                StatementKind::Nothing => {}
                _ => return Err("`call` is no chain of layers".to_owned()),
            }
        }
        Err("`call` returns nothing".to_owned())
    }
}

/// The last statement, if it is the only one that does something.
fn last_of(body: &[Statement]) -> &[Statement] {
    let start = body.iter().position(|it| it.kind != StatementKind::Nothing);
    &body[start.unwrap_or(body.len())..]
}

fn rust_type(kind: Type) -> &'static str {
    match kind {
        Type::Int => "usize",
        Type::Float => "f64",
        Type::Text => "&str",
        Type::Bool => "bool",
        Type::Unknown => "_",
    }
}
