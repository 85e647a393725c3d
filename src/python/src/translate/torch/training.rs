//! A loop with `backward()` and `step()` is `compile!` and `fit!`; one that only calls the model is `evaluate!`.

use stratoscope_diagnostics::CellSpan;

use super::super::arguments::see_whole;
use super::super::fit::add;
use super::super::tape::every;
use super::super::tape_loop::data_of_loop;
use super::super::thing::{ModelFacts, Pipeline, Thing};
use super::super::trainer::in_order;
use super::super::trainer::part::Part;
use super::super::{Translator, Why, text};
use super::loss::StepLoss;
use super::optimizer::TorchSchedule;
use crate::model::{Kind, Statement, StatementKind, Value, each_statement, each_value};

/// What a step of a loop does.
#[derive(Default)]
pub(super) struct Step<'v> {
    /// The model that is called.
    pub model: Option<&'v Value>,
    /// What `backward` gets, or is called on.
    pub backward: Option<&'v Value>,
    /// Where that stands.
    pub backward_span: Option<CellSpan>,
    /// The optimizer that steps.
    pub optimizer: Option<&'v Value>,
    /// The scheduler that steps.
    pub schedule: Option<&'v Value>,
    /// Where gradients are set to zero.
    pub zeroed: Option<CellSpan>,
    /// A method of the optimizer that clips, and its number.
    pub clip: Option<(&'static str, &'v Value)>,
    /// Batches of a step.
    pub every: Option<&'v Value>,
}

/// Calls that make a step, or measure its outputs.
const OF_STEP: &[&str] = &[
    "backward",
    "step",
    "zero_grad",
    "train",
    "eval",
    "to",
    "clip_grad_norm_",
    "clip_grad_value_",
    "unscale_",
    "add",
    "add_batch",
    "compute",
    "empty_cache",
    "set_epoch",
];

/// What becomes of a loop.
struct FitOfLoop<'a> {
    /// The model, as Rust.
    model: &'a str,
    /// The arguments of `compile!`.
    compile: Vec<String>,
    /// `epochs`.
    epochs: Option<String>,
    /// The data.
    data: Pipeline,
    /// `validation_data`.
    validation: Option<String>,
}

