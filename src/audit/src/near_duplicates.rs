//! Rows that are nearly the same, within a split and between splits: MinHash and locality-sensitive hashing. Sources: Broder
//! 1997, "On the resemblance and containment of documents"; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets",
//! section 3.4.
//!
//! A text is the set of its runs of three characters. The similarity of two texts is that of their sets, |A ∩ B| / |A ∪ B|
//! (Jaccard). The smallest of the hashes of a set is equal for two sets with a probability of just their similarity; so texts
//! whose smallest hashes agree in a band of several hash functions are candidates, and only candidates are compared.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use stratoscope_data::{Dataset, random};
use stratoscope_diagnostics::{Result, problem};

use crate::words::normalized;

/// Characters of a piece of a text.
const PIECE_CHARACTERS: usize = 3;
/// Bands, and hash functions of each. Two texts of similarity s are candidates with the probability 1 − (1 − s⁴)²⁴: 0.965 for
/// s = 0.6, 0.999 for 0.7.
const BANDS: usize = 24;
const HASHES_OF_A_BAND: usize = 4;
/// Texts of a band that a text is compared with, so that the time stays linear where very many are alike.
const MAX_COMPARED: usize = 16;
/// The similarity from which on two texts are called near-duplicates.
pub(crate) const SIMILARITY: f64 = 0.7;

/// A row of a group of near-duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateRow {
    /// The name of its split: `train`.
    pub split: String,
    /// Its row in the split, counted from 0.
    pub row: usize,
    /// Its text; of a pair both.
    pub text: String,
    /// The name of its class, where it has one.
    pub label: Option<String>,
}

/// Rows of which each is nearly the same as another one of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateGroup {
    /// The rows, by the order of the splits and of their rows.
    pub rows: Vec<DuplicateRow>,
    /// The lowest similarity of two rows that were compared and joined, 0 to 1; 1 if all texts have the same words.
    pub similarity: f64,
}

/// Groups of rows that are nearly the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearDuplicates {
    /// The groups; those between splits first, then the most similar ones.
    pub groups: Vec<DuplicateGroup>,
    /// The names of the splits in their order, each with its number of rows.
    pub splits: Vec<(String, usize)>,
    /// The lowest similarity of near-duplicates.
    pub threshold: f64,
}

impl DuplicateGroup {
    /// Whether it has rows of several splits.
    pub fn is_between_splits(&self) -> bool {
        self.rows.iter().any(|row| row.split != self.rows[0].split)
    }

    /// Whether its rows have different labels: at least one of them is wrong, or the task cannot be decided by the text.
    pub fn is_contradictory(&self) -> bool {
        let mut labels = self.rows.iter().filter_map(|row| row.label.as_ref());
        let first = labels.next();
        labels.any(|label| Some(label) != first)
    }
}

impl NearDuplicates {
    /// The rows of a split that may go: of each group all but the first row, which may be in an earlier split. Feeds
    /// `data.drop_examples(…)` and `run.drop_examples(…)`.
    pub fn surplus(&self, split: &str) -> Vec<usize> {
        let groups = self.groups.iter();
        of_split(split, groups.flat_map(|group| group.rows.iter().skip(1)))
    }

    /// The rows of a split of which another split has a near-duplicate: what leaked.
    pub fn shared(&self, split: &str) -> Vec<usize> {
        let groups = self.groups.iter().filter(|it| it.is_between_splits());
        of_split(split, groups.flat_map(|group| &group.rows))
    }

    /// Groups with rows of several splits: what a model was trained on and is measured with.
    pub fn between_splits(&self) -> Vec<&DuplicateGroup> {
        self.groups
            .iter()
            .filter(|group| group.is_between_splits())
            .collect()
    }

    /// Groups whose rows have different labels.
    pub fn contradictory(&self) -> Vec<&DuplicateGroup> {
        self.groups
            .iter()
            .filter(|group| group.is_contradictory())
            .collect()
    }
}

/// The numbers of these rows in a split, in their order.
fn of_split<'a>(split: &str, rows: impl Iterator<Item = &'a DuplicateRow>) -> Vec<usize> {
    let own = rows.filter(|row| row.split == split);
    let mut rows: Vec<usize> = own.map(|row| row.row).collect();
    rows.sort_unstable();
    rows
}

/// Near-duplicates within each of these splits and between them: `near_duplicates(&[("train", &train), ("dev", &dev)])?`.
///
/// Upper and lower case, blanks and signs do not count. Two texts are near-duplicates if at least 0.7 of their runs of three
/// characters are common to both; the time is linear in the rows. Rows of numbers have no text and are left out.
///
/// # Errors
/// SC0103 for no split and for two splits with the same name.
pub fn near_duplicates(splits: &[(&str, &Dataset)]) -> Result<NearDuplicates> {
    above("near_duplicates", splits, SIMILARITY)
}

