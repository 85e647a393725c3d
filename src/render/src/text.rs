//! Plain text: counts, lists of names, and texts that are cut, wrapped or made safe for a terminal.

use unicode_width::UnicodeWidthStr;

/// `1 row`, `2 rows`, `2 batches`, `2 epochs`; only for nouns whose plural ends in `s` or, after a sibilant, in `es`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = match noun.as_bytes() {
        // Its `ch` is a `k`.
        b"epoch" => "s",
        [.., b'c' | b's', b'h'] | [.., b's' | b'x'] => "es",
        _ => "s",
    };
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}{ending}", thousands(number)),
    }
}

/// `30 522`: digits in groups of three, from five digits on.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// `` `a`, `b` and `c` ``. Names after the first `most` are only counted: `` `a`, `b` and 3 more ``.
pub fn names<S: AsRef<str>>(items: &[S], most: usize) -> String {
    let quoted: Vec<String> = items
        .iter()
        .take(most)
        .map(|item| format!("`{}`", item.as_ref()))
        .collect();
    if items.len() > most {
        return format!("{} and {} more", quoted.join(", "), items.len() - most);
    }
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// At most `most` characters of a text on one line; `…` stands for what was cut.
pub fn excerpt(text: &str, most: usize) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most + 1)
        .collect();
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// Text that is safe to print in a terminal: control characters and those that reorder text become U+FFFD. Line
/// ends and tabs stay.
pub fn visible(text: &str) -> String {
    let obeyed = |c: char| crate::is_invisible_command(c) && c != '\n' && c != '\t';
    text.replace(obeyed, "\u{fffd}")
}

/// As [`visible`], on one line: line ends and tabs become spaces.
pub fn visible_line(text: &str) -> String {
    visible(&text.replace(['\n', '\t'], " "))
}

/// Lines of at most `columns` columns, broken between words. A word that is wider has a line of its own; see
/// [`wrap_hard`].
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    // Spaces are kept as they are: TensorFlow's own messages contain double ones.
    for word in text.split_inclusive(' ') {
        if !line.is_empty() && line.width() + word.trim_end().width() > columns {
            lines.push(line.trim_end().to_owned());
            line = String::new();
        }
        line.push_str(word);
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// Lines of at most `columns` columns, broken between words; a word that is too wide is broken too.
pub fn wrap_hard(text: &str, columns: usize) -> Vec<String> {
    let lines = wrap(text, columns).into_iter();
    lines.flat_map(|line| pieces(&line, columns)).collect()
}

/// A line in pieces of at most `columns` columns, cut after a punctuation character where there is one.
fn pieces(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while rest.width() > columns {
        let mut end = 0;
        let mut after_punctuation = 0;
        for (at, c) in rest.char_indices() {
            let next = at + c.len_utf8();
            if end > 0 && rest[..next].width() > columns {
                break;
            }
            end = next;
            if !c.is_alphanumeric() && c != '_' {
                after_punctuation = next;
            }
        }
        let end = if after_punctuation > 0 {
            after_punctuation
        } else {
            end
        };
        pieces.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start();
    }
    pieces.push(rest.to_owned());
    pieces
}

/// The dimensions of a tensor: `[384, 8]`.
pub fn shape(dimensions: &[usize]) -> String {
    let parts: Vec<String> = dimensions.iter().map(usize::to_string).collect();
    format!("[{}]", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_lists() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
        assert_eq!(thousands(9999), "9999");
        assert_eq!(thousands(30522), "30 522");
        assert_eq!(thousands(1234567), "1 234 567");
        assert_eq!(names::<&str>(&[], 3), "none");
        assert_eq!(names(&["a"], 3), "`a`");
        assert_eq!(names(&["a", "b", "c"], 3), "`a`, `b` and `c`");
        assert_eq!(names(&["a", "b", "c"], 2), "`a`, `b` and 1 more");
        assert_eq!(shape(&[2, 3]), "[2, 3]");
    }

    #[test]
    fn sentences_wrap_between_words() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aa  bb", 10), ["aa  bb"]);
        assert_eq!(wrap("aaaaaaaa b", 3), ["aaaaaaaa", "b"]);
    }

    #[test]
    fn control_characters_are_replaced() {
        let text = "red\u{1b}[31m\ttab\nline\u{7}\u{9b}\r";
        assert_eq!(
            visible(text),
            "red\u{fffd}[31m\ttab\nline\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(visible("grün ✓"), "grün ✓");
        assert_eq!(visible("a\u{202e}b"), "a\u{fffd}b");
        assert_eq!(visible_line("a\n\tb\u{1b}"), "a  b\u{fffd}");
    }

    #[test]
    fn an_excerpt_is_one_line_and_cut_between_characters() {
        assert_eq!(excerpt("übergroß", 8), "übergroß");
        assert_eq!(excerpt("übergroße\nWörter", 8), "übergro…");
    }
}
