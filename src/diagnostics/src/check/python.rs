//! Python in a cell: whole cells of it, and single words and signs that have another spelling in Rust.

use super::scan::Scan;
use crate::CellSpan;

/// A replacement of a spelling.
pub(super) struct Spelling {
    pub span: CellSpan,
    pub rust: String,
    pub reason: &'static str,
}

/// Statements that begin a block with a colon.
const BLOCKS: [&str; 11] = [
    "async", "class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while",
];

/// The first line that is Python and cannot be Rust, counted from 0.
pub(super) fn first_line(text: &str, scan: &Scan) -> Option<usize> {
    let mut lines = scan.code.lines().enumerate();
    lines
        .find(|(_, line)| is_python(line))
        .map(|(number, _)| number)
        .filter(|number| text.lines().nth(*number).is_some())
}

fn is_python(line: &str) -> bool {
    let line = line.trim();
    let word = first_word(line);
    let rest = line[word.len()..].trim_start();
    let is_name = |text: &str| text.starts_with(|it: char| it.is_alphabetic() || it == '_');
    match word {
        "import" => is_name(rest) && !line.ends_with(';'),
        "from" => line.contains(" import "),
        "with" => line.ends_with(':'),
        "def" => line.contains('('),
        "lambda" => line.contains(':'),
        "pass" => line == "pass",
        _ if BLOCKS.contains(&word) => line.ends_with(':') && !line.ends_with("::"),
        "" => line.starts_with('@') && is_name(&line[1..]),
        _ => {
            line.contains("lambda ") && line.contains(':')
                || line.contains(" is None")
                || line.contains(" is not None")
                || line.contains(" not in ")
                || is_comprehension(line)
        }
    }
}

/// `[x * x for x in numbers]`.
fn is_comprehension(line: &str) -> bool {
    let Some((_, list)) = line.split_once('[') else {
        return false;
    };
    let is_loop = list
        .split_once(" for ")
        .is_some_and(|(_, rest)| rest.contains(" in "));
    is_loop && !line.contains([';', '{'])
}

fn first_word(line: &str) -> &str {
    let end = line.find(|it: char| !it.is_alphanumeric() && it != '_');
    &line[..end.unwrap_or(line.len())]
}

/// What is spelled in Python's way.
pub(super) fn spellings(text: &str, scan: &Scan) -> Vec<Spelling> {
    let mut found = Vec::new();
    for span in &scan.quoted {
        let inner = &text[span.start + 1..span.end - 1];
        let rust = format!("\"{}\"", inner.replace('"', "\\\""));
        let reason = "strings use double quotes; single quotes are for one character";
        found.push(Spelling {
            span: *span,
            rust,
            reason,
        });
    }
    for span in &scan.comments {
        let span = CellSpan {
            start: span.start,
            end: span.start + 1,
        };
        let rust = "//".to_owned();
        let reason = "a comment starts with `//`";
        found.push(Spelling { span, rust, reason });
    }
    for span in &scan.prefixed {
        found.extend(of_a_format(text, scan, *span));
    }
    for (word, rust, reason) in [
        ("and", "&&", "both conditions: `a && b`"),
        ("or", "||", "one of two conditions: `a || b`"),
        ("not", "!", "the opposite of a condition: `!a`"),
        ("elif", "else if", "another condition: `else if a { … }`"),
    ] {
        for start in words(&scan.code, word) {
            let mut end = start + word.len();
            if word == "not" && scan.code[end..].starts_with(' ') {
                end += 1;
            }
            let rust = rust.to_owned();
            let span = CellSpan { start, end };
            found.push(Spelling { span, rust, reason });
        }
    }
    found.sort_by_key(|spelling| spelling.span.start);
    found
}

