//! How Keras makes layers, losses, optimizers and strategies, and how each is made here.

use super::calls::{CallArgument, slice};
use super::plain::{self, Plain};
use super::readers;
use crate::rules::STRATEGIES;
use crate::{CellSpan, Edit, Fix, Place, arguments};
use stratoscope_render::text;

/// What a name of the prelude is made by: its operands in their order, then methods.
struct Builder {
    name: &'static str,
    /// `Name::new(…)`, not `Name(…)`.
    is_new: bool,
    operands: &'static [&'static str],
    methods: &'static [&'static str],
}

const BUILDERS: &[Builder] = &[
    Builder {
        name: "Dense",
        is_new: false,
        operands: &["units"],
        methods: &["activation", "input_shape", "seed"],
    },
    Builder {
        name: "Dropout",
        is_new: false,
        operands: &["rate"],
        methods: &["input_shape", "seed"],
    },
    Builder {
        name: "Embedding",
        is_new: false,
        operands: &["input_dim", "output_dim"],
        methods: &["input_shape", "seed"],
    },
    Builder {
        name: "Flatten",
        is_new: false,
        operands: &[],
        methods: &["input_shape"],
    },
    Builder {
        name: "EarlyStopping",
        is_new: true,
        operands: &[],
        methods: &["monitor", "patience", "min_delta", "restore_best_weights"],
    },
    Builder {
        name: "GradualUnfreezing",
        is_new: true,
        operands: &[],
        methods: &["every"],
    },
];

/// Functions of the prelude whose operands have no names.
const FUNCTIONS: [&str; 28] = [
    "arrow",
    "bert_warmup",
    "constant",
    "cpu",
    "csv",
    "cuda",
    "debian_entities",
    "debian_pairs",
    "debian_questions",
    "debian_sections",
    "from_arrays",
    "from_examples",
    "from_features",
    "from_labelled",
    "from_pairs",
    "from_pretrained",
    "from_rows",
    "from_texts",
    "jsonl",
    "logical",
    "make_classification",
    "make_regression",
    "parquet",
    "set_global_policy",
    "sleep",
    "tsv",
    "warmup_linear",
    "wgpu",
];

/// Every word that a call of these has.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let builders = BUILDERS.iter().map(|builder| builder.name);
    let losses = ["Crossentropy", "MeanSquaredError"];
    builders.chain(FUNCTIONS).chain(losses)
}

/// Whether the name makes one of these, where it stands without `::new`.
pub(super) fn is_one(name: &str) -> bool {
    is_loss(name) || arguments::optimizer(name).is_some() || STRATEGIES.contains(&name)
}

fn is_loss(name: &str) -> bool {
    let is_named_so = name.ends_with("Crossentropy") || name == "MeanSquaredError";
    is_named_so && arguments::LOSS_TYPES.contains(&name)
}

/// Why a call of Keras's is no call here.
pub(super) fn reason(name: &str) -> &'static str {
    if is_loss(name) {
        "a loss is a value, not a call: its settings are fields in braces"
    } else if arguments::optimizer(name).is_some() {
        "an optimizer is created by `::new` with its rate; all other settings are methods"
    } else if STRATEGIES.contains(&name) {
        "a strategy is created by one of its functions, which finds the devices and can fail"
    } else {
        "Rust has no named arguments"
    }
}

/// How the call is written here, as its title, and the edits; `None` where it is right or not known.
pub(super) fn written(text: &str, plain: &Plain) -> Option<Fix> {
    let name = plain.name.as_str();
    let is_python = |receiver: CellSpan| {
        let receiver = slice(text, receiver);
        matches!(
            receiver.split('.').next(),
            Some("tf" | "keras" | "layers" | "optimizers" | "losses")
        )
    };
    // `Adam::new(…)` of a path is named `new`; a method of that name is somebody else's.
    if plain.receiver.is_some_and(|receiver| !is_python(receiver)) {
        return None;
    }
    let whole = |written: String, tried: bool| {
        let mark = if tried && !plain.is_tried { "?" } else { "" };
        Some(Fix {
            kind: crate::FixKind::Change,
            title: text::excerpt(&written, 76),
            edits: vec![Edit {
                place: Place::Span(plain.span),
                replacement: format!("{written}{mark}"),
            }],
        })
    };
    if plain.path.is_none() {
        if is_loss(name) {
            return whole(loss(plain), false);
        }
        if STRATEGIES.contains(&name) {
            return whole(strategy(plain)?, true);
        }
        if let Some(optimizer) = arguments::optimizer(name) {
            let methods = optimizer.arguments.iter().map(|argument| argument.name);
            let methods: Vec<&str> = methods.collect();
            return whole(built(plain, true, &["learning_rate"], &methods), false);
        }
        let builder = BUILDERS.iter().find(|builder| builder.name == name);
        if let Some(builder) = builder
            && !plain.named.is_empty()
        {
            let written = built(plain, builder.is_new, builder.operands, builder.methods);
            return whole(written, false);
        }
    }
    let is_early = plain.path.as_deref() == Some("EarlyStopping") && name == "new";
    if is_early && !plain.named.is_empty() {
        let builder = BUILDERS
            .iter()
            .find(|builder| builder.name == "EarlyStopping")?;
        let written = built(plain, true, builder.operands, builder.methods);
        return whole(written.replacen("new::new", "EarlyStopping::new", 1), false);
    }
    if let Some(fix) = readers::with_columns(plain).filter(|_| !plain.named.is_empty()) {
        return Some(fix);
    }
    let is_function = FUNCTIONS.contains(&name) && !plain.named.is_empty();
    is_function.then(|| plain::without_names(text, plain))
}

