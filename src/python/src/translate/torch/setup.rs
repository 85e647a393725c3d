//! Statements and names of PyTorch that set nothing here: devices, seeds, groups of variables, numbers of steps.

use stratoscope_diagnostics::CellSpan;

use super::super::arguments::see_whole;
use super::super::devices::ON_DEFAULT;
use super::super::thing::Thing;
use super::super::trainer::part::Part;
use super::super::{Translator, Why};
use super::optimizer::groups;
use crate::model::{Call, Kind, Value};

/// Calls of PyTorch that set something up: why they set nothing here.
const SETUP: &[(&str, &str)] = &[
    (
        "torch.cuda.empty_cache",
        "memory of a GPU is taken as it is needed",
    ),
    (
        "torch.cuda.manual_seed",
        "`seed` of `fit!` fixes the numbers on every device",
    ),
    (
        "torch.cuda.manual_seed_all",
        "`seed` of `fit!` fixes the numbers on every device",
    ),
    (
        "torch.backends",
        "training on the CPU is reproducible bit for bit",
    ),
    (
        "torch.use_deterministic_algorithms",
        "training on the CPU is reproducible bit for bit",
    ),
    (
        "torch.set_num_threads",
        "`fit!` uses the processors of the machine",
    ),
    (
        "torch.set_float32_matmul_precision",
        "`set_global_policy` chooses the precision",
    ),
    ("torch.multiprocessing", "`fit!` reads ahead by itself"),
];

