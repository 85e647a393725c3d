//! rustc's messages, as its JSON has them: one value a line.

/// The lines that are warnings.
pub fn warnings(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().filter(|line| is_warning(line)).collect();
    lines.join("\n")
}

/// Whether a line is a warning.
pub fn is_warning(message: &str) -> bool {
    message.contains("\"level\":\"warning\"")
}

/// Whether a line is a diagnostic, and not a word about a file that was written.
pub fn is_diagnostic(message: &str) -> bool {
    message.contains("\"$message_type\":\"diagnostic\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_warnings_are_kept() {
        let warning = r#"{"level":"warning","message":"unused"}"#;
        let error = r#"{"level":"error","message":"wrong"}"#;
        assert_eq!(warnings(&format!("{error}\n{warning}\n")), warning);
    }
}
