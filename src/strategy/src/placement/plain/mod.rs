//! The report as text of at most 80 columns, for terminals, logs and screen readers.

mod diff;
mod slices;
mod table;
mod timeline;

use std::fmt::Write;

use stratoscope_render::text;

pub(super) use self::diff::diff;
use self::slices::slices;
use self::table::{shorten, table};
use self::timeline::timelines;
use super::parts::SlotState;
use super::rows::{Cell, DeviceLine, Layer, Line, Mark, Part, Sheet};
use stratoscope_render::units::{bytes, share};

/// Up to this many devices have a column of their own.
const MOST_COLUMNS: usize = 4;
/// Characters of the widest line.
const PAGE: usize = 80;

/// Everything.
pub(super) fn text(sheet: &Sheet<'_>) -> String {
    let mut out = String::new();
    paragraph(&mut out, &format!("{}: {}", sheet.title, sheet.verdict));
    paragraph(&mut out, &sheet.strategy);
    for line in &sheet.reality {
        paragraph(&mut out, line);
    }
    out.push('\n');
    devices(&mut out, sheet);
    out.push('\n');
    variables(&mut out, sheet);
    out.push('\n');
    kinds(&mut out, sheet);
    timelines(&mut out, sheet);
    trimmed(&out)
}

/// The grid alone.
pub(super) fn figure(sheet: &Sheet<'_>) -> String {
    let mut out = String::new();
    variables(&mut out, sheet);
    trimmed(&out)
}

/// No spaces at the ends of lines, no line at the end.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

fn paragraph(out: &mut String, text: &str) {
    for line in text::wrap(text, PAGE) {
        let _ = writeln!(out, "{line}");
    }
}

/// Devices as rows, with what they hold against their memory; then what that consists of.
fn devices(out: &mut String, sheet: &Sheet<'_>) {
    let head = ["device", "kind", "holds", "of memory", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for line in &sheet.devices {
        let capacity = line.column.capacity_bytes;
        rows.push(vec![
            line.column.name.clone(),
            line.column.kind.word().to_owned(),
            bytes(line.sum),
            capacity.map_or("unknown".to_owned(), bytes),
            capacity.map_or(String::new(), |capacity| gauge(line.sum, capacity)),
        ]);
    }
    table(out, &rows, &[0, 1, 4], PAGE);
    let consists_of = |line: &DeviceLine<'_>| {
        let part = |(part, &size): (&Part<'_>, &u64)| match part.state {
            SlotState::Measured => format!("{} {}", bytes(size), part.name),
            state => format!("{} {} ({})", bytes(size), part.name, state.word()),
        };
        let parts: Vec<String> = sheet.parts.iter().zip(&line.parts).map(part).collect();
        format!("{} = {}", parts.join(" + "), bytes(line.sum))
    };
    match sheet.devices.as_slice() {
        // Weights alone: the table has said it.
        _ if sheet.parts.len() < 2 => {}
        [only] => paragraph(out, &consists_of(only)),
        [first, ..] if sheet.is_even() => {
            paragraph(out, &format!("each device: {}", consists_of(first)));
        }
        lines => {
            for line in lines.iter().filter(|line| line.sum > 0) {
                let name = &line.column.name;
                paragraph(out, &format!("{name}: {}", consists_of(line)));
            }
        }
    }
    slices(out, sheet);
    if sheet.has(SlotState::Planned) {
        out.push_str("planned: allocated at the first step\n");
    }
    if let Some(note) = sheet.activations {
        paragraph(out, &format!("activations: {note}"));
    }
}

/// `[##..................] 12 %`.
fn gauge(used: u64, capacity: u64) -> String {
    const WIDTH: usize = 20;
    let part = (u128::from(used) * WIDTH as u128).div_ceil(u128::from(capacity.max(1)));
    let full = usize::try_from(part).unwrap_or(WIDTH).min(WIDTH);
    format!(
        "[{}{}] {}",
        "#".repeat(full),
        ".".repeat(WIDTH - full),
        share(used, capacity)
    )
}

/// The grid. Where a variable was made stands as a letter that is spelled out below.
fn variables(out: &mut String, sheet: &Sheet<'_>) {
    let several = sheet.origins.len() > 1;
    let mut head = vec!["variable".to_owned(), "kind".to_owned(), "shape".to_owned()];
    head.push("one copy".to_owned());
    match sheet.devices.len() {
        0..=MOST_COLUMNS => head.extend(sheet.devices.iter().map(|line| line.column.name.clone())),
        many => head.push(format!("{many} devices")),
    }
    if several {
        head.push("at".to_owned());
    }
    let mut rows = vec![head];
    for layer in &sheet.layers {
        lines(&mut rows, sheet, layer, several);
    }
    let left: Vec<usize> = (0..rows[0].len()).filter(|column| *column != 3).collect();
    shorten(&mut rows, PAGE);
    table(out, &rows, &left, PAGE);
    match sheet.origins.as_slice() {
        [] => {}
        [one] => {
            let _ = writeln!(out, "made at {one}");
        }
        many => {
            let made = many.iter().enumerate();
            let made: Vec<String> = made.map(|(i, at)| format!("{} {at}", letter(i))).collect();
            paragraph(out, &format!("made at: {}", made.join(", ")));
        }
    }
}

/// A layer in one line where it is folded, and below it what must be seen of it.
fn lines(rows: &mut Vec<Vec<String>>, sheet: &Sheet<'_>, layer: &Layer, several: bool) {
    let shown = layer.lines.iter();
    match &layer.sum {
        None => rows.extend(shown.map(|line| row(sheet, line, several, ""))),
        Some(sum) => {
            rows.push(row(sheet, sum, several, ""));
            let unequal = shown.filter(|line| line.mark == Mark::Unequal);
            rows.extend(unequal.map(|line| row(sheet, line, several, "  ")));
        }
    }
    if let Some(sizes) = &layer.activations {
        let state = sheet.parts.last().map_or("", |part| part.state.word());
        let mut row = vec!["  activations".to_owned(), String::new(), state.to_owned()];
        row.push(bytes(sizes.iter().max().copied().unwrap_or(0)));
        match sizes.len() {
            0..=MOST_COLUMNS => row.extend(sizes.iter().map(|&size| bytes(size))),
            _ => row.push("the most".to_owned()),
        }
        rows.push(row);
    }
}

fn row(sheet: &Sheet<'_>, line: &Line, several: bool, indent: &str) -> Vec<String> {
    let mut cells = vec![
        format!("{indent}{}{}", line.mark.sign(), line.name),
        line.kind_marked(),
        line.shape.clone(),
        bytes(line.bytes),
    ];
    match line.cells.len() {
        0..=MOST_COLUMNS => cells.extend(line.cells.iter().map(Cell::words)),
        _ => cells.push(sheet.on_many(line)),
    }
    if several {
        cells.push(line.origin.map_or("…".to_owned(), letter));
    }
    cells
}

/// `a`, `b`, … `z`, `27`.
fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'a' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

fn kinds(out: &mut String, sheet: &Sheet<'_>) {
    for kind in &sheet.kinds {
        let why = kind
            .why
            .iter()
            .take(3)
            .cloned()
            .collect::<Vec<_>>()
            .join("; ");
        let count = text::thousands(kind.variables);
        paragraph(
            out,
            &format!("{} ({count}): {}. Here: {why}", kind.title, kind.meaning),
        );
    }
    for sign in sheet.signs(MOST_COLUMNS, false) {
        // In text there is a count of copies in place of the dots.
        if !sign.starts_with("a dot") {
            paragraph(out, sign);
        }
    }
}
