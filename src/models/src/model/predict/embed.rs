//! `model.embed(texts)`: a vector for each text; how similar texts are, and which are nearest.

use std::fmt::{self, Write};

use serde::Serialize;
use stratoscope_bert::SentenceEncoder;
use stratoscope_data::{Data, Dataset, Example};
use stratoscope_diagnostics::rules::EmptyDataset;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::html::DATA_TABLE_STYLE;
use stratoscope_render::text;
use stratoscope_strategy::Origin;

use super::outputs::outputs_of;
use super::{IntoExamples, read_length};
use crate::model::ModelOf;
use crate::problem;
use crate::report::html::{CELL, HEAD, escape};
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_step::prepare;

/// Texts with their vectors, in their order.
#[derive(Clone, PartialEq, Serialize)]
pub struct Embeddings {
    /// The texts; of pairs both, with a bar between them.
    pub texts: Vec<String>,
    /// A vector of length 1 for each text.
    pub vectors: Vec<Vec<f32>>,
}

/// A text that is near to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Near {
    /// Its place among the texts that were searched.
    pub index: usize,
    /// The text.
    pub text: String,
    /// The cosine of the angle between both vectors: 1 for the same direction, 0 for unrelated ones.
    pub similarity: f64,
}

impl ModelOf<SentenceEncoder> {
    /// A vector for each text: the mean over its tokens, of length 1.
    ///
    /// # Errors
    /// SC0914 for no text; SC0907 if a device fails; SC0520 if it is interrupted.
    #[track_caller]
    pub fn embed(&self, texts: impl IntoExamples) -> Result<Embeddings> {
        let origin = Origin::current();
        self.embedded(texts.into_examples(None)?, origin)
    }

    fn embedded(&self, mut data: Dataset, origin: Origin) -> Result<Embeddings> {
        if data.is_empty() {
            let source = format!("`{}`", data.source);
            let wanted_by = "`embed`".to_owned();
            return Err(EmptyDataset { source, wanted_by }.error());
        }
        for example in &mut data.examples {
            example.label = None;
        }
        let _listening = Listening::begin();
        let mut state = self.state();
        state.ready_for(Data::Held(&data), "embed", origin)?;
        let max_length = read_length(&state);
        let encoded = data.tokenize(state.files.tokenizer(), max_length)?;
        prepare::in_vocabulary(&*state.files, &data, &encoded, "embed")?;
        prepare::report_truncated(encoded.report(), "embed")?;
        let vectors = outputs_of(&state, &encoded, ("embedding", "embedded"))?;
        Ok(Embeddings {
            texts: data.examples.iter().map(Example::texts).collect(),
            vectors,
        })
    }
}

impl Embeddings {
    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The cosine of each text here with each of `other`: a row for each text here. `heatmap(&…)` draws it.
    ///
    /// # Errors
    /// SC0103 for vectors of another length.
    pub fn similarity(&self, other: &Self) -> Result<Vec<Vec<f64>>> {
        let widths = [self, other].map(|it| it.vectors.first().map_or(0, Vec::len));
        if widths[0] != widths[1] {
            let given = format!("vectors of {}", text::count(widths[1], "number"));
            let expects = format!("vectors of {}, of the same model", widths[0]);
            return Err(Box::new(problem::bad_value(
                "similarity",
                "other",
                given,
                expects,
            )));
        }
        let rows = self.vectors.iter();
        Ok(rows
            .map(|row| other.vectors.iter().map(|it| cosine(row, it)).collect())
            .collect())
    }

