//! Cells that are no code of any language: words, Markdown, JSON, the output of a program.

use stratoscope_cell_syntax::Syntax;

use crate::rules::NotCode;
use crate::{Diagnostic, Place, Rule};

/// SC1017 for a cell that is no Rust and no other code.
pub(super) fn answer(cell: &Syntax) -> Option<Diagnostic> {
    let text = cell.text();
    let kind = Kind::of(text)?;
    if cell.is_rust() {
        return None;
    }
    Some(kind.facts(text).diagnostic())
}

/// What a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Words,
    Markdown,
    Json,
    /// Its last line, or the line that shows it.
    Output(String),
    /// The code of a card.
    Card(String),
}

/// A longer text is a program.
const MOST_BYTES: usize = 64 << 10;

/// Words with which a line of Rust or Python begins.
const KEYWORDS: [&str; 41] = [
    "as", "assert", "async", "await", "break", "class", "const", "continue", "def", "del", "elif",
    "else", "enum", "except", "extern", "fn", "for", "from", "global", "if", "impl", "import",
    "lambda", "let", "loop", "match", "mod", "pass", "print", "pub", "raise", "return", "static",
    "struct", "trait", "try", "type", "unsafe", "use", "while", "with",
];

/// What a question in words may be about, and what is written here.
const ANSWERS: [(&[&str], &str); 7] = [
    (
        &["save", "store", "export"],
        "`model.save_pretrained(\"trained\")?;` saves a model",
    ),
    (
        &["train", "training", "fine-tune", "finetune", "fit"],
        "`fit!(model, data, epochs = 3)?` trains a model",
    ),
    (
        &["predict", "classify", "prediction"],
        "`model.predict([\"a text\"])?` classifies texts",
    ),
    (
        &["gpu", "gpus", "cuda", "device", "devices"],
        "`%device` shows the devices and sets one",
    ),
    (
        &["plot", "curve", "curves", "draw"],
        "`history.plot();` draws the curves of a run",
    ),
    (
        &["evaluate", "accuracy", "measure", "test"],
        "`evaluate!(model, data)?` measures a model",
    ),
    (
        &["memory"],
        "`memory_plan(&model, 16, 64)?` shows what a step needs",
    ),
];

impl Kind {
    fn of(text: &str) -> Option<Self> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines().next()?;
        if let Some(line) = lines().find(|line| is_output(line)) {
            let last = lines().next_back().unwrap_or(line);
            return Some(match card(first) {
                Some(code) => Self::Card(code),
                None => Self::Output(last.to_owned()),
            });
        }
        if text.trim_start().starts_with(['{', '[']) && is_json(text) {
            return Some(Self::Json);
        }
        let is_text = |line: &str| is_words(line) || is_markup(line);
        if !lines().all(is_text) || !lines().any(is_words_or_item) {
            return None;
        }
        Some(match lines().any(is_markup) {
            true => Self::Markdown,
            false => Self::Words,
        })
    }

    fn facts(self, text: &str) -> NotCode {
        let start = text.len() - text.trim_start().len();
        let first = text[start..].lines().next().unwrap_or_default().trim_end();
        let place = Place::span(start, start + first.len());
        let markdown = "make it a Markdown cell: Esc, then M".to_owned();
        let (what, why, fixes) = match &self {
            Self::Words => (
                "text in words",
                "the kernel runs code and answers no questions; `%help` lists what it has",
                asked(text).chain([markdown]).collect(),
            ),
            Self::Markdown => (
                "Markdown",
                "Markdown is shown in cells of its own",
                vec![markdown, "or write `%%markdown` above it".to_owned()],
            ),
            Self::Json => (
                "JSON",
                "JSON is data, which is read from a file",
                vec![
                    "write it to a file, an object on each line, and read that: `Dataset::jsonl(\"data.jsonl\")?`".to_owned(),
                ],
            ),
            Self::Output(_) => (
                "the output of a program",
                "what a program has printed cannot run",
                vec!["paste the code that has printed it".to_owned()],
            ),
            Self::Card(code) => (
                "the text of an error",
                "what a cell has printed cannot run",
                vec![format!("`%explain {code}` shows the page of this error")],
            ),
        };
        let mut facts = NotCode {
            what: what.to_owned(),
            place,
            why: why.to_owned(),
            fixes,
            lines: Vec::new(),
        };
        match self {
            Self::Output(last) if is_exception(&last) => {
                facts.why = format!("it ends with `{last}`")
            }
            Self::Card(code) if !code.starts_with("SC") => {
                facts.fixes = vec!["paste the code, not the error about it".to_owned()];
            }
            Self::Words => facts.lines = lines_of(text).collect(),
            _ => {}
        }
        facts
    }
}

/// Where the lines begin that are not empty.
fn lines_of(text: &str) -> impl Iterator<Item = usize> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        (!line.trim().is_empty()).then_some(start)
    })
}

/// What is written here for what the words are about.
fn asked(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '-');
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let is_about = move |(about, _): &&(&[&str], &str)| {
        words.iter().any(|word| about.contains(&word.as_str()))
    };
    ANSWERS
        .iter()
        .filter(is_about)
        .take(2)
        .map(|(_, answer)| (*answer).to_owned())
}

