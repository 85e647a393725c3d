//! Before and after, as text.

use stratoscope_render::text;

use super::table::{shorten, table};
use super::{PAGE, devices, letter, paragraph, trimmed};
use crate::placement::diff::{Pair, PlacementDiff, Side};
use crate::placement::rows::Sheet;
use stratoscope_render::units::bytes;

pub(in crate::placement) fn diff(
    diff: &PlacementDiff,
    before: &Sheet<'_>,
    after: &Sheet<'_>,
) -> String {
    let mut out = String::new();
    paragraph(
        &mut out,
        &format!("{}, before and after: {}", after.title, diff.verdict()),
    );
    for (name, sheet) in [("before", before), ("after", after)] {
        out.push('\n');
        paragraph(&mut out, &format!("{name}: {}", sheet.strategy));
        devices(&mut out, sheet);
    }
    out.push('\n');
    let pairs = diff.rows();
    let way = |row: &Pair| {
        let kind = change(row, |side| side.kind.to_owned());
        format!("{kind}, {}", change(row, |side| side.devices.clone()))
    };
    // Most variables go the same way: it is written once, not in two wide columns.
    let mut ways: Vec<String> = Vec::new();
    for row in &pairs {
        let way = way(row);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    let several = ways.len() > 1;
    let mut head = vec!["variable", "n", "all copies", "values"];
    head.extend(several.then_some("way"));
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    for row in &pairs {
        let mut cells = vec![
            row.name.clone(),
            text::thousands(row.variables),
            change(row, |side| bytes(side.bytes)),
            row.values.word().to_owned(),
        ];
        if several && let Some(index) = ways.iter().position(|known| *known == way(row)) {
            cells.push(letter(index));
        }
        rows.push(cells);
    }
    shorten(&mut rows, PAGE);
    table(&mut out, &rows, &[0, 2, 3, 4], PAGE);
    for (index, way) in ways.iter().enumerate() {
        match several {
            true => paragraph(&mut out, &format!("{}: {way}", letter(index))),
            false => paragraph(&mut out, &format!("all of them: {way}")),
        }
    }
    trimmed(&out)
}

/// `Local → Mirrored`; what is as it was stands once.
fn change(row: &Pair, of: impl Fn(&Side) -> String) -> String {
    let text = |side: &Option<Side>| side.as_ref().map_or("–".to_owned(), &of);
    let (before, after) = (text(&row.before), text(&row.after));
    match before == after {
        true => after,
        false => format!("{before} → {after}"),
    }
}
