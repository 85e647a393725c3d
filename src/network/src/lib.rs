//! What training needs of a network. The crate `models` implements it for BERT's networks and for lists of layers
//! (`Sequential`); a user's own burn module can implement it too.
//!
//! Start reading at [`Network`], then at `erased.rs`, a network without its type: all that training is compiled for.
//!
//! Start reading at [`Network`], then at `erased.rs`, a network without its type: all that training is compiled for.
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{Device, Tensor};
//! use stratoscope_bert::Mode;
//! use stratoscope_data::Batch;
//! use stratoscope_network::{Network, Outputs, features};
//!
//! /// Two layers that wait for the width of their input, as a Keras model with `build` does.
//! #[derive(Module, Debug)]
//! struct Two {
//!     hidden: Option<Linear>,
//!     last: Option<Linear>,
//! }
//!
//! impl Network for Two {
//!     type Files = Outputs;
//!
//!     fn is_built(&self) -> bool {
//!         self.hidden.is_some()
//!     }
//!
//!     fn build(mut self, width: usize, device: &Device) -> Self {
//!         self.hidden = Some(LinearConfig::new(width, 10).init(device));
//!         self.last = Some(LinearConfig::new(10, 1).init(device));
//!         self
//!     }
//!
//!     fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
//!         let (Some(hidden), Some(last)) = (&self.hidden, &self.last) else {
//!             unreachable!("it is built before it is asked");
//!         };
//!         let x = hidden.forward(features(batch, device));
//!         last.forward(burn::tensor::activation::relu(x))
//!     }
//! }
//!
//! let built = Two { hidden: None, last: None }.build(5, &Device::default());
//! assert!(built.is_built());
//! ```

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod activation;
pub mod bert;
mod blueprint;
mod by_rank;
mod erased;
mod in_slices;
mod in_stages;
pub mod made;
mod no_tokenizer;
mod outputs;
mod task;

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_bert::{Computed, Mode, NamedParameter, Segment, named_parameters};
use stratoscope_data::{Batch, Dataset, Masking, Tokenize};
use stratoscope_diagnostics::Result;

use stratoscope_report::memory_plan::StepMemory;
use stratoscope_report::summary::LayerRow;

pub use activation::{Activation, IntoActivation};
pub use blueprint::Blueprint;
pub use erased::AnyNetwork;
pub use in_slices::check_slices;
pub use in_stages::InStages;
pub use in_stages::{Head, check_stages};
pub use no_tokenizer::NoTokenizer;
pub use outputs::Outputs;
pub use task::Task;

