//! Lines for the terminal. A closed terminal is not an error: the kernel goes on without one.

use std::io::Write;

/// Writes a line to standard error, prefixed with the program's name. A failed write is ignored.
pub fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "stratoscope: {text}");
}

/// Writes a line to standard output. A failed write is ignored.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
