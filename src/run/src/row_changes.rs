//! Changes to single rows of the training data of a run, from the coming step on: other labels, other weights.
//!
//! The data stays as it is: batches get the labels and weights when they are computed (`step::changed`). So a run that is
//! turned back has the old ones again, and a fork shares the data.

use stratoscope_diagnostics::rules::RowsNotInData;
use stratoscope_diagnostics::{Result, Rule};

use crate::handle::Run;
use crate::what_if::{IntoWrittenLabel, WrittenLabel, new_label};
use stratoscope_arguments::class_weight::IntoWeight;
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_arguments::count::{Count, IntoCount};
use stratoscope_diagnostics::problem;
use stratoscope_report::history::Edit;
use stratoscope_step::prepare::in_memory_only;
use stratoscope_train::edits::{Change, bad};
use stratoscope_train::planned::OneStep;
use stratoscope_train::run_state::RunState;

impl Run {
    /// Gives rows of the training data other labels, from the coming step on and in all epochs that follow:
    /// `run.relabel([(17, "games")])?`. Rows are counted as [`worst`](Self::worst), [`batch`](Self::batch) and
    /// [`data_map`](Self::data_map) show them. Of a row that is there twice the last label counts. The data set itself stays
    /// as it is.
    ///
    /// # Errors
    /// SC0720 for a row that the training data does not have, or none at all; SC0721 for a class that does not exist; SC0730
    /// for the number of such a class; SC0103 for a label of another kind, for a stream, and if there are no more steps;
    /// SC0521 for a run that is finished; SC0121 in a callback.
    pub fn relabel<C: IntoCount, L: IntoWrittenLabel>(
        &self,
        labels: impl IntoIterator<Item = (C, L)>,
    ) -> Result<Edit> {
        let labels: Vec<(Count, WrittenLabel)> = labels
            .into_iter()
            .map(|(row, label)| (row.into_count(), label.into_written_label()))
            .collect();
        begin_call();
        self.with("relabel", |lease, run| {
            let rows = known_rows(run, "relabel", labels.iter().map(|it| &it.0))?;
            let Some(coming) = run.coming_step(lease)? else {
                let expects = "a step that is not done yet, and all steps are done";
                return Err(Box::new(problem::bad_value(
                    "relabel", "labels", "…", expects,
                )));
            };
            let look = run.inspection(lease, &coming);
            let named = rows.into_iter().zip(labels).map(|(row, (_, label))| {
                let label = new_label(&look, &coming.batches[0].labels, label, "relabel")?;
                Ok((row, label))
            });
            let labels = named.collect::<Result<_>>()?;
            let change = OneStep {
                labels,
                ..OneStep::default()
            };
            run.edit(lease, Change::Rows(change))
        })
    }

    /// What rows of the training data count in the loss, from the coming step on: `run.set_example_weights([(17, 0.0)])?`.
    /// 0 leaves a row out without another order of the batches, 1 is usual. The loss is still divided by the number of
    /// examples.
    ///
    /// # Errors
    /// SC0720 for a row that the training data does not have, or none at all; SC0103 for a weight that is negative or not
    /// finite, and for a stream; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_example_weights<C: IntoCount, W: IntoWeight>(
        &self,
        weights: impl IntoIterator<Item = (C, W)>,
    ) -> Result<Edit> {
        const CALL: &str = "set_example_weights";
        let weights: Vec<(Count, f64)> = weights
            .into_iter()
            .map(|(row, weight)| (row.into_count(), weight.into_weight()))
            .collect();
        begin_call();
        self.with(CALL, |lease, run| {
            let rows = known_rows(run, CALL, weights.iter().map(|it| &it.0))?;
            let is_weight = |weight: f64| (weight as f32).is_finite() && weight >= 0.0;
            if let Some((_, weight)) = weights.iter().find(|(_, weight)| !is_weight(*weight)) {
                return Err(bad(CALL, weight, "a finite number ≥ 0"));
            }
            let weights = rows.into_iter().zip(&weights);
            let change = OneStep {
                weights: weights
                    .map(|(row, (_, weight))| (row, (*weight).into()))
                    .collect(),
                ..OneStep::default()
            };
            run.edit(lease, Change::Rows(change))
        })
    }
}

/// Rows of the training data, as numbers.
///
/// # Errors
/// SC0720 for one that does not exist and for none; SC0103 for a stream.
fn known_rows<'c>(
    run: &RunState<'_>,
    call: &str,
    rows: impl Iterator<Item = &'c Count>,
) -> Result<Vec<u64>> {
    if run.data.train.held().is_none() {
        let why = "the rows of a stream are in its files; change them there";
        return Err(in_memory_only(call, "rows", "…", why));
    }
    let known = run.data.train.len() as u64;
    let rows: Vec<&Count> = rows.collect();
    let number = |count: &&Count| count.value().filter(|&row| row < known);
    let unknown: Vec<String> = (rows.iter().filter(|it| number(it).is_none()))
        .map(ToString::to_string)
        .collect();
    if !unknown.is_empty() || rows.is_empty() {
        let rule = RowsNotInData {
            call: call.to_owned(),
            unknown,
            rows: run.data.train.len(),
        };
        return Err(rule.error());
    }
    Ok(rows.iter().filter_map(number).collect())
}
