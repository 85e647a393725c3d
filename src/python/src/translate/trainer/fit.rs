//! The arguments of `fit!` that the settings of a `Trainer` stand for: data, epochs, checkpoints, the best epoch, logs.

use stratoscope_diagnostics::CellSpan;

use super::super::fit::add;
use super::super::{Translator, Why, text};
use super::compile::{Plan, RunLength};
use super::metrics::Measure;
use super::part::Trainer;
use super::settings::Settings;
use crate::model::{Kind, Value};

/// `EarlyStoppingCallback`: patience and threshold.
pub(crate) type Stopping = (Option<Value>, Option<Value>);

impl Translator<'_> {
    /// The arguments of `fit!`, without the model and the data.
    pub(crate) fn fit_of_trainer(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        trainer: &Trainer,
        measures: &[Measure],
        stopping: Option<Stopping>,
        span: CellSpan,
    ) -> Result<Vec<String>, Why> {
        let mut parts = Vec::new();
        self.length_of_run(plan, &mut parts, span);
        add(&mut parts, "batch_size", plan.batch.clone());
        if let Some(at) = settings.flag("auto_find_batch_size") {
            parts.retain(|part| !part.starts_with("batch_size = "));
            add(&mut parts, "batch_size", format!("auto({})", plan.batch));
            self.note(at, "`auto` computes each batch in parts that fit into memory; the steps stay those of the whole batch, and the Trainer's get smaller batches");
        }
        self.check_evaluation(settings, trainer.eval.is_some(), span);
        let validates = self.validation(settings, trainer, &mut parts);
        if let Some(train) = &trainer.train {
            let mut data = train.clone();
            // The order is the Trainer's, whatever the data set was.
            data.shuffle = None;
            data.batch = None;
            self.of_pipeline("fit", &data, &mut parts);
            if data.max_length.is_none() {
                self.note(
                    span,
                    "where the texts are cut is in another cell: `fit!` cuts at 64 tokens unless `max_length` says otherwise",
                );
            }
        }
        self.order_of_data(settings, &mut parts);
        let seed = match (settings.get("seed"), self.seed.clone()) {
            (Some((value, _)), _) => self.value(&value.clone())?,
            (None, Some(seed)) => seed,
            (None, None) => "42".to_owned(),
        };
        add(&mut parts, "seed", seed);
        self.checkpoints(settings, &trainer.folder, &mut parts)?;
        self.best_epoch(settings, plan, (measures, validates), stopping, &mut parts)?;
        if settings.flag("gradient_checkpointing").is_some() {
            add(&mut parts, "recompute", "true".to_owned());
        }
        self.logs(settings, &trainer.folder, &mut parts)?;
        for name in ["fp16", "bf16"] {
            if let (Some(at), false) = (settings.flag(name), self.hub.policy_is_written) {
                self.leave(at, "the policy is set before the model is made: `set_global_policy(\"mixed_bfloat16\")?`");
            }
        }
        Ok(parts)
    }

    fn length_of_run(&mut self, plan: &Plan, parts: &mut Vec<String>, span: CellSpan) {
        match &plan.length {
            RunLength::Epochs(epochs, _) => add(parts, "epochs", epochs.clone()),
            RunLength::Steps(steps) => {
                let batches = match &plan.accumulation {
                    Some(count) => format!("{} * {}", text::factor(steps), text::factor(count)),
                    None => steps.clone(),
                };
                add(parts, "epochs", "1".to_owned());
                add(parts, "steps_per_epoch", batches);
                self.note(
                    span,
                    "`max_steps` is one epoch of that many batches: with fewer batches in the data the run ends with the data, where the Trainer begins it again",
                );
            }
        }
    }

    /// `validation_data`; whether there is some.
    fn validation(
        &mut self,
        settings: &Settings,
        trainer: &Trainer,
        parts: &mut Vec<String>,
    ) -> bool {
        let strategy = settings.word(&["eval_strategy", "evaluation_strategy"]);
        let (Some((word, span)), Some(data)) = (strategy, &trainer.eval) else {
            if let Some((_, span)) = settings.get("eval_steps") {
                self.idle(span, "without `eval_strategy=\"steps\"` it sets nothing");
            }
            return false;
        };
        if word == "no" {
            return false;
        }
        add(parts, "validation_data", data.rust.clone());
        if word == "steps" {
            self.note(
                span,
                "the validation follows each epoch here, not a number of steps",
            );
            if let Some((_, at)) = settings.get("eval_steps") {
                self.leave(
                    at,
                    "the validation follows each epoch; `validation_freq = 2` is every second one",
                );
            }
        }
        if let Some((_, at)) =
            settings.first(&["per_device_eval_batch_size", "per_gpu_eval_batch_size"])
        {
            self.note(at, "during the run the validation uses the `batch_size` of the training, which changes no number; `evaluate!` uses this one");
        }
        true
    }

    fn order_of_data(&mut self, settings: &Settings, parts: &mut Vec<String>) {
        if settings.flag("group_by_length").is_some() {
            add(parts, "group_by_length", "true".to_owned());
        }
        match settings.word(&["train_sampling_strategy"]) {
            Some((word, _)) if word == "group_by_length" => {
                add(parts, "group_by_length", "true".to_owned())
            }
            Some((word, _)) if word == "sequential" => add(parts, "shuffle", "false".to_owned()),
            Some((word, at)) if word != "random" => {
                self.leave(at, "the order is random, by length or that of the data")
            }
            _ => {}
        }
    }

    /// `save_strategy`, `save_steps`, `save_total_limit`: every 500 steps unless they say otherwise.
    fn checkpoints(
        &mut self,
        settings: &Settings,
        folder: &str,
        parts: &mut Vec<String>,
    ) -> Result<(), Why> {
        let strategy = settings
            .word(&["save_strategy"])
            .map_or("steps".to_owned(), |it| it.0);
        match strategy.as_str() {
            "no" => {
                for name in ["save_steps", "save_total_limit"] {
                    if let Some((_, at)) = settings.get(name) {
                        self.idle(at, "nothing is saved");
                    }
                }
                return Ok(());
            }
            "epoch" | "best" => {
                add(parts, "checkpoint", folder.to_owned());
                for name in ["save_steps", "save_total_limit"] {
                    if let Some((_, at)) = settings.get(name) {
                        self.idle(
                            at,
                            "`checkpoint` keeps the weights of the last epoch and of the best one",
                        );
                    }
                }
            }
            _ => {
                let every = match settings.get("save_steps") {
                    Some((value, at)) if value.number().is_some_and(|it| it < 1.0) => {
                        self.leave(
                            at,
                            "`every` is a number of steps; a share of the run is none",
                        );
                        "500".to_owned()
                    }
                    Some((value, _)) => self.value(&value.clone())?,
                    None => "500".to_owned(),
                };
                add(parts, "checkpoint", folder.to_owned());
                add(parts, "every", every);
                match settings.get("save_total_limit") {
                    Some((value, _)) => add(parts, "keep_last", self.value(&value.clone())?),
                    None => self.note(settings.span, "the Trainer keeps all its checkpoints, `fit!` the last 3; `keep_last` sets how many"),
                }
            }
        }
        if let Some((value, _)) = settings.get("resume_from_checkpoint") {
            let from = self.value(&value.clone())?;
            add(parts, "resume_from", from);
        }
        Ok(())
    }

    /// `load_best_model_at_end`, `metric_for_best_model`, `EarlyStoppingCallback`.
    fn best_epoch(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        (measures, validates): (&[Measure], bool),
        stopping: Option<Stopping>,
        parts: &mut Vec<String>,
    ) -> Result<(), Why> {
        let loads = settings.flag("load_best_model_at_end");
        if loads.is_none() && stopping.is_none() {
            for name in ["metric_for_best_model", "greater_is_better"] {
                if let Some((_, at)) = settings.get(name) {
                    self.idle(at, "nothing is chosen by it: the best model is not loaded, and nothing stops early");
                }
            }
            return Ok(());
        }
        if !validates {
            let at = loads.unwrap_or(settings.span);
            self.leave(
                at,
                "nothing is validated during the run, so no epoch is the best one",
            );
            return Ok(());
        }
        let monitor = self.monitored(settings, measures)?;
        let epochs = match &plan.length {
            RunLength::Epochs(epochs, _) => epochs.clone(),
            RunLength::Steps(_) => "1".to_owned(),
        };
        let (patience, threshold) = match stopping {
            Some((patience, threshold)) => {
                let patience = patience.map_or(Ok("1".to_owned()), |it| self.value(&it))?;
                (patience, threshold)
            }
            None => {
                self.note(
                    loads.unwrap_or(settings.span),
                    "a patience of all epochs never stops the run: its best epoch is loaded at the end",
                );
                (epochs, None)
            }
        };
        let mut written = "EarlyStopping::new()".to_owned();
        if let Some(monitor) = monitor {
            written += &format!(".monitor({})", text::text(&monitor));
        }
        written += &format!(".patience({patience})");
        if let Some(threshold) = threshold {
            written += &format!(".min_delta({})", self.float(&threshold)?);
        }
        if loads.is_none() {
            written += ".restore_best_weights(false)";
        }
        add(parts, "early_stopping", written);
        Ok(())
    }

    /// What `metric_for_best_model` names here; `None`: the loss.
    fn monitored(
        &mut self,
        settings: &Settings,
        measures: &[Measure],
    ) -> Result<Option<String>, Why> {
        let mut monitor = None;
        if let Some((value, at)) = settings.get("metric_for_best_model") {
            let name = value
                .text()
                .ok_or("`metric_for_best_model` is not written as a text")?;
            let name = name.strip_prefix("eval_").unwrap_or(name);
            match measures
                .iter()
                .find(|it| it.key == name || it.name() == name)
            {
                _ if name == "loss" => {}
                Some(measure) => monitor = Some(format!("val_{}", measure.name())),
                None => {
                    self.leave(
                        at,
                        format!(
                            "`compute_metrics` has no `{name}`: the loss of the validation decides"
                        ),
                    );
                }
            }
        }
        if let Some((value, at)) = settings.get("greater_is_better") {
            let is_low = monitor
                .as_deref()
                .is_none_or(super::super::callback::is_better_low);
            match (value.kind == Kind::Bool(true)) == is_low {
                true => self.leave(at, "the direction follows from what is monitored: a loss and an error are better when lower"),
                false => self.idle(at, "the direction follows from what is monitored"),
            }
        }
        Ok(monitor)
    }

    /// `report_to`, `logging_dir`, `disable_tqdm`.
    fn logs(
        &mut self,
        settings: &Settings,
        folder: &str,
        parts: &mut Vec<String>,
    ) -> Result<(), Why> {
        if let Some((value, at)) = settings.get("report_to") {
            let one = [value.clone()];
            let services: Vec<String> = value
                .elements()
                .unwrap_or(&one)
                .iter()
                .filter_map(Value::text)
                .map(str::to_owned)
                .collect();
            let mut loggers = Vec::new();
            for service in &services {
                match service.as_str() {
                    "none" => self.idle(at, "`fit!` reports to no service"),
                    "tensorboard" => {
                        let logs = match settings.get("logging_dir") {
                            Some((value, _)) => self.value(&value.clone())?,
                            None => format!("{}/runs\"", folder.trim_end_matches('"')),
                        };
                        let is_text = logs.starts_with('"') && logs.ends_with('"');
                        let logs = if is_text { logs } else { "\"runs\"".to_owned() };
                        loggers.push(format!("TensorBoard::new({logs})?"));
                    }
                    // The Trainer's project where none is named.
                    "wandb" => {
                        loggers.push("WandbLogger::new(\"wandb\", \"huggingface\")?".to_owned());
                        self.note(at, "the run is written to the folder `wandb`, and `wandb sync wandb/offline-run-*` uploads it");
                    }
                    "mlflow" => {
                        loggers.push("MlflowLogger::new(\"mlruns\", \"huggingface\")?".to_owned());
                        self.note(at, "the run is written to the folder `mlruns`, which `mlflow ui` reads");
                    }
                    other => self.leave(at, format!("nothing is sent to `{other}`; `CsvLogger::new(\"log.csv\")?` in `callbacks` writes a file")),
                }
            }
            if !loggers.is_empty() {
                add(parts, "callbacks", format!("[{}]", loggers.join(", ")));
            }
        }
        if let Some((_, at)) = settings.get("logging_dir")
            && !parts.iter().any(|it| it.starts_with("callbacks = "))
        {
            self.idle(at, "without TensorBoard it sets nothing; `callbacks = [TensorBoard::new(\"logs\")?]` writes its files");
        }
        if settings.flag("disable_tqdm").is_some() {
            add(parts, "verbose", "false".to_owned());
        }
        Ok(())
    }
}
