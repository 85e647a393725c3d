//! `stratoscope explain CODE`: the page of a rule.

use std::process::ExitCode;

use anyhow::bail;
use stratoscope_diagnostics::{RulePage, rules};

/// Arguments of `stratoscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// The code, such as SC0102; without one, all are listed
    code: Option<String>,
}

/// Prints the page, or the list of all pages.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    let Some(code) = &arguments.code else {
        for page in rules::CATALOGUE {
            super::say(&format!("{}  {}", page.code, page.name));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(page) = rules::explain(code) else {
        bail!("there is no `{code}`; `stratoscope explain` lists all codes");
    };
    super::say(&rule_page(page));
    Ok(ExitCode::SUCCESS)
}

/// The page of a rule as text.
pub fn rule_page(page: &RulePage) -> String {
    let mut text = format!(
        "{} {}\n\n{}\n\n{}\n",
        page.code, page.name, page.finds, page.why
    );
    for (title, body) in [
        ("A cell that triggers it", page.bad),
        ("The same cell, mended", page.good),
        ("What TensorFlow does", page.tensorflow),
    ] {
        if !body.is_empty() {
            let indented = body.trim_end().replace('\n', "\n    ");
            text.push_str(&format!("\n{title}\n    {indented}\n"));
        }
    }
    text.trim_end().to_owned()
}
