//! Before and after, as text.

use stratoscope_diagnostics::words;

use super::table::{shorten, table};
use super::{PAGE, devices, paragraph, trimmed};
use crate::placement::diff::{Pair, PlacementDiff, Side};
use crate::placement::rows::Sheet;
use crate::placement::units::bytes;

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
    let mut rows = vec![
        ["variable", "n", "kind", "devices", "all copies", "values"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(diff.rows().iter().map(|row| {
        vec![
            row.name.clone(),
            words::thousands(row.variables),
            change(row, |side| side.kind.to_owned()),
            change(row, |side| side.devices.clone()),
            change(row, |side| bytes(side.bytes)),
            row.values.word().to_owned(),
        ]
    }));
    shorten(&mut rows, PAGE);
    table(&mut out, &rows, &[0, 2, 3, 4, 5], PAGE);
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
