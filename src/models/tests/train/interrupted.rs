//! An interrupt ends a run between two steps, and the run goes on as if nothing had been.

use stratoscope_models::{AdamW, FitArgs, interrupt};

use crate::support::{load, plain_args, sentences, tiny_bert, weights};

#[test]
fn a_run_goes_on_where_it_stopped() {
    let data = sentences(20);
    let args = || {
        FitArgs::new()
            .epochs(3)
            .batch_size(4)
            .seed(3)
            .verbose(false)
    };
    let compile = || {
        let model = load(&tiny_bert(0.1));
        let optimizer = AdamW::new(stratoscope_models::warmup_linear(1e-3, 0.2));
        model
            .compile(plain_args().optimizer(optimizer))
            .expect("valid arguments");
        model
    };
    let whole = compile();
    let expected = whole.fit(&data, args()).expect("it trains");
    assert!(!expected.interrupted);

    let model = compile();
    interrupt::request();
    let first = model.fit(&data, args()).expect("it trains");
    assert!(first.interrupted);
    assert_eq!((first.counters.optimizer_steps, first.epochs.len()), (1, 0));
    assert!(first.to_plain().contains("resume = true"), "{first}");
    interrupt::request();
    let second = model.fit(&data, args().resume(true)).expect("it goes on");
    assert_eq!(
        (second.interrupted, second.counters.optimizer_steps),
        (true, 2)
    );

    let other = model
        .fit(&data, args().batch_size(5).resume(true))
        .expect_err("another run");
    assert_eq!(other.code, "SC0103");
    // As many examples, and others.
    let other = model
        .fit(&data.shuffled(1), args().resume(true))
        .expect_err("their order is another");
    assert_eq!(other.code, "SC0103");
    // The refusals have not forgotten the run.
    let rest = model.fit(&data, args().resume(true)).expect("it goes on");
    assert!(!rest.interrupted);
    assert_eq!(rest.counters, expected.counters);
    let losses = |history: &stratoscope_models::History| {
        history
            .executions
            .iter()
            .map(|record| record.loss)
            .collect::<Vec<_>>()
    };
    assert_eq!(losses(&rest), losses(&expected));
    assert_eq!(weights(&model), weights(&whole), "bit for bit");
}

#[test]
fn without_a_run_to_go_on_with_it_begins() {
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let args = FitArgs::new().batch_size(4).resume(true).verbose(false);
    let history = model.fit(&sentences(8), args).expect("it trains");
    assert_eq!(history.counters.optimizer_steps, 2);
}
