//! Work that takes long: it says how far it is, and it hears whether it should stop.
//!
//! One source of interrupts and one watcher serve the process. In a notebook they are the interrupt button
//! and a line of progress; without either, work is silent and stops only when [`request`] is called.
//! This module does neither I/O nor drawing itself.
//!
//! ```
//! use stratoscope_diagnostics::work::{Unit, Work};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let texts = ["a chess game", "a mail server"];
//! let mut work = Work::begin(("counting", "counted"), texts.len(), Unit::Things("text"));
//! for (index, _text) in texts.iter().enumerate() {
//!     work.reached(index)?; // an error if the interrupt button was pressed
//! }
//! work.finished();
//! # Ok(())
//! # }
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::rules::Interrupted;
use crate::{Result, Rule};
use stratoscope_render::{text, units};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static SOURCE: OnceLock<fn() -> bool> = OnceLock::new();
static LISTENING: AtomicUsize = AtomicUsize::new(0);
static WATCHER: OnceLock<fn(&Seen)> = OnceLock::new();

/// Asks whatever runs now, or next, to stop where it can. The request holds until somebody has
/// heard it.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Whoever else can ask: a notebook's interrupt button, a signal handler. Can be set once. Its answer
/// stays `true` until the next cell, so that the statements after an interrupted one can be left out.
pub fn listen_to(source: fn() -> bool) {
    // A second source would be one that nobody hears; the first stays.
    let _ = SOURCE.set(source);
}

/// Whether somebody asks. A request made by [`request`] is answered by asking.
pub fn requested() -> bool {
    // Most ask in vain, and often: a read that is shared is cheaper than a write.
    let asked = REQUESTED.load(Ordering::SeqCst) && REQUESTED.swap(false, Ordering::SeqCst);
    asked || SOURCE.get().is_some_and(|source| source())
}

/// While one lives, an interrupt will be heard: at once, or when what cannot be divided is over.
#[derive(Debug)]
pub struct Listening(());

impl Listening {
    /// From now on.
    pub fn begin() -> Self {
        LISTENING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether something runs that will hear an interrupt, even if it does not ask at this moment.
pub fn is_listening() -> bool {
    LISTENING.load(Ordering::SeqCst) > 0
}

/// Whoever shows progress. Can be set once.
pub fn watch_by(watcher: fn(&Seen)) {
    let _ = WATCHER.set(watcher);
}

/// How far a piece of work is.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Tells pieces of work apart.
    pub id: u64,
    /// `tokenizing 12 800 of 400 000 texts, 3 s`.
    pub words: String,
    /// The share that is done, from 0 to 1.
    pub share: f64,
    /// It has ended, or was stopped.
    pub is_over: bool,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown as MB.
    Bytes,
    /// Things with a plain plural: `text`.
    Things(&'static str),
}

impl Unit {
    fn of(self, done: usize, total: usize) -> String {
        let megabytes = |bytes: usize| format!("{:.0}", bytes as f64 / 1e6);
        match self {
            Self::Bytes => format!("{} of {} MB", megabytes(done), megabytes(total)),
            Self::Things(noun) => {
                format!("{} of {}", text::thousands(done), text::count(total, noun))
            }
        }
    }

    fn all(self, total: usize) -> String {
        match self {
            Self::Bytes => format!("{:.0} MB", total as f64 / 1e6),
            Self::Things(noun) => text::count(total, noun),
        }
    }
}

/// Shorter work is not shown.
const WORTH_SHOWING: Duration = Duration::from_millis(300);
/// How often it is shown at most.
const PERIOD: Duration = Duration::from_millis(200);

/// A piece of work that is going on.
#[derive(Debug)]
pub struct Work {
    id: u64,
    /// What one does, and has done: `tokenizing`, `tokenized`.
    verb: (&'static str, &'static str),
    unit: Unit,
    total: usize,
    done: usize,
    begun: Instant,
    shown: Option<Instant>,
    is_finished: bool,
    _listening: Listening,
}

impl Work {
    /// Begins. The verb is given as it is going on and when it is over.
    pub fn begin(verb: (&'static str, &'static str), total: usize, unit: Unit) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: COUNT.fetch_add(1, Ordering::Relaxed),
            verb,
            unit,
            total,
            done: 0,
            begun: Instant::now(),
            shown: None,
            is_finished: false,
            _listening: Listening::begin(),
        }
    }

