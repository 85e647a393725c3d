//! Hugging Face checkpoints: a folder with `config.json`, `model.safetensors` and the tokenizer's
//! files. [`load`] reads one into a network, [`save`] writes one that transformers loads. [`AdapterFolder`] is a folder with
//! low-rank adapters for such a checkpoint.

mod adapter;
mod files;
mod loader;
mod pytorch;
mod report;
mod save;
mod tensor_file;

use std::path::Path;

use burn::tensor::Device;
use stratoscope_data::Tokenize;
use stratoscope_diagnostics::Result;

use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::layout::Layout;
use crate::masked_lm::MaskedLm;
use crate::multiple_choice::MultipleChoice;
use crate::parameters::Store;
use crate::problem;
use crate::question_answerer::QuestionAnswerer;
use crate::sequence_classifier::SequenceClassifier;
use crate::tokenizer::BertTokenizer;

pub use adapter::AdapterFolder;
pub(crate) use files::{is_there, read_bytes, read_text};
pub(crate) use loader::{Filled, Loader};
pub use report::{LoadReport, LoadedTensor, Origin};
pub(crate) use save::{create_folder, write};
pub use save::{save, save_network, save_values};
pub use tensor_file::TensorFile;
pub(crate) use tensor_file::{WEIGHTS, weight_map};

/// The text of a `config.json` of any kind of model.
///
/// # Errors
/// SC0902 if it is absent, larger than any, or not text.
pub fn read_configuration(path: &Path) -> Result<String> {
    const MAX_BYTES: u64 = 16 << 20;
    read_text(path, MAX_BYTES)
}

/// Options for reading a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    num_labels: Option<usize>,
    seed: u64,
    new_head: bool,
    multi_label: bool,
}

impl LoadOptions {
    /// The checkpoint's number of labels, its head if it has one, seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many labels the head has; 1 makes it a regression.
    pub fn num_labels(mut self, num_labels: usize) -> Self {
        self.num_labels = Some(num_labels);
        self
    }

    /// Each label is decided by itself, so that a text may have several of them, or none. A checkpoint that was saved so
    /// is read so in any case.
    pub fn multi_label(mut self) -> Self {
        self.multi_label = true;
        self
    }

    /// The seed of weights that are new.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts with a new head even if the checkpoint has one.
    pub fn new_head(mut self) -> Self {
        self.new_head = true;
        self
    }
}

/// A checkpoint that was read.
#[derive(Clone, Debug)]
pub struct Loaded<N = SequenceClassifier> {
    /// The network, on the given device. It can be trained if that is an autodiff device.
    pub network: N,
    /// The checkpoint's own tokenizer.
    pub tokenizer: BertTokenizer,
    /// The configuration, with the labels of the network.
    pub config: BertConfig,
    /// Where the values of each variable came from.
    pub report: LoadReport,
}

/// A network without its tokenizer.
#[derive(Clone, Debug)]
pub struct LoadedNetwork<N = SequenceClassifier> {
    /// The network, on the given device.
    pub network: N,
    /// The configuration, with the labels of the network.
    pub config: BertConfig,
    /// Where the values of each variable came from.
    pub report: LoadReport,
}

/// Reads a checkpoint's folder.
///
/// # Errors
/// A diagnostic for files that are missing or damaged, another architecture, tensors that are missing or have another shape
/// or element type, and a vocabulary that does not match the tokenizer.
pub fn load(folder: &Path, options: &LoadOptions, device: &Device) -> Result<Loaded> {
    load_as(folder, options, device)
}