/// `f"…"`: `format!("…")`, and the text alone where a macro formats it.
fn of_a_format(text: &str, scan: &Scan, letter: CellSpan) -> Vec<Spelling> {
    const MACROS: [&str; 6] = [
        "println!(",
        "print!(",
        "eprintln!(",
        "format!(",
        "panic!(",
        "write!(",
    ];
    let reason = "`format!(\"…\")` puts values into a text, and `println!` does so itself";
    let is_formatted = MACROS
        .iter()
        .any(|it| text[..letter.start].trim_end().ends_with(it));
    let one = |span, rust: &str| Spelling {
        span,
        rust: rust.to_owned(),
        reason,
    };
    if is_formatted {
        return vec![one(letter, "")];
    }
    // What stands in the text is blank in the code: the next quote ends it.
    let Some(quote) = text[letter.end..].chars().next() else {
        return Vec::new();
    };
    let Some(length) = scan.code[letter.end + 1..].find(quote) else {
        return Vec::new();
    };
    let end = letter.end + 1 + length + 1;
    let behind = CellSpan { start: end, end };
    vec![one(letter, "format!("), one(behind, ")")]
}

fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let places = code.match_indices(word).map(|(at, _)| at);
    places.filter(move |&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

/// Lines of Python with what is written here in their place, the first few.
pub(super) fn forms(text: &str) -> Vec<(String, String)> {
    /// A card with more is not read.
    const MOST: usize = 5;
    let mut forms: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(form) = form(line)
            && !forms.iter().any(|(_, known)| *known == form)
        {
            forms.push((line.to_owned(), form));
        }
        if forms.len() == MOST {
            break;
        }
    }
    forms
}

/// The Rust of a line of Python, where it is known.
fn form(line: &str) -> Option<String> {
    let word = first_word(line);
    let rest = line[word.len()..].trim();
    let block = rest.trim_end_matches(':').trim();
    let write = |code: String| Some(format!("write `{code}`"));
    if line.starts_with('#') {
        return write(format!("// {}", line.trim_start_matches('#').trim()));
    }
    match word {
        "import" | "from" => return Some(of_an_import(line)),
        "with" => {
            let strategy = block.strip_suffix(".scope()")?;
            return write(format!("scope!({strategy}, {{ … }});"));
        }
        "def" => {
            let name = first_word(rest);
            let operands = rest.split_once('(')?.1.split(')').next()?;
            let operands: Vec<String> = operands
                .split(',')
                .map(|operand| first_word(operand.trim()))
                .filter(|operand| !operand.is_empty())
                .map(|operand| format!("{operand}: f64"))
                .collect();
            return write(format!("fn {name}({}) -> f64 {{ … }}", operands.join(", ")));
        }
        "class" => return write(format!("struct {} {{ … }}", first_word(rest))),
        "for" => {
            let (variable, items) = block.split_once(" in ")?;
            let items = match items
                .strip_prefix("range(")
                .and_then(|it| it.strip_suffix(')'))
            {
                Some(range) => match range.split_once(',') {
                    Some((from, to)) => format!("{}..{}", from.trim(), to.trim()),
                    None => format!("0..{range}"),
                },
                None => items.to_owned(),
            };
            return write(format!("for {variable} in {items} {{ … }}"));
        }
        "if" | "while" if line.ends_with(':') => return write(format!("{word} {block} {{ … }}")),
        "elif" => return write(format!("else if {block} {{ … }}")),
        "else" if block.is_empty() => return write("else { … }".to_owned()),
        "print" => {
            let value = rest.strip_prefix('(')?.strip_suffix(')')?;
            return match value.starts_with(|sign| sign == 'f' || is_quote(sign))
                && value.ends_with(is_quote)
            {
                true => {
                    let text = value.trim_start_matches('f').trim_matches(is_quote);
                    write(format!("println!(\"{text}\");"))
                }
                false => write(format!("println!(\"{{:?}}\", {value});")),
            };
        }
        _ => {}
    }
    of_a_call(line).or_else(|| of_a_binding(line))
}

fn is_quote(sign: char) -> bool {
    matches!(sign, '\u{22}' | '\u{27}')
}

fn of_an_import(line: &str) -> String {
    const OURS: [&str; 5] = ["tensorflow", "keras", "tf_keras", "transformers", "numpy"];
    let is_ours = OURS.iter().any(|name| line.contains(name));
    if is_ours {
        "remove it: layers, losses, optimizers and strategies are imported already".to_owned()
    } else {
        "`use path::name;` imports a Rust name, `%dep` adds a crate".to_owned()
    }
}

