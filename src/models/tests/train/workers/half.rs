//! Gradients in bfloat16 between workers, and what is said of the bytes.

use super::*;

fn trained(team: &MultiWorkerMirroredStrategy) -> (Left, Vec<u64>) {
    let train = make_regression(64, 5, 2).expect("data");
    let model = sequential(team, CompileArgs::new().optimizer(Adam::new(0.01)));
    let fit = FitArgs::new().epochs(3).batch_size(8).verbose(false);
    let history = model.fit(&train, fit).expect("it trains");
    let report = model.placement().expect("readable");
    for row in &report.variables {
        assert_eq!(row.copies.len(), 3, "{}", report.to_plain());
        assert!(row.is_equal(), "{}", report.to_plain());
    }
    let status = team.status();
    let sent = status.tally().members.iter().map(|it| it.bytes);
    (left(&model, &history), sent.collect())
}

/// Half of the bytes, the same weights at all workers, nearly those of float32; and the same bits whoever is there.
#[test]
fn gradients_in_bfloat16_halve_the_bytes() {
    let (whole, sent) = trained(&workers(3));
    let team = workers(3).gradient_dtype("bfloat16").expect("known");
    let (half, halved) = trained(&team);
    let twice: Vec<u64> = halved.iter().map(|it| 2 * it).collect();
    assert_eq!(twice, sent);
    assert_ne!(half.losses, whole.losses);
    for ((step, half), (_, whole)) in half.losses.iter().zip(&whole.losses) {
        let (half, whole) = (f64::from_bits(*half), f64::from_bits(*whole));
        assert!(
            (half - whole).abs() <= 0.02 * whole.abs(),
            "{step}: {half} {whole}"
        );
    }
    // With a worker less: the chief or the other one computes its replica, and rounds as if it were there.
    let drive = |team: MultiWorkerMirroredStrategy, killed: bool| {
        let train = make_regression(64, 5, 2).expect("data");
        let model = sequential(&team, CompileArgs::new().optimizer(Adam::new(0.01)));
        let fit = FitArgs::new().epochs(3).batch_size(8).verbose(false);
        let run = model.start(&train, fit).expect("it starts");
        run.step(3).expect("steps");
        if killed {
            let process = team.process(1).expect("a worker").expect("it is there");
            signal(process, libc::SIGKILL);
        }
        let history = run.finish().expect("it ends");
        left(&model, &history)
    };
    let team = || {
        let team = workers(3).gradient_dtype("bfloat16").expect("known");
        team.replace_lost(false)
    };
    let (found, notices) = heard(&["SC0808"], || drive(team(), true));
    assert_eq!(codes(&notices, "SC0808"), 1, "{notices:?}");
    assert_eq!(found, drive(team(), false));
}

#[test]
fn a_receipt_tells_the_bytes_of_a_step() {
    let sent = |team: &MultiWorkerMirroredStrategy, every: i64| {
        let _scope = scope::enter(team).expect("no scope is active");
        let layers = [Dense(1000).input_shape(999), Dense(1)];
        let model = Sequential(layers).expect("layers");
        let args = CompileArgs::new().optimizer(Adam::new(0.01));
        let args = args.loss(MeanSquaredError).sync_every(every);
        let receipt = model.compile(args).expect("valid arguments");
        let lines = receipt.settings.iter().map(|(_, value)| value.clone());
        let found: Vec<String> = lines.filter(|it| it.starts_with("each sends")).collect();
        found.join("; ")
    };
    // 1,001,001 numbers.
    let team = workers(2);
    assert_eq!(
        sent(&team, 1),
        "each sends up to 3.82 MiB a step, 32.0 ms at 1 Gb/s"
    );
    // The weights, and two moments of the other worker.
    assert_eq!(
        sent(&team, 8),
        "each sends up to 11.5 MiB every 8 steps, 96.1 ms at 1 Gb/s"
    );
    let team = team.gradient_dtype("bfloat16").expect("known");
    assert_eq!(
        sent(&team, 1),
        "each sends up to 1.91 MiB a step, 16.0 ms at 1 Gb/s"
    );
    let problem = team.gradient_dtype("float16").expect_err("none of them");
    assert_eq!(problem.code, "SC0103", "{problem}");
    let text = format!("{problem:?}");
    assert!(
        text.contains("bfloat16") && text.contains("would become 0"),
        "{text}"
    );
}

/// Counts of metrics are those of the chief, and shown as such.
#[test]
fn counts_of_metrics_are_those_of_the_chief() {
    let team = workers(2);
    let model = compiled(
        Some(team.strategy()),
        "float32",
        plain_args().metrics([stratoscope_models::accuracy()]),
    );
    let fit = FitArgs::new().batch_size(6).verbose(false);
    model.fit(&sentences(12), fit).expect("it trains");
    let report = model.placement().expect("readable");
    let counts = report
        .variables
        .iter()
        .find(|row| row.name.starts_with("metrics."));
    let counts = counts.expect("there are counts");
    let devices: Vec<usize> = counts.copies.iter().map(|it| it.device).collect();
    assert_eq!(devices, [0], "{}", report.to_plain());
    assert!(counts.why.contains("of the chief"), "{}", counts.why);
}
