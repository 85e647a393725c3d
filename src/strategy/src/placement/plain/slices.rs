//! Which device has which slice, and which rows or columns of the variables that are cut, as lines of text: in HTML they are in
//! the grid, which a page of text has no room for.

use super::paragraph;
use crate::placement::rows::{Cell, DeviceLine, Line, Sheet};

/// The rows or columns of each slice, and the variables that are cut like this.
struct Pattern<'a> {
    cuts: Vec<String>,
    names: Vec<&'a str>,
}

/// A sentence for each replica, and one for all variables that are cut alike.
pub(super) fn slices(out: &mut String, sheet: &Sheet<'_>) {
    if sheet.devices.iter().all(|it| it.column.slice.is_none()) {
        return;
    }
    for of_replica in sheet
        .devices
        .chunk_by(|one, next| one.column.replica == next.column.replica)
    {
        let has = |line: &DeviceLine<'_>| {
            let slice = line.column.slice?;
            Some(format!("{} has slice {slice}", line.column.name))
        };
        let has: Vec<String> = of_replica.iter().filter_map(has).collect();
        let replica = of_replica.first().and_then(|line| line.column.replica);
        let replica = replica.map_or(String::new(), |replica| format!("replica {replica}: "));
        paragraph(out, &format!("{replica}{}", has.join(", ")));
    }
    let mut patterns: Vec<Pattern<'_>> = Vec::new();
    for line in sheet.layers.iter().flat_map(|layer| &layer.lines) {
        let cuts = cuts(sheet, line);
        match patterns.iter_mut().find(|it| it.cuts == cuts) {
            _ if cuts.is_empty() => {}
            Some(pattern) => pattern.names.push(&line.full_name),
            None => patterns.push(Pattern {
                cuts,
                names: vec![&line.full_name],
            }),
        }
    }
    for Pattern { cuts, names } in patterns {
        let which = match names.as_slice() {
            [one] => (*one).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => continue,
        };
        paragraph(out, &format!("{which}: {}", cuts.join(", ")));
    }
}

/// What each slice has of a variable, in the first replica: all others have the same.
fn cuts(sheet: &Sheet<'_>, line: &Line) -> Vec<String> {
    let cells = line.cells.iter().zip(&sheet.devices);
    let cut = |(cell, device): (&Cell, &DeviceLine<'_>)| match cell {
        Cell::Copy { rows: Some(_), .. } if device.column.replica.unwrap_or(0) == 0 => {
            let slice = device.column.slice?;
            Some(format!("slice {slice} {}", cell.words()))
        }
        _ => None,
    };
    cells.filter_map(cut).collect()
}
