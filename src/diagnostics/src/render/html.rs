//! The card in the notebook.
//!
//! Front ends sanitize HTML: style sheets, SVG, scripts and variables are lost, and JupyterLab drops
//! `rgba(…)` colours too. So every style is literal and inline, and colours are hex, with an alpha channel where
//! they lie behind text. Text keeps the colour it inherits, which makes the card readable on light and on
//! dark themes; only badges bring a solid background and their own white.

use super::mend::{Mended, mended, shows_lines};
use super::place::{Line, Mark, lines, marks, primary};
use super::text::state_word;
use super::{Source, resolved, severity_word};
use crate::{Answer, ArgumentRow, ArgumentState, Diagnostic, Place, Severity};

const RED: &str = "#e5484d";
const RED_TINT: &str = "#e5484d33";
const AMBER: &str = "#d98a00";
const AMBER_TINT: &str = "#d98a0033";
const BLUE: &str = "#3b82f6";
const BLUE_TINT: &str = "#3b82f633";
const GREEN: &str = "#2f9e5b";
const GREEN_TINT: &str = "#2f9e5b2e";
const GREY: &str = "#88888866";
const GREY_TINT: &str = "#8888881f";

const CODE_FONT: &str = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.92em";
const CELL: &str =
    "text-align:left;vertical-align:top;padding:2px 12px 2px 6px;border:none;white-space:normal";

/// The diagnostic as a card, and a card below it for each related one. Nothing outside is styled.
pub fn html(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let resolved = resolved(diagnostic, source);
    let related = resolved.related.iter();
    related.fold(card(&resolved, source), |cards, other| {
        cards + &card(other, source)
    })
}

fn card(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let (border, _) = colours(diagnostic.severity);
    let mut out = format!(
        "<div style=\"border:1px solid {GREY};border-left:4px solid {border};border-radius:4px;\
         padding:8px 14px 10px 12px;margin:4px 0;line-height:1.45;text-align:left\">"
    );
    head(&mut out, diagnostic, source);
    code(&mut out, diagnostic, source);
    sentences(&mut out, diagnostic);
    fixes(&mut out, diagnostic, source);
    if let Some(text) = &diagnostic.tensorflow {
        out += &format!(
            "<div style=\"margin:8px 0 2px 0;padding:2px 10px;border-left:3px solid {AMBER};\
             white-space:pre-wrap\"><b>In TensorFlow</b>: {}</div>",
            prose(text)
        );
    }
    if let Some(it) = diagnostic.answer() {
        answer(&mut out, it);
    }
    arguments(&mut out, &diagnostic.arguments);
    if let Some(figure) = &diagnostic.figure {
        out += &format!(
            "<div style=\"margin:10px 0 0 0;overflow-x:auto\">{}</div>",
            figure.html
        );
    }
    out += "</div>";
    out
}

/// The severity's border and the tint behind text.
fn colours(severity: Severity) -> (&'static str, &'static str) {
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
        "<div style=\"margin:0 0 6px 0\"><span style=\"background-color:{badge};color:#ffffff;\
         border-radius:3px;padding:1px 7px;font-weight:bold;font-size:0.85em\">{} {}</span> \
         <b>{}</b>",
        severity_word(diagnostic.severity),
        escape(&diagnostic.code),
        prose(&diagnostic.message)
    );
    if let Some((line, column)) = primary(diagnostic, source.text) {
        *out += &format!(
            " <span style=\"opacity:0.7;font-size:0.9em\">{}, line {line}, column {column}</span>",
            escape(source.name)
        );
    }
    *out += "</div>";
}

