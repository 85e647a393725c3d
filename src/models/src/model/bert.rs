//! BERT's networks as models: loading, saving, and what training asks of them.

use burn::tensor::{Device, Tensor};
use std::path::Path;
use stratoscope_bert::checkpoint::AdapterFolder;
use stratoscope_bert::{
    BatchTensors, BertConfig, BertNetwork, BertTokenizer, LoadOptions, LoadReport, MaskedLm, Mode,
    MultipleChoice, Origin as TensorOrigin, QuestionAnswerer, SentenceEncoder, SequenceClassifier,
    TokenClassifier, checkpoint, source,
};
use stratoscope_data::{Batch, Masking, Tokenize};
use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{Origin, scope};

use crate::model::lora::freeze_all_but_adapters;
use crate::model::{Model, ModelOf};
use crate::report::memory_plan::StepMemory;
use stratoscope_arguments::IntoCount;
use stratoscope_network::{Files, Network, StepShape, Task};

/// What is the same for BERT with any head: it is saved as a checkpoint, and each encoder layer can be recomputed.
macro_rules! of_a_checkpoint {
    () => {
        fn parameters(&self) -> Vec<stratoscope_bert::NamedParameter> {
            stratoscope_bert::named_parameters(self)
        }

        fn can_be_saved(&self) -> bool {
            true
        }

        fn save(
            &self,
            files: &$crate::model::bert::BertFiles,
            folder: &std::path::Path,
        ) -> stratoscope_diagnostics::Result<Vec<std::path::PathBuf>> {
            stratoscope_bert::checkpoint::save(folder, self, &files.config, &files.tokenizer)
        }

        fn blueprint(
            &self,
            files: &$crate::model::bert::BertFiles,
        ) -> Option<stratoscope_network::Blueprint> {
            let architecture = <Self as stratoscope_bert::BertNetwork>::ARCHITECTURE;
            stratoscope_network::Blueprint::of(architecture, &files.config)
        }

        fn output_activation(&self) -> Option<stratoscope_network::Activation> {
            Some(stratoscope_network::Activation::Linear)
        }

        fn follows_policy() -> bool {
            true
        }

        fn can_recompute() -> bool {
            true
        }

        fn attention_heads(&self) -> Option<usize> {
            self.bert.encoder.layer.first()?.heads_in_slices()
        }
    };
}

/// [`Network::segment`] of a network whose rows are those of its batches: its head as a function of the last layer's output.
macro_rules! in_stages {
    ($head:expr) => {
        fn in_stages() -> stratoscope_network::InStages {
            stratoscope_network::InStages::Chain
        }

        fn segment(
            &self,
            segment: &stratoscope_bert::Segment,
            before: Option<burn::tensor::Tensor<3>>,
            batch: &stratoscope_data::Batch,
            mode: stratoscope_bert::Mode,
            device: &burn::tensor::Device,
        ) -> Option<stratoscope_bert::Computed> {
            let head: stratoscope_network::Head<Self> = $head;
            let texts = stratoscope_bert::BatchTensors::from_batch(batch, device);
            let hidden = segment.hidden(&self.bert, before, texts.clone(), mode);
            Some(segment.computed(hidden, |hidden| head(self, hidden, &texts, batch, mode)))
        }
    };
}

mod choice;
mod masked;
mod memory;
mod question;
mod sentence;
mod token;

pub use choice::BertForMultipleChoice;
pub use masked::BertForMaskedLM;
pub use question::BertForQuestionAnswering;
pub use sentence::BertForSentenceEmbedding;
pub use token::BertForTokenClassification;

/// BERT with a classifier, or a regression, on its pooled output.
pub type BertForSequenceClassification = ModelOf<SequenceClassifier>;

/// What came with a BERT's weights.
#[derive(Clone, Debug)]
pub struct BertFiles {
    /// The configuration, with the labels in force.
    pub config: BertConfig,
    /// The checkpoint's own tokenizer.
    pub tokenizer: BertTokenizer,
    /// Where the files were, in words.
    pub source: String,
    /// The checkpoint, by a name or a folder with which it is found again.
    pub checkpoint: String,
    /// What every variable was filled with.
    pub report: LoadReport,
    /// What the model is called: `BertForSequenceClassification`.
    pub architecture: &'static str,
    /// How many tokens two windows of a long text share; `None`: by the length of a window.
    pub stride: Option<usize>,
    /// Which tokens a masked language model learns to predict.
    pub masking: Masking,
}

