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
//! use stratoscope_models::{
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
//! Start reading at `model/mod.rs`. The loop of training is `training_loop.rs` of the crate `train`, one optimizer step the crate
//! `step`; the order of the crates is in `docs/ARCHITECTURE.md`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod count;
pub mod model;

// What many modules use of the crates below, by the names that it has here.
use stratoscope_diagnostics::problem;

// The names by which the crates above know these modules.
pub use model::{bert, build, by_hand, held, predict, sequential};
pub use stratoscope_arguments::context::alert::{Alert, AlertKind};
pub use stratoscope_arguments::context::{
    RunContext, events, interrupt, mixed_precision, requests, warnings,
};
pub use stratoscope_metrics::{loss, metric};
pub use stratoscope_optim as optimizer;
pub use stratoscope_optim::schedule;
pub use stratoscope_report as report;
pub use stratoscope_report::{counters, history, html, plot, receipt, summary, text};
pub use stratoscope_step::precision;

pub use model::bert::{
    BertFiles, BertForMaskedLM, BertForMultipleChoice, BertForQuestionAnswering,
    BertForSentenceEmbedding, BertForSequenceClassification, BertForTokenClassification,
};
pub use model::build::IntoInputShape;
pub use model::by_hand::{Applied, Gradients};
pub use model::look::{ModelLook, WeakModel, model_in};
pub use model::lora::{Lora, LoraReceipt};
pub use model::memory_plan;
pub use model::onnx::OnnxFile;
pub use model::predict::{
    Answered, Blank, Embeddings, IntoExamples, Marked, Near, Prediction, Predictions,
};
pub use model::sequential::{
    Activation, Dense, Dropout, Embedding, Flatten, GlobalAveragePooling1D, Layer, Sequential,
};
pub use model::worker::{serve_as_worker, work_at};
pub use model::{Average, Model, ModelOf, ModelOfRun, RateRange};
pub use stratoscope_arguments::callbacks::{
    AlertHandler, AlertTo, Callback, Callbacks, CsvLogger, EarlyStopping, Flow, GradualUnfreezing,
    IntoAlertHandler, IntoCallbacks, IntoEarlyStopping, LearningRateLogger, MlflowLogger, OnAlert,
    TensorBoard, TrackioLogger, WandbLogger, on_alert, on_batch_end, on_epoch_end, on_train_begin,
    on_train_end,
};
pub use stratoscope_arguments::class_weight::IntoClassWeight;
pub use stratoscope_arguments::context::events::{FitStarted, Observer};
pub use stratoscope_arguments::context::mixed_precision::{
    Policy, global_policy, set_global_policy,
};
pub use stratoscope_arguments::{
    Auto, CompileArgs, EvaluateArgs, FitArgs, IntoBatchSize, IntoCount, IntoFolder, IntoFrequency,
    IntoLoss, IntoMetric, IntoMetrics, IntoStrategyChoice, NoStrategy, auto, none,
};
pub use stratoscope_bert::operation;
pub use stratoscope_bert::taps::tap;
pub use stratoscope_bert::{BertTokenizer, LoadOptions};
pub use stratoscope_inspect::StepEffects;
pub use stratoscope_metrics::loss::{
    BinaryCrossentropy, CategoricalCrossentropy, Hinge, Huber, KlDivergence, LabelSmoothing,
    LogCosh, Loss, MeanAbsoluteError, MeanSquaredError, MultipleNegativesRanking,
    MultipleNegativesSymmetricRanking, OwnLoss, SparseCategoricalCrossentropy, SquaredHinge,
    TripletMargin,
};
pub use stratoscope_metrics::metric::list::*;
pub use stratoscope_network::{
    CloneFiles, Files, InStages, Input, Network, Outputs, StepShape, Task, features,
};
pub use stratoscope_optim::schedule::{
    BertWarmup, CosineDecay, ExponentialDecay, IntoSchedule, PolynomialDecay, RatePlan, Schedule,
    WarmupLinear, bert_warmup, constant, warmup_linear,
};
pub use stratoscope_optim::{
    Adafactor, Adam, AdamW, Clipping, IntoOptimizer, Lamb, Lion, Optimizer, RMSprop, SGD,
};
pub use stratoscope_report::comparison::{Comparison, OtherWeights, Parted};
pub use stratoscope_report::counters::Counters;
pub use stratoscope_report::gradient_norms::GradientNorms;
pub use stratoscope_report::history::{
    Edit, EpochRecord, Evaluation, ExecutionRecord, History, Measured, Records, RequestRecord,
    StepRecord,
};
pub use stratoscope_report::influence::{Influence, InfluentialRow};
pub use stratoscope_report::inspection::{
    AttentionMap, BatchView, Collected, ConfusionMatrix, DataMap, Direction, ExampleView,
    FirstNonFinite, Grown, Hindsight, InStep, IntoCollected, LayerPass, LayerRatios, MappedExample,
    Phase, Piece, Place, Probe, RankedExamples, Statistics, TensorRow, TensorStatistics,
    UpdateRatios, Why,
};
pub use stratoscope_report::memory_plan::{MemoryPlan, StepMemory};
pub use stratoscope_report::pipeline::{
    PassTime, PipelineReport, PipelineStep, StageRow, StageStep,
};
pub use stratoscope_report::plot::Picture;
pub use stratoscope_report::profile::{Limit, Profile, StepPhase};
pub use stratoscope_report::rate_curve::{RampEnd, RateCurve, RatePoint};
pub use stratoscope_report::receipt::CompileReceipt;
pub use stratoscope_report::run_report::{
    ForkOf, LayerRatio, Position, RunReport, StepNumbers, StepPoint,
};
pub use stratoscope_report::stop::{Hit, Stop, StopReason};
pub use stratoscope_run::compare::compare;
pub use stratoscope_run::handle::Run;
pub use stratoscope_run::influence::IntoCandidates;
pub use stratoscope_run::rewind::Rewound;
pub use stratoscope_run::what_if::{
    ChosenGradients, ChosenWeights, Interventions, IntoWrittenLabel, WhatIf, WrittenLabel,
};
pub use stratoscope_step::precision::{HalfPrecision, half_precision};
pub use stratoscope_train::breakpoints::{self, Condition};
pub use stratoscope_train::edits::{RateChange, pin, scale};
pub use stratoscope_train::requests::actions;
pub use summary::Summary;
