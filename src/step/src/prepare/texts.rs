//! What texts and their tokens tell before the first step: empty ones, words that the vocabulary lacks,
//! pairs in one segment, batches of padding. SC0403, SC0405, SC0409, SC0410.

use stratoscope_data::{Dataset, Encoded, Example, Split, Targets, Tokenize, length_of};
use stratoscope_diagnostics::rules::{
    EmptyTexts, PaddingWaste, PairWithoutSegments, TokenOutOfRange, UnknownTokens,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_arguments::FitPlan;
use stratoscope_diagnostics::problem;
use stratoscope_network::Files;

/// What separates two texts in BERT's vocabularies.
const SEPARATOR: &str = "[SEP]";
/// Rows and words that are looked at more closely.
const SHOWN: usize = 3;

/// What is found in texts and their tokens, which come at once or some at a time.
pub(super) struct Found {
    empty: EmptyTexts,
    unknown: UnknownTokens,
    /// Tokens that the model adds to each text: they are known, and would dilute short ones.
    special: usize,
    /// Rows whose texts are one segment, and whether that was written so.
    in_one_segment: (usize, bool),
    first_in_one_segment: Option<(usize, String)>,
}

impl Found {
    /// Nothing yet.
    pub(super) fn new(source: &str, call: &str) -> Self {
        let (source, call) = (source.to_owned(), call.to_owned());
        Self {
            empty: EmptyTexts {
                first: Vec::new(),
                rows: 0,
                total: 0,
                source: source.clone(),
                call: call.clone(),
            },
            unknown: UnknownTokens {
                unknown: 0,
                tokens: 0,
                rows: 0,
                total: 0,
                first: Vec::new(),
                in_lower_case: (0, 0),
                source,
                call,
            },
            special: 0,
            in_one_segment: (0, false),
            first_in_one_segment: None,
        }
    }

    /// Looks at texts.
    pub(super) fn add_texts(&mut self, data: &Dataset) {
        let is_blank = |text: &str| text.trim().is_empty();
        let is_empty = |example: &&Example| {
            let of_text = example.features.is_empty();
            of_text && (is_blank(&example.text) || example.pair.as_deref().is_some_and(is_blank))
        };
        let rule = &mut self.empty;
        rule.total += data.len();
        for example in data.examples.iter().filter(is_empty) {
            rule.rows += 1;
            if rule.first.len() < 5 {
                rule.first.push((example.row, example.line));
            }
        }
    }

    /// Looks at their tokens.
    pub(super) fn add_tokens(
        &mut self,
        data: &Dataset,
        encoded: &Encoded,
        tokenizer: &dyn Tokenize,
    ) {
        self.add_unknown(data, encoded, tokenizer);
        self.add_segments(data, encoded, tokenizer);
    }

    fn add_unknown(&mut self, data: &Dataset, encoded: &Encoded, tokenizer: &dyn Tokenize) {
        let (rule, report) = (&mut self.unknown, encoded.report());
        rule.unknown += report.unknown_tokens;
        rule.tokens += report.tokens;
        rule.total += report.rows;
        let special = data.examples.iter().map(|example| match example.pair {
            Some(_) => 3,
            None => 2,
        });
        self.special += special.sum::<usize>();
        let unknown = tokenizer.unk_id();
        for (at, example) in data.examples.iter().enumerate() {
            let row = encoded.get(at).filter(|row| row.ids.contains(&unknown));
            let Some(row) = row else { continue };
            rule.rows += 1;
            if rule.rows > SHOWN {
                continue;
            }
            let tokens = tokenizer.tokens(&row.ids).join(" ");
            rule.first.push((example.row, example.text.clone(), tokens));
            for word in example.text.split_whitespace() {
                let is_unknown = |word: &str| {
                    let long_enough = word.len() + 2;
                    let encoded = tokenizer.encode(word, None, long_enough);
                    encoded.is_ok_and(|encoded| encoded.ids.contains(&unknown))
                };
                if is_unknown(word) {
                    rule.in_lower_case.1 += 1;
                    let lower = word.to_lowercase();
                    rule.in_lower_case.0 += usize::from(lower != word && !is_unknown(&lower));
                }
            }
        }
    }

    fn add_segments(&mut self, data: &Dataset, encoded: &Encoded, tokenizer: &dyn Tokenize) {
        for (at, example) in data.examples.iter().enumerate() {
            let in_text = example.pair.is_none() && example.text.contains(SEPARATOR);
            if !in_text && (example.pair.is_none() || !tokenizer.has_segments()) {
                continue;
            }
            let Some(row) = encoded.get(at) else { continue };
            // Each text is a sequence of its own.
            if matches!(row.targets, Targets::Apart(_)) {
                continue;
            }
            // A pair that was cut in its first text has no second one.
            let is_one = row.type_ids.iter().all(|&segment| segment == 0) && row.truncated == 0;
            let tokens = || tokenizer.tokens(&row.ids);
            let separators = || tokens().iter().filter(|it| *it == SEPARATOR).count();
            if is_one && separators() > 1 {
                self.in_one_segment.0 += 1;
                self.in_one_segment.1 |= in_text;
                let first = || (example.row, tokens().join(" "));
                self.first_in_one_segment.get_or_insert_with(first);
            }
        }
    }

    /// SC0409.
    pub(super) fn empty(&self) -> Option<Diagnostic> {
        (self.empty.rows > 0).then(|| self.empty.diagnostic())
    }

    /// SC0403.
    pub(super) fn unknown(&mut self) -> Option<Diagnostic> {
        let rule = &mut self.unknown;
        rule.tokens = rule.tokens.saturating_sub(self.special);
        UnknownTokens::are_many(rule.unknown, rule.tokens).then(|| rule.diagnostic())
    }

    /// SC0405.
    pub(super) fn one_segment(&self) -> Option<Diagnostic> {
        let (rows, written) = self.in_one_segment;
        let rule = PairWithoutSegments {
            rows,
            total: self.empty.total,
            written,
            first: self.first_in_one_segment.clone()?,
            source: self.empty.source.clone(),
            call: self.empty.call.clone(),
        };
        Some(rule.diagnostic())
    }
}

/// Every token must have a word embedding: with another checkpoint's tokenizer some have none.
///
/// # Errors
/// SC0402 for the first one that has none.
pub fn in_vocabulary(
    files: &dyn Files,
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

/// SC0103 for numbers, where batches are to have examples of similar length.
///
/// # Errors
/// That.
pub(super) fn has_lengths(train: &Split, plan: &FitPlan<'_>) -> Result<()> {
    if !plan.group_by_length || train.report().tokens > 0 {
        return Ok(());
    }
    let expects = "texts: examples of numbers have no length";
    let finding = problem::bad_value("fit", "group_by_length", true, expects);
    Err(Box::new(finding.fix("leave `group_by_length` out")))
}

/// SC0410, by the batches of the first epoch; of a stream, by those that are expected of its lengths.
pub(super) fn padding(train: &Split, plan: &FitPlan<'_>) -> Option<Diagnostic> {
    let (random, size) = (plan.shuffle.then_some((plan.seed, 0)), plan.batch_size);
    let by_length = || train.by_length(size).positions(size, random);
    let positions = match plan.group_by_length {
        true => by_length()?,
        false => train.positions(size, random)?,
    };
    let report = train.report();
    let lengths = train.lengths();
    let rule = PaddingWaste {
        positions,
        tokens: report.tokens,
        median: report.median,
        longest: lengths.len().saturating_sub(1),
        most: length_of(&lengths, report.rows * 95 / 100),
        grouped: None,
        call: "fit".to_owned(),
    };
    // Another order of all examples is computed where it is to be named.
    let could_group = rule.applies() && random.is_some() && !plan.group_by_length;
    let rule = PaddingWaste {
        grouped: could_group.then(by_length).flatten(),
        ..rule
    };
    rule.check()
}

/// How much of an epoch is padding with `group_by_length` and would be without, for the table of the run.
pub(super) fn padding_in_words(train: &Split, plan: &FitPlan<'_>) -> Option<String> {
    let (random, size) = (Some((plan.seed, 0)), plan.batch_size);
    let share = |train: &Split| {
        let positions = train.positions(size, random)?;
        let tokens = train.passes() * train.report().tokens;
        let padding = positions.saturating_sub(tokens) as f64 / positions.max(1) as f64;
        Some(format!("{:.1} %", 100.0 * padding))
    };
    let (with, without) = (share(&train.by_length(size))?, share(train)?);
    Some(format!(
        "examples grouped by length: {with} of the positions are padding, {without} without `group_by_length`"
    ))
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Encoding;

    use super::*;
    use stratoscope_arguments::FitArgs;

    /// Words of lower-case letters are known, `[SEP]` separates; with `segments` pairs have two.
    struct Words {
        segments: bool,
    }

    const TOKENS: [&str; 4] = ["[CLS]", "[SEP]", "[UNK]", "word"];

    impl Tokenize for Words {
        fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
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
            Ok(Encoding {
                ids,
                type_ids,
                truncated,
            })
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

    fn found(data: &Dataset, encoded: &Encoded, tokenizer: &dyn Tokenize) -> Found {
        let mut found = Found::new(&data.source, "fit");
        found.add_texts(data);
        found.add_tokens(data, encoded, tokenizer);
        found
    }

    fn shown(finding: &Option<Diagnostic>) -> String {
        format!("{finding:?}")
    }

    #[test]
    fn empty_texts_are_counted_in_both_columns() {
        let check = |data: Dataset, expected: Option<&str>| {
            let mut found = Found::new(&data.source, "fit");
            found.add_texts(&data);
            let finding = found.empty().map(|finding| finding.message);
            assert_eq!(finding.as_deref(), expected);
        };
        check(
            Dataset::from_texts(["a", " \t", "b"]),
            Some("the text of row 1 is empty"),
        );
        let pairs = [("a", ""), ("", "b"), ("a", "b")];
        check(Dataset::from_pairs(pairs), Some("2 of 3 texts are empty"));
        check(Dataset::from_texts(["a", "b"]), None);
        check(Dataset::from_features([[1.0]]).expect("a row"), None);
    }

    #[test]
    fn a_flood_of_unknown_words_is_shown_with_its_tokens() {
        let check = |texts: &[&str], expected: &[&str]| {
            let data = Dataset::from_texts(texts.iter().copied());
            let finding = found(&data, &encoded(&data), &WORDS).unknown();
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
        let finding = found(&texts, &encoded(&texts), &WORDS).one_segment();
        assert!(shown(&finding).contains("from_pair_rows"), "{finding:?}");
        assert!(shown(&finding).contains("1 of 2"), "{finding:?}");
        let pairs = Dataset::from_pairs([("a b", "c"), ("d", "e")]);
        assert!(
            found(&pairs, &encoded(&pairs), &WORDS)
                .one_segment()
                .is_none()
        );
        let other = Words { segments: false };
        let of_one = pairs.tokenize(&other, 64).expect("it can be tokenized");
        let finding = found(&pairs, &of_one, &other).one_segment();
        assert!(shown(&finding).contains("2 of 2") && !shown(&finding).contains("from_pair_rows"));
        let plain = Dataset::from_texts(["a b", "c"]);
        assert!(
            found(&plain, &encoded(&plain), &other)
                .one_segment()
                .is_none()
        );
        // Cut within the first text, a pair has one segment for another reason.
        let cut = pairs.tokenize(&WORDS, 2).expect("it can be tokenized");
        assert!(found(&pairs, &cut, &WORDS).one_segment().is_none());
    }

    #[test]
    fn padding_is_reported_only_where_it_is_most_of_the_work() {
        let long = vec!["word"; 60].join(" ");
        let texts = |short: usize| {
            let texts = std::iter::once(long.clone());
            Dataset::from_texts(texts.chain(vec!["word".to_owned(); short]))
        };
        let check = |data: &Dataset, args: FitArgs<'_>| {
            let train = Split::Held(encoded(data));
            padding(&train, &args.resolve().expect("valid arguments"))
        };
        let args = |size: usize| FitArgs::new().batch_size(size);
        let finding = check(&texts(31), args(32));
        // 32 × 62 positions for 62 + 31 × 3 tokens.
        assert!(shown(&finding).contains("12.8×"), "{finding:?}");
        assert!(
            shown(&finding).contains("1984 for 155 tokens"),
            "{finding:?}"
        );
        let words = "by_length";
        assert!(!shown(&finding).contains(words), "one batch: {finding:?}");
        assert!(check(&texts(31), args(1)).is_none());
        assert!(check(&texts(2), args(32).shuffle(false)).is_none());
        let numbers = Dataset::from_features([[1.0], [2.0]]).expect("two rows");
        assert!(check(&numbers, args(2)).is_none());
    }

    #[test]
    fn grouping_is_named_where_it_saves_padding() {
        let long = vec!["word"; 60].join(" ");
        let texts = (0..512).map(|row| match row % 16 {
            0 => long.as_str(),
            _ => "word",
        });
        let data = Dataset::from_texts(texts);
        let train = Split::Held(encoded(&data));
        let plan = |args: FitArgs<'static>| args.batch_size(32).resolve().expect("valid arguments");
        let finding = padding(&train, &plan(FitArgs::new()));
        // 14 of 16 random batches have a long row: 14 · 32 · 62 and 2 · 32 · 3 positions for 32 · 62 and 480 · 3 tokens.
        assert!(shown(&finding).contains("8.2× more"), "{finding:?}");
        let fix = "`group_by_length = true` puts rows of similar length into a batch: 1.";
        assert!(shown(&finding).contains(fix), "{finding:?}");
        let in_order = padding(&train, &plan(FitArgs::new().shuffle(false)));
        assert!(
            !shown(&in_order).contains("group_by_length"),
            "{in_order:?}"
        );
        let grouped = plan(FitArgs::new().group_by_length(true));
        assert!(padding(&train, &grouped).is_none());
        let words = padding_in_words(&train, &grouped).expect("lengths");
        assert!(words.contains("% without"), "{words}");
        assert!(has_lengths(&train, &grouped).is_ok());
        let numbers = Dataset::from_features([[1.0], [2.0]]).expect("two rows");
        let refused = has_lengths(&Split::Held(encoded(&numbers)), &grouped);
        assert_eq!(refused.expect_err("no tokens").code, "SC0103");
    }
}
