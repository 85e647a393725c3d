//! Variables against the largest buffers of the devices that compute with them, before anything is computed.

use stratoscope_diagnostics::rules::VariableTooLarge;
use stratoscope_diagnostics::{Result, Rule};

use crate::device::{LogicalDevice, largest_buffer};
use crate::placement::bytes;
use crate::variable::VariableRecord;

/// Whether each device can bind each variable. A replica has all of a variable when it computes, however it is stored.
///
/// # Errors
/// SC0609 for the largest variable that a device cannot bind.
pub(crate) fn check(records: &[VariableRecord], devices: &[LogicalDevice]) -> Result<()> {
    let limits = devices
        .iter()
        .filter_map(|device| Some((device, largest_buffer(&device.burn)?)));
    match limits.min_by_key(|(_, limit)| *limit) {
        Some((device, limit)) => within(records, &device.name, limit),
        None => Ok(()),
    }
}

fn within(records: &[VariableRecord], device: &str, limit: u64) -> Result<()> {
    let too_large = || records.iter().filter(|record| record.bytes > limit);
    let Some(largest) = too_large().max_by_key(|record| record.bytes) else {
        return Ok(());
    };
    let rule = VariableTooLarge {
        variable: largest.name.clone(),
        shape: largest.shape.clone(),
        size: bytes(largest.bytes),
        device: device.to_owned(),
        limit: bytes(limit),
        count: too_large().count(),
    };
    Err(rule.error())
}

#[cfg(test)]
mod tests {
    use burn::nn::LinearConfig;
    use burn::tensor::Device;

    use super::*;
    use crate::device::cpu;
    use crate::origin::Origin;
    use crate::variable::describe;

    #[test]
    fn the_largest_variable_is_named() {
        let module = LinearConfig::new(64, 100).init(&Device::flex());
        let names = [
            ("dense.weight".to_owned(), module.weight.id),
            (
                "dense.bias".to_owned(),
                module.bias.as_ref().expect("it has one").id,
            ),
        ];
        let records = describe(&module, &names, None, &Origin::current());
        assert_eq!(within(&records, "wgpu:0", 25_600), Ok(()));
        let problem = within(&records, "wgpu:0", 25_599).expect_err("25,600 bytes");
        assert_eq!(problem.code, "SC0609");
        assert!(
            problem
                .message
                .starts_with("`dense.weight` [64, 100] is 25.0 KiB"),
            "{problem}"
        );
        let both = within(&records, "wgpu:0", 100).expect_err("400 bytes are too many");
        assert!(both.message.ends_with(", and 1 more"), "{both}");
        // The processor has no such limit.
        let device = cpu(0).resolve().expect("the processor");
        assert_eq!(check(&records, &[device]), Ok(()));
    }
}
