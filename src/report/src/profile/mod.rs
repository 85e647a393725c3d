//! [`Profile`]: what `run.profile(steps)` measured, and what limits the run.
//!
//! `verdict` says what the limit is, from numbers alone; `flame` draws where the time goes, `show` writes text and HTML, `trace` the file for
//! Perfetto. `profile` of the crate `train` fills the value in.

mod flame;
mod numbers;
mod show;
mod trace;
mod verdict;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::rules::WriteFailed;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;

pub use trace::TraceEvent;
pub use verdict::{
    DISPATCH_FACTOR, Limit, Measured, ReplicaTime, Stages, Verdict, WORTH_CHANGING, verdict,
};

/// What a step does at a time, as a timeline without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepPhase {
    /// It waits for its batch.
    Data,
    /// Forward and loss, of the replica or stage that is ready last.
    Forward,
    /// Backward, and adding the gradients up, of the same replica or stage.
    Backward,
    /// Both, where worker processes compute and the times of each are not known.
    ForwardBackward,
    /// The host waits for what a device has computed.
    Wait,
    /// A stage of a pipeline waits for other stages.
    Stages,
    /// The exchange of gradients, and their norm.
    Exchange,
    /// The update of the weights.
    Update,
    /// Everything else: callbacks, snapshots, checks, validation, the begin and the end of replicas' threads.
    Host,
}

impl StepPhase {
    /// All, in the order of a step.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Forward,
        Self::Backward,
        Self::ForwardBackward,
        Self::Wait,
        Self::Stages,
        Self::Exchange,
        Self::Update,
        Self::Host,
    ];

    /// The name in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ForwardBackward => "forward and backward",
            Self::Wait => "wait for the device",
            Self::Stages => "wait for other stages",
            Self::Exchange => "exchange",
            Self::Update => "update",
            Self::Host => "host and other",
        }
    }
}

/// A phase of the mean step.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTime {
    /// Which.
    pub phase: StepPhase,
    /// Seconds of a step.
    pub seconds: f64,
    /// What most of it is; may be empty.
    pub detail: String,
    /// Seconds of a step from the begin of the first to the end of the last operation that it starts on a GPU, by the clock of
    /// the GPU; `None` if that is not measured. The GPU computes later than the host starts it, so that this may be longer.
    pub device_seconds: Option<f64>,
}

/// A layer in the mean step: seconds are the mean over the replicas that have it, FLOPs and bytes the sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerTime {
    /// `bert.encoder.layer.3`
    pub name: String,
    /// Seconds of its forward pass.
    pub forward: f64,
    /// Seconds of its backward pass.
    pub backward: f64,
    /// FLOPs of both; 0 where they do not follow from shapes.
    pub flops: f64,
    /// Bytes that both move at least; 0 where they are not known.
    pub bytes: f64,
}

/// A part of the network and its own seconds, without those of the parts in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Forward or backward.
    pub phase: StepPhase,
    /// `bert.encoder.layer.3.output`; empty for what no part is known of.
    pub path: String,
    /// Seconds of the mean step.
    pub seconds: f64,
}

/// What this machine reaches: the roof of the roofline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofline {
    /// FLOP/s of a large matrix product in float32, a multiplication and an addition being two; 0 if it was not measured.
    pub flops_per_second: f64,
    /// Bytes per second of a copy of a large block, read and written; 0 if it was not measured.
    pub bytes_per_second: f64,
    /// Of what it was measured.
    pub device: String,
}

/// What `run.profile(steps)` measured.
#[derive(Clone, PartialEq)]
pub struct Profile {
    /// The steps that were made.
    pub made: usize,
    /// The steps that are measured: all but the first, if there are several.
    pub steps: usize,
    /// Seconds of the first step where it does not count: it waits for the first batch.
    pub first: Option<f64>,
    /// Seconds of the mean step.
    pub seconds: f64,
    /// Its phases; together they are its time.
    pub phases: Vec<PhaseTime>,
    /// Its layers, in the order of the network.
    pub layers: Vec<LayerTime>,
    /// Its replicas, or the stages of a pipeline.
    pub replicas: Vec<ReplicaTime>,
    /// How the stages of a pipeline work together.
    pub stages: Option<Stages>,
    /// Bytes that went from one device to another in a step.
    pub exchanged_bytes: f64,
    /// What the machine reaches.
    pub roofline: Roofline,
    /// The times of the parts of the network.
    pub frames: Vec<Frame>,
    /// What happened when, in all steps that were made.
    pub events: Vec<TraceEvent>,
    /// What limits a step.
    pub verdict: Verdict,
    /// What is to be known beside the tables, a sentence each.
    pub notes: Vec<String>,
}

impl Profile {
    /// Seconds of a phase in the mean step.
    pub fn phase(&self, phase: StepPhase) -> f64 {
        let own = self.phases.iter().filter(|it| it.phase == phase);
        own.map(|it| it.seconds).sum()
    }

    /// Seconds of all phases by the clock of the GPU; `None` if none was measured.
    pub fn device_seconds(&self) -> Option<f64> {
        let measured = self.phases.iter().filter_map(|it| it.device_seconds);
        measured.reduce(|sum, seconds| sum + seconds)
    }

