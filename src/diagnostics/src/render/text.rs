//! Text with carets, as a compiler prints it, plain or in colour.

use unicode_width::UnicodeWidthStr;

use super::mend::{mended, shows_lines};
use super::place::{Line, lines, marks, primary};
use super::{Source, resolved, severity_word};
use crate::words::wrap;
use crate::{Answer, ArgumentRow, ArgumentState, Diagnostic, Place, Severity};

/// Columns after which sentences are wrapped.
const COLUMNS: usize = 100;
/// What a tab is shown as.
const TAB: &str = "    ";

/// The diagnostic as text.
pub fn plain(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    all(Paint::None, diagnostic, source)
}

/// The diagnostic as text with ANSI colours.
pub fn ansi(diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    all(Paint::Ansi, diagnostic, source)
}

/// The diagnostic, then the related ones, an empty line between them.
fn all(paint: Paint, diagnostic: &Diagnostic, source: &Source<'_>) -> String {
    let resolved = resolved(diagnostic, source);
    let writer = || Writer {
        paint,
        out: String::new(),
    };
    let first = writer().diagnostic(&resolved, source);
    resolved.related.iter().fold(first, |told, other| {
        told + "\n" + &writer().diagnostic(other, source)
    })
}

/// The lines of a Jupyter traceback: `Cell In[3], line 2`, which editors turn into a link, then the
/// diagnostics in colour. What takes room on the card that stands above it (the table of arguments,
/// the figure, mended lines, TensorFlow's ways) is not said twice.
pub fn traceback(diagnostics: &[Diagnostic], source: &Source<'_>) -> Vec<String> {
    let line = diagnostics
        .iter()
        .find_map(|diagnostic| primary(&resolved(diagnostic, source), source.text));
    let mut traceback = vec![match line {
        Some((line, _)) => format!("{}, line {line}", source.name),
        None => source.name.to_owned(),
    }];
    for diagnostic in diagnostics {
        traceback.extend(
            ansi(&brief(diagnostic, source), source)
                .lines()
                .map(str::to_owned),
        );
        traceback.push(String::new());
    }
    traceback.pop();
    traceback
}

/// The diagnostic without what only its card shows. Places are resolved first, since the edits that
/// are dropped here may be needed for it.
fn brief(diagnostic: &Diagnostic, source: &Source<'_>) -> Diagnostic {
    let mut brief = resolved(diagnostic, source);
    brief.arguments.clear();
    brief.figure = None;
    brief.tensorflow = None;
    brief.answers.clear();
    brief.fixes.iter_mut().for_each(|fix| fix.edits.clear());
    brief.related = (brief.related.iter())
        .map(|other| self::brief(other, source))
        .collect();
    brief
}

#[derive(Clone, Copy)]
enum Paint {
    None,
    Ansi,
}

#[derive(Clone, Copy)]
enum Style {
    Severity(Severity),
    Strong,
    Dim,
    Gutter,
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
            (_, Style::Gutter) => "34",
            (_, Style::Second) => "36",
            (_, Style::Good) => "32",
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
    out: String,
}

impl Writer {
    fn diagnostic(mut self, diagnostic: &Diagnostic, source: &Source<'_>) -> String {
        let severity = Style::Severity(diagnostic.severity);
        let head = format!(
            "{}[{}]",
            severity_word(diagnostic.severity),
            diagnostic.code
        );
        let head = self.paint.with(severity, &head);
        let message = self.paint.with(Style::Strong, &clean(&diagnostic.message));
        self.line(&format!("{head}: {message}"));
        let gutter = self.places(diagnostic, source);
        for why in &diagnostic.why {
            self.item(gutter, "why", why);
        }
        for evidence in &diagnostic.evidence {
            self.item(
                gutter,
                "seen",
                &format!("{}: {}", evidence.name, evidence.value),
            );
        }
        for (index, fix) in diagnostic.fixes.iter().enumerate() {
            let word = if diagnostic.fixes.len() > 1 {
                format!("fix {}", index + 1)
            } else {
                "fix".into()
            };
            self.item(gutter, &word, &fix.title);
            if shows_lines(&diagnostic.fixes, index) {
                self.mended(gutter, source, fix);
            }
        }
        if let Some(text) = &diagnostic.tensorflow {
            self.item(gutter, "in TensorFlow", text);
        }
        if let Some(answer) = diagnostic.answer() {
            self.answer(gutter, answer);
        }
        self.arguments(&diagnostic.arguments);
        if let Some(figure) = &diagnostic.figure {
            self.line("");
            for line in figure.plain.trim_end().lines() {
                let line = clean(line);
                self.line(&line);
            }
        }
        self.out
    }

