//! Functions that replace those of the C library: this executable exports them, so libraries that are loaded later
//! resolve to them. Everything Rust prints, and the threads and processes it starts, passes here: from cells, their
//! crates and the standard library.
//!
//! They may be called by any thread at any time, `write` also in a signal handler: none locks, and only the start of a
//! thread allocates.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{foreign_output, stream_order, thread_owner};

type Body = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Body,
    *mut c_void,
) -> c_int;

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const libc::posix_spawn_file_actions_t,
    *const libc::posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// As the C library's, save that late text takes the third pipe, and other text waits for its turn.
///
/// # Safety
/// As there: `count` bytes can be read at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    let is_standard = descriptor == libc::STDOUT_FILENO || descriptor == libc::STDERR_FILENO;
    if is_standard && count > 0 {
        let channel = thread_owner::foreign_output();
        if channel >= 0 {
            let run = thread_owner::of_another_run();
            if run != 0 {
                // SAFETY: the caller's promise.
                let text = unsafe { std::slice::from_raw_parts(bytes.cast(), count) };
                return foreign_output::text(channel, run, descriptor, text);
            }
            stream_order::before_writing_to(descriptor);
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
    static NEXT: Next = Next::new(c"pthread_create");
    let Some(next) = NEXT.function() else {
        return libc::EAGAIN;
    };
    // SAFETY: it is that function, whose signature this is.
    let create = unsafe { std::mem::transmute::<*mut c_void, Create>(next) };
    let run = thread_owner::run();
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
    thread_owner::inherit(run);
    // SAFETY: what the caller of `pthread_create` has promised about its own function.
    unsafe { body(argument) }
}

/// As the C library's, save that what was written before the child is read before it writes.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    process: *mut libc::pid_t,
    file: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    static NEXT: Next = Next::new(c"posix_spawnp");
    let Some(next) = NEXT.function() else {
        return libc::ENOSYS;
    };
    stream_order::before_a_child();
    // SAFETY: it is that function, whose signature this is; the rest is the caller's promise.
    unsafe {
        let spawn = std::mem::transmute::<*mut c_void, Spawn>(next);
        spawn(process, file, actions, attributes, arguments, environment)
    }
}

/// The same for children that are started the old way.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    static NEXT: Next = Next::new(c"fork");
    let Some(next) = NEXT.function() else {
        return -1;
    };
    stream_order::before_a_child();
    // SAFETY: it is that function, whose signature this is; the rest is the caller's promise.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> libc::pid_t>(next)() }
}

/// The function of a name that stands behind ours.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn function(&self) -> Option<*mut c_void> {
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: a C string; the name has one meaning.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.found.store(found, Ordering::Relaxed);
        }
        (!found.is_null()).then_some(found)
    }
}
