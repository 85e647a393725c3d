//! The worst and the best examples of a data set: `run.worst(10)`, `run.best(10)`.

use stratoscope_data::Split;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_render::text;

use super::Inspection;
use super::examples::Reading;

use stratoscope_report::inspection::{ExampleView, RankedExamples};
use stratoscope_step::changed::StepChange;

/// Examples that are evaluated; of more, a random sample.
const MOST_EVALUATED: usize = 4096;
/// The order of the sample: a seed that no epoch has.
const SAMPLE: u64 = u64::MAX;

/// Which end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// The highest loss first.
    Worst,
    /// The lowest loss first.
    Best,
}

/// The `count` examples of `data`, with the labels and weights that a run has changed, with the highest or the lowest loss, without dropout. A loss that is not a number is
/// worse than any. Examples of equal loss are in the order of their rows.
///
/// # Errors
/// SC0520 if it is interrupted, SC0907 if a device fails.
pub fn ranked(
    coming: &Inspection<'_>,
    (data, changes): (&Split, Option<&StepChange>),
    batch_size: usize,
    (ranking, count): (Ranking, usize),
) -> Result<RankedExamples> {
    let (total, evaluated) = (data.len(), data.len().min(MOST_EVALUATED));
    let order = match evaluated < total {
        true => data.shuffle(SAMPLE, 0),
        false => data.clone(),
    };
    let reading = Reading::of(coming);
    let mut work = Work::begin(
        ("evaluating", "evaluated"),
        evaluated,
        Unit::Things("example"),
    );
    let mut best: Vec<ExampleView> = Vec::new();
    let (mut done, mut is_weighted) = (0, false);
    for batch in order.batch(batch_size)? {
        if done > 0 {
            work.reached(done)?;
        }
        let batch = batch?;
        let batch = match batch.size().min(evaluated - done) {
            0 => break,
            size => batch.slice(0..size),
        };
        let changed = changes.and_then(|changes| changes.batch(&batch));
        let batch = changed.unwrap_or(batch);
        done += batch.size();
        is_weighted |= batch.weights.is_some();
        let outputs = coming.outputs(0, &batch, false, &[], "worst")?;
        best.extend(reading.examples(0, &outputs));
        sort(&mut best, ranking);
        best.truncate(count);
    }
    work.finished();
    let side = match ranking {
        Ranking::Worst => "highest",
        Ranking::Best => "lowest",
    };
    let mut notes =
        vec!["losses without dropout, with the weights before the coming step".to_owned()];
    notes.push(match evaluated < total {
        true => format!(
            "a random sample of {} of {} was evaluated",
            text::thousands(evaluated),
            text::count(total, "example")
        ),
        false => format!("all {} were evaluated", text::count(total, "example")),
    });
    notes.extend(coming.weights_in_words(is_weighted));
    Ok(RankedExamples {
        title: format!(
            "the {} with the {side} loss",
            text::count(best.len(), "example")
        ),
        examples: best,
        evaluated,
        total,
        notes,
    })
}

fn sort(examples: &mut [ExampleView], ranking: Ranking) {
    // Not a number is above all numbers, whatever its sign.
    let key = |example: &ExampleView| match example.loss.is_nan() {
        true => f64::INFINITY,
        false => example.loss,
    };
    let nan = |example: &ExampleView| example.loss.is_nan();
    examples.sort_by(|a, b| {
        let by_loss = key(a).total_cmp(&key(b)).then(nan(a).cmp(&nan(b)));
        let by_loss = match ranking {
            Ranking::Worst => by_loss.reverse(),
            Ranking::Best => by_loss,
        };
        by_loss.then(a.row.cmp(&b.row))
    });
}
