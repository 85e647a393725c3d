//! `run.profile(steps)`: steps like any others, measured. What limits them is `report::profile::verdict`, which sees numbers only.
//!
//! The hook [`StepClock`] notes what the thread of the loop does, [`PassTimer`] when each replica computes which part. Neither changes an
//! operation, so that the steps have the bits that they have without a profile. `timeline` makes one timeline of both, `layers` the
//! seconds of each part of the network, `costs` its FLOPs and bytes, and `roofline` measures what the machine reaches.

mod costs;
mod layers;
mod roofline;
#[cfg(test)]
mod tests;
mod timeline;

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use stratoscope_diagnostics::rules::NothingToProfile;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{BackendKind, LogicalDevice, PipelineStages};

use crate::handle::Run;
use stratoscope_arguments::count::IntoCount;
use stratoscope_report::profile::{
    Frame, LayerTime, Measured, Profile, ReplicaTime, Roofline, Stages, StepPhase, verdict,
};
use stratoscope_report::stop::{Stop, StopReason};
use stratoscope_step::timed::{DeviceSpan, PassTimer, TimedPass};
use stratoscope_train::hooks::{SharedSpans, Spans, StepClock};
use stratoscope_train::loop_state::Goal;
use stratoscope_train::state::ModelState;

use costs::{Costs, Weight, costs, layer_of_part};
use layers::PartTimes;
use timeline::{Place, Timeline, events};

/// What is known of the model of a profile.
struct Facts {
    /// Of the replicas, or of the stages of a pipeline, those of one replica after the other.
    devices: Vec<String>,
    /// How many stages a replica has, in a pipeline.
    stages: Option<usize>,
    weights: Vec<Weight>,
    place: Place,
    roofline: Roofline,
    /// Bytes that replicas have moved in its steps.
    moved_bytes: u64,
    recomputed: bool,
    /// How far the positions of each encoder layer attend.
    windows: Vec<Option<usize>>,
    /// What the update of all copies reads and writes.
    update_bytes: f64,
}

impl Run {
    /// Makes `steps` optimizer steps, as [`Self::step`] does, and measures them: where their time goes, by phase and by layer, how near
    /// that is to what the machine reaches, what limits the run, and what to change. If there are several, the first is not counted: it
    /// waits for the first batch. The steps have the bits that they have without a profile, and count as steps of the run.
    ///
    /// On a GPU the times are those of the host: it starts the operations, and waits for them where it reads the loss. Beside them is
    /// what the clock of the GPU says of each phase.
    ///
    /// # Errors
    /// SC0740 for no steps, for a run without steps left, and where the first step is not made because of a breakpoint or an interrupt;
    /// else as [`Self::step`].
    pub fn profile(&self, steps: impl IntoCount) -> Result<Profile> {
        let steps = steps.into_count().at_least(0, "profile", "steps")?;
        let spans = SharedSpans::default();
        let (before, timer) = self.with("profile", |lease, run| {
            if steps == 0 || run.is_complete() {
                let reason = match steps {
                    0 => "no steps are asked for".to_owned(),
                    _ => "the run has made all its steps".to_owned(),
                };
                return Err(nothing(lease, reason));
            }
            let moved = lease.step.replicas.collectives().totals().moved_bytes;
            // Before the steps, so that it does not lie between them.
            roofline::roofline(&lease.step.replicas.computing()[0]);
            let timer = Arc::new(PassTimer::of_devices(timed_devices(lease).to_vec()));
            lease.step.timer = Some(Arc::clone(&timer));
            run.hooks.clock = StepClock::of(&spans);
            Ok((moved, timer))
        })?;
        let measuring = Measuring(self);
        let stop = self.advance(Goal::Steps(steps))?;
        drop(measuring);
        let spans = std::mem::take(&mut *spans.lock().unwrap_or_else(PoisonError::into_inner));
        self.with("profile", |lease, _| {
            let timeline = Timeline::of(&spans).ok_or_else(|| {
                let reason = match &stop.reason {
                    StopReason::Breakpoint(_) => {
                        "the run stops at a breakpoint before its next step"
                    }
                    _ => "the run was interrupted before a step was made",
                };
                nothing(lease, reason.to_owned())
            })?;
            let facts = Facts::of(lease, before);
            let measured = Recorded {
                spans,
                passes: timer.take(),
                device_work: timer.take_device_work(),
                timeline,
                facts,
            };
            Ok(measured.profile(&stop))
        })
    }
}

