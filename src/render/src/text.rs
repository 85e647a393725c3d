//! Small grammar that all messages share: lists of names, counts, cut and wrapped texts.

use unicode_width::UnicodeWidthStr;

/// `1 row`, `2 rows`; only for words whose plural is a plain `s`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", thousands(number)),
    }
}

/// `30 522`: digits in groups of three, set apart from five digits on.
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

/// `` `a`, `b` and `c` ``; after `most` names the rest is counted.
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

/// At most `most` characters of a text on one line, with `…` where it was cut.
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

/// A text of others that a terminal shows and does not obey: a control character is shown as `�`. Line ends
/// and tabs stay.
pub fn visible(text: &str) -> String {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.replace(obeyed, "\u{fffd}")
}

/// Lines of at most `columns` columns, broken between words.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    // Spaces are kept as they are typed: TensorFlow's own texts have double ones.
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

/// `[384, 8]`.
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
    fn nothing_is_obeyed() {
        let text = "red\u{1b}[31m\ttab\nline\u{7}\u{9b}\r";
        assert_eq!(
            visible(text),
            "red\u{fffd}[31m\ttab\nline\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(visible("grün ✓"), "grün ✓");
    }

    #[test]
    fn an_excerpt_is_one_line_and_cut_between_characters() {
        assert_eq!(excerpt("übergroß", 8), "übergroß");
        assert_eq!(excerpt("übergroße\nWörter", 8), "übergro…");
    }
}
