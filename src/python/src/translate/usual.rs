//! Usual calls of Python's own library: progress bars, clocks, questions to the user, variables of the environment, seeds.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::call::Made;
use super::number::{Type, Typed};
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Function, Kind, Statement, StatementKind, Value};

/// Variables of the environment that libraries of Python read.
const OF_PYTHON: &[&str] = &[
    "TF_CPP_",
    "TF_ENABLE_ONEDNN",
    "TF_DETERMINISTIC",
    "TF_FORCE_GPU",
    "TF_GPU_",
    "TF_USE_LEGACY",
    "XLA_",
    "KERAS_BACKEND",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_VERBOSITY",
    "PYTORCH_",
    "PYTHON",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE",
    "WANDB_",
    "HF_HUB_DISABLE",
];

/// Clocks whose differences are seconds.
const CLOCKS: &[&str] = &[
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.time_ns",
    "timeit.default_timer",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
];

pub(crate) const OF_CLOCK: &str = "a time alone has no counterpart here: `let start = std::time::Instant::now();` begins a measurement, \
                        `start.elapsed().as_secs_f64()` are its seconds, and `%time` before a line measures that line";

/// Calls that set the seed of a library.
const SEEDS: &[&str] = &[
    "random.seed",
    "numpy.random.seed",
    "torch.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.mps.manual_seed",
    "tensorflow.random.set_seed",
    "keras.utils.set_random_seed",
    "transformers.set_seed",
    "accelerate.utils.set_seed",
];

