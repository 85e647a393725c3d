//! Models in the Open Neural Network Exchange format: a graph of operators, written as a file that onnxruntime and other
//! programs run. The crate knows graphs, tensors and the encoding, neither models nor burn.
//!
//! A [`Graph`] is made operator by operator; [`Model`] adds what belongs to a file and writes it. Files are of operator set
//! [`OPSET`], the first with `LayerNormalization` (<https://onnx.ai/onnx/operators/>).
//!
//! ```
//! use stratoscope_onnx::{Dimension, ElementType, Graph, Model, Tensor};
//!
//! let mut graph = Graph::new("a dense layer");
//! let rows = Dimension::Named("batch_size");
//! let x = graph.input("x", ElementType::Float, &[rows, Dimension::Size(2)]);
//! let weight = graph.tensor(Tensor::floats("weight", &[2, 1], vec![3.0, 4.0]));
//! let y = graph.node("dense", "MatMul", &[&x, &weight], &[]);
//! graph.output("y", &y, ElementType::Float, &[rows, Dimension::Size(1)]);
//! let mut file = Vec::new();
//! let model = Model { graph, metadata: vec![("units".to_owned(), "1".to_owned())] };
//! model.write_to(&mut file)?;
//! assert_eq!(file.len() as u64, model.bytes());
//! # std::io::Result::Ok(())
//! ```
//!
//! Start reading at [`Graph`], then `model.rs` for the file; the numbers of fields are those of ONNX's `onnx.proto`, named
//! where they are used.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod graph;
mod model;
mod protobuf;
pub mod quantized;
mod tensor;

pub use graph::{Attribute, Dimension, Graph, Value};
pub use model::{MAX_BYTES, Model, OPSET};
pub use tensor::{ElementType, Tensor};
