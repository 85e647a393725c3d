//! Data sets of texts or numbers: from a file to the batches that a model takes.
//!
//! A [`Dataset`] holds [`Example`]s and the names of their classes. It comes from a file
//! ([`Dataset::tsv`], [`Dataset::csv`], [`Dataset::jsonl`], [`Dataset::conll`]), from a benchmark's folder ([`Glue`]),
//! or ships with the crate ([`debian_sections`], [`debian_pairs`], [`debian_entities`], [`debian_questions`]).
//! [`pipeline`] has the transformations before training. [`Dataset::tokenize`] encodes it once, by any tokenizer that
//! implements [`Tokenize`], into an [`Encoded`] data set; each epoch is then `shuffle` → `batch` → `prefetch`:
//!
//! ```
//! use stratoscope_data::{Encoding, Tokenize, debian_sections};
//! use stratoscope_diagnostics::Result;
//!
//! struct Letters; // a stand-in for a real tokenizer
//! impl Tokenize for Letters {
//!     fn encode(&self, text: &str, _pair: Option<&str>, max_length: usize) -> Result<Encoding> {
//!         let ids: Vec<u32> = text.chars().take(max_length).map(|letter| letter as u32).collect();
//!         let truncated = text.chars().count() - ids.len();
//!         Ok(Encoding { type_ids: vec![0; ids.len()], ids, truncated })
//!     }
//!     fn decode(&self, ids: &[u32]) -> String {
//!         ids.iter().filter_map(|&id| char::from_u32(id)).collect()
//!     }
//!     fn tokens(&self, ids: &[u32]) -> Vec<String> {
//!         ids.iter().map(|id| self.decode(&[*id])).collect()
//!     }
//!     fn pad_id(&self) -> u32 { 0 }
//!     fn unk_id(&self) -> u32 { 1 }
//!     fn vocab_size(&self) -> usize { 0x11_0000 }
//! }
//!
//! # fn main() -> Result<()> {
//! let (train, _dev) = debian_sections()?;
//! let encoded = train.tokenize(&Letters, 64)?;
//! for epoch in 0..2 {
//!     for batch in encoded.shuffle(7, epoch).batch(32)?.prefetch(2) {
//!         assert_eq!(batch.ids.len(), batch.size() * batch.seq);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Who owns which argument
//! The path and the columns belong to the data set; `max_length` to the tokenization; `seed` and
//! the epoch to the order; `batch_size` is the *global* batch, which [`Batch::split`] divides over
//! replicas. Labels, lengths and files are checked here, before the first training step.
//!
//! The crate does not know burn: losses, devices and vocabularies belong to the crates above.
//!
//! Start reading at [`dataset`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod annotation;
mod apart;
pub mod batch;
pub mod batches;
mod choices;
mod class_order;
pub mod dataset;
mod edits;
pub mod encoded;
pub mod example;
mod grouping;
mod in_memory;
pub mod input;
mod label_sets;
pub mod masking;
pub mod numeric;
mod packing;
mod parts;
pub mod pipeline;
pub mod prefetch;
mod problem;
pub mod questions;
pub mod random;
mod shards;
mod similar_labels;
pub mod source;
pub mod split;
pub mod stream;
pub mod summary;
pub mod tags;
pub mod target;
mod token_cache;
mod tokenization;
pub mod tokenize;
mod weights;
pub mod words;

pub use annotation::{Annotation, Answer, Word};
pub use batch::{Batch, Labels, SpanLabels, TokenLabels};
pub use batches::Batches;
pub use dataset::{Dataset, SkippedRows};
pub use encoded::{Encoded, EncodedExample, Targets, TokenReport};
pub use example::{Example, Label};
pub use in_memory::LabelledText;
pub use input::{Input, IntoInput, IntoText};
pub use masking::Masking;
pub use numeric::{make_classification, make_regression};
pub use parts::even_shares;
pub use prefetch::Prefetch;
pub use questions::{Passage, Window};
pub use random::{RandomStream, permutation};
pub use shards::AutoShardPolicy;
pub use similar_labels::similar_labels;
pub use source::{Columns, Glue, debian_entities, debian_pairs, debian_questions, debian_sections};
pub use split::{Data, IntoData, Split, SplitBatches, length_of};
pub use stream::{EncodedStream, Stream, StreamTokens};
pub use tags::{Entity, TagScheme};
pub use target::{IntoTarget, Target};
pub use token_cache::{Kept, TokenCache};
pub use tokenization::{TokensOf, encode_example};
pub use tokenize::{Encoding, Piece, Tokenize};
pub use weights::is_weight;
pub use words::Alignment;