impl BertFiles {
    /// A step with the rows that the network computes for its examples.
    fn rows_of<'a>(&self, step: &StepShape<'a>) -> StepShape<'a> {
        match self.task() {
            // Each text of a pair is a row by itself; without a measure of how long each is, half of the row.
            Task::Embedding => StepShape {
                examples: 2 * step.examples,
                length: step.length.div_ceil(2),
                ..*step
            },
            // Each choice is a row by itself.
            Task::Choice => StepShape {
                examples: self.config.num_labels() * step.examples,
                ..*step
            },
            _ => *step,
        }
    }
}

impl Files for BertFiles {
    fn model_name(&self) -> &'static str {
        match self.architecture {
            // transformers has no class of this name.
            SentenceEncoder::ARCHITECTURE => "BertForSentenceEmbedding",
            architecture => architecture,
        }
    }

    fn task(&self) -> Task {
        match self.architecture {
            TokenClassifier::ARCHITECTURE => Task::Words,
            QuestionAnswerer::ARCHITECTURE => Task::Span,
            MaskedLm::ARCHITECTURE => Task::Masked,
            SentenceEncoder::ARCHITECTURE => Task::Embedding,
            MultipleChoice::ARCHITECTURE => Task::Choice,
            _ if self.config.multi_label => Task::Set,
            _ => Task::Example,
        }
    }

    fn source(&self) -> Option<String> {
        Some(format!("{}: {}", self.source, self.report.summary()))
    }

    fn adapters(&self) -> Option<String> {
        let lora = self.config.lora.as_ref()?;
        let layers = text::count(lora.modules.len(), "layer");
        let (rank, alpha) = (lora.rank, lora.alpha);
        Some(format!("LoRA of rank {rank} in {layers}, alpha {alpha}"))
    }

    fn adapter_settings(&self) -> Option<String> {
        let lora = self.config.lora.as_ref()?;
        Some(format!(
            "alpha {:?}, dropout {:?}",
            lora.alpha, lora.dropout
        ))
    }

    fn keep_trained(&mut self, names: &[String]) {
        if let Some(lora) = &mut self.config.lora {
            let beside = names.iter().filter(|name| !lora.has(name)).cloned();
            let beside: Vec<String> = beside.collect();
            lora.trained.extend(beside);
        }
    }

    fn tokenizer(&self) -> &dyn Tokenize {
        &self.tokenizer
    }

    fn vocabulary(&self) -> Option<usize> {
        Some(self.config.vocab_size)
    }

    fn label_names(&self) -> &[String] {
        if self.task() == Task::Masked {
            return &[];
        }
        &self.config.labels
    }

    fn set_label_names(&mut self, names: Vec<String>) {
        self.config = self.config.clone().with_labels(names);
    }

    fn binary_labels(&self) -> Option<&[String; 2]> {
        self.config.binary_labels.as_ref()
    }

    fn set_binary_labels(&mut self, names: Option<[String; 2]>) {
        self.config.binary_labels = names;
    }

    fn max_positions(&self) -> usize {
        self.config.max_position_embeddings
    }

    fn stride(&self, max_length: usize) -> usize {
        let usual = (max_length / 3).min(128);
        self.stride.unwrap_or(usual)
    }

    fn new_variables(&self) -> Vec<(String, Vec<usize>)> {
        let new = self.report.of(TensorOrigin::New);
        new.map(|tensor| (tensor.name.clone(), tensor.shape.clone()))
            .collect()
    }

    fn dropout(&self) -> Option<f64> {
        // ModernBERT is pretrained and fine-tuned without, so that a rate of 0 is no mistake.
        let is_usual = self.config.modern.is_none();
        is_usual.then(|| self.config.largest_dropout())
    }

    fn attention_window(&self, layer: usize) -> Option<usize> {
        (self.config.modern.as_ref()?.layers.get(layer)?).window
    }

    fn step_memory(&self, step: &StepShape<'_>) -> Option<Vec<StepMemory>> {
        let predicted = (self.task() == Task::Masked).then_some(self.masking.share);
        let step = &self.rows_of(step);
        Some(memory::of_a_step(&self.config, step, predicted))
    }

    fn segment_memory(
        &self,
        step: &StepShape<'_>,
        layers: usize,
        has_embeddings: bool,
    ) -> Option<u64> {
        let step = self.rows_of(step);
        Some(memory::of_a_segment(
            &self.config,
            &step,
            layers,
            has_embeddings,
        ))
    }

    fn masking(&self) -> Masking {
        self.masking
    }

    fn classes(&self) -> Option<usize> {
        if self.task() == Task::Masked {
            return Some(self.config.vocab_size);
        }
        let is_number = match self.task() {
            Task::Example => self.config.is_regression(),
            task => task == Task::Embedding,
        };
        (!is_number).then(|| self.config.num_labels())
    }
}

