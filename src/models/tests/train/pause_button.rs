//! The buttons of a run: what is shown when it waits.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use stratoscope_models::events::{Advanced, Observer, RunCommand};
use stratoscope_models::{FitArgs, RunContext};

use crate::support::{load, plain_args, sentences, tiny_bert};

/// A person who pauses after the first step, makes two, and goes on; and a table that takes long to draw.
#[derive(Default)]
struct Person(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    asked: usize,
    /// The optimizer steps that the table shows.
    shown: u64,
    /// The same whenever the run waits.
    at_pauses: Vec<u64>,
}

impl Observer for Person {
    fn advanced(&self, event: &Advanced) {
        thread::sleep(Duration::from_millis(20));
        self.0.lock().expect("nobody panics here").shown = event.counters.optimizer_steps;
    }

    fn command(&self, _run: u64) -> Option<RunCommand> {
        let mut seen = self.0.lock().expect("nobody panics here");
        seen.asked += 1;
        match seen.asked {
            1 => Some(RunCommand::Pause),
            2 | 3 => Some(RunCommand::Step),
            4 => Some(RunCommand::Continue),
            _ => None,
        }
    }

    fn paused(&self, _run: u64, is_paused: bool) {
        let mut seen = self.0.lock().expect("nobody panics here");
        let shown = seen.shown;
        seen.at_pauses.extend(is_paused.then_some(shown));
    }
}

/// Also where the table was drawn a moment before: nothing corrects it while the run waits.
#[test]
fn a_paused_run_shows_its_latest_step() {
    let person = Arc::new(Person::default());
    let context = RunContext::new();
    context.observe(person.clone());
    let _entered = context.enter();
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let args = FitArgs::new().batch_size(4);
    model.fit(&sentences(40), args).expect("it trains");
    let seen = person.0.lock().expect("nobody panics here");
    assert_eq!(seen.at_pauses, [1, 2, 3]);
}
