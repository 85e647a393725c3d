//! The stack on which a thread hears that its own stack is used up. The standard library gives each thread one of the
//! smallest size that the system allows. On processors with large registers that is too small: once a thread has used
//! the tile registers of AMX, a signal stores 11 KB of them there, nothing is left for the handler, and the process ends
//! by `SIGSEGV` without a word.
//!
//! Source: sigaltstack(2); Linux, Documentation/arch/x86/elf_auxvec.rst.

use std::ptr;

/// The key of the bytes that a signal stores, in what Linux tells a process at its start; `libc` does not have it.
const AT_MINSIGSTKSZ: libc::c_ulong = 51;

/// Room for the handler, what it prints, and [`interpose`](super::interpose) below it; the registers come on top.
const HANDLER_BYTES: usize = 64 << 10;

/// Gives this thread a larger one in place of the standard library's, for as long as the process lives.
pub fn enlarge() {
    // SAFETY: the call reads a number of the process; it is 0 where the system has none.
    let registers = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    let stack = vec![0_u8; registers + HANDLER_BYTES].leak();
    let wanted = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: the memory is this thread's alone, and is never given back. Where the system refuses, the old one stays.
    unsafe { libc::sigaltstack(&wanted, ptr::null_mut()) };
}