    /// Where it is: the cell's lines with carets, files by name. Returns the width of the line numbers.
    fn places(&mut self, diagnostic: &Diagnostic, source: &Source<'_>) -> usize {
        let all = lines(source.text);
        let marks = marks(diagnostic, &all);
        let gutter = marks.last().map_or(1, |mark| mark.line.to_string().len());
        let bar = self.paint.with(Style::Gutter, "|");
        let indent = " ".repeat(gutter);
        if let Some((line, column)) = primary(diagnostic, source.text) {
            let arrow = self.paint.with(Style::Gutter, "-->");
            self.line(&format!(
                "{indent}{arrow} {}, line {line}, column {column}",
                source.name
            ));
            self.line(&format!("{indent} {bar}"));
        }
        let mut shown: Option<usize> = None;
        for mark in &marks {
            let Some(line) = all.get(mark.line - 1) else {
                continue;
            };
            if shown != Some(mark.line) {
                if shown.is_some_and(|before| before + 1 < mark.line) {
                    let dots = self.paint.with(Style::Gutter, "...");
                    self.line(&dots);
                }
                self.source_line(gutter, line);
                shown = Some(mark.line);
            }
            let (sign, style) = match mark.primary {
                true => ("^", Style::Severity(diagnostic.severity)),
                false => ("-", Style::Second),
            };
            let before = expand(&line.text[..mark.bytes.start]).width();
            let width = expand(&line.text[mark.bytes.clone()]).width().max(1);
            let text = clean(mark.text);
            let carets = self
                .paint
                .with(style, format!("{} {text}", sign.repeat(width)).trim_end());
            self.line(&format!("{indent} {bar} {}{carets}", " ".repeat(before)));
        }
        if shown.is_some() {
            self.line(&format!("{indent} {bar}"));
        }
        for label in &diagnostic.labels {
            if let Place::File { path, line } = &label.place {
                let arrow = self.paint.with(Style::Gutter, "-->");
                let line = line
                    .map(|line| format!(", line {line}"))
                    .unwrap_or_default();
                self.line(&format!(
                    "{indent}{arrow} {}{line}: {}",
                    clean(path),
                    clean(&label.text)
                ));
            }
        }
        gutter
    }

    fn source_line(&mut self, gutter: usize, line: &Line<'_>) {
        let number = self
            .paint
            .with(Style::Gutter, &format!("{:>gutter$} |", line.number));
        self.line(format!("{number} {}", expand(line.text)).trim_end());
    }

