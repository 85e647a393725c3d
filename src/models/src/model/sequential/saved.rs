//! A [`Sequential`](super::Sequential()) as files: `config.json` with its layers and the names of its labels,
//! `model.safetensors` with its weights.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stratoscope_bert::checkpoint::{self, TensorFile};
use stratoscope_diagnostics::rules::{ArchitectureMismatch, CheckpointUnreadable, TensorMismatch};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::{Origin, scope};

use super::layer::{Kind, Layer};
use super::{Layers, Sequential};
use crate::model::Model;
use crate::problem;
use stratoscope_network::{Activation, Files, Network, Outputs};

/// What `model_type` of its `config.json` says.
const MODEL_TYPE: &str = "stratoscope_sequential";
/// What `architectures` of it says.
const NAME: &str = "Sequential";
const CONFIGURATION: &str = "config.json";

/// `config.json`. `architectures` and `model_type` are named as in the files of transformers.
#[derive(Debug, Serialize, Deserialize)]
struct Configuration {
    architectures: Vec<String>,
    model_type: String,
    /// The numbers of a row.
    input_width: usize,
    layers: Vec<SavedLayer>,
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binary_labels: Option<[String; 2]>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedLayer {
    layer: Kind,
    activation: Activation,
    seed: u64,
}

/// Writes both files.
///
/// # Errors
/// SC0103 for a model that is not built; SC0908 for a file that cannot be written.
pub(super) fn save(network: &Layers, files: &Outputs, folder: &Path) -> Result<Vec<PathBuf>> {
    let Some((plan, input_width)) = network.described() else {
        let expects = "a model that is built: call `build((None, 5))` with the width of a row, or train it first";
        let problem = problem::bad_value("save_pretrained", "model", NAME, expects);
        return Err(Box::new(problem));
    };
    let layers = plan.iter().map(|layer| {
        let (layer, activation, seed) = layer.written();
        SavedLayer {
            layer,
            activation,
            seed,
        }
    });
    let configuration = Configuration {
        architectures: vec![NAME.to_owned()],
        model_type: MODEL_TYPE.to_owned(),
        input_width,
        layers: layers.collect(),
        labels: files.label_names().to_vec(),
        binary_labels: files.binary_labels().cloned(),
    };
    let text = serde_json::to_string_pretty(&configuration)
        .map_err(|error| damaged(folder, error.to_string()))?;
    checkpoint::save_values(folder, &text, &network.values())
}

impl Sequential {
    /// Loads a model that [`save_pretrained`](Model::save_pretrained), [`save`](Model::save) or `checkpoint` of `fit!` has
    /// written to a folder: `Sequential::from_pretrained("runs/best")?`. It has the weights bit for bit, and the names of
    /// the labels; `compile!` gives it an optimizer.
    ///
    /// # Errors
    /// SC0902 for a file that is absent or damaged, SC0903 for a folder of another kind of model, SC0904 for weights that
    /// do not belong to the layers; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(folder: impl AsRef<Path>) -> Result<Self> {
        load(folder.as_ref(), Origin::current())
    }

    /// The same as [`from_pretrained`](Self::from_pretrained).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn load(folder: impl AsRef<Path>) -> Result<Self> {
        load(folder.as_ref(), Origin::current())
    }
}

fn load(folder: &Path, origin: Origin) -> Result<Sequential> {
    let path = folder.join(CONFIGURATION);
    let text = checkpoint::read_configuration(&path)?;
    let configuration = configuration_of(&text, &path)?;
    let input_width = configuration.input_width;
    let plan = configuration.layers.into_iter();
    let plan = plan.map(|it| Layer::checked((it.layer, it.activation, it.seed)));
    let network = Layers::new(plan.collect())?;
    let outputs = network.outputs();
    if configuration.labels.len() != outputs || input_width == 0 {
        let reason = format!(
            "it has {} labels for {outputs} outputs, and rows of {input_width} numbers",
            configuration.labels.len()
        );
        return Err(damaged(&path, reason));
    }
    network.fits(input_width)?;
    let weights = TensorFile::open_in(folder)?;
    let device = scope::device()?;
    let network = network.build(input_width, &device);
    let network = network.with_values(&device, |name, shape| value(&weights, name, shape))?;
    let mut files = Outputs::new(NAME, outputs);
    files.set_label_names(configuration.labels);
    files.set_binary_labels(configuration.binary_labels);
    Model::with_files(network, files, origin)
}

/// The configuration in the text of `config.json`.
fn configuration_of(text: &str, path: &Path) -> Result<Configuration> {
    let of_type: serde_json::Value =
        serde_json::from_str(text).map_err(|error| damaged(path, error.to_string()))?;
    let model_type = of_type.get("model_type").and_then(|it| it.as_str());
    if model_type != Some(MODEL_TYPE) {
        let architecture = of_type
            .pointer("/architectures/0")
            .and_then(|it| it.as_str());
        let rule = ArchitectureMismatch {
            path: path.display().to_string(),
            field: "model_type".to_owned(),
            found: model_type.unwrap_or("nothing").to_owned(),
            accepted: vec![MODEL_TYPE.to_owned()],
        };
        let mut diagnostic = rule.diagnostic();
        diagnostic.fixes.clear();
        let diagnostic = diagnostic.fix(match architecture {
            Some(name) if name.starts_with("BertFor") => {
                format!("load it as what it is: `{name}::from_pretrained({:?}, …)?`", folder_of(path))
            }
            _ => "give a folder to which a `Sequential` was saved: `model.save_pretrained(\"runs/model\")?`"
                .to_owned(),
        });
        return Err(Box::new(diagnostic));
    }
    serde_json::from_str(text).map_err(|error| damaged(path, error.to_string()))
}

fn folder_of(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    folder.display().to_string()
}

/// A tensor of the weights.
fn value(weights: &TensorFile, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let values = match weights.shape(name) {
        Some(found) if found == shape => weights.values(name)?,
        _ => None,
    };
    values.ok_or_else(|| {
        let rule = TensorMismatch {
            tensor: name.to_owned(),
            expected: shape.to_vec(),
            found: weights.shape(name).map(<[usize]>::to_vec),
            tensors: 1,
            path: weights.path().display().to_string(),
        };
        rule.error()
    })
}

/// SC0902.
fn damaged(path: &Path, reason: String) -> Box<Diagnostic> {
    let rule = CheckpointUnreadable {
        path: path.display().to_string(),
        reason,
    };
    rule.error()
}
