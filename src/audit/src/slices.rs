//! Parts of the data whose error is higher than that of the rest: Fisher's exact test, one-sided, with Holm's correction for the
//! number of parts. Sources: Fisher 1935, "The logic of inductive inference"; Holm 1979, "A simple sequentially rejective
//! multiple test procedure", which is valid however the parts overlap.

use std::collections::HashMap;
use std::collections::HashSet;

use stratoscope_data::{Dataset, Example};

use crate::words::words;

/// The probability with which a part without more errors than the rest is reported at all.
const LEVEL: f64 = 0.05;
/// Words that are tested at most, the most frequent ones first.
const MAX_WORDS: usize = 200;
/// Rows that a part has at least.
const MIN_ROWS: usize = 10;

/// A part of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// What its rows have in common: `label games`, `word server`, `0 to 3 words`.
    pub name: String,
    /// Its rows, counted from 0.
    pub rows: Vec<usize>,
    /// How many of them have a wrong answer.
    pub errors: usize,
    /// The share of wrong answers among the other rows.
    pub error_of_rest: f64,
    /// The probability of at least as many errors if the part is like the rest.
    pub p_value: f64,
    /// The same, corrected for the number of parts that were tested.
    pub adjusted: f64,
}

impl Slice {
    /// The share of wrong answers.
    pub fn error(&self) -> f64 {
        self.errors as f64 / self.rows.len().max(1) as f64
    }

    /// Whether it is worse than the rest, with all parts that were tested taken into account.
    pub fn is_worse(&self) -> bool {
        self.adjusted < LEVEL
    }
}

/// The parts that were tested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slices {
    /// All of them, the least probable one first.
    pub all: Vec<Slice>,
    /// Rows of the data.
    pub rows: usize,
    /// Wrong answers among them.
    pub errors: usize,
}

/// A part that a user asks for: its name, and which examples belong to it.
pub(crate) type Asked = (String, Box<dyn Fn(&Example) -> bool + Send>);

impl Slices {
    /// Tests the labels, four lengths of texts, the most frequent words and what is asked for. `is_wrong` has an entry for each
    /// row.
    pub(crate) fn of(data: &Dataset, is_wrong: &[bool], asked: &[Asked]) -> Self {
        let errors = is_wrong.iter().filter(|&&it| it).count();
        let parts = parts(data, asked).into_iter();
        let usable = parts.filter(|(_, rows)| (MIN_ROWS..data.len()).contains(&rows.len()));
        let mut all: Vec<Slice> = usable
            .map(|(name, rows)| tested(name, rows, is_wrong, errors))
            .collect();
        all.sort_by(|a, b| {
            a.p_value
                .total_cmp(&b.p_value)
                .then_with(|| a.name.cmp(&b.name))
        });
        adjust(&mut all);
        Self {
            all,
            rows: data.len(),
            errors,
        }
    }

    /// The parts that are worse than the rest.
    pub fn worse(&self) -> Vec<&Slice> {
        self.all.iter().filter(|slice| slice.is_worse()).collect()
    }
}

/// The rows of each part.
fn parts(data: &Dataset, asked: &[Asked]) -> Vec<(String, Vec<usize>)> {
    let rows_with = |keep: &dyn Fn(&Example) -> bool| -> Vec<usize> {
        let examples = data.examples.iter().enumerate();
        examples
            .filter(|(_, example)| keep(example))
            .map(|(row, _)| row)
            .collect()
    };
    let mut parts: Vec<(String, Vec<usize>)> = (asked.iter())
        .map(|(name, keep)| (name.clone(), rows_with(keep)))
        .collect();
    for (class, name) in data.label_names.iter().enumerate() {
        parts.push((
            format!("label {name}"),
            rows_with(&|it| it.class() == Some(class)),
        ));
    }
    if data.examples.iter().any(|it| !it.features.is_empty()) {
        return parts;
    }
    parts.extend(by_length(data));
    parts.extend(by_word(data));
    parts
}

/// Four parts of about as many rows, by the number of words.
fn by_length(data: &Dataset) -> Vec<(String, Vec<usize>)> {
    let lengths: Vec<usize> = data
        .examples
        .iter()
        .map(|it| words(&it.texts()).count())
        .collect();
    let mut sorted = lengths.clone();
    sorted.sort_unstable();
    let Some(&longest) = sorted.last() else {
        return Vec::new();
    };
    let mut ends: Vec<usize> = (1..4)
        .map(|quarter| sorted[quarter * sorted.len() / 4])
        .collect();
    ends.push(longest);
    ends.dedup();
    let mut first = 0;
    let mut parts = Vec::new();
    for end in ends {
        let rows = (0..lengths.len())
            .filter(|&row| (first..=end).contains(&lengths[row]))
            .collect();
        parts.push((format!("{first} to {end} words"), rows));
        first = end + 1;
    }
    parts
}

