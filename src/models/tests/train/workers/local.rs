//! Local SGD by worker processes: the bits of logical devices in one process.

use super::*;

fn every(steps: i64) -> CompileArgs {
    CompileArgs::new()
        .optimizer(Adam::new(0.01).global_clipnorm(0.5))
        .sync_every(steps)
}

/// 13 examples in batches of 6, so that the last one has no example for three of four replicas; the epochs end between two
/// averages and are validated.
fn bert_apart(strategy: Strategy, policy: &str, accumulation: usize) -> Left {
    let (left, averages) = bert_that_averages(strategy, policy, accumulation, 4);
    assert!(averages > 0);
    left
}

#[test]
fn replicas_that_step_alone_have_the_bits_of_one_process() {
    for (policy, accumulation) in [("float32", 1), ("float32", 2), ("mixed_float16", 1)] {
        let expected = bert_apart(logical(4).strategy(), policy, accumulation);
        let found = bert_apart(workers(4).strategy(), policy, accumulation);
        assert_eq!(found, expected, "{policy}, {accumulation}");
    }
}

/// Every kind of update, frozen variables, and then the all-reduce again.
#[test]
fn the_updates_of_replicas_that_step_alone_are_those_of_one_process() {
    let train = make_regression(37, 5, 1).expect("data");
    let team = workers(3);
    let optimizers: [fn() -> CompileArgs; 4] = [
        || CompileArgs::new().optimizer(SGD::new(0.05)),
        || CompileArgs::new().optimizer(SGD::new(0.05).momentum(0.9).nesterov(true)),
        || CompileArgs::new().optimizer(Adam::new(0.01).amsgrad(true).clipnorm(0.1)),
        || every(1),
    ];
    for (index, args) in optimizers.iter().enumerate() {
        let run = |strategy: Strategy| {
            let model = sequential(&strategy, args());
            if index == 2 {
                model.freeze("dense.").expect("there are such");
            }
            let mut each = Vec::new();
            for every in [3, 1, 2] {
                let args = args().loss(MeanSquaredError).sync_every(every);
                model.compile(args).expect("valid arguments");
                let fit = FitArgs::new().epochs(2).batch_size(8).verbose(false);
                let history = model.fit(&train, fit).expect("it trains");
                each.push(left(&model, &history));
            }
            each
        };
        assert_eq!(run(team.strategy()), run(logical(3).strategy()), "{index}");
    }
}

fn begun(
    strategy: &impl AsStrategy,
    every_steps: i64,
    epochs: usize,
) -> (
    ModelOf<stratoscope_models::sequential::Layers>,
    stratoscope_models::Run,
) {
    let train = make_regression(64, 5, 2).expect("data");
    let model = sequential(strategy, every(every_steps));
    let fit = FitArgs::new().epochs(epochs).batch_size(8).verbose(false);
    let run = model.start(&train, fit).expect("it starts");
    (model, run)
}

pub(super) fn kill(team: &MultiWorkerMirroredStrategy, worker: usize) {
    let process = team.process(worker).expect("a worker");
    signal(process.expect("it is there"), libc::SIGKILL);
}

/// Workers are killed between two averages, one after the other, and at last all of them: the steps since the last time that
/// the chief had everything are made again, with the same bits. Nobody comes in place of the lost.
#[test]
fn a_worker_that_is_lost_between_two_averages_loses_nothing() {
    let drive = |strategy: &dyn Fn() -> Strategy, disturb: &dyn Fn(usize)| {
        let (model, run) = begun(&strategy(), 7, 5);
        let mut losses = Vec::new();
        // Killed at a pause, where the chief has everything; `replicas_that_step_alone_are_killed_and_replaced` kills at
        // any moment.
        for (call, steps) in [5, 13, 3, 10].into_iter().enumerate() {
            disturb(call);
            run.step(steps).expect("steps");
            let recent = run.report().expect("a report").recent;
            losses.extend(recent.iter().map(|it| (it.step, it.loss.to_bits())));
        }
        let history = run.finish().expect("it ends");
        (losses, left(&model, &history))
    };
    let expected = drive(&|| logical(3).strategy(), &|_| ());
    let team = workers(3).replace_lost(false);
    let (found, notices) = heard(&["SC0808"], || {
        drive(&|| team.strategy(), &|call| match call {
            1 => kill(&team, 1),
            2 => kill(&team, 2),
            _ => (),
        })
    });
    assert_eq!(codes(&notices, "SC0808"), 2, "{notices:?}");
    assert_eq!(found, expected);
}

