//! The page of a rule: `%explain CODE` prints it, `docs/diagnostics/` holds it.

use serde_json::{Value, json};

use crate::rules::CATALOGUE;
use crate::{Entry, RulePage, Severity, Stage};
use stratoscope_render::text;

/// What the cells of all pages take for granted: a name and the statement that makes it. A cell that
/// makes the name itself, or does not use it, does without.
pub const GRANTED: &[(&str, &str)] = &[
    ("train", "let (train, dev) = debian_sections()?;"),
    ("dev", "let (train, dev) = debian_sections()?;"),
    (
        "model",
        "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
         compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)), \
         loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    ),
];

/// Columns after which a terminal's text is wrapped.
const COLUMNS: usize = 88;

/// The severity as a word.
fn severity(page: &RulePage) -> &'static str {
    match page.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// How often a finding is shown; nothing to say of an error.
fn shown(entry: &Entry) -> &'static str {
    match (entry.page.severity, entry.once) {
        (Severity::Error, _) => "",
        _ if entry.page.stage == Stage::Page => "",
        (_, true) => "; shown once a session",
        (_, false) => "; shown in every cell that has it",
    }
}

/// The page as Markdown.
pub fn markdown(entry: &Entry) -> String {
    let page = &entry.page;
    let mut given = String::new();
    for cell in entry.given {
        given += &format!("```rust\n{cell}\n```\n\n");
    }
    if !given.is_empty() {
        given = format!("## Before either cell\n\n{given}");
    }
    let mut out = format!(
        "# {} `{}`\n\n*{}*, {}{}.\n\n## What it finds\n\n{}\n\n## Why it matters\n\n{}\n\n\
         {given}## A cell that triggers it\n\n```rust\n{}\n```\n\n## The corrected cell\n\n```rust\n{}\n```\n",
        page.code,
        page.name,
        severity(page),
        page.stage.sentence(),
        shown(entry),
        page.finds,
        page.why,
        page.bad,
        page.good
    );
    if !page.tensorflow.is_empty() {
        out += &format!("\n## What TensorFlow does\n\n{}\n", page.tensorflow);
    }
    if let Some(reason) = entry.not_run {
        out += &format!("\n*These cells are not run by the tests: {reason}.*\n");
    }
    out
}

/// The page as text for a terminal.
pub fn plain(entry: &Entry) -> String {
    let page = &entry.page;
    let indented = |code: &str| {
        code.lines()
            .map(|line| format!("    {line}").trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut out = format!(
        "{} {}\n{}, {}{}\n\n{}\n\n{}\n",
        page.code,
        page.name,
        severity(page),
        page.stage.sentence(),
        shown(entry),
        wrapped(page.finds),
        wrapped(page.why)
    );
    let given = entry.given.iter().map(|cell| ("Before either cell", *cell));
    let cells = [
        ("A cell that triggers it", page.bad),
        ("The corrected cell", page.good),
    ];
    for (title, cell) in given.chain(cells) {
        out += &format!("\n{title}:\n\n{}\n", indented(cell));
    }
    if !page.tensorflow.is_empty() {
        out += &format!("\nIn TensorFlow:\n{}\n", wrapped(page.tensorflow));
    }
    out
}

/// Everything as data, for tools: what is granted, then the rules in the order of their codes.
pub fn json() -> Value {
    let rule = |entry: &Entry| {
        let page = &entry.page;
        json!({
            "code": page.code,
            "name": page.name,
            "severity": severity(page),
            "stage": page.stage.name(),
            "finds": page.finds,
            "why": page.why,
            "given": entry.given,
            "bad": page.bad,
            "good": page.good,
            "tensorflow": page.tensorflow,
            "not_run": entry.not_run,
            "once": entry.once,
            "tolerates": entry.tolerates,
        })
    };
    let granted = |(name, statement): &(&str, &str)| json!({"name": name, "statement": statement});
    json!({
        "granted": GRANTED.iter().map(granted).collect::<Vec<_>>(),
        "rules": CATALOGUE.iter().map(rule).collect::<Vec<_>>(),
    })
}

fn wrapped(text: &str) -> String {
    let lines = text.lines().flat_map(|line| text::wrap(line, COLUMNS));
    lines.collect::<Vec<_>>().join("\n")
}

/// The list of all pages, as Markdown with links.
pub fn index() -> String {
    let mut out = String::from(
        "# Diagnostics\n\nEvery error, warning and note has a stable code. `%explain SC0101` in a notebook prints \
         the same pages. They are written from the rules in `src/diagnostics/src/rules/` by the tests of \
         that crate (`UPDATE_DOCS=1`).\n\n| code | name | severity | found |\n| --- | --- | --- | --- |\n",
    );
    for page in CATALOGUE.iter().map(|entry| &entry.page) {
        out += &format!(
            "| [{code}]({code}.md) | {} | {} | {} |\n",
            page.name,
            severity(page),
            page.stage.words(),
            code = page.code
        );
    }
    out += "\nThe cells of the pages use these variables:\n\n```rust\n";
    let mut statements: Vec<&str> = GRANTED.iter().map(|(_, statement)| *statement).collect();
    statements.dedup();
    out += &statements.join("\n");
    out += "\n```\n";
    out
}

/// The tables of arguments, as Markdown.
pub fn arguments() -> String {
    use crate::arguments::{CALLS, OPTIMIZERS};
    let mut out = String::from(
        "# Arguments\n\nWhat `compile!`, `fit!`, `evaluate!` and the optimizers accept. Any other argument is an \
         error and never ignored. Written from `src/diagnostics/src/arguments/`.\n",
    );
    let calls = CALLS.iter().map(|call| {
        (
            format!("`{}!({}, …)`", call.name, call.operands.join(", ")),
            call.arguments,
        )
    });
    let optimizers = OPTIMIZERS.iter().map(|optimizer| {
        (
            format!("`{}::new(rate)`", optimizer.name),
            optimizer.arguments,
        )
    });
    for (title, arguments) in calls.chain(optimizers) {
        out += &format!(
            "\n## {title}\n\n| argument | expects | default | default from | |\n| --- | --- | --- | --- | --- |\n"
        );
        for argument in arguments {
            let mut doc = argument.doc.to_owned();
            for (other, _) in argument.conflicts {
                doc += &format!(" Not together with `{other}`.");
            }
            out += &format!(
                "| `{}` | {} | {} | {} | {} |\n",
                argument.name,
                cell(argument.expects),
                cell(argument.default),
                cell(argument.origin),
                linked(&cell(&doc))
            );
        }
    }
    out
}

/// A text for a cell of a table, where a bar would end the cell, in code too.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The text with a link for each code of the catalogue.
fn linked(text: &str) -> String {
    CATALOGUE.iter().fold(text.to_owned(), |text, entry| {
        let code = entry.page.code;
        text.replace(code, &format!("[{code}]({code}.md)"))
    })
}