/// `model.fit(…)` and what else the DSL has.
fn of_a_call(line: &str) -> Option<String> {
    let (before, _) = line.split_once('(')?;
    let (variable, callee) = match before.split_once('=') {
        Some((variable, callee)) => {
            let variable = variable.trim();
            // A line of Rust in a block of Python.
            let name = variable.strip_prefix("let ").unwrap_or(variable);
            (Some(name), callee.trim())
        }
        None => (None, before.trim()),
    };
    let name = callee.rsplit('.').next()?;
    let owner = callee.rsplit_once('.').map_or("model", |(owner, _)| owner);
    let made = match name {
        "compile" => format!("compile!({owner}, optimizer = AdamW::new(5e-5), loss = …)?"),
        "fit" => format!("fit!({owner}, train, epochs = 3)?"),
        "start" => format!("start!({owner}, train, epochs = 3)?"),
        "evaluate" => format!("evaluate!({owner}, dev)?"),
        "predict" => format!("{owner}.predict(…)?"),
        "Sequential" => "Sequential([…])?".to_owned(),
        "MirroredStrategy" => "MirroredStrategy::new()?".to_owned(),
        "OneDeviceStrategy" => "OneDeviceStrategy::new(cpu(0))?".to_owned(),
        "from_pretrained" => "BertForSequenceClassification::from_pretrained(\"…\", 2)?".to_owned(),
        _ => return None,
    };
    Some(match variable {
        Some(variable) => format!("write `let {variable} = {made};`"),
        None => format!("write `{made};`"),
    })
}

/// `x = 3`.
fn of_a_binding(line: &str) -> Option<String> {
    let (variable, value) = line.split_once(" = ")?;
    let is_name = first_word(variable) == variable && !variable.is_empty();
    let is_short = value.len() < 40 && !value.contains('(') && !value.ends_with(['[', '{', ',']);
    (is_name && is_short && !line.ends_with(';')).then(|| {
        let value = value
            .split(" #")
            .next()
            .unwrap_or(value)
            .trim()
            .replace('\'', "\"");
        let value = match value.as_str() {
            "True" => "true".to_owned(),
            "False" => "false".to_owned(),
            _ => value,
        };
        format!("write `let {variable} = {value};`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_python_are_known_and_rust_is_not_taken_for_them() {
        for line in [
            "import tensorflow as tf",
            "from tensorflow import keras",
            "def f(x):",
            "class Net(keras.Model):",
            "with strategy.scope():",
            "for i in range(3):",
            "if x > 3:",
            "else:",
            "@tf.function",
            "squares = [x * x for x in numbers]",
            "f = lambda x: x + 1",
        ] {
            assert!(is_python(line), "{line}");
        }
        for line in [
            "use std::fs;",
            "for i in 0..3 {",
            "if x > 3 {",
            "else {",
            "let v = vec![1];",
            "match x { _ => 1 }",
            "let import = 3;",
            "'outer: for i in 0..3 {",
            "x @ 1..=3 => 1,",
            "where T: Copy,",
        ] {
            assert!(!is_python(line), "{line}");
        }
    }

    #[test]
    fn the_rust_of_a_line() {
        for (line, expected) in [
            ("with strategy.scope():", "scope!(strategy, { … });"),
            (
                "model.fit(x, y, epochs=3)",
                "fit!(model, train, epochs = 3)?;",
            ),
            ("model = Sequential([", "let model = Sequential([…])?;"),
            (
                "let m = Sequential([Dense(3)])?;",
                "let m = Sequential([…])?;",
            ),
            (
                "strategy = tf.distribute.MirroredStrategy()",
                "let strategy = MirroredStrategy::new()?;",
            ),
            ("def f(x, y=2):", "fn f(x: f64, y: f64) -> f64 { … }"),
            ("for i in range(3):", "for i in 0..3 { … }"),
            ("for name in names:", "for name in names { … }"),
            ("print(x)", "println!(\"{:?}\", x);"),
            ("print('done')", "println!(\"done\");"),
            ("rate = 0.1", "let rate = 0.1;"),
            ("# the data", "// the data"),
        ] {
            assert_eq!(form(line), Some(format!("write `{expected}`")), "{line}");
        }
        assert_eq!(form("let x = 3;"), None);
    }
}
