//! The slices of layers that several devices compute together (`ModelParallel`).
//!
//! The network of a replica's first device computes a pass, with the slices of the others. So all else of a step sees replicas
//! of one device: their gradients are those of whole variables, which are averaged as those of mirrored replicas, and each
//! device gets its part of them when it updates its slices.

use stratoscope_bert::parallel::Slices;
use stratoscope_strategy::Replicas;

use stratoscope_network::AnyNetwork;

/// The slices that the devices of each replica after its first one have; `None` where no layer computes with slices.
pub(super) fn slices(replicas: &Replicas<AnyNetwork>) -> Option<Vec<Slices>> {
    if !replicas.computes_in_slices() {
        return None;
    }
    let axes = replicas.cut_axes();
    let each = replicas.modules().chunks(replicas.modules_of_a_copy());
    Some(each.map(|own| Slices::of(&own[1..], &axes)).collect())
}

/// Runs a pass of a replica with its slices, if there are any.
pub(super) fn during<T>(
    slices: Option<&Vec<Slices>>,
    replica: usize,
    pass: impl FnOnce() -> T,
) -> T {
    match slices.and_then(|all| all.get(replica)) {
        Some(slices) => slices.during(pass),
        None => pass(),
    }
}