impl Translator<'_> {
    /// A loop over batches of PyTorch; `None`: another loop.
    pub(crate) fn torch_loop(
        &mut self,
        statement: &Statement,
        items: &Value,
        body: &[Statement],
    ) -> Option<Result<(), Why>> {
        let mut has_step = false;
        each_value(body, &mut |value| {
            has_step |= value.method("backward").is_some()
        });
        if !has_step {
            return self.evaluation_loop(statement, items, body);
        }
        see_whole(items);
        Some(self.training_loop(statement, items, body))
    }

    fn training_loop(
        &mut self,
        statement: &Statement,
        items: &Value,
        body: &[Statement],
    ) -> Result<(), Why> {
        let span = statement.span;
        let (epochs, loader, inner) = self.loops_of_torch(items, body)?;
        let step = self.step_of(inner);
        let data = self.batches_of(&loader)?;
        let model = step
            .model
            .cloned()
            .ok_or("the loop calls no model that is known from the cell")?;
        let rust = self.model_name(&model)?;
        let facts = self.facts(&model);
        let loss = self.loss_of_steps(&step, facts.as_ref(), inner)?;
        let optimizer = match step.optimizer.and_then(|it| self.part_of(it)) {
            Some(Part::Optimizer(optimizer)) => {
                self.hub.unused.remove(&optimizer.span.start);
                *optimizer
            }
            _ => return Err("the loop steps no optimizer that is known from the cell".to_owned()),
        };
        let clip = match step.clip {
            Some((method, value)) => Some(format!(".{method}({})", self.float(&value.clone())?)),
            None => None,
        };
        let accumulation = match step.every {
            Some(steps) => Some(self.value(&steps.clone())?),
            None => None,
        };
        let validation = self.validation_of_loop(body);
        self.skip_comments(span.end);
        let data = self.named_data(data, "train_data", span);
        let schedule = self.schedule_of_loop(step.schedule, step.optimizer);
        if data.batch.is_none() {
            self.note(
                loader.span,
                "the size of its batches is set in another cell: `batch_size` of `fit!` is 32 unless it is written",
            );
        }
        let batch = data.batch.clone().unwrap_or_else(|| "32".to_owned());
        let run = (
            epochs.as_deref().unwrap_or("1"),
            data.rust.as_str(),
            batch.as_str(),
        );
        let optimizer = self.optimizer_of_loop(
            &optimizer,
            schedule.as_ref(),
            run,
            (clip, accumulation.clone()),
            span,
        )?;
        let mut parts = vec![format!("optimizer = {optimizer}"), format!("loss = {loss}")];
        let metrics = self.metrics_of_loop(validation.as_ref().map_or(&[], |it| it.1));
        if !metrics.is_empty() {
            parts.push(format!("metrics = [{}]", metrics.join(", ")));
        }
        if let Some(count) = &accumulation {
            parts.push(format!("gradient_accumulation_steps = {count}"));
        }
        let fit = FitOfLoop {
            model: &rust,
            compile: parts,
            epochs,
            data,
            validation: validation.map(|(data, _)| data.rust),
        };
        self.push_loop(fit, span);
        self.uncompiled.remove(model.name().unwrap_or_default());
        self.others_of_loop(body);
        self.used_bodies(body);
        each_value(body, &mut see_whole);
        self.miss_bound(statement);
        Ok(())
    }

    /// The loss of the steps, as Rust, with what the rules find.
    fn loss_of_steps(
        &mut self,
        step: &Step<'_>,
        facts: Option<&ModelFacts>,
        inner: &[Statement],
    ) -> Result<String, Why> {
        let (loss, divides) = self.loss_of_loop(step.backward, inner)?;
        self.check_step(step, inner, divides);
        match loss {
            StepLoss::Head => {
                let head = facts.and_then(|it| self.hub.heads.get(&it.span.start).copied());
                self.loss_of_head(head, facts.and_then(|it| it.outputs), None)
            }
            StepLoss::Called(loss, input) => {
                self.check_activation(&loss, input.as_ref(), facts.cloned(), inner);
                Ok(loss.rust)
            }
        }
    }

    /// `compile!` and `fit!` in place of a loop.
    fn push_loop(&mut self, fit: FitOfLoop<'_>, span: CellSpan) {
        let (first, last) = self.lines(span);
        let line = format!("// Lines {first} to {last}: `fit!` makes these steps.");
        self.push(line, span);
        self.push(text::call("compile!", fit.model, &fit.compile, "?;"), span);
        let mut parts = Vec::new();
        if let Some(epochs) = fit.epochs {
            add(&mut parts, "epochs", epochs);
        }
        self.of_pipeline("fit", &fit.data, &mut parts);
        if let Some(validation) = fit.validation {
            add(&mut parts, "validation_data", validation);
        }
        if let Some(seed) = self.seed.clone() {
            add(&mut parts, "seed", seed);
        }
        in_order("fit", &mut parts);
        let data = format!("{}, {}", fit.model, fit.data.rust);
        self.push(text::call("fit!", &data, &parts, "?;"), span);
    }

    /// The epochs, the data, and the block that makes a step.
    fn loops_of_torch<'v>(
        &mut self,
        items: &'v Value,
        body: &'v [Statement],
    ) -> Result<(Option<String>, Value, &'v [Statement]), Why> {
        let items = data_of_loop(items);
        let call = items.call().cloned();
        let is_range = call
            .as_ref()
            .is_some_and(|call| matches!(call.function.name(), Some("range" | "trange")));
        let (true, Some(call)) = (is_range, call) else {
            return Ok((None, items, body));
        };
        let epochs = self.passes(&call.arguments)?;
        let inner = body.iter().find_map(|statement| match &statement.kind {
            StatementKind::For(_, items, block) => {
                let mut has_step = false;
                each_value(block, &mut |value| {
                    has_step |= value.method("backward").is_some()
                });
                has_step.then_some((data_of_loop(items), &block[..]))
            }
            _ => None,
        });
        match inner {
            Some((data, block)) => Ok((Some(epochs), data, block)),
            None => Err("the loop goes over no data set: `fit!` takes batches of one, `Dataset::from_arrays(&x, &y)?` makes one of arrays".to_owned()),
        }
    }

    pub(super) fn step_of<'v>(&self, body: &'v [Statement]) -> Step<'v> {
        let mut step = Step::default();
        let schedules = |value: &Value| {
            matches!(self.part_of(value), Some(Part::Schedule(_)))
                || value.name().is_some_and(|it| it.contains("sched"))
        };
        each_value(body, &mut |value| {
            let Some(call) = value.call() else {
                return;
            };
            if let Some(name) = call.function.name() {
                let is_model = match self.things.get(name) {
                    Some(Thing::Model(_)) => true,
                    Some(Thing::Missing(_)) | None => {
                        name.contains("model") || name.contains("net")
                    }
                    _ => false,
                };
                if is_model {
                    step.model = step.model.or(Some(&call.function));
                }
            }
            let Kind::Attribute(object, method) = &call.function.kind else {
                return;
            };
            match method.as_str() {
                "backward" => {
                    // `accelerator.backward(loss)`.
                    step.backward = call.arguments.first().or(Some(object));
                    step.backward_span = Some(call.span);
                }
                "step" => match call.arguments.first() {
                    Some(optimizer) => step.optimizer = Some(optimizer),
                    None if schedules(object) => step.schedule = Some(object),
                    None => step.optimizer = Some(object),
                },
                "zero_grad" => step.zeroed = Some(call.span),
                "clip_grad_norm_" => {
                    step.clip = call
                        .argument("max_norm", 1)
                        .map(|it| ("global_clipnorm", it))
                }
                "clip_grad_value_" => {
                    step.clip = call.argument("clip_value", 1).map(|it| ("clipvalue", it))
                }
                _ => {}
            }
        });
        each_value(body, &mut |value| {
            let full = self.names.called(value).unwrap_or_default();
            if full == "torch.nn.utils.clip_grad_norm_"
                && let Some(call) = value.call()
            {
                step.clip = call
                    .argument("max_norm", 1)
                    .map(|it| ("global_clipnorm", it));
            }
        });
        each_statement(body, &mut |statement| {
            if let StatementKind::If(branches) = &statement.kind {
                for (condition, block) in branches {
                    let mut steps = false;
                    each_value(block, &mut |value| steps |= value.method("step").is_some());
                    if let (true, Some(count)) = (steps, condition.as_ref().and_then(every)) {
                        step.every = Some(count);
                    }
                }
            }
        });
        step
    }

    fn schedule_of_loop(
        &mut self,
        given: Option<&Value>,
        optimizer: Option<&Value>,
    ) -> Option<TorchSchedule> {
        match given.and_then(|it| self.part_of(it)) {
            Some(Part::Schedule(schedule)) => {
                let name = optimizer.and_then(Value::name);
                self.hub.unused.remove(&schedule.span.start);
                let is_other = schedule
                    .optimizer
                    .as_deref()
                    .zip(name)
                    .is_some_and(|(a, b)| a != b);
                (!is_other).then_some(*schedule)
            }
            _ => None,
        }
    }

    /// What else a loop does: its own counters and its prints; what changes the steps is named.
    pub(super) fn others_of_loop(&mut self, body: &[Statement]) {
        let (mut shown, mut others) = (Vec::new(), Vec::new());
        each_statement(body, &mut |statement| match &statement.kind {
            StatementKind::Leave(_) => {
                others.push((statement.span, "`fit!` makes a step of every batch"))
            }
            StatementKind::Expression(value) => {
                let last = value.call().and_then(|call| match &call.function.kind {
                    Kind::Attribute(_, name) | Kind::Name(name) => Some(name.as_str()),
                    _ => None,
                });
                match last {
                    Some(
                        "print" | "append" | "extend" | "update" | "set_description"
                        | "set_postfix" | "log" | "write",
                    ) => shown.push(statement.span),
                    Some("save" | "save_pretrained") => others.push((
                        statement.span,
                        "`checkpoint = \"folder\"` of `fit!` saves the last and the best epoch",
                    )),
                    Some(name) if !OF_STEP.contains(&name) => others.push((
                        statement.span,
                        "it stands in the loop by hand; `on_epoch_end(|epoch| …)` in `callbacks` is called after each epoch",
                    )),
                    _ => {}
                }
            }
            StatementKind::Assign(targets, _)
                if targets
                    .iter()
                    .any(|it| matches!(it.kind, Kind::Index(..)) && !is_of_batch(it)) =>
            {
                others.push((statement.span, "`fit!` does not set it between its steps; a rate that changes is a schedule of the optimizer"));
            }
            _ => {}
        });
        for (span, why) in others {
            self.leave(span, why);
        }
        for span in shown {
            self.idle(
                span,
                "the table and the history of `fit!` have the losses and metrics",
            );
        }
    }
}

/// `batch["labels"] = …`.
fn is_of_batch(target: &Value) -> bool {
    match &target.kind {
        Kind::Index(object, _) => object
            .name()
            .is_some_and(|name| name.contains("batch") || name.contains("input")),
        _ => false,
    }
}
