//! How Keras makes layers, losses, optimizers and strategies, and how each is made here.

use super::calls::slice;
use super::plain::{self, Plain};
use super::{readers, signatures};
use crate::arguments::{Form, Signature};
use crate::rules::STRATEGIES;
use crate::{CellSpan, Edit, Fix, Place, arguments};
use stratoscope_render::text;

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
    let signatures = arguments::signatures().map(|it| it.name);
    signatures.chain(FUNCTIONS)
}

/// Whether the name makes one of these, where it stands without `::new`.
pub(super) fn is_one(name: &str) -> bool {
    let is_called = |it: &Signature| it.form != Form::Function || it.name != it.written;
    is_loss(name)
        || arguments::optimizer(name).is_some()
        || STRATEGIES.contains(&name)
        || arguments::signature(name).is_some_and(is_called)
}

fn is_loss(name: &str) -> bool {
    arguments::LOSS_TYPES.contains(&name)
}

/// Why a call of Keras's is no call here.
pub(super) fn reason(name: &str) -> &'static str {
    if is_loss(name) {
        "a loss is a value, not a call: its settings are fields in braces"
    } else if arguments::optimizer(name).is_some() {
        "an optimizer is created by `::new` with its rate; all other settings are methods"
    } else if arguments::signature(name).is_some_and(|it| it.name != it.written) {
        "it has another name here"
    } else if arguments::signature(name).is_some_and(|it| it.form == Form::New) {
        "it is created by `::new`; its settings are methods"
    } else if arguments::signature(name).is_some_and(|it| it.form == Form::NewOrError) {
        "it is created by `::new`, which can fail"
    } else if STRATEGIES.contains(&name) {
        "a strategy is created by one of its functions, which finds the devices and can fail"
    } else {
        "Rust has no named arguments"
    }
}

/// How a call is written here.
pub(super) struct Built {
    /// The call as its title, and the edits; without any, the call would mean something else.
    pub fix: Fix,
    /// What is said about values without a place.
    pub notes: Vec<String>,
}

/// How the call is written here; `None` where it is right or not known.
pub(super) fn written(text: &str, plain: &Plain) -> Option<Built> {
    let name = plain.name.as_str();
    let is_python = |receiver: CellSpan| {
        let receiver = slice(text, receiver);
        matches!(
            receiver.split('.').next(),
            Some(
                "tf" | "keras"
                    | "layers"
                    | "optimizers"
                    | "losses"
                    | "metrics"
                    | "callbacks"
                    | "schedules"
            )
        )
    };
    // `Adam::new(…)` of a path is named `new`; a method of that name is somebody else's.
    if plain.receiver.is_some_and(|receiver| !is_python(receiver)) {
        return None;
    }
    let whole = |written: &str, tried: bool| {
        let mark = if tried && !plain.is_tried { "?" } else { "" };
        Fix {
            kind: crate::FixKind::Change,
            title: text::excerpt(written, 100),
            edits: vec![Edit {
                place: Place::Span(plain.span),
                replacement: format!("{written}{mark}"),
            }],
        }
    };
    if plain.path.is_none() && STRATEGIES.contains(&name) {
        return Some(Built {
            fix: whole(&strategy(plain)?, true),
            notes: Vec::new(),
        });
    }
    if let Some(signature) = signature_of(plain) {
        let operands: Vec<&str> = plain.operands.iter().map(|it| it.text.as_str()).collect();
        let named = plain.named.iter();
        let named: Vec<(&str, &str)> = named
            .map(|it| (it.name.as_str(), it.value.as_str()))
            .collect();
        let found = signatures::written(signature, &operands, &named);
        // `Dataset::from_arrays(…)`
        let path = plain.path.as_deref().filter(|_| name != "new");
        let call = match path {
            Some(path) => format!("{path}::{}", found.text),
            None => found.text,
        };
        let mut fix = whole(&call, signature.form == Form::NewOrError);
        if !found.is_whole {
            fix.edits.clear();
        }
        return Some(Built {
            fix,
            notes: found.notes,
        });
    }
    if let Some(fix) = readers::with_columns(plain).filter(|_| !plain.named.is_empty()) {
        return Some(Built {
            fix,
            notes: Vec::new(),
        });
    }
    let is_function = FUNCTIONS.contains(&name) && !plain.named.is_empty();
    is_function.then(|| {
        let mut fix = plain::without_names(text, plain);
        if plain.operands.len() + plain.named.len() > 1 {
            // Their order is not that of the names.
            fix.edits.clear();
        }
        Built {
            fix,
            notes: Vec::new(),
        }
    })
}

/// The signature of a call that is not written as it should be.
fn signature_of(plain: &Plain) -> Option<&'static Signature> {
    let name = plain.name.as_str();
    let of_path = plain.path.as_deref();
    let (signature, is_new) = match of_path {
        Some(path) if name == "new" => (arguments::signature(path)?, true),
        _ => (arguments::signature(name)?, false),
    };
    let (given, takes) = (plain.operands.len(), signature.places.len());
    let is_right = match (signature.form, is_new) {
        // The optimizers' own chain is read elsewhere.
        (_, true) if arguments::optimizer(signature.written).is_some() => true,
        (Form::New | Form::NewOrError, true) => {
            plain.named.is_empty() && given <= takes.max(1) && signature.name == signature.written
        }
        (_, true) => true,
        (Form::New | Form::NewOrError | Form::Braces, false) => of_path.is_some(),
        (Form::Function, false) => plain.named.is_empty() && signature.name == signature.written,
    };
    (!is_right).then_some(signature)
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
