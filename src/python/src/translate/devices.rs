//! Questions about devices, memory and versions: `torch.cuda.is_available()`, `len(tf.config.list_physical_devices("GPU"))`.
//!
//! What asks for devices becomes the kernel's own table, `%device`. What only chooses one needs nothing here.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::control::only_configures;
use super::thing::Thing;
use super::trainer::part::Part;
use super::{Translator, Why};
use crate::model::{Kind, Piece, Statement, StatementKind, Value};

/// What a value asks for. Of several questions in one value the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asks {
    /// Nothing: a constant.
    Nothing,
    /// The version of a library.
    Version,
    /// The device that the cell has chosen.
    Device,
    /// How much memory is used.
    Memory,
    /// Which devices there are.
    Devices,
}

/// Calls of Python, by the beginnings of their full names, and what they ask for.
const QUESTIONS: &[(&str, Asks)] = &[
    ("torch.cuda.is_available", Asks::Devices),
    ("torch.cuda.device_count", Asks::Devices),
    ("torch.cuda.get_device", Asks::Devices),
    ("torch.cuda.current_device", Asks::Devices),
    ("torch.cuda.get_arch_list", Asks::Devices),
    ("torch.cuda.is_", Asks::Devices),
    ("torch.backends.mps.is_", Asks::Devices),
    ("torch.backends.cuda.is_built", Asks::Devices),
    ("torch.backends.cudnn.is_available", Asks::Devices),
    ("torch.mps.device_count", Asks::Devices),
    ("torch.xpu.is_available", Asks::Devices),
    ("tensorflow.config.list_", Asks::Devices),
    ("tensorflow.config.experimental.list_", Asks::Devices),
    ("tensorflow.config.get_visible_devices", Asks::Devices),
    (
        "tensorflow.config.experimental.get_device_details",
        Asks::Devices,
    ),
    ("tensorflow.test.is_gpu_available", Asks::Devices),
    ("tensorflow.test.gpu_device_name", Asks::Devices),
    ("tensorflow.test.is_built_with", Asks::Devices),
    (
        "tensorflow.python.client.device_lib.list_local_devices",
        Asks::Devices,
    ),
    ("jax.devices", Asks::Devices),
    ("jax.local_devices", Asks::Devices),
    ("torch.cuda.max_memory", Asks::Memory),
    ("torch.cuda.memory", Asks::Memory),
    ("torch.cuda.mem_get_info", Asks::Memory),
    ("torch.mps.current_allocated_memory", Asks::Memory),
    (
        "tensorflow.config.experimental.get_memory_info",
        Asks::Memory,
    ),
    (
        "tensorflow.config.experimental.get_memory_usage",
        Asks::Memory,
    ),
    ("psutil.virtual_memory", Asks::Memory),
    ("torch.device", Asks::Device),
    ("torch.version.", Asks::Version),
    ("torch.backends.cudnn.version", Asks::Version),
    ("tensorflow.version.", Asks::Version),
    ("tensorflow.sysconfig.get_build_info", Asks::Version),
    ("sys.version", Asks::Version),
    ("platform.python_version", Asks::Version),
];

/// Functions of Python that show or count what they get.
const PLAIN: &[&str] = &[
    "len",
    "str",
    "bool",
    "int",
    "float",
    "round",
    "repr",
    "type",
    "list",
    "min",
    "max",
    "sum",
    "print",
    "range",
    "enumerate",
    "sorted",
];

/// Where a model is, for a device that a cell chooses.
pub(crate) const ON_DEFAULT: &str = "models are on the default device, or where their strategy places them; `%device` shows and sets it";
/// Why the version of a library is not shown.
const NO_VERSION: &str = "libraries of Python have no version here";
/// What tells how much memory is used.
const OF_MEMORY: &str = "`memory_plan(&model, 16, 64)` computes the memory of training with batches of 16 texts of 64 tokens, and \
                         `%vars` shows the bytes of each variable";
