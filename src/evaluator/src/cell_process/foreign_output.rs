//! The third pipe of the cell process: output of threads that belong to another cell than the running one, and the
//! number of the run that begins. A record is written by one system call, so that records of several threads do not mix,
//! and without allocation, so that a signal handler may write one.

use std::ffi::c_int;
use std::io;

use stratoscope_session::Stream;

/// The pipe's name, beside `stdout` and `stderr`.
pub const NAME: &str = "foreign";

/// The system does not part what is no longer (`PIPE_BUF`).
const MOST_BYTES: usize = 4096;
/// The run's number, what it is about, and how many bytes of text follow.
const HEAD_BYTES: usize = 8 + 1 + 2;

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// From now on, this is the run of the cell that the kernel executes.
    Begins(u64),
    /// A thread of that run has written this.
    Text(u64, Stream, &'a [u8]),
}

const BEGINS: u8 = 0;

/// Writes [`Record::Begins`].
pub fn begin(descriptor: c_int, run: u64) -> isize {
    record(descriptor, run, BEGINS, &[])
}

/// Writes the beginning of `text` as [`Record::Text`], as `write` does: how many bytes, or -1.
pub fn text(descriptor: c_int, run: u64, stream: c_int, text: &[u8]) -> isize {
    let length = whole(text, MOST_BYTES - HEAD_BYTES);
    // 1 and 2, as the streams' descriptors are.
    record(descriptor, run, stream as u8, &text[..length])
}

/// How many bytes fit: all, or as many as leave no character in two.
fn whole(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let begins_one = |&at: &usize| text[at] & 0b1100_0000 != 0b1000_0000;
    (most - 3..=most).rev().find(begins_one).unwrap_or(most)
}

fn record(descriptor: c_int, run: u64, kind: u8, text: &[u8]) -> isize {
    let mut bytes = [0_u8; MOST_BYTES];
    bytes[..8].copy_from_slice(&run.to_le_bytes());
    bytes[8] = kind;
    bytes[9..HEAD_BYTES].copy_from_slice(&(text.len() as u16).to_le_bytes());
    bytes[HEAD_BYTES..HEAD_BYTES + text.len()].copy_from_slice(text);
    let length = HEAD_BYTES + text.len();
    // SAFETY: so many bytes are there. Not `write`, which is ours and comes here.
    let written = unsafe { libc::syscall(libc::SYS_write, descriptor, bytes.as_ptr(), length) };
    match written {
        -1 => -1,
        _ => text.len() as isize,
    }
}

/// Takes the first whole record from `bytes`: what it says, and how many bytes it has.
///
/// # Errors
/// It is not a record.
pub fn first(bytes: &[u8]) -> io::Result<Option<(Record<'_>, usize)>> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let [r0, r1, r2, r3, r4, r5, r6, r7, kind, l0, l1] = *head;
    let run = u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]);
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    let stream = match c_int::from(kind) {
        libc::STDOUT_FILENO => Some(Stream::Stdout),
        libc::STDERR_FILENO => Some(Stream::Stderr),
        _ if kind == BEGINS => None,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    if length > MOST_BYTES - HEAD_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let Some(text) = rest.get(..length) else {
        return Ok(None);
    };
    let record = match stream {
        Some(stream) => Record::Text(run, stream, text),
        None => Record::Begins(run),
    };
    Ok(Some((record, HEAD_BYTES + length)))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_character_is_parted() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let long = "aé∑🚀".repeat(1000);
        let descriptor = writer.as_raw_fd();
        assert_eq!(begin(descriptor, 7), 0);
        let mut written = 0;
        while written < long.len() {
            let count = text(descriptor, u64::MAX, 2, &long.as_bytes()[written..]);
            written += usize::try_from(count).expect("is written");
        }
        drop(writer);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("reads");
        let mut rest = &bytes[..];
        let mut read = String::new();
        let mut begun = Vec::new();
        while let Some((record, length)) = first(rest).expect("is ours") {
            match record {
                Record::Begins(run) => begun.push(run),
                Record::Text(run, stream, text) => {
                    assert_eq!((run, stream), (u64::MAX, Stream::Stderr));
                    read.push_str(std::str::from_utf8(text).expect("whole characters"));
                }
            }
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        assert_eq!(begun, [7]);
        assert!(read == long);
    }

    #[test]
    fn half_a_record_waits_and_nonsense_is_refused() {
        let mut bytes = vec![3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, b'o', b'k'];
        let expected = Record::Text(3, Stream::Stdout, b"ok");
        assert_eq!(first(&bytes).expect("is ours"), Some((expected, 13)));
        for length in 0..13 {
            assert_eq!(first(&bytes[..length]).expect("may be ours"), None);
        }
        bytes[8] = 9;
        first(&bytes).expect_err("is none of ours");
    }
}