/// The lines around the marks, each with its number; what is meant is underlined, what is to be said about
/// it stands at the end of the line.
fn code(out: &mut String, diagnostic: &Diagnostic, source: &Source<'_>) {
    let all = lines(source.text);
    let marks = marks(diagnostic, &all);
    if !marks.is_empty() {
        *out += &pre_open();
        let width = all.len().to_string().len();
        let near = |line: &Line<'_>| {
            marks
                .iter()
                .any(|mark| mark.line.abs_diff(line.number) <= 1)
        };
        let mut before: Option<usize> = None;
        for line in all.iter().filter(|line| near(line)) {
            if before.is_some_and(|before| before + 1 < line.number) {
                *out += &format!("{}\n", gutter(&format!("{:>width$}", "⋮")));
            }
            before = Some(line.number);
            let here: Vec<&Mark<'_>> = marks
                .iter()
                .filter(|mark| mark.line == line.number)
                .collect();
            *out += &gutter(&format!("{:>width$}", line.number));
            *out += &marked(line.text, &here, diagnostic.severity);
            for mark in here.iter().filter(|mark| !mark.text.is_empty()) {
                let (_, tint) = mark_colours(mark, diagnostic.severity);
                *out += &format!(
                    "  <span style=\"background-color:{tint};border-radius:3px;padding:0 5px\">← {}</span>",
                    prose(mark.text)
                );
            }
            *out += "\n";
        }
        *out += "</pre>";
    }
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

fn pre_open() -> String {
    format!(
        "<pre style=\"{CODE_FONT};white-space:pre;overflow-x:auto;margin:4px 0;padding:6px 10px;\
         background-color:{GREY_TINT};border-radius:4px;line-height:1.6\">"
    )
}

fn gutter(text: &str) -> String {
    format!("<span style=\"opacity:0.55\">{text} │ </span>")
}

fn mark_colours(mark: &Mark<'_>, severity: Severity) -> (&'static str, &'static str) {
    if mark.primary {
        colours(severity)
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
                let (line, tint) = mark_colours(mark, severity);
                out += &format!(
                    "<span style=\"background-color:{tint};border-bottom:2px solid {line}\">{piece}</span>"
                );
            }
            None => out += &piece,
        }
    }
    // A label between two characters, as where something is missing.
    if marks.iter().any(|mark| mark.bytes.is_empty()) {
        let (line, _) = colours(severity);
        out += &format!("<span style=\"border-bottom:2px solid {line}\">&#160;</span>");
    }
    out
}

fn sentences(out: &mut String, diagnostic: &Diagnostic) {
    for why in &diagnostic.why {
        *out += &format!("<div style=\"margin:3px 0\">{}</div>", prose(why));
    }
    if diagnostic.evidence.is_empty() {
        return;
    }
    *out += "<table style=\"border-collapse:collapse;color:inherit;margin:6px 0;font-size:0.95em\"><tbody>";
    for evidence in &diagnostic.evidence {
        *out += &format!(
            "<tr><td style=\"{CELL};opacity:0.75\">{}</td><td style=\"{CELL}\">{}</td></tr>",
            prose(&evidence.name),
            prose(&evidence.value)
        );
    }
    *out += "</tbody></table>";
}

fn fixes(out: &mut String, diagnostic: &Diagnostic, source: &Source<'_>) {
    if diagnostic.fixes.is_empty() {
        return;
    }
    let several = diagnostic.fixes.len() > 1;
    *out += &format!(
        "<div style=\"margin:8px 0 2px 0;padding:2px 10px;border-left:3px solid {GREEN}\">"
    );
    for (index, fix) in diagnostic.fixes.iter().enumerate() {
        let number = if several {
            format!("{}. ", index + 1)
        } else {
            String::new()
        };
        *out += &format!(
            "<div style=\"margin:2px 0\"><b>{number}</b>{}</div>",
            prose(&fix.title)
        );
        if shows_lines(&diagnostic.fixes, index)
            && let Some(mended) = mended(source.text, fix)
        {
            change(out, &mended);
        }
    }
    *out += "</div>";
}

fn change(out: &mut String, mended: &Mended) {
    *out += &pre_open();
    let numbers = mended
        .removed
        .iter()
        .chain(&mended.added)
        .map(|(number, _)| *number);
    let width = numbers.max().unwrap_or(1).to_string().len();
    for (sign, tint, lines) in [
        ("−", RED_TINT, &mended.removed),
        ("+", GREEN_TINT, &mended.added),
    ] {
        for (number, text) in lines {
            *out += &format!(
                "{}<span style=\"background-color:{tint}\">{sign} {}</span>\n",
                gutter(&format!("{number:>width$}")),
                escape(text)
            );
        }
    }
    *out += "</pre>";
}

