//! A cell and its syntax, for whoever needs it and on whatever thread that is.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::syntax::{STACK_BYTES, Source, Syntax};

/// A cell that is parsed once. Copies share the tree.
///
/// ```
/// use stratoscope_cell_syntax::CellSyntax;
///
/// let cell = CellSyntax::of("let x = 1;");
/// let statements = cell.read(|syntax| Some(syntax.statements()?.len()));
/// assert_eq!(statements, Some(1));
/// ```
#[derive(Clone)]
pub struct CellSyntax(Arc<Shared>);

struct Shared {
    /// As typed.
    code: Arc<str>,
    source: Source,
    reader: Mutex<Reader>,
}

/// The thread that has the tree.
enum Reader {
    /// Nobody has asked yet.
    NotStarted,
    /// It waits for readers.
    Waits(Sender<Job>),
    /// The cell is over: whoever asks later has the text parsed again.
    Over,
}

/// What reads the tree, and sends what it has found.
type Job = Box<dyn FnOnce(&Syntax) + Send>;

impl CellSyntax {
    /// Of a text. It is parsed when somebody asks.
    pub fn of(code: &str) -> Self {
        let code: Arc<str> = code.into();
        Self::with_rust(code.clone(), code, 0)
    }

    /// Of a cell `code` whose Rust code begins at byte `head`. `text` is the cell as it is parsed, byte for byte in its place: in
    /// it what stands for no Rust is blank.
    pub fn with_rust(code: Arc<str>, text: Arc<str>, head: usize) -> Self {
        debug_assert_eq!(code.len(), text.len());
        Self(Arc::new(Shared {
            code,
            source: Source { text, head },
            reader: Mutex::new(Reader::NotStarted),
        }))
    }

    /// The cell as typed.
    pub fn code(&self) -> &Arc<str> {
        &self.0.code
    }

    /// The cell without what stands for no Rust.
    pub fn text(&self) -> &Arc<str> {
        &self.0.source.text
    }

    /// Where the Rust code begins.
    pub fn head(&self) -> usize {
        self.0.source.head
    }

    /// What `read` makes of the syntax. It runs on the thread that has it, after those that have asked before, and must not
    /// ask for the same cell. `None` where `read` returns that or panics, and where no thread can be started.
    pub fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Syntax) -> Option<R> + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = mpsc::channel();
        let job = move |syntax: &Syntax| {
            // A panic of one reader is none of the next.
            let found = catch_unwind(AssertUnwindSafe(|| read(syntax)));
            let _ = answer.send(found.ok().flatten());
        };
        self.hand(Box::new(job))?;
        answered.recv().ok()?
    }

    /// The cell is over: ends the thread, and with it the tree. A late reader, as of what a thread of the cell displays, has the
    /// text parsed for itself.
    pub fn end(&self) {
        *self.reader() = Reader::Over;
    }

    fn hand(&self, job: Job) -> Option<()> {
        let mut reader = self.reader();
        match &*reader {
            Reader::Waits(jobs) => jobs.send(job).ok(),
            Reader::NotStarted => {
                let jobs = start(self.0.source.clone())?;
                jobs.send(job).ok()?;
                *reader = Reader::Waits(jobs);
                Some(())
            }
            Reader::Over => start(self.0.source.clone())?.send(job).ok(),
        }
    }

    fn reader(&self) -> std::sync::MutexGuard<'_, Reader> {
        let reader = self.0.reader.lock();
        reader.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread that parses, and ends when nobody can ask any more.
fn start(source: Source) -> Option<Sender<Job>> {
    let (jobs, waiting) = mpsc::channel::<Job>();
    let work = move || {
        let syntax = Syntax::read(source);
        waiting.iter().for_each(|job| job(&syntax));
    };
    let thread = thread::Builder::new()
        .name("cell-syntax".to_owned())
        .stack_size(STACK_BYTES);
    thread.spawn(work).ok()?;
    Some(jobs)
}

impl fmt::Debug for CellSyntax {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("CellSyntax")
            .field(&self.0.code)
            .finish()
    }
}

/// Functions that read a cell take a text, too.
impl<T: AsRef<str> + ?Sized> From<&T> for CellSyntax {
    fn from(text: &T) -> Self {
        Self::of(text.as_ref())
    }
}

impl From<&Self> for CellSyntax {
    fn from(cell: &Self) -> Self {
        cell.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_all_threads_share_one_tree() {
        let cell = CellSyntax::of("let a = 1;\nlet b = 2;");
        // A reader's thread is that of the tree.
        let thread = |cell: &CellSyntax| cell.read(|_| Some(thread::current().id()));
        let first = thread(&cell).expect("a thread");
        thread::scope(|threads| {
            let others = [0; 4].map(|_| threads.spawn(|| thread(&cell.clone())));
            for other in others {
                assert_eq!(other.join().expect("no panic"), Some(first));
            }
        });
        cell.end();
        let statements = |cell: &CellSyntax| cell.read(|it| Some(it.statements()?.len()));
        assert_eq!(statements(&cell), Some(2), "a late reader");
        assert_ne!(thread(&cell), Some(first));
    }

    #[test]
    fn a_panic_of_a_reader_costs_its_answer() {
        let cell = CellSyntax::of("f(");
        assert_eq!(cell.read(|_| -> Option<()> { panic!("a reader") }), None);
        assert_eq!(cell.read(|syntax| Some(syntax.is_rust())), Some(false));
    }
}
