//! Functions for the code that the kernel writes around a cell; not meant to be called by hand.
//!
//! A cell becomes `begin(number)`, then `at(line, last_line)?` before each of its statements, and
//! `enter`/`leave` for an expanded `scope!`. An early end calls `failed` (a `?` met an error) or `panicked`, which
//! report it to the kernel with its line. [`unused`] is called for results that a statement drops.

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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use stratoscope_diagnostics::{Diagnostic, take_raised, unhandled};
use stratoscope_wire::ToKernel;

use crate::connection;

mod describe;
mod device;
pub mod evcxr;
mod interrupts;
mod last_line;
mod missing_device;
mod parity;
mod places;
mod request;
mod scopes;
mod shell;
mod thread_owner;
mod timing;
pub mod unused;

/// The variable that names the file descriptor of evcxr's own channel.
const PROTOCOL_VARIABLE: &str = "STRATOSCOPE_PROTOCOL_FD";

/// The statement that is running on this thread.
#[derive(Clone, Copy)]
struct Statement {
    /// Lines of the cell, counted from 1.
    lines: (u32, u32),
    /// Position of the call of [`at`] in the compiled text.
    compiled: &'static Location<'static>,
}

/// What the panic hook has seen.
struct Panic {
    message: String,
    /// The diagnostic, if one was raised.
    diagnostic: Option<Box<Diagnostic>>,
    line: Option<usize>,
    location: Option<String>,
}

thread_local! {
    static CELL: Cell<Option<u64>> = const { Cell::new(None) };
    static STATEMENT: Cell<Option<Statement>> = const { Cell::new(None) };
    static PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// The last panic of any other thread: `join` and rayon resume it on the cell's thread without calling
/// the hook.
static ELSEWHERE: Mutex<Option<Panic>> = Mutex::new(None);

/// Opens the connection and installs the panic hook. Returns a `Result` because the first cell must
/// contain a `?` for evcxr to allow it in later cells.
pub fn ready() -> Result<(), Infallible> {
    connection::is_open();
    // A cell may remove the variable that names it.
    channel();
    keep_panic_hook();
    // The warnings of `predict` are shown too, also before the first `compile!`.
    crate::progress::ready();
    Ok(())
}

/// Called by the cell process, which loads the library before the first cell.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_ready() {
    let Ok(()) = ready();
}

/// Called by the cell process: the library of a cell cannot be loaded, for this `reason` of `length` bytes.
///
/// # Safety
/// `length` bytes can be read at `reason`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stratoscope_not_loaded(reason: *const u8, length: usize) {
    // SAFETY: the caller's promise.
    let reason = unsafe { std::slice::from_raw_parts(reason, length) };
    connection::send(&ToKernel::NotLoaded {
        reason: String::from_utf8_lossy(reason).into_owned(),
    });
}

/// Begins a cell; a scope that an earlier cell has left open is closed.
pub fn begin(number: u64) {
    let Ok(()) = ready();
    CELL.set(Some(number));
    STATEMENT.set(None);
    last_line::set(0);
    PANIC.set(None);
    *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    // One that was formatted during a panic, and was not its cause.
    take_raised();
    unhandled::begin_cell();
    interrupts::clear();
    evcxr::begin();
    places::begin(number);
    crate::progress::begin_cell();
    scopes::begin(number);
}

/// Announces the statement on these lines of the cell.
///
/// # Errors
/// After an interrupt request, and after a statement that has dropped an error of ours: the statement must not run.
#[track_caller]
pub fn at(line: u32, last_line: u32) -> Result<(), evcxr::Halt> {
    if let Some(dropped) = unhandled::end_statement() {
        return Err(evcxr::Halt::Unhandled(dropped));
    }
    let compiled = Location::caller();
    last_line::set(line);
    STATEMENT.set(Some(Statement {
        lines: (line, last_line),
        compiled,
    }));
    // The statement before this one may have replaced it.
    keep_panic_hook();
    if let Some(cell) = CELL.get() {
        places::statement(compiled, (line, last_line));
        scopes::statement(cell, line);
    }
    evcxr::interruption()
}