/// The rows of each of the most frequent words.
fn by_word(data: &Dataset) -> Vec<(String, Vec<usize>)> {
    let mut rows_of: HashMap<String, Vec<usize>> = HashMap::new();
    for (row, example) in data.examples.iter().enumerate() {
        let own: HashSet<String> = words(&example.texts()).collect();
        own.into_iter()
            .for_each(|word| rows_of.entry(word).or_default().push(row));
    }
    let mut parts: Vec<(String, Vec<usize>)> = rows_of.into_iter().collect();
    parts.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    parts.truncate(MAX_WORDS);
    parts
        .into_iter()
        .map(|(word, rows)| (format!("word {word}"), rows))
        .collect()
}

fn tested(name: String, rows: Vec<usize>, is_wrong: &[bool], all_errors: usize) -> Slice {
    let errors = rows.iter().filter(|&&row| is_wrong[row]).count();
    let others = is_wrong.len() - rows.len();
    let p_value = at_least(errors, rows.len(), all_errors, is_wrong.len());
    Slice {
        name,
        errors,
        error_of_rest: (all_errors - errors) as f64 / others.max(1) as f64,
        p_value,
        adjusted: p_value,
        rows,
    }
}

/// Holm's adjusted p-values; the slices are sorted by their p-values.
fn adjust(slices: &mut [Slice]) {
    let tests = slices.len();
    let mut largest = 0.0_f64;
    for (at, slice) in slices.iter_mut().enumerate() {
        largest = largest.max(((tests - at) as f64 * slice.p_value).min(1.0));
        slice.adjusted = largest;
    }
}

/// The probability of at least `found` errors among `rows` rows that are drawn without replacement from `all` rows with
/// `errors` errors (the hypergeometric distribution).
fn at_least(found: usize, rows: usize, errors: usize, all: usize) -> f64 {
    let logs: Vec<f64> = std::iter::once(0.0)
        .chain((1..=all).scan(0.0, |sum, n| {
            *sum += (n as f64).ln();
            Some(*sum)
        }))
        .collect();
    let choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
    let whole = choose(all, rows);
    let possible = found.max((rows + errors).saturating_sub(all))..=errors.min(rows);
    let term = |k: usize| (choose(errors, k) + choose(all - errors, rows - k) - whole).exp();
    possible.map(term).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of SciPy's `hypergeom.sf(found - 1, all, errors, rows)`, and by hand.
    #[test]
    fn the_test_is_exact() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        // Both of 2 drawn from 5 with 2 errors: 1 of 10 ways.
        close(at_least(2, 2, 2, 5), 0.1);
        close(at_least(0, 3, 2, 5), 1.0);
        // Fisher's tea: 4 of 4.
        close(at_least(4, 4, 4, 8), 1.0 / 70.0);
        close(at_least(3, 4, 4, 8), 17.0 / 70.0);
    }

    #[test]
    fn holm_multiplies_and_never_falls() {
        let slice = |p_value: f64| Slice {
            name: String::new(),
            rows: Vec::new(),
            errors: 0,
            error_of_rest: 0.0,
            p_value,
            adjusted: p_value,
        };
        let mut slices = [0.01, 0.02, 0.021, 0.5].map(slice);
        adjust(&mut slices);
        let adjusted = slices.map(|it| (it.adjusted * 1000.0).round() / 1000.0);
        assert_eq!(adjusted, [0.04, 0.06, 0.06, 0.5]);
    }

    fn data(rows: usize) -> Dataset {
        let text = |row: usize| {
            format!(
                "{} number {row} {}",
                ["cat", "dog"][row % 2],
                "and more ".repeat(row % 5)
            )
        };
        let labels = (0..rows).map(|row| ["a", "b"][row / 3 % 2]);
        Dataset::from_rows((0..rows).map(text), labels).expect("rows")
    }

    #[test]
    fn a_planted_part_is_found_and_chance_is_not() {
        let data = data(400);
        let by_chance: Vec<bool> = (0..400)
            .map(|row| stratoscope_data::random::mix(row + 1).is_multiple_of(10))
            .collect();
        let none = Slices::of(&data, &by_chance, &[]);
        assert!(none.worse().is_empty(), "{:?}", none.worse());
        let planted: Vec<bool> = (0..400)
            .map(|row| by_chance[row] || row % 2 == 1 && row % 3 != 0)
            .collect();
        let asked: Asked = (
            "even".to_owned(),
            Box::new(|it: &Example| it.row.is_multiple_of(2)),
        );
        let found = Slices::of(&data, &planted, &[asked]);
        let worse = found.worse();
        assert_eq!(worse[0].name, "word dog");
        assert!(worse[0].error() > 0.6 && worse[0].error_of_rest < 0.2);
        assert!(
            found
                .all
                .iter()
                .any(|it| it.name == "even" && !it.is_worse())
        );
        assert!(found.all.iter().any(|it| it.name.ends_with(" words")));
    }
}
