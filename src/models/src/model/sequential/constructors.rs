//! `Dense::new(8)` beside `Dense(8)`: in Rust most values are made by `new`. Types and functions have names of their own, so
//! that a function and a type may have the same one.

use super::layer::{self, Layer};
use stratoscope_arguments::IntoCount;

pub use super::layer::{Dense, Dropout, Embedding, Flatten, GlobalAveragePooling1D};

/// The type whose `new` makes a dense layer; it has no values.
pub enum Dense {}

impl Dense {
    /// The same as [`Dense`](layer::Dense()).
    #[allow(clippy::new_ret_no_self, reason = "a layer of any kind is a `Layer`")]
    pub fn new(units: impl IntoCount) -> Layer {
        layer::Dense(units)
    }
}

/// The type whose `new` makes a layer of dropout; it has no values.
pub enum Dropout {}

impl Dropout {
    /// The same as [`Dropout`](layer::Dropout()).
    #[allow(clippy::new_ret_no_self, reason = "a layer of any kind is a `Layer`")]
    pub fn new(rate: f64) -> Layer {
        layer::Dropout(rate)
    }
}

/// The type whose `new` makes an embedding; it has no values.
pub enum Embedding {}

impl Embedding {
    /// The same as [`Embedding`](layer::Embedding()).
    #[allow(clippy::new_ret_no_self, reason = "a layer of any kind is a `Layer`")]
    pub fn new(input_dim: impl IntoCount, output_dim: impl IntoCount) -> Layer {
        layer::Embedding(input_dim, output_dim)
    }
}

/// The type whose `new` makes a layer that writes positions one after the other; it has no values.
pub enum Flatten {}

impl Flatten {
    /// The same as [`Flatten`](layer::Flatten()).
    #[allow(clippy::new_ret_no_self, reason = "a layer of any kind is a `Layer`")]
    pub fn new() -> Layer {
        layer::Flatten()
    }
}

/// The type whose `new` makes a layer that takes a mean over positions; it has no values.
pub enum GlobalAveragePooling1D {}

impl GlobalAveragePooling1D {
    /// The same as [`GlobalAveragePooling1D`](layer::GlobalAveragePooling1D()).
    #[allow(clippy::new_ret_no_self, reason = "a layer of any kind is a `Layer`")]
    pub fn new() -> Layer {
        layer::GlobalAveragePooling1D()
    }
}