pub(crate) use describe::all as described;
pub use device::device;
pub use interrupts::sleep;
pub use request::{Answered, request};
pub use scopes::{enter, guard, leave};
pub use shell::{ShellError, change_folder, environment, shell};
pub(crate) use thread_owner::addressed;
pub use timing::{clock, clocked, timeit};
pub use unused::{dropped, looks};

pub use crate::__dbg as dbg;
pub use crate::__print as print;
pub use places::place;

/// Flushes standard output, so that text without a line end is shown at once.
#[doc(hidden)]
#[inline(never)]
pub fn printed() {
    // An error of standard output makes the next `print!` panic.
    let _ = std::io::stdout().flush();
}

/// Reports that a `?` met `error`, which ends the cell.
pub fn failed<T: Display + ?Sized>(error: &T) {
    scopes::reset();
    connection::send(&ToKernel::Failed {
        diagnostic: as_diagnostic(error).map(|found| Box::new(found.clone())),
        message: error.to_string(),
        line: statement_line(),
    });
}

/// Reports a caught panic, which ends the cell.
pub fn panicked() {
    scopes::reset();
    evcxr::note_panic();
    let elsewhere = ELSEWHERE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let missing = elsewhere
        .as_ref()
        .and_then(|it| missing_device::explain(&it.message));
    let panic = PANIC.take().or(elsewhere).unwrap_or(Panic {
        message: "a panic without a message".to_owned(),
        diagnostic: None,
        line: None,
        location: None,
    });
    let line = panic.line.or_else(statement_line);
    let raised = panic
        .diagnostic
        .map(|it| unused::with_words(it, &panic.message));
    connection::send(&match raised.or(missing) {
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

/// Writes a line of evcxr's protocol to the channel that the kernel reads. Standard output is the cell's own.
pub fn protocol(line: &str) {
    match channel() {
        Some(_) if connection::is_child() => {}
        Some(mut channel) => {
            let _ = channel.write_all(format!("{line}\n").as_bytes());
        }
        None => println!("{line}"),
    }
}

fn channel() -> Option<&'static File> {
    static CHANNEL: OnceLock<Option<File>> = OnceLock::new();
    let channel = CHANNEL.get_or_init(|| {
        let number = std::env::var(PROTOCOL_VARIABLE).ok()?.parse().ok()?;
        // SAFETY: the cell process opened this descriptor before it loaded us, named it in its
        // own environment, and never closes it.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        Some(File::from(descriptor.try_clone_to_owned().ok()?))
    });
    channel.as_ref()
}

/// Whether an interrupt was requested while this cell runs. Long loops of a cell can check this and stop;
/// training checks between two steps.
pub fn interrupted() -> bool {
    interrupts::requested()
}

/// Notes an interrupt request of the kernel.
pub(crate) fn interrupt() {
    interrupts::request();
}

/// The first line of the statement that is running on this thread.
pub(crate) fn statement_line() -> Option<usize> {
    STATEMENT.get().map(|statement| statement.lines.0 as usize)
}

/// The panic hook: it notes a panic for the kernel, and then calls a hook that a cell has set.
type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Installs the panic hook. Where a cell has replaced it, the cell's hook is called behind it.
fn keep_panic_hook() {
    /// Where the closure of our hook is in memory, which tells it from any other.
    static OURS: AtomicUsize = AtomicUsize::new(0);
    static INSTALLED: Once = Once::new();
    let place = |hook: &Hook| std::ptr::from_ref(hook.as_ref()).cast::<()>().addr();
    let is_first = !INSTALLED.is_completed();
    let present = std::panic::take_hook();
    let hook: Hook = if is_first {
        // Not the standard library's, which prints the panic. The closure holds something, so that it has a place.
        let none: Option<Hook> = None;
        Box::new(move |info: &PanicHookInfo<'_>| note_and_call(info, none.as_ref()))
    } else if place(&present) == OURS.load(Ordering::Relaxed) {
        present
    } else {
        let of_the_cell = Some(present);
        Box::new(move |info: &PanicHookInfo<'_>| note_and_call(info, of_the_cell.as_ref()))
    };
    OURS.store(place(&hook), Ordering::Relaxed);
    std::panic::set_hook(hook);
    INSTALLED.call_once(|| {
        // A check of the course has caught it: it is part of an exercise, and no later panic repeats it.
        stratoscope_course::attempt::on_caught_panic(|| PANIC.set(None));
    });
}

fn note_and_call(info: &PanicHookInfo<'_>, next: Option<&Hook>) {
    note_panic(info);
    if let Some(next) = next {
        next(info);
    }
}

fn note_panic(info: &PanicHookInfo<'_>) {
    let diagnostic = take_raised();
    if crate::inspect::register::is_guarded() {
        return;
    }
    let message = info
        .payload_as_str()
        .unwrap_or("a panic whose message is not a text")
        .to_owned();
    let location = info.location().map(ToString::to_string);
    if let Some(statement) = STATEMENT.get() {
        if let Some(earlier) = PANIC.take() {
            // A panic of a destructor during another panic ends the process, and the kernel would only
            // report the second one.
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
    let mut elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
    // Its thread goes on, and panics for everything that it is asked.
    let is_explained = |it: &Panic| missing_device::is_meant(&it.message);
    if !elsewhere.as_ref().is_some_and(is_explained) {
        *elsewhere = Some(Panic {
            message,
            diagnostic,
            line: None,
            location,
        });
    }
}

/// The line of the cell for `place`, if it is inside the running statement. The compiled text keeps the lines of a
/// statement together, so the distance to the call of [`at`] gives the line.
fn place_in(statement: Statement, place: &Location<'_>) -> Option<usize> {
    if place.file() != statement.compiled.file() {
        return None;
    }
    let (first, last) = statement.lines;
    let distance = place.line().checked_sub(statement.compiled.line())?;
    // evcxr adds a line end after the call: the statement begins on the next compiled line.
    let line = first + distance.checked_sub(1)?;
    (line <= last).then_some(line as usize)
}

/// The diagnostic in an error of any type: the error itself, one in a box, or a source of it.
fn as_diagnostic<T: ?Sized>(error: &T) -> Option<&Diagnostic> {
    if let Some(diagnostic) = downcast::<T, Diagnostic>(error) {
        return Some(diagnostic);
    }
    if let Some(diagnostic) = downcast::<T, Box<Diagnostic>>(error) {
        return Some(diagnostic);
    }
    if let Some(evcxr::Halt::Unhandled(diagnostic)) = downcast::<T, evcxr::Halt>(error) {
        return Some(diagnostic);
    }
    if let Some(error) = downcast::<T, Box<dyn Error>>(error) {
        return in_chain(error.as_ref());
    }
    let error = downcast::<T, Box<dyn Error + Send + Sync>>(error)?;
    in_chain(error.as_ref())
}

/// The value as `U`, if it is one. `T` may contain lifetimes and need not be [`std::any::Any`].
fn downcast<T: ?Sized, U: 'static>(value: &T) -> Option<&U> {
    if type_id::<T>() != TypeId::of::<U>() {
        return None;
    }
    // SAFETY: the identities are equal, so `T` is `U` up to lifetimes, and `value` is a thin pointer since `U` is sized.
    // `U` has no lifetime of its own except as the bound of a trait object in a box; the reference returned lives as long
    // as `value`, and `in_chain` gets only a `Diagnostic` out of such an object, which has none either.
    Some(unsafe { &*(value as *const T).cast::<U>() })
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

/// The identity of a type that may contain lifetimes, as the error of a `?` may. Lifetimes are erased: equal identities
/// say nothing about how long a value lives. Used by [`downcast`] only.
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
    // SAFETY: only the lifetime bound of the trait object changes. The marker holds no data, and the
    // one method that is called reads nothing through it.
    let marker = unsafe { std::mem::transmute::<&dyn Identity, &(dyn Identity + 'static)>(marker) };
    marker.identity()
}