impl Translator<'_> {
    /// Names of PyTorch without a line: devices, groups of variables, steps.
    pub(crate) fn assign_of_torch(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some(done) = self.assign_of_setup(name, value, span) {
            return Some(done);
        }
        if self.names.called(value).as_deref() == Some("torch.nn.Linear")
            && let Some(call) = value.call()
        {
            // A layer alone is a model of one layer.
            return Some(self.model_of_one(name, call, span));
        }
        let is_count = self.counts_steps(value);
        if is_count {
            self.hub.steps.insert(name.to_owned());
        }
        // A number that something else reads is written.
        let of_schedules = self.hub.schedule_uses.get(name).copied();
        if is_count && of_schedules == Some(self.uses.get(name).copied().unwrap_or(0)) {
            see_whole(value);
            self.idle(span, "`fit!` counts the steps of the run");
            self.things
                .insert(name.to_owned(), Thing::Part(Box::new(Part::Steps(None))));
            return Some(Ok(()));
        }
        self.moved_model(name, value, span)
    }

    /// `model, optimizer, loader = accelerator.prepare(model, optimizer, loader)`: the names stay what they are.
    pub(crate) fn prepared(
        &mut self,
        targets: &[Value],
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let (object, call) = value.method("prepare")?;
        if !matches!(self.part_of(object), Some(Part::Nothing("an accelerator"))) {
            return None;
        }
        let given = call.arguments.iter().map(Value::name);
        if !given.eq(targets.iter().map(Value::name)) {
            return None;
        }
        see_whole(value);
        self.idle(span, "devices and processes are those of a strategy");
        Some(Ok(()))
    }

    /// Calls that set nothing: `model.to(device)`, `model.train()`, `torch.manual_seed(0)`; `None`: something else.
    pub(crate) fn statement_of_torch(
        &mut self,
        value: &Value,
        call: &Call,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some(full) = self.names.full(&call.function) {
            if full == "torch.manual_seed" || full == "transformers.set_seed" {
                let seed = call.argument("seed", 0).cloned()?;
                return Some(self.value(&seed).map(|seed| {
                    let text = format!("`seed = {seed}` of `fit!`: the numbers are not PyTorch's");
                    self.note(span, text);
                    self.seed = Some(seed);
                }));
            }
            let why = SETUP
                .iter()
                .find(|(start, _)| full.starts_with(start))
                .map(|(_, why)| *why)?;
            see_whole(value);
            self.idle(span, why);
            return Some(Ok(()));
        }
        let Kind::Attribute(object, method) = &call.function.kind else {
            return None;
        };
        if let "set_format" | "reset_format" = method.as_str() {
            see_whole(value);
            self.idle(span, super::super::steps::COLUMNS);
            return Some(Ok(()));
        }
        let is_model = match object.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Model(_) | Thing::Layers(..)) => true,
            Some(_) => false,
            None => object.name().is_some_and(|name| name.contains("model")),
        };
        let why = match method.as_str() {
            "to" | "cuda" | "cpu" | "half" | "bfloat16" if is_model => {
                self.unmoved(value);
                return Some(Ok(()));
            }
            "train" | "eval" if call.arguments.is_empty() => {
                "`fit!` trains with dropout, `evaluate!` and `predict` without"
            }
            "gradient_checkpointing_enable" => {
                return is_model.then(|| {
                    Err("`recompute = true` of `fit!` computes the layers once more".to_owned())
                });
            }
            "zero_grad" => "`fit!` begins each step with new gradients",
            _ => return None,
        };
        if !is_model {
            return None;
        }
        see_whole(value);
        self.idle(span, why);
        Some(Ok(()))
    }

    /// `with torch.no_grad():`.
    pub(crate) fn is_without_gradients(&self, items: &[(Value, Option<Value>)]) -> bool {
        let is_none = |(value, _): &(Value, Option<Value>)| {
            let full = self.names.called(value).unwrap_or_default();
            matches!(full.as_str(), "torch.no_grad" | "torch.inference_mode")
        };
        !items.is_empty() && items.iter().all(is_none)
    }

    /// Devices, progress bars, and the groups of variables of an optimizer.
    fn assign_of_setup(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let source = self.source(value.span).to_owned();
        if source.contains("is_available()") || name == "device" && value.text().is_some() {
            see_whole(value);
            return Some(self.nothing(name, "a device", span, ON_DEFAULT));
        }
        if matches!(name, "no_decay") && value.elements().is_some() {
            let names: Vec<&str> = value
                .elements()
                .unwrap_or_default()
                .iter()
                .filter_map(Value::text)
                .collect();
            let is_default = names.iter().any(|it| it.contains("bias"))
                && names.iter().any(|it| it.contains("orm"));
            return is_default.then(|| {
                self.nothing(
                    name,
                    "a list of names",
                    span,
                    "biases and LayerNorm do not decay unless the optimizer says otherwise",
                )
            });
        }
        if let Some(decay) = groups(value) {
            see_whole(value);
            self.idle(
                span,
                "biases and LayerNorm do not decay unless the optimizer says otherwise",
            );
            self.things
                .insert(name.to_owned(), Thing::Part(Box::new(Part::Groups(decay))));
            return Some(Ok(()));
        }
        let is_bar = value.call().is_some_and(|call| {
            let path = call.function.path().unwrap_or_default();
            path.last() == Some(&"tqdm")
        });
        if is_bar {
            see_whole(value);
            self.hub.bars.insert(name.to_owned(), value.clone());
            let why = "`fit!` shows its progress, and `track` in a loop";
            return Some(self.nothing(name, "a progress bar", span, why));
        }
        None
    }

    /// A model that is moved, compiled or wrapped.
    fn moved_model(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        // `model = model.to(device)`, `model = torch.compile(model)`, `model = nn.DataParallel(model)`.
        let full = self.names.called(value).unwrap_or_default();
        let wraps = full == "torch.compile"
            || full.ends_with(".DataParallel")
            || full.ends_with(".DistributedDataParallel");
        let inner = match value
            .method("to")
            .or(value.method("cuda"))
            .or(value.method("half"))
            .or(value.method("eval"))
        {
            Some((object, _)) => Some(object),
            None if wraps => value.call().and_then(|call| call.arguments.first()),
            None => None,
        };
        if let Some(inner) = inner
            && inner.name() == Some(name)
        {
            if wraps {
                see_whole(value);
                self.idle(
                    span,
                    "replicas are those of a strategy; nothing is compiled",
                );
            } else {
                self.unmoved(value);
            }
            return Some(Ok(()));
        }
        if let (Some(inner), Some(call)) = (inner, inner.and_then(Value::call)) {
            // `model = Auto….from_pretrained(…).to(device)`, `model = Net().to(device)`.
            if self.names.full(&call.function).is_some() || call.function.name().is_some() {
                self.unmoved(value);
                return Some(self.assign(
                    &Value {
                        span: value.span,
                        kind: Kind::Name(name.to_owned()),
                    },
                    &inner.clone(),
                    span,
                ));
            }
        }
        None
    }
}
