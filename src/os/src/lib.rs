//! What the kernel, the evaluator and the compiler driver need of the operating system: private and temporary
//! folders, the environment the process was started with, text files, process trees, lines for the terminal.
//! It knows neither Jupyter nor Rust code.
//!
//! Start with [`private_folder`], which holds everything a kernel writes, and [`environment`], which every started
//! program goes through.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod cache_folder;
pub mod console;
pub mod environment;
pub mod private_folder;
pub mod process;
pub mod temporary_folder;
pub mod text_file;
