//! Optimizers and schedulers of PyTorch, with the schedules of transformers. They become the `optimizer` of the `compile!` of
//! the loop that steps them.

use stratoscope_diagnostics::CellSpan;

use super::super::arguments::see_whole;
use super::super::call::Made;
use super::super::thing::Thing;
use super::super::trainer::part::Part;
use super::super::trainer::{Plan, RunLength, WarmUp};
use super::super::{Translator, Why};
use crate::model::{Call, Keyword, Kind, Value};

/// An optimizer of PyTorch.
#[derive(Clone, Debug)]
pub(crate) struct TorchOptimizer {
    /// Its type here.
    pub class: &'static str,
    /// The rate, as Rust.
    pub rate: String,
    /// Its methods, as Rust.
    pub methods: String,
    /// Where it is made.
    pub span: CellSpan,
}

/// A scheduler.
#[derive(Clone, Debug)]
pub(crate) struct TorchSchedule {
    /// As `lr_scheduler_type` names it.
    pub kind: String,
    /// Steps of warm-up.
    pub warm_up: WarmUp,
    /// The steps that are written; `None` where they are those of the loop.
    pub steps: Option<String>,
    /// The optimizer whose rate it sets.
    pub optimizer: Option<String>,
    /// Where it is made.
    pub span: CellSpan,
}

/// The schedules by the names of the functions that make them.
const SCHEDULES: &[(&str, &str)] = &[
    ("get_linear_schedule_with_warmup", "linear"),
    ("get_cosine_schedule_with_warmup", "cosine"),
    (
        "get_cosine_with_hard_restarts_schedule_with_warmup",
        "cosine_with_restarts",
    ),
    ("get_polynomial_decay_schedule_with_warmup", "polynomial"),
    ("get_constant_schedule", "constant"),
    ("get_constant_schedule_with_warmup", "constant_with_warmup"),
];

/// The defaults of PyTorch that are others here: the optimizer, its rate, and its methods.
const DEFAULTS: &[(&str, &str, &str, &str)] = &[
    (
        "torch.optim.AdamW",
        "AdamW",
        "1e-3",
        ".decay_all_parameters(true)",
    ),
    ("transformers.AdamW", "AdamW", "1e-3", ""),
    ("torch.optim.Adam", "Adam", "1e-3", ""),
    ("torch.optim.SGD", "SGD", "1e-3", ""),
];

