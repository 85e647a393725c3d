//! The card in the notebook.
//!
//! Front ends sanitize HTML: style sheets, SVG, scripts and variables are lost, and JupyterLab drops
//! `rgba(…)` colors and the unit `ch` too. So every style is literal and inline, and colors are hex, with an
//! alpha channel where they lie behind text. Text keeps the color it inherits, since no other one can be read on
//! white and on black; only badges bring a solid background and their own white. What is too long goes on in the
//! next line; only a table's words may be wider than a narrow window, and it is scrolled alone.
//!
//! Screen readers get roles. JupyterLab removes them and keeps classes, so its extension sets them again, and adds the
//! buttons that apply fixes (`kernel-spec/labextension/src/cards.ts`).

mod arguments;
mod code;

use stratoscope_render::html::{CODE_FONT, NAMED_ROW, NAMED_VALUE, escape, prose};

use self::code::{change, marked_lines};
use super::fix::{changed_lines, shows_lines};
use super::place::primary;
use super::{Source, general, resolved, severity_word};
use crate::{Answer, Diagnostic, Place, Severity};

const RED: &str = "#e5484d";
const RED_TINT: &str = "#e5484d33";
const AMBER: &str = "#d98a00";
const AMBER_TINT: &str = "#d98a0033";
const BLUE: &str = "#3b82f6";
const BLUE_TINT: &str = "#3b82f633";
const GREEN: &str = "#2f9e5b";
const GREEN_TINT: &str = "#2f9e5b33";
const GRAY: &str = "#88888866";
const GRAY_TINT: &str = "#8888881f";

/// Text that matters less.
const MUTED: &str = "opacity:0.75";

/// The diagnostic as a card, and a card below it for each related one. Nothing outside is styled.
pub fn html(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let resolved = resolved(diagnostic, source);
    let related = resolved.related.iter();
    related.fold(card(&resolved, source), |cards, other| {
        cards + &card(other, source)
    })
}

fn card(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let (border, _) = colors(diagnostic.severity);
    let mut out = format!(
        "<div class=\"stratoscope-card\" role=\"group\" style=\"border:1px solid {GRAY};border-left:4px solid {border};border-radius:4px;\
         padding:8px 14px 10px 12px;margin:4px 0;line-height:1.45;text-align:left;max-width:1040px\">"
    );
    head(&mut out, diagnostic, source);
    marked_lines(&mut out, diagnostic, source);
    files(&mut out, diagnostic);
    if !diagnostic.why.is_empty() {
        section(&mut out, GRAY, "Why", &lines(&diagnostic.why));
    }
    seen(&mut out, diagnostic);
    fixes(&mut out, diagnostic, source);
    if let Some(text) = general(diagnostic) {
        let sentences: Vec<&str> = text.lines().collect();
        section(&mut out, AMBER, "TensorFlow", &lines(&sentences));
    }
    if let Some(it) = diagnostic.answer() {
        answer(&mut out, it);
    }
    arguments::table(&mut out, &diagnostic.arguments);
    if let Some(figure) = &diagnostic.figure {
        out += &format!("<div style=\"margin:10px 0 0 0\">{}</div>", figure.html);
    }
    out += "</div>";
    out
}

/// The severity's border and the tint behind text.
fn colors(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Error => (RED, RED_TINT),
        Severity::Warning => (AMBER, AMBER_TINT),
        Severity::Note => (BLUE, BLUE_TINT),
    }
}