    /// `  = why: …`, wrapped under its first word.
    fn item(&mut self, gutter: usize, word: &str, text: &str) {
        let equals = self.paint.with(Style::Gutter, "=");
        let painted = self.paint.with(Style::Strong, word);
        let indent = gutter + word.len() + 5;
        let mut first = true;
        for paragraph in text.lines() {
            for line in wrap(&clean(paragraph), COLUMNS.saturating_sub(indent)) {
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
        let bar = self.paint.with(Style::Gutter, "|");
        let indent = " ".repeat(gutter + 3);
        let columns = COLUMNS.saturating_sub(indent.len() + 2);
        for paragraph in answer.says.iter().flat_map(|says| says.lines()) {
            for line in wrap(&clean(paragraph), columns) {
                self.line(format!("{indent}{bar} {line}").trim_end());
            }
        }
    }

    fn mended(&mut self, gutter: usize, source: &Source<'_>, fix: &crate::Fix) {
        let Some(mended) = mended(source.text, fix) else {
            return;
        };
        let indent = " ".repeat(gutter + 3);
        for (sign, style, lines) in [
            ("-", Style::Severity(Severity::Error), &mended.removed),
            ("+", Style::Good, &mended.added),
        ] {
            for (number, text) in lines {
                let line = self
                    .paint
                    .with(style, &format!("{number:>gutter$} {sign} {}", expand(text)));
                self.line(&format!("{indent}{line}"));
            }
        }
    }

    fn arguments(&mut self, rows: &[ArgumentRow]) {
        if rows.is_empty() {
            return;
        }
        self.line("");
        let cells: Vec<[String; 5]> = rows
            .iter()
            .map(|row| {
                let given = row.given.as_deref().map_or("–".to_owned(), clean);
                [
                    clean(&row.name),
                    state_word(row).to_owned(),
                    given,
                    row.expects.clone(),
                    row.default.clone(),
                ]
            })
            .collect();
        let head = ["argument", "", "passed", "expects", "default"].map(str::to_owned);
        let width = |column: usize| {
            cells
                .iter()
                .chain([&head])
                .map(|row| row[column].width())
                .max()
                .unwrap_or_default()
        };
        let widths = [width(0), width(1), width(2), width(3), width(4)];
        let line = |row: &[String; 5]| {
            let mut line = String::from(" ");
            for (cell, width) in row.iter().zip(widths) {
                line += &format!(" {cell}{} ", " ".repeat(width - cell.width()));
            }
            line.trim_end().to_owned()
        };
        let head = self.paint.with(Style::Dim, &line(&head));
        self.line(&head);
        for (row, cells) in rows.iter().zip(&cells) {
            let text = line(cells);
            let text = match row.state {
                ArgumentState::Invalid => self.paint.with(Style::Severity(Severity::Error), &text),
                ArgumentState::Given => text,
                ArgumentState::Default => self.paint.with(Style::Dim, &text),
            };
            self.line(&text);
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// How an argument stands, as a word: colour alone does not reach everyone.
pub(super) fn state_word(row: &ArgumentRow) -> &'static str {
    match row.state {
        ArgumentState::Invalid if row.given.is_none() => "missing",
        ArgumentState::Given => "given",
        ArgumentState::Default => "default",
        ArgumentState::Invalid => "invalid",
    }
}

/// Text of others on one line: tabs as spaces, no character that a terminal obeys.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
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
mod tests {
    use unicode_width::UnicodeWidthChar;

    use super::*;

    /// Below each line of code, the columns under the carets are those of `expected`.
    fn check(text: &str, span: (usize, usize), expected: &str) {
        let diagnostic = Diagnostic::new("SC0000", Severity::Error, "x")
            .label(Place::span(span.0, span.1), "here");
        let shown = plain(
            &diagnostic,
            &Source {
                text,
                name: "Cell In[1]",
            },
        );
        let rows: Vec<&str> = shown.lines().collect();
        let at = rows
            .iter()
            .position(|row| row.contains('^'))
            .expect("carets");
        let code: Vec<char> = columns(rows[at - 1]);
        let marked: String = columns(rows[at])
            .iter()
            .zip(&code)
            .filter(|(caret, _)| **caret == '^')
            .map(|(_, c)| *c)
            .filter(|c| *c != '\u{0}')
            .collect();
        assert_eq!(marked, expected, "{shown}");
    }

    /// One entry per column; the second column of a wide character is NUL.
    fn columns(row: &str) -> Vec<char> {
        let mut columns = Vec::new();
        for c in row.chars() {
            for nth in 0..c.width().unwrap_or_default() {
                columns.push(if nth == 0 { c } else { '\u{0}' });
            }
        }
        columns
    }

    #[test]
    fn carets_stand_under_what_is_meant() {
        check("abc", (1, 2), "b");
        check("größe = x", (8, 9), "=");
        check("\t\tab", (2, 4), "ab");
        check("\"日本\" + x", (8, 9), " ");
        check("\"日本\" + x", (1, 7), "日本");
        check("a\nb\nccc", (4, 7), "ccc");
        check("x\u{1b}[31m y", (7, 8), "y");
    }

    #[test]
    fn an_empty_span_and_the_end_of_the_text_have_a_caret() {
        let diagnostic =
            Diagnostic::new("SC0000", Severity::Note, "x").label(Place::span(3, 3), "end");
        let shown = plain(
            &diagnostic,
            &Source {
                text: "abc",
                name: "c",
            },
        );
        assert!(shown.contains("|    ^ end"), "{shown}");
    }

    #[test]
    fn nothing_in_the_text_reaches_the_terminal() {
        let diagnostic = Diagnostic::new("SC0000", Severity::Error, "a\u{1b}[2Jb")
            .label(Place::span(0, 2), "\u{1b}]0;t\u{7}")
            .evidence("row", "\u{9b}31m");
        let shown = plain(
            &diagnostic,
            &Source {
                text: "\u{1b}c",
                name: "c",
            },
        );
        assert!(
            !shown.chars().any(|c| c.is_control() && c != '\n'),
            "{shown:?}"
        );
    }

    #[test]
    fn a_traceback_begins_with_the_link() {
        let diagnostic =
            Diagnostic::new("SC0000", Severity::Error, "x").label(Place::span(2, 3), "");
        let source = Source {
            text: "a\nb",
            name: "Cell In[7]",
        };
        let traceback = traceback(&[diagnostic.clone(), diagnostic], &source);
        assert_eq!(traceback[0], "Cell In[7], line 2");
        assert_eq!(
            traceback
                .iter()
                .filter(|line| line.contains("SC0000"))
                .count(),
            2
        );
    }
}
