//! A session around the toy evaluator of [`crate::toy`].

use std::time::Duration;

use super::*;
use crate::Stream;
use crate::toy;

/// Records the text of every output.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn push(&self, text: String) {
        self.0.lock().push(text);
    }
}

impl OutputSink for Recorder {
    fn stream(&self, _stream: Stream, text: &str) {
        self.push(text.to_owned());
    }

    fn display(&self, data: MimeBundle, _: MimeBundle, _: Option<String>, _: bool) {
        self.push(data["text/plain"].to_string());
    }

    fn result(&self, data: MimeBundle) {
        self.push(data["text/plain"].to_string());
    }

    fn clear(&self, _wait: bool) {}

    fn input(&self, _prompt: &str, _password: bool) -> Option<String> {
        None
    }
}

fn hand_in(session: &Session, code: &str) -> (Arc<Recorder>, oneshot::Receiver<CellOutcome>) {
    let outputs = Arc::new(Recorder::default());
    let cell = OwnedCell {
        code: code.to_owned(),
        number: 1,
        silent: false,
    };
    let outcome = session.execute(cell, outputs.clone());
    (outputs, outcome)
}

fn execute(session: &Session, code: &str) -> (Vec<String>, CellOutcome) {
    let (outputs, outcome) = hand_in(session, code);
    let outcome = outcome.blocking_recv().expect("the session lives");
    let shown = outputs.0.lock().clone();
    (shown, outcome)
}

