//! Texts that belong together, each a sequence of its own: a text, the text that goes with it, and texts that do not. Losses that
//! compare the examples of a batch with each other take their vectors. Source: Reimers and Gurevych 2019, section 3, "triplet
//! objective".

use stratoscope_diagnostics::Result;

use crate::choices::joined;
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::{Example, Label};
use crate::problem;
use crate::tokenization::of_text;
use crate::tokenize::{Form, Tokenize};

impl Example {
    /// Its texts one by one: the text, the text that belongs to it, and the others that do not. Those are the two texts of
    /// a pair; of a prompt with choices the prompt, the right choice (without a label the first one) and the other choices.
    /// Only the text, if it has neither.
    pub fn texts_apart(&self) -> Vec<&str> {
        let mut texts = vec![self.text.as_str()];
        texts.extend(self.pair.as_deref());
        if let Some(choices) = self.choices() {
            let right = self.class().unwrap_or(0);
            texts.extend(choices.get(right).map(String::as_str));
            let others = choices.iter().enumerate().filter(|(at, _)| *at != right);
            texts.extend(others.map(|(_, text)| text.as_str()));
        }
        texts
    }
}

/// An example of the tokens of its texts.
fn whole<'s>(
    index: usize,
    example: &Example,
    sequences: impl Iterator<Item = &'s EncodedExample>,
) -> EncodedExample {
    EncodedExample {
        // The second text is the right choice.
        label: None,
        ..joined(index, example, sequences, Targets::Apart)
    }
}

/// One example as tokens.
pub(crate) fn of_texts(
    tokenizer: &dyn Tokenize,
    example: &Example,
    max_length: usize,
) -> Result<EncodedExample> {
    let form = Form::of_texts(max_length);
    let texts = example.texts_apart().into_iter().map(|text| {
        let alone = Example::new(text);
        Ok(of_text(0, &alone, form.encode(tokenizer, &alone)?))
    });
    let texts = texts.collect::<Result<Vec<EncodedExample>>>()?;
    Ok(whole(example.row, example, texts.iter()))
}

impl Dataset {
    /// A data set of triplets: a text, one that belongs to it, and one that does not. They are prompts with two choices, of
    /// which the first is right.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_triplets([("send e-mail", "a mail server", "a game of chess")])?;
    /// assert_eq!(data[0].texts_apart(), ["send e-mail", "a mail server", "a game of chess"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0914 if there is none.
    pub fn from_triplets<A: Into<String>, P: Into<String>, N: Into<String>>(
        triplets: impl IntoIterator<Item = (A, P, N)>,
    ) -> Result<Self> {
        let source = "triplets in memory";
        let triplets = triplets.into_iter();
        let examples = triplets.map(|(text, positive, negative)| {
            let example = Example::new(text).with_choices([positive.into(), negative.into()]);
            example.with_label(Label::Class(0))
        });
        let names = ["0", "1"].map(str::to_owned).to_vec();
        let data = Self::from_examples(examples, names, source);
        match data.is_empty() {
            true => Err(problem::empty(source, "Dataset::from_triplets")),
            false => Ok(data),
        }
    }

    /// Tokenizes the texts of each example one by one, in parallel: each is a sequence of at most `max_length` tokens. All
    /// examples have equally many. Labels are left out. The report counts examples.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize).
    pub fn tokenize_apart(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        let texts = self.examples.iter().flat_map(Example::texts_apart);
        let texts = Self::from_examples(texts.map(Example::new), Vec::new(), &self.source);
        let sequences = texts.tokenize(tokenizer, max_length)?;
        let mut next = 0;
        let examples = self.examples.iter().enumerate().map(|(index, example)| {
            let count = example.texts_apart().len();
            let own = (next..next + count).filter_map(|at| sequences.get(at));
            next += count;
            whole(index, example, own)
        });
        let encoded = Encoded::of(examples.collect(), tokenizer, max_length);
        Ok(encoded.with_kept(sequences.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;
    use crate::tokenize::letters::Letters;
    use crate::{TokensOf, encode_example};

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
    fn each_text_is_a_sequence() {
        let data = Dataset::from_pairs([("ab", "c"), ("d", "efg"), ("h", "i")]);
        let encoded = data.tokenize_apart(&Letters, 64).expect("pairs");
        let batch = encoded.batch(3).expect("3").next().expect("a batch");
        assert_eq!((batch.choices, batch.seq, batch.size()), (2, 2 * 5, 3));
        assert_eq!(sequences(&batch, 0), ["[ab]_", "[c]__"]);
        assert_eq!(sequences(&batch, 1), ["[d]__", "[efg]"]);
        assert!(batch.type_ids.iter().all(|&segment| segment == 0));
        let labels = |rows| Labels::Apart { rows, texts: 2 };
        assert_eq!(batch.labels, labels(3));
        assert!(batch.is_consistent());
        // The parts of two replicas, and a batch of one example as it is made alone.
        let parts: Vec<_> = batch.split(2).into_iter().flatten().collect();
        assert_eq!(
            (&parts[0].labels, &parts[1].labels),
            (&labels(2), &labels(1))
        );
        let alone = encoded.batch(1).expect("1").next().expect("a batch");
        assert_eq!(alone, batch.in_parts_of(1)[0]);
        // One by one, as rows of a stream are encoded.
        for (at, example) in data.examples.iter().enumerate() {
            let one = encode_example(&Letters, example, 64, TokensOf::Apart).expect("a pair");
            assert_eq!(Some(&one[0]), encoded.get(at));
        }
        let cut = data.tokenize_apart(&Letters, 4).expect("pairs");
        assert_eq!(cut.report().truncated_rows, 1, "efg needs five");
    }

    #[test]
    fn the_right_choice_comes_before_the_others() {
        let rows = [("p", vec!["a", "b", "c"], 1), ("q", vec!["d", "e", "f"], 0)];
        let data = Dataset::from_choices(rows).expect("choices");
        assert_eq!(data[0].texts_apart(), ["p", "b", "a", "c"]);
        assert_eq!(data[1].texts_apart(), ["q", "d", "e", "f"]);
        let triplets = Dataset::from_triplets([("a", "b", "c")]).expect("one");
        assert_eq!(triplets[0].texts_apart(), ["a", "b", "c"]);
        let none: [(&str, &str, &str); 0] = [];
        let problem = Dataset::from_triplets(none).expect_err("none");
        assert_eq!(problem.code, "SC0914");
        assert_eq!(Example::new("x").texts_apart(), ["x"]);
    }
}
