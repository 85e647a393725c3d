//! What an adapter leaves behind that was killed: traps in place of instructions. The process itself removes those that it
//! meets (`cell_process/left_traps.rs` of the crate `evaluator`). The next adapter must not find the others.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

/// The instruction that x86-64 traps at.
const TRAP: u8 = 0xcc;
const PIECE_BYTES: u64 = 1 << 20;

/// Puts back the instructions of the files that a process has mapped. What cannot be read or written stays as it is.
pub(super) fn remove(process: u32) {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let memory = format!("/proc/{process}/mem");
    let Ok(memory) = OpenOptions::new().read(true).write(true).open(memory) else {
        return;
    };
    for mapping in maps.lines().filter_map(Mapping::read) {
        if let Ok(file) = File::open(mapping.path) {
            mapping.put_back(&file, &memory);
        }
    }
}

/// Code of a file.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    begin: u64,
    end: u64,
    offset: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    /// A line of `maps`: `7f00-7f10 r-xp 0000 08:01 42   /lib/x.so`.
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let offset = words.next()?;
        let path = line.find('/').map(|at| &line[at..]);
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self {
            begin: number(begin)?,
            end: number(end)?,
            offset: number(offset)?,
            path: path.filter(|it| is_code && !it.ends_with(" (deleted)"))?,
        })
    }

    fn put_back(&self, file: &File, memory: &File) {
        let mut original = vec![0; PIECE_BYTES as usize];
        let mut current = vec![0; PIECE_BYTES as usize];
        let mut begin = self.begin;
        while begin < self.end {
            let length = (self.end - begin).min(PIECE_BYTES);
            let (original, current) = (
                &mut original[..length as usize],
                &mut current[..length as usize],
            );
            let offset = self.offset + (begin - self.begin);
            // The last page may be longer than the file.
            let Ok(read) = file.read_at(original, offset) else {
                return;
            };
            if memory.read_exact_at(current, begin).is_err() {
                return;
            }
            if original[..read] != current[..read] {
                for (index, byte) in original[..read].iter().enumerate() {
                    if current[index] == TRAP && *byte != TRAP {
                        let _ = memory.write_all_at(&[*byte], begin + index as u64);
                    }
                }
            }
            begin += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn eight() -> u32 {
        std::hint::black_box(8)
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_trap_that_an_adapter_has_left_is_removed() {
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .expect("a process may write its own memory");
        let address = eight as *const () as u64;
        let byte = || {
            let mut byte = [0];
            memory
                .read_exact_at(&mut byte, address)
                .expect("it is code");
            byte[0]
        };
        let before = byte();
        memory
            .write_all_at(&[TRAP], address)
            .expect("it is written");
        assert_eq!((byte(), before == TRAP), (TRAP, false));
        remove(std::process::id());
        assert_eq!(byte(), before);
        assert_eq!(std::hint::black_box(eight as extern "C" fn() -> u32)(), 8);
        // A process that is gone.
        remove(u32::MAX);
    }

    #[test]
    fn code_of_files_is_found() {
        let line = "7f01-7f10 r-xp 00a0 08:01 42      /lib/my library.so";
        let expected = Mapping {
            begin: 0x7f01,
            end: 0x7f10,
            offset: 0xa0,
            path: "/lib/my library.so",
        };
        assert_eq!(Mapping::read(line), Some(expected));
        for other in [
            "7f01-7f10 rw-p 00a0 08:01 42      /lib/x.so",
            "7f01-7f10 r-xp 00a0 08:01 42      /lib/x.so (deleted)",
            "7f01-7f10 r-xp 0000 00:00 0       [vdso]",
            "",
        ] {
            assert_eq!(Mapping::read(other), None, "{other}");
        }
    }
}