/// SC0740.
fn nothing(state: &ModelState, reason: String) -> Box<stratoscope_diagnostics::Diagnostic> {
    let made = state.step.steps;
    NothingToProfile { reason, made }.error()
}

/// Takes the clock and the timer away, whatever happens.
struct Measuring<'r>(&'r Run);

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        // A run that is over meanwhile has been left by them.
        let _ = self.0.with("profile", |lease, run| {
            lease.step.timer = None;
            run.hooks.clock = StepClock::default();
            Ok(())
        });
    }
}

impl Facts {
    /// What computes on each device: `replica 1, cpu:1`, `stage 1, cpu:1` or `replica 0, stage 1, cpu:1`.
    fn lanes(&self) -> Vec<String> {
        let lane = |(place, device): (usize, &String)| match self.stages {
            None => format!("replica {place}, {device}"),
            Some(each) if each == self.devices.len() => format!("stage {place}, {device}"),
            Some(each) => {
                let (replica, stage) = (place / each, place % each);
                format!("replica {replica}, stage {stage}, {device}")
            }
        };
        self.devices.iter().enumerate().map(lane).collect()
    }

    /// `moved`: the bytes that its replicas had moved before the profile.
    fn of(state: &ModelState, moved: u64) -> Self {
        let replicas = &state.step.replicas;
        let devices = replicas.computing();
        let timed = timed_devices(state);
        let weights = replicas.records().iter().map(|record| Weight {
            name: record.name.clone(),
            shape: record.shape.clone(),
            is_trained: record.trainable,
        });
        let weights: Vec<Weight> = weights.collect();
        let updated = weights.iter().filter(|it| it.is_trained);
        let elements: f64 = updated.map(Weight::elements).sum();
        // There are fewer layers than weights.
        let layers = 0..weights.len();
        let windows = layers.map(|layer| state.files.attention_window(layer));
        let windows = windows.collect();
        Self {
            devices: timed.iter().map(|it| it.name.clone()).collect(),
            stages: replicas.stages().map(PipelineStages::len),
            weights,
            place: Place {
                on_gpu: devices.iter().any(|it| it.backend != BackendKind::Flex),
                by_workers: state.step.workers.is_some(),
            },
            roofline: roofline::roofline(&devices[0]),
            moved_bytes: (replicas.collectives().totals().moved_bytes).saturating_sub(moved),
            recomputed: state.step.recomputed,
            windows,
            update_bytes: UPDATE_BYTES * elements * replicas.copies() as f64,
        }
    }
}

/// Where each replica computes, or each stage of a pipeline. A replica whose layers are in slices is timed as one.
fn timed_devices(state: &ModelState) -> &[LogicalDevice] {
    let replicas = &state.step.replicas;
    match replicas.stages() {
        Some(_) => replicas.computing(),
        None => replicas.devices(),
    }
}

/// Bytes that an update moves for a weight: it reads weight, gradient and two moments, and writes weight and moments, as Adam does.
const UPDATE_BYTES: f64 = 7.0 * 4.0;

/// All that was recorded.
struct Recorded {
    spans: Spans,
    passes: Vec<TimedPass>,
    /// What the clocks of the devices say.
    device_work: Vec<DeviceSpan>,
    timeline: Timeline,
    facts: Facts,
}

