//! The exercises of each lesson, and how far they are in this session.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stratoscope_render::html::{TABLE_CELL, TITLE_STYLE, escape};

use crate::verdict::State;

/// An exercise of a lesson.
pub struct Exercise {
    /// Its number: `3.2`.
    pub number: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// A lesson is finished without it.
    pub is_extra: bool,
}

const fn exercise(number: &'static str, title: &'static str) -> Exercise {
    Exercise {
        number,
        title,
        is_extra: false,
    }
}

/// All exercises, in the order of the course.
pub const EXERCISES: [Exercise; 49] = [
    exercise("1.1", "the gradient of one example"),
    exercise("1.2", "a step of gradient descent"),
    exercise("1.3", "a prediction: a step that is too long"),
    exercise("2.1", "the gradient of a batch"),
    exercise("2.2", "parts of different sizes"),
    exercise("2.3", "a prediction: noise"),
    exercise("3.1", "an all-reduce as a ring"),
    Exercise {
        number: "3.2",
        title: "an all-reduce as a tree",
        is_extra: true,
    },
    exercise("3.3", "a prediction: the busiest device"),
    exercise("4.1", "the shares of a batch"),
    exercise("4.2", "a mirrored gradient by hand"),
    exercise("4.3", "a prediction: all-reduces"),
    exercise("5.1", "a prediction: which cells fail"),
    exercise("5.2", "a model in the scope"),
    exercise("5.3", "what a run counts"),
    exercise("5.4", "a prediction: counters"),
    exercise("6.1", "a prediction: an undivided sum"),
    exercise("6.2", "accumulation by hand"),
    exercise("6.3", "a prediction: optimizer steps"),
    exercise("7.1", "local SGD"),
    exercise("7.2", "a prediction: parameter averages"),
    exercise("7.3", "a prediction: where local SGD ends"),
    exercise("8.1", "staleness"),
    exercise("8.2", "descent with a delay"),
    exercise("8.3", "a prediction: a delay of 3"),
    exercise("9.1", "the memory of training"),
    exercise("9.2", "rounding to bfloat16"),
    exercise("9.3", "a prediction: a thousand small steps"),
    exercise("10.1", "a condition that stops a run"),
    exercise("10.2", "a prediction: the weights at the stop"),
    exercise("10.3", "the broken reading"),
    exercise("10.4", "a run that is repaired"),
    exercise("11.1", "the memory of a replica"),
    exercise("11.2", "a reduce-scatter"),
    exercise("11.3", "a prediction: the bytes of a step"),
    exercise("12.1", "the bubble"),
    exercise("12.2", "one forward, one backward"),
    exercise("12.3", "a prediction: stored micro-batches"),
    exercise("12.4", "balanced stages"),
    exercise("13.1", "slices of two layers"),
    exercise("13.2", "the sum of partial products"),
    exercise("13.3", "gradients on a device"),
    exercise("13.4", "a prediction: variables in slices"),
    exercise("13.5", "a prediction: devices for 12 heads"),
    exercise("14.1", "the memory of the fullest device"),
    exercise("14.2", "the bytes of a step"),
    exercise("14.3", "a prediction: what fits"),
    exercise("14.4", "a prediction: the bubble"),
    exercise("14.5", "a choice under a limit"),
];

/// How far the exercises are: what was checked last.
static STATES: Mutex<BTreeMap<String, State>> = Mutex::new(BTreeMap::new());

fn states() -> MutexGuard<'static, BTreeMap<String, State>> {
    STATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enters what a check found.
pub(crate) fn enter(exercise: &str, state: State) {
    states().insert(exercise.to_owned(), state);
}

/// What an exercise is about.
pub fn title(number: &str) -> Option<&'static str> {
    let found = EXERCISES.iter().find(|exercise| exercise.number == number);
    found.map(|exercise| exercise.title)
}

