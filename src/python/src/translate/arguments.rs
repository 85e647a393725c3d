//! No argument is dropped without a word. What a translated statement has not looked at is named: as an argument that sets
//! nothing here, or as one that is left out.

use stratoscope_diagnostics::CellSpan;

use super::thing::Thing;
use super::{Translator, Why};
use crate::Idle;
use crate::model::{Call, Keyword, Kind, Statement, StatementKind, Value};

/// Arguments that set nothing here, whatever call they stand in.
const IDLE: &[(&[&str], &str)] = &[
    (&["name"], "names are not stored"),
    (&["verbose"], "it prints nothing of its own"),
    (
        &["num_parallel_calls", "deterministic"],
        "`fit!` reads ahead by itself",
    ),
    (
        &[
            "batched",
            "num_proc",
            "load_from_cache_file",
            "keep_in_memory",
            "desc",
        ],
        "`fit!` tokenizes all texts at once and caches the tokens",
    ),
    (
        &["remove_columns", "columns", "label_cols", "collate_fn"],
        "`fit!` takes the texts and labels of the data set",
    ),
    (
        &["workers", "use_multiprocessing", "max_queue_size"],
        "`fit!` has no queue of Python processes",
    ),
    (&["validation_batch_size"], "validation uses `batch_size`"),
    (
        &["return_dict"],
        "`evaluate!` returns all values with their names",
    ),
    (
        &[
            "cache_dir",
            "trust_remote_code",
            "token",
            "use_auth_token",
            "download_mode",
        ],
        "downloads are not set here",
    ),
    (
        &[
            "from_pt",
            "from_tf",
            "ignore_mismatched_sizes",
            "low_cpu_mem_usage",
            "use_safetensors",
        ],
        "weights are read from safetensors, and a head of another size is new",
    ),
    (
        &["use_fast", "do_lower_case", "clean_up_tokenization_spaces"],
        "the files of the checkpoint set up its tokenizer",
    ),
    (
        &[
            "return_tensors",
            "return_attention_mask",
            "return_token_type_ids",
            "add_special_tokens",
        ],
        "`fit!` makes the tensors",
    ),
    (
        &["padding", "pad_to_max_length"],
        "`fit!` pads each batch to its longest text",
    ),
    (
        &["training"],
        "`fit!` trains, `evaluate!` and `predict` do not",
    ),
    (
        &["as_supervised", "shuffle_files"],
        "a data set has texts and labels, in the order of its files",
    ),
    (&["flush"], "the output is not buffered"),
];

/// Why an argument sets nothing here; `None` where it would.
pub(crate) fn without_effect(name: &str, value: &Value) -> Option<&'static str> {
    match (name, &value.kind) {
        (_, Kind::None) => Some("`None` is the default"),
        ("truncation", Kind::Bool(true)) => Some("`fit!` cuts at `max_length`"),
        ("truncation", Kind::Text(it)) if it == "longest_first" => {
            Some("`fit!` cuts at `max_length`")
        }
        ("reshuffle_each_iteration", Kind::Bool(true)) => {
            Some("`fit!` shuffles in a new order in every epoch")
        }
        ("reshuffle_each_iteration", Kind::Bool(false)) => {
            Some("`fit!` shuffles in a new order in every epoch, unless it has `shuffle = false`")
        }
        ("dtype", _) if is_float(value) => Some("numbers are float32"),
        _ => IDLE
            .iter()
            .find(|(names, _)| names.contains(&name))
            .map(|(_, why)| *why),
    }
}

/// `"float32"`, `tf.float32`, `np.float64`.
pub(crate) fn is_float(value: &Value) -> bool {
    last_name(value).is_some_and(|name| matches!(name, "float32" | "float64" | "float"))
}

/// `"int32"`, `np.int64`.
pub(crate) fn is_int(value: &Value) -> bool {
    last_name(value).is_some_and(|name| name.starts_with("int") || name.starts_with("uint"))
}

fn last_name(value: &Value) -> Option<&str> {
    value.text().or_else(|| value.path()?.last().copied())
}