/// Why a program does not divide by its devices.
const NO_CONDITION: &str = "which devices there are is no condition here: models are on the default device, and `MirroredStrategy::new()?` \
                            takes all of the best kind; write the lines that you want without the `if`";

fn kind_of(full: &str) -> Option<Asks> {
    if full.rsplit('.').next() == Some("__version__") {
        return Some(Asks::Version);
    }
    let found = QUESTIONS.iter().find(|(start, _)| full.starts_with(start));
    found.map(|(_, asks)| *asks)
}

impl Translator<'_> {
    /// What a value asks for; `None` where it has something else too.
    pub(crate) fn asks(&self, value: &Value) -> Option<Asks> {
        let all = |values: &[&Value]| {
            let mut values = values.iter();
            values.try_fold(Asks::Nothing, |asks, it| Some(asks.max(self.asks(it)?)))
        };
        if let Some(asks) = self.names.full(value).and_then(|full| kind_of(&full)) {
            return Some(asks);
        }
        match &value.kind {
            Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => {
                Some(Asks::Nothing)
            }
            Kind::Format(pieces) => {
                let values = pieces.iter().filter_map(|piece| match piece {
                    Piece::Value(value, _) => Some(value),
                    Piece::Text(_) => None,
                });
                all(&values.collect::<Vec<_>>())
            }
            Kind::List(values) | Kind::Tuple(values) => all(&values.iter().collect::<Vec<_>>()),
            Kind::Unary(_, it) => self.asks(it),
            Kind::Binary(a, _, b) | Kind::Index(a, b) => all(&[&**a, &**b]),
            Kind::Choice(parts) => all(&parts.iter().collect::<Vec<_>>()),
            Kind::Attribute(object, _) => self.asks(object).filter(|it| *it > Asks::Nothing),
            Kind::Comprehension(it) => self.asks(&it.items).filter(|it| *it > Asks::Nothing),
            Kind::Name(name) => self.asks_by_name(name),
            Kind::Call(call) => {
                let arguments = || {
                    let named = call.keywords.iter().map(|it| &it.value);
                    all(&call.arguments.iter().chain(named).collect::<Vec<_>>())
                };
                if let Some(full) = self.names.full(&call.function) {
                    return kind_of(&full);
                }
                match &call.function.kind {
                    Kind::Name(name) if PLAIN.contains(&name.as_str()) => arguments(),
                    // `"{}".format(…)`, `get_device_name(0).upper()`.
                    Kind::Attribute(object, _) => Some(self.asks(object)?.max(arguments()?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn asks_by_name(&self, name: &str) -> Option<Asks> {
        if let Some(asks) = self.hub.asked.get(name) {
            return Some(*asks);
        }
        match self.things.get(name) {
            Some(Thing::Part(part)) => match **part {
                Part::Nothing("a device") => Some(Asks::Device),
                _ => None,
            },
            // A cell before has chosen it, which left no variable.
            None if matches!(name, "device" | "DEVICE") && !self.is_of_notebook(name) => {
                Some(Asks::Device)
            }
            _ => None,
        }
    }

    fn is_of_notebook(&self, name: &str) -> bool {
        self.known.variables.contains_key(name) || self.names.has(name)
    }

    /// A statement that only asks for devices, memory or versions; `None`: another one.
    pub(crate) fn about_devices(&mut self, statement: &Statement) -> Option<Result<(), Why>> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Expression(value) => {
                let full = value
                    .call()
                    .and_then(|call| self.names.full(&call.function));
                let full = full.unwrap_or_default();
                if let Some(done) = self.sets_device(&full, value, span) {
                    return Some(done);
                }
                let asks = self.asks(value).filter(|it| *it > Asks::Nothing)?;
                see_whole(value);
                self.answer_question(asks, span);
                Some(Ok(()))
            }
            StatementKind::Assign(targets, value) => {
                let [target] = targets.as_slice() else {
                    return None;
                };
                let name = target.name()?.to_owned();
                let asks = self.asks(value).filter(|it| *it > Asks::Nothing)?;
                Some(self.assign_question(&name, value, asks, span))
            }
            StatementKind::Assert(condition, _) => {
                let asks = self.asks(condition).filter(|it| *it > Asks::Version)?;
                see_whole(condition);
                self.answer_question(asks, span);
                Some(Ok(()))
            }
            StatementKind::If(branches) if !branches.iter().all(|it| only_configures(&it.1)) => {
                let mut asks = Asks::Nothing;
                for condition in branches.iter().filter_map(|it| it.0.as_ref()) {
                    asks = asks.max(self.asks(condition)?);
                }
                let bodies: Vec<&[Statement]> = branches.iter().map(|it| &it.1[..]).collect();
                (asks > Asks::Version).then(|| self.questions_in(statement, &bodies))
            }
            StatementKind::For(target, items, body) if !only_configures(body) => {
                self.asks(items).filter(|it| *it > Asks::Version)?;
                let before = self.hub.asked.clone();
                target.visit(&mut |it| {
                    let name = it.name().map(str::to_owned);
                    self.hub
                        .asked
                        .extend(name.map(|name| (name, Asks::Devices)));
                });
                let done = self.questions_in(statement, &[body]);
                self.hub.asked = before;
                Some(done)
            }
            _ => None,
        }
    }

    /// The blocks of a condition or a loop over devices, if they do nothing but show and choose them.
    fn questions_in(&mut self, statement: &Statement, blocks: &[&[Statement]]) -> Result<(), Why> {
        let mut shown = None;
        for inner in blocks.iter().flat_map(|block| block.iter()) {
            match self.is_about_devices(inner) {
                Some(asks) => shown = shown.max(Some(asks)),
                None => return Err(NO_CONDITION.to_owned()),
            }
        }
        statement.values().into_iter().for_each(see_whole);
        for block in blocks {
            crate::model::each_value(block, &mut see_whole);
        }
        for inner in blocks.iter().flat_map(|block| block.iter()) {
            if let StatementKind::Assign(targets, _) = &inner.kind
                && let Some(name) = targets.first().and_then(Value::name)
                && !matches!(self.things.get(name), Some(Thing::Model(_)))
            {
                let part = Part::Nothing("a device");
                self.things
                    .insert(name.to_owned(), Thing::Part(Box::new(part)));
            }
        }
        self.skip_comments(statement.span.end);
        match shown {
            Some(Asks::Devices) => self.answer_question(Asks::Devices, statement.span),
            _ => self.idle(statement.span, ON_DEFAULT),
        }
        Ok(())
    }

    /// What a statement in such a block shows; `None`: it does something else.
    fn is_about_devices(&self, statement: &Statement) -> Option<Asks> {
        match &statement.kind {
            StatementKind::Nothing | StatementKind::Import(_) => Some(Asks::Nothing),
            // A program that ends without a GPU: here it computes on the processor.
            StatementKind::Raise => Some(Asks::Devices),
            StatementKind::Expression(value) => {
                let call = value.call()?;
                let is_print = call.function.name() == Some("print");
                if is_print {
                    // Only texts: the answer to the condition.
                    return self.asks(value).map(|it| it.max(Asks::Devices));
                }
                let full = self.names.full(&call.function).unwrap_or_default();
                let is_setup = [
                    "torch.cuda.manual_seed",
                    "torch.cuda.empty_cache",
                    "torch.backends.",
                ];
                if is_setup.iter().any(|start| full.starts_with(start)) {
                    return Some(Asks::Nothing);
                }
                let moves = ["cuda", "to", "set_memory_growth"].iter().any(|it| {
                    value.method(it).is_some_and(|(object, _)| {
                        self.is_model(object) || *it == "set_memory_growth"
                    })
                });
                moves.then_some(Asks::Nothing)
            }
            StatementKind::Assign(targets, value) => {
                let [target] = targets.as_slice() else {
                    return None;
                };
                let name = target.name()?;
                let is_device = name.to_lowercase().contains("device");
                if is_device && self.asks(value).is_some() {
                    return Some(Asks::Nothing);
                }
                let wraps = self
                    .names
                    .called(value)
                    .is_some_and(|full| full.ends_with("DataParallel"));
                let moves = ["cuda", "to"].iter().any(|it| value.method(it).is_some());
                let inner = value.call().and_then(|call| match &call.function.kind {
                    Kind::Attribute(object, _) if moves => object.name(),
                    _ => call.arguments.first().and_then(Value::name),
                });
                ((wraps || moves) && inner == Some(name)).then_some(Asks::Nothing)
            }
            StatementKind::If(_) | StatementKind::For(..) => {
                let mut shown = Asks::Nothing;
                for value in statement.values() {
                    shown = shown.max(self.asks(value)?);
                }
                let mut inner = statement.blocks().into_iter().flatten();
                inner.try_fold(Asks::Nothing, |asks, it| {
                    Some(asks.max(self.is_about_devices(it)?))
                })
            }
            _ => None,
        }
    }

    pub(crate) fn is_model(&self, value: &Value) -> bool {
        match value.name().map(|name| (name, self.things.get(name))) {
            Some((_, Some(Thing::Model(_) | Thing::Layers(..)))) => true,
            Some((name, None)) => name.contains("model") || name.contains("net"),
            _ => false,
        }
    }

    /// `gpus = tf.config.list_physical_devices("GPU")`, `device = torch.device("cuda")`, `version = torch.__version__`.
    fn assign_question(
        &mut self,
        name: &str,
        value: &Value,
        asks: Asks,
        span: CellSpan,
    ) -> Result<(), Why> {
        see_whole(value);
        self.keeps_outside(name)?;
        let is_choice = self.is_choice(value);
        if !is_choice && asks != Asks::Device {
            self.hub.asked.insert(name.to_owned(), asks);
            self.things.insert(name.to_owned(), Thing::Folded);
        }
        match asks {
            Asks::Devices if !is_choice => {
                self.note(
                    span,
                    "`devices()` lists the devices; a strategy takes all of the best kind",
                );
                Ok(())
            }
            Asks::Memory => {
                self.idle(span, OF_MEMORY);
                Ok(())
            }
            Asks::Version => {
                self.idle(span, NO_VERSION);
                Ok(())
            }
            _ => self.nothing(name, "a device", span, ON_DEFAULT),
        }
    }

    /// Whether a value is one of two names of devices.
    fn is_choice(&self, value: &Value) -> bool {
        let mut found = matches!(value.kind, Kind::Text(_));
        value.visit(&mut |inner| found |= matches!(inner.kind, Kind::Choice(_)));
        found
    }

    fn answer_question(&mut self, asks: Asks, span: CellSpan) {
        match asks {
            Asks::Devices => {
                const TABLES: [&str; 2] = ["%device", "display(&devices());"];
                let mut lines = self.translation.lines.iter();
                if lines.any(|line| TABLES.contains(&line.text.as_str())) {
                    self.idle(span, "the table has all devices");
                    return;
                }
                let table = TABLES[usize::from(self.has_code() || self.depth > 0)];
                self.push(table, span);
                self.note(
                    span,
                    "the table has all devices of the machine, and tells which is the default one; in Rust, `devices()` is their list",
                );
            }
            Asks::Memory => {
                self.asked_memory = self.asked_memory.or(Some(span));
                self.idle(span, OF_MEMORY);
            }
            Asks::Version => self.idle(span, NO_VERSION),
            _ => self.idle(span, ON_DEFAULT),
        }
    }

    /// A cell that only asks for the memory: the variables with their bytes, a line that stands alone.
    pub(crate) fn show_memory(&mut self) {
        if let Some(span) = self.asked_memory
            && self.translation.left.is_empty()
            && self.translation.free.is_empty()
            && self.translation.lines.iter().all(|line| line.is_comment)
        {
            self.translation.lines.clear();
            self.push("%vars", span);
        }
    }
}
