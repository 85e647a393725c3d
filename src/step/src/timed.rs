//! [`PassTimer`]: when each replica computes what, in the passes of a step that is profiled. The step computes the same
//! operations; the marks are those of [`Taps::timed`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use stratoscope_bert::taps::{Moment, Taps};
use stratoscope_data::Batch;

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

/// Notes the passes of all replicas.
#[derive(Debug, Default)]
pub struct PassTimer {
    passes: Mutex<Vec<TimedPass>>,
}

impl PassTimer {
    /// Runs the pass of a replica or stage on this thread, and notes when its parts begin and end.
    pub fn during<T>(&self, replica: usize, size: PassSize, pass: impl FnOnce() -> T) -> T {
        let stamps: Arc<Mutex<Vec<Stamp>>> = Arc::default();
        let sink = Arc::clone(&stamps);
        let taps = Taps::timed(move |mark| {
            let stamp = Stamp {
                at: Instant::now(),
                layer: mark.layer.to_owned(),
                moment: mark.moment,
                shape: mark.shape.to_vec(),
            };
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(stamp);
        });
        let begun = Instant::now();
        let value = taps.during(pass);
        let ended = Instant::now();
        let stamps = std::mem::take(&mut *stamps.lock().unwrap_or_else(PoisonError::into_inner));
        let timed = TimedPass {
            replica,
            begun,
            ended,
            size,
            stamps,
        };
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.push(timed);
        value
    }

    /// What was noted, and from now on nothing.
    pub fn take(&self) -> Vec<TimedPass> {
        std::mem::take(&mut *self.passes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
