//! Variables of the cell and the notebook that a call may mean: its model, the data sets it trains on, those it does not.

use super::super::calls::CallArgument;
use super::super::kind;
use super::Checker;
use crate::arguments::Kind;
use crate::{CellSpan, Edit, Fix, FixKind, Place};

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
    /// Whether a name is a data set of the cell or the notebook.
    pub(super) fn is_data(&self, name: &str) -> bool {
        let bound = self.cell.bound.get(name).copied().flatten();
        let known = self.context.variables.get(name);
        bound.or_else(|| known.and_then(|it| kind::of_type(it))) == Some(Kind::Dataset)
    }

    /// The way out for two arrays in place of a data set of an argument.
    pub(super) fn of_arrays(&self, pair: &[String; 2], argument: &CallArgument) -> Fix {
        self.of_a_pair(pair, argument.value_span, &format!("{} = ", argument.name))
    }

    /// The way out for `(x, y)`: the data set that both are of, or a new one.
    pub(super) fn of_a_pair(&self, pair: &[String; 2], place: CellSpan, name: &str) -> Fix {
        let [x, y] = pair;
        let of_both = self.of_one_set(x, y);
        let data = x
            .trim_start_matches('&')
            .trim_end_matches(".clone()")
            .trim();
        let is_data = self.is_data(data);
        let replacement = match of_both {
            Some(data) => data,
            None if is_data => data.to_owned(),
            None => return kind::of_arrays(pair, place),
        };
        // What stands second may be other labels.
        let is_same = !is_data
            || y.trim_start_matches('&')
                .trim_end_matches(".clone()")
                .trim()
                == data;
        let title = if is_same {
            format!("write `{name}{replacement}`: a data set has its labels")
        } else {
            format!("a data set has its labels: `{name}{replacement}`")
        };
        let edits = vec![Edit {
            place: Place::Span(place),
            replacement,
        }];
        Fix {
            kind: FixKind::Change,
            title,
            edits: if is_same { edits } else { Vec::new() },
        }
    }

    /// Whether it is open which of several data sets a network of layers takes: it may be one of texts.
    pub(super) fn may_be_of_texts(&self, model: &str) -> bool {
        let of_type = self
            .context
            .variables
            .get(model.trim_start_matches('&').trim());
        let variables = self.context.variables.values();
        let data = variables.filter(|it| kind::of_type(it) == Some(Kind::Dataset));
        of_type.is_some_and(|it| it.contains("Layers")) && data.count() > 1
    }

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
