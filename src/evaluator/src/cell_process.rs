//! The process that runs the cells: `stratoscope cells`, started by evcxr on behalf of the kernel.
//!
//! It speaks evcxr's small protocol: a line `LOAD_AND_RUN library function` comes in, the function
//! runs, a line says that it has ended. The protocol has the process's original standard input and
//! output to itself: before anything else, those move out of the way and the cell's own standard
//! streams become named pipes that the kernel reads. A cell may therefore print any bytes,
//! with or without a line's end. What its `thread_owner` print when another cell runs goes to its own
//! cell.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libloading::Library;
use stratoscope_compile::evcxr_contract::{EXECUTION_COMPLETE, LOAD_AND_RUN, USER_ERROR};

pub mod foreign_output;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod interpose;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod left_traps;
#[cfg(target_os = "linux")]
mod signal_stack;
mod stream_order;
mod thread_owner;

/// Names the folder with the pipes `stdout`, `stderr` and [`foreign_output::NAME`].
pub const STREAMS_VARIABLE: &str = "STRATOSCOPE_STREAMS";
/// Names the facade, which is loaded before the first cell needs it.
pub const LIBRARY_VARIABLE: &str = "STRATOSCOPE_LIBRARY";
/// Names the descriptor on which evcxr's protocol continues, for the facade.
const PROTOCOL_VARIABLE: &str = "STRATOSCOPE_PROTOCOL_FD";
/// On the original standard error: a cell starts, a cell has ended.
pub const STARTS: &str = "stratoscope: starts";
/// See [`STARTS`].
pub const ENDED: &str = "stratoscope: ended";

/// Cells run on a thread with room for deep recursion; only what is used takes memory.
const STACK_BYTES: usize = 256 << 20;

/// Runs until standard input ends.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the process for cells cannot work: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> std::io::Result<()> {
    stratoscope_os::process::start_own_group_and_die_with_parent();
    #[cfg(target_os = "linux")]
    allow_the_debugger();
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    left_traps::remove();
    let protocol = Protocol::take_over()?;
    let cells = std::thread::Builder::new()
        .name("cells".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            #[cfg(target_os = "linux")]
            signal_stack::enlarge();
            // On this thread, so that thread-locals of the facade are those that the cells see.
            let facade =
                std::env::var_os(LIBRARY_VARIABLE).and_then(|path| prepare(Path::new(&path)));
            protocol.serve(facade.as_ref());
            std::mem::forget(facade);
        })?;
    cells
        .join()
        .map_err(|_| std::io::Error::other("the thread of the cells panicked"))
}

/// Loads the facade and lets it connect, while the kernel is still getting ready.
fn prepare(path: &Path) -> Option<Library> {
    // SAFETY: the facade's initializers are those of Rust crates that cells load anyway.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: the facade defines it with this signature.
    let ready = unsafe { library.get::<extern "C" fn()>(b"stratoscope_ready") }.ok()?;
    ready();
    type ThreadOwner = extern "C" fn() -> u64;
    // SAFETY: the facade defines it with this signature.
    let set_owner =
        unsafe { library.get::<extern "C" fn(ThreadOwner)>(b"stratoscope_set_thread_owner") };
    if let Ok(set_owner) = set_owner {
        set_owner(thread_owner::of_another_run);
    }
    Some(library)
}

/// Reports to the kernel why a cell could not be loaded. `false`: there is no facade to report it through.
fn report(facade: Option<&Library>, reason: &str) -> bool {
    type NotLoaded = unsafe extern "C" fn(*const u8, usize);
    // SAFETY: the facade defines it with this signature.
    let found = facade.map(|it| unsafe { it.get::<NotLoaded>(b"stratoscope_not_loaded") });
    let Some(Ok(not_loaded)) = found else {
        return false;
    };
    // SAFETY: pointer and length are those of a text that lives until the call returns.
    unsafe { not_loaded(reason.as_ptr(), reason.len()) };
    true
}

/// How many descriptors a cell cannot use up: loading one opens its library and those that it names.
const RESERVED_DESCRIPTORS: usize = 8;

/// Descriptors for the loader: a cell that has used up all others must not keep the next one, which may free them, from
/// being loaded.
struct Reserve(Vec<File>);

impl Reserve {
    fn new() -> Self {
        let mut reserve = Self(Vec::new());
        reserve.fill();
        reserve
    }

    fn fill(&mut self) {
        while self.0.len() < RESERVED_DESCRIPTORS
            && let Ok(file) = File::open("/dev/null")
        {
            self.0.push(file);
        }
    }

    /// Does `work` with these descriptors free.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.0.clear();
        let result = work();
        self.fill();
        result
    }
}

/// evcxr's channel.
struct Protocol {
    commands: File,
    replies: File,
    /// Read by the kernel as evcxr's standard error.
    events: File,
    /// See [`thread_owner`]; open as long as the process lives.
    foreign_output: Option<File>,
    /// Never unloaded: threads and thread-locals of cells may still use their code.
    loaded: Vec<Library>,
    reserve: Reserve,
    variables: *mut c_void,
}

// SAFETY: the pointer is only ever handed to cells, on the one thread that owns this value.
unsafe impl Send for Protocol {}

