//! `stratoscope explain CODE`: the page of a rule.

use std::process::ExitCode;
use stratoscope_os::console::say;

use anyhow::bail;
use stratoscope_diagnostics::{pages, rules};

use stratoscope_evaluator::pages::Page;

/// Arguments of `stratoscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// The code, such as SC0102 or rustc's E0308; without one, all are listed
    code: Option<String>,
    /// All pages as JSON, for tools
    #[arg(long, conflicts_with = "code")]
    json: bool,
}

/// Prints the page, or the list of all pages.
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
        bail!("{}", stratoscope_evaluator::pages::unknown(code, "stratoscope explain"));
    };
    say(&page.plain());
    Ok(ExitCode::SUCCESS)
}
