//! The slices of layers that several devices compute together (`ModelParallel`).
//!
//! The network of the first device computes a pass, with the slices of the others. So all else of a step sees one replica: its
//! gradients are those of whole variables, and each device gets its part of them when it updates its slices.

use stratoscope_bert::parallel::Slices;
use stratoscope_strategy::Replicas;

use stratoscope_network::AnyNetwork;

/// The slices that the devices after the first one have; `None` where no layer computes with slices.
pub(super) fn slices(replicas: &Replicas<AnyNetwork>) -> Option<Slices> {
    let others = replicas.modules().get(1..)?;
    let computes = replicas.computes_in_slices();
    computes.then(|| Slices::of(others, &replicas.cut_axes()))
}

/// Runs a pass with slices, if there are any.
pub(super) fn during<T>(slices: Option<&Slices>, pass: impl FnOnce() -> T) -> T {
    match slices {
        Some(slices) => slices.during(pass),
        None => pass(),
    }
}
