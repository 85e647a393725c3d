//! Names such as `X_train` and `BATCH_SIZE` stay as Python has them, so that other cells find them; rustc would warn of them.

use crate::Line;

/// What tells rustc that a name is meant.
const ALLOW: &str = "#[allow(non_snake_case)]";

/// Adds the attribute before each line of the cell that makes such a name.
pub(crate) fn allow_names(lines: &mut Vec<Line>) {
    let mut written = Vec::with_capacity(lines.len());
    for line in lines.drain(..).filter(|line| line.text != ALLOW) {
        if !line.is_comment && makes_name_of_python(&line.text) {
            written.push(Line {
                depth: line.depth,
                text: ALLOW.to_owned(),
                python: line.python,
                is_comment: false,
            });
        }
        written.push(line);
    }
    *lines = written;
}

/// Whether a `let` or a `for` binds a name with capital letters.
fn makes_name_of_python(line: &str) -> bool {
    let pattern = match (line.strip_prefix("let "), line.strip_prefix("for ")) {
        (Some(rest), _) => rest.split([':', '=']).next(),
        (_, Some(rest)) => rest.split(" in ").next(),
        _ => None,
    };
    let names = pattern
        .unwrap_or_default()
        .split(|it: char| !it.is_alphanumeric() && it != '_');
    names
        .into_iter()
        .any(|name| name.contains(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_capital_letters_are_found() {
        assert!(makes_name_of_python("let BATCH_SIZE = 8;"));
        assert!(makes_name_of_python(
            "let (X_train, x_test) = d.split(0.2)?;"
        ));
        assert!(makes_name_of_python("for X in &all {"));
        assert!(!makes_name_of_python("let rows: Vec<String> = A;"));
        assert!(!makes_name_of_python("fit!(model, X)?;"));
    }
}
