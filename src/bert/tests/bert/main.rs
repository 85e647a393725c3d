//! The crate against the reference implementation and against damaged files, one process for all.

mod albert;
mod bad_files;
mod bad_tokenizers;
mod beside_transformers;
mod bfloat16;
mod byte_level;
mod families;
mod fixtures;
mod lora;
mod minilm;
mod modern;
mod parity;
mod pytorch;
mod relative;
mod saving;
mod sources;
mod taps;
