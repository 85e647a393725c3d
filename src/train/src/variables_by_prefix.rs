//! Variables by the beginning of their names.

use std::collections::HashSet;

use burn::module::ParamId;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_render::text;

use crate::state::ModelState;
use stratoscope_diagnostics::problem;

impl ModelState {
    /// The variables whose names are `prefix` or go on after it with a new part.
    ///
    /// # Errors
    /// SC0103 if there are none.
    pub fn variables_below(&self, prefix: &str, call: &str) -> Result<HashSet<ParamId>> {
        let records = self.step.replicas.records();
        let chosen: HashSet<ParamId> = records
            .iter()
            .filter(|record| is_below(&record.name, prefix))
            .map(|record| record.param)
            .collect();
        if chosen.is_empty() {
            let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
            return Err(unknown(call, prefix, &names));
        }
        Ok(chosen)
    }
}

/// Whether a name is `prefix`, or goes on after it with a new part: `layer.1` is not above `layer.10`.
fn is_below(name: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('.');
    match name.strip_prefix(prefix) {
        Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}

fn unknown(call: &str, prefix: &str, names: &[&str]) -> Box<stratoscope_diagnostics::Diagnostic> {
    // Everything that could have been written: each name, and each of its beginnings.
    let mut beginnings: Vec<&str> = names
        .iter()
        .flat_map(|name| {
            let dots = name.match_indices('.').map(|(at, _)| &name[..at]);
            dots.chain([*name])
        })
        .collect();
    beginnings.sort_unstable();
    beginnings.dedup();
    let near = similar(prefix, beginnings.iter().copied());
    let top: Vec<&str> = beginnings
        .iter()
        .copied()
        .filter(|name| !name.contains('.'))
        .collect();
    let expects = format!(
        "the first part of a variable's name, such as {}",
        text::names(&top, 3)
    );
    let mut finding = problem::bad_value(call, "name", format!("{prefix:?}"), expects);
    for name in near.iter().take(2) {
        finding = finding.suggest(name);
    }
    Box::new(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_a_dot() {
        let check = |name: &str, prefix: &str, expected| {
            assert_eq!(is_below(name, prefix), expected, "{prefix} above {name}");
        };
        check(
            "bert.encoder.layer.1.output.bias",
            "bert.encoder.layer.1",
            true,
        );
        check(
            "bert.encoder.layer.10.output.bias",
            "bert.encoder.layer.1",
            false,
        );
        check(
            "bert.encoder.layer.1.output.bias",
            "bert.encoder.layer.1.",
            true,
        );
        check("classifier.bias", "classifier.bias", true);
        check("classifier.bias", "bert", false);
        check("classifier.bias", "", true);
    }
}