impl Recorded {
    fn profile(self, stop: &Stop) -> Profile {
        let Timeline {
            begin,
            end,
            steps,
            first,
        } = self.timeline;
        let count = steps as f64;
        let in_time = |begun: Instant| (begin..end).contains(&begun);
        let passes: Vec<&TimedPass> = self.passes.iter().filter(|it| in_time(it.begun)).collect();
        let replicas = self.replicas(&passes, count);
        let mut phases = timeline::phases(&self.spans, &passes, (begin, end), self.facts.place);
        let devices = self.facts.devices.len();
        timeline::add_device_work(&mut phases, &self.device_work, (begin, end), devices);
        let mut parts = PartTimes::default();
        passes.iter().for_each(|pass| parts.pass(pass));
        // Parts are means over the replicas, which compute at the same time. A stage has parts that no other of its replica has.
        let of_a_replica = self.facts.stages.unwrap_or(1);
        let each = count * (replicas.len() / of_a_replica).max(1) as f64;
        let seconds = (end - begin).as_secs_f64() / count;
        // A stage reads its weights once for each micro-batch. The first stages stand for all of their replica.
        let whole = passes.iter().filter(|it| it.replica % of_a_replica == 0);
        let whole = whole.map(|it| it.size.micro_batches).sum();
        let layers = self.layers(&parts, whole, (count, each));
        let stages = self.stages(&passes, &replicas, count);
        let frames = frames(&parts, each);
        let mut profile = Profile {
            made: self.spans.made,
            steps,
            first: first.map(|it| it.as_secs_f64()),
            seconds,
            phases: phases
                .into_iter()
                .map(|mut phase| {
                    phase.seconds /= count;
                    phase.device_seconds = phase.device_seconds.map(|it| it / count);
                    phase
                })
                .collect(),
            layers,
            replicas,
            stages,
            exchanged_bytes: self.facts.moved_bytes as f64 / self.spans.made.max(1) as f64,
            roofline: self.facts.roofline.clone(),
            frames,
            events: events(&self.spans, &self.passes, &self.facts.lanes()),
            verdict: verdict(&Measured::default()),
            notes: self.notes(stop),
        };
        profile.verdict = verdict(&self.measured(&profile));
        profile
    }

    /// What the verdict needs.
    fn measured(&self, profile: &Profile) -> Measured {
        let of = |phase| profile.phase(phase);
        let host = profile.phases.iter().find(|it| it.phase == StepPhase::Host);
        let wait = of(StepPhase::Wait);
        let bytes: f64 = profile.layers.iter().map(|it| it.bytes).sum();
        Measured {
            step: profile.seconds,
            data: of(StepPhase::Data),
            passes: of(StepPhase::Forward)
                + of(StepPhase::Backward)
                + of(StepPhase::ForwardBackward)
                + wait,
            device_wait: wait,
            exchange: of(StepPhase::Exchange),
            update: of(StepPhase::Update),
            host: of(StepPhase::Host),
            host_is: host.map_or_else(String::new, |it| it.detail.clone()),
            replicas: profile.replicas.clone(),
            stages: profile.stages.clone(),
            flops: profile.flops(),
            bytes: bytes + self.facts.update_bytes,
            peak: profile.roofline.flops_per_second,
            bandwidth: profile.roofline.bytes_per_second,
            on_gpu: self.facts.place.on_gpu,
        }
    }

    fn replicas(&self, passes: &[&TimedPass], steps: f64) -> Vec<ReplicaTime> {
        let names = self.facts.devices.iter().enumerate();
        let of = |(replica, name): (usize, &String)| {
            let own = passes.iter().filter(|it| it.replica == replica);
            ReplicaTime {
                device: name.clone(),
                seconds: own.clone().map(|it| busy(it)).sum::<f64>() / steps,
                positions: own.map(|it| it.size.positions as f64).sum::<f64>() / steps,
            }
        };
        match self.facts.place.by_workers {
            true => Vec::new(),
            false => names.map(of).collect(),
        }
    }

