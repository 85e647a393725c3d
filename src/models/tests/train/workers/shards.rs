//! Which examples each worker sees: `AutoShardPolicy`.

use stratoscope_data::AutoShardPolicy;
use stratoscope_models::sequential::Layers;

use super::local::kill;
use super::*;

fn run(strategy: Strategy, data: &Dataset, batch_size: usize) -> Result<Left, Box<Diagnostic>> {
    let args = CompileArgs::new().optimizer(SGD::new(0.05));
    let model = sequential(&strategy, args);
    let fit = FitArgs::new()
        .batch_size(batch_size)
        .epochs(2)
        .shuffle(false)
        .verbose(false);
    let history = model.fit(data, fit)?;
    Ok(left(&model, &history))
}

fn without_dropout(strategy: &Strategy, args: CompileArgs) -> ModelOf<Layers> {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = Sequential([Dense(3).input_shape(5), Dense(1)]).expect("layers");
    model.compile(args.loss(MeanSquaredError)).expect("valid");
    model
}

/// Two workers with the same examples compute the same gradients, whose mean is that of one of them.
#[test]
fn with_off_every_worker_sees_all_examples() {
    let data = make_regression(16, 5, 1).expect("numbers");
    let strategy = workers(2);
    let plain = |strategy: &dyn Fn() -> Strategy, data: &Dataset, batch: usize| {
        let model = without_dropout(&strategy(), CompileArgs::new().optimizer(SGD::new(0.05)));
        let fit = FitArgs::new().batch_size(batch).shuffle(false);
        let history = model.fit(data, fit.verbose(false)).expect("it trains");
        let losses = history.steps.iter().map(|it| it.loss);
        losses.collect::<Vec<f64>>()
    };
    let off = data.clone().auto_shard(AutoShardPolicy::Off);
    let (each, notices) = heard(&["SC0813"], || plain(&|| strategy.strategy(), &off, 8));
    assert_eq!(codes(&notices, "SC0813"), 1, "{notices:?}");
    let alone = logical(1);
    let expected = plain(&|| alone.strategy(), &data, 4);
    assert_eq!((each.len(), expected.len()), (4, 4));
    for (found, expected) in each.iter().zip(&expected) {
        assert!(
            (found - expected).abs() < 1e-5 * expected.abs(),
            "{each:?}, {expected:?}"
        );
    }
    // Replicas of one process are no workers.
    let under = |data: &Dataset| run(logical(2).strategy(), data, 8).expect("it trains");
    assert_eq!(under(&off), under(&data));
    // Divided, an epoch has half of the steps.
    let divided = data.clone().auto_shard(AutoShardPolicy::Data);
    assert_eq!(plain(&|| strategy.strategy(), &divided, 8).len(), 2);
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let strategy = workers(2);
    let data = make_regression(16, 5, 1).expect("numbers");
    let refused = |policy, batch_size| {
        let data = data.clone().auto_shard(policy);
        run(strategy.strategy(), &data, batch_size)
            .expect_err("refused")
            .code
    };
    assert_eq!(refused(AutoShardPolicy::File, 8), "SC0803");
    assert_eq!(refused(AutoShardPolicy::Off, 5), "SC0103");
    let refused = |data: Dataset| {
        let data = data.auto_shard(AutoShardPolicy::File);
        let problem = run(strategy.strategy(), &data, 4).expect_err("refused");
        assert_eq!(problem.code, "SC0803");
        problem.message.clone()
    };
    assert!(refused(in_files(&data, [16])).contains("1 file over 2 workers"));
    let both = in_files(&data.take(8), [8]).concatenate(&data.skip(8));
    assert!(refused(both.expect("of one kind")).contains("8 examples from no file"));
}

/// The data as if it had been read from files of so many rows.
fn in_files<const N: usize>(data: &Dataset, rows: [usize; N]) -> Dataset {
    let names = rows.iter().enumerate();
    let mut names = names.flat_map(|(file, &rows)| {
        let name: Arc<str> = format!("part-{file}.csv").into();
        std::iter::repeat_n(name, rows)
    });
    let mut data = data.clone();
    for example in &mut data.examples {
        example.file = names.next();
    }
    data
}