fn head(out: &mut String, diagnostic: &Diagnostic, source: &Source<'_>) {
    // White on these has a contrast above 4.5.
    let badge = match diagnostic.severity {
        Severity::Error => "#c62828",
        Severity::Warning => "#8a5a00",
        Severity::Note => "#1d5fc4",
    };
    *out += &format!(
        "<div class=\"stratoscope-card-head\" role=\"heading\" aria-level=\"4\" style=\"margin:0 0 6px 0\">\
         <span style=\"background-color:{badge};color:#ffffff;\
         border-radius:3px;padding:1px 7px;font-weight:bold;font-size:0.85em\">{} {}</span> \
         <b>{}</b>",
        severity_word(diagnostic.severity),
        escape(&diagnostic.code),
        prose(&diagnostic.message)
    );
    if let Some((line, column)) = primary(diagnostic, source.text) {
        *out += &format!(
            " <span style=\"{MUTED};font-size:0.9em;white-space:nowrap\">{}, line {line}, column {column}</span>",
            escape(source.name)
        );
    }
    *out += "</div>";
}

/// Places in files, which are not the cell's.
fn files(out: &mut String, diagnostic: &Diagnostic) {
    for label in &diagnostic.labels {
        if let Place::File { path, line } = &label.place {
            let line = line
                .map(|line| format!(", line {line}"))
                .unwrap_or_default();
            *out += &format!(
                "<div style=\"margin:2px 0\"><code style=\"{CODE_FONT}\">{}</code>{line}: {}</div>",
                escape(path),
                prose(&label.text)
            );
        }
    }
}

/// A part of the card: its name on the left, what it says beside it.
fn section(out: &mut String, color: &str, name: &str, html: &str) {
    *out += &format!(
        "<div style=\"{NAMED_ROW};margin:7px 0;padding:0 0 0 10px;border-left:3px solid {color}\">\
         <b class=\"stratoscope-card-part\" role=\"heading\" aria-level=\"5\" style=\"flex:0 0 88px;padding-right:10px\">{}</b>\
         <div style=\"{NAMED_VALUE}\">{html}</div></div>",
        escape(name)
    );
}

/// Sentences, one below the other.
fn lines<S: AsRef<str>>(sentences: &[S]) -> String {
    let sentences = sentences.iter();
    sentences
        .map(|text| format!("<div>{}</div>", prose(text.as_ref())))
        .collect()
}

/// What was measured or seen: names in one column, values in the other.
fn seen(out: &mut String, diagnostic: &Diagnostic) {
    if diagnostic.evidence.is_empty() {
        return;
    }
    let rows = diagnostic.evidence.iter().map(|evidence| {
        format!(
            "<div style=\"{NAMED_ROW}\"><div style=\"flex:0 0 200px;padding-right:12px;{MUTED}\">{}</div>\
             <div style=\"{NAMED_VALUE}\">{}</div></div>",
            prose(&evidence.name),
            prose(&evidence.value)
        )
    });
    section(out, GRAY, "Seen", &rows.collect::<String>());
}

fn fixes(out: &mut String, diagnostic: &Diagnostic, source: &Source<'_>) {
    if diagnostic.fixes.is_empty() {
        return;
    }
    let several = diagnostic.fixes.len() > 1;
    let mut html = String::new();
    for (index, fix) in diagnostic.fixes.iter().enumerate() {
        let number = if several {
            format!("<b>{}.</b> ", index + 1)
        } else {
            String::new()
        };
        html += &format!(
            "<div class=\"stratoscope-fix\"><div>{number}{}</div>",
            prose(&fix.title)
        );
        if shows_lines(&diagnostic.fixes, index)
            && let Some(fixed) = changed_lines(source.text, fix)
        {
            change(&mut html, &fixed);
        }
        html += "</div>";
    }
    section(out, GREEN, "Fix", &html);
}

/// What the chosen version does, and its own words as it prints them.
fn answer(out: &mut String, answer: &Answer) {
    let mut html = prose(&answer.does);
    if let Some(says) = &answer.says {
        html += &format!(
            "<pre style=\"{CODE_FONT};white-space:pre-wrap;word-break:normal;overflow-wrap:break-word;margin:4px 0 2px 0;\
             padding:6px 10px;background-color:{GRAY_TINT};border-radius:4px;line-height:1.45\">{}</pre>",
            escape(says)
        );
    }
    section(out, AMBER, answer.profile.title(), &html);
}

#[cfg(test)]
mod tests;