/// A network whose last layer has one output per label, or one output for a regression.
pub trait Network: Module + 'static {
    /// What came with the weights: [`Outputs`] for a network of one's own that takes numbers.
    type Files: Files;

    /// The outputs for a batch, before any softmax, computed on `device`, where the network is.
    /// Whether dropout is active, and with which masks, is `mode`'s to say.
    ///
    /// # Shapes
    /// B rows of S tokens, or of W numbers → [B, C]; of a head that answers each token, [B, S·C]
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2>;

    /// The parameters with their checkpoint's names; by default those of the fields.
    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(self)
    }

    /// Whether its variables exist. One that waits for the width of its input has none before.
    fn is_built(&self) -> bool {
        true
    }

    /// Whether its variables for rows of `width` numbers fit into memory. Asked before [`build`](Self::build).
    ///
    /// # Errors
    /// SC0915 for sizes that do not.
    fn fits(&self, _width: usize) -> Result<()> {
        Ok(())
    }

    /// The network with its variables, for rows of `width` numbers, made on `device`. Called once,
    /// if it is not built, in the scope that places the variables.
    #[must_use]
    fn build(self, _width: usize, _device: &Device) -> Self {
        self
    }

    /// How many numbers a row must have, where the network knows; a network that is not built but
    /// knows is built by `compile!`.
    fn input_width(&self) -> Option<usize> {
        None
    }

    /// What is wrong with this data for this network, beside the width.
    ///
    /// # Errors
    /// A diagnostic that names the call.
    fn check(&self, _data: &Dataset, _call: &str) -> Result<()> {
        Ok(())
    }

    /// Whether [`save`](Self::save) writes files, which `checkpoint` of `fit!` needs, where `every` is not given.
    fn can_be_saved(&self) -> bool {
        false
    }

    /// Writes it to a folder so that it can be loaded again, and returns the files.
    ///
    /// # Errors
    /// A diagnostic for the first file that cannot be written.
    fn save(&self, _files: &Self::Files, _folder: &Path) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Whether its layers compute as a mixed-precision policy says, because all they do goes through
    /// `stratoscope_bert::ops`. Any other network computes in float32 under each.
    fn follows_policy() -> bool {
        false
    }

    /// Whether its layers can be computed once more in the backward pass (`recompute` of `fit!`) instead of keeping what
    /// they have computed.
    fn can_recompute() -> bool {
        false
    }

    /// Whether a `PipelineStrategy` can divide its layers among several devices: then it has [`segment`](Self::segment).
    fn in_stages() -> InStages {
        InStages::NoChain
    }

    /// The part of [`logits`](Self::logits) that a stage of a pipeline computes, from the output of the stage before; without
    /// one, from the batch. All segments one after the other compute what `logits` does, to the last bit. `None` for a network
    /// that is not divided.
    fn segment(
        &self,
        _segment: &Segment,
        _before: Option<Tensor<3>>,
        _batch: &Batch,
        _mode: Mode,
        _device: &Device,
    ) -> Option<Computed> {
        None
    }

    /// How many attention heads each of its encoder layers has, for a network whose layers are those of BERT, computed by
    /// `stratoscope_bert`: then `ModelParallel` can cut them. `None`: they cannot be computed in slices.
    fn attention_heads(&self) -> Option<usize> {
        None
    }

    /// What another process builds the network from, values aside, for a network that this library has. `None`: it has no
    /// such description.
    fn blueprint(&self, _files: &Self::Files) -> Option<Blueprint> {
        None
    }

    /// Its layers for `summary()`, where it knows the shapes of their outputs; else its variables are shown.
    fn layer_rows(&self) -> Option<Vec<LayerRow>> {
        None
    }

    /// What its last layer does to the outputs: [`Activation::Linear`] where they are logits or plain
    /// numbers. `None`, the default, where that is not known; `fit!` then looks at the first batch.
    fn output_activation(&self) -> Option<Activation> {
        None
    }
}

/// The numbers of a batch on a device.
///
/// # Shapes
/// B rows of W numbers → [B, W]
pub fn features(batch: &Batch, device: &Device) -> Tensor<2> {
    let shape = [batch.size(), batch.width()];
    Tensor::from_data(TensorData::new(batch.features.clone(), shape), device)
}

/// What the examples of a model are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Texts, for the model's tokenizer.
    Texts,
    /// Rows of numbers.
    Features,
}

/// A training step of one replica, as far as its memory depends on it.
#[derive(Clone, Copy)]
pub struct StepShape<'a> {
    /// Rows of a batch.
    pub examples: usize,
    /// Tokens of a row.
    pub length: usize,
    /// Whether it computes on the CPU backend, with the fused operations.
    pub on_cpu: bool,
    /// Whether outputs and weights are rounded to 16 bits.
    pub rounds: bool,
    /// Whether it computes in bfloat16 on the CPU, where what is kept for the backward pass takes 16 bits.
    pub in_bfloat16: bool,
    /// Whether it computes in float16 or bfloat16 on GPUs, where what products keep takes 16 bits.
    pub half_on_gpu: bool,
    /// Whether layers are computed once more in the backward pass.
    pub recompute: bool,
    /// The bytes of the trained variables whose names begin so.
    pub trained: &'a dyn Fn(&str) -> u64,
}

impl fmt::Debug for StepShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} tokens", self.examples, self.length)
    }
}

/// What belongs to a network's weights: tokenizer, labels, limits.
pub trait Files: CloneFiles + Any + fmt::Debug + Send + Sync {
    /// What users call the model: `BertForSequenceClassification`.
    fn model_name(&self) -> &'static str;

    /// Where the weights came from, in words.
    fn source(&self) -> Option<String> {
        None
    }

    /// Its low-rank adapters in words, where it has some.
    fn adapters(&self) -> Option<String> {
        None
    }

