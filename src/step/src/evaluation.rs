//! Loss and metrics of a data set: what `evaluate!` returns, and what `fit!` validates with.

use std::time::Instant;

use stratoscope_bert::ops::Precision;
use stratoscope_data::{Batch, Labels, Prefetch, Split};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{Origin, Replicas};

use super::forward::{PREFETCHED, forward, interrupted};
use stratoscope_arguments::context::interrupt;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::{Metric, Tallies, Tally, low_is_good, own};
use stratoscope_network::{AnyNetwork, Task};
use stratoscope_report::history::{Evaluation, Measured};

/// What a model is measured by.
#[derive(Clone, Copy)]
pub struct Measures<'a> {
    /// The loss.
    pub loss: Loss,
    /// What is measured beside the loss.
    pub metrics: &'a [Metric],
    /// How many classes the outputs are; `None` where the one output is a number.
    pub classes: Option<usize>,
    /// What is answered for an example.
    pub task: Task,
    /// What the layers compute in.
    pub precision: Precision,
}

/// Loss and metrics of tokenized data, as means over its examples, or over its tokens that have a class: a short last batch
/// counts less than a full one. `progress` is called with the number of examples that are done.
///
/// # Errors
/// SC0520 if it is interrupted, SC0907 if a device fails.
pub fn evaluate_batches(
    replicas: &Replicas<AnyNetwork>,
    data: &Split,
    batch_size: usize,
    measures: Measures<'_>,
    progress: &dyn Fn(usize),
) -> Result<Evaluation> {
    let Measures {
        loss,
        metrics,
        classes,
        task,
        precision,
    } = measures;
    let start = Instant::now();
    let empty = empty_tally((task, classes), Some(loss), metrics);
    let mut tallies = Tallies::new(empty, replicas.strategy(), Origin::default());
    let (mut sum, mut counted, mut examples) = (0.0, 0_usize, 0);
    for batch in Prefetch::new(data.batch(batch_size)?, PREFETCHED) {
        let batch = batch?;
        if examples > 0 && interrupt::requested() {
            return Err(interrupted("evaluate", examples, data.len()));
        }
        let Some(outputs) = forward(replicas, &batch, Some(loss), precision)? else {
            return Err(interrupted("evaluate", examples, data.len()));
        };
        for (replica, (part, output)) in outputs.into_iter().enumerate() {
            tallies.add(replica, &part.labels, &output.outputs);
            let (loss, of) = summed(&part, output.loss);
            sum += loss;
            counted += of;
            examples += part.size();
        }
        progress(examples);
    }
    own::failures(metrics).into_iter().try_for_each(notice)?;
    let tally = tallies.read();
    Ok(Evaluation {
        // Without any token that has a class the loss is 0.
        loss: sum / counted.max(1) as f64,
        metrics: measured(metrics, &tally),
        examples,
        predictions: tally.predictions(),
        seconds: start.elapsed().as_secs_f64(),
        low_is_good: low_is_good(metrics),
        cut: None,
        other_length: None,
    })
}

/// The sum of the losses of a part of a batch, and how many they are. The loss of a token counts in its batch as much as the
/// batch's examples over its tokens; a mean of such losses would depend on how a split is cut into batches.
fn summed(part: &Batch, loss: f64) -> (f64, usize) {
    match &part.labels {
        Labels::Tokens(tokens) if tokens.weight > 0.0 => {
            (loss / f64::from(tokens.weight), tokens.counted())
        }
        Labels::Tokens(_) => (loss, 0),
        _ => (loss, part.size()),
    }
}

/// An empty tally of what these metrics need, for a head under a loss.
pub fn empty_tally(
    (task, classes): (Task, Option<usize>),
    loss: Option<Loss>,
    metrics: &[Metric],
) -> Tally {
    let tally = match (classes, loss.and_then(|loss| loss.threshold())) {
        (Some(tags), _) if task == Task::Words => Tally::of_words(tags),
        _ if task == Task::Span => Tally::of_spans(),
        _ if task == Task::Masked => Tally::of_pieces(),
        (Some(labels), threshold) if task == Task::Set => {
            Tally::of_sets(labels, threshold.unwrap_or(0.0))
        }
        (Some(classes), _) => Tally::of_classes(classes),
        (None, Some(threshold)) => {
            let of_two = Tally::of_two_classes_by_one_output(threshold);
            match loss.is_some_and(|loss| loss.takes_signs()) {
                true => of_two.of_margins(),
                false => of_two,
            }
        }
        (None, None) => Tally::of_numbers(),
    };
    let of_logits = loss.is_none_or(|loss| loss.from_logits() != Some(false));
    tally.measuring(metrics, of_logits)
}

/// The values of the metrics for what was counted.
pub fn measured(metrics: &[Metric], tally: &Tally) -> Vec<Measured> {
    let measure = |metric: &Metric| Measured {
        name: metric.name(),
        value: metric.value(tally),
    };
    metrics.iter().map(measure).collect()
}
