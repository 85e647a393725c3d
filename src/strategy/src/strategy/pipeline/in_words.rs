//! What an optimizer step of a pipeline does, in words and in bytes.

use stratoscope_render::text;

use super::{PipelineSchedule, PipelineSettings, bubble};
use crate::strategy::explain::{EXAMPLE, EXAMPLE_ACTIVATIONS, Row};

pub(super) fn sentence(settings: PipelineSettings) -> String {
    let PipelineSettings {
        stages,
        micro_batches,
        schedule,
        ..
    } = settings;
    let kept = match schedule {
        PipelineSchedule::GPipe => format!(
            "All forward passes come before all backward passes (GPipe), so that a stage keeps the activations of all \
             {micro_batches} micro-batches."
        ),
        PipelineSchedule::OneForwardOneBackward => format!(
            "Forward and backward passes take turns (1F1B), so that the first stage keeps the activations of {} \
             micro-batches at most, and the last one of 1.",
            schedule.kept(0, stages, micro_batches)
        ),
    };
    format!(
        "Each of {} has some consecutive layers, with their gradients and moments. The batch is cut in {}. A stage computes \
         its layers and sends their activations to the next one; in the backward pass it sends the gradient by its input to \
         the one before. {kept} Each stage updates its own layers when all micro-batches are done. For stages of equal cost \
         on devices of their own, {:.0} % of the time of a step is waiting: (p − 1)/(m + p − 1) for p stages and m micro-batches.",
        text::count(stages, "stage"),
        match micro_batches {
            1 => "1 micro-batch".to_owned(),
            more => format!("{more} micro-batches"),
        },
        100.0 * bubble(stages, micro_batches),
    )
}

/// For equal parts of the weights, and a batch of 32 × 128 tokens.
pub(super) fn bytes(settings: &PipelineSettings) -> Vec<Row> {
    let stages = settings.stages as f64;
    let piece = |what, times: f64, symbol: &str| {
        let formula = format!("{symbol}P / {}", settings.stages);
        Row::new(what, formula, times / stages)
    };
    let borders = settings.stages - 1;
    let sent = 2.0 * (stages - 1.0) * EXAMPLE_ACTIVATIONS / EXAMPLE;
    vec![
        piece("weights, on a stage with a p-th of them", 1.0, ""),
        piece("gradients there", 1.0, ""),
        piece("moments there", 2.0, "2 "),
        Row::new(
            "activations and their gradients, between all stages",
            format!("2 · {borders} · B · S · H · 4 bytes"),
            sent,
        ),
    ]
}
