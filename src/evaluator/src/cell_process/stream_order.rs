//! Keeps the order of what is written to the two standard streams. They are two pipes, and a reader of two pipes cannot
//! see which was written to first. So a thread writes to one only after the kernel has read what is in the other, and a
//! child process, which writes to both at will, is started only after the kernel has read both.
//!
//! Called by [`super::interpose`] in any thread and in signal handlers: nothing here locks or allocates.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel reads at once unless its front end is slow; then the order is given up, and not the cell's
/// time.
const PATIENCE_NANOSECONDS: i64 = 100_000_000;
/// Between two looks.
const PAUSE_NANOSECONDS: i64 = 20_000;

/// The pipes by their descriptors; 0: not known.
static PIPES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The standard streams are the kernel's pipes from now on.
pub fn begin() {
    for descriptor in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        PIPES[descriptor as usize].store(identity(descriptor), Ordering::Relaxed);
    }
}

/// Returns when what is in the other stream's pipe has been read.
pub fn before_writing_to(descriptor: c_int) {
    wait_for(match descriptor {
        libc::STDOUT_FILENO => libc::STDERR_FILENO,
        _ => libc::STDOUT_FILENO,
    });
}

/// Returns when what is in both has been read.
pub fn before_a_child() {
    wait_for(libc::STDOUT_FILENO);
    wait_for(libc::STDERR_FILENO);
}

fn wait_for(descriptor: c_int) {
    if waiting(descriptor) == 0 || !is_ours(descriptor) {
        return;
    }
    let begun = now();
    while waiting(descriptor) > 0 && now() - begun < PATIENCE_NANOSECONDS {
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: PAUSE_NANOSECONDS,
        };
        // SAFETY: a valid time; what remains of it is not wanted.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
}

/// How many bytes are in the pipe.
fn waiting(descriptor: c_int) -> c_int {
    let mut bytes: c_int = 0;
    // SAFETY: the call writes one integer, if the descriptor is one it is for.
    unsafe { libc::ioctl(descriptor, libc::FIONREAD, &raw mut bytes) };
    bytes
}

/// A cell may have put a file of its own there.
fn is_ours(descriptor: c_int) -> bool {
    let known = PIPES[descriptor as usize].load(Ordering::Relaxed);
    known != 0 && known == identity(descriptor)
}

/// The number of the file behind the descriptor.
fn identity(descriptor: c_int) -> u64 {
    // SAFETY: all bytes may be zero.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the call fills in the structure.
    let known = unsafe { libc::fstat(descriptor, &raw mut status) } == 0;
    if known { status.st_ino } else { 0 }
}

/// Nanoseconds of a monotonic clock.
fn now() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
