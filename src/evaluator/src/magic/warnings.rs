//! `%warnings`: what is done with them, code by code.

use serde_json::Value;
use stratoscope_diagnostics::policy::Level;
use stratoscope_diagnostics::{Severity, rules};
use stratoscope_render::html::escape;
use stratoscope_wire::MimeBundle;

use super::lints;
use super::request::{WARNINGS_USAGE, WarningsRequest};
use stratoscope_session::DiagnosticSettings;

/// Carries out the request. Returns what to show: the table, or what has changed.
///
/// # Errors
/// There is no such code; the message.
pub fn answer(
    request: &WarningsRequest,
    settings: &mut DiagnosticSettings,
) -> Result<MimeBundle, String> {
    let (level, codes) = match request {
        WarningsRequest::Show => return Ok(table(settings)),
        WarningsRequest::Again => {
            settings.policy.again();
            return Ok(plain("every warning is shown once more".to_owned()));
        }
        WarningsRequest::Set { level, codes } => (*level, codes),
    };
    // All are looked up before the first is set.
    let found: Vec<Warning> = codes
        .iter()
        .map(|code| find(code))
        .collect::<Result<_, _>>()?;
    if let (Some(Level::Denied), Some(lint)) = (level, found.iter().find(|it| it.is_lint)) {
        let name = &lint.code;
        return Err(format!(
            "`{name}` is rustc's, and known after the cell has run; a cell with `#![deny({name})]` denies it before"
        ));
    }
    let mut lines = Vec::new();
    for Warning {
        code,
        shown,
        is_error,
        ..
    } in found
    {
        settings.policy.set(&code, level);
        let what = match level {
            Some(Level::Silenced) if is_error => {
                "is an error and stays one; only its warnings are silenced"
            }
            Some(Level::Silenced) => "is silenced",
            Some(Level::Denied) => "is an error from now on",
            None => "is shown, once for each message",
        };
        lines.push(format!("{shown} {what}"));
    }
    Ok(plain(lines.join("\n")))
}

/// What a warning is known by.
struct Warning {
    code: String,
    /// The code, and its name in words.
    shown: String,
    is_error: bool,
    /// rustc's, and not ours.
    is_lint: bool,
}

fn find(word: &str) -> Result<Warning, String> {
    if let Some(entry) = rules::explain(&word.to_ascii_uppercase()) {
        let page = &entry.page;
        return Ok(Warning {
            code: page.code.to_owned(),
            shown: format!("{} {}", page.code, page.name),
            is_error: page.severity == Severity::Error,
            is_lint: false,
        });
    }
    let lint = word.to_ascii_lowercase().replace('-', "_");
    if lints::is_one(&lint) {
        return Ok(Warning {
            code: lint.clone(),
            shown: format!("rustc's {lint}"),
            is_error: false,
            is_lint: true,
        });
    }
    Err(format!(
        "there is no `{word}`; `%explain` lists all codes, `!rustc -W help` rustc's lints"
    ))
}

/// What was decided and what was found, as text and as HTML.
fn table(settings: &DiagnosticSettings) -> MimeBundle {
    let summary = settings.policy.summary();
    if summary.is_empty() {
        return plain(format!("no warnings yet; {WARNINGS_USAGE}"));
    }
    let mut lines = String::new();
    let mut html = String::from(
        "<table><thead><tr><th>code</th><th></th><th>found</th><th>last message</th></tr></thead><tbody>",
    );
    for (code, times, message) in summary {
        let level = match settings.policy.level(code) {
            Some(Level::Silenced) => "silenced",
            Some(Level::Denied) => "denied",
            None => "shown",
        };
        let message = message.unwrap_or("–");
        lines += &format!("{code}  {level:<10}  {times:>3} ×  {message}\n");
        html += &format!(
            "<tr><td style=\"text-align:left\"><code>{}</code></td>\
             <td style=\"text-align:left\">{level}</td><td>{times} ×</td>\
             <td style=\"text-align:left\">{}</td></tr>",
            escape(code),
            escape(message)
        );
    }
    html += "</tbody></table>";
    let mut data = plain(lines.trim_end().to_owned());
    data.insert("text/html".to_owned(), Value::from(html));
    data
}

fn plain(text: String) -> MimeBundle {
    MimeBundle::from_iter([("text/plain".to_owned(), Value::from(text))])
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Diagnostic;

    use super::*;
    use crate::magic::Magic;

    fn answer(line: &str, settings: &mut DiagnosticSettings) -> Result<String, String> {
        let data = match Magic::parse(&format!("%warnings {line}")) {
            Some(Magic::Warnings(request)) => super::answer(&request, settings)?,
            Some(Magic::Invalid(invalid)) => return Err(invalid.evalue),
            other => panic!("{other:?}"),
        };
        Ok(data["text/plain"].as_str().unwrap_or_default().to_owned())
    }

    fn text(line: &str, settings: &mut DiagnosticSettings) -> String {
        answer(line, settings).expect("an answer")
    }

    #[test]
    fn codes_are_silenced_denied_and_listed() {
        let mut settings = DiagnosticSettings::default();
        assert!(text("", &mut settings).starts_with("no warnings yet"));
        assert!(text("deny SC0302", &mut settings).contains("an error from now on"));
        text("silence sc0407, SC0505", &mut settings);
        assert_eq!(settings.policy.level("SC0407"), Some(Level::Silenced));
        let found = Diagnostic::new("SC0302", Severity::Warning, "the head outputs logits");
        let shown = settings.judged(found, None).expect("is shown");
        assert_eq!(shown.severity, Severity::Error);
        let table = text("", &mut settings);
        assert!(
            table.contains("SC0302  denied        1 ×  the head outputs logits"),
            "{table}"
        );
        text("default SC0302", &mut settings);
        assert_eq!(settings.policy.level("SC0302"), None);
    }

    #[test]
    fn rustcs_lints_are_silenced_by_their_names() {
        let mut settings = DiagnosticSettings::default();
        let shown = text("silence unused-variables", &mut settings);
        assert_eq!(shown, "rustc's unused_variables is silenced");
        let level = settings.policy.level("unused_variables");
        assert_eq!(level, Some(Level::Silenced));
    }

    #[test]
    fn what_is_not_understood_changes_nothing() {
        let mut settings = DiagnosticSettings::default();
        for asked in [
            "silence",
            "mute SC0407",
            "deny SC0407 SC9999",
            "silence dead_cod",
            "deny dead_code",
        ] {
            answer(asked, &mut settings).expect_err(asked);
        }
        assert!(settings.policy.summary().is_empty());
    }
}
