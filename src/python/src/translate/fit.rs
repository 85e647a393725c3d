//! `model.fit(…)`, `model.evaluate(…)`, `model.predict(…)`.

use stratoscope_diagnostics::{CellSpan, arguments};

use super::arguments::without_effect;
use super::compile::DEFAULT;
use super::number::Type;
use super::thing::{Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};
use crate::rules;

impl Translator<'_> {
    /// `fit!(model, data, …)` without its `?`.
    pub(crate) fn fit(&mut self, model: &Value, call: &Call) -> Result<String, Why> {
        let rust = self.model_name(model)?;
        self.needs_training(model)?;
        let names = [
            "x",
            "y",
            "batch_size",
            "epochs",
            "verbose",
            "callbacks",
            "validation_split",
            "validation_data",
            "shuffle",
            "class_weight",
            "sample_weight",
            "initial_epoch",
            "steps_per_epoch",
            "validation_steps",
        ];
        self.train("fit", &rust, call, &names)
    }

    /// `evaluate!(model, data, …)` without its `?`.
    pub(crate) fn evaluate(&mut self, model: &Value, call: &Call) -> Result<String, Why> {
        let rust = self.model_name(model)?;
        self.needs_training(model)?;
        let names = [
            "x",
            "y",
            "batch_size",
            "verbose",
            "sample_weight",
            "steps",
            "callbacks",
        ];
        self.train("evaluate", &rust, call, &names)
    }

    fn train(
        &mut self,
        name: &str,
        model: &str,
        call: &Call,
        names: &[&str],
    ) -> Result<String, Why> {
        call.see_all();
        if call.arguments.len() > names.len() {
            return Err(format!("the arguments of `{name}` are not all named"));
        }
        let given = |name: &str| {
            let place = names.iter().position(|it| *it == name)?;
            call.argument(name, place)
                .filter(|it| it.kind != Kind::None)
        };
        let x = given("x").ok_or(format!("`{name}` gets no data"))?;
        let data = self.weighted(x, given("y"), given("sample_weight"))?;
        let has_labels = given("y").is_some();
        if let Some(y) = given("y") {
            self.check_labels(model, y);
        }
        let is_validated =
            given("validation_data").is_some() || given("validation_split").is_some();
        self.is_validated = is_validated;
        let is_data = |argument: &str| match argument {
            "x" | "y" => true,
            "sample_weight" => has_labels,
            _ => false,
        };
        let mut parts = Vec::new();
        for (place, value) in call.arguments.iter().enumerate().skip(2) {
            if let Some(argument) = names.get(place).filter(|it| !is_data(it)) {
                match value.kind {
                    Kind::None => self.idle(value.span, DEFAULT),
                    _ => self.fit_argument(name, argument, value, value.span, &mut parts)?,
                }
            }
        }
        for keyword in &call.keywords {
            let argument = keyword.name.as_str();
            if keyword.value.kind == Kind::None {
                self.idle(keyword.span, DEFAULT);
                continue;
            }
            if is_data(argument) {
                continue;
            }
            let is_known = names.contains(&argument)
                || without_effect(argument, &keyword.value).is_some()
                || arguments::call(name)
                    .is_some_and(|table| arguments::find(table.arguments, argument).is_some());
            match is_known {
                true => {
                    self.fit_argument(name, argument, &keyword.value, keyword.span, &mut parts)?;
                }
                false => self.argument_of(name, keyword, &mut parts),
            }
        }
        self.set_by_data(call, names, &data);
        self.of_pipeline(name, &data, &mut parts);
        if name == "fit"
            && let Some(seed) = self.seed.clone()
        {
            add(&mut parts, "seed", seed);
        }
        let order = arguments::call(name).map_or(&[][..], |table| table.arguments);
        parts.sort_by_key(|part| {
            let name = part.split(" = ").next().unwrap_or_default();
            order.iter().position(|argument| argument.name == name)
        });
        Ok(text::call(
            &format!("{name}!"),
            &format!("{model}, {}", data.rust),
            &parts,
            "",
        ))
    }

    /// SC0304: class numbers under a loss of one-hot rows, which Keras refuses.
    fn check_labels(&mut self, model: &str, y: &Value) {
        let Some(loss) = self.losses.get(model).cloned() else {
            return;
        };
        let is_whole = |kind: &str| {
            let inner = kind
                .strip_prefix("Vec<")
                .and_then(|it| it.strip_suffix('>'));
            matches!(
                inner,
                Some("i32" | "i64" | "u8" | "u32" | "usize" | "i8" | "u64")
            )
        };
        let are_numbers = match y.name() {
            Some(name) if !self.things.contains_key(name) => self
                .known
                .variables
                .get(name)
                .is_some_and(|it| is_whole(it)),
            Some(name) if matches!(self.things.get(name), Some(Thing::LabelsOf(_))) => {
                !self.is_one_hot.contains(name)
            }
            _ => self.numbers(y) == Some(Type::Int),
        };
        if loss.name != "CategoricalCrossentropy" || !are_numbers {
            return;
        }
        let outputs = match self.things.get(model) {
            Some(Thing::Model(facts)) => facts.outputs,
            _ => None,
        };
        let text = self.source(loss.span).to_owned();
        let found = rules::labels_not_one_hot(&loss, y.span, outputs, &text);
        self.find(found);
    }

    /// Names what a pipeline decides whatever the call says.
    fn set_by_data(&mut self, call: &Call, names: &[&str], data: &Pipeline) {
        let place = |name: &str| {
            names
                .iter()
                .position(|it| *it == name)
                .unwrap_or(usize::MAX)
        };
        if let (Some(_), Some(given)) =
            (&data.batch, call.written("batch_size", place("batch_size")))
        {
            self.idle(given, "the data set is in batches already");
        }
        if let (Some(_), Some(given)) = (data.shuffle, call.written("shuffle", place("shuffle"))) {
            self.idle(given, "the data set decides on its order");
        }
    }

    /// What the pipeline of a data set says about `fit!`.
    pub(crate) fn of_pipeline(&self, name: &str, data: &Pipeline, parts: &mut Vec<String>) {
        if let Some(batch) = &data.batch {
            // Keras does not look at `batch_size` for a data set of batches.
            parts.retain(|part| !part.starts_with("batch_size = "));
            add(parts, "batch_size", batch.clone());
        }
        if let Some(length) = &data.max_length {
            add(parts, "max_length", length.clone());
        }
        if name == "fit"
            && let Some(shuffle) = data.shuffle
        {
            parts.retain(|part| !part.starts_with("shuffle = "));
            if !shuffle {
                add(parts, "shuffle", "false".to_owned());
            }
        }
    }

    /// The data of `x` and `y`, with the weights of its examples, where they are given beside `y`.
    fn weighted(
        &mut self,
        x: &Value,
        y: Option<&Value>,
        weights: Option<&Value>,
    ) -> Result<Pipeline, Why> {
        let mut data = self.data_of(x, y)?;
        if let (Some(_), Some(given)) = (y, weights) {
            let what = "a weight for each row, such as `vec![1.0, 0.5]`";
            let weights = self.array(given, what)?;
            // A variable may be used again.
            let weights = match weights.strip_prefix('&') {
                Some(name) => format!("{name}.clone()"),
                None => weights,
            };
            data.rust = format!("{}.with_weights({weights})?", data.rust);
        }
        Ok(data)
    }

    fn fit_argument(
        &mut self,
        call: &str,
        name: &str,
        value: &Value,
        span: CellSpan,
        parts: &mut Vec<String>,
    ) -> Result<(), Why> {
        match name {
            "verbose" => {
                if value.integer() == Some(0) || value.kind == Kind::Bool(false) {
                    add(parts, "verbose", "false".to_owned());
                } else {
                    self.idle(span, "the table of the run is shown unless it is 0");
                }
            }
            name if let Some(why) = without_effect(name, value) => self.idle(span, why),
            "callbacks" if call == "fit" => parts.extend(self.callbacks(value)),
            "validation_data" => {
                let data = match value.elements() {
                    Some([x, y, rest @ ..]) => self.weighted(x, Some(y), rest.first())?,
                    _ => self.data_of(value, None)?,
                };
                add(parts, "validation_data", data.rust);
            }
            "class_weight" => add(parts, "class_weight", self.class_weight(value)?),
            "sample_weight" | "callbacks" => {
                let why = arguments::explained(call, name).unwrap_or("it has no counterpart here");
                self.leave(span, why.to_owned());
            }
            "validation_split" => add(parts, name, self.float(value)?),
            "shuffle" => match value.kind {
                Kind::Bool(_) => add(parts, name, self.value(value)?),
                _ => return Err("`shuffle` is `True` or `False` here".to_owned()),
            },
            name => {
                let rust = self.value(value)?;
                if let Some(free) = value.name()
                    && !self.things.contains_key(free)
                {
                    self.free(free, "a whole number, such as `3`")?;
                }
                add(parts, name, rust);
            }
        }
        Ok(())
    }

    /// `{0: 1.0, 1: 3.0}` as `[(0, 1.0), (1, 3.0)]`.
    fn class_weight(&mut self, value: &Value) -> Result<String, Why> {
        match &value.kind {
            Kind::Dict(items) => {
                let mut written = Vec::new();
                for (class, weight) in items {
                    written.push(format!("({}, {})", self.value(class)?, self.float(weight)?));
                }
                Ok(format!("[{}]", written.join(", ")))
            }
            Kind::Text(_) => self.value(value),
            _ => Err("`class_weight` is not written out".to_owned()),
        }
    }

    /// `model.predict(data)?`.
    pub(crate) fn predict(&mut self, model: &Value, call: &Call) -> Result<String, Why> {
        let rust = self.model_name(model)?;
        self.needs_training(model)?;
        let x = call.argument("x", 0).ok_or("`predict` gets no data")?;
        call.see_all();
        for keyword in call.keywords.iter().filter(|it| it.name != "x") {
            let why = match keyword.name.as_str() {
                "batch_size" => Some("`predict` chooses its batches"),
                name => without_effect(name, &keyword.value),
            };
            match why {
                Some(why) => self.idle(keyword.span, why),
                None => self.leave_argument(keyword, "`predict` takes the data only".to_owned()),
            }
        }
        for (value, name) in call.arguments.iter().skip(1).zip(["batch_size", "verbose"]) {
            self.idle(value.span, format!("`predict` has no `{name}`"));
        }
        let x = only(x, "inputs")?;
        let data = match &x.kind {
            Kind::List(values) if values.iter().all(|it| it.text().is_some()) => {
                let texts = self.value(x)?;
                texts.trim_start_matches("vec!").to_owned()
            }
            _ if let Some(texts) = self.texts_given(x) => texts?,
            _ => self.data_of(x, None)?.rust,
        };
        let data = match x
            .name()
            .filter(|_| !data.ends_with(".to_string()"))
            .map(|name| self.things.get(name))
        {
            Some(Some(Thing::List | Thing::Value)) => format!("Dataset::from_features(&{data})?"),
            Some(_) => format!("&{data}"),
            None => data,
        };
        Ok(format!("{rust}.predict({data})?"))
    }

    /// The data of `fit`: a data set, or arrays.
    pub(crate) fn data_of(&mut self, x: &Value, y: Option<&Value>) -> Result<Pipeline, Why> {
        let x = only(x, "inputs")?;
        let Some(y) = y.map(|y| only(y, "outputs")).transpose()? else {
            return self.pipeline(x);
        };
        if let Some(set) = self.set_with_labels(x, y) {
            return set;
        }
        if let Some(Thing::Encodings(encodings)) = self.encodings_of(x) {
            return self.of_encodings(&encodings, y);
        }
        let is_texts = matches!(
            x.name().and_then(|name| self.things.get(name)),
            Some(Thing::Texts)
        ) || x
            .name()
            .and_then(|name| self.known.variables.get(name))
            .is_some_and(|kind| {
                kind.contains("String") || kind.contains("str>") || kind.contains("&str")
            });
        if is_texts {
            let texts = self.value(x)?;
            return self.of_texts(&texts, None, y);
        }
        let (rows, targets) = (
            self.array(
                x,
                "rows of numbers, such as `vec![[1.0_f32, 2.0], [3.0, 4.0]]`",
            )?,
            self.array(
                y,
                "a label for each row: integers for classes, floats for numbers to be predicted",
            )?,
        );
        Ok(Pipeline::of(format!(
            "Dataset::from_arrays({rows}, {targets})?"
        )))
    }

    fn array(&mut self, value: &Value, what: &str) -> Result<String, Why> {
        let rust = self.value(value)?;
        match value.name() {
            Some(name) => {
                if !self.things.contains_key(name) {
                    self.free(name, what)?;
                }
                Ok(format!("&{rust}"))
            }
            None => Ok(rust),
        }
    }
}

/// The one element of `[x]`: models here have one input and one output. Rows, numbers and texts that are written out stay a
/// list.
fn only<'v>(value: &'v Value, what: &str) -> Result<&'v Value, Why> {
    let is_whole = |it: &Value| {
        matches!(
            it.kind,
            Kind::Name(_) | Kind::Call(_) | Kind::Index(..) | Kind::Attribute(..)
        )
    };
    match &value.kind {
        Kind::List(values) | Kind::Tuple(values) if values.iter().any(is_whole) => {
            match values.as_slice() {
                [one] => Ok(one),
                _ => Err(format!("it has several {what}; a model here has one")),
            }
        }
        _ => Ok(value),
    }
}

/// Adds an argument unless it is there.
pub(crate) fn add(parts: &mut Vec<String>, name: &str, value: String) {
    let start = format!("{name} = ");
    if !parts.iter().any(|part| part.starts_with(&start)) {
        parts.push(start + &value);
    }
}
