//! What texts and their tokens tell before the first step: empty ones, words that the vocabulary lacks,
//! pairs in one segment, batches of padding. SC0403, SC0405, SC0409, SC0410.

use stratoscope_data::{Dataset, Encoded, Example, Tokenize};
use stratoscope_diagnostics::rules::{
    EmptyTexts, PaddingWaste, PairWithoutSegments, TokenOutOfRange, UnknownTokens,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use crate::network::Files;

/// What separates two texts in BERT's vocabularies.
const SEPARATOR: &str = "[SEP]";
/// Rows and words that are looked at more closely.
const SHOWN: usize = 3;

/// SC0409.
pub(super) fn empty(data: &Dataset, call: &str) -> Option<Diagnostic> {
    let is_blank = |text: &str| text.trim().is_empty();
    let is_empty = |example: &&Example| {
        let of_text = example.features.is_empty();
        of_text && (is_blank(&example.text) || example.pair.as_deref().is_some_and(is_blank))
    };
    let found: Vec<&Example> = data.examples.iter().filter(is_empty).collect();
    let first = found.iter().take(5);
    let rule = EmptyTexts {
        first: first.map(|example| (example.row, example.line)).collect(),
        rows: found.len(),
        total: data.len(),
        source: data.source.clone(),
        call: call.to_owned(),
    };
    (!found.is_empty()).then(|| rule.diagnostic())
}

/// SC0403.
pub(super) fn unknown(
    data: &Dataset,
    encoded: &Encoded,
    tokenizer: &dyn Tokenize,
    call: &str,
) -> Option<Diagnostic> {
    let report = encoded.report();
    // What the model adds to each text is known, and would dilute short ones.
    let special = data.examples.iter().map(|example| match example.pair {
        Some(_) => 3,
        None => 2,
    });
    let tokens = report.tokens.saturating_sub(special.sum());
    if !UnknownTokens::are_many(report.unknown_tokens, tokens) {
        return None;
    }
    let unknown = tokenizer.unk_id();
    let rows: Vec<usize> = (0..encoded.len())
        .filter(|&at| {
            encoded
                .get(at)
                .is_some_and(|row| row.ids.contains(&unknown))
        })
        .collect();
    let mut first = Vec::new();
    let mut in_lower_case = (0, 0);
    for &at in rows.iter().take(SHOWN) {
        let (Some(example), Some(row)) = (data.examples.get(at), encoded.get(at)) else {
            continue;
        };
        let tokens = tokenizer.tokens(&row.ids).join(" ");
        first.push((example.row, example.text.clone(), tokens));
        for word in example.text.split_whitespace() {
            let is_unknown = |word: &str| {
                let long_enough = word.len() + 2;
                tokenizer
                    .encode(word, None, long_enough)
                    .ids
                    .contains(&unknown)
            };
            if is_unknown(word) {
                in_lower_case.1 += 1;
                let lower = word.to_lowercase();
                in_lower_case.0 += usize::from(lower != word && !is_unknown(&lower));
            }
        }
    }
    let rule = UnknownTokens {
        unknown: report.unknown_tokens,
        tokens,
        rows: rows.len(),
        total: report.rows,
        first,
        in_lower_case,
        source: data.source.clone(),
        call: call.to_owned(),
    };
    Some(rule.diagnostic())
}

/// Every token must have a word embedding: with another checkpoint's tokenizer some have none.
///
/// # Errors
/// SC0402 for the first one that has none.
pub(crate) fn in_vocabulary(
    files: &impl Files,
    data: &Dataset,
    encoded: &Encoded,
    call: &str,
) -> Result<()> {
    // A tokenizer without such ids cannot put one out.
    let Some(vocabulary) = files
        .vocabulary()
        .filter(|&size| files.tokenizer().vocab_size() > size)
    else {
        return Ok(());
    };
    for row in (0..encoded.len()).filter_map(|at| encoded.get(at)) {
        let (ids, Some(example)) = (&row.ids, data.examples.get(row.index)) else {
            continue;
        };
        let outside = ids.iter().find(|&&id| id as usize >= vocabulary);
        if let Some(&id) = outside {
            let rule = TokenOutOfRange {
                id,
                token: files.tokenizer().tokens(&[id]).pop(),
                vocabulary,
                row: example.row,
                call: call.to_owned(),
            };
            return Err(rule.error());
        }
    }
    Ok(())
}

/// SC0405.
pub(super) fn one_segment(
    data: &Dataset,
    encoded: &Encoded,
    tokenizer: &dyn Tokenize,
    call: &str,
) -> Option<Diagnostic> {
    let mut found = Vec::new();
    let mut written = false;
    for (at, example) in data.examples.iter().enumerate() {
        let in_text = example.pair.is_none() && example.text.contains(SEPARATOR);
        if !in_text && (example.pair.is_none() || !tokenizer.has_segments()) {
            continue;
        }
        let Some(row) = encoded.get(at) else { continue };
        // A pair that was cut in its first text has no second one.
        let is_one = row.type_ids.iter().all(|&segment| segment == 0) && row.truncated == 0;
        let separators = || {
            let tokens = tokenizer.tokens(&row.ids);
            tokens.iter().filter(|token| *token == SEPARATOR).count()
        };
        if is_one && separators() > 1 {
            written |= in_text;
            found.push(at);
        }
    }
    let first = *found.first()?;
    let tokens = tokenizer.tokens(&encoded.get(first)?.ids).join(" ");
    let rule = PairWithoutSegments {
        rows: found.len(),
        total: data.len(),
        written,
        first: (data.examples.get(first)?.row, tokens),
        source: data.source.clone(),
        call: call.to_owned(),
    };
    Some(rule.diagnostic())
}

/// SC0410, by the batches of the first epoch.
pub(super) fn padding(
    encoded: &Encoded,
    batch_size: usize,
    seed: Option<u64>,
    call: &str,
) -> Option<Diagnostic> {
    let order = match seed {
        Some(seed) => encoded.shuffle(seed, 0),
        None => encoded.clone(),
    };
    let lengths: Vec<usize> = (0..order.len())
        .filter_map(|at| Some(order.get(at)?.ids.len()))
        .collect();
    let of_batch = |batch: &[usize]| batch.len() * batch.iter().max().copied().unwrap_or(0);
    let positions: usize = lengths.chunks(batch_size.max(1)).map(of_batch).sum();
    let report = encoded.report();
    let mut sorted = lengths;
    sorted.sort_unstable();
    let rule = PaddingWaste {
        positions,
        tokens: report.tokens,
        median: report.median,
        longest: sorted.last().copied().unwrap_or(0),
        most: sorted.get(sorted.len() * 95 / 100).copied().unwrap_or(0),
        call: call.to_owned(),
    };
    rule.check()
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Encoding;

    use super::*;

    /// Words of lower-case letters are known, `[SEP]` separates; with `segments` pairs have two.
    struct Words {
        segments: bool,
    }

    const TOKENS: [&str; 4] = ["[CLS]", "[SEP]", "[UNK]", "word"];

    impl Tokenize for Words {
        fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Encoding {
            let id = |word: &str| match word {
                SEPARATOR => 1,
                word if word.chars().all(|letter| letter.is_ascii_lowercase()) => 3,
                _ => 2,
            };
            let mut ids = vec![0];
            ids.extend(text.split_whitespace().map(id));
            ids.push(1);
            let mut type_ids = vec![0; ids.len()];
            if let Some(pair) = pair {
                ids.extend(pair.split_whitespace().map(id));
                ids.push(1);
                type_ids.resize(ids.len(), u32::from(self.segments));
            }
            let truncated = ids.len().saturating_sub(max_length);
            ids.truncate(max_length);
            type_ids.truncate(max_length);
            Encoding {
                ids,
                type_ids,
                truncated,
            }
        }

        fn decode(&self, ids: &[u32]) -> String {
            self.tokens(ids).join(" ")
        }

        fn tokens(&self, ids: &[u32]) -> Vec<String> {
            ids.iter()
                .map(|&id| TOKENS[id as usize].to_owned())
                .collect()
        }

        fn pad_id(&self) -> u32 {
            0
        }

        fn unk_id(&self) -> u32 {
            2
        }

        fn vocab_size(&self) -> usize {
            TOKENS.len()
        }
    }

    const WORDS: Words = Words { segments: true };

    fn encoded(data: &Dataset) -> Encoded {
        data.tokenize(&WORDS, 64).expect("it can be tokenized")
    }

    fn shown(finding: &Option<Diagnostic>) -> String {
        format!("{finding:?}")
    }

    #[test]
    fn empty_texts_are_counted_in_both_columns() {
        let check = |data: Dataset, expected: Option<&str>| {
            let finding = empty(&data, "fit").map(|finding| finding.message);
            assert_eq!(finding.as_deref(), expected);
        };
        check(
            Dataset::from_texts(["a", " \t", "b"]),
            Some("row 1 is empty"),
        );
        let pairs = [("a", ""), ("", "b"), ("a", "b")];
        check(Dataset::from_pairs(pairs), Some("2 of 3 rows are empty"));
        check(Dataset::from_texts(["a", "b"]), None);
        check(Dataset::from_features([[1.0]]).expect("a row"), None);
    }

    #[test]
    fn a_flood_of_unknown_words_is_shown_with_its_tokens() {
        let check = |texts: &[&str], expected: &[&str]| {
            let data = Dataset::from_texts(texts.iter().copied());
            let finding = unknown(&data, &encoded(&data), &WORDS, "fit");
            assert_eq!(finding.is_some(), !expected.is_empty(), "{texts:?}");
            for words in expected {
                assert!(shown(&finding).contains(words), "{words}: {finding:?}");
            }
        };
        let cased = ["A Chess Game", "A Mail Server"];
        let seen = [
            "100 % [UNK]",
            "[CLS] [UNK] [UNK] [UNK] [SEP]",
            "6 of 6 words",
            "uncased",
        ];
        check(&cased, &seen);
        check(
            &["1 2 3 word", "word"],
            &["60 % [UNK]", "3 of 5 tokens", "1 of 2"],
        );
        check(&["a chess game", "a mail server"], &[]);
        // One odd word is none.
        check(&["1", "a b c d e f"], &[]);
        let long = vec!["word"; 100].join(" ") + " 1 2 3";
        check(&[&long], &[]);
    }

    #[test]
    fn a_written_separator_is_no_pair() {
        let texts = Dataset::from_texts(["a b [SEP] c", "d"]);
        let finding = one_segment(&texts, &encoded(&texts), &WORDS, "fit");
        assert!(shown(&finding).contains("from_pair_rows"), "{finding:?}");
        assert!(shown(&finding).contains("1 of 2"), "{finding:?}");
        let pairs = Dataset::from_pairs([("a b", "c"), ("d", "e")]);
        assert!(one_segment(&pairs, &encoded(&pairs), &WORDS, "fit").is_none());
        let other = Words { segments: false };
        let of_one = pairs.tokenize(&other, 64).expect("it can be tokenized");
        let finding = one_segment(&pairs, &of_one, &other, "fit");
        assert!(shown(&finding).contains("2 of 2") && !shown(&finding).contains("from_pair_rows"));
        let plain = Dataset::from_texts(["a b", "c"]);
        assert!(one_segment(&plain, &encoded(&plain), &other, "fit").is_none());
        // Cut within the first text, a pair has one segment for another reason.
        let cut = pairs.tokenize(&WORDS, 2).expect("it can be tokenized");
        assert!(one_segment(&pairs, &cut, &WORDS, "fit").is_none());
    }

    #[test]
    fn padding_is_reported_only_where_it_is_most_of_the_work() {
        let long = vec!["word"; 60].join(" ");
        let texts = |short: usize| {
            let texts = std::iter::once(long.clone());
            Dataset::from_texts(texts.chain(vec!["word".to_owned(); short]))
        };
        let finding = padding(&encoded(&texts(31)), 32, Some(0), "fit");
        // 32 × 62 positions for 62 + 31 × 3 tokens.
        assert!(shown(&finding).contains("12.8×"), "{finding:?}");
        assert!(
            shown(&finding).contains("1984 for 155 tokens"),
            "{finding:?}"
        );
        assert!(padding(&encoded(&texts(31)), 1, Some(0), "fit").is_none());
        assert!(padding(&encoded(&texts(2)), 32, None, "fit").is_none());
        let numbers = Dataset::from_features([[1.0], [2.0]]).expect("two rows");
        assert!(padding(&encoded(&numbers), 2, Some(0), "fit").is_none());
    }
}
