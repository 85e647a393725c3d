//! BERT's networks as training needs them: one file a head, what came with their weights, and the memory of a step.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{
    BatchTensors, BertConfig, BertNetwork, BertTokenizer, LoadReport, MaskedLm, Mode,
    MultipleChoice, Origin as TensorOrigin, QuestionAnswerer, SentenceEncoder, SequenceClassifier,
    TokenClassifier,
};
use stratoscope_data::{Batch, Masking, Tokenize};
use stratoscope_render::text;
use stratoscope_report::memory_plan::StepMemory;

use crate::{Files, Network, StepShape, Task};

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
            files: &$crate::bert::BertFiles,
            folder: &std::path::Path,
        ) -> stratoscope_diagnostics::Result<Vec<std::path::PathBuf>> {
            stratoscope_bert::checkpoint::save(folder, self, &files.config, &files.tokenizer)
        }

        fn blueprint(&self, files: &$crate::bert::BertFiles) -> Option<$crate::Blueprint> {
            let architecture = <Self as stratoscope_bert::BertNetwork>::ARCHITECTURE;
            $crate::Blueprint::of(architecture, &files.config)
        }

        fn output_activation(&self) -> Option<$crate::Activation> {
            Some($crate::Activation::Linear)
        }

        fn follows_policy() -> bool {
            true
        }

        fn can_recompute() -> bool {
            true
        }

        fn attention_heads(&self) -> Option<usize> {
            self.bert.encoder.heads_in_slices()
        }
    };
}

/// [`Network::segment`] of a network whose rows are those of its batches: its head as a function of the last layer's output.
macro_rules! in_stages {
    ($head:expr) => {
        fn in_stages() -> $crate::InStages {
            $crate::InStages::Chain
        }

        fn segment(
            &self,
            segment: &stratoscope_bert::Segment,
            before: Option<burn::tensor::Tensor<3>>,
            batch: &stratoscope_data::Batch,
            mode: stratoscope_bert::Mode,
            device: &burn::tensor::Device,
        ) -> Option<stratoscope_bert::Computed> {
            let head: $crate::Head<Self> = $head;
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

    fn trained_length(&self) -> Option<usize> {
        self.config.trained_length
    }

    fn set_trained_length(&mut self, tokens: usize) {
        self.config.trained_length = Some(tokens);
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

/// [B, N, M] → [B, N·M]: the numbers of an example side by side.
fn flat(numbers: Tensor<3>) -> Tensor<2> {
    let [rows, count, width] = numbers.dims();
    numbers.reshape([rows, count * width])
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