    /// How the stages of a pipeline work together: `None` where there are none.
    fn stages(&self, passes: &[&TimedPass], each: &[ReplicaTime], steps: f64) -> Option<Stages> {
        let count = self.facts.stages?;
        // All stages begin a batch together; the passes of a stage are in the order of the batches.
        let mut windows: Vec<(Instant, Instant)> = Vec::new();
        for stage in 0..each.len() {
            let own = passes.iter().filter(|it| it.replica == stage);
            for (at, pass) in own.enumerate() {
                match windows.get_mut(at) {
                    Some((begun, ended)) => {
                        *begun = pass.begun.min(*begun);
                        *ended = pass.ended.max(*ended);
                    }
                    None => windows.push((pass.begun, pass.ended)),
                }
            }
        }
        let together = windows.iter().map(|(begun, ended)| *ended - *begun);
        let together = together.map(|it| it.as_secs_f64()).sum::<f64>() / steps;
        let busiest = each.iter().map(|it| it.seconds).fold(0.0, f64::max);
        let first = passes.iter().find(|it| it.replica == 0);
        Some(Stages {
            count,
            micro_batches: first.map_or(0, |it| it.size.micro_batches),
            waiting: (together - busiest).max(0.0),
        })
    }

    /// The layers in the order of the network, those without variables where they run.
    fn layers(
        &self,
        parts: &PartTimes,
        passes: usize,
        (steps, each): (f64, f64),
    ) -> Vec<LayerTime> {
        let costs = costs(
            &self.facts.weights,
            &parts.outputs,
            passes,
            self.facts.recomputed,
            &|layer| self.facts.windows.get(layer).copied().flatten(),
        );
        let mut layers: Vec<LayerTime> = Vec::new();
        for (part, [forward, backward]) in &parts.parts {
            let name = match part.as_str() {
                "" => "outside of layers".to_owned(),
                part => layer_of_part(part),
            };
            let at = layers.iter().position(|it| it.name == name);
            let at = at.unwrap_or_else(|| {
                let Costs { flops, bytes } = costs.get(&name).copied().unwrap_or_default();
                layers.push(LayerTime {
                    name,
                    flops: flops / steps,
                    bytes: bytes / steps,
                    ..LayerTime::default()
                });
                layers.len() - 1
            });
            layers[at].forward += forward / each;
            layers[at].backward += backward / each;
        }
        layers.sort_by_key(|it| it.name == "outside of layers");
        layers
    }

    fn notes(&self, stop: &Stop) -> Vec<String> {
        let mut notes = Vec::new();
        if self.facts.stages.is_some() {
            notes.push(
                "stages compute at the same time, so that layers together may take longer than a step; forward and backward are those of the \
                 stage that is ready last"
                    .to_owned(),
            );
        } else if self.facts.devices.len() > 1 && !self.facts.place.by_workers {
            notes.push("the seconds of layers are means over the replicas".to_owned());
        }
        if self.facts.place.on_gpu {
            let host = "on a GPU, seconds are those of the host: it starts operations, and waits where it reads the loss";
            notes.push(match self.device_work.is_empty() {
                true => format!("{host}. The clock of the device cannot be read here"),
                false => format!(
                    "{host}. On the device a phase lasts from the begin of its first to the end of its last operation"
                ),
            });
        }
        if self.facts.place.by_workers {
            notes.push("worker processes compute the passes: layers are not known here".to_owned());
        }
        if self.facts.recomputed {
            notes.push(
                "layers are computed again in the backward pass, and that is counted to it"
                    .to_owned(),
            );
        }
        if stop.reason != StopReason::Reached {
            let made = text::count(self.spans.made, "step");
            notes.push(format!("the run made {made}: {}", stop.headline()));
        }
        notes
    }
}

/// Seconds of a pass, without those in which a stage waits for its neighbors.
fn busy(pass: &TimedPass) -> f64 {
    let mut times = PartTimes::default();
    times.pass(pass);
    let [forward, loss, backward, accumulate, read, _wait] = times.stages;
    forward + loss + backward + accumulate + read
}

/// The parts with their own seconds of the mean step.
fn frames(parts: &PartTimes, each: f64) -> Vec<Frame> {
    let frame = |phase, path: &str, seconds: f64| Frame {
        phase,
        path: path.to_owned(),
        seconds: seconds / each,
    };
    let both = parts.parts.iter().flat_map(|(path, [forward, backward])| {
        [
            frame(StepPhase::Forward, path, *forward),
            frame(StepPhase::Backward, path, *backward),
        ]
    });
    both.filter(|it| it.seconds > 0.0).collect()
}
