//! How the values of looking into a run, and of what its model answers, are shown: each has its own text and its own page.

use stratoscope_audit::{Audit, EmbeddingMap, Findings, NearDuplicates, Slices};
use stratoscope_evaluation::{Assessment, Difference, SeedRuns, Sweep, WrongAnswers};
use stratoscope_explain::{Counterfactual, Explanation, OutOfFold};
use stratoscope_strategy::{ScalingPrediction, StepInWords};
use stratoscope_train::{
    AttentionMap, BatchView, ConfusionMatrix, DataMap, Hindsight, PipelineReport, RankedExamples,
    TensorStatistics, UpdateRatios, Why,
};

use crate::display::cards;

cards!(
    Assessment,
    AttentionMap,
    Audit,
    BatchView,
    ConfusionMatrix,
    Counterfactual,
    DataMap,
    Difference,
    EmbeddingMap,
    Explanation,
    Findings,
    Hindsight,
    NearDuplicates,
    OutOfFold,
    PipelineReport,
    RankedExamples,
    ScalingPrediction,
    SeedRuns,
    Slices,
    StepInWords,
    Sweep,
    TensorStatistics,
    UpdateRatios,
    Why,
    WrongAnswers,
);