/// The same with another lowest similarity, 0 to 1.
pub(crate) fn above(
    call: &str,
    splits: &[(&str, &Dataset)],
    threshold: f64,
) -> Result<NearDuplicates> {
    let mut names = HashSet::new();
    let twice = splits.iter().find(|(name, _)| !names.insert(*name));
    let given = match twice {
        Some((name, _)) => Some(format!("{name:?} twice")),
        None => splits.is_empty().then(|| "none".to_owned()),
    };
    if let Some(given) = given {
        let expects = "at least one split, each with a name of its own".to_owned();
        return Err(Box::new(problem::bad_value(call, "splits", given, expects)));
    }
    let rows = splits.iter().enumerate().flat_map(|(split, (_, data))| {
        let examples = data.examples.iter().enumerate();
        let texts = examples.filter(|(_, example)| example.features.is_empty());
        texts.map(move |(row, _)| (split, row))
    });
    let rows: Vec<(usize, usize)> = rows.collect();
    let pieces: Vec<Vec<u64>> = rows
        .par_iter()
        .map(|&(split, row)| pieces(&normalized(&splits[split].1.examples[row])))
        .collect();
    let mut groups = Groups::new(rows.len());
    let unique = join_equal(&pieces, &mut groups);
    join_similar(&pieces, &unique, threshold, &mut groups);
    let row_of = |&at: &usize| {
        let (split, row) = rows[at];
        let example = &splits[split].1.examples[row];
        DuplicateRow {
            split: splits[split].0.to_owned(),
            row,
            text: example.texts(),
            label: example.label_name.as_deref().map(str::to_owned),
        }
    };
    let mut found: Vec<DuplicateGroup> = groups
        .of_several()
        .into_iter()
        .map(|(members, similarity)| DuplicateGroup {
            rows: members.iter().map(row_of).collect(),
            similarity,
        })
        .collect();
    found.sort_by(|a, b| {
        let by_split = b.is_between_splits().cmp(&a.is_between_splits());
        by_split.then(b.similarity.total_cmp(&a.similarity))
    });
    let sizes = splits
        .iter()
        .map(|(name, data)| ((*name).to_owned(), data.len()));
    Ok(NearDuplicates {
        groups: found,
        splits: sizes.collect(),
        threshold,
    })
}

/// The hashes of the runs of three characters, sorted, each once. A shorter text is one piece.
fn pieces(text: &str) -> Vec<u64> {
    let characters: Vec<char> = text.chars().collect();
    let hash = |piece: &[char]| {
        let whole = piece
            .iter()
            .fold(0_u64, |sum, &c| random::mix(sum ^ u64::from(u32::from(c))));
        random::mix(whole)
    };
    let mut pieces: Vec<u64> = match characters.len() {
        0..=PIECE_CHARACTERS => vec![hash(&characters)],
        _ => characters.windows(PIECE_CHARACTERS).map(hash).collect(),
    };
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// The similarity of two sorted sets.
fn similarity(a: &[u64], b: &[u64]) -> f64 {
    let (mut at, mut other, mut common) = (0, 0, 0_usize);
    while at < a.len() && other < b.len() {
        match a[at].cmp(&b[other]) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => other += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                at += 1;
                other += 1;
            }
        }
    }
    let all = a.len() + b.len() - common;
    common as f64 / all.max(1) as f64
}

/// Joins rows with the same pieces; returns the first of each.
fn join_equal(pieces: &[Vec<u64>], groups: &mut Groups) -> Vec<usize> {
    let mut firsts: HashMap<&[u64], usize> = HashMap::new();
    let mut unique = Vec::new();
    for (at, own) in pieces.iter().enumerate() {
        match firsts.get(own.as_slice()) {
            Some(&first) => groups.join(first, at, 1.0),
            None => {
                firsts.insert(own, at);
                unique.push(at);
            }
        }
    }
    unique
}

/// Joins rows that agree in a band and are similar enough.
fn join_similar(pieces: &[Vec<u64>], unique: &[usize], threshold: f64, groups: &mut Groups) {
    let signatures: Vec<[u64; BANDS]> = unique.par_iter().map(|&at| bands(&pieces[at])).collect();
    let mut compared = HashSet::new();
    for band in 0..BANDS {
        let mut alike: HashMap<u64, Vec<usize>> = HashMap::new();
        for (signature, &at) in signatures.iter().zip(unique) {
            let others = alike.entry(signature[band]).or_default();
            for &other in others.iter().rev().take(MAX_COMPARED) {
                if !compared.insert((other, at)) {
                    continue;
                }
                let similarity = similarity(&pieces[other], &pieces[at]);
                if similarity >= threshold {
                    groups.join(other, at, similarity);
                }
            }
            others.push(at);
        }
    }
}

/// For each band one number made of the smallest hashes of its functions.
fn bands(pieces: &[u64]) -> [u64; BANDS] {
    std::array::from_fn(|band| {
        (0..HASHES_OF_A_BAND).fold(0_u64, |sum, function| {
            let seed = random::mix((band * HASHES_OF_A_BAND + function + 1) as u64);
            let smallest = pieces.iter().map(|piece| random::mix(piece ^ seed)).min();
            random::mix(sum ^ smallest.unwrap_or(0))
        })
    })
}

