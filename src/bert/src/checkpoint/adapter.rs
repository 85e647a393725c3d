//! The files of adapters, as Hugging Face's PEFT writes and reads them: `adapter_config.json` and
//! `adapter_model.safetensors`, which hold the adapters and the head; the frozen weights stay in the checkpoint that they
//! came from, whose name is in the configuration. Source: PEFT v0.17, `utils/save_and_load.py`, `tuners/lora/config.py`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};
use serde_json::{Map, Value, json};
use stratoscope_diagnostics::Result;

use super::report::{LoadReport, LoadedTensor, Origin};
use super::save::{create_folder, serialized, write};
use super::tensor_file::{TensorFile, WEIGHTS};
use super::{LoadOptions, Loaded, load_as};
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::layout::Layout;
use crate::lora::{self, LoraConfig};
use crate::names::{named_parameters, named_values, trained_names};
use crate::problem::{self, Missing};
use crate::tokenizer::BertTokenizer;

/// The configuration of adapters.
const CONFIG: &str = "adapter_config.json";
/// Their values.
const VALUES: &str = "adapter_model.safetensors";
/// What PEFT puts before the names of a model's tensors.
const PREFIX: &str = "base_model.model.";
/// The body without a head: its tensors have no prefix of their own.
const BODY: &str = "BertModel";
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
        if !path.is_file() || holds_weights(folder) {
            return Ok(None);
        }
        let text = super::read_text(&path, LARGEST_CONFIG)?;
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
            let starts = |name: &str| name.starts_with(&format!("{PREFIX}{head}"));
            file.names().any(starts)
        });
        let mut loaded: Loaded<N> = load_as(base, &options, device)?;
        if let Some(own) = own.filter(|own| own.num_labels() == loaded.config.num_labels()) {
            loaded.config.labels = own.labels;
            loaded.config.binary_labels = own.binary_labels;
            loaded.config.multi_label |= own.multi_label;
        }
        let (modules, given) = self.values(&file, &loaded)?;
        record(&mut loaded.report, &given);
        loaded.config.lora = Some(LoraConfig {
            rank: self.rank,
            alpha: self.alpha,
            dropout: self.dropout,
            targets: self.targets.clone(),
            modules,
            seed: options.seed,
            base: self.base.clone(),
        });
        loaded.network = lora::with_adapters(&loaded.network, &loaded.config, given);
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
    names.any(|name| folder.join(name).exists())
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
    for field in ["use_dora", "use_rslora", "fan_in_fan_out", "lora_bias"] {
        accepts(field, &[json!(false)], &["false"])?;
    }
    for field in ["rank_pattern", "alpha_pattern"] {
        accepts(field, &[json!({})], &["{}"])?;
    }
    accepts("layer_replication", &[], &["null"])
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
fn record(report: &mut LoadReport, given: &HashMap<String, Vec<f32>>) {
    let mut left: BTreeSet<&String> = given.keys().collect();
    for row in &mut report.tensors {
        if left.remove(&row.name) {
            row.origin = Origin::Loaded;
        }
    }
    for name in left {
        report.tensors.push(LoadedTensor {
            name: name.clone(),
            shape: vec![given[name].len()],
            origin: Origin::Loaded,
        });
    }
}

/// What PEFT calls tensors of a model.
struct Names {
    layout: Layout,
    /// What the names of the body's tensors begin with in our layout, and not in PEFT's.
    without: &'static str,
}

impl Names {
    fn of<N: BertNetwork>(config: &BertConfig) -> Self {
        Self {
            layout: Layout::of::<N>(config),
            without: match N::ARCHITECTURE {
                BODY => config.family.prefix(),
                _ => "",
            },
        }
    }

    fn with_prefix(&self, tensor: &str) -> String {
        let tensor = tensor.strip_prefix(self.without).unwrap_or(tensor);
        format!("{PREFIX}{tensor}")
    }

    /// Of one of the two matrices of a layer.
    fn of_matrix(&self, layer: &str, matrix: &str) -> String {
        format!("{}.{matrix}.weight", self.with_prefix(layer))
    }

    fn of_parameter(&self, parameter: &str) -> Option<String> {
        Some(self.with_prefix(&self.layout.name(parameter)?))
    }

    /// What `modules_to_save` has for a parameter of the model: the head as a whole, or a layer of the body.
    fn module_to_save(&self, parameter: &str) -> Option<String> {
        let tensor = self.layout.name(parameter)?;
        let (module, _) = tensor.rsplit_once('.')?;
        let module = match module.starts_with(self.layout.family.prefix()) {
            true => module,
            false => module.split('.').next()?,
        };
        Some(
            module
                .strip_prefix(self.without)
                .unwrap_or(module)
                .to_owned(),
        )
    }
}

