//! Where the processes of a job compute: each on a device of its own machine, of the kind that the chief has.

use stratoscope_diagnostics::Result;
use stratoscope_workers::local_rank;

use crate::device::{BackendKind, DeviceSpec, choice, list};

/// The devices that the processes of this machine take in turn: the default device, and the hardware of its kind where it
/// was not named with its number.
///
/// # Errors
/// SC0712 for a default device that is not there.
pub(super) fn of_this_machine() -> Result<Vec<DeviceSpec>> {
    Ok(choice::choice()?.alike())
}

/// The device of a worker whose chief computes on a device of this kind: its own default device, else the first of that
/// kind, hardware before software. Where a launcher has started several processes on a machine with several devices, each
/// takes the next one.
///
/// # Errors
/// SC0712 for a default device that is not there. Where the machine has no device of the kind, the device that is
/// returned cannot be resolved, which says why (SC0906).
pub fn device_of_worker(backend: BackendKind) -> Result<DeviceSpec> {
    if backend == BackendKind::Flex {
        return Ok(DeviceSpec::Cpu(0));
    }
    let chosen = choice::choice()?;
    let alike: Vec<DeviceSpec> = match chosen.device.backend == backend {
        true => chosen.alike(),
        false => {
            let mut found = list();
            found.retain(|device| device.backend == backend);
            found.sort_by_key(|device| device.software);
            let is_software = found.first().is_some_and(|device| device.software);
            let alike = found.into_iter().filter(|it| it.software == is_software);
            alike.map(|device| device.name.as_str().into()).collect()
        }
    };
    let own = local_rank().checked_rem(alike.len());
    let absent = || DeviceSpec::from(format!("{}:0", backend.prefix()).as_str());
    Ok(own.map_or_else(absent, |at| alike[at].clone()))
}

/// The number of the CUDA device of a worker whose chief computes on one.
///
/// # Errors
/// SC0906 where this machine has none, SC0712 for a default device that is not there.
pub fn cuda_device_of_worker() -> Result<usize> {
    let device = device_of_worker(BackendKind::Cuda)?;
    device.resolve()?;
    match device {
        DeviceSpec::Cuda(number) => Ok(number),
        // Devices of CUDA have no other name.
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_a_chief_on_the_processor_computes_there() {
        let device = device_of_worker(BackendKind::Flex).expect("there is a processor");
        assert_eq!(device, DeviceSpec::Cpu(0));
    }

    #[test]
    fn a_machine_without_the_chiefs_kind_of_device_says_so() {
        let device = device_of_worker(BackendKind::Cuda).expect("a name");
        assert_eq!(device, DeviceSpec::Cuda(0));
        if let Err(problem) = device.resolve() {
            assert_eq!(problem.code, "SC0906");
            let same = cuda_device_of_worker().expect_err("there is none");
            assert_eq!(same.code, "SC0906");
        }
    }
}
