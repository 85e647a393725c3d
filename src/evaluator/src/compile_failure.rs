//! Cells that were not compiled for a reason outside the cell: a full disk, a compiler that was killed. evcxr reports all
//! of them by one text that contains what the compiler has written.

use stratoscope_compile::evcxr_contract::{UNPARSED, UNPARSED_END};

/// The name of the error of a cell that was not compiled because nothing can be written.
pub const WRITE_FAILED: &str = "WriteFailed";

/// How the system says that nothing more can be written.
const REASONS: [&str; 4] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Read-only file system",
];

/// The name and the text of an error of which evcxr only has this message.
pub fn explain(message: &str) -> (&'static str, String) {
    let reason = REASONS.iter().find(|reason| message.contains(**reason));
    if let Some(reason) = reason {
        let folder = std::env::temp_dir();
        let text = format!(
            "{reason}: the cell was not compiled, since nothing can be written to {}; variables are kept, and the cell can be run again",
            folder.display()
        );
        return (WRITE_FAILED, text);
    }
    let Some((_, said)) = message.split_once(UNPARSED) else {
        return ("Error", message.to_owned());
    };
    let said = said.split(UNPARSED_END).next().unwrap_or_default().trim();
    let text = if said.is_empty() || said.contains("SIGKILL") {
        "the compiler was killed, as the system does when memory runs out; variables are kept, and the cell can be run again"
            .to_owned()
    } else {
        format!("the compiler failed for a reason outside the cell; variables are kept\n{said}")
    };
    ("CompilerFailed", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, name: &str, first: &str, rest: &str) {
        let (found, text) = explain(message);
        let (line, behind) = text.split_once('\n').unwrap_or((&text, ""));
        assert_eq!(found, name);
        assert!(line.starts_with(first), "{line}");
        assert_eq!(behind, rest);
    }

    #[test]
    fn the_reason_is_in_the_first_line() {
        check(
            "Error writing '\"/tmp/x/lib.rs\"': No space left on device (os error 28)",
            "WriteFailed",
            "No space left on device: the cell was not compiled, since nothing can be written to",
            "",
        );
        check(
            "Compilation failed, but no parsable errors were found. STDERR:\n\
             rustc-LLVM ERROR: IO failure on output stream: No space left on device\n\nSTDOUT:\n",
            "WriteFailed",
            "No space left on device",
            "",
        );
        check(
            "Compilation failed, but no parsable errors were found. STDERR:\n\nSTDOUT:",
            "CompilerFailed",
            "the compiler was killed",
            "",
        );
        check(
            "Compilation failed, but no parsable errors were found. STDERR:\nodd\nwords\nSTDOUT:\n{}",
            "CompilerFailed",
            "the compiler failed",
            "odd\nwords",
        );
        check("anything else", "Error", "anything else", "");
    }
}