/// Worker 0 has the first and the third file, worker 1 the second one: as if the rows had been written in this order.
#[test]
fn with_file_a_worker_sees_the_rows_of_its_files() {
    let data = make_regression(16, 5, 1).expect("numbers");
    let by_file = in_files(&data, [5, 8, 3]).auto_shard(AutoShardPolicy::File);
    let (own, other) = ([0, 1, 2, 3, 4, 13, 14, 15], [5, 6, 7, 8, 9, 10, 11, 12]);
    let batches = own.chunks(2).zip(other.chunks(2));
    let rows: Vec<usize> = batches
        .flat_map(|(own, other)| [own, other].concat())
        .collect();
    let arranged = rows.iter().map(|&row| data.examples[row].clone());
    let arranged = Dataset::from_examples(arranged, Vec::new(), "rows in memory");
    let found = run(workers(2).strategy(), &by_file, 4).expect("it trains");
    let expected = run(logical(2).strategy(), &arranged, 4).expect("it trains");
    assert_eq!(found, expected);
    // Replicas of one process are no workers.
    let under = |data: &Dataset| run(logical(2).strategy(), data, 4).expect("it trains");
    assert_eq!(under(&by_file), under(&data));
    assert_ne!(under(&by_file), found);
}

/// The losses of steps are those of one device with the same examples in a batch, whoever computes them and whoever dies.
#[test]
fn a_worker_whose_files_end_leaves_the_batches_to_the_others() {
    let data = make_regression(18, 5, 1).expect("numbers");
    let by_file = in_files(&data, [14, 4]).auto_shard(AutoShardPolicy::File);
    let args = || CompileArgs::new().optimizer(SGD::new(0.05));
    let fit = || {
        FitArgs::new()
            .batch_size(4)
            .epochs(3)
            .shuffle(false)
            .verbose(false)
    };
    let rows = [0, 1, 14, 15, 2, 3, 16, 17].into_iter().chain(4..14);
    let arranged = rows.map(|row| data.examples[row].clone());
    let arranged = Dataset::from_examples(arranged, Vec::new(), "rows in memory");
    let alone = without_dropout(&logical(1).strategy(), args());
    let alone = alone.fit(&arranged, fit()).expect("it trains");
    let mut all = Vec::new();
    for accumulation in [1, 3] {
        for killed in [None, Some(7)] {
            let strategy = workers(2);
            let args = args().gradient_accumulation_steps(accumulation);
            let model = without_dropout(&strategy.strategy(), args);
            let run = model.start(&by_file, fit()).expect("it starts");
            if let Some(steps) = killed {
                let steps = steps.min(5 * 3 / accumulation - 2);
                run.step(steps).expect("it stands there");
                kill(&strategy, 1);
            }
            let (history, _) = heard(&["SC0808"], || run.finish().expect("it ends"));
            assert_eq!(history.steps.len(), (5_usize).div_ceil(accumulation) * 3);
            if accumulation == 1 {
                for (found, expected) in history.steps.iter().zip(&alone.steps) {
                    assert!((found.loss - expected.loss).abs() < 1e-5 * expected.loss.abs());
                }
            }
            all.push(left(&model, &history));
        }
    }
    assert_eq!(all[0].weights, all[1].weights, "whoever dies");
    assert_eq!(all[2].weights, all[3].weights, "with accumulation, too");
}

#[test]
fn examples_of_files_are_left_out_and_replicas_step_alone() {
    let data = make_regression(18, 5, 1).expect("numbers");
    let by_file = in_files(&data, [14, 4]).auto_shard(AutoShardPolicy::File);
    let strategy = workers(2);
    for sync_every in [1, 4] {
        let args = CompileArgs::new().optimizer(SGD::new(0.05));
        let model = sequential(&strategy.strategy(), args.sync_every(sync_every));
        let fit = FitArgs::new()
            .batch_size(4)
            .epochs(2)
            .seed(5)
            .verbose(false);
        let run = model.start(&by_file, fit).expect("it starts");
        run.step(2).expect("two steps");
        run.drop_examples([0, 1, 14, 15]).expect("others are left");
        let history = run.finish().expect("it ends");
        // In the second epoch 12 and 2 examples are left.
        assert!(history.steps.iter().all(|step| step.loss.is_finite()));
        assert_eq!(history.epochs.len(), 2);
    }
}
