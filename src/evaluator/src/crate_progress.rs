//! Which crate is being compiled: the crates of a `:dep` can take minutes, and a cell that says
//! nothing for minutes looks as if it hung.
//!
//! [`super::wrapper`] is called for each of them and notes its name in a file; the kernel reads the
//! file while it waits, and shows a line below the cell.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stratoscope_wire::MimeBundle;

use stratoscope_session::Outputs;

/// In the private folder: a crate's name a line, in the order in which their compilation begins.
const FILE: &str = "compiling";
/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(150);

/// A crate that is no cell and none of the view begins to be compiled.
pub fn note(home: &Path, name: &str) {
    if name.starts_with("build_script") {
        return;
    }
    let mut options = OpenOptions::new();
    if let Ok(mut file) = options.append(true).create(true).open(home.join(FILE)) {
        // Whole lines of several processes do not mix when they are appended at once.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

/// Shows what is being compiled until it is dropped.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches if the cell asks for a crate.
    pub fn start(home: &Path, cell: u64, text: &str, outputs: Arc<dyn Outputs>) -> Option<Self> {
        let asks = |line: &str| line.trim_start().starts_with(":dep");
        if !text.lines().any(asks) {
            return None;
        }
        let home = home.to_owned();
        let _ = fs::remove_file(home.join(FILE));
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
    outputs: Arc<dyn Outputs>,
    began: Instant,
    shown: String,
}

impl Line {
    fn new(home: &Path, cell: u64, outputs: Arc<dyn Outputs>) -> Self {
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
        let names = fs::read_to_string(self.home.join(FILE)).unwrap_or_default();
        let total = fs::read_to_string(self.home.join("cells/Cargo.lock")).unwrap_or_default();
        let seconds = self.began.elapsed().as_secs_f64();
        let Some(text) = told(&names, in_lock(&total), ended.then_some(seconds)) else {
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
fn told(names: &str, total: usize, seconds: Option<f64>) -> Option<String> {
    let count = names.lines().count();
    let last = names.lines().last()?;
    Some(match seconds {
        Some(seconds) => format!("{count} crates in {seconds:.1} s").replace("1 crates", "1 crate"),
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
    fn the_last_crate_and_their_number_are_told() {
        assert_eq!(told("", 3, None), None);
        assert_eq!(
            told("itoa\nserde\n", 12, None).as_deref(),
            Some("compiling serde 2/12")
        );
        assert_eq!(told("a\nb\n", 1, None).as_deref(), Some("compiling b 2/2"));
        assert_eq!(
            told("a\n", 1, Some(1.26)).as_deref(),
            Some("1 crate in 1.3 s")
        );
    }

    #[test]
    fn crates_of_ours_are_not_counted() {
        let lock = "[[package]]\nname = \"burn\"\n\n[[package]]\nname = \"itoa\"\nsource = \"registry+x\"\n";
        assert_eq!(in_lock(lock), 1);
    }

    #[test]
    fn build_scripts_are_no_crates() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["itoa", "build_script_build", "serde"] {
            note(folder.path(), name);
        }
        let names = fs::read_to_string(folder.path().join(FILE)).expect("is there");
        assert_eq!(names, "itoa\nserde\n");
    }
}
