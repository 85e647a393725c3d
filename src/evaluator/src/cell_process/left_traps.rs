//! What a debugger leaves behind that was killed: the instructions in place of which it has written traps. A trap that nobody
//! waits for would end this process and lose all variables. So the instruction is read from the file of its library and put
//! back, and the program goes on there.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// The instruction that x86-64 traps at.
const TRAP: u8 = 0xcc;
/// More than the path of any library.
const MAX_PATH_BYTES: usize = 4096;

/// From now on traps that nobody waits for are removed.
pub fn remove() {
    // SAFETY: the action is initialized before it is read, and the handler has the signature that `SA_SIGINFO` asks for.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut());
    }
}

/// Set in the flags of a thread that traps behind each instruction.
const SINGLE_STEP: i64 = 1 << 8;

/// Only system calls, and `dl_iterate_phdr`, whose locks a thread may take again.
extern "C" fn handle(_: c_int, signal: *mut libc::siginfo_t, context: *mut c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel hands a valid context to a handler that was set with `SA_SIGINFO`.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    // SAFETY: the kernel hands a valid signal to such a handler.
    if unsafe { (*signal).si_code } == libc::TRAP_TRACE {
        // The debugger was killed in the middle of a step.
        registers[libc::REG_EFL as usize] &= !SINGLE_STEP;
        return;
    }
    let register = &mut registers[libc::REG_RIP as usize];
    // The processor stands behind the trap.
    let address = (*register as usize).wrapping_sub(1);
    match original(address).filter(|it| *it != TRAP) {
        Some(byte) if put_back(address, byte) => *register = address as i64,
        // A trap of the program itself.
        _ => {
            // SAFETY: system calls without pointers; the signal ends the process, as without us.
            unsafe {
                libc::signal(libc::SIGTRAP, libc::SIG_DFL);
                libc::raise(libc::SIGTRAP);
            }
        }
    }
}

/// Where the code of an address comes from.
struct Origin {
    address: usize,
    /// The path with a zero behind it; empty for the executable.
    path: [u8; MAX_PATH_BYTES],
    offset: Option<usize>,
}

/// The byte of the file of the library that is loaded at `address`.
fn original(address: usize) -> Option<u8> {
    let mut origin = Origin {
        address,
        path: [0; MAX_PATH_BYTES],
        offset: None,
    };
    // SAFETY: the callback gets a pointer to `origin`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut origin).cast()) };
    let offset = libc::off_t::try_from(origin.offset?).ok()?;
    let path = match origin.path[0] {
        0 => c"/proc/self/exe",
        _ => CStr::from_bytes_until_nul(&origin.path).ok()?,
    };
    let mut byte = 0_u8;
    // SAFETY: the path ends with a zero, and one byte is read into one byte.
    let read = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let read = libc::pread(file, (&raw mut byte).cast(), 1, offset);
        libc::close(file);
        read
    };
    (read == 1).then_some(byte)
}

unsafe extern "C" fn visit(
    library: *mut libc::dl_phdr_info,
    _: libc::size_t,
    origin: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` hands over a valid library and our own pointer.
    let (library, origin) = unsafe { (&*library, &mut *origin.cast::<Origin>()) };
    for index in 0..usize::from(library.dlpi_phnum) {
        // SAFETY: the library has so many headers.
        let header = unsafe { &*library.dlpi_phdr.add(index) };
        let begin = (library.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        let within = origin.address.wrapping_sub(begin);
        if header.p_type != libc::PT_LOAD || within >= header.p_filesz as usize {
            continue;
        }
        origin.offset = Some(within + header.p_offset as usize);
        if !library.dlpi_name.is_null() {
            // SAFETY: the name ends with a zero.
            let name = unsafe { CStr::from_ptr(library.dlpi_name) }.to_bytes();
            if name.len() < MAX_PATH_BYTES {
                origin.path[..name.len()].copy_from_slice(name);
            }
        }
        return 1;
    }
    0
}

/// Writes the byte into the code.
fn put_back(address: usize, byte: u8) -> bool {
    // SAFETY: the page is one of a loaded library, and is readable and executable before and afterwards.
    unsafe {
        let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let page = (address - address % size) as *mut c_void;
        let executable = libc::PROT_READ | libc::PROT_EXEC;
        if libc::mprotect(page, size, executable | libc::PROT_WRITE) != 0 {
            return false;
        }
        ptr::write_volatile(address as *mut u8, byte);
        libc::mprotect(page, size, executable) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn seven() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_trap_that_nobody_waits_for_is_removed() {
        remove();
        let address = seven as *const () as usize;
        // SAFETY: the address is that of a function, whose first byte is read.
        let before = unsafe { ptr::read_volatile(address as *const u8) };
        assert_eq!(original(address), Some(before));
        assert!(put_back(address, TRAP));
        assert_eq!(std::hint::black_box(seven as extern "C" fn() -> u32)(), 7);
        // SAFETY: as above.
        assert_eq!(unsafe { ptr::read_volatile(address as *const u8) }, before);
        assert_eq!(original(0), None);
    }
}
