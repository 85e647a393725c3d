//! How the values of looking into a run, and of what its model answers, are shown: each has its own text and its own page.

use stratoscope_evaluation::{Assessment, Difference, SeedRuns, Sweep, WrongAnswers};
use stratoscope_strategy::{ScalingPrediction, StepInWords};
use stratoscope_train::{
    AttentionMap, BatchView, ConfusionMatrix, DataMap, Hindsight, RankedExamples, TensorStatistics,
    UpdateRatios, Why,
};

use crate::display::cards;

cards!(
    Assessment,
    AttentionMap,
    BatchView,
    ConfusionMatrix,
    DataMap,
    Difference,
    Hindsight,
    RankedExamples,
    ScalingPrediction,
    SeedRuns,
    StepInWords,
    Sweep,
    TensorStatistics,
    UpdateRatios,
    Why,
    WrongAnswers,
);
