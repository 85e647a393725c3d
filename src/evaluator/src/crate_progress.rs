//! Which crate is being compiled: the crates of a `:dep` can take minutes, and a cell that says
//! nothing for minutes looks as if it hung.
//!
//! The wrapper of rustc in the crate `compile` is called for each of them and notes its name; the kernel reads
//! the names while it waits, and shows a line below the cell.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stratoscope_compile::state::State;
use stratoscope_wire::MimeBundle;

use stratoscope_session::OutputSink;

/// How often the names are read. A front end that cannot update a display shows a line each time.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows what is being compiled until it is dropped.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches if the cell asks for a crate.
    pub fn start(home: &Path, cell: u64, text: &str, outputs: Arc<dyn OutputSink>) -> Option<Self> {
        let asks = |line: &str| line.trim_start().starts_with(":dep");
        if !text.lines().any(asks) {
            return None;
        }
        let home = home.to_owned();
        let _ = State::update(&home, |state| state.crates.clear());
        let (stop, stopped) = channel();
        let watching = move || {
            let mut line = Line::new(&home, cell, outputs);
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                line.draw(false);
            }
            line.draw(true);
        };
        let thread = std::thread::Builder::new()
            .name("crates".to_owned())
            .spawn(watching);
        Some(Self {
            stop: Some(stop),
            thread: thread.ok(),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Its end wakes the thread.
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Line {
    home: PathBuf,
    id: String,
    outputs: Arc<dyn OutputSink>,
    began: Instant,
    shown: String,
}

impl Line {
    fn new(home: &Path, cell: u64, outputs: Arc<dyn OutputSink>) -> Self {
        Self {
            home: home.to_owned(),
            id: format!("stratoscope-crates-{}-{cell}", std::process::id()),
            outputs,
            began: Instant::now(),
            shown: String::new(),
        }
    }

    /// Nothing as long as nothing is compiled.
    fn draw(&mut self, ended: bool) {
        let names = State::read(&self.home).crates;
        let total = fs::read_to_string(self.home.join("cells/Cargo.lock")).unwrap_or_default();
        let seconds = self.began.elapsed().as_secs_f64();
        let Some(text) = progress(&names, in_lock(&total), ended.then_some(seconds)) else {
            return;
        };
        if text == self.shown {
            return;
        }
        let data = MimeBundle::from_iter([("text/plain".to_owned(), text.as_str().into())]);
        let update = !self.shown.is_empty();
        let id = Some(self.id.clone());
        self.outputs.display(data, MimeBundle::new(), id, update);
        self.shown = text;
    }
}

/// `compiling serde 3/12`; with the seconds that it took: it is over.
fn progress(names: &[String], total: usize, seconds: Option<f64>) -> Option<String> {
    let count = names.len();
    let last = names.last()?;
    Some(match seconds {
        Some(seconds) if count == 1 => format!("1 crate in {seconds:.1} s"),
        Some(seconds) => format!("{count} crates in {seconds:.1} s"),
        // Crates for other systems stand in the list, too, and some crates are compiled twice.
        None => format!("compiling {last} {count}/{}", total.max(count)),
    })
}

/// The packages of a `Cargo.lock` that come from elsewhere.
fn in_lock(text: &str) -> usize {
    text.lines()
        .filter(|line| line.starts_with("source = "))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_crate_and_the_number_of_crates_are_shown() {
        let progress = |names: &[&str], total, seconds| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            super::progress(&names, total, seconds)
        };
        assert_eq!(progress(&[], 3, None), None);
        assert_eq!(
            progress(&["itoa", "serde"], 12, None).as_deref(),
            Some("compiling serde 2/12")
        );
        assert_eq!(
            progress(&["a", "b"], 1, None).as_deref(),
            Some("compiling b 2/2")
        );
        assert_eq!(
            progress(&["a"], 1, Some(1.26)).as_deref(),
            Some("1 crate in 1.3 s")
        );
    }

    #[test]
    fn crates_of_ours_are_not_counted() {
        let lock = "[[package]]\nname = \"burn\"\n\n[[package]]\nname = \"itoa\"\nsource = \"registry+x\"\n";
        assert_eq!(in_lock(lock), 1);
    }
}
