//! Called by the code that the kernel writes around a cell; not meant to be called by hand.
//!
//! A cell becomes `begin(number)`, then `at(line, last_line)?` before each of its statements, and
//! `enter`/`leave` where a `scope!` was opened up. What ends it early arrives here too: `failed`
//! (a `?` met an error) and `panicked`. Each tells the kernel, on the wire, what happened and
//! where in the cell.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::panic::{Location, PanicHookInfo};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use stratoscope_diagnostics::{Diagnostic, take_raised};
use stratoscope_wire::ToKernel;

use crate::connection;

mod describe;
pub mod evcxr;
mod interrupts;
mod last_line;
mod places;
mod scopes;
mod shell;
mod timing;
mod whose;

/// The variable that names the file descriptor of evcxr's own channel.
const PROTOCOL_VARIABLE: &str = "STRATOSCOPE_PROTOCOL_FD";

/// The statement that runs on this thread.
#[derive(Clone, Copy)]
struct Statement {
    /// Lines of the cell, counted from 1.
    lines: (u32, u32),
    /// Where the call of [`at`] stands in what was compiled.
    compiled: &'static Location<'static>,
}

/// A panic as the hook saw it.
struct Panic {
    message: String,
    /// The diagnostic that was raised, where one was.
    diagnostic: Option<Box<Diagnostic>>,
    line: Option<usize>,
    location: Option<String>,
}

thread_local! {
    static CELL: Cell<Option<u64>> = const { Cell::new(None) };
    static STATEMENT: Cell<Option<Statement>> = const { Cell::new(None) };
    static PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// The last panic of any other thread: `join` and rayon raise it again on the cell's thread, where
/// no hook sees it.
static ELSEWHERE: Mutex<Option<Panic>> = Mutex::new(None);

/// Opens the connection and installs the panic hook. Returns a `Result` because the first cell
/// wants a `?`, which tells evcxr to allow it from then on.
pub fn ready() -> Result<(), Infallible> {
    connection::is_open();
    install_panic_hook();
    // What `predict` tells is shown too, before any `compile!`.
    crate::progress::ready();
    Ok(())
}

/// Loaded ahead of the first cell by the cell process, which knows only this name.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_ready() {
    let Ok(()) = ready();
}

/// A cell begins: whatever scope an earlier cell left open is closed.
pub fn begin(number: u64) {
    let Ok(()) = ready();
    CELL.set(Some(number));
    STATEMENT.set(None);
    last_line::set(0);
    PANIC.set(None);
    *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    interrupts::clear();
    evcxr::begin();
    places::begin(number);
    scopes::begin(number);
}

/// The statement on these lines of the cell comes next.
///
/// # Errors
/// The interrupt button was pressed: the statement must not run.
#[track_caller]
pub fn at(line: u32, last_line: u32) -> Result<(), evcxr::Interrupted> {
    let compiled = Location::caller();
    last_line::set(line);
    STATEMENT.set(Some(Statement {
        lines: (line, last_line),
        compiled,
    }));
    if let Some(cell) = CELL.get() {
        places::statement(compiled, (line, last_line));
        scopes::statement(cell, line);
    }
    evcxr::interruption()
}

pub(crate) use describe::all as described;
pub use interrupts::sleep;
pub use scopes::{enter, guard, leave};
pub use shell::{ShellError, environment, shell};
pub use timing::{clock, clocked, timeit};
pub(crate) use whose::addressed;

pub use crate::__dbg as dbg;
pub use crate::__print as print;
pub use places::place;

/// What was printed without a line's end is seen now, and not with the rest of its line.
#[doc(hidden)]
#[inline(never)]
pub fn printed() {
    // As `print!` itself, which panics where this fails.
    let _ = std::io::stdout().flush();
}

/// A `?` of the cell met `error`: the cell is over.
pub fn failed<T: Display + ?Sized>(error: &T) {
    scopes::reset();
    connection::send(&ToKernel::Failed {
        diagnostic: as_diagnostic(error).map(|found| Box::new(found.clone())),
        message: error.to_string(),
        line: statement_line(),
    });
}

/// The cell panicked and was caught: the cell is over.
pub fn panicked() {
    scopes::reset();
    evcxr::note_panic();
    let elsewhere = || {
        let mut elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.take()
    };
    let panic = PANIC.take().or_else(elsewhere).unwrap_or(Panic {
        message: "a panic without a message".to_owned(),
        diagnostic: None,
        line: None,
        location: None,
    });
    let line = panic.line.or_else(statement_line);
    connection::send(&match panic.diagnostic {
        Some(diagnostic) => ToKernel::Failed {
            message: diagnostic.to_string(),
            diagnostic: Some(diagnostic),
            line,
        },
        None => ToKernel::Panicked {
            message: panic.message,
            line,
            location: panic.location,
        },
    });
    protocol("EVCXR_PANIC_NOTIFICATION");
}

