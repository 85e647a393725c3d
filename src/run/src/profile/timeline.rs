//! One timeline of the loop's thread and of the replicas' passes: the phases of the steps that count, and what a trace shows.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stratoscope_bert::taps::Moment;

use stratoscope_report::profile::{PhaseTime, StepPhase, TraceEvent};
use stratoscope_step::timed::{DeviceSpan, DeviceWork, STAGES, TimedPass};
use stratoscope_train::hooks::{Activity, Span, Spans};

use super::layers::PartTimes;

/// The steps that count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    pub begin: Instant,
    pub end: Instant,
    pub steps: usize,
    /// How long the first step took, if it does not count.
    pub first: Option<Duration>,
}

impl Timeline {
    /// Of the steps that were made: all but the first, if there are several. `None` if there are none.
    pub(super) fn of(spans: &Spans) -> Option<Self> {
        let begins = |step: usize| {
            let first = *spans.steps.get(step)?;
            Some(spans.all.get(first)?.begun)
        };
        let skipped = usize::from(spans.made > 1);
        let last = spans.all.last()?;
        (spans.made > 0).then_some(())?;
        let begin = begins(skipped)?;
        Some(Self {
            begin,
            // A step that was not made is left out, and what follows the last one belongs to it.
            end: begins(spans.made).unwrap_or(last.ended),
            steps: spans.made - skipped,
            first: match skipped {
                0 => None,
                _ => Some(begin - begins(0)?),
            },
        })
    }
}

/// Where passes are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// By a device that computes while the host goes on.
    pub on_gpu: bool,
    /// By worker processes, of whose passes only begin and end are known.
    pub by_workers: bool,
}

/// The seconds of each phase between two times, those without seconds left out. Passes are divided by the stages of the replica that is
/// ready last; what lies before and after its pass is the host's.
pub(super) fn phases(
    spans: &Spans,
    passes: &[&TimedPass],
    (begin, end): (Instant, Instant),
    Place { on_gpu, by_workers }: Place,
) -> Vec<PhaseTime> {
    let mut seconds: HashMap<StepPhase, f64> = HashMap::new();
    let mut host: HashMap<&str, f64> = HashMap::new();
    let inside = |span: &&Span| span.begun >= begin && span.ended <= end;
    for span in spans.all.iter().filter(inside) {
        let length = (span.ended - span.begun).as_secs_f64();
        let mut add = |phase, seconds_of: f64| *seconds.entry(phase).or_default() += seconds_of;
        match span.activity {
            Activity::Data => add(StepPhase::Data, length),
            Activity::Exchange => add(StepPhase::Exchange, length),
            Activity::Update => add(StepPhase::Update, length),
            Activity::Host(what) => {
                add(StepPhase::Host, length);
                *host.entry(what).or_default() += length;
            }
            Activity::Unknown => add(StepPhase::Host, length),
            Activity::Passes => {
                let Some(slowest) = slowest_in(passes, span) else {
                    // Before the passes of a pipeline the hooks hear of each of its micro-batches.
                    let phase = match by_workers {
                        true => StepPhase::ForwardBackward,
                        false => StepPhase::Host,
                    };
                    add(phase, length);
                    continue;
                };
                let mut own = PartTimes::default();
                own.pass(slowest);
                let [forward, loss, backward, accumulate, read, wait] = own.stages;
                add(StepPhase::Stages, wait);
                add(StepPhase::Forward, forward + loss);
                add(StepPhase::Backward, backward + accumulate);
                // The processor has computed everything when its outputs are read.
                let of_read = if on_gpu {
                    StepPhase::Wait
                } else {
                    StepPhase::Host
                };
                add(of_read, read);
                let around = (length - own.stages.iter().sum::<f64>()).max(0.0);
                add(StepPhase::Host, around);
                *host
                    .entry("the begin and the end of the replicas")
                    .or_default() += around;
            }
        }
    }
    let most = host.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let phase = |phase: StepPhase| {
        let seconds = *seconds.get(&phase)?;
        // Only stages of a pipeline wait for each other.
        (seconds > 0.0 || phase != StepPhase::Stages).then(|| PhaseTime {
            phase,
            seconds,
            detail: match (phase, most) {
                (StepPhase::Host, Some((what, _))) => what.to_owned(),
                _ => String::new(),
            },
            device_seconds: None,
        })
    };
    StepPhase::ALL.into_iter().filter_map(phase).collect()
}

