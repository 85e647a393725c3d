//! Calls of TensorFlow and Keras that set something, and models that are made in several statements.

use std::collections::BTreeMap;

use stratoscope_diagnostics::CellSpan;

use super::block::{Place, mentions};
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Statement, StatementKind, Value};

impl Translator<'_> {
    /// A call of a library that makes nothing.
    pub(crate) fn library_call(
        &mut self,
        full: &str,
        call: &Call,
        span: CellSpan,
    ) -> Result<(), Why> {
        let last = full.rsplit('.').next().unwrap_or_default();
        match last {
            "set_memory_growth" => {
                call.see_all();
                self.idle(span, "memory of a GPU is taken as it is needed");
                Ok(())
            }
            "set_global_policy" | "set_policy" if full.contains("mixed_precision") => {
                let policy = call.argument("policy", 0).ok_or("it names no policy")?;
                let policy = match (policy.text(), policy.call()) {
                    (None, Some(made)) => made.argument("name", 0).and_then(Value::text),
                    (text, _) => text,
                };
                let policy = policy.ok_or("the policy is not written as a text")?;
                self.push(format!("set_global_policy({})?;", text::text(policy)), span);
                Ok(())
            }
            "set_seed" | "set_random_seed" | "seed" => {
                let seed = call.argument("seed", 0).ok_or("it names no seed")?;
                let seed = self.value(seed)?;
                let whose = match full.split('.').next() {
                    Some("numpy") => "NumPy",
                    Some("random") => "Python",
                    _ => "TensorFlow",
                };
                self.note(
                    span,
                    format!("`seed = {seed}` of `fit!`: the numbers are not {whose}'s"),
                );
                self.seed = Some(seed);
                Ok(())
            }
            "set_distribution" if full.starts_with("keras.distribution.") => {
                self.set_distribution(call, span)
            }
            _ if full.starts_with("matplotlib.") || full.starts_with("seaborn.") => {
                self.chart(last, call, span)
            }
            "set_logical_device_configuration" | "set_virtual_device_configuration" => Err(
                "logical devices are made by the strategy: `MirroredStrategy::logical(2)?`"
                    .to_owned(),
            ),
            _ => {
                let (rust, thing) = self.made(&call_value(call))?;
                match rust.is_empty() {
                    true if matches!(thing, Thing::Folded) => Ok(()),
                    true => Err(format!(
                        "{} that no name is given to does nothing",
                        thing.word()
                    )),
                    false => {
                        self.push(format!("{rust};"), span);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Why a call sets nothing here: it sets up a library of Python, or prints the version of one.
    pub(crate) fn sets_up_python(&self, value: &Value) -> Option<&'static str> {
        const SETUP: &[&str] = &[
            "tensorflow.get_logger",
            "tensorflow.autograph.set_verbosity",
            "tensorflow.config.optimizer.",
            "tensorflow.config.experimental.enable_op_determinism",
            "tqdm.tqdm.pandas",
            "tensorflow.config.threading.",
            "keras.backend.clear_session",
            "keras.utils.disable_interactive_logging",
            "keras.utils.enable_interactive_logging",
            "matplotlib.pyplot.style.",
            "matplotlib.pyplot.rcParams",
            "matplotlib.use",
            "seaborn.set",
            "pandas.set_option",
            "numpy.set_printoptions",
            "transformers.logging.",
            "transformers.utils.logging.",
            "datasets.logging.",
            "huggingface_hub.",
            "warnings.",
            "logging.",
            "gc.collect",
        ];
        let (mut is_setup, mut is_version) = (false, false);
        let is_print = value
            .call()
            .is_some_and(|call| call.function.name() == Some("print"));
        value.visit(&mut |inner| {
            if let Kind::Attribute(_, name) = &inner.kind {
                is_version |= is_print && name == "__version__";
            }
        });
        // `tf.get_logger().setLevel("ERROR")`.
        let mut called = value.call();
        while let Some(call) = called {
            let full = self.names.full(&call.function).unwrap_or_default();
            is_setup |= SETUP.iter().any(|start| full.starts_with(start));
            called = match &call.function.kind {
                Kind::Attribute(object, _) => object.call(),
                _ => None,
            };
        }
        match (is_setup, is_version) {
            (true, _) => Some("it sets up a library of Python"),
            (_, true) => Some("libraries of Python have no version here"),
            _ => None,
        }
    }

    /// A model that was begun by `Sequential()` is made before it is used; `add` adds a layer.
    pub(crate) fn materialize(&mut self, object: &Value, method: &str) -> Result<(), Why> {
        let Some(name) = object.name() else {
            return Ok(());
        };
        let Some(Thing::Layers(layers, input)) = self.things.get(name).cloned() else {
            return Ok(());
        };
        if method == "add" {
            return Ok(());
        }
        let span = layers.first().map_or(object.span, |layer| layer.span);
        let (rust, facts) = self.sequential(layers, input, span)?;
        self.push_model(format!("let {} = {rust};", text::name(name)), span);
        self.things.insert(name.to_owned(), Thing::Model(facts));
        Ok(())
    }

    /// `model.add(layer)`.
    pub(crate) fn add_layer(&mut self, object: &Value, call: &Call) -> Option<Result<(), Why>> {
        let name = object.name()?.to_owned();
        let Some(Thing::Layers(mut layers, mut input)) = self.things.get(&name).cloned() else {
            return None;
        };
        if let Err(why) = self.keeps_outside(&name) {
            return Some(Err(why));
        }
        let layer = call.argument("layer", 0)?;
        Some(self.listed_layer(layer).map(|made| {
            match made {
                Thing::Layer(layer) => layers.push(layer),
                Thing::Layers(_, shape) => input = shape,
                _ => {}
            }
            self.things.insert(name, Thing::Layers(layers, input));
        }))
    }

    /// The models that are made inside of the scope instead, as SC0201 says: the statements that make them and those that
    /// compile them, by their first byte. A model that is used in between stays where it is.
    pub(crate) fn moved(&self, statements: &[Statement]) -> BTreeMap<usize, Place> {
        let mut moved = BTreeMap::new();
        let mut has_strategy = false;
        let mut models: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, statement) in statements.iter().enumerate() {
            if let StatementKind::Assign(targets, value) = &statement.kind
                && let [target] = targets.as_slice()
                && let Some(name) = target.name()
            {
                has_strategy |= self.is_strategy(value);
                if self.makes_model(value, statements) {
                    models.insert(name, at);
                }
            }
            let (compiled, place) = match &statement.kind {
                StatementKind::Expression(value) => (compiled_model(value), Place::AroundCompile),
                StatementKind::With(items, body) => {
                    let is_scope = items
                        .iter()
                        .any(|(value, _)| value.method("scope").is_some());
                    let mut models = body.iter().filter_map(|inner| match &inner.kind {
                        StatementKind::Expression(value) => compiled_model(value),
                        _ => None,
                    });
                    let model = models.next_back().filter(|_| is_scope);
                    (model, Place::InScope)
                }
                _ => (None, Place::InScope),
            };
            let Some(model) = compiled.filter(|_| has_strategy) else {
                continue;
            };
            let Some(&made) = models.get(model) else {
                continue;
            };
            let is_between = |it: &Statement| mentions(it, model);
            if !statements[made + 1..at].iter().any(is_between) {
                moved.insert(statements[made].span.start, Place::InScope);
                moved.insert(statement.span.start, place);
                models.remove(model);
            }
        }
        moved
    }

    fn is_strategy(&self, value: &Value) -> bool {
        self.names.called(value).is_some_and(|full| {
            full.starts_with("tensorflow.distribute.") && full.ends_with("Strategy")
        })
    }

    /// Whether a value is a model whose variables exist at once.
    fn makes_model(&self, value: &Value, statements: &[Statement]) -> bool {
        let Some(call) = value.call() else {
            return false;
        };
        if let Some(full) = self.names.full(&call.function) {
            let is_sequential =
                full == "keras.Sequential" && self.source(value.span).contains("input_");
            return is_sequential || (full.contains("ForSequenceClassification.from_pretrained"));
        }
        let name = call.function.name();
        statements.iter().any(|statement| match &statement.kind {
            StatementKind::Function(it) => {
                let has_shape = self.source(statement.span).contains("input_");
                Some(it.name.as_str()) == name && has_shape
            }
            _ => false,
        })
    }

    /// Holds a model back until the scope that it belongs to.
    pub(crate) fn hold_back(&mut self, statement: &Statement, name: &str) {
        let StatementKind::Assign(_, value) = &statement.kind else {
            return;
        };
        let before = self.translation.lines.len();
        let left = self.translation.left.len();
        match self.written_out(statement).and_then(|()| self.made(value)) {
            Ok((rust, thing)) => {
                self.account_value(value);
                let line = format!("let {} = {rust};", text::name(name));
                self.push(line, statement.span);
                if self.translation.left.len() == left {
                    let lines = self.translation.lines.split_off(before);
                    self.held_back.insert(name.to_owned(), lines);
                }
                self.things.insert(name.to_owned(), thing);
            }
            Err(why) => {
                let why = self.missing_in(statement).unwrap_or(why);
                self.leave(statement.span, why);
                self.miss(statement);
            }
        }
    }

    /// The lines of a model that was held back, where it belongs.
    pub(crate) fn release(&mut self, model: &Value) {
        let Some(lines) = model.name().and_then(|name| self.held_back.remove(name)) else {
            return;
        };
        let name = model.name().unwrap_or_default().to_owned();
        let text =
            format!("`{name}` is made inside the scope, so that each replica has its variables");
        self.correct(model.span, "SC0201", text);
        for mut line in lines {
            line.depth += self.depth;
            self.translation.lines.push(line);
        }
    }
}

/// A call as a value.
pub(crate) fn call_value(call: &Call) -> Value {
    Value {
        span: call.span,
        kind: Kind::Call(Box::new(call.clone())),
    }
}

/// The model of `model.compile(…)`.
fn compiled_model(value: &Value) -> Option<&str> {
    value
        .method("compile")
        .and_then(|(object, _)| object.name())
}