/// Disjoint sets (Galler and Fischer 1964), each with the lowest similarity that joined it.
struct Groups {
    parent: Vec<usize>,
    similarity: Vec<f64>,
}

impl Groups {
    fn new(count: usize) -> Self {
        Self {
            parent: (0..count).collect(),
            similarity: vec![1.0; count],
        }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize, similarity: f64) {
        let (a, b) = (self.root(a), self.root(b));
        // The first row stays the root.
        let (first, other) = (a.min(b), a.max(b));
        let lowest = similarity
            .min(self.similarity[first])
            .min(self.similarity[other]);
        self.similarity[first] = lowest;
        self.parent[other] = first;
    }

    /// The sets of at least two members, with their similarity.
    fn of_several(&mut self) -> Vec<(Vec<usize>, f64)> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.parent.len() {
            let root = self.root(at);
            members.entry(root).or_default().push(at);
        }
        let several = members.into_iter().filter(|(_, rows)| rows.len() > 1);
        several
            .map(|(root, rows)| (rows, self.similarity[root]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stratoscope_data::debian_sections;

    use super::*;

    #[test]
    fn planted_duplicates_are_found_in_both_splits() {
        let (all, _) = debian_sections().expect("it ships with the crate");
        let train = all.dedupe().take(600);
        let before = near_duplicates(&[("train", &train)]).expect("a split");
        // Other case, signs and blanks; one letter more; another order of two words.
        let mut texts: Vec<String> = train.examples.iter().map(|it| it.text.clone()).collect();
        let shouted = format!("  {}!!", texts[3].to_uppercase().replace(' ', " - "));
        let longer = format!("{}s", texts[40]);
        texts.push(shouted.clone());
        texts.push(longer);
        let faulty = Dataset::from_texts(texts.clone());
        let dev = Dataset::from_texts([shouted, "a text like no other text of these".to_owned()]);
        let found = near_duplicates(&[("train", &faulty), ("dev", &dev)]).expect("two splits");
        let surplus = found.surplus("train");
        assert!(
            surplus.contains(&600) && surplus.contains(&601),
            "{surplus:?}"
        );
        assert_eq!(surplus.len(), before.surplus("train").len() + 2);
        assert_eq!(found.surplus("dev"), [0]);
        assert_eq!(found.shared("train"), [3, 600]);
        let between = found.between_splits();
        assert_eq!(between.len(), 1);
        assert_eq!((between[0].similarity, between[0].rows.len()), (1.0, 3));
        assert_eq!(found.groups[0], *between[0], "what leaks is first");
    }

    #[test]
    fn groups_with_different_labels_are_named() {
        let data = Dataset::from_rows(
            ["a chess game", "A chess game!", "a mail server"],
            ["games", "net", "net"],
        );
        let data = data.expect("rows");
        let found = near_duplicates(&[("train", &data)]).expect("a split");
        assert_eq!(found.contradictory().len(), 1);
        assert_eq!(found.surplus("train"), [1]);
        assert!(found.between_splits().is_empty());
    }

    #[test]
    fn splits_have_names_of_their_own() {
        let data = Dataset::from_texts(["a"]);
        for splits in [&[][..], &[("a", &data), ("a", &data)][..]] {
            assert_eq!(near_duplicates(splits).expect_err("names").code, "SC0103");
        }
        assert!(
            near_duplicates(&[("a", &data.take(0))])
                .expect("a split")
                .groups
                .is_empty()
        );
    }

    #[test]
    fn very_many_equal_rows_are_compared_once() {
        let data = Dataset::from_texts((0..20_000).map(|row| format!("row {}", row % 2)));
        let found = near_duplicates(&[("train", &data)]).expect("a split");
        let rows: usize = found.groups.iter().map(|group| group.rows.len()).sum();
        assert_eq!(rows, 20_000);
    }

    proptest! {
        /// Where all pairs are compared, the same groups are found, as far as pairs are not at the edge.
        #[test]
        fn candidates_are_those_of_all_pairs(seeds in prop::collection::vec((0_usize..12, 0_usize..3), 2..30)) {
            let texts = seeds.iter().map(|(text, change)| {
                let base: String = (0..40).map(|at| char::from(b'a' + (random::mix((text * 100 + at) as u64) % 26) as u8)).collect();
                format!("{}{base}", ["", "x", "yz"][*change])
            });
            let data = Dataset::from_texts(texts);
            let found = near_duplicates(&[("train", &data)]).expect("a split");
            let mut expected = Groups::new(data.len());
            let sets: Vec<Vec<u64>> = data.examples.iter().map(|it| pieces(&it.text)).collect();
            for a in 0..sets.len() {
                for b in a + 1..sets.len() {
                    if similarity(&sets[a], &sets[b]) >= SIMILARITY {
                        expected.join(a, b, 0.0);
                    }
                }
            }
            let mut own: Vec<Vec<usize>> = found.groups.iter().map(|group| group.rows.iter().map(|row| row.row).collect()).collect();
            own.sort();
            let all: Vec<Vec<usize>> = expected.of_several().into_iter().map(|(rows, _)| rows).collect();
            prop_assert_eq!(own, all);
        }
    }
}