impl Translator<'_> {
    /// A call of Python's own library; `None`: another library.
    pub(crate) fn made_by_python(&mut self, full: &str, call: &Call) -> Option<Result<Made, Why>> {
        let first = call.arguments.first();
        let made = match full {
            _ if CLOCKS.contains(&full) => {
                call.see_all();
                Ok(("std::time::Instant::now()".to_owned(), Thing::Clock))
            }
            "time.process_time" | "time.strftime" | "time.ctime" => Err(OF_CLOCK.to_owned()),
            "time.sleep" => {
                call.see_all();
                let seconds = first.ok_or("it gets no seconds".to_owned());
                let seconds = seconds.and_then(|it| self.float(it));
                seconds.map(|it| (format!("sleep({it})"), Thing::Value))
            }
            "os.getenv" | "os.environ.get" => self.environment(call),
            "os.makedirs" | "os.mkdir" => {
                call.see_all();
                let folder = first.ok_or("it names no folder".to_owned());
                folder
                    .and_then(|it| self.value(it))
                    .map(|it| (format!("std::fs::create_dir_all({it})?"), Thing::Value))
            }
            "os.path.exists" | "os.path.isfile" | "os.path.isdir" => {
                call.see_all();
                let method = match full.rsplit('.').next() {
                    Some("isfile") => "is_file",
                    Some("isdir") => "is_dir",
                    _ => "exists",
                };
                let path = first.ok_or("it names no path".to_owned());
                path.and_then(|it| self.path_of(it)).map(|it| {
                    (
                        format!("std::path::Path::new({it}).{method}()"),
                        Thing::Bool,
                    )
                })
            }
            "getpass.getpass" => {
                call.see_all();
                let prompt = first.map_or(Ok("\"\"".to_owned()), |it| self.value(it));
                prompt.map(|it| {
                    let rust =
                        format!("stratoscope::display::input_password({it}).unwrap_or_default()");
                    (rust, Thing::Text)
                })
            }
            _ => return None,
        };
        Some(made)
    }

    /// A path: a text that is written out, or a reference to one.
    fn path_of(&mut self, value: &Value) -> Result<String, Why> {
        let rust = self.value(value)?;
        Ok(match value.text() {
            Some(_) => rust,
            None => format!("&{rust}"),
        })
    }

    /// `int(input("How many? "))`; `None`: another call.
    pub(crate) fn number_asked_for(
        &mut self,
        name: &str,
        of: &Value,
    ) -> Option<Result<Typed, Why>> {
        let call = of.call()?;
        if call.function.name() != Some("input") || self.names.has("input") {
            return None;
        }
        let (number, kind) = match name {
            "int" => ("i64", Type::Int),
            "float" => ("f64", Type::Float),
            _ => return None,
        };
        let asked = self.asked_for(call);
        Some(asked.map(|(rust, _)| Typed::new(format!("{rust}.trim().parse::<{number}>()?"), kind)))
    }

    /// `input("Which text? ")`.
    pub(crate) fn asked_for(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let prompt = match call.arguments.first() {
            Some(prompt) => self.value(prompt)?,
            None => "\"\"".to_owned(),
        };
        let borrow = if prompt.starts_with('"') { "" } else { "&" };
        self.note(
            call.span,
            "`input` returns `None` if the front end cannot ask, and the text is empty then",
        );
        Ok((
            format!("input({borrow}{prompt}).unwrap_or_default()"),
            Thing::Text,
        ))
    }

    /// `os.environ.get("NAME", "default")`.
    fn environment(&mut self, call: &Call) -> Result<Made, Why> {
        let name = call.argument("key", 0).ok_or("it names no variable")?;
        let name = self.value(name)?;
        let rust = match call
            .argument("default", 1)
            .filter(|it| it.kind != Kind::None)
        {
            None => format!("std::env::var({name}).unwrap_or_default()"),
            Some(default) => {
                let default = self.typed(default)?;
                if default.kind != Type::Text {
                    return Err("a variable of the environment is a text".to_owned());
                }
                format!(
                    "std::env::var({name}).unwrap_or_else(|_| {}.to_string())",
                    default.rust
                )
            }
        };
        Ok((rust, Thing::Text))
    }

    /// `os.environ["NAME"]`; `None`: something else.
    pub(crate) fn of_environment(&mut self, object: &Value, index: &Value) -> Option<Typed> {
        let name = index.text().filter(|_| self.is_environment(object))?;
        let rust = format!("std::env::var({})?", text::text(name));
        Some(Typed::new(rust, Type::Text))
    }

    /// The seconds between two times: `time.time() - start`. `None`: another difference.
    pub(crate) fn seconds_between(&mut self, end: &Value, start: &Value) -> Option<Typed> {
        let is_clock = |value: &Value| {
            value
                .name()
                .is_some_and(|name| match self.things.get(name) {
                    Some(thing) => matches!(thing, Thing::Clock),
                    None => {
                        let kind = self.known.variables.get(name);
                        kind.is_some_and(|it| it.rsplit("::").next() == Some("Instant"))
                    }
                })
        };
        let now = self
            .names
            .called(end)
            .is_some_and(|full| CLOCKS.contains(&full.as_str()));
        if !is_clock(start) || !(now || is_clock(end)) {
            return None;
        }
        see_whole(end);
        let start = text::name(start.name()?);
        let rust = match end.name() {
            Some(end) => format!("{}.duration_since({start}).as_secs_f64()", text::name(end)),
            None => format!("{start}.elapsed().as_secs_f64()"),
        };
        Some(Typed::new(rust, Type::Float))
    }

    /// A text of the cell, or a list with one among others, as `predict` takes them. `None`: something else.
    pub(crate) fn texts_given(&mut self, value: &Value) -> Option<Result<String, Why>> {
        let is_text = |it: &Value| match &it.kind {
            Kind::Text(_) | Kind::Format(_) => true,
            Kind::Name(name) => matches!(self.things.get(name), Some(Thing::Text)),
            _ => false,
        };
        let many = match &value.kind {
            Kind::List(many) => many.as_slice(),
            _ => std::slice::from_ref(value),
        };
        if many.is_empty() || !many.iter().all(is_text) {
            return None;
        }
        let texts: Result<Vec<String>, Why> = (many.iter())
            .map(|it| Ok(format!("{}.to_string()", self.value(it)?)))
            .collect();
        Some(texts.map(|texts| match value.kind {
            Kind::List(_) => format!("[{}]", texts.join(", ")),
            _ => texts.join(", "),
        }))
    }

    /// What a progress bar goes over: `range(10)` of `tqdm(range(10), desc="sum")`. `None`: no progress bar.
    pub(crate) fn in_progress_bar(&mut self, items: &Value) -> Option<Value> {
        let bar = match items.name() {
            Some(name) => self.hub.bars.get(name)?.clone(),
            None => items.clone(),
        };
        let call = bar.call()?;
        let path = call.function.path().unwrap_or_default();
        let full = self.names.full(&call.function).unwrap_or_default();
        let is_range = path.last() == Some(&"trange");
        let is_bar = path.last() == Some(&"tqdm")
            || full.starts_with("tqdm.")
            || full.starts_with("fastprogress.");
        if !is_range && !is_bar {
            return None;
        }
        let inner = match is_range {
            false => call.argument("iterable", 0)?.clone(),
            true => {
                let mut range = call.clone();
                range.keywords.clear();
                range.function = Value {
                    span: call.function.span,
                    kind: Kind::Name("range".to_owned()),
                };
                Value {
                    span: bar.span,
                    kind: Kind::Call(Box::new(range)),
                }
            }
        };
        for keyword in call.unseen_keywords().cloned().collect::<Vec<_>>() {
            self.idle(
                keyword.span,
                "`track` shows the count and the time that is left",
            );
        }
        call.see_all();
        Some(inner)
    }

    /// A function that only sets seeds has no line: where it is called stands the seed.
    pub(crate) fn is_seeding(&mut self, it: &Function, span: CellSpan) -> bool {
        let Some(default) = self.sets_seeds(it) else {
            return false;
        };
        self.skip_comments(span.end);
        self.idle(span, "`seed` of `fit!` fixes the random numbers");
        self.hub.seed_functions.insert(it.name.clone(), default);
        true
    }

    /// A function whose statements only set seeds; its default for the seed. `None`: another function.
    fn sets_seeds(&self, it: &Function) -> Option<Option<Value>> {
        let is_seed = |statement: &Statement| match &statement.kind {
            StatementKind::Nothing | StatementKind::Import(_) => true,
            StatementKind::Expression(value) => {
                let full = self.names.called(value).unwrap_or_default();
                SEEDS.contains(&full.as_str())
                    || full.starts_with("torch.use_deterministic")
                    || full.contains("enable_op_determinism")
            }
            StatementKind::Assign(targets, _) => targets.iter().all(|target| match &target.kind {
                Kind::Index(object, _) => self.is_environment(object),
                _ => self.is_of_setup(target),
            }),
            StatementKind::If(branches) => branches
                .iter()
                .all(|(condition, _)| condition.as_ref().is_some_and(|it| self.asks(it).is_some())),
            _ => false,
        };
        let seeds = |statement: &Statement| match &statement.kind {
            StatementKind::Expression(value) => {
                let full = self.names.called(value).unwrap_or_default();
                SEEDS.contains(&full.as_str())
            }
            _ => false,
        };
        let (_, default) = it.parameters.first().filter(|_| it.parameters.len() == 1)?;
        let is_all = it.body.iter().any(seeds) && it.body.iter().all(is_seed);
        is_all.then(|| default.clone())
    }

    /// `set_seed(42)` of the cell's own function: the seed of `fit!`. `None`: another call.
    pub(crate) fn seeded_by_function(
        &mut self,
        call: &Call,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let default = self.hub.seed_functions.get(call.function.name()?)?.clone();
        let given = call
            .arguments
            .first()
            .or(call.keywords.first().map(|it| &it.value));
        call.see_all();
        let seed = given.cloned().or(default);
        Some(match seed {
            Some(seed) => self.value(&seed).map(|seed| {
                self.note(
                    span,
                    format!("`seed = {seed}` of `fit!`: the numbers are not Python's"),
                );
                self.seed = Some(seed);
            }),
            None => Err("it names no seed".to_owned()),
        })
    }

    /// Whether a value is a setting of a library of Python: `torch.backends.cudnn.benchmark`.
    pub(crate) fn is_of_setup(&self, target: &Value) -> bool {
        const SETTINGS: &[&str] = &[
            "torch.backends.",
            "matplotlib.pyplot.rcParams",
            "pandas.options.",
        ];
        let full = self.names.full(target).unwrap_or_default();
        SETTINGS.iter().any(|start| full.starts_with(start))
    }

    /// `os.environ`.
    pub(crate) fn is_environment(&self, object: &Value) -> bool {
        object.path().is_some_and(|path| path == ["os", "environ"])
    }

    /// `os.environ["TF_CONFIG"] = "…"` as `%env`.
    pub(crate) fn set_environment(
        &mut self,
        key: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Result<(), Why> {
        let name = key
            .text()
            .ok_or("the name of the variable is not written out")?;
        if OF_PYTHON.iter().any(|start| name.starts_with(start)) {
            see_whole(value);
            self.idle(span, "it sets up a library of Python");
            return Ok(());
        }
        let is_line = |text: &&str| !text.contains(['\n', '\r']) && text.trim() == *text;
        match value.text().filter(is_line) {
            Some(text) if self.depth == 0 && !self.has_code() => {
                self.push(format!("%env {name}={text}"), span);
                Ok(())
            }
            Some(text) => Err(format!(
                "the lines that begin with `%env` stand before the first line of Rust: write `%env {name}={text}` in a cell before"
            )),
            _ if name == "TF_CONFIG" => Err(
                "its text is not written out; set it by `%env TF_CONFIG=…`, without it a job of workers is SC0806"
                    .to_owned(),
            ),
            _ => Err(format!("its text is not written out; `%env {name}=…` sets it")),
        }
    }
}
