//! Lines at the top of a cell that stand for Rust: `!command`, `%env`, `%placement model`, `%reset
//! name`, `%dep`, and the clocks `%time` and `%timeit`. They run where the cell runs, with its variables, its
//! streams and its interrupt button.

/// How often the code behind a clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// `%time`, `%%time`
    Once,
    /// `%timeit`, `%%timeit`
    Often,
}

/// The magics of this file, without their `%`.
pub const NAMES: [&str; 5] = ["dep", "env", "placement", "time", "timeit"];

/// The Rust, or the command of evcxr's, that a whole line stands for. `line` has no blanks around it.
pub fn rust_of_line(line: &str) -> Option<String> {
    if let Some(command) = line.strip_prefix('!') {
        return Some(format!(
            "::stratoscope::cell::shell({:?})?;",
            command.trim()
        ));
    }
    let (name, rest) = words(line)?;
    Some(match name {
        "dep" => format!(":dep {rest}"),
        "env" => format!("::stratoscope::cell::environment({rest:?});"),
        "placement" => format!("::stratoscope::progress::placement(&({rest}));"),
        "reset" if !rest.is_empty() => rest
            .split([' ', ','])
            .filter(|name| !name.is_empty())
            .map(|name| format!("drop({name});"))
            .collect(),
        _ => return None,
    })
}

/// The clock that a line begins with, and how much of the line it takes: a single `%` leaves the rest
/// of its line to the cell.
pub fn timed(line: &str) -> Option<(Timed, usize)> {
    let blanks = line.len() - line.trim_start().len();
    let whole = line[blanks..].starts_with("%%");
    let (name, _) = words(line[blanks + usize::from(whole)..].trim_end())?;
    let timed = match name {
        "time" => Timed::Once,
        "timeit" => Timed::Often,
        _ => return None,
    };
    let length = match whole {
        true => line.trim_end_matches('\n').len(),
        false => blanks + 1 + name.len(),
    };
    Some((timed, length))
}

/// The cell with its magics blanked, byte for byte: what is left is Rust, at its own place.
pub fn without_lines(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    let mut lines = code.split_inclusive('\n');
    for line in lines.by_ref() {
        let content = line.trim();
        let taken = match timed(line) {
            Some((_, length)) => length,
            None if rust_of_line(content).is_some() => line.trim_end_matches('\n').len(),
            None if content.is_empty() || content.starts_with([':', '/']) => 0,
            None => {
                text.push_str(line);
                break;
            }
        };
        text.extend(std::iter::repeat_n(' ', taken));
        text.push_str(&line[taken..]);
    }
    text.extend(lines);
    text
}

/// `%name rest`
fn words(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('%')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rust() {
        for (line, expected) in [
            (
                "!echo \"a\"",
                Some("::stratoscope::cell::shell(\"echo \\\"a\\\"\")?;"),
            ),
            (
                "%env A=1",
                Some("::stratoscope::cell::environment(\"A=1\");"),
            ),
            ("%dep itoa = \"1\"", Some(":dep itoa = \"1\"")),
            (
                "%placement model",
                Some("::stratoscope::progress::placement(&(model));"),
            ),
            ("%vars", None),
            ("a % env", None),
        ] {
            assert_eq!(rust_of_line(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn clocks_take_the_line_or_only_their_name() {
        assert_eq!(timed("%time f()\n"), Some((Timed::Once, 5)));
        assert_eq!(timed("  %timeit f()"), Some((Timed::Often, 9)));
        assert_eq!(timed("%%time \n"), Some((Timed::Once, 7)));
        assert_eq!(timed("%timer"), None);
        assert_eq!(timed("f() % time"), None);
    }

    #[test]
    fn what_is_left_keeps_its_place() {
        let code = "!ls größe\n%time f(a)\n%x";
        let left = without_lines(code);
        assert_eq!(left.len(), code.len());
        assert_eq!(left.trim(), "f(a)\n%x");
        assert_eq!(left.find("f(a)"), code.find("f(a)"));
        assert_eq!(without_lines("let a = 1;\n!b"), "let a = 1;\n!b");
        assert_eq!(without_lines("%%scope s\nx"), "%%scope s\nx");
    }
}