impl Network for SequenceClassifier {
    type Files = BertFiles;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        self.forward(BatchTensors::from_batch(batch, device), mode)
    }

    in_stages!(|network, hidden, texts, _, mode| {
        network.of_hidden(hidden, texts.attention_mask.clone(), mode)
    });

    of_a_checkpoint!();
}

impl ModelOf<SequenceClassifier> {
    /// Loads a checkpoint, with a head of `num_labels` outputs; 1 makes it a regression, or a decision between
    /// two classes if its loss is `BinaryCrossentropy`. A head that
    /// the checkpoint has for another number of labels is an error; one it lacks is new.
    ///
    /// `name` is a folder, or a model's name, which is looked for in the Hugging Face cache, in the
    /// installed Python package and on the hub, in this order.
    ///
    /// # Errors
    /// SC0915 for a number of labels that is not at least 1; the checkpoint's own diagnostics; SC0907
    /// if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str, num_labels: impl IntoCount) -> Result<Self> {
        let origin = Origin::current();
        let num_labels = labels_of_a_head(num_labels)?;
        load(name, &LoadOptions::new().num_labels(num_labels), origin)
    }

    /// The same with the names of the labels, in the order of the outputs.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_labels<L: Into<String>>(
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let origin = Origin::current();
        load_labels(name, labels.into_iter().map(Into::into).collect(), origin)
    }

    /// The same for texts that may have several of these labels, or none: each is decided by itself, under
    /// `BinaryCrossentropy`.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_multi_label<L: Into<String>>(
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let origin = Origin::current();
        let labels = labels.into_iter().map(Into::into).collect();
        let options = LoadOptions::new().multi_label();
        load_with_labels(name, labels, options, origin)
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, options, Origin::current())
    }
}

impl<N: Network<Files = BertFiles>> ModelOf<N> {
    /// Gives the model another tokenizer; weights and labels stay. Its ids must be those that the
    /// model's word embeddings were trained with: ids that have no vector are SC0402 in the next call
    /// with texts.
    ///
    /// # Errors
    /// SC0121 in a callback of the model's own run.
    pub fn set_tokenizer(&self, tokenizer: BertTokenizer) -> Result<()> {
        self.free_state("set_tokenizer")?
            .files
            .of_mut::<BertFiles>()
            .tokenizer = tokenizer;
        Ok(())
    }

    /// The tokenizer that it carries.
    pub fn tokenizer(&self) -> BertTokenizer {
        self.state().files.of::<BertFiles>().tokenizer.clone()
    }

    /// What every variable was filled with when it was loaded.
    pub fn load_report(&self) -> LoadReport {
        self.state().files.of::<BertFiles>().report.clone()
    }
}

/// A model of a checkpoint, in the scope.
fn load<N>(name: &str, options: &LoadOptions, origin: Origin) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let own = AdapterFolder::of(Path::new(name.trim()))?;
    let found = source::find(own.as_ref().map_or(name, |adapters| &adapters.base))?;
    let device = scope::device()?;
    let loaded = match &own {
        Some(adapters) => adapters.load::<N>(&found.folder, options, &device)?,
        None => checkpoint::load_as::<N>(&found.folder, options, &device)?,
    };
    let files = BertFiles {
        config: loaded.config,
        tokenizer: loaded.tokenizer,
        source: match own {
            Some(_) => format!("adapters in {} for {found}", name.trim()),
            None => found.to_string(),
        },
        checkpoint: found.again(),
        report: loaded.report,
        architecture: N::ARCHITECTURE,
        stride: None,
        masking: Masking::default(),
    };
    let model = Model::with_files(loaded.network, files, origin)?;
    freeze_all_but_adapters::<N>(&mut model.state());
    Ok(model)
}

/// The same with these names of its labels.
fn load_labels<N>(name: &str, labels: Vec<String>, origin: Origin) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    load_with_labels(name, labels, LoadOptions::new(), origin)
}

/// The same with more options.
fn load_with_labels<N>(
    name: &str,
    labels: Vec<String>,
    options: LoadOptions,
    origin: Origin,
) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let num_labels = labels_of_a_head(labels.len())?;
    let model = load::<N>(name, &options.num_labels(num_labels), origin)?;
    let mut state = model.state();
    state.files.set_label_names(labels);
    drop(state);
    Ok(model)
}

fn labels_of_a_head(given: impl IntoCount) -> Result<usize> {
    let given = given.into_count();
    let found = given.value().and_then(|count| usize::try_from(count).ok());
    found.filter(|&count| count > 0).ok_or_else(|| {
        let rule = InvalidSize {
            what: "num_labels".to_owned(),
            given: given.to_string(),
            expects: "an integer ≥ 1".to_owned(),
            place: Some(Place::call("from_pretrained")),
        };
        rule.error()
    })
}
