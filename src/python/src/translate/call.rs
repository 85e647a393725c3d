//! What a call makes: a strategy, a model, an optimizer, a data set, and the other things that have a counterpart.

use super::arguments::see_whole;
use super::by_hand::{counts_equal, of_data_frame};
use super::number::Typed;
use super::pretrained::is_config;
use super::reasons::{MEASURES, is_measure, of_numpy, of_replicas, of_sklearn};
use super::source::Loaded;
use super::steps::SPLIT;
use super::thing::{CallbackKind, ModelFacts, Pipeline, Splits, Thing};
use super::usual::OF_CLOCK;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// A value as Rust, and what it is. The Rust is empty for what becomes a part of something else.
pub(crate) type Made = (String, Thing);

impl Translator<'_> {
    /// What a value makes.
    pub(crate) fn made(&mut self, value: &Value) -> Result<Made, Why> {
        if let Some(made) = self.of_predictions(value)? {
            return Ok(made);
        }
        if let Some(why) = self.share_by_hand(value) {
            return Err(why);
        }
        if let Some(part) = self.prediction(value).or_else(|| self.of_tokenizer(value)) {
            return part.map(|it| (it.rust, Thing::of(it.kind)));
        }
        if let Some(inner) = self.unmoved(value) {
            return self.made(inner);
        }
        if let Some(found) = self.chained(value) {
            let (layers, input) = found?;
            return Ok((String::new(), Thing::Layers(layers, input)));
        }
        if let Some(made) = self.of_floats(value)? {
            return Ok(made);
        }
        if let Some(made) = self.list_of_column(value)? {
            return Ok(made);
        }
        // `model.fit(…).history`
        if let Kind::Attribute(object, name) = &value.kind
            && name == "history"
            && object.method("fit").is_some()
        {
            return self.made(object);
        }
        if let Kind::Call(call) = &value.kind
            && let Some("len" | "int" | "float" | "str" | "round") = call.function.name()
            && !self.names.has(call.function.name().unwrap_or_default())
        {
            let typed = self.typed(value)?;
            return Ok((typed.rust, Thing::of(typed.kind)));
        }
        if let Kind::Comprehension(it) = &value.kind
            && let Some(call) = it.element.call()
            && super::tape::is_zero(call)
        {
            // The sum of gradients that `fit!` makes for itself.
            see_whole(value);
            return Ok((String::new(), Thing::Folded));
        }
        if self.is_data(value) || self.loaded_name(value) {
            let data = self.pipeline(value)?;
            return Ok((data.rust.clone(), Thing::Data(data)));
        }
        match (value.call(), self.names.called(value)) {
            (Some(call), Some(full)) => self.made_by_library(value, &full, call),
            (Some(call), None) => self.made_by_cell(value, call),
            (None, _) => {
                if let Kind::Name(_) | Kind::Attribute(..) = value.kind
                    && let Some(full) = self.names.full(value)
                {
                    return self.made_by_name(value, &full);
                }
                self.made_plain(value)
            }
        }
    }

    /// A value that any program has.
    fn made_plain(&mut self, value: &Value) -> Result<Made, Why> {
        let typed = self.typed(value)?;
        let thing = match &value.kind {
            Kind::Int(_) => Thing::Int(value.integer()),
            Kind::List(values) if values.iter().all(|it| it.text().is_some()) => Thing::Texts,
            Kind::List(_) => Thing::List,
            Kind::Name(name) => self.things.get(name).cloned().unwrap_or(Thing::Value),
            _ => Thing::of(typed.kind),
        };
        let rust = match (&value.kind, &thing) {
            (Kind::Name(_), Thing::Int(_) | Thing::Float | Thing::Bool) => typed.rust,
            (Kind::Name(_), _) => format!("{}.clone()", typed.rust),
            // The values of a history, or an element of a list, stay where they are.
            (Kind::Index(..), Thing::Value) if typed.rust.ends_with(']') => {
                format!("{}.clone()", typed.rust)
            }
            _ => typed.rust,
        };
        Ok((rust, thing))
    }

    /// A call that is a value in an expression.
    pub(crate) fn made_value(&mut self, value: &Value) -> Result<Typed, Why> {
        let (rust, thing) = self.made(value)?;
        match rust.is_empty() {
            _ if matches!(thing, Thing::Clock) => Err(OF_CLOCK.to_owned()),
            true if matches!(thing, Thing::Folded) => Err("it has no counterpart here".to_owned()),
            true => Err(format!(
                "{} becomes a part of the call that uses it, and no other value",
                thing.word()
            )),
            false => Ok(Typed::new(rust, thing.kind())),
        }
    }

    pub(crate) fn loaded_name(&self, value: &Value) -> bool {
        matches!(
            self.names.called(value).as_deref(),
            Some("tensorflow_datasets.load" | "datasets.load_dataset" | "datasets.load_from_disk")
        )
    }

    fn made_by_name(&mut self, value: &Value, full: &str) -> Result<Made, Why> {
        if full.starts_with("keras.losses.") {
            let loss = self.loss(value)?;
            return Ok((loss.rust.clone(), Thing::Loss(loss)));
        }
        if full == "tensorflow.data.AUTOTUNE" || full.ends_with("experimental.AUTOTUNE") {
            self.idle(value.span, "`fit!` reads ahead by itself");
            return Ok((String::new(), Thing::Folded));
        }
        Err(format!("`{full}` has no counterpart here"))
    }

    fn made_by_library(&mut self, value: &Value, full: &str, call: &Call) -> Result<Made, Why> {
        if let Some(made) = self.made_by_python(full, call) {
            return made;
        }
        if let Some(made) = self.made_by_hub(value, full, call) {
            return made;
        }
        let last = full.rsplit('.').next().unwrap_or_default();
        if let Some(rest) = full.strip_prefix("tensorflow.distribute.")
            && last.ends_with("Strategy")
            && !rest.contains("get_strategy")
        {
            return Ok((self.strategy(last, call)?, Thing::Strategy));
        }
        if let Some(name) = full.strip_prefix("keras.distribution.") {
            return self.of_distribution(name, call);
        }
        if full == "keras.Sequential" {
            let (layers, input) = self.listed(call)?;
            if layers.is_empty() {
                return Ok((String::new(), Thing::Layers(layers, input)));
            }
            let (rust, facts) = self.sequential(layers, input, call.span)?;
            return Ok((rust, Thing::Model(facts)));
        }
        if full == "keras.Model" {
            let outputs = call
                .argument("outputs", 1)
                .ok_or("the model has no outputs")?;
            let found = self
                .chained(outputs)
                .ok_or("its outputs are no chain of layers of this cell")?;
            let (layers, input) = found?;
            // The chain of the outputs begins with them.
            call.argument("inputs", 0);
            let (rust, facts) = self.sequential(layers, input, call.span)?;
            return Ok((rust, Thing::Model(facts)));
        }
        if full == "keras.load_model" {
            return self.loaded_model(call);
        }
        if let Some(class) = full.strip_prefix("keras.layers.") {
            let class = class.rsplit('.').next().unwrap_or_default().to_owned();
            return Ok((String::new(), Thing::Layer(self.layer(&class, call)?)));
        }
        if full.contains(".schedules.") {
            return Ok((self.schedule(full, call)?, Thing::Schedule));
        }
        if full.starts_with("keras.optimizers.")
            || full == "transformers.AdamWeightDecay"
            || last == "LossScaleOptimizer"
        {
            return Ok((self.optimizer_call(full, call)?, Thing::Optimizer));
        }
        if full.starts_with("keras.losses.") {
            let loss = self.loss(value)?;
            return Ok((loss.rust.clone(), Thing::Loss(loss)));
        }
        if full.starts_with("keras.metrics.") {
            return Ok((self.metric(value)?, Thing::Metrics));
        }
        if full.starts_with("keras.callbacks.") {
            let kind = self.callback(full, call)?;
            let rust = match &kind {
                CallbackKind::Element(rust) => rust.clone(),
                CallbackKind::Arguments(_) => String::new(),
            };
            return Ok((rust, Thing::Callback(kind)));
        }
        if is_config(full) {
            return Ok((String::new(), Thing::Config(Box::new(self.config(call)?))));
        }
        if let Some(class) = full
            .strip_prefix("transformers.")
            .and_then(|it| it.strip_suffix(".from_pretrained"))
        {
            return self.pretrained(class, call);
        }
        self.other_library(full, call)
    }

    fn other_library(&mut self, full: &str, call: &Call) -> Result<Made, Why> {
        let first = full.split('.').next().unwrap_or_default();
        let is_array = matches!(
            full,
            "numpy.array" | "numpy.asarray" | "tensorflow.constant"
        );
        if let (true, Some(list)) = (
            is_array,
            call.argument("value", 0)
                .filter(|it| it.elements().is_some()),
        ) {
            return self.array_of(list, call);
        }
        if full == "tensorflow.data.Options" {
            return Ok((String::new(), Thing::Options(None)));
        }
        if full.ends_with(".list_physical_devices") || full.ends_with(".list_logical_devices") {
            call.see_all();
            self.note(
                call.span,
                "`devices()` lists the devices; a strategy takes all of the best kind",
            );
            return Ok((String::new(), Thing::Folded));
        }
        Err(match first {
            "pytorch_lightning" | "lightning" => {
                "`compile!` and `fit!` replace the `Trainer` of Lightning, whose cells are not translated".to_owned()
            }
            "transformers" if full.ends_with("create_optimizer") => {
                "there is no `create_optimizer` here; `AdamW::new(warmup_linear(5e-5, 0.1))` warms up and decays over \
                 the run"
                    .to_owned()
            }
            "numpy" => of_numpy(full),
            "sklearn" if full.ends_with("train_test_split") => SPLIT.to_owned(),
            "sklearn" if full.starts_with("sklearn.metrics.") => MEASURES.to_owned(),
            "sklearn" if let Some(why) = of_sklearn(full) => why,
            "pandas" if let Some(why) = self.table_of_predictions(call) => why,
            "pandas" if full.ends_with(".DataFrame") || full.ends_with(".Series") => {
                "there are no data frames here; `Dataset::from_rows(texts, labels)?` takes texts or rows of numbers and their \
                 labels, and `Table::new([…])` shows any other table"
                    .to_owned()
            }
            "pandas" => "there is no pandas here; `Dataset::csv(\"….csv\")?` reads a file, `csv_with` names its columns".to_owned(),
            "keras" if full.starts_with("keras.datasets.") => {
                let name = full.split('.').nth(2).unwrap_or_default();
                format!(
                    "the data set `{name}` is not here; `make_classification(rows, features, classes, seed)?` makes \
                     one to try"
                )
            }
            _ => format!("`{full}` has no counterpart here"),
        })
    }

    /// Functions and classes of the cell, and methods of its things.
    fn made_by_cell(&mut self, value: &Value, call: &Call) -> Result<Made, Why> {
        if let Some(made) = self.made_by_part(call) {
            return made;
        }
        if let Kind::Attribute(object, method) = &call.function.kind {
            return self.made_by_method(object, method, call);
        }
        let Some(name) = call.function.name() else {
            return Err("the call is not translated".to_owned());
        };
        match self.things.get(name).cloned() {
            Some(Thing::Builder(facts, parameters)) => {
                let mut values = Vec::new();
                for (place, (name, default)) in parameters.iter().enumerate() {
                    let given = call.argument(name, place).or(default.as_ref());
                    let given = given.ok_or_else(|| format!("it gets no `{name}`"))?;
                    values.push(self.value(given)?);
                }
                let facts = ModelFacts {
                    scope: self.scope_of_models(),
                    span: call.span,
                    ..facts
                };
                Ok((
                    format!("{}({})?", text::name(name), values.join(", ")),
                    Thing::Model(facts),
                ))
            }
            Some(Thing::Class(layers)) => {
                let (rust, facts) = self.sequential(layers, None, call.span)?;
                Ok((rust, Thing::Model(facts)))
            }
            Some(Thing::Tokenizer) => Ok((String::new(), Thing::Encodings(self.encodings(call)?))),
            // A `pipeline` of transformers, or a model that is called with texts.
            Some(Thing::Model(_)) if is_of_texts(call) => {
                Ok((self.predict(&call.function, call)?, Thing::Value))
            }
            Some(Thing::Missing(_)) => Err(self.name(name).err().unwrap_or_default()),
            None if name.to_lowercase().contains("tokenizer") && !self.names.has(name) => {
                Ok((String::new(), Thing::Encodings(self.encodings(call)?)))
            }
            Some(other) => Err(format!(
                "`{name}` is {}, whose call is not translated",
                other.word()
            )),
            None if name == "sum" && counts_equal(call) => Err(
                "a share of right answers is `evaluate!(model, data)?` here, with `metrics = [accuracy()]` of `compile!`"
                    .to_owned(),
            ),
            None if is_measure(name) => Err(MEASURES.to_owned()),
            None if let Some(why) = of_sklearn(name) => Err(why),
            None if name == "input" && !self.names.has(name) => self.asked_for(call),
            None => {
                let _ = value;
                Err(format!("what `{name}(…)` makes is not known from the cell"))
            }
        }
    }

    pub(crate) fn made_by_method(
        &mut self,
        object: &Value,
        method: &str,
        call: &Call,
    ) -> Result<Made, Why> {
        // The class of `datasets`, which another cell imports.
        if object.name() == Some("Dataset")
            && !self.names.has("Dataset")
            && let Some(made) = self.dataset_of_hub(&format!("datasets.Dataset.{method}"), call)
        {
            return made;
        }
        self.materialize(object, method)?;
        if let Some(made) = self.method_of_frame(object, method, call)? {
            return Ok(made);
        }
        match method {
            "fit" => Ok((format!("{}?", self.fit(object, call)?), Thing::History)),
            "evaluate" => Ok((
                format!("{}?", self.evaluate(object, call)?),
                Thing::Evaluation,
            )),
            "predict" => {
                let made = self.predictions(object, call)?;
                Ok((made.rust.clone(), Thing::Predictions(made)))
            }
            "summary" => {
                let model = self.model_name(object)?;
                Ok((format!("{model}.summary()"), Thing::Value))
            }
            "head" | "tail" | "describe" | "info" if self.run(object).is_some() => {
                call.see_all();
                let run = self.run(object).unwrap_or_default();
                self.note(
                    call.span,
                    "a history as the last line of a cell is a table of all epochs",
                );
                Ok((format!("{run}.clone()"), Thing::History))
            }
            "result" | "numpy" | "history" => Err(format!("`.{method}()` has no counterpart here")),
            _ => {
                if let Some(Thing::Missing(_)) =
                    object.name().and_then(|name| self.things.get(name))
                {
                    self.value(object)?;
                }
                // What cannot be made is the cause, not what is done with it.
                if let (Some(inner), Some(full)) = (object.call(), self.names.called(object)) {
                    self.made_by_library(object, &full, inner)?;
                }
                Err(of_replicas(object, method)
                    .or_else(|| of_data_frame(object, method))
                    .unwrap_or_else(|| format!("`.{method}(…)` has no counterpart here")))
            }
        }
    }

    /// Gives the splits of a data set their names: `let (dataset_train, dataset_validation) = …;`.
    pub(crate) fn named_splits(&self, name: &str, loaded: &Loaded) -> (String, Thing) {
        let names = loaded
            .splits
            .iter()
            .map(|split| (*split, text::name(&format!("{name}_{split}"))));
        let names: Vec<(&'static str, String)> = names.collect();
        let variables: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        let pattern = match variables.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("({})", many.join(", ")),
        };
        (
            format!("let {pattern} = {};", loaded.rust),
            Thing::Splits(Splits {
                names,
                is_tensorflow: loaded.is_tensorflow,
                max_length: loaded.max_length.clone(),
            }),
        )
    }

    /// A data set under another name: what it is made from stays.
    pub(crate) fn own(&self, data: &Pipeline) -> String {
        let is_name = data
            .rust
            .chars()
            .all(|it| it.is_alphanumeric() || it == '_' || it == '#');
        match is_name {
            true => format!("{}.clone()", data.rust),
            false => data.rust.clone(),
        }
    }
}

/// Whether a call has one value: a text, or a list of texts that is written out.
fn is_of_texts(call: &Call) -> bool {
    let is_text = |it: &Value| it.text().is_some();
    match call.arguments.as_slice() {
        [one] => is_text(one) || one.elements().is_some_and(|it| it.iter().all(is_text)),
        _ => false,
    }
}
