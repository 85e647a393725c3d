//! Text with carets, as a compiler prints it, plain or in color.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use super::fix::{changed_lines, shows_lines};
use super::place::{Mark, lines, marks, primary};
use super::{Source, general, resolved, severity_word};
use crate::{Answer, ArgumentRow, ArgumentState, Diagnostic, Evidence, Place, Severity};
use stratoscope_render::table;
use stratoscope_render::text::{visible_line, wrap, wrap_hard};

mod window;

use window::window;

/// No line is longer: sentences are wrapped, lines of code are cut around what is meant.
const COLUMNS: usize = 100;
/// What a tab is shown as.
const TAB: &str = "    ";

/// The diagnostic as text.
pub fn plain(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    all(Paint::None, Detail::Full, diagnostic, source)
}

/// The diagnostic as text with ANSI colors.
pub fn ansi(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    all(Paint::Ansi, Detail::Full, diagnostic, source)
}

/// The diagnostic, then the related ones, an empty line between them.
fn all(paint: Paint, detail: Detail, diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let resolved = resolved(diagnostic, source);
    let writer = || Writer {
        paint,
        detail,
        out: String::new(),
    };
    let first = writer().diagnostic(&resolved, source);
    resolved.related.iter().fold(first, |text, other| {
        text + "\n" + &writer().diagnostic(other, source)
    })
}

/// The lines of a Jupyter traceback. The first begins `Cell In[3], line 2`, which editors turn into a link.
/// A diagnostic of ours is displayed as a card before the error: its code alone follows on that line, since
/// a front end shows both. rustc's errors have no card: they follow in color.
pub fn traceback(diagnostics: &[Diagnostic], source: &Source<'_>) -> Vec<String> {
    let line = diagnostics
        .iter()
        .find_map(|diagnostic| primary(&resolved(diagnostic, source), source.text));
    let mut head = match line {
        Some((line, _)) => format!("{}, line {line}", source.name),
        None => source.name.to_owned(),
    };
    let (shown, others): (Vec<_>, Vec<_>) = diagnostics
        .iter()
        .partition(|diagnostic| diagnostic.is_shown_as_card());
    let mut codes: Vec<&str> = shown.iter().map(|shown| shown.code.as_str()).collect();
    codes.dedup();
    if !codes.is_empty() {
        head = format!("{head}: {}", codes.join(", "));
    }
    let mut traceback = vec![head];
    for (index, diagnostic) in others.into_iter().enumerate() {
        if index > 0 {
            traceback.push(String::new());
        }
        let text = all(Paint::Ansi, Detail::Brief, diagnostic, source);
        traceback.extend(text.lines().map(str::to_owned));
    }
    traceback
}

/// How much of a diagnostic is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// All of it.
    Full,
    /// The message, the places, the reasons and the titles of the fixes: what a traceback has room for.
    Brief,
}

#[derive(Clone, Copy)]
enum Paint {
    None,
    Ansi,
}

#[derive(Clone, Copy)]
enum Style {
    /// Carets and signs. Words have no color: front ends put theirs on grounds where it cannot be read.
    Severity(Severity),
    Strong,
    Dim,
    Second,
    Good,
}

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        let code = match (self, style) {
            (Self::None, _) => return text.to_owned(),
            (_, Style::Severity(Severity::Error)) => "1;31",
            (_, Style::Severity(Severity::Warning)) => "1;33",
            (_, Style::Severity(Severity::Note)) => "1;36",
            (_, Style::Strong) => "1",
            (_, Style::Dim) => "2",
            (_, Style::Second) => "36",
            (_, Style::Good) => "1;32",
        };
        if text.is_empty() {
            String::new()
        } else {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        }
    }
}

struct Writer {
    paint: Paint,
    detail: Detail,
    out: String,
}

impl Writer {
    fn diagnostic(mut self, diagnostic: &Diagnostic, source: &Source<'_>) -> String {
        let is_full = self.detail == Detail::Full;
        self.head(diagnostic);
        let gutter = self.places(diagnostic, source);
        for why in &diagnostic.why {
            self.item(gutter, "why", why);
        }
        if is_full {
            for Evidence { name, value } in &diagnostic.evidence {
                self.item(gutter, "seen", &format!("{name}: {value}"));
            }
        }
        for (index, fix) in diagnostic.fixes.iter().enumerate() {
            let word = match diagnostic.fixes.len() {
                1 => "fix".to_owned(),
                _ => format!("fix {}", index + 1),
            };
            self.item(gutter, &word, &fix.title);
            if is_full && shows_lines(&diagnostic.fixes, index) {
                self.changed_lines(gutter, source, fix);
            }
        }
        if is_full {
            self.details(gutter, diagnostic);
        }
        self.out
    }