    /// What its adapters compute beside what their variables say, to the last bit: a run goes on with nothing else.
    fn adapter_settings(&self) -> Option<String> {
        None
    }

    /// These variables are trained: a model that is saved in parts, as with adapters, is saved with them.
    fn keep_trained(&mut self, _names: &[String]) {}

    /// What the model answers for an example.
    fn task(&self) -> Task {
        Task::Example
    }

    /// How many tokens two windows of a text that is too long share, for windows of `max_length` tokens.
    fn stride(&self, max_length: usize) -> usize {
        (max_length / 3).min(128)
    }

    /// Which tokens are hidden, for a model that predicts them.
    fn masking(&self) -> Masking {
        Masking::default()
    }

    /// The same; `None` for a model that predicts no tokens.
    fn hidden(&self) -> Option<Masking> {
        (self.task() == Task::Masked).then(|| self.masking())
    }

    /// What an example is.
    fn takes(&self) -> Input {
        Input::Texts
    }

    /// Turns texts into ids.
    fn tokenizer(&self) -> &dyn Tokenize;

    /// How many word embeddings the network has: the ids of its tokens are below. `None` for a network
    /// without.
    fn vocabulary(&self) -> Option<usize> {
        None
    }

    /// The `max_length` of the latest training over texts, as the files have it.
    fn trained_length(&self) -> Option<usize> {
        None
    }

    /// Notes the `max_length` of a training. Files that are written have it.
    fn set_trained_length(&mut self, _tokens: usize) {}

    /// The name of each label, as many as the network has outputs.
    fn label_names(&self) -> &[String];

    /// Gives the labels other names, as many as before.
    fn set_label_names(&mut self, names: Vec<String>);

    /// Where the one output decides between two classes: their names, of no and of yes.
    fn binary_labels(&self) -> Option<&[String; 2]> {
        None
    }

    /// The one output decides between these, or is a number again.
    fn set_binary_labels(&mut self, _names: Option<[String; 2]>) {}

    /// Tokens of the longest text that the network takes.
    fn max_positions(&self) -> usize;

    /// How far a position of this encoder layer attends on either side; `None`: to all.
    fn attention_window(&self, _layer: usize) -> Option<usize> {
        None
    }

    /// The variables that had no values in a checkpoint, with their shapes: they are random until they
    /// are trained.
    fn new_variables(&self) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }

    /// The largest of its dropout rates, where it is known and usual.
    fn dropout(&self) -> Option<f64> {
        None
    }

    /// What a training step needs on a replica beside weights and moments, at the times that may need the most; where it
    /// is known.
    fn step_memory(&self, _step: &StepShape<'_>) -> Option<Vec<StepMemory>> {
        None
    }

    /// What so many encoder layers keep of such a step for its backward pass, with the embeddings where they are among them;
    /// where it is known.
    fn segment_memory(
        &self,
        _step: &StepShape<'_>,
        _layers: usize,
        _has_embeddings: bool,
    ) -> Option<u64> {
        None
    }

    /// How many classes; `None` where the one output is a number.
    fn classes(&self) -> Option<usize> {
        Some(self.label_names().len()).filter(|&labels| labels > 1)
    }
}

/// A copy of [`Files`] of any type; every type that can be cloned has it.
pub trait CloneFiles {
    /// The same once more.
    fn boxed(&self) -> Box<dyn Files>;
}

impl<F: Files + Clone> CloneFiles for F {
    fn boxed(&self) -> Box<dyn Files> {
        Box::new(self.clone())
    }
}

impl dyn Files {
    /// The files as those of a network of a known type.
    ///
    /// # Panics
    /// If they belong to a network of another type; a model keeps those that it was made with.
    pub fn of<F: Files>(&self) -> &F {
        let files: &dyn Any = self;
        let files = files.downcast_ref();
        files.expect("a model holds the files that it was made with")
    }

    /// The files, if they are of this type.
    pub fn get<F: Files>(&self) -> Option<&F> {
        let files: &dyn Any = self;
        files.downcast_ref()
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// As `of`.
    pub fn of_mut<F: Files>(&mut self) -> &mut F {
        let files: &mut dyn Any = self;
        let files = files.downcast_mut();
        files.expect("a model holds the files that it was made with")
    }
}

impl Clone for Box<dyn Files> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}
