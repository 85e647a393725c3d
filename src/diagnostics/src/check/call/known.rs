//! Variables of the cell and the notebook that a call may mean: its model, the data sets it trains on, those it does not.

use super::super::kind;
use super::Checker;
use crate::arguments::Kind;

/// Names of data sets that are not trained on.
const HELD_OUT: [&str; 11] = [
    "dev",
    "validation",
    "valid",
    "val",
    "test",
    "test_data",
    "val_data",
    "held",
    "held_out",
    "holdout",
    "eval",
];

impl Checker<'_> {
    /// The notebook's data set that is not trained on, by its name.
    pub(super) fn held_out(&self) -> Option<String> {
        let is_data = |name: &&&str| {
            let of_cell = self.cell.bound.get(**name).copied().flatten();
            let of_notebook = self.context.variables.get(**name);
            let kind = of_cell.or_else(|| of_notebook.and_then(|it| kind::of_type(it)));
            kind == Some(Kind::Dataset)
                || (of_notebook.is_none() && self.cell.bound.contains_key(**name))
        };
        HELD_OUT.iter().find(is_data).map(|name| (*name).to_owned())
    }

    /// The first of the notebook's data sets, for training one that is not held out.
    pub(super) fn a_dataset(&self) -> Option<String> {
        let variables = self.context.variables.iter();
        let variables = variables.filter(|(_, it)| kind::of_type(it) == Some(Kind::Dataset));
        let names: Vec<&String> = variables.map(|(name, _)| name).collect();
        let is_held_out = |name: &str| HELD_OUT.iter().any(|word| name.contains(word));
        let wants_held_out = self.parsed.call.name == "evaluate";
        let best = names
            .iter()
            .find(|name| is_held_out(name) == wants_held_out);
        let known = best.or(names.first()).map(|name| (*name).clone());
        known.filter(|_| !names.iter().any(|name| *name == "train"))
    }

    /// The notebook's variable of this kind, if there is one and no more.
    pub(super) fn only_one(&self, kind: Kind) -> Option<&str> {
        let of_cell = self.cell.bound.iter();
        let of_cell = of_cell.filter(|(_, found)| **found == Some(kind));
        let of_cell: Vec<&str> = of_cell.map(|(name, _)| name.as_str()).collect();
        if let [only] = of_cell.as_slice() {
            return Some(only);
        }
        let variables = self.context.variables.iter();
        let variables = variables.filter(|(_, name)| kind::of_type(name) == Some(kind));
        let mut variables = variables.map(|(name, _)| name.as_str());
        match (variables.next(), variables.next()) {
            (Some(only), None) if of_cell.is_empty() => Some(only),
            _ => None,
        }
    }
}
