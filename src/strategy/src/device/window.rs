//! How long a GPU works on what the host has started, by its own clock.
//!
//! burn measures a closure with `Device::profile`. A phase of a step begins and ends in different places, so that the window of
//! that call is opened and closed here by hand. It spans the work that the calling thread starts: from the begin of its first
//! operation to the end of its last one. Opening and closing waits for nothing; the times are read when the run is over.

use std::fmt;

use burn::backend::{Backend, Dispatch, ProfileOptions, ProfileToken};
use burn::tensor::{Device, ProfileDuration, TimingMethod};
use cubecl::future::block_on;

use super::{BackendKind, LogicalDevice};

/// A window that is open.
#[derive(Debug)]
pub struct DeviceWindow {
    device: Device,
    /// `None` when it is closed.
    token: Option<ProfileToken>,
}

/// The time of a window that is closed; the device may still be working.
pub struct DeviceTime(ProfileDuration);

impl fmt::Debug for DeviceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceTime").finish_non_exhaustive()
    }
}

impl DeviceWindow {
    /// Opens one at what this thread starts next. `None` on the CPU, which computes before an operation returns, and where the
    /// device refuses it.
    pub fn open(device: &LogicalDevice) -> Option<Self> {
        if device.backend == BackendKind::Flex {
            return None;
        }
        let device = device.burn.clone();
        let token = Dispatch::profile_start(device.as_dispatch()).ok().flatten();
        token.is_some().then_some(Self { device, token })
    }

    /// Closes it behind what was started last.
    pub fn close(mut self) -> Option<DeviceTime> {
        let token = self.token.take()?;
        let device = self.device.as_dispatch();
        let time = Dispatch::profile_end(device, token, ProfileOptions::default());
        time.ok().map(DeviceTime)
    }
}

impl Drop for DeviceWindow {
    /// After a panic or an error: nothing is measured.
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            Dispatch::profile_abandon(self.device.as_dispatch(), token);
        }
    }
}

impl DeviceTime {
    /// Waits for the device and reads the seconds; 0 for a window without work. `None` if the device has no clock of its own:
    /// what it reports then is the time of the host.
    pub fn seconds(self) -> Option<f64> {
        if self.0.timing_method() != TimingMethod::Device {
            return None;
        }
        let ticks = block_on(self.0.resolve());
        Some(ticks.map_or(0.0, |ticks| ticks.duration().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use super::*;
    use crate::{AsStrategy, OneDeviceStrategy, cpu, wgpu};

    #[test]
    fn the_processor_has_no_window() {
        let strategy = OneDeviceStrategy::new(cpu(0)).expect("a processor");
        assert!(DeviceWindow::open(&strategy.strategy().devices()[0]).is_none());
    }

    #[test]
    fn the_device_measures_what_is_started_in_a_window_on_gpu() {
        let Ok(strategy) = OneDeviceStrategy::new(wgpu(0)) else {
            println!("skipped: no adapter");
            return;
        };
        let devices = strategy.strategy().devices();
        let device = &devices[0];
        let x = Tensor::<2>::ones([512, 512], &device.burn);
        let window = DeviceWindow::open(device).expect("a GPU has windows");
        let sum = x.clone() + x.exp();
        let time = window.close().expect("it was open");
        drop(sum.into_data());
        assert!(time.seconds().is_none_or(|seconds| seconds > 0.0));
        // One that is not closed is abandoned.
        drop(DeviceWindow::open(device));
    }
}