/// Writes adapters, head, configuration and tokenizer. Whatever is trained is written: the head always.
///
/// # Errors
/// SC0908 for a folder with the weights of a whole model, and for the first file that cannot be written.
pub(super) fn save<N: BertNetwork>(
    folder: &Path,
    network: &N,
    (config, lora): (&BertConfig, &LoraConfig),
    tokenizer: &BertTokenizer,
) -> Result<Vec<PathBuf>> {
    create_folder(folder)?;
    if holds_weights(folder) {
        let reason = "the folder has the weights of a whole model; adapters need a folder of their own, or \
                      `merge_lora()` before";
        return Err(problem::not_saved(&folder.join(VALUES), reason.to_owned()));
    }
    let names = Names::of::<N>(config);
    let trained = trained_names(network);
    let prefix = config.family.prefix();
    let mut modules = BTreeSet::new();
    let mut values: Vec<(String, TensorData)> = Vec::new();
    for (parameter, data) in named_values(network) {
        if let Some((layer, matrix)) = split(&parameter, lora) {
            let weight = names.layout.name(&format!("{layer}.weight"));
            let layer = weight
                .as_deref()
                .and_then(|name| name.strip_suffix(".weight"));
            values.extend(layer.map(|layer| (names.of_matrix(layer, matrix), data)));
            continue;
        }
        let Some(tensor) = names.layout.name(&parameter) else {
            continue;
        };
        if !tensor.starts_with(prefix) || trained.contains(&parameter) {
            modules.extend(names.module_to_save(&parameter));
            let data = names.layout.as_in_file(&parameter, data);
            values.push((names.with_prefix(&tensor), data));
        }
    }
    let bytes = serialized(&values, &folder.join(VALUES))?;
    let described = description::<N>(network, config, lora, &modules);
    let described = format!("{described:#}\n");
    let mut written = vec![
        write(
            folder,
            "config.json",
            config.to_json(N::ARCHITECTURE).as_bytes(),
        )?,
        write(folder, VALUES, &bytes)?,
        write(folder, CONFIG, described.as_bytes())?,
    ];
    written.extend(tokenizer.save(folder, config.max_position_embeddings)?);
    Ok(written)
}

/// Layer and matrix of an adapter's parameter.
fn split<'a>(parameter: &'a str, lora: &LoraConfig) -> Option<(&'a str, &'a str)> {
    let (layer, matrix) = parameter.rsplit_once('.')?;
    (matrix.starts_with("lora_") && lora.modules.contains(layer)).then_some((layer, matrix))
}

/// `adapter_config.json`.
fn description<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    lora: &LoraConfig,
    modules_to_save: &BTreeSet<String>,
) -> Value {
    let task = match N::ARCHITECTURE {
        "BertForSequenceClassification" => json!("SEQ_CLS"),
        "BertForTokenClassification" => json!("TOKEN_CLS"),
        "BertForQuestionAnswering" => json!("QUESTION_ANS"),
        BODY => json!("FEATURE_EXTRACTION"),
        _ => Value::Null,
    };
    let modules_to_save = match modules_to_save.is_empty() {
        true => Value::Null,
        false => json!(modules_to_save),
    };
    json!({
        "alpha_pattern": {},
        "auto_mapping": null,
        "base_model_name_or_path": lora.base,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "layers_pattern": null,
        "layers_to_transform": null,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "modules_to_save": modules_to_save,
        "peft_type": "LORA",
        "r": lora.rank,
        "rank_pattern": {},
        "revision": null,
        "target_modules": in_words_of_peft(network, config, lora),
        "task_type": task,
        "use_dora": false,
        "use_rslora": false,
    })
}

/// The targets as they were given, where PEFT finds the same layers by them; else every layer by its path.
fn in_words_of_peft<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    lora: &LoraConfig,
) -> Vec<String> {
    let names = Names::of::<N>(config);
    let path = |in_file: &str| {
        in_file
            .strip_prefix(names.without)
            .unwrap_or(in_file)
            .to_owned()
    };
    let layers: Vec<(bool, String)> = lora::candidates(network, config)
        .into_iter()
        .map(|layer| (lora.modules.contains(&layer.module), path(&layer.in_file)))
        .collect();
    let is_named = |layer: &str| {
        let mut targets = lora.targets.iter();
        targets.any(|target| layer == target || layer.ends_with(&format!(".{target}")))
    };
    match layers
        .iter()
        .all(|(adapted, layer)| *adapted == is_named(layer))
    {
        true => lora.targets.clone(),
        false => {
            let adapted = layers.into_iter().filter(|(adapted, _)| *adapted);
            adapted.map(|(_, layer)| layer).collect()
        }
    }
}

/// Removes the files of adapters from a folder into which a whole model was written.
pub(super) fn remove(folder: &Path) -> Result<()> {
    for name in [CONFIG, VALUES] {
        let path = folder.join(name);
        if path.is_file() {
            let removed = std::fs::remove_file(&path);
            removed.map_err(|error| problem::not_saved(&path, error.to_string()))?;
        }
    }
    Ok(())
}
