//! What is wrong with a data set: labels that a classifier contradicts, rows that are nearly the same, rows that are like no
//! other, and parts of the data with more errors than the rest.
//!
//! Nothing here knows models or tensors: the input is texts and labels ([`Dataset`](stratoscope_data::Dataset)), vectors of
//! numbers and probabilities. `explain` makes the vectors with a model. All of it is linear in the number of rows, and equal data
//! has equal results everywhere.
//!
//! ```
//! use stratoscope_audit::ConfidentLearning;
//!
//! // Two classes. The third row has the label 0, and a classifier that has not seen it is sure of 1.
//! let labels = [0, 0, 0, 1, 1, 1];
//! let of_one = [0.1, 0.2, 0.95, 0.9, 0.8, 0.9];
//! let probabilities: Vec<Vec<f64>> = of_one.iter().map(|&it| vec![1.0 - it, it]).collect();
//! let found = ConfidentLearning::of(&labels, &probabilities);
//! assert_eq!(found.wrong_labels(), [2]);
//! ```
//!
//! Start reading at [`Audit`], which puts the parts together.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod audit;
mod confident;
mod folds;
mod map;
mod near_duplicates;
mod options;
mod outliers;
mod principal;
mod probe;
mod show;
mod slices;
mod words;

pub use audit::{Audit, AuditedRow, Findings};
pub use confident::ConfidentLearning;
pub use folds::{Folds, classes_of};
pub use map::EmbeddingMap;
pub use near_duplicates::{DuplicateGroup, DuplicateRow, NearDuplicates, near_duplicates};
pub use options::AuditOptions;
pub use outliers::{Outlier, by_distance};
pub use principal::Principal;
pub use probe::Probe;
pub use slices::{Slice, Slices};
