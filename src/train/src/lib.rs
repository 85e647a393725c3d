//! Training: `compile!`, `fit!`, `evaluate!` and `predict` with their arguments, optimizers, schedules, losses,
//! metrics, the training loop and its history.
//!
//! A [`Model`] is a network under a strategy, with its tokenizer and labels; [`BertForSequenceClassification`]
//! is the one for texts. [`Model::compile`] takes [`CompileArgs`]: an optimizer ([`AdamW`], [`Adam`],
//! [`SGD`]) with a [`Schedule`], a [`Loss`], [`Metric`]s. [`Model::fit`] takes a data set and
//! [`FitArgs`] and returns a [`History`]; [`Model::start`] returns a [`Run`] that is driven in pieces. `evaluate` and
//! `predict` use the trained weights. A run reports its progress to an [`events::Observer`].
//!
//! ```no_run
//! use stratoscope_data::debian_sections;
//! use stratoscope_strategy::{MirroredStrategy, scope};
//! use stratoscope_train::{
//!     AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
//!     accuracy, warmup_linear,
//! };
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let (train, dev) = debian_sections()?;
//! let strategy = MirroredStrategy::logical(2)?;
//! let model = {
//!     let _scope = scope::enter(&strategy)?;
//!     BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?
//! };
//! model.compile(
//!     CompileArgs::new()
//!         .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
//!         .loss(SparseCategoricalCrossentropy { from_logits: true })
//!         .metrics([accuracy()]),
//! )?;
//! let history = model.fit(&train, FitArgs::new().epochs(3).validation_data(&dev))?;
//! println!("{history}");
//! println!("{}", model.predict(["simple DNS server"])?);
//! # Ok(())
//! # }
//! ```
//!
//! The facade decides how a value is displayed in a notebook.
//!
//! Start reading at `run/training_loop.rs` for the loop, then `step/mod.rs` for one optimizer step and `run/hooks` for what
//! happens beside it. The order
//! of the folders is in `docs/ARCHITECTURE.md`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod arguments;
pub mod callbacks;
pub mod context;
mod count;
mod inspect;
pub mod model;
pub mod network;
mod prepare;
mod run;
pub mod step;

// What many modules use of the crates below, by the names that it has here.
use stratoscope_bert::pattern;
use stratoscope_diagnostics::{panics, problem};

// The names by which the crates above know these modules.
pub use context::alert::{Alert, AlertKind};
pub use context::{RunContext, events, interrupt, mixed_precision, requests, warnings};
pub use model::{bert, build, by_hand, held, predict, sequential};
pub use report::{counters, history, html, plot, receipt, summary, text};
pub use step::precision;
pub use stratoscope_metrics::{loss, metric};
pub use stratoscope_optim as optimizer;
pub use stratoscope_optim::schedule;
pub use stratoscope_report as report;

pub use arguments::class_weight::IntoClassWeight;
pub use arguments::{
    Auto, CompileArgs, EvaluateArgs, FitArgs, IntoBatchSize, IntoCount, IntoFolder, IntoFrequency,
    IntoLoss, IntoMetric, IntoMetrics, IntoStrategyChoice, NoStrategy, auto, none,
};
pub use bert::{
    BertFiles, BertForMaskedLM, BertForMultipleChoice, BertForQuestionAnswering,
    BertForSentenceEmbedding, BertForSequenceClassification, BertForTokenClassification,
};
pub use build::IntoInputShape;
pub use by_hand::{Applied, Gradients};
pub use callbacks::{
    AlertHandler, AlertTo, Callback, Callbacks, CsvLogger, EarlyStopping, Flow, GradualUnfreezing,
    IntoAlertHandler, IntoCallbacks, IntoEarlyStopping, LearningRateLogger, MlflowLogger, OnAlert,
    TensorBoard, TrackioLogger, on_alert, on_batch_end, on_epoch_end, on_train_begin, on_train_end,
};
pub use counters::Counters;
pub use events::{FitStarted, Observer};
pub use history::{
    Edit, EpochRecord, Evaluation, ExecutionRecord, History, Measured, Records, RequestRecord,
    StepRecord,
};
pub use inspect::StepEffects;
pub use loss::{
    BinaryCrossentropy, CategoricalCrossentropy, Hinge, Huber, KlDivergence, LabelSmoothing,
    LogCosh, Loss, MeanAbsoluteError, MeanSquaredError, MultipleNegativesRanking,
    MultipleNegativesSymmetricRanking, OwnLoss, SparseCategoricalCrossentropy, SquaredHinge,
    TripletMargin,
};
pub use metric::list::*;
pub use mixed_precision::{Policy, global_policy, set_global_policy};
pub use model::look::{ModelLook, WeakModel, model_in};
pub use model::lora::{Lora, LoraReceipt};
pub use model::memory_plan;
pub use model::onnx::OnnxFile;
pub use model::worker::{serve_as_worker, work_at};
pub use model::{Average, Model, ModelOf, RateRange};
pub use network::{
    CloneFiles, Files, InStages, Input, Network, Outputs, StepShape, Task, features,
};
pub use optimizer::{
    Adafactor, Adam, AdamW, Clipping, IntoOptimizer, Lamb, Lion, Optimizer, RMSprop, SGD,
};
pub use plot::Picture;
pub use precision::{HalfPrecision, half_precision};
pub use predict::{
    Answered, Blank, Embeddings, IntoExamples, Marked, Near, Prediction, Predictions,
};
pub use receipt::CompileReceipt;
pub use report::comparison::{Comparison, OtherWeights, Parted};
pub use report::gradient_norms::GradientNorms;
pub use report::influence::{Influence, InfluentialRow};
pub use report::inspection::{
    AttentionMap, BatchView, Collected, ConfusionMatrix, DataMap, Direction, ExampleView,
    FirstNonFinite, Grown, Hindsight, IntoCollected, LayerRatios, MappedExample, Phase, Piece,
    Probe, RankedExamples, Statistics, TensorRow, TensorStatistics, UpdateRatios, Why,
};
pub use report::memory_plan::{MemoryPlan, StepMemory};
pub use report::pipeline::{PassTime, PipelineReport, PipelineStep, StageRow, StageStep};
pub use report::profile::{Limit, Profile, StepPhase};
pub use report::rate_curve::{RampEnd, RateCurve, RatePoint};
pub use report::run_report::{ForkOf, LayerRatio, Position, RunReport, StepNumbers, StepPoint};
pub use report::stop::{Hit, Stop, StopReason};
pub use run::breakpoints::{self, Condition};
pub use run::compare::compare;
pub use run::edits::{RateChange, pin, scale};
pub use run::handle::Run;
pub use run::influence::IntoCandidates;
pub use run::requests::actions;
pub use run::rewind::Rewound;
pub use run::what_if::{
    ChosenGradients, ChosenWeights, Interventions, IntoWrittenLabel, WhatIf, WrittenLabel,
};
pub use schedule::{
    BertWarmup, CosineDecay, ExponentialDecay, IntoSchedule, PolynomialDecay, RatePlan, Schedule,
    WarmupLinear, bert_warmup, constant, warmup_linear,
};
pub use sequential::{
    Activation, Dense, Dropout, Embedding, Flatten, GlobalAveragePooling1D, Layer, Sequential,
};
pub use stratoscope_bert::operation;
pub use stratoscope_bert::taps::tap;
pub use stratoscope_bert::{BertTokenizer, LoadOptions};
pub use summary::Summary;