impl Translator<'_> {
    /// `torch.optim.AdamW(model.parameters(), lr=5e-5)`.
    pub(crate) fn torch_optimizer(&mut self, full: &str, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let row = DEFAULTS.iter().find(|(name, ..)| *name == full);
        let (_, class, rate, more) = row.ok_or_else(|| {
            format!("there is no `{full}` here; there are AdamW, Adam and SGD of PyTorch, and `docs/arguments.md` lists the others")
        })?;
        let groups = call.argument("params", 0).ok_or("it gets no parameters")?;
        let mut decay = self.decay_of_groups(groups)?;
        let is_grouped = decay.is_some();
        let (mut rate, mut methods) = ((*rate).to_owned(), String::new());
        let names = ["params", "lr"];
        for (place, value) in call.arguments.iter().enumerate().skip(1) {
            match names.get(place) {
                Some(_) => rate = self.float(value)?,
                None => return Err("its arguments are not all named".to_owned()),
            }
        }
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "params" => {}
                "lr" => rate = self.float(&keyword.value)?,
                "weight_decay" if *class == "AdamW" => {
                    decay = decay.or(Some(self.float(&keyword.value)?));
                }
                _ => methods += &self.method_of_optimizer(class, keyword)?,
            }
        }
        if *class == "AdamW" {
            let decay = decay.or((full == "transformers.AdamW").then(|| "0.0".to_owned()));
            if full == "transformers.AdamW" && !methods.contains(".epsilon(") {
                methods += ".epsilon(1e-6)";
            }
            if let Some(decay) = decay {
                methods += &format!(".weight_decay({decay})");
            }
            // PyTorch decays every variable that it gets.
            if !is_grouped {
                methods += if more.is_empty() {
                    ".decay_all_parameters(true)"
                } else {
                    more
                };
            }
        }
        self.push("// The optimizer stands in `compile!`.", call.span);
        let optimizer = TorchOptimizer {
            class,
            rate,
            methods,
            span: call.span,
        };
        let why = "no loop of this cell steps it; it is the `optimizer` of `compile!`";
        self.hub
            .unused
            .insert(call.span.start, (call.span, why.to_owned()));
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::Optimizer(Box::new(optimizer)))),
        ))
    }

    /// An argument as a method; nothing for one that has none here, which is named.
    fn method_of_optimizer(&mut self, class: &str, keyword: &Keyword) -> Result<String, Why> {
        const PLAIN: &[&str] = &[
            "fused",
            "foreach",
            "capturable",
            "differentiable",
            "no_deprecation_warning",
            "correct_bias",
        ];
        let value = &keyword.value;
        Ok(match (keyword.name.as_str(), class) {
            ("eps", "AdamW" | "Adam") => format!(".epsilon({})", self.float(value)?),
            ("betas", "AdamW" | "Adam") => {
                let Some([first, second]) = value.elements() else {
                    return Err("its betas are not written out".to_owned());
                };
                let (first, second) = (self.float(first)?, self.float(second)?);
                format!(".beta_1({first}).beta_2({second})")
            }
            ("amsgrad", "AdamW" | "Adam") => format!(".amsgrad({})", self.value(value)?),
            ("momentum", "SGD") => format!(".momentum({})", self.float(value)?),
            ("nesterov", "SGD") => format!(".nesterov({})", self.value(value)?),
            ("weight_decay", _) if value.number() == Some(0.0) => {
                self.idle(keyword.span, "it is the default");
                String::new()
            }
            ("weight_decay", class) => {
                let why = format!(
                    "PyTorch's {class} adds the decay to the gradient, which no optimizer here does; `AdamW` decays the weights themselves"
                );
                self.leave_argument(keyword, why);
                String::new()
            }
            (name, _) if PLAIN.contains(&name) => {
                self.idle(keyword.span, "it changes no step");
                String::new()
            }
            (name, class) => {
                self.leave_argument(keyword, format!("`{class}` has no `{name}` here"));
                String::new()
            }
        })
    }

    /// The weight decay of `optimizer_grouped_parameters`, whose other group does not decay; `None` for all parameters.
    fn decay_of_groups(&mut self, given: &Value) -> Result<Option<String>, Why> {
        let value = match given.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Part(part)) => match &**part {
                Part::Groups(decay) => Some(decay.clone()),
                _ => None,
            },
            Some(Thing::Missing(_)) => return Err(self.value(given).err().unwrap_or_default()),
            _ => groups(given),
        };
        let is_all = given.method("parameters").is_some();
        match value {
            Some(decay) => Ok(Some(self.float(&decay)?)),
            None if is_all => Ok(None),
            None => Err("the variables that it changes are not known; `rate_for` and `freeze` choose some here".to_owned()),
        }
    }

    /// `get_linear_schedule_with_warmup(optimizer, 0, steps)`, `get_scheduler("linear", …)`.
    pub(crate) fn torch_schedule(&mut self, name: &str, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let (kind, first) = match name {
            "get_scheduler" => {
                let kind = call
                    .argument("name", 0)
                    .and_then(Value::text)
                    .ok_or("the schedule is not written as a text")?;
                (kind.to_owned(), 1)
            }
            name => {
                let kind = SCHEDULES
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, kind)| *kind);
                (
                    kind.ok_or_else(|| format!("there is no schedule `{name}` here"))?
                        .to_owned(),
                    0,
                )
            }
        };
        let argument = |name: &str, place: usize| call.argument(name, first + place);
        let optimizer = argument("optimizer", 0)
            .and_then(Value::name)
            .map(str::to_owned);
        let warm_up = match argument("num_warmup_steps", 1) {
            Some(value) if value.number() != Some(0.0) => self.warm_up_of(&value.clone())?,
            _ => WarmUp::None,
        };
        let steps = match argument("num_training_steps", 2) {
            Some(value) => self.steps_written(&value.clone())?,
            None => None,
        };
        for keyword in &call.keywords {
            let is_known = [
                "name",
                "optimizer",
                "num_warmup_steps",
                "num_training_steps",
            ]
            .contains(&keyword.name.as_str());
            if !is_known {
                self.leave_argument(
                    keyword,
                    "the schedules here have the settings of transformers' defaults".to_owned(),
                );
            }
        }
        let keywords = call.keywords.iter().map(|keyword| &keyword.value);
        call.arguments.iter().chain(keywords).for_each(see_whole);
        self.push(
            "// The schedule stands in the optimizer of `compile!`.",
            call.span,
        );
        let schedule = TorchSchedule {
            kind,
            warm_up,
            steps,
            optimizer,
            span: call.span,
        };
        let why =
            "no loop of this cell steps it; a schedule is given to the optimizer of `compile!`";
        self.hub
            .unused
            .insert(call.span.start, (call.span, why.to_owned()));
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::Schedule(Box::new(schedule)))),
        ))
    }

    /// `int(0.1 * total_steps)`, or a number of steps.
    fn warm_up_of(&mut self, value: &Value) -> Result<WarmUp, Why> {
        if let Some(Part::Steps(Some(share))) = self.part_of(value) {
            return Ok(WarmUp::Share(self.float(&share)?));
        }
        match share_of_steps(value, &|it| self.counts_steps(it)) {
            Some(Some(share)) => Ok(WarmUp::Share(self.float(&share)?)),
            Some(None) => Err("the warm-up is as long as the run".to_owned()),
            None => Ok(WarmUp::Steps(self.value(value)?)),
        }
    }

    /// The steps of the run, unless they are those of the loop.
    fn steps_written(&mut self, value: &Value) -> Result<Option<String>, Why> {
        if self.counts_steps(value) {
            return Ok(None);
        }
        Ok(Some(self.value(value)?))
    }

    /// What part of something a name is.
    pub(crate) fn part_of(&self, value: &Value) -> Option<Part> {
        match value.name().and_then(|name| self.things.get(name))? {
            Thing::Part(part) => Some((**part).clone()),
            _ => None,
        }
    }

    /// Whether a value is the number of steps of the run: `len(loader) * epochs`.
    pub(crate) fn counts_steps(&self, value: &Value) -> bool {
        let is_steps = |it: &Value| {
            matches!(self.part_of(it), Some(Part::Steps(None)))
                || it.name().is_some_and(|name| self.hub.steps.contains(name))
        };
        if is_steps(value) {
            return true;
        }
        let is_number = match &value.kind {
            Kind::Binary(..) => true,
            Kind::Call(call) => {
                let path = call.function.path().unwrap_or_default();
                path.last()
                    .is_some_and(|name| matches!(*name, "len" | "int" | "max" | "ceil"))
            }
            _ => false,
        };
        if !is_number {
            return false;
        }
        let is_length = |it: &Value| {
            it.call().is_some_and(|call| {
                call.function.name() == Some("len")
                    && call
                        .arguments
                        .first()
                        .and_then(Value::name)
                        .is_some_and(|name| {
                            matches!(self.things.get(name), Some(Thing::Data(_)))
                                || name.contains("loader")
                        })
            })
        };
        let mut found = false;
        value.visit(&mut |inner| found |= is_length(inner) || is_steps(inner));
        found
            && share_of_steps(value, &|it| is_length(it) || is_steps(it))
                .is_none_or(|it| it.is_none())
    }

    /// The optimizer of a loop as Rust: with the schedule that the loop steps.
    pub(crate) fn optimizer_of_loop(
        &mut self,
        optimizer: &TorchOptimizer,
        schedule: Option<&TorchSchedule>,
        (epochs, data, batch): (&str, &str, &str),
        (clip, accumulation): (Option<String>, Option<String>),
        span: CellSpan,
    ) -> Result<String, Why> {
        let rate = match schedule {
            None => optimizer.rate.clone(),
            Some(schedule) => {
                let length = match &schedule.steps {
                    Some(steps) => {
                        self.note(span, "the schedule ends with the run, whose steps should be those that the Python text names");
                        RunLength::Steps(steps.clone())
                    }
                    None => RunLength::Epochs(epochs.to_owned(), Some(data.to_owned())),
                };
                let plan = Plan {
                    rate: optimizer.rate.clone(),
                    kind: schedule.kind.clone(),
                    warm_up: schedule.warm_up.clone(),
                    length,
                    batch: batch.to_owned(),
                    accumulation,
                };
                self.schedule_of(&plan, span)?
            }
        };
        Ok(format!(
            "{}::new({rate}){}{}",
            optimizer.class,
            optimizer.methods,
            clip.unwrap_or_default()
        ))
    }
}