impl Translator<'_> {
    /// Refuses a statement with `*values` or `**options`: what they hold is not known.
    pub(crate) fn written_out(&self, statement: &Statement) -> Result<(), Why> {
        let mut found = None;
        for value in statement.values() {
            value.visit(&mut |inner| {
                let call = inner.call();
                let call = call.filter(|it| it.starred.is_some() && !self.calls_with_encodings(it));
                found = found.or(call);
            });
        }
        let Some((call, span)) = found.and_then(|call| Some((call, call.starred?))) else {
            return Ok(());
        };
        let missing = call.spread.as_deref().and_then(|name| self.missing(name));
        let missing = missing.or_else(|| self.inputs_of_another_cell(call));
        Err(missing.unwrap_or_else(|| format!("`{}` is not written out", self.source(span))))
    }

    /// The statement with the items of a dictionary of the cell in place of `**options`.
    pub(crate) fn spread_out(&self, statement: &Statement) -> Option<Statement> {
        let mut has_spread = false;
        for value in statement.values() {
            value.visit(&mut |inner| {
                has_spread |= inner.call().is_some_and(|call| call.spread.is_some());
            });
        }
        if !has_spread {
            return None;
        }
        let mut statement = statement.clone();
        let (StatementKind::Assign(_, value) | StatementKind::Expression(value)) =
            &mut statement.kind
        else {
            return None;
        };
        let mut is_changed = false;
        value.change_calls(&mut |call| {
            let name = call.spread.as_deref();
            if let Some(Thing::Dict(items)) = name.and_then(|name| self.things.get(name)) {
                let given = items.iter().map(|(name, value)| Keyword {
                    name: name.clone(),
                    name_span: value.span,
                    span: value.span,
                    drop_span: value.span,
                    value: value.clone(),
                });
                call.keywords.extend(given);
                (call.starred, call.spread) = (None, None);
                is_changed = true;
            }
        });
        is_changed.then_some(statement)
    }

    /// Names the arguments of a translated statement that nobody has looked at.
    pub(crate) fn account(&mut self, statement: &Statement) {
        let mut values = statement.values();
        if let StatementKind::Function(it) = &statement.kind {
            values.clear();
            for decorator in &it.decorators {
                self.decorator(decorator);
            }
        }
        for value in values {
            self.account_value(value);
        }
    }

    /// The same for a value.
    pub(crate) fn account_value(&mut self, value: &Value) {
        let mut calls: Vec<&Call> = Vec::new();
        value.visit(&mut |inner| calls.extend(inner.call()));
        let mut named: Vec<CellSpan> = Vec::new();
        for call in calls {
            let is_named = |it: &CellSpan| it.start <= call.span.start && call.span.end <= it.end;
            if named.iter().any(is_named) || call.function.name() == Some("super") {
                continue;
            }
            for keyword in call.unseen_keywords() {
                named.push(keyword.span);
                match without_effect(&keyword.name, &keyword.value) {
                    Some(why) => self.idle(keyword.span, why),
                    None => {
                        let why = format!("`{}` has no `{}` here", self.callee(call), keyword.name);
                        self.leave(keyword.span, why);
                    }
                }
            }
            for argument in call.unseen_arguments() {
                named.push(argument.span);
                match argument.kind {
                    Kind::None => self.idle(argument.span, "`None` is the default"),
                    _ => {
                        let why = format!("`{}` does not take it here", self.callee(call));
                        self.leave(argument.span, why);
                    }
                }
            }
            call.see_all();
        }
    }

    /// The last name of what is called.
    fn callee(&self, call: &Call) -> String {
        match &call.function.kind {
            Kind::Name(name) | Kind::Attribute(_, name) => name.clone(),
            _ => self.source(call.function.span).to_owned(),
        }
    }

    fn decorator(&mut self, decorator: &Value) {
        let of = decorator.call().map_or(decorator, |call| &call.function);
        match self.names.full(of).as_deref() {
            Some("tensorflow.function") => {
                self.idle(decorator.span, "nothing is traced into a graph here");
            }
            _ => self.leave(
                decorator.span,
                "a decorator of Python has no counterpart here",
            ),
        }
    }

    /// An argument, or a step, that sets nothing here.
    pub(crate) fn idle(&mut self, span: CellSpan, why: impl Into<String>) {
        let source = self.source(span);
        // Of a block its first line.
        let first = source.split(":\n").next().unwrap_or_default();
        let words: Vec<&str> = first.split_whitespace().collect();
        let idle = Idle {
            line: self.line(span.start),
            text: words.join(" "),
            why: why.into(),
        };
        if !self.translation.idle.contains(&idle) {
            self.translation.idle.push(idle);
        }
    }

    /// All arguments of a call set nothing here.
    pub(crate) fn idle_arguments(&mut self, call: &Call, why: &str) {
        call.see_all();
        let named = call.keywords.iter().map(|keyword| keyword.span);
        let spans: Vec<CellSpan> = call
            .arguments
            .iter()
            .map(|value| value.span)
            .chain(named)
            .collect();
        for span in spans {
            self.idle(span, why);
        }
    }
}

/// All calls in a value count as looked at: a note tells what becomes of the whole.
pub(crate) fn see_whole(value: &Value) {
    value.visit(&mut |inner| {
        if let Some(call) = inner.call() {
            call.see_all();
        }
    });
}
