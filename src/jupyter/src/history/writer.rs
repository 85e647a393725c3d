//! The thread that writes the file. A file that cannot be written is reported once, and cells go on.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use stratoscope_os::console::warn;

use super::Entry;
use super::file::HistoryFile;

/// The file is looked through after this many cells of this kernel.
const SHORTEN_AFTER: usize = 1000;

/// How long `%history clear` waits for the thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file of the history, and the thread that writes it.
pub struct Writer {
    file: HistoryFile,
    work: mpsc::Sender<Work>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// 0: the file cannot be used.
    session: OnceLock<i64>,
    is_off: AtomicBool,
    notice: Mutex<Option<String>>,
}

enum Work {
    Keep { line: u64, input: String },
    Flush(mpsc::Sender<()>),
    Clear(mpsc::Sender<io::Result<()>>),
}

impl Writer {
    /// Starts the thread.
    pub fn start(file: HistoryFile) -> Self {
        let (work, inbox) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let thread = Thread {
            file: file.clone(),
            shared: shared.clone(),
            has_failed: false,
            kept: 0,
        };
        let spawned = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || thread.run(&inbox));
        if let Err(error) = spawned {
            warn(&format!("no history is kept: {error}"));
            let _ = shared.session.set(0);
        }
        Self { file, work, shared }
    }

    /// The number of this session; waits for the thread, which needs a few milliseconds for it. 0: the file cannot be used.
    pub fn session(&self) -> i64 {
        *self.shared.session.wait()
    }

    /// All cells of the file; none if it cannot be read.
    pub fn read(&self) -> Vec<Entry> {
        self.file.read().unwrap_or_default()
    }

    /// Where cells are kept; `None`: nowhere.
    pub fn kept_in(&self) -> Option<PathBuf> {
        let is_off = self.shared.is_off.load(Ordering::Relaxed);
        (!is_off && self.session() > 0).then(|| self.file.path().to_owned())
    }

    /// Keeps a cell. Returns at once.
    pub fn keep(&self, line: u64, input: String) {
        if !self.shared.is_off.load(Ordering::Relaxed) {
            // The thread ends with the kernel.
            let _ = self.work.send(Work::Keep { line, input });
        }
    }

    /// Cells are kept from now on, or not.
    pub fn set_on(&self, is_on: bool) {
        self.shared.is_off.store(!is_on, Ordering::Relaxed);
    }

    /// Waits until every cell is written.
    pub fn flush(&self, limit: Duration) {
        let (done, wait) = mpsc::channel();
        if self.work.send(Work::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(limit);
        }
    }

    /// Removes the file.
    ///
    /// # Errors
    /// Why it cannot be removed.
    pub fn clear(&self) -> Result<(), String> {
        let (done, wait) = mpsc::channel();
        let _ = self.work.send(Work::Clear(done));
        let at = self.file.path().display();
        match wait.recv_timeout(PATIENCE) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{at} cannot be removed: {error}")),
            Err(_) => Err(format!("another kernel holds the lock of {at}; try again")),
        }
    }

    /// What is wrong with the file.
    pub fn notice(&self) -> Option<String> {
        self.shared.notice.lock().clone()
    }
}

struct Thread {
    file: HistoryFile,
    shared: Arc<Shared>,
    /// A failure was reported.
    has_failed: bool,
    /// Cells since the file was looked through.
    kept: usize,
}

impl Thread {
    fn run(mut self, inbox: &mpsc::Receiver<Work>) {
        let session = match self.file.begin() {
            Ok((session, notice)) => {
                self.tell(notice);
                session
            }
            Err(error) => {
                self.failed(&error);
                0
            }
        };
        let _ = self.shared.session.set(session);
        while let Ok(work) = inbox.recv() {
            match work {
                Work::Keep { line, input } if session > 0 => self.keep(session, line, &input),
                Work::Keep { .. } => {}
                // Nobody may wait any more.
                Work::Flush(done) => drop(done.send(())),
                Work::Clear(done) => drop(done.send(self.file.clear())),
            }
        }
    }

    fn keep(&mut self, session: i64, line: u64, input: &str) {
        self.kept += 1;
        match self.file.append(session, line, input) {
            Ok(notice) => self.tell(notice),
            Err(error) => self.failed(&error),
        }
        if self.kept >= SHORTEN_AFTER {
            self.kept = 0;
            if let Err(error) = self.file.shorten() {
                self.failed(&error);
            }
        }
    }

    fn failed(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.has_failed, true) {
            let at = self.file.path().display();
            self.tell(Some(format!(
                "the history cannot be kept in {at}: {error}; cells are not affected (STRATOSCOPE_HISTORY=off turns it off)"
            )));
        }
    }

    fn tell(&self, text: Option<String>) {
        if let Some(text) = text {
            warn(&text);
            *self.shared.notice.lock() = Some(text);
        }
    }
}
