//! Whether the debugger is on: then cells are compiled with debug information, and their lines are marked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use stratoscope_cell_text::rewrite::places;
use stratoscope_compile::home;
use stratoscope_compile::state::State;
use stratoscope_session::CellLine;

/// Where the compiler's formatters for debuggers lie in its folder.
const FORMATTERS: &str = "lib/rustlib/etc";

/// Shared by the evaluator and by whoever asks while it runs a cell.
#[derive(Debug)]
pub struct Debugging {
    /// The private folder.
    home: PathBuf,
    /// See [`stratoscope_session::Debuggee::formatters`].
    pub formatters: PathBuf,
    /// The process of the debugger; 0 while it is off.
    adapter: AtomicU32,
    /// Cells get debug information.
    has_information: AtomicBool,
    /// What is executed is an expression that a client asks for, with the number of another cell.
    is_asked: AtomicBool,
}

impl Debugging {
    /// It is off. `sysroot`: the folder of the compiler.
    pub fn new(home: &Path, sysroot: &Path) -> Self {
        Self {
            home: home.to_owned(),
            formatters: sysroot.join(FORMATTERS),
            adapter: AtomicU32::new(0),
            has_information: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        }
    }

    /// The process of the debugger, if it is on.
    pub fn adapter(&self) -> Option<u32> {
        Some(self.adapter.load(Ordering::SeqCst)).filter(|it| *it > 0)
    }

    /// Whether the lines of a cell are marked.
    pub fn marks_lines(&self) -> bool {
        self.adapter().is_some() && !self.is_asked.load(Ordering::SeqCst)
    }

    /// What is executed next is a cell of the notebook, or is none.
    pub fn executes_a_cell(&self, is_cell: bool) {
        self.is_asked.store(!is_cell, Ordering::SeqCst);
    }

    /// Turns it on or off.
    pub fn set(&self, adapter: Option<u32>, has_information: bool) {
        self.adapter.store(adapter.unwrap_or(0), Ordering::SeqCst);
        let has_information = has_information && adapter.is_some();
        if self.has_information.swap(has_information, Ordering::SeqCst) != has_information {
            // Without the file, cells have no debug information, and their breakpoints do not stop.
            let _ = State::update(&self.home, |state| state.debug = has_information);
        }
    }

    /// What the lines stand for of the cell that was compiled last.
    pub fn compiled_lines(&self) -> BTreeMap<u32, CellLine> {
        let text = fs::read_to_string(home::source(&self.home)).unwrap_or_default();
        let of_cell = |it: places::Place| CellLine {
            cell: it.cell,
            line: it.line,
            begins: it.begins,
        };
        let places = places::read(&text).into_iter();
        places.map(|(line, it)| (line, of_cell(it))).collect()
    }
}

/// Whether a debugger has stopped a process. Only Linux shows it.
pub fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, which is in parentheses, may have some itself.
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with('t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_waits_is_not_stopped_by_a_debugger() {
        assert!(!is_stopped(std::process::id()));
        assert!(!is_stopped(u32::MAX));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_is_traced_is_stopped() {
        use std::os::unix::process::CommandExt;

        let mut command = std::process::Command::new("true");
        // SAFETY: a system call without pointers, between fork and exec. The process stops at its exec.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        // Where processes may not be traced there is nothing to see.
        let Ok(mut child) = command.spawn() else {
            return println!("skipped: processes may not be traced here");
        };
        let begun = std::time::Instant::now();
        let limit = std::time::Duration::from_secs(60);
        while !is_stopped(child.id()) && begun.elapsed() < limit {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(is_stopped(child.id()));
        child.kill().expect("it is ended");
        child.wait().expect("it has ended");
    }
}
