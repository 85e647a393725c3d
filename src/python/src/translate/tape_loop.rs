//! A loop by hand over a data set is `fit!`, with what the step does as arguments of `compile!`.

use stratoscope_diagnostics::CellSpan;

use super::tape::{Tape, TapeLoss, accumulation};
use super::thing::{Compiled, LossFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Kind, Statement, StatementKind, Value, each_statement};
use crate::rules;

impl Translator<'_> {
    /// Translates a loop with a step by hand.
    pub(crate) fn tape_loop(
        &mut self,
        statement: &Statement,
        items: &Value,
        body: &[Statement],
        tape: Tape,
    ) -> Result<(), Why> {
        let reductions = tape.reductions.clone();
        let written = self.steps_by_hand(statement, items, body, tape);
        match written {
            Ok(()) => {
                for (span, is_mean) in reductions {
                    if is_mean {
                        self.idle(span, "`fit!` averages the loss over the batch");
                    } else {
                        self.leave(
                            span,
                            "`fit!` averages the loss over the batch: a sum has larger gradients",
                        );
                    }
                }
                self.used_parts(body);
                Ok(())
            }
            Err(why) => Err(self.cause_of_loop(body, why)),
        }
    }

    fn steps_by_hand(
        &mut self,
        statement: &Statement,
        items: &Value,
        body: &[Statement],
        tape: Tape,
    ) -> Result<(), Why> {
        let span = statement.span;
        // What the rules find is found whether or not the loop can be written.
        let sum = accumulation(body, &tape);
        if let Ok(Some(sum)) = &sum {
            let count = sum.steps.as_ref().and_then(|steps| self.integer(steps));
            if let Some(at) = sum.made_anew {
                let found = rules::sum_made_anew(at, count);
                self.find(found);
            }
            if let (false, Some(at)) = (sum.is_divided, sum.added) {
                let found = rules::sum_not_divided(at, count);
                self.find(found);
            }
        }
        if !self.distributes
            && let Some(strategy) = self.strategies.last().cloned()
        {
            let found = rules::strategy_not_used(tape.span, &strategy);
            self.find(found);
        }
        let sum = sum?;
        let (epochs, data) = self.loops(items, body)?;
        let data = self.pipeline(&data)?;
        let model = tape
            .model
            .clone()
            .ok_or("the step calls no model that is known from the cell")?;
        let mut added = Vec::new();
        if let Some(steps) = sum.as_ref().and_then(|sum| sum.steps.as_ref()) {
            let rust = self.value(steps)?;
            added.push(format!("gradient_accumulation_steps = {rust}"));
        }
        self.skip_comments(span.end);
        let first = self.translation.lines.len();
        self.compile_for(&tape, &model, added, span)?;
        let rust = self.model_name(&model)?;
        let mut parts = Vec::new();
        if let Some(epochs) = epochs {
            parts.push(format!("epochs = {epochs}"));
        }
        self.of_pipeline("fit", &data, &mut parts);
        let fit = text::call("fit!", &format!("{rust}, {}", data.rust), &parts, "?;");
        self.push(fit, span);
        let lines = self.lines(span);
        let comment = crate::Line {
            depth: self.depth,
            text: format!(
                "// Lines {} to {}: `fit!` makes these steps.",
                lines.0, lines.1
            ),
            python: Some((lines.0, lines.0)),
            is_comment: true,
        };
        self.translation.lines.insert(first, comment);
        self.used_bodies(body);
        if !self.strategies.is_empty() {
            self.note(
                span,
                "`fit!` averages the loss over the global batch; a step by hand under a strategy has to divide its sum by it",
            );
        }
        if data.batch.is_none() {
            self.note(
                span,
                "`fit!` makes batches of 32 in a shuffled order unless `batch_size` and `shuffle` say otherwise",
            );
        }
        self.others(body, &tape);
        // What the loop counts and adds up beside its steps is not in the cell.
        self.miss_bound(statement);
        Ok(())
    }

    /// The epochs and the data of two loops, or of one.
    fn loops(&mut self, items: &Value, body: &[Statement]) -> Result<(Option<String>, Value), Why> {
        let is_range = |value: &Value| {
            value
                .call()
                .is_some_and(|call| call.function.name() == Some("range"))
        };
        if !is_range(items) {
            return Ok((None, data_of_loop(items)));
        }
        let bounds = items.call().map_or(&[][..], |call| &call.arguments[..]);
        let rust = self.passes(bounds)?;
        let mut inner = None;
        each_statement(body, &mut |statement| {
            if let StatementKind::For(_, items, block) = &statement.kind
                && inner.is_none()
                && self.tape_in(block).is_some()
            {
                inner = Some(items);
            }
        });
        match inner {
            Some(items) if !is_range(items) => Ok((Some(rust), data_of_loop(items))),
            _ => Err("the loop goes over no data set that is known from the cell".to_owned()),
        }
    }

    /// How many numbers `range(…)` has: `epochs` of `range(epochs)` and of `range(1, epochs + 1)`.
    pub(crate) fn passes(&mut self, bounds: &[Value]) -> Result<String, Why> {
        let (start, end) = match bounds {
            [end] => return self.whole(end),
            [start, end] => (start, end),
            [] => return Err("its `range` has no end".to_owned()),
            _ => return Err("its `range` has a step".to_owned()),
        };
        let first = start.integer();
        if let (Some(first), Kind::Binary(count, "+", more)) = (first, &end.kind)
            && more.integer() == Some(first)
        {
            return self.whole(count);
        }
        match (first, end.integer()) {
            (Some(0), _) => self.whole(end),
            (Some(first), Some(end)) => match end.checked_sub(first) {
                Some(count) if count > 0 => Ok(count.to_string()),
                _ => Err("its `range` is empty".to_owned()),
            },
            _ => {
                let end = self.whole(end)?;
                self.whole(start)?;
                Ok(format!("{end} - {}", self.typed(start)?.operand()))
            }
        }
    }

    /// A whole number of the cell or of another one.
    fn whole(&mut self, value: &Value) -> Result<String, Why> {
        let rust = self.value(value)?;
        if let Some(name) = value.name()
            && !self.things.contains_key(name)
        {
            self.free(name, "a whole number, such as `3`")?;
        }
        Ok(rust)
    }

    /// The `compile!` that makes the step of `fit!` that of the loop: that of the cell, or one more.
    fn compile_for(
        &mut self,
        tape: &Tape,
        model: &Value,
        mut added: Vec<String>,
        span: CellSpan,
    ) -> Result<(), Why> {
        if let Some((method, _)) = &tape.clip
            && *method == "clipnorm"
        {
            self.note(
                span,
                "`clipnorm` clips each tensor for itself; BERT's recipe is `global_clipnorm`",
            );
        }
        let facts = self.facts(model);
        if let (Some(mut compiled), None) = (facts.and_then(|facts| facts.compiled), &tape.clip) {
            if !added.is_empty() {
                compiled.parts.append(&mut added);
                let rust = self.model_name(model)?;
                self.replace_compile(&rust, &compiled);
            }
            return Ok(());
        }
        let optimizer = tape
            .optimizer
            .clone()
            .ok_or("the step uses no optimizer that is known from the cell")?;
        let mut optimizer = self.optimizer(&optimizer)?;
        if let Some((method, value)) = &tape.clip {
            optimizer += &format!(".{method}({})", self.float(value)?);
        }
        let loss = self.loss_of_step(tape, model)?;
        let mut parts = vec![
            format!("optimizer = {optimizer}"),
            format!("loss = {}", loss.rust),
        ];
        let mut metrics = Vec::new();
        for metric in &tape.metrics {
            if let Some(name) = metric.name()
                && matches!(self.things.get(name), Some(Thing::Metrics))
            {
                let name = text::name(name);
                if !metrics.contains(&name) {
                    metrics.push(name);
                }
            }
        }
        if !metrics.is_empty() {
            parts.push(format!("metrics = [{}]", metrics.join(", ")));
        }
        parts.append(&mut added);
        if let Some(facts) = self.facts(model) {
            let found = rules::loss_and_head(&loss, &facts);
            found.into_iter().for_each(|it| self.find(it));
        }
        let rust = self.model_name(model)?;
        self.push(text::call("compile!", &rust, &parts, "?;"), span);
        Ok(())
    }

    fn loss_of_step(&mut self, tape: &Tape, model: &Value) -> Result<LossFacts, Why> {
        let is_one = self
            .facts(model)
            .is_some_and(|facts| facts.outputs == Some(1));
        match &tape.loss {
            // Hugging Face's head of one output predicts a number.
            TapeLoss::Head if is_one => Ok(LossFacts {
                name: "MeanSquaredError".to_owned(),
                rust: "MeanSquaredError".to_owned(),
                from_logits: None,
                span: tape.span,
            }),
            TapeLoss::Head => Ok(LossFacts {
                name: "SparseCategoricalCrossentropy".to_owned(),
                rust: "SparseCategoricalCrossentropy { from_logits: true }".to_owned(),
                from_logits: Some(true),
                span: tape.span,
            }),
            TapeLoss::Called(function) => {
                let own = function.name().is_some_and(|name| {
                    self.names.has(name)
                        && !matches!(
                            self.things.get(name),
                            Some(Thing::Loss(_) | Thing::Missing(_))
                        )
                });
                match own {
                    true => Err(
                        "its loss is a function of the cell, which is not translated".to_owned(),
                    ),
                    false => self.loss(function),
                }
            }
            TapeLoss::Unknown => Err("its loss is not known from the cell".to_owned()),
        }
    }

    /// Writes the `compile!` of the cell anew, with these arguments.
    fn replace_compile(&mut self, model: &str, compiled: &Compiled) {
        let lines = &mut self.translation.lines;
        let end = (compiled.line + compiled.count).min(lines.len());
        let Some(first) = lines.get(compiled.line).cloned() else {
            return;
        };
        let after = lines.split_off(end);
        let behind = lines
            .last()
            .and_then(|line| line.text.split_once(" // "))
            .map(|(_, it)| it.to_owned());
        lines.truncate(compiled.line);
        let depth = std::mem::replace(&mut self.depth, first.depth);
        let mut written = text::call("compile!", model, &compiled.parts, "?;");
        if let Some(comment) = behind {
            written += &format!(" // {comment}");
        }
        self.push(written, CellSpan { start: 0, end: 1 });
        if let Some(line) = self.translation.lines.get_mut(compiled.line) {
            line.python = first.python;
        }
        self.depth = depth;
        self.translation.lines.extend(after);
    }

    /// What else a loop does: what it prints is in the table of `fit!`, the rest is named.
    fn others(&mut self, body: &[Statement], tape: &Tape) {
        let (mut others, mut shown, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        each_statement(body, &mut |statement| {
            if let Some(why) = changes_steps(statement) {
                others.push((statement.span, why));
                return;
            }
            let is_inside =
                tape.span.start <= statement.span.start && statement.span.end <= tape.span.end;
            if let (false, StatementKind::Expression(value)) = (is_inside, &statement.kind)
                && let Some(call) = value.call()
            {
                let last = match &call.function.kind {
                    Kind::Attribute(_, name) | Kind::Name(name) => name.as_str(),
                    _ => "",
                };
                if let "print" | "append" | "update" | "set_description" | "set_postfix" = last {
                    shown.push(statement.span);
                    if let ("append", Kind::Attribute(object, _)) = (last, &call.function.kind) {
                        lists.extend(object.name().map(str::to_owned));
                    }
                    return;
                }
                let is_of_step = matches!(
                    last,
                    "apply_gradients"
                        | "update_state"
                        | "reset_states"
                        | "reset_state"
                        | "assign"
                        | "assign_add"
                        | "run"
                        | "reduce"
                ) || call
                    .function
                    .name()
                    .is_some_and(|name| matches!(self.things.get(name), Some(Thing::Step(_))));
                if !is_of_step {
                    others.push((
                        statement.span,
                        "it stands in the loop by hand; `on_epoch_end(|epoch| …)` in `callbacks` is called after each epoch",
                    ));
                }
            }
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
        // A list that the loop appends to has no values here.
        let line = body.first().map_or(1, |it| self.line(it.span.start));
        for name in lists {
            self.things.insert(name, Thing::Missing(line));
        }
    }
}

/// Why a statement makes the steps of a loop others than those of `fit!`.
fn changes_steps(statement: &Statement) -> Option<&'static str> {
    let is_part = |target: &Value| matches!(target.kind, Kind::Attribute(..));
    let is_set = match &statement.kind {
        StatementKind::Leave(_) => return Some("`fit!` makes a step of every batch"),
        StatementKind::Assign(targets, _) => targets.iter().any(is_part),
        StatementKind::Augment(target, _, _) => is_part(target),
        StatementKind::Expression(value) => value
            .method("assign")
            .is_some_and(|(target, _)| is_part(target)),
        _ => false,
    };
    is_set.then_some(
        "`fit!` does not set it between its steps; a rate that changes is a schedule of the optimizer, such as \
         `warmup_linear(5e-5, 0.1)`",
    )
}

/// `dataset` of `enumerate(dataset)`, `tqdm(dataset)`.
pub(crate) fn data_of_loop(items: &Value) -> Value {
    match items.call() {
        Some(call) => match (&call.function.kind, call.arguments.first()) {
            (Kind::Name(name), Some(inner)) if name == "enumerate" || name == "tqdm" => {
                data_of_loop(inner)
            }
            _ => items.clone(),
        },
        None => items.clone(),
    }
}