impl Protocol {
    /// Moves the three standard descriptors away and puts the cell's own in their places.
    fn take_over() -> std::io::Result<Self> {
        let stdin = std::io::stdin();
        let own = |descriptor: RawFd| -> std::io::Result<File> {
            // SAFETY: 0, 1 and 2 are open: evcxr started us with three pipes.
            let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
            Ok(File::from(borrowed.try_clone_to_owned()?))
        };
        let mut protocol = Self {
            commands: own(stdin.as_raw_fd())?,
            replies: own(libc::STDOUT_FILENO)?,
            events: own(libc::STDERR_FILENO)?,
            foreign_output: None,
            loaded: Vec::new(),
            reserve: Reserve::new(),
            variables: std::ptr::null_mut(),
        };
        if let Some(folder) = std::env::var_os(STREAMS_VARIABLE).map(PathBuf::from) {
            let open = |name: &str| OpenOptions::new().write(true).open(folder.join(name));
            become_standard(open("stdout")?.into(), libc::STDOUT_FILENO)?;
            become_standard(open("stderr")?.into(), libc::STDERR_FILENO)?;
            stream_order::begin();
            let foreign = open(foreign_output::NAME)?;
            thread_owner::listen(foreign.as_raw_fd());
            protocol.foreign_output = Some(foreign);
        }
        become_standard(File::open("/dev/null")?.into(), libc::STDIN_FILENO)?;
        let channel = protocol.replies.as_raw_fd().to_string();
        // SAFETY: no other thread exists yet.
        unsafe {
            std::env::set_var(PROTOCOL_VARIABLE, channel);
            // evcxr sets it, and a backtrace of our code and evcxr's is of no use in a notebook.
            std::env::remove_var("RUST_BACKTRACE");
        }
        Ok(protocol)
    }

    fn serve(mut self, facade: Option<&Library>) {
        let Ok(commands) = self.commands.try_clone() else {
            return;
        };
        let process = std::process::id();
        for line in BufReader::new(commands).lines() {
            let Ok(line) = line else { return };
            // A path may have spaces.
            let order = line.strip_prefix(LOAD_AND_RUN);
            let Some((path, function)) = order.and_then(|it| it.rsplit_once(' ')) else {
                eprintln!("the kernel sent something unexpected: {line}");
                std::process::exit(99);
            };
            let _ = writeln!(self.events, "{STARTS}");
            if let Err(error) = self.load_and_run(path, function) {
                let reason = reason_of(&error);
                // Nothing of the cell has run, so this is an error of the cell, and the process goes on.
                if !report(facade, &reason) || writeln!(self.replies, "{USER_ERROR}").is_err() {
                    eprintln!("the cell cannot be loaded: {reason}");
                    std::process::exit(99);
                }
            }
            if std::process::id() != process {
                // A child that the cell has forked ends with the cell; its parent answers and goes on.
                // SAFETY: it ends this process and touches no memory.
                unsafe { libc::_exit(0) };
            }
            let _ = writeln!(self.events, "{ENDED}");
            if writeln!(self.replies, "{EXECUTION_COMPLETE}").is_err() {
                return;
            }
        }
    }

    fn load_and_run(&mut self, path: &str, function: &str) -> Result<(), libloading::Error> {
        type Entry = extern "C" fn(*mut c_void) -> *mut c_void;
        let library = self.reserve.lend(|| load(path))?;
        self.loaded.push(library);
        let run = self.loaded.len() as u64;
        // SAFETY: every cell's entry has this signature.
        let entry =
            unsafe { self.loaded[self.loaded.len() - 1].get::<Entry>(function.as_bytes()) }?;
        stratoscope_cell_loaded();
        thread_owner::begin(run);
        self.variables = entry(self.variables);
        thread_owner::end();
        Ok(())
    }
}

/// A debugger that is attached stops here and sets the breakpoints of a cell that is loaded and has not run.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn stratoscope_cell_loaded() {
    std::hint::black_box(());
}

/// Lets the kernel's descendants trace this process, where only ancestors may otherwise (Yama).
#[cfg(target_os = "linux")]
fn allow_the_debugger() {
    // SAFETY: plain system calls; a kernel without Yama refuses, and needs no permission.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::getppid()) };
}

/// The words of the loader about its error.
fn reason_of(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// Loads a cell. The statics of one that has some are those of the cells that come, too.
fn load(path: &str) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as Native, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
    let symbol = stratoscope_cell_text::rewrite::items::SYMBOL.as_bytes();
    let has_statics =
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(symbol.len()).any(|it| it == symbol));
    let scope = if has_statics { RTLD_GLOBAL } else { RTLD_LOCAL };
    // SAFETY: the library is what rustc made of a cell; the kernel names its entry.
    unsafe { Native::open(Some(path), RTLD_NOW | scope) }.map(Library::from)
}

impl Drop for Protocol {
    fn drop(&mut self) {
        for library in self.loaded.drain(..) {
            std::mem::forget(library);
        }
    }
}

fn become_standard(file: OwnedFd, descriptor: RawFd) -> std::io::Result<()> {
    // SAFETY: both descriptors are open and ours.
    match unsafe { libc::dup2(file.as_raw_fd(), descriptor) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
