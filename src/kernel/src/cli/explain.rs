//! `stratoscope explain CODE`: the page of a rule.

use std::process::ExitCode;

use anyhow::bail;
use stratoscope_diagnostics::{pages, rules};

/// Arguments of `stratoscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// The code, such as SC0102; without one, all are listed
    code: Option<String>,
    /// All pages as JSON, for tools
    #[arg(long, conflicts_with = "code")]
    json: bool,
}

/// Prints the page, or the list of all pages.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    if arguments.json {
        super::say(&pages::json().to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(code) = &arguments.code else {
        for entry in rules::CATALOGUE {
            super::say(&format!("{}  {}", entry.page.code, entry.page.name));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(entry) = rules::explain(code) else {
        bail!("there is no `{code}`; `stratoscope explain` lists all codes");
    };
    super::say(pages::plain(entry).trim_end());
    Ok(ExitCode::SUCCESS)
}
