//! A loop over a list with the place of each element, as by Python's `enumerate`: `for (i, row) in p.rows`.

use syn::{Expr, Pat};

use super::tree::{find, place};
use super::{Answer, Slip, edit};

/// Names of places.
const PLACES: [&str; 8] = ["i", "j", "k", "n", "idx", "index", "epoch", "step"];

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    let is_pair = labels.any(|it| it.text.ends_with("found `(_, _)`"));
    if slip.code() != "E0308" || !is_pair {
        return None;
    }
    let (at, written) = find(slip.cell, |it| {
        let Expr::ForLoop(pass) = it else {
            return None;
        };
        let Pat::Tuple(pattern) = &*pass.pat else {
            return None;
        };
        let Some(Pat::Ident(first)) = pattern.elems.first() else {
            return None;
        };
        let name = first.ident.to_string();
        let is_place = PLACES.contains(&name.as_str()) || name.ends_with("_idx");
        if place(&*pass.pat) != slip.span || pattern.elems.len() != 2 || !is_place {
            return None;
        }
        let at = place(&*pass.expr);
        let over = slip.text(at).trim_start_matches('&');
        let items = match &*pass.expr {
            Expr::MethodCall(_) => over.to_owned(),
            Expr::Path(_) | Expr::Field(_) | Expr::Reference(_) => format!("{over}.iter()"),
            _ => return None,
        };
        Some((at, format!("{items}.enumerate()")))
    })?;
    Some(
        Answer::of(vec![edit(at.start, at.end, written)])
            .why("`enumerate` gives each element with its place")
            .instead("the items of this loop are no pairs"),
    )
}