    /// Notes that `done` of the total is done, and checks for an interrupt.
    ///
    /// # Errors
    /// SC0520 after an interrupt request.
    pub fn reached(&mut self, done: usize) -> Result<()> {
        self.shows(done);
        match requested() {
            true => Err(self.interrupted()),
            false => Ok(()),
        }
    }

    /// The same for an operation that cannot stop here: a later check finds the interrupt.
    pub fn shows(&mut self, done: usize) {
        self.done = done;
        let due = match self.shown {
            None => self.begun.elapsed() >= WORTH_SHOWING,
            Some(shown) => shown.elapsed() >= PERIOD,
        };
        if due {
            self.shown = Some(Instant::now());
            self.report(false);
        }
    }

    /// The error of the interrupted operation.
    pub fn interrupted(&self) -> Box<crate::Diagnostic> {
        let rule = Interrupted {
            work: self.verb.0.to_owned(),
            reached: self.unit.of(self.done, self.total),
        };
        rule.error()
    }

    /// Notes that all is done.
    pub fn finished(mut self) {
        self.done = self.total;
        self.is_finished = true;
    }

    /// Passes the state to the watcher.
    fn report(&self, is_over: bool) {
        let Some(watcher) = WATCHER.get() else { return };
        let (doing, did) = self.verb;
        let time = units::seconds(self.begun.elapsed().as_secs_f64());
        let words = match (is_over, self.is_finished) {
            (true, true) => format!("{did} {} in {time}", self.unit.all(self.total)),
            (true, false) => format!(
                "{doing} stopped after {}, {time}",
                self.unit.of(self.done, self.total)
            ),
            (false, _) => format!("{doing} {}, {time}", self.unit.of(self.done, self.total)),
        };
        watcher(&Seen {
            id: self.id,
            words,
            share: self.done as f64 / self.total.max(1) as f64,
            is_over,
        });
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.shown.is_some() {
            self.report(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

    /// The request is the process's: one test has all of it.
    #[test]
    fn work_is_shown_when_it_takes_long_and_stops_when_it_is_asked() {
        watch_by(|seen| SEEN.lock().expect("no panic").push(seen.clone()));
        assert!(!is_listening());
        let mut short = Work::begin(("counting", "counted"), 3, Unit::Things("text"));
        assert!(is_listening());
        // However slow the machine is.
        let later = Instant::now() + Duration::from_secs(3600);
        short.begun = later;
        short.reached(1).expect("nobody asks");
        short.finished();
        assert!(SEEN.lock().expect("no panic").is_empty());

        let mut long = Work::begin(("reading", "read"), 25_000_000, Unit::Bytes);
        long.begun = Instant::now() - Duration::from_secs(12);
        long.reached(10_000_000).expect("nobody asks");
        // Not again so soon.
        long.shown = Some(later);
        long.reached(11_000_000).expect("nobody asks");
        request();
        let diagnostic = long.reached(12_000_000).expect_err("it is asked to stop");
        assert_eq!(diagnostic.code, "SC0520");
        assert_eq!(
            diagnostic.message,
            "reading was interrupted after 12 of 25 MB"
        );
        assert!(!requested(), "the request was heard");
        drop(long);
        let seen = std::mem::take(&mut *SEEN.lock().expect("no panic"));
        let words: Vec<&str> = seen.iter().map(|seen| seen.words.as_str()).collect();
        let expected = [
            "reading 10 of 25 MB, 12 s",
            "reading stopped after 12 of 25 MB, 12 s",
        ];
        assert_eq!(words, expected);
        assert_eq!((seen[0].share, seen[0].is_over), (0.4, false));
        assert!(seen[1].is_over && seen[0].id == seen[1].id);

        let mut whole = Work::begin(("counting", "counted"), 40_000, Unit::Things("text"));
        whole.begun = Instant::now() - Duration::from_secs(125);
        whole.reached(12_345).expect("nobody asks");
        whole.finished();
        let seen = SEEN.lock().expect("no panic");
        let words: Vec<&str> = seen.iter().map(|seen| seen.words.as_str()).collect();
        let expected = [
            "counting 12 345 of 40 000 texts, 2 min 05 s",
            "counted 40 000 texts in 2 min 05 s",
        ];
        assert_eq!(words, expected);
        assert!(!is_listening());
    }
}
