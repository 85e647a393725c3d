//! `Trainer(…)`, `trainer.train()`, `trainer.evaluate()`, `trainer.predict(…)`, `trainer.save_model(…)`.

use stratoscope_diagnostics::{CellSpan, arguments};

use super::super::call::Made;
use super::super::fit::add;
use super::super::thing::{Pipeline, Predicted, Source, Thing};
use super::super::{Translator, Why, text};
use super::compile::{Plan, RunLength};
use super::parameters::{OF_SENTENCES, parameters_of};
use super::part::{HeadKind, Part, Trainer};
use super::settings::Settings;
use crate::model::{Call, Kind, Value};
use crate::trainer_rules;

impl Translator<'_> {
    /// `Trainer(…)`: `compile!`, and what `fit!` gets when `train()` is called.
    pub(crate) fn trainer(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let parameters = parameters_of(&self.names.full(&call.function).unwrap_or_default());
        let given = |name: &str| {
            let place = parameters.iter().position(|it| *it == name);
            let value = call.argument(name, place.unwrap_or(usize::MAX));
            value.filter(|it| it.kind != Kind::None)
        };
        let settings = self.settings_of(given("args"), call.span)?;
        let model = given("model").ok_or_else(|| match given("model_init") {
            Some(_) => {
                "`model_init` makes a model for each run; make one before `compile!`".to_owned()
            }
            None => "the `Trainer` gets no model".to_owned(),
        })?;
        let rust = self.model_name(model)?;
        let facts = self.facts(model);
        let head = facts
            .as_ref()
            .and_then(|it| self.hub.heads.get(&it.span.start).copied());
        if let Some(collator) = given("data_collator") {
            self.collator_of(collator, head, call.span)?;
        }
        let train = given("train_dataset")
            .map(|it| self.pipeline(it))
            .transpose()?;
        let train = train.map(|it| self.named_data(it, "train_data", call.span));
        let eval = given("eval_dataset")
            .map(|it| self.pipeline(it))
            .transpose()?;
        let eval = eval.map(|it| self.named_data(it, "eval_data", call.span));
        let measures = match given("compute_metrics") {
            Some(function) => self.measures_of(function)?,
            None => Vec::new(),
        };
        self.others_of_trainer(call, parameters);
        let loss = match given("loss") {
            Some(loss) if parameters == OF_SENTENCES => Some(self.sentence_loss_of(loss)?),
            None if parameters == OF_SENTENCES => {
                return Err("without a `loss` it takes `CoSENTLoss`, which is not here; `MeanSquaredError` of `compile!` is the loss of cosines".to_owned());
            }
            _ => None,
        };
        let stopping = match given("callbacks") {
            Some(callbacks) => self.stopping_of(callbacks)?,
            None => None,
        };
        let plan = self.plan_of_trainer(&settings, train.as_ref())?;
        self.push_compile_of_trainer(
            &settings,
            &plan,
            (model, &rust, loss),
            head,
            &measures,
            call.span,
        )?;
        let mut trainer = Trainer {
            model: rust,
            train,
            eval,
            fit: Vec::new(),
            eval_batch: self.batch_of(&settings, "eval")?,
            folder: self.value(&settings.folder())?,
            span: call.span,
        };
        trainer.fit =
            self.fit_of_trainer(&settings, &plan, &trainer, &measures, stopping, call.span)?;
        let fit = self.fit_call(&trainer, trainer.fit.clone());
        let fit = fit.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = format!("`train()` is not called in this cell; it is `{fit}`");
        let unused = (call.span, why);
        self.hub.unused.insert(call.span.start, unused);
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::Trainer(Box::new(trainer)))),
        ))
    }

    fn plan_of_trainer(
        &mut self,
        settings: &Settings,
        train: Option<&Pipeline>,
    ) -> Result<Plan, Why> {
        Ok(Plan {
            rate: match settings.get("learning_rate") {
                Some((value, _)) => self.float(&value.clone())?,
                None => "5e-5".to_owned(),
            },
            kind: settings
                .word(&["lr_scheduler_type"])
                .map_or("linear".to_owned(), |it| it.0),
            warm_up: self.warm_up(settings)?,
            length: self.run_length(settings, train)?,
            batch: self.batch_of(settings, "train")?,
            accumulation: self.number_of(settings, "gradient_accumulation_steps", "1")?,
        })
    }

    fn settings_of(&mut self, args: Option<&Value>, span: CellSpan) -> Result<Settings, Why> {
        let Some(args) = args else {
            self.note(
                span,
                "a `Trainer` without `args` has the defaults of `TrainingArguments`",
            );
            return Ok(Settings::none(span));
        };
        let made = match args.name().and_then(|name| self.things.get(name)) {
            Some(thing) => thing.clone(),
            None => match args.call().zip(self.names.called(args)) {
                Some((call, full)) if full.ends_with("TrainingArguments") => self.training_arguments(call)?.1,
                _ => return Err("its `args` are not made in this cell, and they set the rate, the epochs and the batch".to_owned()),
            },
        };
        match made {
            Thing::Part(part) => match *part {
                Part::Settings(settings) => {
                    self.hub.unused.remove(&settings.span.start);
                    Ok(settings)
                }
                other => Err(format!("its `args` are {}", other.word())),
            },
            Thing::Missing(_) => Err(self.value(args).err().unwrap_or_default()),
            other => Err(format!("its `args` are {}", other.word())),
        }
    }

    /// A data set under a name: an expression is written once.
    pub(crate) fn named_data(&mut self, data: Pipeline, name: &str, span: CellSpan) -> Pipeline {
        let is_name = data
            .rust
            .chars()
            .all(|it| it.is_alphanumeric() || it == '_' || it == '#');
        if is_name {
            return data;
        }
        self.push(format!("let {name} = {};", data.rust), span);
        Pipeline {
            rust: name.to_owned(),
            ..data
        }
    }

    /// A whole number of the settings, unless it is the default.
    fn number_of(
        &mut self,
        settings: &Settings,
        name: &str,
        default: &str,
    ) -> Result<Option<String>, Why> {
        match settings.get(name) {
            Some((value, _)) => Ok(Some(self.value(&value.clone())?).filter(|it| it != default)),
            None => Ok(None),
        }
    }

    /// `per_device_train_batch_size`: 8 unless it is written.
    fn batch_of(&mut self, settings: &Settings, split: &str) -> Result<String, Why> {
        let names = [
            format!("per_device_{split}_batch_size"),
            format!("per_gpu_{split}_batch_size"),
        ];
        let names = [names[0].as_str(), names[1].as_str()];
        let Some((value, span)) = settings.first(&names) else {
            return Ok("8".to_owned());
        };
        if split == "train" && self.names_a_strategy() {
            self.note(
                span,
                "it is the batch of one device; `batch_size` is that of all replicas together, so multiply it by their number",
            );
        }
        self.value(&value.clone())
    }

    /// `num_train_epochs` and `max_steps`.
    fn run_length(
        &mut self,
        settings: &Settings,
        train: Option<&Pipeline>,
    ) -> Result<RunLength, Why> {
        if let Some((value, _)) = settings.get("max_steps")
            && value.integer() != Some(-1)
            && !matches!(value.kind, Kind::Unary("-", _))
        {
            let steps = self.value(&value.clone())?;
            return Ok(RunLength::Steps(steps));
        }
        let epochs = match settings.get("num_train_epochs") {
            None => "3".to_owned(),
            Some((value, _)) => match (&value.kind, value.number()) {
                (Kind::Float(_), Some(number)) if number.fract() == 0.0 => format!("{number:.0}"),
                (Kind::Float(_), _) => {
                    return Err(
                        "`epochs` is a whole number here; `steps_per_epoch` ends an epoch early"
                            .to_owned(),
                    );
                }
                _ => self.value(&value.clone())?,
            },
        };
        Ok(RunLength::Epochs(epochs, train.map(|it| it.rust.clone())))
    }

    fn push_compile_of_trainer(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        (model, rust, loss): (&Value, &str, Option<String>),
        head: Option<HeadKind>,
        measures: &[super::metrics::Measure],
        span: CellSpan,
    ) -> Result<(), Why> {
        let optimizer = self.trainer_optimizer(settings, plan)?;
        let smoothing = settings.get("label_smoothing_factor");
        let smoothing = smoothing.map(|(value, span)| (value.clone(), span));
        let outputs = self.facts(model).and_then(|it| it.outputs);
        let is_given = loss.is_some();
        let loss = match loss {
            Some(loss) => loss,
            None => self.loss_of_head(head, outputs, smoothing)?,
        };
        if head.is_none() && !is_given {
            self.note(span, "the model is made in another cell: the `Trainer` takes the loss of its head, which is this one for a classifier");
        }
        let mut parts = vec![format!("optimizer = {optimizer}"), format!("loss = {loss}")];
        let metrics: Vec<&str> = measures.iter().map(|it| it.rust.as_str()).collect();
        if !metrics.is_empty() {
            parts.push(format!("metrics = [{}]", metrics.join(", ")));
        }
        if let Some(count) = &plan.accumulation {
            parts.push(format!("gradient_accumulation_steps = {count}"));
        }
        if let Some(name) = model.name() {
            self.uncompiled.remove(name);
        }
        self.push(text::call("compile!", rust, &parts, "?;"), span);
        Ok(())
    }

    /// `trainer.train()` and the other methods.
    pub(crate) fn trainer_method(
        &mut self,
        trainer: &Trainer,
        method: &str,
        call: &Call,
    ) -> Result<Made, Why> {
        call.see_all();
        match method {
            "train" => {
                if trainer.train.is_none() {
                    return Err("the `Trainer` has no `train_dataset`".to_owned());
                }
                let mut parts = trainer.fit.clone();
                let from = call.argument("resume_from_checkpoint", 0);
                match from.map(|it| (&it.kind, it)) {
                    Some((Kind::Bool(true), _)) => {
                        add(&mut parts, "resume_from", trainer.folder.clone())
                    }
                    Some((Kind::Text(_) | Kind::Name(_), value)) => {
                        let folder = self.value(value)?;
                        add(&mut parts, "resume_from", folder);
                        self.note(value.span, "only checkpoints that `fit!` has written are read, such as `step-500` of the folder");
                    }
                    _ => {}
                }
                self.hub.unused.remove(&trainer.span.start);
                Ok((self.fit_call(trainer, parts), Thing::History))
            }
            "evaluate" => {
                let data = match call.argument("eval_dataset", 0) {
                    Some(data) => self.pipeline(data)?,
                    None => trainer
                        .eval
                        .clone()
                        .ok_or("the `Trainer` has no `eval_dataset`")?,
                };
                let mut parts = vec![format!("batch_size = {}", trainer.eval_batch)];
                self.of_pipeline("evaluate", &data, &mut parts);
                let first = format!("{}, {}", trainer.model, data.rust);
                Ok((
                    text::call("evaluate!", &first, &parts, "?"),
                    Thing::Evaluation,
                ))
            }
            "predict" => {
                let data = call
                    .argument("test_dataset", 0)
                    .ok_or("`predict` gets no data")?;
                let data = self.pipeline(data)?;
                let rust = format!("{}.predict(&{})?", trainer.model, data.rust);
                let predicted = Predicted {
                    rust: rust.clone(),
                    made: rust.clone(),
                    source: Some(Source::Set(data.rust)),
                };
                Ok((rust, Thing::Predictions(predicted)))
            }
            "save_model" | "save_pretrained" => {
                let folder = match call.argument("output_dir", 0) {
                    Some(folder) => self.value(folder)?,
                    None => trainer.folder.clone(),
                };
                Ok((
                    format!("{}.save_pretrained({folder})?", trainer.model),
                    Thing::Folded,
                ))
            }
            "log_metrics" | "save_metrics" | "log" | "save_state" => {
                self.idle(
                    call.span,
                    "the history of `fit!` and the result of `evaluate!` have the numbers",
                );
                Ok((String::new(), Thing::Folded))
            }
            other => Err(without_counterpart(other)),
        }
    }

    /// `fit!(…)?`.
    fn fit_call(&self, trainer: &Trainer, mut parts: Vec<String>) -> String {
        in_order("fit", &mut parts);
        let data = trainer.train.as_ref().map_or("data", |it| it.rust.as_str());
        let first = format!("{}, {data}", trainer.model);
        text::call("fit!", &first, &parts, "?")
    }

    /// Whether the strategies of the `Trainer` fit its data: what its constructor would refuse.
    pub(crate) fn check_evaluation(&mut self, settings: &Settings, has_data: bool, span: CellSpan) {
        let strategy = settings.word(&["eval_strategy", "evaluation_strategy"]);
        let evaluates = strategy.as_ref().is_some_and(|(word, _)| word != "no");
        if let (true, false, Some((_, at))) = (evaluates, has_data, strategy) {
            let found = trainer_rules::no_evaluation_data(at, span);
            self.find(found);
        }
        let strategy = settings
            .word(&["eval_strategy", "evaluation_strategy"])
            .map(|it| it.0);
        match (evaluates, settings.flag("load_best_model_at_end")) {
            (false, Some(at)) => {
                let found = trainer_rules::no_evaluation(at);
                self.find(found);
            }
            (true, Some(at)) => {
                let save = settings.word(&["save_strategy"]);
                let (save, place) = save.unwrap_or(("steps".to_owned(), settings.span));
                if save != "best" && Some(&save) != strategy.as_ref() {
                    let evaluates = settings.word(&["eval_strategy", "evaluation_strategy"]);
                    let evaluates = evaluates.unwrap_or(("epoch".to_owned(), settings.span));
                    let found = trainer_rules::strategies_differ(
                        (&save, place),
                        (&evaluates.0, evaluates.1),
                        at,
                    );
                    self.find(found);
                }
            }
            _ => {}
        }
    }
}

/// The arguments in the order of the table.
pub(crate) fn in_order(call: &str, parts: &mut [String]) {
    let order = arguments::call(call).map_or(&[][..], |table| table.arguments);
    parts.sort_by_key(|part| {
        let name = part.split(" = ").next().unwrap_or_default();
        order.iter().position(|argument| argument.name == name)
    });
}

/// Why a method of the `Trainer` is left out.
fn without_counterpart(method: &str) -> Why {
    match method {
        "push_to_hub" | "create_model_card" => {
            "nothing is uploaded; `save_pretrained` writes the files that the hub takes".to_owned()
        }
        "add_callback" => {
            "callbacks are the `callbacks` of `fit!`; name them in `Trainer(…, callbacks=[…])`"
                .to_owned()
        }
        "hyperparameter_search" => {
            "`sweep!` compares settings here, as `docs/evaluation.md` shows".to_owned()
        }
        other => format!("`Trainer.{other}` has no counterpart here"),
    }
}
