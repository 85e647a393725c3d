//! Lines of the cell: with marks on what is meant, and as a fix changes them.

use super::{
    BLUE, BLUE_TINT, CODE_FONT, GRAY_TINT, GREEN_TINT, MUTED, RED_TINT, colors, escape, prose,
};
use crate::render::Source;
use crate::render::fix::ChangedLines;
use crate::render::place::{Line, Mark, lines, marks};
use crate::{Diagnostic, Severity};

/// The width of a letter of a fixed pitch, in `em`.
const LETTER: f64 = 0.602;

/// The lines around the marks, each with its number; what is meant is underlined, what is to be said about
/// it stands at the end of the line.
pub(super) fn marked_lines(out: &mut String, diagnostic: &Diagnostic, source: &Source<'_>) {
    let all = lines(source.text);
    let marks = marks(diagnostic, &all);
    if marks.is_empty() {
        return;
    }
    open(out);
    let width = all.len().to_string().len();
    let near = |line: &Line<'_>| {
        marks
            .iter()
            .any(|mark| mark.line.abs_diff(line.number) <= 1)
    };
    let mut before: Option<usize> = None;
    for line in all.iter().filter(|line| near(line)) {
        if before.is_some_and(|before| before + 1 < line.number) {
            *out += &format!("<div>{}</div>", gutter(width, "⋮"));
        }
        before = Some(line.number);
        let here: Vec<&Mark<'_>> = marks
            .iter()
            .filter(|mark| mark.line == line.number)
            .collect();
        let mut html = marked(line.text, &here, diagnostic.severity);
        for mark in here.iter().filter(|mark| !mark.text.is_empty()) {
            let (_, tint) = mark_colors(mark, diagnostic.severity);
            html += &format!(
                "  <span style=\"display:inline-block;text-indent:0;background-color:{tint};border-radius:3px;\
                 padding:0 5px\">← {}</span>",
                prose(mark.text)
            );
        }
        row(out, width, &line.number.to_string(), "", line.text, &html);
    }
    *out += "</pre>";
}

/// The lines that a fix takes away and those that it brings; what differs in them is marked.
pub(super) fn change(out: &mut String, fixed: &ChangedLines) {
    open(out);
    let numbers = fixed.removed.iter().chain(&fixed.added);
    let width = numbers
        .map(|line| line.number.to_string().len())
        .max()
        .unwrap_or(1);
    for (sign, tint, lines) in [
        ("−", RED_TINT, &fixed.removed),
        ("+", GREEN_TINT, &fixed.added),
    ] {
        for line in lines {
            let mut html = format!("{sign} ");
            let mut end = 0;
            for part in &line.parts {
                html += &format!(
                    "{}<b style=\"background-color:{tint}\">{}</b>",
                    escape(&line.text[end..part.start]),
                    escape(&line.text[part.clone()])
                );
                end = part.end;
            }
            html += &escape(&line.text[end..]);
            let number = line.number.to_string();
            let behind = format!("background-color:{tint};");
            row(out, width, &number, &behind, &line.text, &html);
        }
    }
    *out += "</pre>";
}

/// A block of code. In a `pre`, since nbconvert makes one space of several anywhere else.
fn open(out: &mut String) {
    *out += &format!(
        "<pre style=\"{CODE_FONT};white-space:pre-wrap;word-break:normal;overflow-wrap:break-word;margin:4px 0;padding:6px 10px;\
         background-color:{GRAY_TINT};border-radius:4px;line-height:1.6\">"
    );
}

/// A line; what does not fit goes on below it, further to the right than the line begins.
fn row(out: &mut String, width: usize, number: &str, style: &str, text: &str, html: &str) {
    let indent = text.chars().take_while(|c| *c == ' ').count();
    let hang = (width + 3 + indent.min(24) + 4) as f64 * LETTER;
    *out += &format!(
        "<div style=\"{style}padding-left:{hang:.1}em;text-indent:-{hang:.1}em\">{}{html}</div>",
        gutter(width, number)
    );
}

fn gutter(width: usize, text: &str) -> String {
    format!("<span style=\"{MUTED}\">{text:>width$} │ </span>")
}

fn mark_colors(mark: &Mark<'_>, severity: Severity) -> (&'static str, &'static str) {
    if mark.primary {
        colors(severity)
    } else {
        (BLUE, BLUE_TINT)
    }
}

/// A line of code with its marks as underlined pieces. Where marks overlap, the primary one wins.
fn marked(text: &str, marks: &[&Mark<'_>], severity: Severity) -> String {
    let mut edges: Vec<usize> = vec![0, text.len()];
    edges.extend(
        marks
            .iter()
            .flat_map(|mark| [mark.bytes.start, mark.bytes.end]),
    );
    edges.sort_unstable();
    edges.dedup();
    let mut out = String::new();
    for pair in edges.windows(2) {
        let piece = escape(text.get(pair[0]..pair[1]).unwrap_or_default());
        let over = marks
            .iter()
            .filter(|mark| mark.bytes.start <= pair[0] && pair[1] <= mark.bytes.end)
            .max_by_key(|mark| mark.primary);
        match over {
            Some(mark) => {
                let (line, tint) = mark_colors(mark, severity);
                out += &format!(
                    "<span style=\"background-color:{tint};border-bottom:2px solid {line}\">{piece}</span>"
                );
            }
            None => out += &piece,
        }
    }
    // A label between two characters, as where something is missing.
    if marks.iter().any(|mark| mark.bytes.is_empty()) {
        let (line, _) = colors(severity);
        out += &format!("<span style=\"border-bottom:2px solid {line}\">&#160;</span>");
    }
    out
}
