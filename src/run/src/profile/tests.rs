//! Each verdict by a cause that is planted in a timeline: the clock is the test's, so that the numbers are exact.

use std::time::{Duration, Instant};

use stratoscope_bert::taps::Moment;

use super::*;
use stratoscope_report::profile::{Limit, PhaseTime};
use stratoscope_report::run_report::Position;
use stratoscope_step::timed::{DeviceWork, PassSize, STAGES, Stamp};
use stratoscope_train::hooks::{Activity, Span};

/// The one layer: a matrix of 1000 × 1000.
const WIDTH: usize = 1000;

/// The milliseconds of a step.
#[derive(Clone, Debug, Default)]
struct Step {
    data: u64,
    /// Of each replica or stage: forward, backward, and how long it waits for its neighbors between the two.
    passes: Vec<[u64; 3]>,
    exchange: u64,
    update: u64,
    host: u64,
    /// Rows that a replica multiplies.
    rows: usize,
    is_pipeline: bool,
}

/// Steps of one replica that arithmetic fills: 6 GFLOP in 75 ms, where 100 GFLOP/s can be reached.
fn balanced() -> Step {
    Step {
        data: 1,
        passes: vec![[25, 50, 0]],
        exchange: 1,
        update: 5,
        host: 2,
        rows: 1000,
        is_pipeline: false,
    }
}

/// A timeline that is being written.
struct Planted {
    at: Instant,
    spans: Vec<Span>,
    steps: Vec<usize>,
    passes: Vec<TimedPass>,
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl Planted {
    fn span(&mut self, activity: Activity, length: u64) {
        let begun = self.at;
        self.at += milliseconds(length);
        self.spans.push(Span {
            activity,
            begun,
            ended: self.at,
        });
    }

    fn step(&mut self, step: &Step) {
        self.steps.push(self.spans.len());
        self.span(Activity::Data, step.data);
        for (replica, &[forward, backward, wait]) in step.passes.iter().enumerate() {
            let begun = self.at;
            let computed = begun + milliseconds(forward);
            let ready = computed + milliseconds(wait);
            let ended = ready + milliseconds(backward);
            let stamp = |at: Instant, layer: &str, moment: Moment, shape: &[usize]| Stamp {
                at,
                layer: layer.to_owned(),
                moment,
                shape: shape.to_vec(),
            };
            self.passes.push(TimedPass {
                replica,
                begun,
                ended,
                size: PassSize {
                    positions: step.rows,
                    micro_batches: if step.is_pipeline { 3 } else { 1 },
                },
                stamps: vec![
                    stamp(begun, "layer", Moment::Begins, &[]),
                    stamp(computed, "layer", Moment::Output, &[step.rows, WIDTH]),
                    stamp(computed, "layer", Moment::Ends, &[]),
                    stamp(computed, "wait", Moment::Stage, &[]),
                    stamp(ready, "backward", Moment::Stage, &[]),
                    stamp(ready, "layer", Moment::Gradient, &[]),
                    stamp(ended, "accumulate", Moment::Stage, &[]),
                ],
            });
        }
        let longest = step.passes.iter().map(|it| it.iter().sum::<u64>()).max();
        // Its last millisecond is the end of the replicas' threads.
        self.span(Activity::Passes, longest.unwrap_or(0) + 1);
        self.span(Activity::Exchange, step.exchange);
        self.span(Activity::Update, step.update);
        self.span(Activity::Host("a callback"), step.host);
    }
}

/// Two steps like this one, after a first step that waits a second for its batch and does not count.
fn profile(step: &Step) -> Profile {
    let mut planted = Planted {
        at: Instant::now(),
        spans: Vec::new(),
        steps: Vec::new(),
        passes: Vec::new(),
    };
    let first = Step {
        data: 1000,
        ..step.clone()
    };
    for step in [&first, step, step] {
        planted.step(step);
    }
    let spans = Spans::planted(planted.spans, planted.steps);
    let devices = (0..step.passes.len()).map(|index| format!("cpu:{index}"));
    let facts = Facts {
        devices: devices.collect(),
        stages: step.is_pipeline.then_some(step.passes.len()),
        weights: vec![Weight {
            name: "layer.weight".to_owned(),
            shape: vec![WIDTH, WIDTH],
            is_trained: true,
        }],
        place: Place {
            on_gpu: false,
            by_workers: false,
        },
        roofline: Roofline {
            flops_per_second: 100e9,
            bytes_per_second: 10e9,
            device: "cpu".to_owned(),
        },
        moved_bytes: 0,
        recomputed: false,
        windows: Vec::new(),
        update_bytes: UPDATE_BYTES * (WIDTH * WIDTH) as f64,
    };
    let recorded = Recorded {
        timeline: Timeline::of(&spans).expect("three steps"),
        spans,
        passes: planted.passes,
        device_work: Vec::new(),
        facts,
    };
    let position = Position {
        step: 3,
        steps: 10,
        epoch: 0,
        epochs: 1,
        batch: 3,
        batches: 10,
        learning_rate: 0.1,
    };
    recorded.profile(&Stop::new(StopReason::Reached, position, []))
}

/// Those of replicas are means, and what was begun later is no part of the measured steps.
#[test]
fn the_seconds_of_devices_are_those_of_their_phases() {
    let begin = Instant::now();
    let phase = |phase| PhaseTime {
        phase,
        seconds: 0.01,
        detail: String::new(),
        device_seconds: None,
    };
    let wanted = [StepPhase::Forward, StepPhase::Backward, StepPhase::Update];
    let mut phases = wanted.map(phase);
    let span = |work, at, seconds| DeviceSpan {
        work,
        begun: begin + milliseconds(at),
        seconds,
    };
    let stage = |name: &str| {
        let place = STAGES.iter().position(|it| *it == name);
        DeviceWork::Stage(place.expect("a stage"))
    };
    let work = [
        span(stage("forward"), 1, 0.2),
        span(stage("forward"), 1, 0.4),
        span(stage("loss"), 2, 0.1),
        span(stage("backward"), 3, 0.6),
        span(DeviceWork::Exchange, 4, 0.1),
        span(stage("forward"), 200, 1.0),
    ];
    timeline::add_device_work(&mut phases, &work, (begin, begin + milliseconds(100)), 2);
    let found = phases.map(|it| it.device_seconds);
    let near = |found: Option<f64>, wanted: f64| (found.unwrap_or(-1.0) - wanted).abs() < 1e-12;
    assert!(near(found[0], 0.35) && near(found[1], 0.3), "{found:?}");
    assert_eq!(found[2], None);
}

#[track_caller]
fn check(step: &Step, limit: Limit, share: f64, words: &[&str]) -> Profile {
    let profile = profile(step);
    let found = &profile.verdict;
    assert_eq!(found.limit, limit, "{profile}");
    assert!((found.share - share).abs() < 1e-6, "{found:?}");
    for part in words {
        assert!(found.sentence.contains(part), "{part}: {}", found.sentence);
    }
    let sum: f64 = profile.phases.iter().map(|it| it.seconds).sum();
    assert!((sum / profile.seconds - 1.0).abs() < 1e-9, "{profile}");
    profile
}

#[test]
fn the_phases_and_the_layer_have_the_seconds_that_were_planted() {
    let profile = check(&balanced(), Limit::Compute, 80.0 / 85.0, &["80 %"]);
    assert_eq!((profile.made, profile.steps), (3, 2));
    assert!((profile.first.expect("it does not count") - 1.084).abs() < 1e-9);
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    };
    near(profile.seconds, 0.085);
    near(profile.phase(StepPhase::Data), 0.001);
    near(profile.phase(StepPhase::Forward), 0.025);
    near(profile.phase(StepPhase::Backward), 0.05);
    near(profile.phase(StepPhase::Exchange), 0.001);
    near(profile.phase(StepPhase::Update), 0.005);
    // The end of the thread is the host's.
    near(profile.phase(StepPhase::Host), 0.003);
    let layer = profile.layer("layer").expect("it ran");
    near(layer.forward, 0.025);
    near(layer.backward, 0.05);
    // Three products of 1000 rows.
    near(layer.flops, 6e9);
}

