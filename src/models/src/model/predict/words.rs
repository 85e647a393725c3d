//! The answers of a head that answers each word: a tag for every word, and the entities that the tags make.

use std::fmt::Write;

use stratoscope_data::{Alignment, Dataset, Example, TagScheme, Tokenize};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::{Marked, Prediction, Predictions};
use crate::report::html::escape;
use stratoscope_step::head::{most_probable, softmax};

/// What decodes the outputs of a data set.
pub(super) struct Decoder<'a> {
    pub tokenizer: &'a dyn Tokenize,
    pub label_names: &'a [String],
    pub scheme: TagScheme,
    pub max_length: usize,
}

impl Decoder<'_> {
    /// The answer for an example, by its outputs: S rows of a number for each tag, padding included.
    ///
    /// # Errors
    /// Those of the tokenizer.
    pub fn answer(&self, example: Example, outputs: &[f32]) -> Result<Prediction> {
        let pieces = self
            .tokenizer
            .encode_pieces(&example.text, None, self.max_length)?;
        let (_, pieces) = pieces.unwrap_or_default();
        let aligned = Alignment::of(&example, &pieces);
        let classes = self.label_names.len();
        // A word that was cut off has no output: it is in no entity.
        let outside = self
            .label_names
            .iter()
            .position(|name| name == "O")
            .unwrap_or(usize::MAX);
        let answer = |first: &Option<usize>| {
            let row = first.and_then(|at| outputs.get(at * classes..(at + 1) * classes));
            let probabilities = row.map(softmax).unwrap_or_default();
            match most_probable(&probabilities) {
                Some(tag) => (tag, probabilities[tag]),
                None => (outside, 0.0),
            }
        };
        let answers: Vec<(usize, f64)> = aligned.first_tokens.iter().map(answer).collect();
        let marked = |label: &str, words: std::ops::Range<usize>| {
            let bytes = aligned.words[words.start].start..aligned.words[words.end - 1].end;
            let scores = answers[words].iter().map(|(_, score)| score);
            let count = scores.len() as f64;
            Marked {
                label: label.to_owned(),
                text: example.text[bytes.clone()].to_owned(),
                start: bytes.start,
                end: bytes.end,
                score: scores.sum::<f64>() / count,
            }
        };
        let tags: Vec<usize> = answers.iter().map(|(tag, _)| *tag).collect();
        let name = |tag: usize| self.label_names.get(tag).map_or("O", String::as_str);
        let words = (0..tags.len())
            .map(|at| marked(name(tags[at]), at..at + 1))
            .collect();
        let entities = self.scheme.entities(&tags).into_iter();
        let marks: Vec<Marked> = entities
            .map(|entity| marked(&self.scheme.types()[entity.of_type], entity.words))
            .collect();
        let label = marks
            .iter()
            .map(|mark| format!("{} ({})", mark.text, mark.label));
        Ok(Prediction {
            label: label.collect::<Vec<_>>().join(", "),
            score: answers.iter().map(|(_, score)| *score).fold(1.0, f64::min),
            marks,
            words,
            text: example.text,
            ..Prediction::default()
        })
    }
}

/// Colors that read on light and on dark pages, a type each in turn.
const COLORS: [&str; 8] = [
    "#3b82c455",
    "#e0803055",
    "#4caf7055",
    "#b05cc055",
    "#c9a22755",
    "#d9534f55",
    "#2aa1a155",
    "#8a7a6a55",
];

impl Predictions {
    /// Whether each word was answered.
    pub(super) fn are_words(&self) -> bool {
        self.rows.iter().any(|row| !row.words.is_empty())
    }

    /// The tags of every text, a word each.
    pub fn tags(&self) -> Vec<Vec<&str>> {
        let rows = self.rows.iter();
        rows.map(|row| row.words.iter().map(|word| word.label.as_str()).collect())
            .collect()
    }