/// Reads a checkpoint's folder into any of the networks. The head of a checkpoint for another task is left out.
///
/// # Errors
/// As [`load`].
pub fn load_as<N: BertNetwork>(
    folder: &Path,
    options: &LoadOptions,
    device: &Device,
) -> Result<Loaded<N>> {
    let config = configuration(folder, options)?;
    let tokenizer = BertTokenizer::from_folder(folder)?.with_types(config.type_vocab_size);
    if tokenizer.vocab_size() > config.vocab_size {
        let files = ["tokenizer.json", "vocab.txt"].map(|name| folder.join(name));
        let read = files.iter().find(|file| file.is_file());
        return Err(problem::vocabulary(
            read.unwrap_or(&files[1]),
            tokenizer.vocab_size(),
            config.vocab_size,
        ));
    }
    let LoadedNetwork {
        network,
        config,
        report,
    } = fill(folder, config, options, device)?;
    Ok(Loaded {
        network,
        tokenizer,
        config,
        report,
    })
}

/// Reads configuration and weights from a checkpoint's folder.
///
/// # Errors
/// As [`load`], but for the tokenizer's files.
pub fn load_network(
    folder: &Path,
    options: &LoadOptions,
    device: &Device,
) -> Result<LoadedNetwork> {
    load_network_as(folder, options, device)
}

/// Reads configuration and weights into any of the networks.
///
/// # Errors
/// As [`load_network`].
pub fn load_network_as<N: BertNetwork>(
    folder: &Path,
    options: &LoadOptions,
    device: &Device,
) -> Result<LoadedNetwork<N>> {
    fill(folder, configuration(folder, options)?, options, device)
}

/// The folder's configuration with the labels of the options.
fn configuration(folder: &Path, options: &LoadOptions) -> Result<BertConfig> {
    let mut config = BertConfig::from_folder(folder)?;
    if let Some(num_labels) = options.num_labels {
        // One output in the place of several is a number or decides between two classes.
        config.multi_label &= num_labels > 1 || config.num_labels() == 1;
        config = config.with_num_labels(num_labels)?;
    }
    if options.multi_label {
        config.multi_label = true;
        config.binary_labels = None;
    }
    Ok(config)
}

/// The network of a configuration, with the folder's weights.
fn fill<N: BertNetwork>(
    folder: &Path,
    mut config: BertConfig,
    options: &LoadOptions,
    device: &Device,
) -> Result<LoadedNetwork<N>> {
    if N::ARCHITECTURE == MaskedLm::ARCHITECTURE && !config.ties_word_embeddings() {
        let path = folder.join("config.json");
        let found = "false".to_owned();
        return Err(problem::unsupported(
            &path,
            "tie_word_embeddings",
            found,
            &["true"],
        ));
    }
    if N::ARCHITECTURE == MultipleChoice::ARCHITECTURE
        && let Some((field, found, computed)) = config.other_summary()
    {
        let path = folder.join("config.json");
        return Err(problem::unsupported(&path, field, found, &[computed]));
    }
    if N::ARCHITECTURE == QuestionAnswerer::ARCHITECTURE && config.modern.is_some() {
        // Its head is called a classifier, with as many outputs as labels.
        config = config.with_num_labels(2)?;
    }
    let file = TensorFile::open_in(folder)?;
    // The head of a checkpoint for another task has the same name and is not usable here.
    let class = |of_bert: &str| config.family.class(of_bert);
    let has_it = |name: &str| {
        // Pretraining's head has the masked language model's in it.
        let predicts = N::ARCHITECTURE == MaskedLm::ARCHITECTURE;
        name == class(N::ARCHITECTURE) || (predicts && name == class("BertForPreTraining"))
    };
    let mut architectures = config.architectures.iter();
    let other_head = architectures.any(|name| name.starts_with(&class("BertFor")) && !has_it(name));
    let mut loader = Loader::new(
        file,
        options.new_head || other_head,
        Layout::of::<N>(&config),
    );
    let network = {
        let mut store = Store::new(device, config.initializer_range, options.seed);
        store = store.with_loader(&mut loader);
        N::new(&mut store.root(), &config)
    };
    config.unused_positions = loader.unused_positions();
    let report = loader.finish(folder)?;
    Ok(LoadedNetwork {
        network,
        config,
        report,
    })
}