#[test]
fn every_planted_cause_is_the_verdict() {
    let late = Step {
        data: 61,
        ..balanced()
    };
    check(&late, Limit::Input, 61.0 / 145.0, &["waits 42 %"]);
    let callback = Step {
        host: 62,
        ..balanced()
    };
    let words = ["43 %", "a callback"];
    check(&callback, Limit::Host, 63.0 / 145.0, &words);
    let exchange = Step {
        exchange: 61,
        passes: vec![[25, 50, 0]; 2],
        ..balanced()
    };
    check(
        &exchange,
        Limit::Communication,
        61.0 / 145.0,
        &["sync_every"],
    );
    let slow = Step {
        passes: vec![[25, 50, 0], [75, 150, 0]],
        ..balanced()
    };
    check(
        &slow,
        Limit::Imbalance,
        75.0 / 235.0,
        &["`cpu:1`", "its device is slower"],
    );
    let small = Step {
        rows: 10,
        ..balanced()
    };
    // 40.2 MB at 10 GB/s take 4 ms of 80.
    check(&small, Limit::Dispatch, 80.0 / 85.0, &["20 times"]);
    let memory = Step {
        data: 0,
        rows: 10,
        passes: vec![[2, 4, 0]],
        exchange: 0,
        update: 3,
        host: 0,
        ..balanced()
    };
    check(&memory, Limit::Memory, 0.9, &["4.47 GB/s", "10.0 GB/s"]);
}

#[test]
fn stages_of_a_pipeline_wait_for_each_other_or_for_one_that_is_slow() {
    let bubble = Step {
        passes: vec![[25, 50, 40]; 2],
        is_pipeline: true,
        ..balanced()
    };
    let words = ["2 stages with 3 micro-batches", "25 %"];
    let profile = check(&bubble, Limit::Bubble, 40.0 / 125.0, &words);
    assert!((profile.phase(StepPhase::Stages) - 0.04).abs() < 1e-9);
    // Both stages have the layer of this test: its seconds are added up.
    let layer = profile.layer("layer").expect("it ran");
    assert!((layer.forward - 0.05).abs() < 1e-9 && (layer.flops - 12e9).abs() < 1.0);
    assert!(
        profile
            .events
            .iter()
            .any(|it| it.lane_name == "stage 1, cpu:1")
    );
    let heavy = Step {
        passes: vec![[35, 70, 0], [10, 20, 75]],
        is_pipeline: true,
        ..balanced()
    };
    let words = ["`cpu:0`", "fewer layers"];
    check(&heavy, Limit::Imbalance, 37.5 / 115.0, &words);
}
