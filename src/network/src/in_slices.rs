//! Whether several devices can compute the layers of a network together, each with slices of their weights.

use stratoscope_diagnostics::rules::{HeadsNotDivided, NetworkNotInSlices};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Strategy;

use super::{AnyNetwork, Files};

/// The ends of the names of the weights whose rows belong to heads.
const OF_HEADS: [&str; 6] = [
    ".query.weight",
    ".key.weight",
    ".value.weight",
    ".q_lin.weight",
    ".k_lin.weight",
    ".v_lin.weight",
];

/// Whether a strategy can cut the layers of a network: `ModelParallel` needs those of BERT, with whole heads on each device.
///
/// # Errors
/// SC0628 for another network and for one with adapters, SC0625 for heads that the devices do not divide.
pub fn check_slices(
    strategy: Option<&Strategy>,
    network: &AnyNetwork,
    files: &dyn Files,
) -> Result<()> {
    let Some(strategy) = strategy.filter(|it| !it.model_devices().is_empty()) else {
        return Ok(());
    };
    let model = files.model_name().to_owned();
    let Some(heads) = network.attention_heads() else {
        return Err(NetworkNotInSlices::Unknown { model }.error());
    };
    let parameters = network.parameters();
    if parameters.iter().any(|it| it.name.ends_with(".lora_A")) {
        return Err(NetworkNotInSlices::Adapters { model }.error());
    }
    let devices = strategy.devices_of_a_replica();
    let cuts_heads = parameters.iter().any(|it| {
        let is_of_heads = OF_HEADS.iter().any(|end| it.name.ends_with(end));
        is_of_heads && strategy.cut_axis(&it.name) == Some(0)
    });
    if cuts_heads && !heads.is_multiple_of(devices) {
        let rule = HeadsNotDivided {
            model,
            heads,
            devices,
        };
        return Err(rule.error());
    }
    Ok(())
}
