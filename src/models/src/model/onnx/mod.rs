//! `model.export_onnx("model.onnx")`: a model as a file that onnxruntime and other programs run. The graph and the file are
//! `stratoscope_onnx`'s; here are the networks of this library as operators, each with a file of this folder.

mod bert;
mod file;
mod layers;
mod metadata;
mod sequential;

use std::fmt;
use std::path::{Path, PathBuf};

use stratoscope_bert::names::named_values;
use stratoscope_bert::{
    BertConfig, BertNetwork, Family, MaskedLm, MultipleChoice, QuestionAnswerer, SentenceEncoder,
    SequenceClassifier, TokenClassifier, lora,
};
use stratoscope_diagnostics::rules::{
    BackendFailed, OnnxFileTooLarge, OnnxOfUnbuiltModel, OnnxOfUnknownNetwork,
};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_onnx::{Graph, MAX_BYTES, OPSET};
use stratoscope_render::units;

use crate::model::Model;
use crate::model::bert::BertFiles;
use crate::model::predict::read_length;
use crate::model::sequential::Layers;
use crate::problem;
use stratoscope_network::{AnyNetwork, Files, Network};

use layers::Weights;

/// A file that [`export_onnx`](Model::export_onnx) has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxFile {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The names of the inputs, in their order.
    pub inputs: Vec<String>,
    /// The names of the outputs, in their order.
    pub outputs: Vec<String>,
}

impl fmt::Display for OnnxFile {
    /// `model.onnx: 86.8 MiB, ONNX operator set 17, input_ids, attention_mask, token_type_ids → logits`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, ONNX operator set {OPSET}, {} → {}",
            self.path.display(),
            units::bytes(self.bytes),
            self.inputs.join(", "),
            self.outputs.join(", "),
        )
    }
}

impl Model {
    /// Writes the model as one file in the ONNX format, operator set 17, which onnxruntime runs from Python, C++, Java,
    /// JavaScript and others. An existing file is replaced when the new one is complete. Adapters are added to
    /// the weights in the file; the model keeps them.
    ///
    /// A BERT takes `input_ids`, `attention_mask` and, in families that learn it, `token_type_ids`: integers of 64 bits,
    /// [batch, sequence], of a multiple choice [batch, choices, sequence]; any batch, and any sequence up to the positions that
    /// the model has. It returns `logits`; of a question answerer `start_logits` and `end_logits`; of a sentence
    /// encoder `token_embeddings` and `sentence_embedding`. These are the names of Hugging Face's optimum. A
    /// `Sequential` takes `features` and returns `outputs`. The tokenizer is not in the file: `save_pretrained` writes
    /// `tokenizer.json`. Labels, the number of padding and the longest text are texts in the file (`metadata_props`).
    ///
    /// # Errors
    /// SC0760 for a `Sequential` that is not built, SC0761 for a network of your own and for a ModernBERT, SC0762 for a file of
    /// more than 2 GiB, SC0908 for a file that cannot be written, SC0103 for an empty path, SC0907 if a value cannot be read from its device.
    pub fn export_onnx(&self, path: impl AsRef<Path>) -> Result<OnnxFile> {
        self.exported(path.as_ref(), Weights::Float32, "export_onnx")
    }

    /// The same with weights in 8 bits, a quarter of the size: those of dense layers but the last, with a scale for each of their
    /// outputs, and the table of words, with a scale for each of its vectors. The inputs of these layers are rounded
    /// to 8 bits, too, by the range that they have in the batch: answers change a little, and depend a little on the other
    /// texts of a batch.
    ///
    /// # Errors
    /// As [`export_onnx`](Self::export_onnx).
    pub fn export_onnx_int8(&self, path: impl AsRef<Path>) -> Result<OnnxFile> {
        self.exported(path.as_ref(), Weights::Int8, "export_onnx_int8")
    }

    fn exported(&self, path: &Path, weights: Weights, call: &'static str) -> Result<OnnxFile> {
        if path.file_name().is_none() {
            let expects = "the path of a file, such as `\"model.onnx\"`";
            let given = format!("{:?}", path.display().to_string());
            return Err(Box::new(problem::bad_value(call, "path", given, expects)));
        }
        let state = self.state();
        let (network, files) = (state.settled()?.first().clone(), state.files.clone());
        let (length, device) = (
            read_length(&state),
            state.step.replicas.devices()[0].name.clone(),
        );
        // Others may use the model while the file is written.
        drop(state);
        let graph = graph_of(&network, &*files, weights, call)?;
        let graph = graph.map_err(|reason| BackendFailed { device, reason }.error())?;
        let metadata = metadata::of(&network, &*files, length, weights);
        let model = stratoscope_onnx::Model { graph, metadata };
        let bytes = model.bytes();
        if bytes > MAX_BYTES {
            return Err(too_large(&*files, bytes, weights, call));
        }
        let path = file::write(path, &model, bytes)?;
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Ok(OnnxFile {
            path,
            bytes,
            inputs: names(model.graph.input_names()),
            outputs: names(model.graph.output_names()),
        })
    }
}

/// The graph of a network of this library; an inner error is a device's reason.
///
/// # Errors
/// SC0760, SC0761.
fn graph_of(
    network: &AnyNetwork,
    files: &dyn Files,
    weights: Weights,
    call: &'static str,
) -> Result<std::result::Result<Graph, String>> {
    if let Some(layers) = network.downcast_ref::<Layers>() {
        let graph = sequential::graph(layers, weights);
        let unbuilt = || {
            let call = call.to_owned();
            OnnxOfUnbuiltModel { call }.error()
        };
        return graph.map(Ok).ok_or_else(unbuilt);
    }
    let unknown = |model: &str| {
        let rule = OnnxOfUnknownNetwork {
            call: call.to_owned(),
            model: model.to_owned(),
        };
        rule.error()
    };
    // Its layers are not translated.
    let of_checkpoint = files.get::<BertFiles>();
    match of_checkpoint.map(|files| files.config.family) {
        Some(Family::ModernBert) => return Err(unknown("ModernBERT")),
        Some(Family::MpNet) => return Err(unknown("MPNet")),
        Some(Family::Deberta) => return Err(unknown("DeBERTa")),
        _ => {}
    }
    of_bert::<SequenceClassifier>(network, files, weights)
        .or_else(|| of_bert::<TokenClassifier>(network, files, weights))
        .or_else(|| of_bert::<QuestionAnswerer>(network, files, weights))
        .or_else(|| of_bert::<MultipleChoice>(network, files, weights))
        .or_else(|| of_bert::<MaskedLm>(network, files, weights))
        .or_else(|| of_bert::<SentenceEncoder>(network, files, weights))
        .ok_or_else(|| unknown(files.model_name()))
}

/// The graph, if the network is of this type.
fn of_bert<N>(
    network: &AnyNetwork,
    files: &dyn Files,
    weights: Weights,
) -> Option<std::result::Result<Graph, String>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let network = network.downcast_ref::<N>()?;
    let config: &BertConfig = &files.of::<BertFiles>().config;
    let merged = lora::merged(network, config);
    let values = merged.map(|network| named_values(&network));
    Some(values.map(|values| bert::graph(values, config, N::ARCHITECTURE, weights)))
}

/// SC0762.
fn too_large(
    files: &dyn Files,
    bytes: u64,
    weights: Weights,
    call: &str,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = OnnxFileTooLarge {
        call: call.to_owned(),
        model: files.model_name().to_owned(),
        bytes: units::bytes(bytes),
        in_32_bits: weights == Weights::Float32,
    };
    rule.error()
}