    /// `error[SC0101]: …`
    fn head(&mut self, diagnostic: &Diagnostic) {
        let severity = severity_word(diagnostic.severity);
        let head = format!("{severity}[{}]", diagnostic.code);
        let indent = head.width() + 2;
        let head = self.paint.with(Style::Strong, &head);
        let message = wrap(&visible_line(&diagnostic.message), COLUMNS - indent);
        for (nth, part) in message.iter().enumerate() {
            let part = self.paint.with(Style::Strong, part);
            match nth {
                0 => self.line(&format!("{head}: {part}")),
                _ => self.line(&format!("{}{part}", " ".repeat(indent))),
            }
        }
    }

    /// What TensorFlow does, the table of arguments and the figure.
    fn details(&mut self, gutter: usize, diagnostic: &Diagnostic) {
        if let Some(text) = general(diagnostic) {
            self.item(gutter, "in TensorFlow", text);
        }
        if let Some(answer) = diagnostic.answer() {
            self.answer(gutter, answer);
        }
        self.arguments(&diagnostic.arguments);
        if let Some(figure) = &diagnostic.figure {
            self.line("");
            for line in figure.plain.trim_end().lines() {
                self.line(&visible_line(line));
            }
        }
    }

    /// Where it is: the cell's lines with carets, files by name. Returns the width of the line numbers.
    fn places(&mut self, diagnostic: &Diagnostic, source: &Source<'_>) -> usize {
        let all = lines(source.text);
        let marks = marks(diagnostic, &all);
        let gutter = marks.last().map_or(1, |mark| mark.line.to_string().len());
        let bar = self.paint.with(Style::Dim, "|");
        let indent = " ".repeat(gutter);
        if let Some((line, column)) = primary(diagnostic, source.text) {
            let arrow = self.paint.with(Style::Dim, "-->");
            self.line(&format!(
                "{indent}{arrow} {}, line {line}, column {column}",
                source.name
            ));
            self.line(&format!("{indent} {bar}"));
        }
        let mut shown: Option<(usize, String)> = None;
        for mark in &marks {
            let Some(line) = all.get(mark.line - 1) else {
                continue;
            };
            let meant = columns(line.text, &mark.bytes);
            let room = COLUMNS - gutter - 3;
            let part = window(&expand(line.text), &meant, room);
            let before = shown.as_ref().map(|(number, _)| *number);
            if shown.as_ref() != Some(&(mark.line, part.shown.clone())) {
                if before.is_some_and(|before| before + 1 < mark.line) {
                    let dots = self.paint.with(Style::Dim, "...");
                    self.line(&dots);
                }
                let number = format!("{:>gutter$} |", mark.line);
                let number = self.paint.with(Style::Dim, &number);
                self.line(format!("{number} {}", part.shown).trim_end());
            }
            let start = meant.start - part.shift;
            let end = (meant.end - part.shift).min(part.shown.width());
            shown = Some((mark.line, part.shown));
            self.carets(gutter, mark, start..end, diagnostic.severity);
        }
        if shown.is_some() {
            self.line(&format!("{indent} {bar}"));
        }
        for label in &diagnostic.labels {
            if let Place::File { path, line } = &label.place {
                let arrow = self.paint.with(Style::Dim, "-->");
                let line = line
                    .map(|line| format!(", line {line}"))
                    .unwrap_or_default();
                self.line(&format!(
                    "{indent}{arrow} {}{line}: {}",
                    visible_line(path),
                    visible_line(&label.text)
                ));
            }
        }
        gutter
    }

    /// The carets below columns of a line, and what is said there: beside them, or below where it does not fit.
    fn carets(&mut self, gutter: usize, mark: &Mark<'_>, under: Range<usize>, severity: Severity) {
        let (sign, style) = match mark.primary {
            true => ("^", Style::Severity(severity)),
            false => ("-", Style::Second),
        };
        let bar = self.paint.with(Style::Dim, "|");
        let indent = " ".repeat(gutter);
        let room = COLUMNS - gutter - 3;
        let text = visible_line(mark.text);
        let carets = sign.repeat(under.len().max(1));
        let beside = under.start + carets.width() + 1 + text.width() <= room;
        let carets = self.paint.with(style, &carets);
        let before = " ".repeat(under.start);
        let start = " ".repeat(under.start.min(room.saturating_sub(text.width())));
        if beside {
            let text = self.paint.with(Style::Strong, &text);
            self.line(format!("{indent} {bar} {before}{carets} {text}").trim_end());
            return;
        }
        self.line(&format!("{indent} {bar} {before}{carets}"));
        for part in wrap(&text, room - start.len()) {
            let part = self.paint.with(Style::Strong, &part);
            self.line(&format!("{indent} {bar} {start}{part}"));
        }
    }

