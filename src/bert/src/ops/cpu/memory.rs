//! Configures the C library to keep memory that was freed.
//!
//! Every training step allocates and frees the same hundreds of megabytes in large pieces. By
//! default glibc returns such pieces to the system, and the next step has page faults for all of them again:
//! a tenth of its time. With this setting the process keeps its peak, as with a pooling allocator.

use std::sync::Once;

/// Once per process, as the setting is the process's; does nothing with another C library.
pub(super) fn keep_freed() {
    static ASKED: Once = Once::new();
    ASKED.call_once(ask);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn ask() {
    use std::ffi::c_int;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // From glibc's malloc.h.
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_TOP_PAD: c_int = -2;
    const M_MMAP_THRESHOLD: c_int = -3;
    const M_MMAP_MAX: c_int = -4;
    const M_ARENA_MAX: c_int = -8;

    // SAFETY: the signature is that of glibc's malloc.h. `mallopt` may be called at any time and from any thread; a value
    // that it does not accept changes nothing.
    unsafe {
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        // Larger pieces, such as the gradient of a word table, come from the heap too.
        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, c_int::MAX);
        mallopt(M_TOP_PAD, 64 << 20);
        // Replicas compute on threads of their own. The heap of a further arena has at most 64 MiB, and glibc unmaps it
        // whenever all of it is free; the main arena serves all threads.
        mallopt(M_ARENA_MAX, 1);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn ask() {}

#[cfg(test)]
mod tests {
    #[test]
    fn asking_twice_is_harmless() {
        super::keep_freed();
        super::keep_freed();
        assert_eq!(vec![1u8; 40 << 20].len(), 40 << 20);
    }
}
