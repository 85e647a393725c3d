//! Multiple choice: a prompt and texts of which one goes with it. Each choice is read beside the prompt, as a pair of
//! texts; an example is as many sequences as it has choices, and its label is the number of the right one. Source: Zellers
//! et al. 2018 (SWAG); Devlin et al. 2019, section 4.4.

use std::sync::Arc;

use rayon::prelude::*;
use stratoscope_diagnostics::Result;

use crate::annotation::Annotation;
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets, TokenReport};
use crate::example::{Example, Label};
use crate::problem;
use crate::tokenization::of_text;
use crate::tokenize::{Form, Tokenize};

impl Example {
    /// Adds the texts to choose from, in their order; the label is the number of the right one.
    pub fn with_choices<C: Into<String>>(mut self, choices: impl IntoIterator<Item = C>) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        self.annotation = Some(Arc::new(Annotation::Choices(choices)));
        self
    }

    /// The texts to choose from, if it has some.
    pub fn choices(&self) -> Option<&[String]> {
        match self.annotation.as_deref() {
            Some(Annotation::Choices(choices)) => Some(choices),
            _ => None,
        }
    }
}

/// What is wrong with a row of so many choices, where the first one has `expected`.
pub(crate) fn unfit(row: usize, found: usize, expected: usize) -> Option<String> {
    match found {
        0 => Some(format!("row {row} has no choices")),
        1 => Some(format!(
            "row {row} has one choice, where at least two are needed"
        )),
        _ if found == expected => None,
        _ => Some(format!(
            "row {row} has {found} choices, row 0 has {expected}"
        )),
    }
}

/// The sequences of a prompt: each of its choices, the prompt before it.
fn sequences(
    tokenizer: &dyn Tokenize,
    form: &Form,
    example: &Example,
) -> Result<Vec<EncodedExample>> {
    let choices = example.choices().unwrap_or_default().iter();
    let each = choices.map(|choice| {
        let pair = Example::new(&example.text).with_pair(choice);
        Ok(of_text(0, &pair, form.encode(tokenizer, &pair)?))
    });
    each.collect()
}

/// A prompt of its sequences.
fn whole<'s>(
    index: usize,
    example: &Example,
    sequences: impl Iterator<Item = &'s EncodedExample>,
) -> EncodedExample {
    joined(index, example, sequences, Targets::Choices)
}

/// An example of several sequences, one behind the other; `targets` takes how long each is.
pub(crate) fn joined<'s>(
    index: usize,
    example: &Example,
    sequences: impl Iterator<Item = &'s EncodedExample>,
    targets: impl FnOnce(Arc<[usize]>) -> Targets,
) -> EncodedExample {
    let mut whole = EncodedExample {
        ids: Vec::new(),
        type_ids: Vec::new(),
        features: Arc::default(),
        label: example.label,
        weight: example.weight,
        window: None,
        targets: Targets::Label,
        index,
        truncated: 0,
    };
    let lengths = sequences.map(|sequence| {
        whole.ids.extend_from_slice(&sequence.ids);
        whole.type_ids.extend_from_slice(&sequence.type_ids);
        whole.truncated += sequence.truncated;
        sequence.ids.len()
    });
    let lengths: Arc<[usize]> = lengths.collect();
    whole.targets = targets(lengths);
    whole
}

/// One prompt as tokens.
pub(crate) fn of_choices(
    tokenizer: &dyn Tokenize,
    example: &Example,
    max_length: usize,
) -> Result<EncodedExample> {
    let sequences = sequences(tokenizer, &Form::of_texts(max_length), example)?;
    Ok(whole(example.row, example, sequences.iter()))
}

/// Some prompts as tokens, in parallel; the report counts sequences.
pub(crate) fn encoded(
    examples: &[Example],
    tokenizer: &dyn Tokenize,
    max_length: usize,
) -> Result<Encoded> {
    let form = Form::of_texts(max_length);
    let each = examples.par_iter();
    let each = each
        .map(|example| sequences(tokenizer, &form, example))
        .collect::<Result<Vec<Vec<EncodedExample>>>>()?;
    let prompts = examples.iter().zip(&each).enumerate();
    let prompts = prompts.map(|(index, (example, own))| whole(index, example, own.iter()));
    let encoded = Encoded::of(prompts.collect(), tokenizer, max_length);
    Ok(Encoded {
        report: TokenReport::of(&each.concat(), tokenizer.unk_id(), max_length),
        ..encoded
    })
}