/// Writes a line of evcxr's protocol where the kernel reads it: not to standard output, which is
/// the cell's own.
pub fn protocol(line: &str) {
    static CHANNEL: OnceLock<Option<File>> = OnceLock::new();
    let channel = CHANNEL.get_or_init(|| {
        let number = std::env::var(PROTOCOL_VARIABLE).ok()?.parse().ok()?;
        // SAFETY: the cell process opened this descriptor before it loaded us, named it in its
        // own environment, and never closes it.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        Some(File::from(descriptor.try_clone_to_owned().ok()?))
    });
    match channel {
        Some(channel) => {
            let mut channel: &File = channel;
            let _ = channel.write_all(format!("{line}\n").as_bytes());
        }
        None => println!("{line}"),
    }
}

/// Whether the interrupt button was pressed while this cell runs. Long loops of one's own may ask
/// and stop; training asks between two steps.
pub fn interrupted() -> bool {
    interrupts::requested()
}

/// The interrupt button was pressed.
pub(crate) fn interrupt() {
    interrupts::request();
}

/// The first line of the statement that runs on this thread.
pub(crate) fn statement_line() -> Option<usize> {
    STATEMENT.get().map(|statement| statement.lines.0 as usize)
}

fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| std::panic::set_hook(Box::new(note_panic)));
}

fn note_panic(info: &PanicHookInfo<'_>) {
    let diagnostic = take_raised();
    let message = info
        .payload_as_str()
        .unwrap_or("a panic whose message is not a text")
        .to_owned();
    let location = info.location().map(ToString::to_string);
    if let Some(statement) = STATEMENT.get() {
        if let Some(earlier) = PANIC.take() {
            // A panic of a destructor while another was under way ends the process, and only the
            // last one would be told of.
            let line = earlier
                .line
                .map_or(String::new(), |line| format!(" on line {line}"));
            eprintln!("panicked{line}: {}", earlier.message);
        }
        let line = info.location().and_then(|place| place_in(statement, place));
        PANIC.set(Some(Panic {
            message,
            diagnostic,
            line,
            location,
        }));
        return;
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let place = info.location().map_or_else(
        || "an unknown place".to_owned(),
        |it| places::place(it.file(), it.line()),
    );
    eprintln!("thread '{name}' panicked at {place}:\n{message}");
    *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Panic {
        message,
        diagnostic,
        line: None,
        location,
    });
}

/// The line of the cell that `place` is on, if it is inside the running statement: the compiled
/// text keeps the lines of a statement together, so the distance to the call of [`at`] counts.
fn place_in(statement: Statement, place: &Location<'_>) -> Option<usize> {
    if place.file() != statement.compiled.file() {
        return None;
    }
    let (first, last) = statement.lines;
    let distance = place.line().checked_sub(statement.compiled.line())?;
    // evcxr ends a segment after the call: the statement begins on the next compiled line.
    let line = first + distance.checked_sub(1)?;
    (line <= last).then_some(line as usize)
}

/// The diagnostic in an error of any type: one itself, or in a box.
fn as_diagnostic<T: ?Sized>(error: &T) -> Option<&Diagnostic> {
    let id = type_id::<T>();
    // SAFETY (each cast): the identities of the types are equal and the target types have no
    // lifetimes, so `T` is exactly the target type; a thin pointer, since the targets are sized.
    let pointer = (error as *const T).cast::<()>();
    if id == TypeId::of::<Box<Diagnostic>>() {
        return Some(unsafe { &*pointer.cast::<Box<Diagnostic>>() });
    }
    if id == TypeId::of::<Diagnostic>() {
        return Some(unsafe { &*pointer.cast::<Diagnostic>() });
    }
    if id == TypeId::of::<Box<dyn Error>>() {
        let error = unsafe { &*pointer.cast::<Box<dyn Error>>() };
        return in_chain(error.as_ref());
    }
    if id == TypeId::of::<Box<dyn Error + Send + Sync>>() {
        let error = unsafe { &*pointer.cast::<Box<dyn Error + Send + Sync>>() };
        return in_chain(error.as_ref());
    }
    None
}

fn in_chain<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Diagnostic> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<Diagnostic>() {
            return Some(found);
        }
        if let Some(found) = error.downcast_ref::<Box<Diagnostic>>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The identity of a type that may contain lifetimes, which the error of a `?` is allowed to:
/// lifetimes are erased, so it says which type it is but not how long it lives. [`as_diagnostic`]
/// compares it with types that contain none.
fn type_id<T: ?Sized>() -> TypeId {
    trait Identity {
        fn identity(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Identity for PhantomData<T> {
        fn identity(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let marker = PhantomData::<T>;
    let marker: &dyn Identity = &marker;
    // SAFETY: only the lifetime bound of the trait object changes; the marker holds no data, and
    // the one method called reads nothing through it.
    let marker = unsafe { std::mem::transmute::<&dyn Identity, &(dyn Identity + 'static)>(marker) };
    marker.identity()
}