    /// `  = why: …`, wrapped under its first word.
    fn item(&mut self, gutter: usize, word: &str, text: &str) {
        let equals = self.paint.with(Style::Dim, "=");
        let painted = self.paint.with(Style::Strong, word);
        let indent = gutter + word.len() + 5;
        let mut first = true;
        for paragraph in text.lines() {
            for line in wrap(&visible_line(paragraph), COLUMNS.saturating_sub(indent)) {
                if first {
                    self.line(&format!(
                        "{} {equals} {painted}: {line}",
                        " ".repeat(gutter)
                    ));
                    first = false;
                } else {
                    self.line(&format!("{}{line}", " ".repeat(indent)));
                }
            }
        }
    }

    /// `  = in TensorFlow 2.3: raises in `compile``, and below it the version's own words.
    fn answer(&mut self, gutter: usize, answer: &Answer) {
        let title = format!("in {}", answer.profile.title());
        self.item(gutter, &title, &answer.does);
        let bar = self.paint.with(Style::Dim, "|");
        let indent = " ".repeat(gutter + 3);
        let columns = COLUMNS.saturating_sub(indent.len() + 2);
        for paragraph in answer.says.iter().flat_map(|says| says.lines()) {
            for line in wrap(&visible_line(paragraph), columns) {
                self.line(format!("{indent}{bar} {line}").trim_end());
            }
        }
    }

    fn changed_lines(&mut self, gutter: usize, source: &Source<'_>, fix: &crate::Fix) {
        let Some(fixed) = changed_lines(source.text, fix) else {
            return;
        };
        let indent = " ".repeat(gutter + 3);
        for (sign, style, lines) in [
            ("-", Style::Severity(Severity::Error), &fixed.removed),
            ("+", Style::Good, &fixed.added),
        ] {
            let sign = self.paint.with(style, sign);
            for line in lines {
                let code = expand(&line.text);
                let begin = code.len() - code.trim_start().len();
                // What does not fit goes on below it, a little further to the right.
                let hang = begin.min(COLUMNS / 2) + 4;
                let room = COLUMNS - 2 * gutter - 6;
                let first = format!("{indent}{:>gutter$} {sign} ", line.number);
                let mut rest = wrap_hard(code.trim_start(), room - hang).into_iter();
                let start = rest.next().unwrap_or_default();
                self.line(format!("{first}{}{start}", &code[..begin]).trim_end());
                for part in rest {
                    let before = " ".repeat(2 * gutter + 6 + hang);
                    self.line(&format!("{before}{part}"));
                }
            }
        }
    }

    fn arguments(&mut self, rows: &[ArgumentRow]) {
        if rows.is_empty() {
            return;
        }
        self.line("");
        let head = ["argument", "", "passed", "expects", "default"].map(str::to_owned);
        let mut cells = vec![head];
        cells.extend(rows.iter().map(|row| {
            let given = row.given.as_deref().map_or("–".to_owned(), visible_line);
            let state = state_word(row).to_owned();
            [
                visible_line(&row.name),
                state,
                given,
                row.expects.clone(),
                row.default.clone(),
            ]
        }));
        let styles = rows.iter().map(|row| match row.state {
            ArgumentState::Invalid => Some(Style::Strong),
            ArgumentState::Given => None,
            ArgumentState::Default => Some(Style::Dim),
        });
        let styles = std::iter::once(Some(Style::Dim)).chain(styles);
        for (lines, style) in table::lines(&cells, COLUMNS - 2).into_iter().zip(styles) {
            for line in lines {
                let line = style.map_or(line.clone(), |style| self.paint.with(style, &line));
                self.line(&format!("  {line}"));
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// How an argument stands, as a word: color alone does not reach everyone.
pub(super) fn state_word(row: &ArgumentRow) -> &'static str {
    match row.state {
        ArgumentState::Invalid if row.given.is_none() => "missing",
        ArgumentState::Given => "given",
        ArgumentState::Default => "default",
        ArgumentState::Invalid => "invalid",
    }
}

/// Where bytes of a line of code stand once it is shown.
fn columns(line: &str, bytes: &Range<usize>) -> Range<usize> {
    let start = expand(&line[..bytes.start]).width();
    start..start + expand(&line[bytes.clone()]).width().max(1)
}

/// A line of code as it is shown; carets are placed by the width of this.
fn expand(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(TAB),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests;