/// What the chosen version does, and its own words as it prints them.
fn answer(out: &mut String, answer: &Answer) {
    *out += &format!(
        "<div style=\"margin:8px 0 2px 0;padding:2px 10px;border-left:3px solid {AMBER}\">\
         <b>In {}</b>: {}",
        escape(answer.profile.title()),
        prose(&answer.does)
    );
    if let Some(says) = &answer.says {
        *out += &format!(
            "<pre style=\"{CODE_FONT};white-space:pre-wrap;margin:4px 0 2px 0;padding:6px 10px;\
             background-color:{GREY_TINT};border-radius:4px;line-height:1.45\">{}</pre>",
            escape(says)
        );
    }
    *out += "</div>";
}

fn arguments(out: &mut String, rows: &[ArgumentRow]) {
    if rows.is_empty() {
        return;
    }
    *out += &format!(
        "<table style=\"border-collapse:collapse;color:inherit;margin:10px 0 2px 0;font-size:0.92em\"><thead>\
         <tr style=\"border-bottom:1px solid {GREY}\">"
    );
    for title in ["argument", "", "passed", "expects", "default"] {
        *out += &format!("<th style=\"{CELL};font-weight:bold\">{title}</th>");
    }
    *out += "</tr></thead><tbody>";
    for row in rows {
        let (line, tint) = match row.state {
            ArgumentState::Given => (GREEN, GREEN_TINT),
            ArgumentState::Default => (GREY, GREY_TINT),
            ArgumentState::Invalid => (RED, RED_TINT),
        };
        let behind = match row.state {
            ArgumentState::Invalid => format!(";background-color:{RED}1f"),
            _ => String::new(),
        };
        let given = row.given.as_deref().map_or("–".to_owned(), escape);
        *out += &format!(
            "<tr><td style=\"{CELL}{behind}\"><code style=\"{CODE_FONT}\">{}</code></td>\
             <td style=\"{CELL}{behind}\"><span style=\"background-color:{tint};border:1px solid {line};\
             border-radius:3px;padding:0 5px;font-size:0.9em\">{}</span></td>\
             <td style=\"{CELL}{behind}\"><code style=\"{CODE_FONT}\">{given}</code></td>\
             <td style=\"{CELL}{behind}\">{}</td><td style=\"{CELL}{behind};opacity:0.75\">{}</td></tr>",
            escape(&row.name),
            state_word(row),
            prose(&row.expects),
            prose(&row.default)
        );
    }
    *out += "</tbody></table>";
}

/// A sentence: what stands between backticks is code.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        let closed = index + 1 < parts.len();
        match index % 2 {
            // Front ends let code break lines; in a line of a cell it must not.
            1 if closed => {
                out += &format!(
                    "<code style=\"{CODE_FONT};white-space:inherit\">{}</code>",
                    escape(part)
                );
            }
            // A backtick without a partner is a backtick.
            1 => out += &format!("`{}", escape(part)),
            _ => out += &escape(part),
        }
    }
    out
}

