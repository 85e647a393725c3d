//! Reads a text file whose name comes from the user: never blocks on a pipe or a device, and limits the size.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The text of a regular file of at most `max_bytes` bytes.
///
/// # Errors
/// It is not such a file, or cannot be read: why, to follow its name in a sentence.
pub fn read(path: &Path, max_bytes: u64) -> Result<String, String> {
    let mut options = OpenOptions::new();
    // Without the flags, opening a pipe would block, and a terminal would become the controlling one.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = options.read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is a device or a pipe, not a file".to_owned());
    }
    let mut bytes = Vec::new();
    // Some files, such as those of `/proc`, report no length.
    let read = file.take(max_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it has more than {} MB", max_bytes >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let pipe = std::ffi::CString::new(at("pipe").display().to_string()).expect("no zeros");
        // SAFETY: the path is a C string that lives through the call.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let huge = std::fs::File::create(at("huge")).expect("makes");
        huge.set_len(1 << 33).expect("is sparse");
        std::fs::write(at("bytes"), [0xff, 0xfe]).expect("writes");
        std::fs::write(at("text"), "größe").expect("writes");
        for (path, reason) in [
            (at("pipe"), "a device or a pipe"),
            (at(""), "it is a folder"),
            ("/dev/zero".into(), "a device or a pipe"),
            (at("huge"), "more than 4 MB"),
            (at("bytes"), "not UTF-8 text"),
            (at("none"), "No such file"),
        ] {
            let problem = read(&path, 4 << 20).expect_err(reason);
            assert!(problem.contains(reason), "{problem}");
        }
        assert_eq!(read(&at("text"), 7).as_deref(), Ok("größe"));
        read(&at("text"), 6).expect_err("has 7 bytes");
        assert!(read("/proc/self/status".as_ref(), 1 << 20).is_ok());
    }
}
