//! The page of a rule: `%explain CODE` prints it, `docs/diagnostics/` holds it.

use crate::rules::CATALOGUE;
use crate::{RulePage, Severity};

/// The severity as a word.
fn severity(page: &RulePage) -> &'static str {
    match page.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// The page as Markdown.
pub fn markdown(page: &RulePage) -> String {
    let mut out = format!(
        "# {} `{}`\n\n*{}*, found {}.\n\n## What it finds\n\n{}\n\n## Why it matters\n\n{}\n\n\
         ## A cell that triggers it\n\n```rust\n{}\n```\n\n## The same cell, mended\n\n```rust\n{}\n```\n",
        page.code,
        page.name,
        severity(page),
        page.stage.words(),
        page.finds,
        page.why,
        page.bad,
        page.good
    );
    if !page.tensorflow.is_empty() {
        out += &format!("\n## What TensorFlow does\n\n{}\n", page.tensorflow);
    }
    out
}

/// The page as text for a terminal.
pub fn plain(page: &RulePage) -> String {
    let indented = |code: &str| {
        code.lines()
            .map(|line| format!("    {line}").trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut out = format!(
        "{} {} ({}, found {})\n\n{}\n\nWhy it matters: {}\n\nA cell that triggers it:\n\n{}\n\n\
         The same cell, mended:\n\n{}\n",
        page.code,
        page.name,
        severity(page),
        page.stage.words(),
        page.finds,
        page.why,
        indented(page.bad),
        indented(page.good)
    );
    if !page.tensorflow.is_empty() {
        out += &format!("\nWhat TensorFlow does: {}\n", page.tensorflow);
    }
    out
}

/// The list of all pages, as Markdown with links.
pub fn index() -> String {
    let mut out = String::from(
        "# Diagnostics\n\nEvery error, warning and note has a stable code. `%explain SC0101` in a notebook prints \
         the same pages. They are written from the rules in `src/diagnostics/src/rules/` by the tests of \
         that crate (`UPDATE_DOCS=1`).\n\n| code | name | severity | found |\n| --- | --- | --- | --- |\n",
    );
    for page in CATALOGUE {
        out += &format!(
            "| [{code}]({code}.md) | {} | {} | {} |\n",
            page.name,
            severity(page),
            page.stage.words(),
            code = page.code
        );
    }
    out
}

/// The tables of arguments, as Markdown.
pub fn arguments() -> String {
    use crate::arguments::{CALLS, OPTIMIZERS};
    let mut out = String::from(
        "# Arguments\n\nWhat `compile!`, `fit!`, `evaluate!` and the optimizers accept. An argument that is not \
         here does not exist, and is never ignored. Written from `src/diagnostics/src/arguments/`.\n",
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
                "| `{}` | {} | {} | {} | {doc} |\n",
                argument.name,
                cell(argument.expects),
                cell(argument.default),
                cell(argument.origin)
            );
        }
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
