//! The outputs of a model for tokenized texts, batch by batch.

use stratoscope_data::Encoded;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::BATCH_SIZE;

use stratoscope_step::forward::{PREFETCHED, forward};
use stratoscope_train::state::ModelState;

/// A row for each example, in their order. The replicas divide each batch.
///
/// # Errors
/// SC0907 if a device fails; SC0520 if it is interrupted.
pub(super) fn outputs_of(
    state: &ModelState,
    encoded: &Encoded,
    doing: (&'static str, &'static str),
) -> Result<Vec<Vec<f32>>> {
    let precision = state.step.policy.precision();
    let replicas = state.settled()?;
    let mut outputs = Vec::with_capacity(encoded.len());
    let mut work = Work::begin(doing, encoded.len(), Unit::Things("example"));
    for batch in encoded.batch(BATCH_SIZE)?.prefetch(PREFETCHED) {
        if !outputs.is_empty() {
            work.reached(outputs.len())?;
        }
        let Some(parts) = forward(&replicas, &batch, None, precision)? else {
            return Err(work.interrupted());
        };
        for (part, own) in parts {
            let width = (own.outputs.len() / part.size().max(1)).max(1);
            outputs.extend(own.outputs.chunks_exact(width).map(<[f32]>::to_vec));
        }
    }
    work.finished();
    Ok(outputs)
}
