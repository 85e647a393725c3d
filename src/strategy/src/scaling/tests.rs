//! The model beside a simulation of the chain, and what a prediction says of its numbers.

use std::collections::VecDeque;
use std::time::Duration;

use stratoscope_workers::{Done, Exchanges};

use super::cost::{Examples, Link, hops};
use super::*;

/// What a member sends next: a piece that is not complete, or one that is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    Partial,
    Total,
}

/// Sends all pieces over the chain as `Chain::all_reduce` does, one at a time on each link, and returns the end. A piece
/// needs `turn` on a link and arrives `latency` later.
fn simulated(members: usize, pieces: usize, turn: f64, latency: f64) -> f64 {
    // By link: what waits, with the time at which it came.
    let mut waiting: Vec<VecDeque<(f64, Piece)>> = vec![VecDeque::new(); members];
    let mut unbegun = pieces;
    let mut free = vec![0.0; members];
    let mut end: f64 = 0.0;
    loop {
        // The link that sends next; the first one begins a piece of its own where no sum is there to be passed on.
        let ready = |link: usize| {
            let front = waiting[link].front().map(|(came, _)| came.max(free[link]));
            match (link, unbegun) {
                (0, 1..) => Some(free[0]),
                _ => front,
            }
        };
        let next = (0..members).filter_map(|link| Some((ready(link)?, link)));
        let Some((at, link)) = next.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return end;
        };
        let is_there = waiting[link].front().is_some_and(|(came, _)| *came <= at);
        let piece = match is_there {
            true => waiting[link].pop_front().expect("it is there").1,
            false => {
                unbegun -= 1;
                Piece::Partial
            }
        };
        free[link] = at + turn;
        let came = free[link] + latency;
        let to = (link + 1) % members;
        let on = match piece {
            Piece::Partial if to + 1 < members => Some(Piece::Partial),
            Piece::Partial => Some(Piece::Total),
            // The sum has come from the last member around to the one before it.
            Piece::Total => ((to + 1) % members != members - 1).then_some(Piece::Total),
        };
        match on {
            Some(piece) => waiting[to].push_back((came, piece)),
            None => end = end.max(came),
        }
    }
}

/// The formula is exact where pieces never wait for each other, and 12 % below the simulation at most.
#[test]
fn the_formula_of_the_chain_is_what_a_simulation_finds() {
    for members in [2, 3, 4, 8, 33] {
        for pieces in [1, 3, 20, 347] {
            for latency in [0.0, 0.02] {
                let found = simulated(members, pieces, 1.0, latency);
                let turns = super::cost::chain_turns(members, pieces as f64);
                let model = turns + hops(members) * latency;
                let apart = (model / found - 1.0).abs();
                assert!(apart < 0.13, "{members} × {pieces}: {model} for {found}");
            }
        }
    }
}

fn model() -> CostModel {
    CostModel {
        seconds_per_example: 0.01,
        seconds_per_update: 0.02,
        examples: Examples::EachWorker(8.0),
        gradient_bytes: 91e6,
        piece_bytes: (4 * PIECE) as f64,
        exchanges_per_step: 1.0,
        link: Link {
            bandwidth: 25e6,
            latency: 40e-6,
        },
        cpu_per_byte: 1e-9,
        seconds_per_worker: 0.003,
        cores: None,
        machine: None,
    }
}

fn facts() -> Facts {
    Facts {
        piece_bytes: (4 * PIECE) as f64,
        patience: 3.0,
        launched: false,
    }
}

/// What a run of ten steps counts that takes as long as the model says.
fn tally(model: &CostModel, workers: usize) -> Tally {
    let step = model.step(workers, ScalingPattern::Chain);
    let time = |seconds: f64| Duration::from_secs_f64(10.0 * seconds);
    let passed = if workers == 2 { 1.0 } else { 1.5 };
    let mut tally = Tally {
        wall: time(step.seconds()),
        exchanges: Exchanges {
            count: 10,
            wall: time(step.exchange),
            processor: time(passed * model.cpu_per_byte * model.gradient_bytes),
            bytes: 910_000_000,
            members: workers,
        },
        updating: time(model.seconds_per_update * cost::sharing(workers, model.cores)),
        hop: Some(Duration::from_secs_f64(model.link.latency)),
        ..Tally::default()
    };
    for member in 0..workers {
        *tally.of(member) = Done {
            steps: 10,
            examples: 80,
            busy: time(step.computing),
            bytes: 0,
        };
    }
    tally
}

#[test]
fn a_run_on_some_workers_says_how_others_would_do() {
    for cores in [None, Some(2)] {
        let model = CostModel { cores, ..model() };
        for fitted in [2, 4] {
            let tally = tally(&model, fitted);
            let options =
                cores.map_or_else(ScalingOptions::new, |it| ScalingOptions::new().cores(it));
            let found =
                predict_from(&tally, (cores, facts()), 16, &options).expect("all is measured");
            for workers in [1, 2, 4, 8, 16] {
                let expected = model.step(workers, ScalingPattern::Chain).seconds();
                let found = found.at(workers).expect("a row").step;
                assert!(
                    (found / expected - 1.0).abs() < 1e-3,
                    "{cores:?}, {fitted} → {workers}: {found}, {expected}"
                );
            }
        }
    }
}

