//! `%warnings`: what is done with them, code by code.

use serde_json::Value;
use stratoscope_diagnostics::policy::Level;
use stratoscope_diagnostics::{Severity, rules};
use stratoscope_render::html::escape;
use stratoscope_wire::MimeBundle;

use super::lints;
use stratoscope_session::DiagnosticSettings;

const USAGE: &str = "`%warnings silence CODE`, `%warnings deny CODE`, `%warnings default CODE`, \
                     `%warnings again`";

/// `silence`, `deny` or `default` with codes or names of rustc's lints, `again`, or nothing: then the table. Returns what to show.
///
/// # Errors
/// There is no such word or code: what to say then.
pub fn answer(asked: &str, settings: &mut DiagnosticSettings) -> Result<MimeBundle, String> {
    let mut words = asked.split([' ', ',']).filter(|word| !word.is_empty());
    let Some(word) = words.next() else {
        return Ok(table(settings));
    };
    let level = match word {
        "silence" => Some(Level::Silenced),
        "deny" => Some(Level::Denied),
        "default" => None,
        "again" => {
            settings.policy.again();
            return Ok(plain("every warning is shown once more".to_owned()));
        }
        other => return Err(format!("`%warnings` has no `{other}`; there is {USAGE}")),
    };
    let codes: Vec<&str> = words.collect();
    if codes.is_empty() {
        return Err(format!("which code? `%warnings {word} SC0410`"));
    }
    // All are looked up before the first is set.
    let found: Vec<Found> = codes.into_iter().map(find).collect::<Result<_, _>>()?;
    if let (Some(Level::Denied), Some(lint)) = (level, found.iter().find(|it| it.is_lint)) {
        let name = &lint.code;
        return Err(format!(
            "`{name}` is rustc's, and known after the cell has run; a cell with `#![deny({name})]` denies it before"
        ));
    }
    let mut told = Vec::new();
    for Found {
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
        told.push(format!("{shown} {what}"));
    }
    Ok(plain(told.join("\n")))
}

/// What a warning is known by.
struct Found {
    code: String,
    /// The code, and its name in words.
    shown: String,
    is_error: bool,
    /// rustc's, and not ours.
    is_lint: bool,
}

fn find(word: &str) -> Result<Found, String> {
    if let Some(entry) = rules::explain(&word.to_ascii_uppercase()) {
        let page = &entry.page;
        return Ok(Found {
            code: page.code.to_owned(),
            shown: format!("{} {}", page.code, page.name),
            is_error: page.severity == Severity::Error,
            is_lint: false,
        });
    }
    let lint = word.to_ascii_lowercase().replace('-', "_");
    if lints::is_one(&lint) {
        return Ok(Found {
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
        return plain(format!("no warnings yet; {USAGE}"));
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

    fn told(asked: &str, settings: &mut DiagnosticSettings) -> String {
        let data = answer(asked, settings).expect("an answer");
        data["text/plain"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn codes_are_silenced_denied_and_listed() {
        let mut settings = DiagnosticSettings::default();
        assert!(told("", &mut settings).starts_with("no warnings yet"));
        assert!(told("deny SC0302", &mut settings).contains("an error from now on"));
        told("silence sc0407, SC0505", &mut settings);
        assert_eq!(settings.policy.level("SC0407"), Some(Level::Silenced));
        let found = Diagnostic::new("SC0302", Severity::Warning, "the head outputs logits");
        let shown = settings.judged(found, None).expect("is shown");
        assert_eq!(shown.severity, Severity::Error);
        let table = told("", &mut settings);
        assert!(
            table.contains("SC0302  denied        1 ×  the head outputs logits"),
            "{table}"
        );
        told("default SC0302", &mut settings);
        assert_eq!(settings.policy.level("SC0302"), None);
    }

    #[test]
    fn rustcs_lints_are_silenced_by_their_names() {
        let mut settings = DiagnosticSettings::default();
        let answer = told("silence unused-variables", &mut settings);
        assert_eq!(answer, "rustc's unused_variables is silenced");
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
