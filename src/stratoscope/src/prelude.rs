//! What a notebook has in scope from the start: `use stratoscope::prelude::*;`.
//!
//! The macros `compile!`, `fit!`, `evaluate!` and `scope!` are here too.

pub use crate::display::{
    Html, IntoBundle, Markdown, Svg, clear_output, display, display_as, display_html,
    display_update,
};
pub use crate::progress::{Plot, placement};
pub use crate::{compile, evaluate, fit, scope};

pub use burn::tensor::{Device, Int, Tensor, TensorData};
pub use stratoscope_data::{Dataset, Example, Glue, Label, debian_pairs, debian_sections};
pub use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, PlacementReport, Strategy, cpu, cuda, devices,
    wgpu,
};
pub use stratoscope_train::{
    Adam, AdamW, BertForSequenceClassification, BertTokenizer, CompileArgs, CompileReceipt,
    CosineDecay, EvaluateArgs, Evaluation, ExponentialDecay, FitArgs, History, Loss,
    MeanSquaredError, Metric, Model, Predictions, SGD, Schedule, SparseCategoricalCrossentropy,
    accuracy, constant, f1, macro_f1, mcc, pearson, spearman, warmup_linear,
};
