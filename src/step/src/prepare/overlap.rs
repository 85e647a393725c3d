//! Rows that are in both splits, where one of them is a stream or both are. SC0701.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use stratoscope_data::{Data, Example, Stream};
use stratoscope_diagnostics::rules::SplitsOverlap;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

/// Rows of the smaller of two streams whose rows are compared: 160 MB of hashes.
const MOST_COMPARED: usize = 4 << 20;

/// SC0701 where one of the two splits is a stream, and only the other one in memory, or both are.
///
/// # Errors
/// SC0911 if a file has changed.
pub(super) fn of_streams(train: Data<'_>, validation: Data<'_>) -> Result<Option<Diagnostic>> {
    let (held, stream, train_is_held) = match (train, validation) {
        (Data::Held(held), Data::Streamed(stream)) => (held, stream, true),
        (Data::Streamed(stream), Data::Held(held)) => (held, stream, false),
        (Data::Streamed(train), Data::Streamed(validation)) => {
            return between_streams(train, validation);
        }
        (Data::Held(_), Data::Held(_)) => return Ok(None),
    };
    type Key = (String, Option<String>, Option<Vec<String>>);
    let key = |it: &Example| -> Key {
        (
            it.text.clone(),
            it.pair.clone(),
            it.choices().map(<[String]>::to_vec),
        )
    };
    let mut known: HashMap<Key, Vec<usize>> = HashMap::new();
    for (index, example) in held.examples.iter().enumerate() {
        known.entry(key(example)).or_default().push(index);
    }
    let mut rule = nothing_shared(validation.len());
    for portion in stream.portions() {
        for example in &portion?.examples {
            // Each validation example counts once, however often it is trained on.
            let found: Vec<usize> = match train_is_held {
                true => known
                    .get(&key(example))
                    .and_then(|all| all.first())
                    .into_iter()
                    .copied()
                    .collect(),
                false => known.remove(&key(example)).unwrap_or_default(),
            };
            for index in found {
                let other = &held.examples[index];
                let rows = match train_is_held {
                    true => (other.row, example.row),
                    false => (example.row, other.row),
                };
                let is_other_label = other.label_name != example.label_name;
                add(&mut rule, rows, example, is_other_label);
            }
        }
    }
    Ok((rule.shared > 0).then(|| rule.diagnostic()))
}

/// The rule before the first row that is in both.
fn nothing_shared(validation: usize) -> SplitsOverlap {
    SplitsOverlap {
        shared: 0,
        validation,
        first: Vec::new(),
        other_label: 0,
        one_data_set: false,
    }
}

/// Adds an example that is in both, at these rows of training and validation.
fn add(
    rule: &mut SplitsOverlap,
    (training, validation): (usize, usize),
    example: &Example,
    is_other_label: bool,
) {
    rule.shared += 1;
    rule.other_label += usize::from(is_other_label);
    if rule.first.len() < 5 {
        rule.first.push((training, validation, example.texts()));
    }
}

/// SC0701 of two streams, by hashes of 64 bits of their rows. About 40 bytes a row of the smaller one are in memory; where
/// both have more rows than [`MOST_COMPARED`], nothing is said.
fn between_streams(train: &Stream, validation: &Stream) -> Result<Option<Diagnostic>> {
    if train.len().min(validation.len()) > MOST_COMPARED {
        return Ok(None);
    }
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    let row = |it: &Example| hash(&|hasher| (&it.text, &it.pair, it.choices()).hash(hasher));
    let label = |it: &Example| hash(&|hasher| it.label_name.hash(hasher));
    let mut wanted: Option<HashSet<u64>> = None;
    if validation.len() < train.len() {
        let wanted = wanted.insert(HashSet::new());
        for portion in validation.portions() {
            wanted.extend(portion?.examples.iter().map(row));
        }
    }
    // The first training row of each, and its label.
    let mut known: HashMap<u64, (usize, u64)> = HashMap::new();
    for portion in train.portions() {
        for example in &portion?.examples {
            let row = row(example);
            if wanted.as_ref().is_none_or(|wanted| wanted.contains(&row)) {
                known.entry(row).or_insert((example.row, label(example)));
            }
        }
    }
    let mut rule = nothing_shared(validation.len());
    if known.is_empty() {
        return Ok(None);
    }
    for portion in validation.portions() {
        for example in &portion?.examples {
            let Some(&(theirs, of_theirs)) = known.get(&row(example)) else {
                continue;
            };
            let rows = (theirs, example.row);
            add(&mut rule, rows, example, of_theirs != label(example));
        }
    }
    Ok((rule.shared > 0).then(|| rule.diagnostic()))
}
