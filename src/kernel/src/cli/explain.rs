//! `stratoscope explain CODE`: the page of a diagnostic or of a rustc error. With `--apply` a fix of a card is applied.

use std::process::ExitCode;
use stratoscope_os::console::say;

use anyhow::{Context, bail};
use serde::Deserialize;
use stratoscope_diagnostics::render::apply;
use stratoscope_diagnostics::{Fix, pages, rules};

use stratoscope_evaluator::pages::Page;

/// Arguments of `stratoscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// A code such as SC0102, or E0308 of rustc; without it, all codes are listed
    code: Option<String>,
    /// Print all pages as JSON
    #[arg(long, conflicts_with = "code")]
    json: bool,
    /// Read a cell and a fix of its card as JSON from standard input, and print the corrected cell
    #[arg(long, conflicts_with_all = ["code", "json"])]
    apply: bool,
}

/// What `--apply` reads: `{"cell": "…", "fix": {"title": "…", "edits": […]}}`, the fix as a card has it.
#[derive(Deserialize)]
struct Correction {
    cell: String,
    fix: Fix,
}

/// Prints the page, the list of all codes, or a corrected cell.
///
/// # Errors
/// There is no such code, or the fix cannot be applied.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    if arguments.apply {
        let read = serde_json::from_reader(std::io::stdin().lock());
        say(&corrected(
            &read.context("expected a cell and a fix as JSON")?,
        )?);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.json {
        say(&pages::json().to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(code) = &arguments.code else {
        for entry in rules::CATALOGUE {
            say(&format!("{}  {}", entry.page.code, entry.page.name));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(page) = Page::of(code) else {
        bail!(
            "{}",
            stratoscope_evaluator::pages::unknown(code, "stratoscope explain")
        );
    };
    say(&page.plain());
    Ok(ExitCode::SUCCESS)
}

fn corrected(given: &Correction) -> anyhow::Result<String> {
    apply(&given.cell, &given.fix)
        .context("the fix has no edits, or they overlap or do not fit the cell")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: &str, edits: &str, expected: Option<&str>) {
        let cell = serde_json::Value::from(cell);
        let text = format!(r#"{{"cell": {cell}, "fix": {{"title": "", "edits": {edits}}}}}"#);
        let given: Correction = serde_json::from_str(&text).expect("a cell and a fix");
        assert_eq!(corrected(&given).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn the_edits_of_a_card_are_applied_to_bytes_of_the_cell() {
        let at = |start, end, replacement: &str| {
            format!(
                r#"{{"place": {{"span": {{"start": {start}, "end": {end}}}}}, "replacement": "{replacement}"}}"#
            )
        };
        let two = format!("[{}, {}]", at(9, 10, ","), at(0, 3, "b"));
        check("ä1 = f(1;2)", &two, Some("b = f(1,2)"));
        check("a", &format!("[{}]", at(0, 4, "b")), None);
        check("a", "[]", None);
    }
}
