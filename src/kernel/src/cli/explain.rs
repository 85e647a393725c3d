//! `stratoscope explain CODE`: the page of a diagnostic or of a rustc error.

use std::process::ExitCode;
use stratoscope_os::console::say;

use anyhow::bail;
use stratoscope_diagnostics::{pages, rules};

use stratoscope_evaluator::pages::Page;

/// Arguments of `stratoscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// A code such as SC0102, or E0308 of rustc; without it, all codes are listed
    code: Option<String>,
    /// Print all pages as JSON
    #[arg(long, conflicts_with = "code")]
    json: bool,
}

/// Prints the page, or the list of all codes.
///
/// # Errors
/// There is no such code.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
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
