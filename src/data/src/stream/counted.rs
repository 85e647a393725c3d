//! [`Counted`]: what one pass over the tokens of a stream counts, of which none is kept.

use sha2::{Digest, Sha256};

use super::inputs::Inputs;
use super::order::Lengths;
use crate::encoded::{Encoded, Targets, TokenReport};
use crate::grouping;
use crate::split::{count_at, length_of};

/// What is counted of tokens that are not kept.
pub(super) struct Counted {
    report: TokenReport,
    lengths: Lengths,
    tags: Vec<usize>,
    /// Behind the last input of each row, where a row may have several.
    ends: Option<Vec<usize>>,
    rows: usize,
    hash: Sha256,
}

impl Counted {
    /// `in_windows`: a row may be several inputs.
    pub(super) fn new(max_length: usize, keeps_lengths: bool, in_windows: bool) -> Self {
        Self {
            report: TokenReport {
                rows: 0,
                tokens: 0,
                truncated_rows: 0,
                truncated_tokens: 0,
                longest: 0,
                median: 0,
                unknown_tokens: 0,
                max_length,
            },
            lengths: Lengths {
                counts: Vec::new(),
                of_rows: keeps_lengths.then(Vec::new),
            },
            tags: Vec::new(),
            ends: in_windows.then(Vec::new),
            rows: 0,
            hash: Sha256::new(),
        }
    }

    /// Some more rows, as their inputs.
    pub(super) fn add(&mut self, rows: usize, encoded: &Encoded) {
        self.rows += rows;
        let (all, own) = (&mut self.report, encoded.report());
        all.rows += own.rows;
        all.tokens += own.tokens;
        all.truncated_rows += own.truncated_rows;
        all.truncated_tokens += own.truncated_tokens;
        all.longest = all.longest.max(own.longest);
        all.unknown_tokens += own.unknown_tokens;
        for example in (0..encoded.len()).filter_map(|at| encoded.get(at)) {
            let length = example.ids.len();
            for sequence in example.sequences() {
                count_at(&mut self.lengths.counts, sequence.len());
            }
            if let Some(of_rows) = &mut self.lengths.of_rows {
                of_rows.push(grouping::key(example.positions()));
            }
            if let Some(ends) = &mut self.ends {
                let part = example.window.as_ref().map_or(0, |window| window.part);
                match ends.last_mut().filter(|_| part > 0) {
                    Some(end) => *end += 1,
                    None => ends.push(ends.last().map_or(1, |before| before + 1)),
                }
            }
            // The length keeps two lists from being taken for one.
            self.hash.update((length as u64).to_le_bytes());
            let words = example.ids.iter().chain(&example.type_ids);
            let words: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            self.hash.update(&words);
            self.hash.update(format!("{:?}", example.label));
            if example.weight != 1.0 {
                self.hash.update(example.weight.to_le_bytes());
            }
            self.hash.update(example.targets.in_checksum());
            if let Targets::Tokens(classes) = &example.targets {
                let classes = classes.iter().filter_map(|&it| usize::try_from(it).ok());
                classes.for_each(|class| count_at(&mut self.tags, class));
            }
        }
    }

    /// All that was counted.
    pub(super) fn finished(mut self, buffer: usize) -> Counts {
        self.report.median = length_of(&self.lengths.counts, self.report.rows / 2);
        let hash = self.hash.chain_update((buffer as u64).to_le_bytes());
        Counts {
            report: self.report,
            lengths: self.lengths,
            tags: self.tags,
            inputs: Inputs::new(self.rows, self.ends),
            fingerprint: hash.finalize().into(),
        }
    }
}

/// What was counted in a pass.
pub(super) struct Counts {
    pub(super) report: TokenReport,
    pub(super) lengths: Lengths,
    /// How many tokens have each tag, where words have tags.
    pub(super) tags: Vec<usize>,
    /// Which inputs the rows are.
    pub(super) inputs: Inputs,
    /// A SHA-256 of all tokens and labels in their order, and of the size of the buffer.
    pub(super) fingerprint: [u8; 32],
}

/// The positions that batches of randomly chosen rows are expected to have, where so many rows have each length: the
/// longest of n rows is at most l with the n-th power of the share of rows that are.
pub(super) fn expected_positions(lengths: &[usize], batch_size: usize) -> usize {
    let rows: usize = lengths.iter().sum();
    let longest_of = |size: usize| -> f64 {
        let size = i32::try_from(size).unwrap_or(i32::MAX);
        let (mut up_to, mut longest) = (0, 0.0);
        for of_length in lengths {
            longest += 1.0 - (up_to as f64 / rows.max(1) as f64).powi(size);
            up_to += of_length;
        }
        // Length 0 has been counted as one.
        longest - 1.0
    };
    let (batches, rest) = (rows / batch_size, rows % batch_size);
    let full = (batches * batch_size) as f64 * longest_of(batch_size);
    (full + rest as f64 * longest_of(rest)).round() as usize
}
