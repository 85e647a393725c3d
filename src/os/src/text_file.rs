//! Reads the text of a file that somebody names: never waits, and never reads more than is of use.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The text of a plain file of at most `most` bytes.
///
/// # Errors
/// It is none, or cannot be read; why, to follow its name.
pub fn read(path: &Path, most: u64) -> Result<String, String> {
    let mut options = OpenOptions::new();
    // A pipe without a writer would be waited for when it is opened, a terminal become ours.
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
    // Some files, such as those of `/proc`, do not say how long they are.
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {} MB", most >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_with_text_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let pipe = std::ffi::CString::new(at("pipe").display().to_string()).expect("no zeros");
        // SAFETY: a plain system call with a text that ends.
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
            (at("bytes"), "no text in UTF-8"),
            (at("none"), "No such file"),
        ] {
            let told = read(&path, 4 << 20).expect_err(reason);
            assert!(told.contains(reason), "{told}");
        }
        assert_eq!(read(&at("text"), 7).as_deref(), Ok("größe"));
        read(&at("text"), 6).expect_err("has 7 bytes");
        assert!(read("/proc/self/status".as_ref(), 1 << 20).is_ok());
    }
}
