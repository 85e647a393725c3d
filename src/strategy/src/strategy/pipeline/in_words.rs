//! What an optimizer step of a pipeline does, in words and in bytes.

use stratoscope_render::text;

use super::{PipelineSchedule, PipelineSettings, bubble};
use crate::collective::CrossDeviceOps;
use crate::strategy::explain::{EXAMPLE, EXAMPLE_ACTIVATIONS, Row};

/// What the replicas do: each a pipeline, with this all-reduce between them where there are several.
pub(super) fn sentence(settings: PipelineSettings, ops: CrossDeviceOps) -> String {
    let replicas = settings.replicas;
    let in_stages = in_stages(settings);
    if replicas == 1 {
        return in_stages;
    }
    format!(
        "Each of {}, a row of the mesh, has all stages and computes its share of each micro-batch. {in_stages} Before the \
         update an all-reduce ({}) between the devices with the same stage gives each of them the mean of all gradients of its \
         layers; each replica makes the same update.",
        text::count(replicas, "replica"),
        ops.title(),
    )
}

/// What the stages of a replica do.
fn in_stages(settings: PipelineSettings) -> String {
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

/// For equal parts of the weights, and a batch of 32 × 128 tokens, which the replicas divide.
pub(super) fn bytes(settings: &PipelineSettings) -> Vec<Row> {
    let stages = settings.stages as f64;
    let piece = |what, times: f64, symbol: &str| {
        let formula = format!("{symbol}P / {}", settings.stages);
        Row::new(what, formula, times / stages)
    };
    let borders = settings.stages - 1;
    let sent = 2.0 * (stages - 1.0) * EXAMPLE_ACTIVATIONS / EXAMPLE;
    let (sent_between, share) = match settings.replicas {
        1 => (
            "activations and their gradients, between all stages",
            String::new(),
        ),
        replicas => (
            "activations and their gradients, within a replica",
            format!("/{replicas}"),
        ),
    };
    let parts = settings.replicas as f64;
    let mut rows = vec![
        piece("weights, on a stage with a p-th of them", 1.0, ""),
        piece("gradients there", 1.0, ""),
        piece("moments there", 2.0, "2 "),
        Row::new(
            sent_between,
            format!("2 · {borders} · B{share} · S · H · 4 bytes"),
            sent / parts,
        ),
    ];
    if settings.replicas > 1 {
        rows.push(Row::new(
            "gradients sent by a replica, on average",
            format!("2 · {}/{} · P", settings.replicas - 1, settings.replicas),
            2.0 * (parts - 1.0) / parts,
        ));
    }
    rows
}