/// Adds the seconds of devices to the phases in which they were started, between two times. `devices`: how many have passes.
pub(super) fn add_device_work(
    phases: &mut [PhaseTime],
    work: &[DeviceSpan],
    (begin, end): (Instant, Instant),
    devices: usize,
) {
    for span in work.iter().filter(|it| (begin..end).contains(&it.begun)) {
        let (wanted, share) = match span.work {
            DeviceWork::Exchange => (StepPhase::Exchange, 1),
            DeviceWork::Update => (StepPhase::Update, 1),
            DeviceWork::Stage(stage) => {
                let phase = match STAGES.get(stage) {
                    Some(&"forward" | &"loss") => StepPhase::Forward,
                    Some(&"backward" | &"accumulate") => StepPhase::Backward,
                    Some(&"read") => StepPhase::Wait,
                    _ => StepPhase::Stages,
                };
                (phase, devices.max(1))
            }
        };
        if let Some(phase) = phases.iter_mut().find(|it| it.phase == wanted) {
            *phase.device_seconds.get_or_insert_default() += span.seconds / share as f64;
        }
    }
}

/// The pass within a span that ends last.
fn slowest_in<'p>(passes: &[&'p TimedPass], span: &Span) -> Option<&'p TimedPass> {
    let own = passes
        .iter()
        .filter(|it| it.begun >= span.begun && it.ended <= span.ended);
    own.max_by_key(|it| it.ended).copied()
}

/// What happened when: the loop's thread in one lane, each replica or stage with its stages and parts in another of this name.
pub(super) fn events(spans: &Spans, passes: &[TimedPass], lanes: &[String]) -> Vec<TraceEvent> {
    let Some(zero) = spans.all.first().map(|it| it.begun) else {
        return Vec::new();
    };
    let since = |at: Instant| at.saturating_duration_since(zero).as_secs_f64();
    let event = |name: &str, lane: (usize, &str), begun: Instant, ended: Instant| TraceEvent {
        name: name.to_owned(),
        lane: lane.0,
        lane_name: lane.1.to_owned(),
        begin: since(begun),
        seconds: ended.saturating_duration_since(begun).as_secs_f64(),
    };
    let host = (0, "the loop");
    let mut events: Vec<TraceEvent> = Vec::new();
    for (step, &first) in spans.steps.iter().enumerate() {
        let begun = spans.all[first].begun;
        let next = spans.steps.get(step + 1).map(|&next| spans.all[next].begun);
        let end = next.or_else(|| spans.all.last().map(|it| it.ended));
        let name = format!("step {}", step + 1);
        events.extend(end.map(|end| event(&name, host, begun, end)));
    }
    for span in &spans.all {
        let name = match span.activity {
            Activity::Data => StepPhase::Data.words(),
            Activity::Passes => StepPhase::ForwardBackward.words(),
            Activity::Exchange => StepPhase::Exchange.words(),
            Activity::Update => StepPhase::Update.words(),
            Activity::Host(what) => what,
            Activity::Unknown => "the loop",
        };
        events.push(event(name, host, span.begun, span.ended));
    }
    for pass in passes {
        let name = lanes.get(pass.replica).map_or("", String::as_str);
        let lane = (pass.replica + 1, name);
        let mut stage = (STAGES[0], pass.begun);
        let mut inside: Vec<(&str, Instant)> = Vec::new();
        let mut backward: Option<(&str, Instant)> = None;
        for stamp in &pass.stamps {
            match stamp.moment {
                Moment::Begins => inside.push((&stamp.layer, stamp.at)),
                Moment::Ends => {
                    let begun = inside.pop();
                    events.extend(begun.map(|(name, at)| event(name, lane, at, stamp.at)));
                }
                Moment::Output => {}
                Moment::Gradient => {
                    let before = backward.replace((&stamp.layer, stamp.at));
                    events.extend(before.map(|(name, at)| event(name, lane, at, stamp.at)));
                }
                Moment::Stage => {
                    let before = backward.take();
                    events.extend(before.map(|(name, at)| event(name, lane, at, stamp.at)));
                    events.push(event(stage.0, lane, stage.1, stamp.at));
                    stage = (&stamp.layer, stamp.at);
                }
            }
        }
        events.push(event(stage.0, lane, stage.1, pass.ended));
    }
    events
}