fn error_of(outcome: CellOutcome) -> CellError {
    match outcome {
        CellOutcome::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn cells_wait_for_the_evaluator_and_run_in_order() {
    let session = Session::start(toy::starter(Duration::from_millis(100)));
    let (first, _) = hand_in(&session, "print one");
    let (shown, outcome) = execute(&session, "print two\nresult three");
    assert_eq!(outcome, CellOutcome::Ok);
    assert_eq!(shown, ["two\n", "\"three\""]);
    assert_eq!(*first.0.lock(), ["one\n"]);
}

#[test]
fn an_evaluator_is_warmed_up_unless_a_cell_waits_for_it() {
    let session = Session::start(toy::starter(Duration::from_millis(100)));
    assert_eq!(execute(&session, "is warm").0, ["false\n"]);
    let session = Session::start(toy::starter(Duration::ZERO));
    std::thread::sleep(5 * IDLE);
    assert_eq!(execute(&session, "is warm").0, ["true\n"]);
}

#[test]
fn a_panic_of_the_evaluator_starts_another() {
    let session = Session::start(toy::starter(Duration::ZERO));
    let error = error_of(execute(&session, "panic oh no").1);
    assert_eq!(error.ename, "InternalError");
    assert!(error.evalue.ends_with("oh no"), "{}", error.evalue);
    assert_eq!(execute(&session, "print back").0, ["back\n"]);
    assert!(execute(&session, "%vars").0[0].contains("executed  1"));
}

#[test]
fn without_an_evaluator_every_cell_says_why() {
    let session = Session::start(toy::failing_starter());
    for _ in 0..2 {
        let (shown, outcome) = execute(&session, "print x");
        assert!(shown[0].contains("there is no facade"), "{shown:?}");
        let error = error_of(outcome);
        assert_eq!(
            (error.ename.as_str(), error.evalue.as_str()),
            ("SC1001", "there is no facade")
        );
    }
    assert_eq!(execute(&session, "%help").1, CellOutcome::Ok);
}

#[test]
fn interrupts_reach_running_and_waiting_cells_and_no_others() {
    let interrupted = CellOutcome::Interrupted { lost: None };
    let session = Session::start(toy::starter(Duration::from_millis(100)));
    // The evaluator is still starting.
    let (_, waiting) = hand_in(&session, "sleep 60000");
    session.interrupt();
    assert_eq!(waiting.blocking_recv().expect("ends"), interrupted);
    // Nothing runs: the next cell is not concerned.
    session.interrupt();
    assert_eq!(execute(&session, "print x").1, CellOutcome::Ok);
    // A running cell.
    let (_, running) = hand_in(&session, "sleep 60000");
    std::thread::sleep(Duration::from_millis(50));
    session.interrupt();
    assert_eq!(running.blocking_recv().expect("ends"), interrupted);
    // A running expression.
    let running = session.evaluate_expression("sleep 60000".to_owned());
    std::thread::sleep(Duration::from_millis(50));
    session.interrupt();
    let result = running.blocking_recv().expect("ends");
    assert_eq!(
        result.expect_err("it is interrupted").ename,
        "KeyboardInterrupt"
    );
    // Nothing runs.
    session.interrupt();
    let result = session.evaluate_expression("1 + 1".to_owned());
    assert!(result.blocking_recv().expect("ends").is_ok());
}

#[test]
fn shutting_down_ends_the_running_cell_and_those_that_wait() {
    let session = Session::start(toy::starter(Duration::ZERO));
    let (_, running) = hand_in(&session, "sleep 60000");
    let (never, waiting) = hand_in(&session, "print never");
    let expression = session.evaluate_expression("1".to_owned());
    std::thread::sleep(Duration::from_millis(50));
    session.shut_down().blocking_recv().expect("ends");
    let interrupted = CellOutcome::Interrupted { lost: None };
    assert_eq!(running.blocking_recv().expect("ends"), interrupted);
    assert_eq!(waiting.blocking_recv().expect("ends"), interrupted);
    assert!(expression.blocking_recv().expect("ends").is_err());
    assert!(never.0.lock().is_empty());
    assert!(hand_in(&session, "print late").1.blocking_recv().is_err());
}

#[test]
fn questions_are_answered_at_once_while_a_cell_runs() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let session = Session::start(toy::starter(Duration::ZERO));
    execute(&session, "print ready");
    let complete = || {
        runtime
            .block_on(session.complete("x".to_owned(), 1))
            .items
            .len()
    };
    let inspect = || {
        runtime
            .block_on(session.inspect("known".to_owned(), 5, 0))
            .is_some()
    };
    assert_eq!((complete(), inspect()), (1, true));
    let (_, running) = hand_in(&session, "sleep 60000");
    // The toy's assistant does not know it, so that an answer from the time of the cell is empty; after its end it would be as before.
    assert_eq!((complete(), inspect()), (0, false));
    session.interrupt();
    running.blocking_recv().expect("ends");
}

#[test]
fn questions_wait_for_an_evaluator_that_is_starting() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let session = Session::start(toy::starter(Duration::from_millis(300)));
    let found = runtime.block_on(session.complete("x".to_owned(), 1));
    assert_eq!(found.items.len(), 1);
    let session = Session::start(toy::starter(Duration::from_millis(300)));
    let found = runtime.block_on(session.inspect("known".to_owned(), 5, 0));
    assert!(found.is_some());
    // What the text alone answers does not wait.
    let session = Session::start(toy::starter(Duration::from_secs(3600)));
    let found = runtime.block_on(session.complete("arg".to_owned(), 3));
    assert_eq!(found.items[0].text, "argument");
    let found = runtime.block_on(session.inspect("argument".to_owned(), 8, 0));
    assert!(found.is_some());
    std::mem::forget(session);
    // Without an evaluator nothing is known, and nobody waits for one.
    let session = Session::start(toy::failing_starter());
    let found = runtime.block_on(session.complete("x".to_owned(), 1));
    assert_eq!(found, Completions::nothing_at(1));
}

#[test]
fn values_are_asked_for_between_cells_and_while_one_runs() {
    let session = Session::start(toy::starter(Duration::ZERO));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let ask = || {
        let answer = runtime.block_on(session.inspect_values(InspectQuestion::Variables));
        match answer {
            InspectAnswer::Values { values, .. } => values[0].value.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask().as_deref(), Some("idle"));
    let (_, outcome) = hand_in(&session, "sleep 1000");
    assert!(session.is_executing());
    assert_eq!(ask().as_deref(), Some("meanwhile"));
    while !session.shared.running.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    session.interrupt();
    assert!(outcome.blocking_recv().is_ok());
    assert_eq!(ask().as_deref(), Some("idle"));
}
