//! How many kernels this process has compiled for GPUs, for the progress of a first step. CubeCL tells only its log,
//! so that it logs to a file in memory, whose lines are counted.

use std::fs::File;
use std::sync::OnceLock;

/// Lets kernels be counted, if no device has been started before and the user logs no compilation. Linux only.
pub(super) fn count() {
    LOG.get_or_init(open);
}

/// CubeCL's log. Process-wide, as its configuration is.
static LOG: OnceLock<Option<File>> = OnceLock::new();

/// The kernels compiled so far; `None` where they are not counted.
pub fn compiled() -> Option<usize> {
    Some(lines(&read(LOG.get()?.as_ref()?)?))
}

/// The beginning of the line that CubeCL logs for each kernel.
const LINE: &str = "[Compiling kernel]";

fn lines(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with(LINE)).count()
}

/// Lets CubeCL log to a file in memory.
#[cfg(target_os = "linux")]
fn open() -> Option<File> {
    use std::os::fd::{AsRawFd, FromRawFd};

    use cubecl::config::compilation::CompilationLogLevel;
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

    // SAFETY: the name is a C string that outlives the call.
    let descriptor = unsafe { libc::memfd_create(c"kernels".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    let logger = &mut config.compilation.logger;
    if !matches!(logger.level, CompilationLogLevel::Disabled) {
        return None;
    }
    logger.level = CompilationLogLevel::Basic;
    logger.file = Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into());
    CubeClRuntimeConfig::try_set(config).then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn open() -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn read(log: &File) -> Option<String> {
    use std::os::unix::fs::FileExt;

    let size = usize::try_from(log.metadata().ok()?.len()).ok()?;
    let mut bytes = vec![0; size];
    // At a position: CubeCL writes through a descriptor of its own.
    let read = log.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
}

#[cfg(not(target_os = "linux"))]
fn read(_: &File) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_lines_of_the_log() {
        let text = "[Compiling kernel] matmul\nanother line\n[Compiling kernel]\n";
        assert_eq!(lines(text), 2);
        assert_eq!(lines(""), 0);
    }
}
