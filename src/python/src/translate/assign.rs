//! Assignments: one name, several names, and parts of a model that are frozen.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::call::Made;
use super::frame::is_step_of_frame;
use super::options::POLICY;
use super::source::Loaded;
use super::thing::{Pipeline, Predicted, Splits, Thing};
use super::{Translator, Why, text};
use crate::model::{Kind, Value};

/// What is written for a step of a pipeline that `fit!` takes anyway.
const NOTHING_TO_WRITE: &str =
    "// Nothing to write: `fit!` reads ahead and keeps what it has tokenized.";

/// The same for what names columns.
const COLUMNS_OF_FILE: &str = "// Nothing to write: a data set keeps the text and the label, whose columns are named where the file is read.";
/// The same for `shuffle`.
const SHUFFLED: &str = "// `fit!` shuffles the examples in every epoch; a part that is taken of them is `.shuffled(…)` first.";

/// What is written for a list of callbacks.
pub(super) const ARGUMENTS_OF_FIT: &str = "// The callbacks become arguments of `fit!`.";

impl Translator<'_> {
    pub(crate) fn assign(
        &mut self,
        target: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Result<(), Why> {
        if let Some(done) = self.figure(target, value, span) {
            return done;
        }
        match &target.kind {
            Kind::Name(name) => self.assign_name(name, value, span),
            Kind::Tuple(targets) | Kind::List(targets) => self.assign_several(targets, value, span),
            Kind::Attribute(object, name) if name == "trainable" => {
                self.trainable(object, value, span)
            }
            Kind::Attribute(object, name) if name == POLICY => self.set_auto_shard(object, value),
            Kind::Index(object, _) if self.run(object).is_some() => {
                see_whole(value);
                self.idle(span, "a history has its values by their names");
                Ok(())
            }
            Kind::Index(..) if let Some(done) = self.set_column(target, value, span) => done,
            Kind::Index(object, key) if self.is_environment(object) => {
                self.set_environment(key, value, span)
            }
            Kind::Index(object, key)
                if let Some(cut) = self.set_layout(object, key, value, span) =>
            {
                cut
            }
            Kind::Attribute(..) if self.is_of_setup(target) => {
                self.idle(span, "it sets up a library of Python");
                Ok(())
            }
            _ => Err("only names are assigned here".to_owned()),
        }
    }

    fn assign_name(&mut self, name: &str, value: &Value, span: CellSpan) -> Result<(), Why> {
        if let Some(written) = self.assign_prediction(name, value, span) {
            return written;
        }
        if let Some(done) = self.assign_special(name, value, span) {
            return done;
        }
        let (rust, thing) = self.made_for(name, value)?;
        let is_plain = matches!(
            thing,
            Thing::Int(_)
                | Thing::Float
                | Thing::Text
                | Thing::Bool
                | Thing::Texts
                | Thing::List
                | Thing::Floats(_)
                | Thing::Classes(_)
                | Thing::Value
        );
        if !is_plain && !matches!(thing, Thing::Folded) {
            self.shadow(&[name], value, (!rust.is_empty()).then_some(&thing))?;
        }
        if let Thing::Data(data) = &thing {
            return self.assign_data(name, value, data.clone(), span);
        }
        if rust.is_empty() {
            self.assign_folded(name, value, thing, span);
            return Ok(());
        }
        // What is no plain value has a `let` without `mut`.
        let changes = is_plain && self.changing.contains(name);
        let is_again = changes && self.depth > 0 && self.is_known(name);
        let head = match (is_again, changes) {
            (true, _) => String::new(),
            (false, true) => "let mut ".to_owned(),
            (false, false) => "let ".to_owned(),
        };
        // Nothing else says what an empty list would hold.
        let kind = match (&thing, rust.as_str()) {
            (Thing::Metrics, "[]") => ": [Metric; 0]",
            _ => "",
        };
        let rust_name = text::name(name);
        let line = format!("{head}{rust_name}{kind} = {rust};");
        match thing {
            Thing::Model(_) => self.push_model(line, span),
            _ => self.push(line, span),
        }
        let thing = match thing {
            // The predictions have another name, or none any more where the classes take it.
            Thing::Predictions(it) => Thing::Predictions(Predicted {
                rust: rust_name.clone(),
                ..it
            }),
            Thing::Classes(it) if it.rust == rust_name => Thing::Classes(Predicted {
                rust: it.made.clone(),
                ..it
            }),
            Thing::Int(_) if self.changing.contains(name) => Thing::Int(None),
            thing => thing,
        };
        if matches!(thing, Thing::Strategy) {
            self.strategies.push(name.to_owned());
        }
        self.remember_constant(name, &rust, &thing);
        if matches!(thing, Thing::Model(_)) {
            self.uncompiled.remove(name);
            self.untrained.remove(name);
        }
        self.things.insert(name.to_owned(), thing);
        Ok(())
    }

    /// What has a line of another kind, or none; `None`: it is a value.
    fn assign_special(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some((frame, call)) = value.method("head")
            && self.is_frame(frame)
        {
            let first = self.first_of_frame(frame, call);
            return Some(first.and_then(|data| self.assign_data(name, value, data, span)));
        }
        if let Some(done) = self.assign_random(name, value, span) {
            return Some(done);
        }
        if let Some(run) = self.epochs_of(value) {
            self.idle(span, "`plot()` counts the epochs of a run");
            self.things.insert(name.to_owned(), Thing::Epochs(run));
            return Some(Ok(()));
        }
        self.assign_of_hub(name, value, span)
            .or_else(|| self.assign_parts(name, value, span))
    }

    /// What has no line of its own yet: models that are begun, callbacks.
    fn assign_folded(&mut self, name: &str, value: &Value, thing: Thing, span: CellSpan) {
        if self.names.called(value).as_deref() == Some("keras.Sequential") {
            self.begun.push((name.to_owned(), span));
        }
        if let Thing::Callback(kind) = &thing {
            self.wait_for_fit(name, std::slice::from_ref(kind), span);
        }
        self.things.insert(name.to_owned(), thing);
    }

    fn made_for(&mut self, name: &str, value: &Value) -> Result<Made, Why> {
        Ok(match self.roles.get(name).map(String::as_str) {
            Some("metrics") if value.elements().is_some() || value.text().is_some() => {
                (self.metrics(value)?, Thing::Metrics)
            }
            Some("loss") if value.text().is_some() => {
                let loss = self.loss(value)?;
                (loss.rust.clone(), Thing::Loss(loss))
            }
            Some("optimizer") if value.text().is_some() => {
                (self.optimizer(value)?, Thing::Optimizer)
            }
            _ => self.made(value)?,
        })
    }

    /// What has no value of its own: splits and their steps, callbacks, settings. `None`: it is something else.
    fn assign_parts(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some(splits) = self.steps_of_splits(value) {
            return Some(splits.and_then(|splits| self.assign_steps(name, splits, span)));
        }
        if self.is_list_of_callbacks(name, value) {
            return Some(self.assign_callbacks(name, value, span));
        }
        if let Some(items) = self.constants_of(value) {
            return Some(self.assign_constants(name, items, span));
        }
        match self.loaded(value)? {
            Err(why) => Some(Err(why)),
            Ok(loaded) if loaded.wanted.is_empty() => Some(self.keeps_outside(name).map(|()| {
                let (rust, thing) = self.named_splits(name, &loaded);
                self.push(rust, span);
                self.things.insert(name.to_owned(), thing);
            })),
            Ok(_) => None,
        }
    }

    /// A dictionary whose values stand where they are read.
    fn assign_constants(
        &mut self,
        name: &str,
        items: Vec<(String, Value)>,
        span: CellSpan,
    ) -> Result<(), Why> {
        self.keeps_outside(name)?;
        let line = format!("// The values of `{name}` stand where they are read.");
        self.push(line, span);
        self.things.insert(name.to_owned(), Thing::Dict(items));
        Ok(())
    }

    /// A list of callbacks, whose elements stand in `fit!`.
    fn assign_callbacks(&mut self, name: &str, value: &Value, span: CellSpan) -> Result<(), Why> {
        self.keeps_outside(name)?;
        self.push(ARGUMENTS_OF_FIT, span);
        let kinds = self.listed_callbacks(value);
        self.wait_for_fit(name, &kinds, span);
        self.things.insert(name.to_owned(), Thing::Callbacks(kinds));
        Ok(())
    }

    /// Steps of all splits: the same variables, with what the steps say about `fit!`.
    fn assign_steps(&mut self, name: &str, splits: Splits, span: CellSpan) -> Result<(), Why> {
        self.keeps_outside(name)?;
        let line = match &splits.max_length {
            Some(length) => format!("// Arguments of `fit!`: max_length = {length}."),
            None => NOTHING_TO_WRITE.to_owned(),
        };
        self.push(line, span);
        self.things.insert(name.to_owned(), Thing::Splits(splits));
        Ok(())
    }

    /// A step of a pipeline: what it says about `fit!` stands in a comment, unless the data set itself changes.
    pub(crate) fn assign_data(
        &mut self,
        name: &str,
        value: &Value,
        data: Pipeline,
        span: CellSpan,
    ) -> Result<(), Why> {
        let rust = text::name(name);
        let mut parts = Vec::new();
        self.of_pipeline("fit", &data, &mut parts);
        let mut known = vec!["shuffle = false".to_owned()];
        if let Some(Thing::Data(before)) = self.things.get(name) {
            self.of_pipeline("fit", before, &mut known);
        }
        parts.retain(|part| !known.contains(part));
        if data.rust != rust {
            self.push(format!("let {rust} = {};", self.own(&data)), span);
        }
        if self.is_data(value) && !parts.is_empty() {
            let has_line = data.rust != rust;
            let line = format!("// Arguments of `fit!`: {}.", parts.join(", "));
            match has_line {
                true => self.push_alone(line),
                false => self.push(line, span),
            }
        } else if data.rust == rust {
            let text = match value.method("shuffle") {
                Some(_) => SHUFFLED,
                None if self.is_frame(value) && !data.is_tensorflow && is_step_of_frame(value) => {
                    COLUMNS_OF_FILE
                }
                None => NOTHING_TO_WRITE,
            };
            self.push(text, span);
        }
        let data = Pipeline { rust, ..data };
        self.things.insert(name.to_owned(), Thing::Data(data));
        Ok(())
    }

    /// `loss, accuracy = model.evaluate(…)`, `dataset, info = tfds.load(…)`.
    fn assign_several(
        &mut self,
        targets: &[Value],
        value: &Value,
        span: CellSpan,
    ) -> Result<(), Why> {
        if let Some(done) = self.prepared(targets, value, span) {
            return done;
        }
        if let Some(done) = self.split_frame(targets, value, span) {
            return done;
        }
        if let Some(done) = self.assign_largest(targets, value, span) {
            return done;
        }
        if let Some(loaded) = self.loaded(value) {
            return self.assign_splits(targets, value, &loaded?, span);
        }
        let names: Option<Vec<&str>> = targets.iter().map(Value::name).collect();
        if let (Some((object, call)), Some([loss, rest @ ..])) =
            (value.method("evaluate"), names.as_deref())
        {
            let names = names.as_deref().unwrap_or_default();
            self.shadow(names, value, Some(&Thing::Evaluation))?;
            let evaluation = self.evaluate(object, call)?;
            self.push(format!("let evaluation = {evaluation}?;"), span);
            self.push_alone(format!("let {} = evaluation.loss;", text::name(loss)));
            self.things.insert((*loss).to_owned(), Thing::Float);
            for (place, name) in rest.iter().enumerate() {
                // The metrics in the order of `compile!`; one with an empty denominator has no value.
                let rust = text::name(name);
                self.push_alone(format!(
                    "let {rust} = evaluation.metrics[{place}].value.unwrap_or(f64::NAN);"
                ));
                self.things.insert((*name).to_owned(), Thing::Float);
            }
            return Ok(());
        }
        match (value.elements(), names) {
            (Some(values), Some(names)) if values.len() == names.len() => {
                self.keep_outside(&names)?;
                let mut made = Vec::new();
                for value in values {
                    made.push(self.typed(value)?);
                }
                let left: Vec<String> = names.iter().map(|name| text::name(name)).collect();
                let right: Vec<&str> = made.iter().map(|it| it.rust.as_str()).collect();
                self.push(
                    format!("let ({}) = ({});", left.join(", "), right.join(", ")),
                    span,
                );
                for (name, made) in names.iter().zip(&made) {
                    self.things.insert((*name).to_owned(), Thing::of(made.kind));
                }
                Ok(())
            }
            _ => match self.made(value) {
                Err(why) => Err(why),
                Ok(_) => Err("its parts have no counterparts here".to_owned()),
            },
        }
    }

    fn keep_outside(&self, names: &[&str]) -> Result<(), Why> {
        names.iter().try_for_each(|name| self.keeps_outside(name))
    }

    /// `dataset, info = tfds.load(…)`, `train, test = load_dataset(…)`.
    fn assign_splits(
        &mut self,
        targets: &[Value],
        value: &Value,
        loaded: &Loaded,
        span: CellSpan,
    ) -> Result<(), Why> {
        let mut targets = targets;
        let has_info = value.call().and_then(|it| it.keyword("with_info"));
        if has_info.is_some_and(|it| it.value.kind == Kind::Bool(true))
            && let [data, info] = targets
        {
            if let Some(info) = info.name() {
                self.things.insert(info.to_owned(), Thing::Folded);
            }
            targets = match data.elements() {
                Some(several) => several,
                None => std::slice::from_ref(data),
            };
        }
        if let ([data], true) = (targets, loaded.wanted.is_empty()) {
            let name = data.name().ok_or("only names are assigned here")?;
            self.keeps_outside(name)?;
            let (rust, thing) = self.named_splits(name, loaded);
            self.push(rust, span);
            self.things.insert(name.to_owned(), thing);
            return Ok(());
        }
        let wanted: Vec<&str> = loaded.wanted.iter().map(String::as_str).collect();
        let names: Option<Vec<&str>> = targets.iter().map(Value::name).collect();
        let names = names.ok_or("only names are assigned here")?;
        if wanted != loaded.splits || names.len() != wanted.len() {
            return Err(format!(
                "its splits here are {}",
                loaded.splits.join(" and ")
            ));
        }
        self.keep_outside(&names)?;
        let written: Vec<String> = names.iter().map(|name| text::name(name)).collect();
        self.push(
            format!("let ({}) = {};", written.join(", "), loaded.rust),
            span,
        );
        for name in names {
            let mut data = Pipeline::of(text::name(name));
            data.is_tensorflow = loaded.is_tensorflow;
            self.things.insert(name.to_owned(), Thing::Data(data));
        }
        Ok(())
    }

    /// `model.bert.trainable = False`.
    fn trainable(&mut self, object: &Value, value: &Value, span: CellSpan) -> Result<(), Why> {
        let (Kind::Attribute(model, part), Kind::Bool(flag)) = (&object.kind, &value.kind) else {
            return Err("a part of BERT is frozen by the names of its variables: `model.freeze(\"bert.embeddings\")?`".to_owned());
        };
        if !self.facts(model).is_none_or(|facts| facts.is_bert) {
            return Err("the layers of a `Sequential` are not frozen by a name".to_owned());
        }
        let model = self.model_name(model)?;
        let method = if *flag { "unfreeze" } else { "freeze" };
        self.push(format!("{model}.{method}({})?;", text::text(part)), span);
        Ok(())
    }
}