fn source(prediction: &ScalingPrediction, name: &str) -> ScalingSource {
    let found = prediction.parameters().iter().find(|it| it.name == name);
    found.expect("it is listed").source
}

/// What processes of one machine have measured is not taken for a network.
#[test]
fn every_number_says_where_it_is_from() {
    let tally = tally(
        &CostModel {
            cores: Some(2),
            ..model()
        },
        4,
    );
    let here = |options: &ScalingOptions| {
        predict_from(&tally, (Some(2), facts()), 1024, options).expect("it is known")
    };
    let found = here(&ScalingOptions::new());
    assert_eq!(source(&found, "bandwidth"), ScalingSource::Assumed);
    assert_eq!(
        source(&found, "seconds per example"),
        ScalingSource::Measured
    );
    let text = found.to_plain();
    assert!(
        text.contains("which shared 2 cores: its seconds are divided by 2"),
        "{text}"
    );
    assert!(text.contains("200 Mb/s with 40 µs"), "{text}");
    let found = here(&ScalingOptions::new().bandwidth(10e9).cores(4));
    assert_eq!(source(&found, "bandwidth"), ScalingSource::Given);
    assert_eq!(source(&found, "latency"), ScalingSource::Measured);
    let several = predict_from(&tally, (None, facts()), 8, &ScalingOptions::new());
    assert_eq!(
        source(&several.expect("known"), "bandwidth"),
        ScalingSource::Measured
    );
}

#[test]
fn a_prediction_without_a_run_needs_what_nobody_can_assume() {
    let nothing = Tally::default();
    let predicted = |workers, options: &ScalingOptions| {
        predict_from(&nothing, (Some(2), facts()), workers, options)
    };
    let problem = predicted(8, &ScalingOptions::new()).expect_err("no run");
    assert_eq!(problem.code, "SC0915");
    assert!(
        problem
            .message
            .starts_with("`seconds_per_example` is not known"),
        "{problem}"
    );
    let known = ScalingOptions::new()
        .seconds_per_example(0.02)
        .gradient_bytes(91_000_000);
    assert!(predicted(0, &known).is_err());
    for wrong in [
        known.clone().bandwidth(0.0),
        known.clone().latency(f64::NAN),
        known.clone().examples_per_worker(4).global_batch_size(8),
        known.clone().cores(0),
    ] {
        assert!(predicted(8, &wrong).is_err(), "{wrong:?}");
    }
    let found = predicted(1000, &known).expect("known");
    let counts: Vec<usize> = found.rows().iter().map(|row| row.workers).collect();
    assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
    assert!(
        found
            .to_plain()
            .contains("No run of this strategy was measured")
    );
}

/// A global batch that stays leaves ever less to each worker; a batch that grows does not.
#[test]
fn efficiency_falls_with_the_workers() {
    let known = ScalingOptions::new()
        .seconds_per_example(0.02)
        .gradient_bytes(91_000_000);
    let of = |options: &ScalingOptions| {
        predict_from(&Tally::default(), (None, facts()), 1024, options).expect("known")
    };
    let (weak, strong) = (of(&known), of(&known.clone().global_batch_size(1024)));
    for rows in [weak.rows(), strong.rows()] {
        assert_eq!(rows[0].efficiency, 1.0);
        assert!(
            rows.windows(2)
                .all(|two| two[1].efficiency < two[0].efficiency)
        );
        assert!(rows.iter().all(|row| (0.0..1.0).contains(&row.useful)));
    }
    assert!(strong.at(1024).expect("a row").efficiency < weak.at(1024).expect("a row").efficiency);
    // A tree that sends whole buffers is slower than a chain of pieces.
    let of_pattern = |pattern| weak.efficiency_of(pattern, 64).expect("a point");
    assert!(of_pattern(ScalingPattern::Tree) < of_pattern(ScalingPattern::Chain));
    assert_eq!(weak.efficiency_of(ScalingPattern::Hierarchical, 64), None);
    let machines = of(&known.clone().workers_per_machine(8));
    let machines = machines.efficiency_of(ScalingPattern::Hierarchical, 1024);
    assert!(
        machines.expect("a point")
            > weak
                .efficiency_of(ScalingPattern::Ring, 1024)
                .expect("a point")
    );
    // Where any loss ends a run, more workers need more snapshots.
    let every = |ends| {
        of(&known.clone().any_loss_ends_run(ends))
            .at(1024)
            .expect("a row")
            .snapshot_every
    };
    assert!(every(true) < every(false) / 10.0);
}

#[test]
fn it_is_a_page_and_a_text() {
    let known = ScalingOptions::new()
        .seconds_per_example(0.02)
        .gradient_bytes(91_000_000);
    let found = predict_from(&Tally::default(), (None, facts()), 1024, &known).expect("known");
    let (html, text) = (found.to_html(), found.to_plain());
    assert!(html.contains("<img") && html.contains("predicted efficiency up to 1024 workers"));
    for shown in [
        "a prediction: nothing of it was measured",
        "snapshot every",
        "1 Gb/s  assumed",
        "20 ms    given",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(html.contains("<td") && !html.contains("<svg"));
}
