//! Groups of variables: a layer of an encoder, a head. Hundreds of rows become a dozen.

use super::{PlacementReport, VariableRow};

/// Consecutive variables of one layer.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// `bert.encoder.layer.0`.
    pub name: String,
    pub rows: Vec<&'a VariableRow>,
}

impl<'a> Group<'a> {
    /// A row's name without the group's.
    pub fn rest<'r>(&self, row: &'r VariableRow) -> &'r str {
        let rest = row
            .name
            .strip_prefix(&self.name)
            .and_then(|rest| rest.strip_prefix('.'));
        rest.unwrap_or(&row.name)
    }
}

/// The report's variables, folded by layer, in their order.
pub(super) fn groups(report: &PlacementReport) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &report.variables {
        let name = layer(&row.name);
        match groups.last_mut() {
            Some(last) if last.name == name => last.rows.push(row),
            _ => groups.push(Group {
                name: name.to_owned(),
                rows: vec![row],
            }),
        }
    }
    groups
}

/// The layer that a variable belongs to: everything through the first number in its name; else the
/// first two parts, or the first of two.
pub(super) fn layer(name: &str) -> &str {
    let mut ends = Vec::new();
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return &name[..end];
        }
        ends.push(end);
        end += 1;
    }
    match ends.as_slice() {
        [_, second, _, ..] => &name[..*second],
        [first, ..] => &name[..*first],
        [] => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_ends_at_its_number() {
        let check = |name: &str, expected: &str| assert_eq!(layer(name), expected);
        check(
            "bert.encoder.layer.0.attention.self.query.weight",
            "bert.encoder.layer.0",
        );
        check(
            "bert.encoder.layer.11.output.dense.bias",
            "bert.encoder.layer.11",
        );
        check("bert.embeddings.LayerNorm.weight", "bert.embeddings");
        check("bert.pooler.dense.weight", "bert.pooler");
        check("classifier.weight", "classifier");
        check("weight", "weight");
        check("0.weight", "0");
        check("", "");
        check("a..b", "a.");
    }
}
