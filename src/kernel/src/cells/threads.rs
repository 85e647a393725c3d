//! Whose text it is. The standard streams of the cells are two pipes, and a pipe does not say who
//! wrote: what a thread prints that outlives its cell would be taken for the text of whichever cell
//! runs then.
//!
//! So a thread belongs to the run (the loading of one cell) in which it was started, or in which the
//! thread was that started it. Whatever a thread of another run than the present one writes to the
//! standard streams goes, with the number of its run, through a third pipe ([`late`]); everything
//! else goes the plain way, in order. Both are done where all of Rust's printing comes by, in cells,
//! in their crates and in the standard library: this executable has its own `pthread_create` and
//! `write`, which libraries that are loaded later find before those of the C library. What `printf`
//! of C writes does not come by.
//!
//! [`late`]: super::late

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::late;

thread_local! {
    /// The run that this thread belongs to; 0: it was there before any.
    static RUN: Cell<u64> = const { Cell::new(0) };
}

/// The run that is in progress; 0: none.
static PRESENT: AtomicU64 = AtomicU64::new(0);

/// The descriptor of the third pipe; before it is set, everything goes the plain way.
static LATE: AtomicI32 = AtomicI32::new(-1);

/// Threads of the library that work for whoever calls, however old they are: see
/// `stratoscope_strategy`'s threads.
const OF_THE_LIBRARY: &[u8] = b"replica-";

/// What is written late goes to this descriptor from now on.
pub fn listen(descriptor: c_int) {
    LATE.store(descriptor, Ordering::SeqCst);
}

/// This thread begins a run.
pub fn begin(run: u64) {
    let _ = late::begin(LATE.load(Ordering::SeqCst), run);
    RUN.set(run);
    PRESENT.store(run, Ordering::SeqCst);
}

/// The run is over; its threads need not be.
pub fn end() {
    PRESENT.store(0, Ordering::SeqCst);
}

/// The run that this thread belongs to, if that is not the present one; 0 otherwise. Called by the
/// facade, too, before it shows something.
pub extern "C" fn of_another_run() -> u64 {
    let run = RUN.get();
    let is_other = run != 0 && run != PRESENT.load(Ordering::SeqCst);
    if is_other && !is_of_the_library() {
        run
    } else {
        0
    }
}

fn is_of_the_library() -> bool {
    // As long as the system lets names be.
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes.
    let known = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) } == 0;
    known && name.starts_with(OF_THE_LIBRARY)
}

/// The two functions of the C library that stand in for its own. Both may be called by any thread of
/// the process at any time, `write` in a signal's handler too: neither locks, and only a thread that
/// is being started takes memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod in_place {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{LATE, RUN, late, of_another_run};

    type Body = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Body,
        *mut c_void,
    ) -> c_int;

    /// As the C library's, save that late text takes the third pipe.
    ///
    /// # Safety
    /// As there: `count` bytes can be read at `bytes`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
        let is_standard = descriptor == libc::STDOUT_FILENO || descriptor == libc::STDERR_FILENO;
        if is_standard && count > 0 {
            let channel = LATE.load(Ordering::SeqCst);
            if channel >= 0 {
                let run = of_another_run();
                if run != 0 {
                    // SAFETY: the caller's promise.
                    let text = unsafe { std::slice::from_raw_parts(bytes.cast(), count) };
                    return late::text(channel, run, descriptor, text);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_write, descriptor, bytes, count) as isize }
    }

    /// What a new thread does, and whose it is.
    struct Start {
        body: Body,
        argument: *mut c_void,
        run: u64,
    }

    /// As the C library's, save that the thread belongs to the run of the one that starts it.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        body: Body,
        argument: *mut c_void,
    ) -> c_int {
        let Some(create) = of_the_c_library() else {
            return libc::EAGAIN;
        };
        let run = RUN.get();
        if run == 0 {
            // SAFETY: the caller's promise.
            return unsafe { create(thread, attributes, body, argument) };
        }
        let start = Box::into_raw(Box::new(Start {
            body,
            argument,
            run,
        }));
        // SAFETY: the caller's promise; the new thread owns what it is given.
        let result = unsafe { create(thread, attributes, inherit, start.cast()) };
        if result != 0 {
            // SAFETY: there is no thread that could own it.
            drop(unsafe { Box::from_raw(start) });
        }
        result
    }

    unsafe extern "C-unwind" fn inherit(start: *mut c_void) -> *mut c_void {
        // SAFETY: `pthread_create` above has made it for this thread alone.
        let start = unsafe { Box::from_raw(start.cast::<Start>()) };
        let Start {
            body,
            argument,
            run,
        } = *start;
        RUN.set(run);
        // SAFETY: what the caller of `pthread_create` has promised about its own function.
        unsafe { body(argument) }
    }

    /// The next `pthread_create` behind ours.
    fn of_the_c_library() -> Option<Create> {
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        let mut found = FOUND.load(Ordering::Relaxed);
        if found == 0 {
            // SAFETY: a C string; the name has one meaning.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) } as usize;
            FOUND.store(found, Ordering::Relaxed);
        }
        // SAFETY: it is that function, whose signature this is.
        (found != 0).then(|| unsafe { std::mem::transmute::<usize, Create>(found) })
    }
}