/// `Dense(10).activation("relu")`.
fn built(plain: &Plain, is_new: bool, operands: &[&str], methods: &[&str]) -> String {
    let position = |argument: &CallArgument| {
        let name = match argument.name.as_str() {
            "lr" | "rate" if operands == ["learning_rate"] => "learning_rate",
            name => name,
        };
        operands.iter().position(|operand| *operand == name)
    };
    let mut values: Vec<String> = plain.operands.iter().map(|it| it.text.clone()).collect();
    let mut placed: Vec<(usize, &str)> = plain
        .named
        .iter()
        .filter_map(|argument| Some((position(argument)?, argument.value.as_str())))
        .collect();
    placed.sort_by_key(|(position, _)| *position);
    values.extend(placed.into_iter().map(|(_, value)| value.to_owned()));
    if values.is_empty() && operands == ["learning_rate"] {
        values.push("1e-3".to_owned());
    }
    let mut written = match is_new {
        true => format!("{}::new({})", plain.name, values.join(", ")),
        false => format!("{}({})", plain.name, values.join(", ")),
    };
    for argument in &plain.named {
        let is_flag = matches!(argument.value.as_str(), "True" | "False");
        let value = match is_flag {
            true => argument.value.to_lowercase(),
            false => argument.value.clone(),
        };
        if position(argument).is_none() && methods.contains(&argument.name.as_str()) {
            written += &format!(".{}({value})", argument.name);
        }
    }
    written
}

/// `SparseCategoricalCrossentropy { from_logits: true }`.
fn loss(plain: &Plain) -> String {
    let name = &plain.name;
    if name == "MeanSquaredError" {
        return name.clone();
    }
    let value = |wanted: &str| {
        let argument = plain
            .named
            .iter()
            .find(|argument| argument.name == wanted)?;
        Some(argument.value.to_lowercase())
    };
    let first = plain
        .operands
        .first()
        .map(|operand| operand.text.to_lowercase());
    let logits = value("from_logits").or(first);
    let logits = logits.unwrap_or_else(|| "true".to_owned());
    match value("label_smoothing") {
        // The categorical loss smooths labels, and takes class numbers as the sparse one does.
        Some(share) => {
            let name = name.trim_start_matches("Sparse");
            format!("{name} {{ from_logits: {logits} }}.label_smoothing({share})")
        }
        None => format!("{name} {{ from_logits: {logits} }}"),
    }
}

/// `MirroredStrategy::on([cpu(0), cpu(1)])`; `None` where it is not known which devices are meant.
fn strategy(plain: &Plain) -> Option<String> {
    let name = plain.name.as_str();
    let named = plain.named.iter();
    let named = named
        .filter(|argument| {
            matches!(
                argument.name.as_str(),
                "devices" | "device" | "compute_devices"
            )
        })
        .map(|argument| argument.value.as_str());
    let operands = plain.operands.iter().map(|operand| operand.text.as_str());
    let Some(given) = operands.chain(named).next() else {
        return Some(match name {
            "MirroredStrategy" => "MirroredStrategy::new()".to_owned(),
            "OneDeviceStrategy" => "OneDeviceStrategy::new(cpu(0))".to_owned(),
            "CentralStorageStrategy" => "CentralStorageStrategy::logical(2)".to_owned(),
            "ParameterServerStrategy" => "ParameterServerStrategy::logical(2, 1)".to_owned(),
            "MultiWorkerMirroredStrategy" => "MultiWorkerMirroredStrategy::new()".to_owned(),
            "PipelineStrategy" => "PipelineStrategy::logical(2)".to_owned(),
            _ => "TpuStrategy::simulated()".to_owned(),
        });
    };
    let devices: Option<Vec<String>> = given
        .trim_matches(['[', ']', '&'])
        .split(',')
        .map(str::trim)
        .filter(|device| !device.is_empty())
        .map(device)
        .collect();
    let devices = devices?;
    match (name, devices.as_slice()) {
        ("OneDeviceStrategy", [device]) => Some(format!("OneDeviceStrategy::new({device})")),
        ("MirroredStrategy" | "CentralStorageStrategy" | "PipelineStrategy", [_, ..]) => {
            Some(format!("{name}::on([{}])", devices.join(", ")))
        }
        _ => None,
    }
}

/// `cpu(0)` of `"/CPU:0"`, `"cpu:0"`, `"/job:localhost/device:CPU:0"`.
fn device(given: &str) -> Option<String> {
    if !given.starts_with('"') {
        // A value that is a device already.
        return given.ends_with(')').then(|| given.to_owned());
    }
    let name = given.trim_matches('"').to_ascii_lowercase();
    let name = name.rsplit('/').next()?.trim_start_matches("device:");
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    let number: usize = number.parse().ok()?;
    match kind {
        "cpu" => Some(format!("cpu({number})")),
        "cuda" => Some(format!("cuda({number})")),
        "gpu" | "wgpu" => Some(format!("wgpu({number})")),
        _ => None,
    }
}
