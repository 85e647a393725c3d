//! How the values of looking into a run, and of what its model answers, are shown: each has its own text and its own page.

use stratoscope_audit::{Audit, EmbeddingMap, Findings, NearDuplicates, Slices};
use stratoscope_evaluation::{Assessment, Difference, FoldRuns, SeedRuns, Sweep, WrongAnswers};
use stratoscope_explain::{ChangedPredictions, Counterfactual, Explanation, OutOfFold, PatchMap};
use stratoscope_models::{
    AttentionMap, BatchView, ConfusionMatrix, DataMap, Hindsight, InStep, Influence,
    PipelineReport, Profile, RankedExamples, TensorStatistics, UpdateRatios, WhatIf, Why,
};
use stratoscope_strategy::{MeshPrediction, ScalingPrediction, StepInWords};

use crate::display::cards;

cards!(
    Assessment,
    AttentionMap,
    Audit,
    BatchView,
    ChangedPredictions,
    ConfusionMatrix,
    Counterfactual,
    DataMap,
    Difference,
    EmbeddingMap,
    Explanation,
    Findings,
    Hindsight,
    InStep,
    Influence,
    MeshPrediction,
    NearDuplicates,
    OutOfFold,
    PatchMap,
    PipelineReport,
    Profile,
    RankedExamples,
    ScalingPrediction,
    FoldRuns,
    SeedRuns,
    Slices,
    StepInWords,
    Sweep,
    TensorStatistics,
    UpdateRatios,
    WhatIf,
    Why,
    WrongAnswers,
);