/// All exercises of a finished lesson.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The lesson, from 1 to 14.
    pub lesson: usize,
    /// Number, title and state of each exercise.
    pub rows: Vec<(&'static str, &'static str, State)>,
}

/// A lesson with exercises that are not right.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished(pub Report);

/// The exercises of a lesson, as they were checked last in this session.
///
/// # Errors
/// The same list if one that is not an extra is open or wrong.
pub fn report(lesson: usize) -> Result<Report, Unfinished> {
    let states = states();
    let prefix = format!("{lesson}.");
    let own = EXERCISES.iter().filter(|it| it.number.starts_with(&prefix));
    let state = |number: &str| states.get(number).copied().unwrap_or(State::Open);
    let is_finished = own
        .clone()
        .all(|it| it.is_extra || state(it.number).is_done());
    let rows = own
        .map(|it| (it.number, it.title, state(it.number)))
        .collect();
    let report = Report { lesson, rows };
    match is_finished && !report.rows.is_empty() {
        true => Ok(report),
        false => Err(Unfinished(report)),
    }
}

impl Report {
    /// The list as text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("lesson {}", self.lesson);
        for (number, title, state) in &self.rows {
            // Writing to a string cannot fail.
            let _ = write!(plain, "\n  {number:<5} {title:<38} {}", state.word());
        }
        plain
    }

    /// The list as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<div style=\"{TITLE_STYLE}\">lesson {}</div>\
             <table style=\"border-collapse:collapse;font-size:13px\"><tbody>",
            self.lesson
        );
        for (number, title, state) in &self.rows {
            let sign = state.sign();
            let _ = write!(
                html,
                "<tr><td style=\"{TABLE_CELL}\">{number}</td><td style=\"{TABLE_CELL}\">{}</td><td style=\"{TABLE_CELL}\">{sign} {}</td></tr>",
                escape(title),
                state.word()
            );
        }
        html.push_str("</tbody></table>");
        html
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<String> = self
            .0
            .rows
            .iter()
            .filter(|row| !row.2.is_done())
            .map(|(number, title, state)| format!("{number} ({title}) is {}", state.word()))
            .collect();
        match open.is_empty() {
            true => write!(
                f,
                "there is no lesson {}; the course has the lessons 1 to 14",
                self.0.lesson
            ),
            false => write!(
                f,
                "lesson {} is not finished: {}",
                self.0.lesson,
                open.join(", ")
            ),
        }
    }
}

impl Error for Unfinished {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    /// The states are those of the process: tests of other modules enter theirs too, so a lesson of its own.
    #[test]
    fn a_lesson_is_finished_when_all_but_its_extras_are_right() {
        let right = |number| Verdict::new(number, State::Right, Vec::new());
        assert!(report(15).is_err_and(|it| it.to_string().contains("1 to 14")));
        states().retain(|number, _| !number.starts_with("9."));
        assert!(!Verdict::new("9.3", State::Noted, Vec::new()).is_right());
        let found = report(9).expect_err("nothing was checked").to_string();
        assert!(
            found.starts_with("lesson 9 is not finished: 9.1 (the memory of training) is still")
                && !found.contains("9.3"),
            "a prediction is done when it is made: {found}"
        );
        for number in ["3.1", "3.3"] {
            assert!(right(number).is_right());
        }
        let lesson = report(3);
        let shown = lesson.unwrap_or_else(|it| it.0).to_plain();
        assert!(shown.contains("3.2   an all-reduce as a tree"), "{shown}");
    }

    #[test]
    fn every_lesson_has_exercises_in_order() {
        for lesson in 1..=14 {
            let prefix = format!("{lesson}.");
            let own: Vec<&str> = (EXERCISES.iter().map(|it| it.number))
                .filter(|it| it.starts_with(&prefix))
                .collect();
            let expected: Vec<String> =
                (1..=own.len()).map(|it| format!("{lesson}.{it}")).collect();
            assert!(own.len() >= 2 && own == expected, "{own:?}");
        }
    }
}
