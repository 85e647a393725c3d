//! The cell that a thread belongs to. The standard streams of the cells are two pipes, and a pipe does not show who
//! wrote: output of a thread that outlives its cell would be attributed to whichever cell runs then.
//!
//! A thread belongs to the run (the loading of one cell) in which it was started, or to the run of the thread that
//! started it. What a thread of an earlier run writes to the standard streams goes, with the number of its run, through
//! a third pipe ([`foreign_output`]); all other output goes the plain way, in the order of writing ([`stream_order`]).
//! Both happen in the functions that all of Rust's printing calls ([`interpose`]). Output of C's `printf` does not pass
//! there.
//!
//! [`foreign_output`]: super::foreign_output
//! [`stream_order`]: super::stream_order
//! [`interpose`]: super::interpose

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::foreign_output;

thread_local! {
    /// The run that this thread belongs to; 0: it was there before any.
    static RUN: Cell<u64> = const { Cell::new(0) };
}

/// The run that is in progress; 0: none.
static PRESENT: AtomicU64 = AtomicU64::new(0);

/// The descriptor of the third pipe; before it is set, everything goes the plain way.
static FOREIGN_OUTPUT: AtomicI32 = AtomicI32::new(-1);

/// How the names of threads begin that work for whoever calls, however old they are: those of
/// `stratoscope_strategy`, and those of tokio's executors, which later cells without an `await` share. Other pools do
/// not name theirs.
const OF_POOLS: [&[u8]; 2] = [b"replica-", b"tokio-r"];

/// What is written late goes to this descriptor from now on.
pub fn listen(descriptor: c_int) {
    FOREIGN_OUTPUT.store(descriptor, Ordering::SeqCst);
}

/// The descriptor for what is written late; -1 before there is one.
pub fn foreign_output() -> c_int {
    FOREIGN_OUTPUT.load(Ordering::SeqCst)
}

/// The run that this thread belongs to; 0: none.
pub fn run() -> u64 {
    RUN.get()
}

/// This thread belongs to the run of the one that has started it.
pub fn inherit(run: u64) {
    RUN.set(run);
}

/// This thread begins a run.
pub fn begin(run: u64) {
    let _ = foreign_output::begin(foreign_output(), run);
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
    if is_other && !is_of_a_pool() { run } else { 0 }
}

fn is_of_a_pool() -> bool {
    // As long as the system lets names be.
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes.
    let known = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) } == 0;
    known && OF_POOLS.iter().any(|it| name.starts_with(it))
}
