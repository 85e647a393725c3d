//! Names and texts as Rust writes them.

/// Words that are no names in Rust.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// A name as Rust writes it.
pub(crate) fn name(name: &str) -> String {
    match name {
        "self" | "Self" | "super" | "crate" => format!("{name}_"),
        "_" => "_".to_owned(),
        name if KEYWORDS.contains(&name) => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// Characters that rustc does not take as they are: they change how the text around them is shown.
fn is_hidden(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in a comment.
pub(crate) fn comment(text: &str) -> String {
    text.chars()
        .map(|it| if is_hidden(it) { ' ' } else { it })
        .collect()
}

/// A text as Rust writes it.
pub(crate) fn text(text: &str) -> String {
    let mut written = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => written += "\\\"",
            '\\' => written += "\\\\",
            '\n' => written += "\\n",
            '\r' => written += "\\r",
            '\t' => written += "\\t",
            '\0' => written += "\\0",
            other if is_hidden(other) => written += &format!("\\u{{{:x}}}", u32::from(other)),
            other => written.push(other),
        }
    }
    written + "\""
}

/// A number as a factor of another one.
pub(crate) fn factor(rust: &str) -> String {
    match rust.contains(' ') {
        true => format!("({rust})"),
        false => rust.to_owned(),
    }
}

/// The inside of a format string.
pub(crate) fn inside_format(given: &str) -> String {
    let written = text(&given.replace('{', "{{").replace('}', "}}"));
    written[1..written.len() - 1].to_owned()
}

/// A call, on several lines where it is long. Its parts stand between commas.
pub(crate) fn call(head: &str, first: &str, parts: &[String], tail: &str) -> String {
    const COLUMNS: usize = 100;
    let mut all: Vec<&str> = Vec::new();
    if !first.is_empty() {
        all.push(first);
    }
    all.extend(parts.iter().map(String::as_str));
    let one = format!("{head}({}){tail}", all.join(", "));
    if one.len() <= COLUMNS || parts.len() < 2 {
        return one;
    }
    let lines: Vec<String> = parts.iter().map(|part| format!("    {part},")).collect();
    let first = match first {
        "" => String::new(),
        first => format!("{first},"),
    };
    format!("{head}({first}\n{}\n){tail}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_those_of_rust() {
        assert_eq!(name("type"), "r#type");
        assert_eq!(name("self"), "self_");
        assert_eq!(text("a\"b\\c\n"), r#""a\"b\\c\n""#);
        assert_eq!(inside_format("{x} \""), "{{x}} \\\"");
        assert_eq!(factor("n"), "n");
        assert_eq!(factor("n - 1"), "(n - 1)");
    }
}
