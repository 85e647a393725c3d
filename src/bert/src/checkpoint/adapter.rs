//! The files of adapters, as Hugging Face's PEFT writes and reads them: `adapter_config.json` and
//! `adapter_model.safetensors`, which hold the adapters and the head; the frozen weights stay in the checkpoint that they
//! came from, whose name is in the configuration. Source: PEFT v0.17 to v0.21, `utils/save_and_load.py`,
//! `tuners/lora/config.py`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde_json::{Map, Value, json};
use stratoscope_diagnostics::Result;

use self::names::Names;
pub(in crate::checkpoint) use self::save::{remove, save};
use super::report::{LoadReport, LoadedTensor, Origin};
use super::tensor_file::{TensorFile, WEIGHTS};
use super::{LoadOptions, Loaded, is_there, load_as, read_text};
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::lora::{self, LoraConfig};
use crate::names::named_parameters;
use crate::problem::{self, Missing};

mod names;
mod save;

/// The configuration of adapters.
const CONFIG: &str = "adapter_config.json";
/// Their values.
const VALUES: &str = "adapter_model.safetensors";
/// A configuration is a few kilobytes.
const LARGEST_CONFIG: u64 = 16 << 20;

/// A folder with adapters, and what its configuration says.
#[derive(Clone, Debug)]
pub struct AdapterFolder {
    folder: PathBuf,
    rank: usize,
    alpha: f64,
    dropout: f64,
    targets: Vec<String>,
    /// The checkpoint that the adapters are for: a name, or a folder.
    pub base: String,
}

impl AdapterFolder {
    /// Reads the configuration in a folder; `None` where there is none, or the weights of a whole model beside it.
    ///
    /// # Errors
    /// SC0902 for a configuration that cannot be read, SC0903 for adapters of another kind, SC0909 for a value out of its
    /// range.
    pub fn of(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(CONFIG);
        if !is_there(&path) || holds_weights(folder) {
            return Ok(None);
        }
        let text = read_text(&path, LARGEST_CONFIG)?;
        let malformed = |reason: String| problem::malformed(&path, reason);
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| malformed(format!("it is not valid JSON: {error}")))?;
        let Value::Object(file) = value else {
            return Err(malformed("it is not a JSON object".to_owned()));
        };
        check_kind(&file, &path)?;
        let invalid = |field: &str, expects: &str| {
            let found = file.get(field).unwrap_or(&Value::Null).to_string();
            problem::invalid_configuration(&path, field, found, expects)
        };
        let rank = file.get("r").and_then(Value::as_u64);
        let rank = rank.and_then(|rank| usize::try_from(rank).ok());
        let rank = rank.filter(|&rank| rank > 0);
        let alpha = file.get("lora_alpha").and_then(Value::as_f64);
        let alpha = alpha.filter(|alpha| alpha.is_finite());
        let dropout = file.get("lora_dropout").unwrap_or(&json!(0.0)).as_f64();
        let dropout = dropout.filter(|rate| (0.0..1.0).contains(rate));
        let base = file.get("base_model_name_or_path").and_then(Value::as_str);
        Ok(Some(Self {
            rank: rank.ok_or_else(|| invalid("r", "an integer ≥ 1"))?,
            alpha: alpha.ok_or_else(|| invalid("lora_alpha", "a number"))?,
            dropout: dropout.ok_or_else(|| invalid("lora_dropout", "a rate from 0, below 1"))?,
            targets: targets(&file).ok_or_else(|| invalid("target_modules", "a list of names"))?,
            base: base
                .ok_or_else(|| invalid("base_model_name_or_path", "the name of a checkpoint"))?
                .to_owned(),
            folder: folder.to_owned(),
        }))
    }

    /// Reads the checkpoint in `base`, and the adapters and whatever else is in this folder into it.
    ///
    /// # Errors
    /// As [`load_as`] for either folder; SC0904 for adapters of other shapes, or without one of their two matrices.
    pub fn load<N: BertNetwork>(
        &self,
        base: &Path,
        options: &LoadOptions,
        device: &Device,
    ) -> Result<Loaded<N>> {
        let file = TensorFile::open(&self.folder.join(VALUES))?;
        let own = match self.folder.join("config.json").is_file() {
            true => Some(BertConfig::from_folder(&self.folder)?),
            false => None,
        };
        let mut options = options.clone();
        options.num_labels = options
            .num_labels
            .or(own.as_ref().map(BertConfig::num_labels));
        // A head that is here replaces that of the checkpoint, which may be for other labels.
        options.new_head |= ["classifier.", "qa_outputs."].iter().any(|head| {
            let starts = |name: &str| name.starts_with(&format!("{}{head}", names::PREFIX));
            file.names().any(starts)
        });
        let mut loaded: Loaded<N> = load_as(base, &options, device)?;
        loaded.config.trained_length = own.as_ref().and_then(|own| own.trained_length);
        if let Some(own) = own.filter(|own| own.num_labels() == loaded.config.num_labels()) {
            loaded.config.labels = own.labels;
            loaded.config.binary_labels = own.binary_labels;
            loaded.config.multi_label |= own.multi_label;
        }
        let (modules, given) = self.values(&file, &loaded)?;
        let names: BTreeSet<String> = given.keys().cloned().collect();
        let mut adapters = LoraConfig {
            rank: self.rank,
            alpha: self.alpha,
            dropout: self.dropout,
            targets: self.targets.clone(),
            modules,
            seed: options.seed,
            base: self.base.clone(),
            trained: BTreeSet::new(),
        };
        let beside = names.iter().filter(|name| !adapters.has(name)).cloned();
        adapters.trained = beside.collect();
        loaded.config.lora = Some(adapters);
        loaded.network = lora::with_adapters(&loaded.network, &loaded.config, given);
        record(&mut loaded.report, &names, &loaded.network);
        Ok(loaded)
    }

    /// The layers that have adapters in the file, and the values of all parameters that it has.
    fn values<N: BertNetwork>(&self, file: &TensorFile, loaded: &Loaded<N>) -> Result<Found> {
        let names = Names::of::<N>(&loaded.config);
        // (parameter, its shape) by the name of its tensor.
        let mut expected: HashMap<String, (String, Vec<usize>)> = HashMap::new();
        let (mut modules, mut missing) = (BTreeSet::new(), Vec::new());
        for layer in lora::candidates(&loaded.network, &loaded.config) {
            let [outputs, inputs] = layer.shape;
            let matrices = [
                ("lora_A", vec![self.rank, inputs]),
                ("lora_B", vec![outputs, self.rank]),
            ];
            let matrices = matrices.map(|(matrix, shape)| {
                let tensor = names.of_matrix(&layer.in_file, matrix);
                (tensor, format!("{}.{matrix}", layer.module), shape)
            });
            if !matrices
                .iter()
                .any(|(tensor, ..)| file.shape(tensor).is_some())
            {
                continue;
            }
            modules.insert(layer.module);
            for (tensor, parameter, shape) in matrices {
                if file.shape(&tensor).is_none() {
                    let (name, shape) = (tensor.clone(), shape.clone());
                    missing.push(Missing { name, shape });
                }
                expected.insert(tensor, (parameter, shape));
            }
        }
        if !missing.is_empty() {
            let in_file: Vec<String> = file.names().map(str::to_owned).collect();
            return Err(problem::missing(file.path(), &missing, &in_file));
        }
        for parameter in named_parameters(&loaded.network) {
            if let Some(tensor) = names.of_parameter(&parameter.name) {
                expected.insert(tensor, (parameter.name, parameter.shape));
            }
        }
        let mut given = HashMap::new();
        for tensor in file.names() {
            let Some((parameter, shape)) = expected.get(tensor) else {
                let is_adapter = tensor.contains(".lora_");
                let reason = format!("`{tensor}` belongs to no dense layer of the model");
                match is_adapter {
                    true => return Err(problem::malformed(file.path(), reason)),
                    // Such as a decoder, which is the word embeddings.
                    false => continue,
                }
            };
            let found = file.shape(tensor).unwrap_or_default();
            if found != shape {
                return Err(problem::wrong_shape(
                    file.path(),
                    parameter,
                    shape,
                    found,
                    0,
                ));
            }
            if let Some(values) = file.values(tensor)? {
                given.insert(parameter.clone(), values);
            }
        }
        if modules.is_empty() {
            let reason = "it has no adapter of a dense layer of the model".to_owned();
            return Err(problem::malformed(file.path(), reason));
        }
        Ok((modules, given))
    }
}