/// Workers are killed while steps are made, and others come.
#[test]
fn replicas_that_step_alone_are_killed_and_replaced() {
    let drive = |strategy: Strategy, steps: Option<u64>, disturbs: Option<&dyn Fn() -> bool>| {
        let (model, run) = begun(&strategy, 50, 20_000);
        let mut until = None;
        match disturbs {
            None => drop(run.step(steps.expect("a number")).expect("steps")),
            Some(is_over) => {
                while until.is_none_or(|until| Instant::now() < until) {
                    run.step(120).expect("steps");
                    if until.is_none() && is_over() {
                        until = Some(Instant::now() + Duration::from_secs(4));
                    }
                }
            }
        }
        let recent = run.report().expect("a report").recent;
        let losses: Vec<_> = recent
            .iter()
            .map(|it| (it.step, it.loss.to_bits()))
            .collect();
        (losses, weights(&model))
    };
    let team = workers(4);
    let disturbs = std::thread::spawn({
        let team = team.clone();
        move || disturb(&team, 3)
    });
    let is_over = || disturbs.is_finished();
    let (found, notices) = heard(&["SC0808", "SC0812"], || {
        drive(team.strategy(), None, Some(&is_over))
    });
    disturbs.join().expect("nothing panics");
    let steps = found.0.last().expect("there were steps").0;
    let expected = drive(logical(4).strategy(), Some(steps), None);
    println!("{steps} steps");
    assert_eq!(found, expected);
    assert_eq!(codes(&notices, "SC0808"), 3, "{notices:?}");
    assert!(codes(&notices, "SC0812") >= 1, "{notices:?}");
}

/// What looks at a run between two averages sees the replicas of the workers; what changes it reaches them.
#[test]
fn a_run_between_two_averages_is_rewound_forked_and_looked_at() {
    let drive = |strategy: Strategy| {
        let (model, run) = begun(&strategy, 3, 3);
        run.step(4).expect("steps");
        let fork = run.fork().expect("a fork");
        fork.set_learning_rate(stratoscope_models::pin(0.5))
            .expect("a rate");
        fork.step(4).expect("steps");
        run.step(4).expect("steps");
        let table = run.gradients().expect("it looks").to_string();
        let words: Vec<&str> = table.split_whitespace().collect();
        let gradients = words.join(" ").replace("worker:", "cpu:");
        fork.step(1).expect("a step");
        run.rewind(2).expect("it turns back");
        run.step(7).expect("steps");
        let between = weights(&model);
        let forked = {
            let model = fork.model();
            let history = fork.finish().expect("it ends");
            left(&model, &history)
        };
        let history = run.finish().expect("it ends");
        (left(&model, &history), forked, gradients, between)
    };
    let expected = drive(logical(3).strategy());
    assert_eq!(drive(workers(3).strategy()), expected);
}

/// With too few workers the run stops between two steps with everything that the lost ones had.
#[test]
fn a_run_that_steps_alone_stops_with_too_few_workers_and_goes_on() {
    let expected = {
        let (model, run) = begun(&logical(2), 9, 3);
        let history = run.finish().expect("it ends");
        left(&model, &history)
    };
    let team = workers(2).replace_lost(false).min_workers(2).wait(0.3);
    let (model, run) = begun(&team, 9, 3);
    run.step(5).expect("five steps");
    kill(&team, 1);
    let problem = (0..100).find_map(|_| run.step(1).err());
    let problem = problem.expect("the worker is missed");
    assert_eq!(problem.code, "SC0809", "{problem}");
    let _team = team.min_workers(1);
    let history = run.finish().expect("it goes on with one");
    assert_eq!(left(&model, &history), expected);
}

/// Averages send far less than an all-reduce at every step, and the workers are equal at the end.
#[test]
fn averages_send_less_and_leave_the_copies_equal() {
    let train = make_regression(64, 5, 2).expect("data");
    let sent = |steps: i64| {
        let team = workers(2);
        let model = sequential(&team, every(steps));
        let fit = FitArgs::new().batch_size(8).verbose(false);
        let history = model.fit(&train, fit).expect("it trains");
        let report = model.placement().expect("readable");
        assert_eq!(report.variables.len(), 4);
        for row in &report.variables {
            assert_eq!(row.copies.len(), 2, "{}", report.to_plain());
            assert!(row.is_equal(), "{}", report.to_plain());
        }
        assert_eq!(history.counters.parameter_averages, u64::from(steps > 1));
        let status = team.status();
        let members = &status.tally().members;
        assert!(members.iter().all(|it| it.steps == 8), "{status}");
        members.iter().map(|it| it.bytes).collect::<Vec<u64>>()
    };
    // 5 · 16 + 16 + 16 + 1 numbers: gradients of eight steps, or weights once; and with those what Adam keeps of the
    // worker.
    let numbers = 4 * (5 * 16 + 16 + 16 + 1);
    assert_eq!(sent(1), [8 * numbers, 8 * numbers]);
    assert_eq!(sent(8), [numbers, numbers + 2 * numbers + 8]);
}
