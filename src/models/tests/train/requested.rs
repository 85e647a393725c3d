//! Requests from outside: the same as the calls of a cell, between two steps, and each is in the history.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use stratoscope_models::events::{Observer, RunCommand};
use stratoscope_models::requests::{Answer, Request};
use stratoscope_models::{
    AlertKind, Callbacks, Counters, FitArgs, FitStarted, History, Run, RunContext, breakpoints,
    on_alert, pin,
};

use crate::support::{self, load, mirrored, plain_args, sentences, tiny_bert};

fn request(action: &str, arguments: Value) -> Request {
    let arguments: Map<String, Value> = arguments.as_object().expect("an object").clone();
    Request {
        from: "comm".to_owned(),
        action: action.to_owned(),
        arguments,
    }
}

fn args() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).epochs(1)
}

/// Asks for these after the steps with these numbers.
struct Others {
    asks: Vec<(usize, Request)>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    steps: usize,
    /// How many requests were made.
    made: usize,
    answers: Vec<Value>,
    /// What is planned, after each change of it.
    planned: Vec<Counters>,
    /// Of each run or call that began, whether it shows nothing.
    are_quiet: Vec<bool>,
}

impl Observer for Others {
    fn fit_started(&self, event: &FitStarted) {
        let mut seen = self.seen.lock().expect("nobody panics here");
        seen.are_quiet.push(event.is_quiet);
    }

    fn replanned(&self, event: &FitStarted) {
        let mut seen = self.seen.lock().expect("nobody panics here");
        seen.planned.push(event.planned);
    }

    fn command(&self, _run: u64) -> Option<RunCommand> {
        let mut seen = self.seen.lock().expect("nobody panics here");
        let number = seen.made;
        match self.asks.get(number) {
            Some((step, request)) if *step == seen.steps + 1 => {
                seen.made += 1;
                let (number, request) = (number as u64, request.clone());
                Some(RunCommand::Request { number, request })
            }
            _ => {
                seen.steps += 1;
                None
            }
        }
    }

    fn answered(&self, request: u64, answer: &Answer) {
        let mut seen = self.seen.lock().expect("nobody panics here");
        assert_eq!(request as usize, seen.answers.len());
        seen.answers.push(answer.to_json());
    }
}

/// Others who ask for these, and the context in which they do.
fn asking(asks: Vec<(usize, Request)>) -> (Arc<Others>, RunContext) {
    let others = Arc::new(Others {
        asks,
        seen: Mutex::default(),
    });
    let context = RunContext::new();
    context.observe(others.clone());
    (others, context)
}

impl Others {
    /// The codes of the answers; `ok` for what was done.
    fn codes(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("nobody panics here");
        let codes = seen.answers.iter().map(|it| &it["error"]["code"]);
        codes
            .map(|it| it.as_str().unwrap_or("ok").to_owned())
            .collect()
    }
}

fn losses_of(history: &History) -> Vec<f64> {
    history.steps.iter().map(|it| it.loss).collect()
}

/// The losses of a run that a cell changes after three steps.
fn changed_by_a_cell(change: impl FnOnce(&Run)) -> Vec<f64> {
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let run = model.start(&sentences(40), args()).expect("it starts");
    run.step(3).expect("three steps");
    change(&run);
    let history = run.finish().expect("the rest");
    history.steps.iter().map(|it| it.loss).collect()
}

/// The losses of a run whose rate is pinned after three steps by a cell.
fn by_a_cell() -> Vec<f64> {
    changed_by_a_cell(|run| {
        run.set_learning_rate(pin(1e-3)).expect("a rate");
    })
}

#[test]
fn variables_are_frozen_by_a_request_during_fit() {
    let (others, context) = asking(vec![
        (3, request("freeze", json!({"prefix": "none"}))),
        (3, request("freeze", json!({"prefix": "bert."}))),
    ]);
    let entered = context.enter();
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let history = model.fit(&sentences(40), args()).expect("it trains");
    // The runs below are observed too.
    let seen = std::mem::take(&mut *others.seen.lock().expect("nobody panics here"));
    assert_eq!(seen.answers[0]["error"]["code"], "SC0103");
    assert_eq!(seen.answers[1]["ok"], true, "{}", seen.answers[1]);
    drop(entered);
    let losses: Vec<f64> = history.steps.iter().map(|it| it.loss).collect();
    let frozen = changed_by_a_cell(|run| {
        run.freeze("bert.")
            .expect("there is something left to train");
    });
    assert_eq!(losses, frozen);
    assert_ne!(losses, changed_by_a_cell(|_| {}));
    assert_eq!(history.edits[0].what, "`bert.` frozen");
}

