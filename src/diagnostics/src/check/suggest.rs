//! Did you mean: names that are a slip away from what was typed.

use strsim::{jaro_winkler, osa_distance};

/// The candidates that look like `given`, best first.
///
/// A candidate at distance 1 (one insertion, deletion, replacement or transposition of neighbors)
/// always comes before all others. Beyond that, case and underscores count little, and up to a third of
/// the letters may differ; or the words between the underscores are the same but for some that were
/// left out: `sparse_crossentropy`.
pub fn similar<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let folded = fold(given);
    let most = 1 + given.chars().count() / 3;
    let mut near: Vec<(usize, f64, &str)> = Vec::new();
    let mut in_words: Vec<(usize, f64, &str)> = Vec::new();
    for candidate in candidates {
        let exact = osa_distance(given, candidate);
        let closeness = jaro_winkler(&folded, &fold(candidate));
        let distance = match exact {
            0 => continue,
            1 => 1,
            _ => exact.min(osa_distance(&folded, &fold(candidate)) + 2),
        };
        let by_letters =
            (distance == 1 || (distance <= most && closeness > 0.75)).then_some(distance);
        match (distance_in_words(given, candidate), by_letters) {
            (Some(words), Some(letters)) if words < letters && distance > 1 => {
                near.push((words, closeness, candidate));
            }
            (_, Some(letters)) => near.push((letters, closeness, candidate)),
            (Some(words), None) => in_words.push((words, closeness, candidate)),
            (None, None) => {}
        }
    }
    // Beside a name that is one letter away, one that shares a word says nothing.
    if !near.iter().any(|(distance, ..)| *distance == 1) {
        near.extend(in_words);
    }
    near.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(b.2)));
    near.into_iter()
        .map(|(_, _, candidate)| candidate.to_owned())
        .collect()
}

/// How far apart two names are whose words are the same but for a few; `None` where more than half of
/// what was given is another word, or there is one word only.
fn distance_in_words(given: &str, candidate: &str) -> Option<usize> {
    let words = |name: &str| -> Vec<String> {
        let name = name.to_lowercase();
        name.split(['_', '-', ' ']).map(str::to_owned).collect()
    };
    let (given, mut left) = (words(given), words(candidate));
    if given.len() < 2 {
        return None;
    }
    let mut slips = 0;
    let mut strange = 0;
    for word in &given {
        let is_same = |other: &String| {
            let distance = osa_distance(word, other);
            distance == 0 || (distance == 1 && word.len() > 3)
        };
        match left.iter().position(is_same) {
            Some(index) => slips += usize::from(left.swap_remove(index) != *word),
            None => strange += 1,
        }
    }
    let same = given.len() - strange;
    // A short word, as `of`, is in many names.
    let letters: usize = given.iter().map(String::len).sum();
    let is_known = same > strange && letters > 3;
    // 2: never before what is one letter away.
    is_known.then(|| 2 + slips + left.len() + 3 * strange)
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
    fn words_that_were_left_out_or_changed_places_count_little() {
        let losses = [
            "sparse_categorical_crossentropy",
            "categorical_crossentropy",
            "binary_crossentropy",
            "mean_squared_error",
            "mse",
        ];
        for (given, expected) in [
            ("sparse_crossentropy", "sparse_categorical_crossentropy"),
            ("sparse_crosentropy", "sparse_categorical_crossentropy"),
            ("crossentropy_categorical", "categorical_crossentropy"),
            (
                "categorical_sparse_crossentropy",
                "sparse_categorical_crossentropy",
            ),
            ("squared_error", "mean_squared_error"),
            ("binary_cross_entropy", "binary_crossentropy"),
        ] {
            let found = similar(given, losses);
            assert_eq!(
                found.first().map(String::as_str),
                Some(expected),
                "{given}: {found:?}"
            );
        }
        check("sparse", &losses, &[]);
    }

    #[test]
    fn one_edit_comes_before_everything_else() {
        check("f2", &["mcc", "f1", "macro_f1"], &["f1"]);
        check("epoch", &["epochs", "early_stopping"], &["epochs"]);
    }
}