impl Dataset {
    /// A data set of prompts, each with the texts to choose from and the number of the right one, counted from 0.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_choices([
    ///     ("The mail server", vec!["delivers letters", "plays chess"], 0),
    ///     ("The game", vec!["prints a page", "has a board of squares"], 1),
    /// ])?;
    /// assert_eq!(data[1].choices().map(|choices| choices[1].as_str()), Some("has a board of squares"));
    /// assert_eq!(data.label_names, ["0", "1"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0911 for a prompt with fewer than two choices, or with another number of them than the first one; SC0913 for a label
    /// that is the number of no choice; SC0914 if there is no prompt.
    pub fn from_choices<P: Into<String>, C: Into<String>>(
        rows: impl IntoIterator<Item = (P, Vec<C>, usize)>,
    ) -> Result<Self> {
        const CALL: &str = "Dataset::from_choices";
        let rows = rows.into_iter();
        let examples = rows.map(|(prompt, choices, right)| {
            let example = Example::new(prompt).with_choices(choices);
            example.with_label(Label::Class(right))
        });
        let examples: Vec<Example> = examples.collect();
        let source = "choices in memory";
        let Some(first) = examples.first() else {
            return Err(problem::empty(source, CALL));
        };
        let count = |example: &Example| example.choices().map_or(0, <[String]>::len);
        let expected = count(first);
        // The names are numbers, which keep their order in any data set.
        let names: Vec<String> = (0..expected).map(|number| number.to_string()).collect();
        for (row, example) in examples.iter().enumerate() {
            if let Some(reason) = unfit(row, count(example), expected) {
                return Err(problem::unreadable(CALL, source, None, reason));
            }
        }
        let data = Self::from_examples(examples, names, source);
        let is_outside = |example: &&Example| example.class().is_some_and(|it| it >= expected);
        let mut outside = data.examples.iter().filter(is_outside);
        match outside.next() {
            None => Ok(data),
            Some(first) => {
                let given = first.class().unwrap_or_default().to_string();
                let rows = 1 + outside.count();
                let known = &data.label_names;
                Err(problem::unknown_label(source, first, &given, known, rows))
            }
        }
    }

    /// Whether the examples are prompts with choices.
    pub fn has_choices(&self) -> bool {
        let mut examples = self.examples.iter();
        examples.any(|example| example.choices().is_some())
    }