    /// The layer of this name.
    pub fn layer(&self, name: &str) -> Option<&LayerTime> {
        self.layers.iter().find(|it| it.name == name)
    }

    /// FLOPs of a step, on all replicas.
    pub fn flops(&self) -> f64 {
        self.layers.iter().map(|it| it.flops).sum()
    }

    /// Writes what happened when as Chrome trace events, which Perfetto (ui.perfetto.dev) and `chrome://tracing` open. A file of this
    /// name is replaced.
    ///
    /// # Errors
    /// SC0908 if it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| {
            let rule = WriteFailed {
                path: path.display().to_string(),
                reason: error.to_string(),
            };
            rule.error()
        };
        fs::write(path, trace::json(&self.events)).map_err(failed)?;
        Ok(path.to_owned())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn profile() -> Profile {
        let phase = |phase, seconds, detail: &str| PhaseTime {
            phase,
            seconds,
            detail: detail.to_owned(),
            device_seconds: None,
        };
        let layer = |name: &str, forward, backward, flops, bytes| LayerTime {
            name: name.to_owned(),
            forward,
            backward,
            flops,
            bytes,
        };
        let frame = |phase, path: &str, seconds| Frame {
            phase,
            path: path.to_owned(),
            seconds,
        };
        let measured = Measured {
            step: 0.1,
            data: 0.06,
            ..Measured::default()
        };
        Profile {
            made: 4,
            steps: 3,
            first: Some(0.25),
            seconds: 0.1,
            phases: vec![
                phase(StepPhase::Data, 0.06, ""),
                phase(StepPhase::Forward, 0.01, ""),
                phase(StepPhase::Backward, 0.02, ""),
                phase(StepPhase::Update, 0.004, ""),
                phase(StepPhase::Host, 0.006, "callbacks <i>"),
            ],
            layers: vec![
                layer("bert.embeddings", 0.002, 0.004, 0.0, 0.0),
                layer("a<b>", 0.008, 0.016, 1.2e9, 3e6),
            ],
            replicas: vec![ReplicaTime {
                device: "cpu:0".to_owned(),
                seconds: 0.03,
                positions: 64.0,
            }],
            stages: None,
            exchanged_bytes: 0.0,
            roofline: Roofline {
                flops_per_second: 100e9,
                bytes_per_second: 10e9,
                device: "cpu:0".to_owned(),
            },
            frames: vec![
                frame(StepPhase::Forward, "bert.embeddings", 0.002),
                frame(StepPhase::Forward, "a<b>", 0.006),
                frame(StepPhase::Forward, "a<b>.dense", 0.002),
                frame(StepPhase::Backward, "a<b>.dense", 0.02),
            ],
            events: vec![TraceEvent {
                name: "forward".to_owned(),
                lane: 1,
                lane_name: "replica 0, \"cpu:0\"".to_owned(),
                begin: 0.5,
                seconds: 0.25,
            }],
            verdict: verdict(&measured),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn text_and_page_have_phases_layers_roof_and_verdict() {
        let profile = profile();
        let plain = profile.to_plain();
        for part in [
            "3 steps of 100 ms",
            "The input is the limit",
            "data",
            "60 %",
            "callbacks <i>",
            "a<b>",
            "1.20 GFLOP",
            "50.0 GFLOP/s",
            "100 GFLOP/s",
            "10.0 GB/s",
            "a note",
            "the first step took 250 ms",
        ] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        let html = profile.to_html();
        assert!(html.contains("data:image/svg+xml"), "{html}");
        assert!(html.contains("a&lt;b&gt;") && html.contains("callbacks &lt;i&gt;"));
        assert!(!html.contains("<b>a") && !html.contains("<script") && !html.contains("<i>"));
    }

    #[test]
    fn the_time_of_a_device_is_a_column_where_it_was_measured() {
        let mut profile = profile();
        assert_eq!(profile.device_seconds(), None);
        assert!(!profile.to_plain().contains("on the device"));
        profile.phases[1].device_seconds = Some(0.015);
        profile.phases[2].device_seconds = Some(0.03);
        assert!((profile.device_seconds().expect("two phases") - 0.045).abs() < 1e-12);
        let plain = profile.to_plain();
        for part in ["phases: seconds, on the device", "15.0 ms", "45.0 ms", "–"] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        assert!(profile.to_html().contains("on the device"));
    }

    #[test]
    fn a_file_for_perfetto_is_written_and_one_that_cannot_be_is_a_card() {
        let folder = std::env::temp_dir().join(format!("profile-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let path = profile().save(folder.join("p.json")).expect("room");
        let read: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).expect("written")).expect("JSON");
        let events = read["traceEvents"].as_array().expect("a list");
        let timed: Vec<_> = events.iter().filter(|it| it["ph"] == "X").collect();
        assert_eq!(timed.len(), 1);
        assert_eq!(
            (timed[0]["ts"].as_f64(), timed[0]["dur"].as_f64()),
            (Some(5e5), Some(2.5e5))
        );
        let name = events.iter().find(|it| it["ph"] == "M" && it["tid"] == 1);
        assert_eq!(
            name.expect("a name")["args"]["name"],
            "replica 0, \"cpu:0\""
        );
        let refused = profile().save(folder.join("none").join("p.json"));
        assert_eq!(refused.expect_err("no folder").code, "SC0908");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