/// The decay of the first of two groups of variables, of which the other does not decay.
pub(crate) fn groups(value: &Value) -> Option<Value> {
    let groups = value.elements()?;
    let decay = |group: &Value| match &group.kind {
        Kind::Dict(items) => {
            let found = items
                .iter()
                .find(|(key, _)| key.text() == Some("weight_decay"));
            found.map(|(_, value)| value.clone())
        }
        _ => None,
    };
    let decays: Option<Vec<Value>> = groups.iter().map(decay).collect();
    let decays = decays?;
    match decays.as_slice() {
        [one, zero] if zero.number() == Some(0.0) => Some(one.clone()),
        [zero, one] if zero.number() == Some(0.0) => Some(one.clone()),
        _ => None,
    }
}

/// `0.1` of `int(0.1 * total)`; `Some(None)` for the whole, `None` for something else.
fn share_of_steps(value: &Value, is_total: &dyn Fn(&Value) -> bool) -> Option<Option<Value>> {
    if is_total(value) {
        return Some(None);
    }
    match &value.kind {
        Kind::Call(call) if call.function.name() == Some("int") => {
            share_of_steps(call.arguments.first()?, is_total)
        }
        Kind::Binary(left, "*", right) => {
            for (share, total) in [(left, right), (right, left)] {
                let is_share = share.number().is_some_and(|it| it > 0.0 && it < 1.0);
                if is_share && matches!(share_of_steps(total, is_total), Some(None)) {
                    return Some(Some((**share).clone()));
                }
            }
            None
        }
        _ => None,
    }
}
