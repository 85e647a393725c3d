//! BERT as burn modules, and the Hugging Face files that hold it.
//!
//! [`SequenceClassifier`] is the network of transformers' `BertForSequenceClassification`: a [`Bert`] body with a
//! classifier on its pooled output; [`heads`] has what it shares with the other heads, such as [`TokenClassifier`].
//! Each layer has a file, and its fields are named like the checkpoint's keys ([`names`] has the two exceptions). All
//! arithmetic goes through [`ops`], so a faster version of an operation changes no layer. [`source::find`] finds a
//! model's files, [`checkpoint::load`] reads a network, a [`BertTokenizer`] and a [`LoadReport`] that lists where the
//! values of each variable came from, and [`checkpoint::save`] writes files that transformers reads.
//!
//! ```no_run
//! use burn::tensor::Device;
//! use stratoscope_bert::{BatchTensors, LoadOptions, Mode, checkpoint, source};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let source = source::find("all-MiniLM-L6-v2")?;
//! let device = Device::flex();
//! let loaded = checkpoint::load(&source.folder, &LoadOptions::new().num_labels(8), &device)?;
//! let encoded = loaded.tokenizer.encode("a text editor", None, 64)?;
//! let batch = BatchTensors::from_rows(&[encoded], loaded.tokenizer.pad_id(), &device);
//! let logits = loaded.network.forward(batch, Mode::Eval); // [1, 8]
//! # use stratoscope_data::Tokenize;
//! # Ok(())
//! # }
//! ```
//!
//! What layers compute can be looked at through [`taps`], and computed again instead of kept ([`recompute`]).
//! The layers of a network can be computed in several places ([`segment`]).
//!
//! The crate builds a network on one given device; replicas, losses, optimizers and metrics belong to the crates above.
//!
//! Start reading at [`sequence_classifier`], which names the layers from top to bottom; then [`attention`], and [`ops`]
//! for the arithmetic.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod batch;
pub mod config;
pub mod family;
pub mod mode;
pub mod parameters;

pub mod embedding_table;
pub mod layer_norm;
pub mod linear;
pub mod lora;

pub mod attention;
pub mod bert;
pub mod body;
pub mod embeddings;
pub mod encoder;
pub mod heads;
pub mod intermediate;
pub mod layer;
pub mod masked_lm;
pub mod multiple_choice;
pub mod output;
pub mod parallel;
pub mod pooler;
pub mod pre_norm;
pub mod question_answerer;
pub mod relative;
pub mod self_attention;
pub mod self_output;
pub mod sentence_encoder;
pub mod sequence_classifier;
pub mod token_classifier;

pub mod checkpoint;
pub mod names;
pub mod ops;
pub mod recompute;
pub mod segment;
pub mod source;
pub mod taps;
pub mod tokenizer;

mod layout;
mod problem;

pub use batch::BatchTensors;
pub use bert::{Bert, BertOutput};
pub use checkpoint::{LoadOptions, LoadReport, Loaded, LoadedNetwork, Origin};
pub use config::{BertConfig, ModernConfig};
pub use family::Family;
pub use heads::BertNetwork;
pub use lora::LoraConfig;
pub use masked_lm::MaskedLm;
pub use mode::Mode;
pub use multiple_choice::MultipleChoice;
pub use names::{NamedParameter, gradient, named_parameters};
pub use question_answerer::QuestionAnswerer;
pub use segment::{Computed, Segment};
pub use sentence_encoder::SentenceEncoder;
pub use sequence_classifier::SequenceClassifier;
pub use source::{Source, SourceKind};
pub use stratoscope_render::pattern;
pub use token_classifier::TokenClassifier;
pub use tokenizer::BertTokenizer;