    /// The texts with their entities in color, a paragraph each, as static HTML with inline styles only.
    pub(super) fn words_to_html(&self) -> String {
        // A type has the same color in every prediction of a model.
        let scheme = TagScheme::of(&self.label_names);
        let mut html = String::from("<div style=\"font-size:13px;line-height:2.1\">");
        for row in &self.rows {
            html.push_str("<div style=\"margin:2px 0\">");
            let mut end = 0;
            for mark in &row.marks {
                let mut types = scheme.types().iter();
                let place = types.position(|known| *known == mark.label);
                html.push_str(&escape(row.text.get(end..mark.start).unwrap_or_default()));
                // Writing to a string cannot fail.
                let _ = write!(
                    html,
                    "<span style=\"background-color:{};border-radius:4px;padding:2px 5px\" title=\"{:.1} %\">{} \
                     <b style=\"font-size:10px\">{}</b></span>",
                    COLORS[place.unwrap_or_default() % COLORS.len()],
                    100.0 * mark.score,
                    escape(&mark.text),
                    escape(&mark.label)
                );
                end = mark.end;
            }
            html.push_str(&escape(row.text.get(end..).unwrap_or_default()));
            html.push_str("</div>");
        }
        html.push_str("</div>");
        html
    }

    /// The texts with their entities in brackets, a line each.
    pub(super) fn words_to_plain(&self) -> String {
        let mut plain = String::new();
        for row in &self.rows {
            let mut end = 0;
            for mark in &row.marks {
                plain.push_str(row.text.get(end..mark.start).unwrap_or_default());
                let _ = write!(
                    plain,
                    "[{} {} {:.0} %]",
                    mark.text,
                    mark.label,
                    100.0 * mark.score
                );
                end = mark.end;
            }
            plain.push_str(row.text.get(end..).unwrap_or_default());
            plain.push('\n');
        }
        text::visible(&plain)
    }

    /// Which tags were taken for which, by the words of `data` that were answered; `None` where words differ.
    pub(super) fn counts_of_words(&self, data: &Dataset) -> Option<Vec<Vec<u64>>> {
        let classes = self.label_names.len();
        let mut counts = vec![vec![0; classes]; classes];
        let place = |name: &str| self.label_names.iter().position(|known| known == name);
        for (example, row) in data.examples.iter().zip(&self.rows) {
            let words = example.words()?;
            if words.len() != row.words.len() {
                return None;
            }
            // A word that was cut off was taken for nothing.
            let answered = words.iter().zip(&row.words);
            for (word, answer) in answered.filter(|(_, answer)| answer.score != 0.0) {
                let own = place(data.label_names.get(word.tag?)?)?;
                counts[own][place(&answer.label)?] += 1;
            }
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model has no tag that a word without an answer could have.
    #[test]
    fn words_that_were_cut_off_are_not_counted() {
        let word = |label: &str, score: f64| Marked {
            label: label.to_owned(),
            text: "a".to_owned(),
            start: 0,
            end: 1,
            score,
        };
        let row = Prediction {
            words: vec![word("PER", 0.9), word("LOC", 0.6), word("O", 0.0)],
            ..Prediction::default()
        };
        let predictions = Predictions {
            rows: vec![row],
            label_names: ["LOC", "PER"].map(str::to_owned).to_vec(),
            cut: None,
        };
        let data = Dataset::from_words([(vec!["a", "b", "c"], vec!["PER", "PER", "LOC"])]);
        let counts = predictions.counts_of_words(&data.expect("tags"));
        assert_eq!(counts, Some(vec![vec![0, 0], vec![1, 1]]));
    }

    #[test]
    fn entities_are_marked_in_the_text() {
        let mark = |label: &str, text: &str, start: usize| Marked {
            label: label.to_owned(),
            text: text.to_owned(),
            start,
            end: start + text.len(),
            score: 0.987,
        };
        let row = Prediction {
            text: "a <b> in London".to_owned(),
            score: 0.9,
            marks: vec![mark("PER", "<b>", 2), mark("LOC", "London", 9)],
            words: vec![mark("O", "a", 0)],
            ..Prediction::default()
        };
        let predictions = Predictions {
            rows: vec![row],
            label_names: vec!["O".to_owned()],
            cut: None,
        };
        assert_eq!(
            predictions.to_plain(),
            "a [<b> PER 99 %] in [London LOC 99 %]\n"
        );
        let html = predictions.to_html();
        assert!(
            html.contains("&lt;b&gt; <b style")
                && !html.contains("<b>")
                && !html.contains("class="),
            "{html}"
        );
        assert_eq!(predictions.tags(), [["O"]]);
    }
}
