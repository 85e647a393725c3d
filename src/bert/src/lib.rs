//! BERT as burn modules, and the Hugging Face files that hold it.
//!
//! [`SequenceClassifier`] is the network of `BertForSequenceClassification`: a [`Bert`] body with a
//! classifier on its pooled output. Every module is a file, its fields are named as the checkpoint's
//! keys (`names` has the two exceptions), and all arithmetic goes through [`ops`], so that a
//! faster version of an operation changes no layer. [`source::find`] says where a model's files are,
//! [`checkpoint::load`] turns them into a network, a [`BertTokenizer`] and a [`LoadReport`] of what
//! each variable was filled with, and [`checkpoint::save`] writes files that transformers reads.
//!
//! ```no_run
//! use burn::tensor::Device;
//! use stratoscope_bert::{BatchTensors, LoadOptions, Mode, checkpoint, source};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let source = source::find("all-MiniLM-L6-v2")?;
//! let device = Device::flex();
//! let loaded = checkpoint::load(&source.folder, &LoadOptions::new().num_labels(8), &device)?;
//! let encoded = loaded.tokenizer.encode("a text editor", None, 64);
//! let batch = BatchTensors::from_rows(&[encoded], loaded.tokenizer.pad_id(), &device);
//! let logits = loaded.network.forward(batch, Mode::Eval); // [1, 8]
//! # use stratoscope_data::Tokenize;
//! # Ok(())
//! # }
//! ```
//!
//! Devices, scopes and replicas are not this crate's business: it makes a network on the device it
//! is given. Neither are losses, optimizers and metrics.

pub mod batch;
pub mod config;
pub mod mode;
pub mod parameters;

pub mod embedding_table;
pub mod layer_norm;
pub mod linear;

pub mod attention;
pub mod bert;
pub mod embeddings;
pub mod encoder;
pub mod intermediate;
pub mod layer;
pub mod output;
pub mod pooler;
pub mod self_attention;
pub mod self_output;
pub mod sequence_classifier;

pub mod checkpoint;
pub mod names;
pub mod ops;
pub mod source;
pub mod tokenizer;

mod problem;

pub use batch::BatchTensors;
pub use bert::{Bert, BertOutput};
pub use checkpoint::{LoadOptions, LoadReport, Loaded, LoadedNetwork, Origin};
pub use config::BertConfig;
pub use mode::Mode;
pub use names::{NamedParameter, gradient, named_parameters};
pub use sequence_classifier::SequenceClassifier;
pub use source::{Source, SourceKind};
pub use tokenizer::BertTokenizer;
