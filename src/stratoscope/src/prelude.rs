//! What a notebook has in scope from the start: `use stratoscope::prelude::*;`.
//!
//! The macros `compile!`, `fit!`, `start!`, `evaluate!` and `scope!` are here too.

pub use crate::cell::sleep;
pub use crate::chart::{Chart, heatmap, histogram, plot, plot_xy, scatter};
pub use crate::course;
pub use crate::display::{
    Html, IntoBundle, Json, Latex, Markdown, Png, Svg, Table, clear_output, display, display_as,
    display_html, display_update, input, track,
};
pub use crate::placement::{placement_diff, placement_of};
pub use crate::progress::{Plot, placement};
pub use crate::{compile, evaluate, fit, scope, start, sweep};

// Paths of burn as its book writes them, `use burn::module::Module;`, and those that its macros write.
pub use crate::burn;
pub use burn::tensor::{Device, Int, Tensor, TensorData};
pub use stratoscope_data::{
    AutoShardPolicy, Dataset, Example, Glue, Label, debian_entities, debian_pairs,
    debian_questions, debian_sections,
};
// Custom models, and numbers to train them on.
pub use stratoscope_bert::Mode;
pub use stratoscope_data::{Batch, make_classification, make_regression};
pub use stratoscope_models::{
    Activation, Dense, Dropout, Embedding, Flatten, GlobalAveragePooling1D, Network, Outputs,
    Sequential, features,
};

// More losses and schedules, training steps by hand, memory plans.
pub use stratoscope_models::{
    BinaryCrossentropy, CategoricalCrossentropy, Gradients, IntoSchedule, PolynomialDecay,
    Prediction, RateCurve, RatePlan, RateRange, auto, bert_warmup, half_precision, memory_plan,
};

// Mixed precision, as in `tf.keras.mixed_precision`.
pub use stratoscope_models::mixed_precision;
pub use stratoscope_models::mixed_precision::{Policy, global_policy, set_global_policy};

pub use stratoscope_models::{
    Adafactor, Adam, AdamW, BertForMaskedLM, BertForMultipleChoice, BertForQuestionAnswering,
    BertForSentenceEmbedding, BertForSequenceClassification, BertForTokenClassification,
    BertTokenizer, CompileArgs, CompileReceipt, CosineDecay, Embeddings, EvaluateArgs, Evaluation,
    ExponentialDecay, FitArgs, Hinge, History, Huber, KlDivergence, Lamb, Lion, LoadOptions,
    LogCosh, Lora, LoraReceipt, Loss, MeanAbsoluteError, MeanSquaredError, Metric, Model, ModelOf,
    MultipleNegativesRanking, MultipleNegativesSymmetricRanking, OnnxFile, Predictions, RMSprop,
    SGD, Schedule, SparseCategoricalCrossentropy, SquaredHinge, TripletMargin, accuracy, answer_f1,
    auc, constant, entity_f1, entity_precision, entity_recall, exact_match, f1, keras_auc,
    macro_f1, mae, mcc, micro_f1, mse, pearson, perplexity, precision, recall, rmse, spearman,
    top_k_accuracy, warmup_linear,
};
pub use stratoscope_strategy::placement::PlacementDiff;
pub use stratoscope_strategy::{
    Aggregation, AsStrategy, CentralStorageStrategy, CrossDeviceOps, DeviceMesh, LayoutMap,
    MeshOptions, MeshPrediction, MeshShape, MirroredStrategy, ModelParallel,
    MultiWorkerMirroredStrategy, NetworkSize, OneDeviceStrategy, ParameterServerStrategy,
    Partitioner, PipelineSchedule, PipelineStrategy, PlacementReport, ReplicatedVariable,
    ScalingOptions, ScalingPattern, ScalingPrediction, Shard, Strategy, Synchronization,
    TpuStrategy, Workers, cpu, cuda, default_device, devices, gpu, predict_mesh, predict_meshes,
    wgpu,
};

// A run that is driven piece by piece.
pub use stratoscope_models::breakpoints::{
    accuracy_drop, custom, every, grad_norm, loss, nan, spike, update_ratio,
};
pub use stratoscope_models::{
    Clipping, Condition, Edit, ForkOf, RateChange, Rewound, Run, RunReport, StepNumbers, StepPoint,
    Stop, StopReason,
};
pub use stratoscope_models::{Comparison, ModelOfRun, compare, pin, scale};
// What one sees inside a run, and the outputs of a network of one's own.
pub use stratoscope_models::{
    AttentionMap, BatchView, ConfusionMatrix, DataMap, Direction, ExampleView, Hindsight, InStep,
    Interventions, LayerRatios, PipelineReport, Probe, RankedExamples, Statistics,
    TensorStatistics, UpdateRatios, WhatIf, Why, operation, tap,
};

// How sure a result is: assessments, several seeds, settings.
pub use stratoscope_evaluation::{
    Assessment, Difference, FoldRuns, Scores, Search, SeedRuns, Sweep, Threshold, WrongAnswers,
    over_folds, over_seeds,
};

// What is wrong with a data set, and why a model predicts what it predicts.
pub use stratoscope_audit::{
    Audit, AuditOptions, AuditedRow, EmbeddingMap, Findings, NearDuplicates, Slices,
    near_duplicates,
};
pub use stratoscope_explain::{
    AuditData, ChangedPredictions, Counterfactual, ExplainOptions, ExplainPredictions, Explanation,
    InterveneOnActivations, OutOfFold, PatchMap, out_of_fold,
};

// Callbacks, and data files with custom columns.
pub use stratoscope_data::{Columns, Masking, Stream};
pub use stratoscope_models::{
    Alert, AlertTo, Callback, Callbacks, CsvLogger, EarlyStopping, EpochRecord, ExecutionRecord,
    FitStarted, Flow, GradualUnfreezing, LearningRateLogger, MlflowLogger, StepRecord, TensorBoard,
    TrackioLogger, WandbLogger, on_alert, on_batch_end, on_epoch_end, on_train_begin, on_train_end,
};