/// Text of others as HTML text. Characters that reorder or hide text are shown as replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Front ends typeset `$…$`; an entity is seen by them as a dollar, so it is split off.
            '$' => out.push_str("<span>$</span>"),
            '\t' | '\n' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CellContext, check_cell};
    use crate::rules::{CATALOGUE, ModelOutsideScope};
    use crate::{Figure, Rule};

    fn cards() -> Vec<String> {
        let mut cards = Vec::new();
        for page in CATALOGUE.iter().map(|entry| &entry.page) {
            let source = Source {
                text: page.bad,
                name: "Cell In[3]",
            };
            for diagnostic in check_cell(page.bad, &CellContext::default()) {
                cards.push(html(&diagnostic, &source));
            }
        }
        let facts = ModelOutsideScope {
            strategy: "mirrored".into(),
            replicas: 2,
            variables: 104,
            device: "cpu:0".into(),
            compile_inside: false,
            origin: Some("cell 3, line 2".into()),
            line: Some(2),
            figure: Some(Figure {
                html: "<div>grid</div>".into(),
                plain: "grid".into(),
            }),
        };
        let text = ModelOutsideScope::PAGE.bad;
        cards.push(html(
            &facts.diagnostic(),
            &Source {
                text,
                name: "Cell In[3]",
            },
        ));
        cards
    }

    #[test]
    fn the_card_survives_sanitizing() {
        const TAGS: &[&str] = &[
            "div", "span", "b", "code", "pre", "table", "thead", "tbody", "tr", "th", "td",
        ];
        const PROPERTIES: &[&str] = &[
            "background-color",
            "border",
            "border-bottom",
            "border-collapse",
            "border-left",
            "border-radius",
            "color",
            "font-family",
            "font-size",
            "font-weight",
            "line-height",
            "margin",
            "opacity",
            "overflow-x",
            "padding",
            "text-align",
            "vertical-align",
            "white-space",
        ];
        for card in cards() {
            for tag in card.split('<').skip(1) {
                let name = tag
                    .trim_start_matches('/')
                    .split([' ', '>'])
                    .next()
                    .unwrap_or_default();
                assert!(TAGS.contains(&name), "<{name}>");
                let attributes = tag.split('>').next().unwrap_or_default();
                let attributes = attributes
                    .trim_start_matches('/')
                    .trim_start_matches(name)
                    .trim();
                let Some(style) = attributes.strip_prefix("style=\"") else {
                    assert!(attributes.is_empty(), "{attributes}");
                    continue;
                };
                for declaration in style.trim_end_matches('"').split(';') {
                    let (property, value) = declaration.split_once(':').expect("property:value");
                    assert!(PROPERTIES.contains(&property), "{property}");
                    for banned in ["rgb", "var(", "url", "expression"] {
                        assert!(!value.contains(banned), "{declaration}");
                    }
                }
            }
        }
    }

    #[test]
    fn tags_are_balanced() {
        for card in cards() {
            for tag in ["div", "span", "b", "code", "pre", "table", "tr", "td", "th"] {
                let open = card.matches(&format!("<{tag}>")).count()
                    + card.matches(&format!("<{tag} ")).count();
                assert_eq!(
                    open,
                    card.matches(&format!("</{tag}>")).count(),
                    "{tag} in {card}"
                );
            }
        }
    }

    #[test]
    fn text_of_others_is_escaped() {
        let evil = "<script>alert('x')</script>\" onload=\"y & `<b>`";
        let diagnostic = Diagnostic::new("SC<i>", Severity::Error, evil)
            .label(Place::span(0, evil.len()), evil)
            .label(Place::file(evil, Some(1)), evil)
            .why(evil)
            .evidence(evil, evil)
            .fix_edit(evil, Place::span(0, 1), evil)
            .tensorflow(evil)
            .arguments(vec![ArgumentRow {
                name: evil.into(),
                expects: evil.into(),
                default: evil.into(),
                given: Some(evil.into()),
                state: ArgumentState::Invalid,
            }]);
        let card = html(
            &diagnostic,
            &Source {
                text: evil,
                name: evil,
            },
        );
        for raw in ["<script", "</script", "<i>", "onload=\"", "<b>`"] {
            assert!(!card.contains(raw), "{raw} in {card}");
        }
    }

    #[test]
    fn what_is_meant_is_underlined_whatever_stands_before_it() {
        let text = "\t/* größe 日本 */ los = 1";
        let start = text.find("los").expect("it is there");
        let diagnostic = Diagnostic::new("SC0101", Severity::Error, "x")
            .label(Place::span(start, start + 3), "unknown");
        let card = html(&diagnostic, &Source { text, name: "c" });
        let underlined = format!("border-bottom:2px solid {RED}\">los</span> = 1");
        assert!(card.contains(&underlined), "{card}");
        assert!(card.contains("\t/* größe 日本 */ <span"), "{card}");
    }

    #[test]
    fn a_related_diagnostic_has_a_card_of_its_own() {
        let first = Diagnostic::new("SC0201", Severity::Error, "first");
        let told = first.related(Diagnostic::new("SC0102", Severity::Error, "second"));
        let card = html(
            &told,
            &Source {
                text: "",
                name: "c",
            },
        );
        assert_eq!(card.matches("border-left:4px").count(), 2);
        assert!(card.find("first") < card.find("second"));
    }

    #[test]
    fn code_in_sentences() {
        assert_eq!(
            prose("a `b<c` d"),
            format!("a <code style=\"{CODE_FONT};white-space:inherit\">b&lt;c</code> d")
        );
        assert_eq!(prose("a ` b"), "a ` b");
    }
}
