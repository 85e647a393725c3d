//! [`PassTimer`]: when each replica computes what, in the passes of a step that is profiled. The step computes the same
//! operations; the marks are those of [`Taps::timed`]. On a GPU it also measures the time of the device, stage by stage.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stratoscope_bert::taps::{Moment, Taps};
use stratoscope_data::Batch;
use stratoscope_strategy::LogicalDevice;
use stratoscope_strategy::device::{DeviceTime, DeviceWindow};

/// The names of the stages of a pass; the first begins with the pass. Only a stage of a pipeline has the last one, in which it waits
/// for its neighbors.
pub const STAGES: [&str; 6] = ["forward", "loss", "backward", "accumulate", "read", "wait"];

/// A mark of a pass, with its time.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// When.
    pub at: Instant,
    /// The part of the network, or one of [`STAGES`].
    pub layer: String,
    /// What has begun or ended.
    pub moment: Moment,
    /// Of an output; else empty.
    pub shape: Vec<usize>,
}

/// What a pass computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassSize {
    /// The positions of all texts, padding included; rows where they are numbers.
    pub positions: usize,
    /// 1, or how many go through a stage of a pipeline.
    pub micro_batches: usize,
}

impl PassSize {
    /// Of a pass that computes these batches, one after the other.
    pub fn of(batches: &[Batch]) -> Self {
        let positions = batches.iter().map(|it| it.size() * it.seq.max(1));
        Self {
            positions: positions.sum(),
            micro_batches: batches.len(),
        }
    }
}

/// A pass of a replica, forward and backward; in a pipeline those of all micro-batches through a stage.
#[derive(Clone, Debug)]
pub struct TimedPass {
    /// The number of the replica or stage.
    pub replica: usize,
    /// When the pass began.
    pub begun: Instant,
    /// When it ended.
    pub ended: Instant,
    /// What was computed.
    pub size: PassSize,
    /// The moments within it, the earliest first.
    pub stamps: Vec<Stamp>,
}

/// What a device works on, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWork {
    /// A stage of a pass, by its place in [`STAGES`].
    Stage(usize),
    /// The exchange of gradients, and their norm.
    Exchange,
    /// The update of the weights.
    Update,
}

/// How long a device has worked on something that the host has begun to start then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSpan {
    /// On what.
    pub work: DeviceWork,
    /// When the host began.
    pub begun: Instant,
    /// Seconds of the device.
    pub seconds: f64,
}

/// A window that is closed, and will be read when the run is over.
type Closed = (DeviceWork, Instant, DeviceTime);

/// Notes the passes of all replicas.
#[derive(Debug, Default)]
pub struct PassTimer {
    passes: Mutex<Vec<TimedPass>>,
    /// Where each replica or stage computes; empty where no device is measured.
    devices: Vec<LogicalDevice>,
    closed: Mutex<Vec<Closed>>,
}

/// The windows of a pass, of which one is open at a time: the marks of a pass end a stage and begin the next one.
struct StageWindows {
    device: LogicalDevice,
    open: Option<(DeviceWork, Instant, DeviceWindow)>,
    closed: Vec<Closed>,
}

impl StageWindows {
    fn of(device: &LogicalDevice) -> Self {
        let mut windows = Self {
            device: device.clone(),
            open: None,
            closed: Vec::new(),
        };
        windows.begin(0);
        windows
    }

    fn begin(&mut self, stage: usize) {
        self.end();
        let (work, begun) = (DeviceWork::Stage(stage), Instant::now());
        self.open = DeviceWindow::open(&self.device).map(|window| (work, begun, window));
    }

    fn end(&mut self) {
        if let Some((work, begun, window)) = self.open.take() {
            let time = window.close();
            self.closed.extend(time.map(|time| (work, begun, time)));
        }
    }
}

impl PassTimer {
    /// One that also measures these devices, those of the replicas or stages in their order. On CPUs it measures nothing.
    pub fn of_devices(devices: Vec<LogicalDevice>) -> Self {
        Self {
            devices,
            ..Self::default()
        }
    }

    /// What the devices have measured, read now; the times of host clocks are left out. From now on nothing.
    pub fn take_device_work(&self) -> Vec<DeviceSpan> {
        let closed = std::mem::take(&mut *lock(&self.closed)).into_iter();
        let span = |(work, begun, time): Closed| {
            let seconds = time.seconds()?;
            Some(DeviceSpan {
                work,
                begun,
                seconds,
            })
        };
        closed.filter_map(span).collect()
    }

    /// Runs the pass of a replica or stage on this thread, and notes when its parts begin and end.
    pub fn during<T>(&self, replica: usize, size: PassSize, pass: impl FnOnce() -> T) -> T {
        let stamps: Arc<Mutex<Vec<Stamp>>> = Arc::default();
        let sink = Arc::clone(&stamps);
        let windows = self.devices.get(replica).map(StageWindows::of);
        let windows = Arc::new(Mutex::new(windows));
        let measured = Arc::clone(&windows);
        let taps = Taps::timed(move |mark| {
            if mark.moment == Moment::Stage
                && let Some(windows) = &mut *lock(&measured)
                && let Some(stage) = STAGES.iter().position(|it| *it == mark.layer)
            {
                windows.begin(stage);
            }
            let stamp = Stamp {
                at: Instant::now(),
                layer: mark.layer.to_owned(),
                moment: mark.moment,
                shape: mark.shape.to_vec(),
            };
            lock(&sink).push(stamp);
        });
        let begun = Instant::now();
        let value = taps.during(pass);
        let ended = Instant::now();
        if let Some(mut windows) = lock(&windows).take() {
            windows.end();
            lock(&self.closed).append(&mut windows.closed);
        }
        let stamps = std::mem::take(&mut *lock(&stamps));
        let timed = TimedPass {
            replica,
            begun,
            ended,
            size,
            stamps,
        };
        lock(&self.passes).push(timed);
        value
    }

    /// What was noted, and from now on nothing.
    pub fn take(&self) -> Vec<TimedPass> {
        std::mem::take(&mut *lock(&self.passes))
    }
}

/// Measures what this thread lets the device do meanwhile, where there is a timer. Of several devices nothing is measured here:
/// each works for another thread.
pub(crate) fn device_work<T>(
    timer: Option<Arc<PassTimer>>,
    work: DeviceWork,
    run: impl FnOnce() -> T,
) -> T {
    let Some((timer, [device])) = timer.as_deref().map(|it| (it, &it.devices[..])) else {
        return run();
    };
    let (begun, window) = (Instant::now(), DeviceWindow::open(device));
    let value = run();
    let time = window.and_then(DeviceWindow::close);
    lock(&timer.closed).extend(time.map(|time| (work, begun, time)));
    value
}

/// What a panic leaves is whole: each change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