/// Layers with adapters, and the values of parameters.
type Found = (BTreeSet<String>, HashMap<String, Vec<f32>>);

/// Whether a folder has the weights of a whole model.
fn holds_weights(folder: &Path) -> bool {
    let mut names = WEIGHTS.iter().flat_map(|&(whole, index)| [whole, index]);
    names.any(|name| is_there(&folder.join(name)))
}

/// Refuses what changes the arithmetic of an adapter in a way that is not built.
fn check_kind(file: &Map<String, Value>, path: &Path) -> Result<()> {
    let accepts = |field: &str, accepted: &[Value], words: &[&str]| match file.get(field) {
        Some(value) if !value.is_null() && !accepted.contains(value) => {
            let found = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            Err(problem::unsupported(path, field, found, words))
        }
        _ => Ok(()),
    };
    accepts("peft_type", &[json!("LORA")], &["LORA"])?;
    accepts("bias", &[json!("none")], &["none"])?;
    for field in [
        "use_dora",
        "use_rslora",
        "use_qalora",
        "use_bdlora",
        "fan_in_fan_out",
        "lora_bias",
    ] {
        accepts(field, &[json!(false)], &["false"])?;
    }
    for field in ["rank_pattern", "alpha_pattern"] {
        accepts(field, &[json!({})], &["{}"])?;
    }
    // Variants of later versions, which compute something else or train something beside the adapters.
    for field in [
        "layer_replication",
        "alora_invocation_tokens",
        "arrow_config",
        "kasa_config",
        "monteclora_config",
        "velora_config",
        "target_parameters",
        "trainable_token_indices",
    ] {
        accepts(field, &[], &["null"])?;
    }
    // The others, such as PiSSA, begin with another weight than that of the checkpoint.
    let begins = [
        json!(true),
        json!(false),
        json!("gaussian"),
        json!("eva"),
        json!("orthogonal"),
    ];
    let words = ["true", "false", "gaussian", "eva", "orthogonal"];
    accepts("init_lora_weights", &begins, &words)
}

/// The layers that were asked for: a list, or one name.
fn targets(file: &Map<String, Value>) -> Option<Vec<String>> {
    match file.get("target_modules")? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(names) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect()
        }
        _ => None,
    }
}

/// The parameters whose values came from the adapters' file are loaded.
fn record<N: BertNetwork>(report: &mut LoadReport, loaded: &BTreeSet<String>, network: &N) {
    let parameters = named_parameters(network).into_iter();
    for parameter in parameters.filter(|it| loaded.contains(&it.name)) {
        let mut rows = report.tensors.iter_mut();
        match rows.find(|row| row.name == parameter.name) {
            Some(row) => row.origin = Origin::Loaded,
            None => report.tensors.push(LoadedTensor {
                name: parameter.name,
                shape: parameter.shape,
                origin: Origin::Loaded,
            }),
        }
    }
}
