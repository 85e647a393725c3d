//! Did you mean: names that are a slip away from what was typed.

use strsim::{jaro_winkler, osa_distance};

/// The candidates that look like `given`, best first.
///
/// A candidate at distance 1 (one insertion, deletion, replacement or transposition of neighbours)
/// always comes before all others. Beyond that, case and underscores count little, and up to a third of
/// the letters may differ.
pub fn similar<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let folded = fold(given);
    let most = 1 + given.chars().count() / 3;
    let mut near: Vec<(usize, f64, &str)> = Vec::new();
    for candidate in candidates {
        let exact = osa_distance(given, candidate);
        let closeness = jaro_winkler(&folded, &fold(candidate));
        let distance = match exact {
            0 => continue,
            1 => 1,
            _ => exact.min(osa_distance(&folded, &fold(candidate)) + 2),
        };
        if distance == 1 || (distance <= most && closeness > 0.75) {
            near.push((distance, closeness, candidate));
        }
    }
    near.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(b.2)));
    near.into_iter()
        .map(|(_, _, candidate)| candidate.to_owned())
        .collect()
}

/// The distance that [`similar`] puts first: insertions, deletions, replacements, transpositions.
pub fn distance(a: &str, b: &str) -> usize {
    osa_distance(a, b)
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, candidates: &[&str], expected: &[&str]) {
        assert_eq!(
            similar(given, candidates.iter().copied()),
            expected,
            "{given}"
        );
    }

    #[test]
    fn slips_are_offered_and_strangers_are_not() {
        let names = [
            "optimizer",
            "loss",
            "metrics",
            "steps_per_execution",
            "strategy",
        ];
        check("optimiser", &names, &["optimizer"]);
        check("metric", &names, &["metrics"]);
        check("emtrics", &names, &["metrics"]);
        check("Optimizer", &names, &["optimizer"]);
        check("stepsPerExecution", &names, &["steps_per_execution"]);
        check("steps_per_exec", &names, &["steps_per_execution"]);
        check("los", &names, &["loss"]);
        check("banana", &names, &[]);
        check("x", &names, &[]);
    }

    #[test]
    fn one_edit_comes_before_everything_else() {
        check("f2", &["mcc", "f1", "macro_f1"], &["f1"]);
        check("epoch", &["epochs", "early_stopping"], &["epochs"]);
    }
}