#[test]
fn a_request_during_fit_is_the_change_of_a_cell() {
    let (others, context) = asking(vec![
        (3, request("set_learning_rate", json!({"rate": 1e-3}))),
        (3, request("set_learning_rate", json!({"rate": "high"}))),
        (3, request("report", json!({}))),
        (4, request("rewind", json!({"step": 1}))),
        (4, request("continue", json!({}))),
    ]);
    let _entered = context.enter();
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let history = model.fit(&sentences(40), args()).expect("it trains");
    let losses: Vec<f64> = history.steps.iter().map(|it| it.loss).collect();
    assert_eq!(losses, by_a_cell());
    let codes = others.codes();
    assert_eq!(codes, ["ok", "bad_argument", "ok", "not_now", "not_now"]);
    let answers = &others.seen.lock().expect("nobody panics here").answers;
    assert_eq!(answers[0]["result"]["step"], 3);
    let report = &answers[2]["result"];
    assert_eq!(
        (
            &report["position"]["step"],
            &report["settings"]["batch_size"]
        ),
        (&json!(3), &json!(4))
    );
    assert_eq!(report["position"]["learning_rate"], 1e-3);
    let requests: Vec<(u64, &str)> = (history.requests.iter())
        .map(|it| (it.step, it.outcome.split(':').next().unwrap_or_default()))
        .collect();
    let expected = [
        (3, "learning rate 1e-3 from here on"),
        (3, "refused (bad_argument)"),
        (4, "refused (not_now)"),
        (4, "refused (not_now)"),
    ];
    assert_eq!(requests, expected);
    assert_eq!(history.edits.len(), 1);
}

/// Batches of another size, with fewer examples, more of them in a step, also within an execution of several batches.
#[test]
fn batches_are_changed_by_requests_during_fit() {
    for steps_per_execution in [1, 4] {
        let model = || {
            let args = plain_args().steps_per_execution(steps_per_execution);
            support::compiled(mirrored(), "float32", args)
        };
        let (others, context) = asking(vec![
            (3, request("set_batch_size", json!({"examples": 3}))),
            (3, request("drop_examples", json!({"rows": [5, 17, 30]}))),
            (3, request("drop_examples", json!({"rows": [999]}))),
            (5, request("set_accumulation", json!({"batches": 2}))),
            (5, request("report", json!({}))),
        ]);
        let entered = context.enter();
        let history = model()
            .fit(&sentences(40), args().epochs(2))
            .expect("it trains");
        drop(entered);
        assert_eq!(others.codes(), ["ok", "ok", "SC0522", "ok", "ok"]);
        let seen = others.seen.lock().expect("nobody panics here");
        let settings = &seen.answers[4]["result"]["settings"];
        assert_eq!(
            (&settings["batch_size"], &settings["accumulation"]),
            (&json!(3), &json!(2))
        );

        let run = (model().start(&sentences(40), args().epochs(2))).expect("it starts");
        run.step(3).expect("three steps");
        run.set_batch_size(3).expect("a size");
        run.drop_examples([5, 17, 30]).expect("three rows");
        run.step(2).expect("two steps");
        run.set_accumulation(2).expect("two batches");
        let by_a_cell = run.finish().expect("the rest");
        assert_eq!(losses_of(&history), losses_of(&by_a_cell));
        let executions = |history: &History| -> Vec<(u64, u64)> {
            let executions = history.executions.iter();
            executions.map(|it| (it.epoch, it.batches)).collect()
        };
        assert_eq!(executions(&history), executions(&by_a_cell));
        assert_eq!(history.counters, by_a_cell.counters);
        // The observer hears what is planned after each change.
        let planned = *seen.planned.last().expect("three changes");
        assert_eq!(planned, history.counters);
    }
}

/// No batch of the epoch is left: its open execution ends, and the next epoch begins with the others.
#[test]
fn the_rest_of_an_epoch_can_be_dropped() {
    let compiled = || {
        let args = plain_args().steps_per_execution(2);
        support::compiled(mirrored(), "float32", args)
    };
    let in_order = || args().epochs(2).shuffle(false);
    let rows: Vec<u64> = (12..40).collect();
    let ask = (3, request("drop_examples", json!({"rows": rows})));
    let (others, context) = asking(vec![ask]);
    let entered = context.enter();
    let history = compiled()
        .fit(&sentences(40), in_order())
        .expect("it trains");
    drop(entered);
    assert_eq!(others.codes(), ["ok"]);
    let executions = |history: &History| -> Vec<u64> {
        let executions = history.executions.iter();
        executions.map(|it| it.batches).collect()
    };
    assert_eq!(executions(&history), [2, 1, 2, 1]);
    let run = (compiled().start(&sentences(40), in_order())).expect("it starts");
    run.step(3).expect("three steps");
    run.drop_examples(rows).expect("28 rows");
    let by_a_cell = run.finish().expect("the rest");
    assert_eq!(executions(&by_a_cell), [2, 1, 2, 1]);
    assert_eq!(losses_of(&history), losses_of(&by_a_cell));
}