    /// For each text of `queries` the `count` texts here that are most similar to it, the nearest first.
    ///
    /// # Errors
    /// SC0103 for vectors of another length.
    pub fn nearest(&self, queries: &Self, count: usize) -> Result<Vec<Vec<Near>>> {
        let similarities = queries.similarity(self)?;
        let of_query = |row: Vec<f64>| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
            let near = order.into_iter().take(count).map(|index| Near {
                index,
                text: self.texts[index].clone(),
                similarity: row[index],
            });
            near.collect()
        };
        Ok(similarities.into_iter().map(of_query).collect())
    }

    /// A row a text with the text that is most similar to it, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<div style=\"font-size:13px\">{}</div>\
             <table style=\"{DATA_TABLE_STYLE}\"><tr>",
            escape(&self.headline())
        );
        // Writing to a string cannot fail.
        for name in ["text", "most similar", "cosine"] {
            let _ = write!(html, "<th style=\"{HEAD};text-align:left\">{name}</th>");
        }
        html.push_str("</tr>");
        for (text, near) in self.rows() {
            let (other, cosine) = match near {
                Some(near) => (near.text, format!("{:.3}", near.similarity)),
                None => ("–".to_owned(), "–".to_owned()),
            };
            let _ = write!(
                html,
                "<tr><td style=\"{CELL};text-align:left\">{}</td><td style=\"{CELL};text-align:left\">{}</td>\
                 <td style=\"{CELL}\">{cosine}</td></tr>",
                escape(&text::excerpt(text, 120)),
                escape(&text::excerpt(&other, 120))
            );
        }
        html.push_str("</table>");
        html
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let mut plain = self.headline();
        for (text, near) in self.rows() {
            let text = text::excerpt(text, 60);
            // Writing to a string cannot fail.
            let _ = match near {
                Some(near) => write!(
                    plain,
                    "\n{text} ~ {} ({:.3})",
                    text::excerpt(&near.text, 60),
                    near.similarity
                ),
                None => write!(plain, "\n{text}"),
            };
        }
        plain.push('\n');
        text::visible(&plain)
    }

    fn headline(&self) -> String {
        let width = self.vectors.first().map_or(0, Vec::len);
        let vectors = text::count(self.len(), "vector");
        format!("{vectors} of {}", text::count(width, "number"))
    }

    /// The first texts, each with the one that is most similar to it.
    fn rows(&self) -> impl Iterator<Item = (&String, Option<Near>)> {
        const SHOWN: usize = 20;
        self.texts.iter().enumerate().take(SHOWN).map(|(at, text)| {
            let others = (0..self.len()).filter(|&it| it != at);
            let near = others.map(|it| (it, cosine(&self.vectors[at], &self.vectors[it])));
            let near = near.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let near = near.map(|(index, similarity)| Near {
                index,
                text: self.texts[index].clone(),
                similarity,
            });
            (text, near)
        })
    }
}

/// The cosine of two vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let each = a.iter().zip(b);
    each.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

impl fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embeddings(rows: &[(&str, [f32; 2])]) -> Embeddings {
        Embeddings {
            texts: rows.iter().map(|(text, _)| (*text).to_owned()).collect(),
            vectors: rows.iter().map(|(_, vector)| vector.to_vec()).collect(),
        }
    }

    #[test]
    fn the_nearest_are_found_and_shown() {
        let all = embeddings(&[("<a>", [1.0, 0.0]), ("b", [0.0, 1.0]), ("c", [0.6, 0.8])]);
        let query = embeddings(&[("q", [0.8, 0.6])]);
        let near = all.nearest(&query, 2).expect("the same width");
        let found: Vec<(usize, f64)> = near[0]
            .iter()
            .map(|it| (it.index, (it.similarity * 100.0).round()))
            .collect();
        assert_eq!(found, [(2, 96.0), (0, 80.0)]);
        let similarity = query.similarity(&all).expect("the same width");
        assert!((similarity[0][1] - 0.6).abs() < 1e-6);
        assert_eq!(
            all.to_plain(),
            "3 vectors of 2 numbers\n<a> ~ c (0.600)\nb ~ c (0.800)\nc ~ b (0.800)\n"
        );
        let html = all.to_html();
        assert!(
            html.contains("&lt;a&gt;") && !html.contains("<a>"),
            "{html}"
        );
        assert_eq!(query.to_plain(), "1 vector of 2 numbers\nq\n");
        let other = Embeddings {
            vectors: vec![vec![1.0]],
            ..query
        };
        assert_eq!(
            all.similarity(&other).expect_err("another width").code,
            "SC0103"
        );
    }
}