    /// Tokenizes prompts with their choices, in parallel: each choice is a sequence of at most `max_length` tokens, the
    /// prompt before it. The report counts sequences.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize).
    pub fn tokenize_choices(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        self.may_be_tokenized(max_length)?;
        let pairs = self.examples.iter().flat_map(|example| {
            let choices = example.choices().unwrap_or_default().iter();
            choices.map(|choice| Example::new(&example.text).with_pair(choice))
        });
        let pairs = Self::from_examples(pairs, Vec::new(), &self.source);
        let sequences = pairs.tokenize(tokenizer, max_length)?;
        let mut next = 0;
        let examples = self.examples.iter().enumerate().map(|(index, example)| {
            let count = example.choices().map_or(0, <[String]>::len);
            let own = (next..next + count).filter_map(|at| sequences.get(at));
            next += count;
            whole(index, example, own)
        });
        let encoded = Encoded::of(examples.collect(), tokenizer, max_length);
        Ok(Encoded {
            report: sequences.report,
            kept: sequences.kept,
            ..encoded
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;
    use crate::tokenize::letters::Letters;

    fn data() -> Dataset {
        let rows = [
            ("p", vec!["ab", "c", "d"], 2),
            ("qr", vec!["e", "fghi", "j"], 0),
        ];
        Dataset::from_choices(rows).expect("three choices each")
    }

    /// The sequences of a row of a batch, padding as `_`.
    fn sequences(batch: &crate::Batch, row: usize) -> Vec<String> {
        let own = &batch.ids[row * batch.seq..(row + 1) * batch.seq];
        let each = own.chunks(batch.seq / batch.choices);
        each.map(|ids| {
            let ids: Vec<u32> = ids.iter().map(|&id| id as u32).collect();
            Letters.tokens(&ids).concat()
        })
        .collect()
    }

    #[test]
    fn a_row_of_a_batch_is_a_sequence_for_each_choice() {
        let encoded = data().tokenize_choices(&Letters, 64).expect("texts");
        assert_eq!((encoded.len(), encoded.report().rows), (2, 6));
        let batch = encoded.batch(2).expect("2").next().expect("a batch");
        assert_eq!((batch.choices, batch.seq, batch.size()), (3, 3 * 9, 2));
        assert_eq!(
            sequences(&batch, 0),
            ["[p]ab]___", "[p]c]____", "[p]d]____"]
        );
        assert_eq!(
            sequences(&batch, 1),
            ["[qr]e]___", "[qr]fghi]", "[qr]j]___"]
        );
        assert_eq!(batch.labels, Labels::Classes(vec![2, 0]));
        assert_eq!(&batch.mask[..9], [1, 1, 1, 1, 1, 1, 0, 0, 0]);
        assert_eq!(&batch.type_ids[..9], [0, 0, 0, 1, 1, 1, 0, 0, 0]);
        // A replica's part has the same shape; smaller batches have their own.
        let parts: Vec<_> = batch.split(2).into_iter().flatten().collect();
        assert_eq!(sequences(&parts[1], 0)[1], "[qr]fghi]");
        let parts = batch.in_parts_of(1);
        assert_eq!((parts[0].choices, parts[0].seq), (3, 3 * 6));
        assert_eq!(sequences(&parts[0], 0), ["[p]ab]", "[p]c]_", "[p]d]_"]);
        let alone = encoded.batch(1).expect("1").next().expect("a batch");
        assert_eq!(alone, parts[0], "as it is made alone");
    }

    #[test]
    fn prompts_without_choices_and_other_numbers_are_refused() {
        let refused = |rows: Vec<(&str, Vec<&str>, usize)>| {
            let problem = Dataset::from_choices(rows).expect_err("it is refused");
            (problem.code.clone(), format!("{problem:?}"))
        };
        let two = || ("p", vec!["a", "b"], 0);
        for (row, words) in [
            (("q", vec![], 0), "row 1 has no choices"),
            (("q", vec!["a"], 0), "row 1 has one choice"),
            (
                ("q", vec!["a", "b", "c"], 0),
                "row 1 has 3 choices, row 0 has 2",
            ),
        ] {
            let (code, shown) = refused(vec![two(), row]);
            assert!(code == "SC0911" && shown.contains(words), "{shown}");
        }
        let (code, shown) = refused(vec![two(), ("q", vec!["a", "b"], 2)]);
        assert!(code == "SC0913" && shown.contains('2'), "{shown}");
        assert_eq!(refused(Vec::new()).0, "SC0914");
    }

    #[test]
    fn they_are_shown_and_distinguished_by_their_choices() {
        let data = data();
        let shown = data.to_plain();
        assert!(shown.contains("2 prompts with 3 choices each"), "{shown}");
        assert!(shown.contains("p  → d\n"), "{shown}");
        assert!(data.to_html().contains("fghi"));
        assert!(data[0].to_string().contains("ab | c | d"), "{}", data[0]);
        let other = Dataset::from_choices([("p", vec!["ab", "c", "e"], 2)]).expect("choices");
        assert!(data.overlap(&other).is_empty());
        assert_eq!(data.overlap(&data.take(1)), [(0, 0)]);
        // Many choices keep their numbers in another data set.
        let many = |right| ("p", (0..12).map(|it| it.to_string()).collect(), right);
        let many = [many(2), many(11)];
        let many = Dataset::from_choices::<_, String>(many).expect("choices");
        let both = many.concatenate(&many).expect("the same kind");
        assert_eq!((both[2].class(), both[3].class()), (Some(2), Some(11)));
        assert_eq!(
            data.concatenate(&Dataset::from_labelled([("p", "0")]))
                .expect_err("texts without choices")
                .code,
            "SC0915"
        );
    }
}