#[test]
fn a_run_without_a_table_is_steered() {
    let (others, context) = asking(vec![(
        3,
        request("set_learning_rate", json!({"rate": 1e-2})),
    )]);
    let entered = context.enter();
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let history = model
        .fit(&sentences(40), args().verbose(false))
        .expect("it trains");
    drop(entered);
    assert_eq!(others.codes(), ["ok"]);
    let by_a_cell = changed_by_a_cell(|run| {
        run.set_learning_rate(pin(1e-2)).expect("a rate");
    });
    assert_eq!(losses_of(&history), by_a_cell);
    let seen = others.seen.lock().expect("nobody panics here");
    assert_eq!(seen.are_quiet, [true]);
}

/// The call goes on to where it was to end. A paused run waits where it stands then.
#[test]
fn a_run_is_turned_back_while_a_cell_drives_it() {
    let (others, context) = asking(vec![
        (4, request("set_learning_rate", json!({"rate": 1e-2}))),
        (5, request("rewind", json!({"step": 99}))),
        (5, request("pause", json!({}))),
        (5, request("rewind", json!({"step": 2}))),
        (5, request("report", json!({}))),
        (5, request("step", json!({}))),
        (5, request("report", json!({}))),
        (5, request("continue", json!({}))),
    ]);
    let entered = context.enter();
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let run = model.start(&sentences(40), args()).expect("it starts");
    let stop = run.step(6).expect("it steps");
    drop(entered);
    let codes = others.codes();
    assert_eq!(codes, ["ok", "SC0915", "ok", "ok", "ok", "ok", "ok", "ok"]);
    assert_eq!(stop.position.step, 6);
    {
        let seen = others.seen.lock().expect("nobody panics here");
        let step = |answer: usize| &seen.answers[answer]["result"]["position"]["step"];
        assert_eq!((step(4), step(6)), (&json!(2), &json!(3)));
        assert_eq!(seen.answers[3]["result"]["step"], 2);
        let what = &seen.answers[3]["result"]["what"].to_string();
        assert!(
            what.contains("undone: after step 4: learning rate 1e-2"),
            "{what}"
        );
    }
    let history = run.finish().expect("the rest");
    assert_eq!(losses_of(&history), changed_by_a_cell(|_| {}));
    assert_eq!((history.requests.len(), history.edits.len()), (6, 0));
}

fn outcome(run: &Run, action: &str, arguments: Value) -> Result<String, String> {
    let answer = run.request(&request(action, arguments));
    match answer.outcome {
        Ok(result) => Ok(result["what"].as_str().unwrap_or_default().to_owned()),
        Err(refusal) => Err(refusal.code),
    }
}

#[test]
fn a_run_that_stands_does_what_is_requested() {
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let run = model.start(&sentences(40), args()).expect("it starts");
    assert!(outcome(&run, "step", json!({"steps": 3})).is_ok());
    assert!(outcome(&run, "set_learning_rate", json!({"rate": 1e-3})).is_ok());
    for (action, arguments, code) in [
        ("pause", json!({}), "not_now"),
        ("freeze", json!({"prefix": "none"}), "SC0103"),
        ("drop_examples", json!({"rows": [999]}), "SC0522"),
        ("rewind", json!({"step": 99}), "SC0915"),
        ("nothing", json!({}), "unknown_action"),
    ] {
        assert_eq!(
            outcome(&run, action, arguments),
            Err(code.to_owned()),
            "{action}"
        );
    }
    assert!(outcome(&run, "step", json!({})).is_ok());
    assert!(outcome(&run, "rewind", json!({"step": 3})).is_ok());
    // The change after step 3 is undone, and was made before it was asked for again.
    assert!(outcome(&run, "set_learning_rate", json!({"rate": 1e-3})).is_ok());
    assert!(outcome(&run, "finish", json!({})).is_ok());
    let history = run.history().expect("it is there");
    let losses: Vec<f64> = history.steps.iter().map(|it| it.loss).collect();
    assert_eq!(losses, by_a_cell());
    assert_eq!(history.requests.len(), 11);
    assert_eq!(outcome(&run, "step", json!({})), Err("SC0521".to_owned()));
}

#[test]
fn alerts_tell_of_breakpoints_and_the_end() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = {
        let heard = Arc::clone(&heard);
        move |alert: &stratoscope_models::Alert| {
            let mut heard = heard.lock().expect("nobody panics here");
            heard.push((alert.kind, alert.step, alert.message.clone()));
        }
    };
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let callbacks = Callbacks::new().and(on_alert(hear));
    let run = model
        .start(&sentences(8), args().callbacks(callbacks))
        .expect("it starts");
    run.break_when(breakpoints::loss().above(0.0))
        .expect("a condition");
    run.step(1).expect("it stops");
    run.clear_breakpoints().expect("it stands");
    run.finish().expect("the rest");
    let heard = heard.lock().expect("nobody panics here");
    let kinds: Vec<AlertKind> = heard.iter().map(|it| it.0).collect();
    assert_eq!(kinds.last(), Some(&AlertKind::Finished), "{heard:?}");
    let stopped = heard.iter().find(|it| it.0 == AlertKind::Breakpoint);
    assert!(
        stopped.is_some_and(|it| it.1 == 0 && it.2.contains("loss")),
        "{heard:?}"
    );
}