/// A line that only programs print: of a traceback, a panic, a progress bar.
fn is_output(line: &str) -> bool {
    let is_epoch = || {
        let (now, all) = line.strip_prefix("Epoch ")?.split_once('/')?;
        Some(is_number(now) && is_number(all.trim_end()))
    };
    let is_panic = || line.starts_with("thread '") && line.contains("panicked at");
    line.starts_with("Traceback (most recent call last)")
        || is_epoch().unwrap_or(false)
        || line.contains("[=====")
        || line.contains("━━━━")
        || is_panic()
        || card(line).is_some()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// `error[SC0102]: …`, `warning[SC0507]: …`, `error[E0382]: …`
fn card(line: &str) -> Option<String> {
    let (kind, rest) = line.split_once('[')?;
    let (code, rest) = rest.split_once(']')?;
    let is_code = code.len() >= 5 && code.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_kind = ["error", "warning", "note"].contains(&kind);
    (is_kind && is_code && rest.starts_with(": ")).then(|| code.to_owned())
}

/// `ValueError: Shapes (None, 1) and (None, 10) are incompatible`
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    let is_name = name
        .chars()
        .all(|it| it.is_alphanumeric() || it == '_' || it == '.');
    is_name && (name.ends_with("Error") || name.ends_with("Exception"))
}

/// One object or list, or one on each line.
fn is_json(text: &str) -> bool {
    let values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let mut count = 0;
    for value in values {
        match value {
            Ok(value) if value.is_object() || value.is_array() => count += 1,
            _ => return false,
        }
    }
    count > 0
}

/// A heading, a quotation, a row of a table, or a list's item with words or a link.
fn is_markup(line: &str) -> bool {
    let heading = line.trim_start_matches('#');
    let is_heading = (1..=6).contains(&(line.len() - heading.len())) && heading.starts_with(' ');
    let is_row = line.len() > 2 && line.starts_with('|') && line.ends_with('|');
    is_heading || is_row || line.starts_with("> ") || item(line).is_some() || line.contains("**")
}

/// What an item of a list says.
fn item(line: &str) -> Option<&str> {
    let marked = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let numbered = || {
        line.split_once(". ")
            .filter(|(number, _)| is_number(number))
            .map(|it| it.1)
    };
    marked
        .or_else(numbered)
        .filter(|rest| rest.starts_with(['[', '*', '`']) || rest.starts_with(char::is_alphabetic))
}

/// A heading alone is a comment of Python.
fn is_words_or_item(line: &str) -> bool {
    is_words(line) || item(line).is_some() || line.contains("**")
}

/// Whether a line is words of a language that people speak.
fn is_words(line: &str) -> bool {
    const CODE: &str = "(){}[]=<>;|\\_#@$&^~+";
    if line.contains("::") || line.contains(|it| CODE.contains(it)) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_word = |word: &&str| {
        let bare = word.trim_matches(|it: char| ",.?!:;\"'’‘“”".contains(it) || it == '*');
        !bare.is_empty()
            && bare
                .chars()
                .all(|it| it.is_alphabetic() || "'’-/".contains(it))
    };
    let count = words.iter().filter(|word| is_word(word)).count();
    let is_sentence = line.ends_with(['?', '.', '!', ':']);
    let begins_as_code = words.first().is_some_and(|word| KEYWORDS.contains(word));
    let enough = match (begins_as_code, is_sentence) {
        (true, true) => 5,
        (true, false) => 7,
        (false, true) => 3,
        (false, false) => 4,
    };
    count >= enough && count * 5 >= words.len() * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_distinguished_from_code() {
        let output = |last: &str| Some(Kind::Output(last.to_owned()));
        for (text, expected) in [
            ("how do I save the trained model?", Some(Kind::Words)),
            ("Wie kann ich das Modell speichern?", Some(Kind::Words)),
            (
                "Train the model for 3 epochs with batch size 16",
                Some(Kind::Words),
            ),
            (
                "In this notebook we fine-tune BERT, step by step.\n\nIt doesn't need a GPU.",
                Some(Kind::Words),
            ),
            (
                "# Sentiment analysis\nIn this notebook we fine-tune **BERT**:\n- load the data\n- train",
                Some(Kind::Markdown),
            ),
            ("1. load the data\n2. train the model", Some(Kind::Markdown)),
            (
                "{\"text\": \"good and cheap\", \"label\": \"positive\"}",
                Some(Kind::Json),
            ),
            ("{\"a\": 1}\n{\"a\": 2}", Some(Kind::Json)),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f(\nValueError: Shapes (None, 1)",
                output("ValueError: Shapes (None, 1)"),
            ),
            (
                "Epoch 1/3\n63/63 [==============================] - 12s 180ms/step - loss: 0.6",
                output("63/63 [==============================] - 12s 180ms/step - loss: 0.6"),
            ),
            (
                "error[SC0102]: `steps_per_execution` needs a scope",
                Some(Kind::Card("SC0102".to_owned())),
            ),
            // Comments of Python, slips of Rust, names.
            ("# load the data", None),
            ("# load the data\n# then train", None),
            ("let model = the model", None),
            ("model fit train", None),
            ("for each in data print each", None),
            ("model.fit(train, epochs = 3)", None),
            ("println!(\"how do I save it?\")", None),
            ("use std::fmt", None),
            ("import numpy as np", None),
            ("x", None),
            ("- 1", None),
            ("a * b", None),
            ("", None),
        ] {
            assert_eq!(Kind::of(text), expected, "{text}");
        }
    }

    #[test]
    fn the_answer_is_about_what_was_asked() {
        let found = Kind::Words.facts("How do I save the model?").diagnostic();
        assert!(found.fixes[0].title.contains("save_pretrained"), "{found}");
        let output = "Traceback (most recent call last):\nKeyError: 'label'";
        let found = Kind::of(output)
            .expect("an output")
            .facts(output)
            .diagnostic();
        assert!(found.why[0].contains("KeyError: 'label'"), "{found}");
    }
}
