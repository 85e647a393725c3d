//! [`ConfusionMatrix`]: which classes are taken for which.

use std::fmt::{self, Write};

use serde::Serialize;
use stratoscope_render::chart::Grid;
use stratoscope_render::html::{escape, picture};
use stratoscope_render::text;

use super::{number, title_html};

/// Classes of a picture; of more the first ones are drawn.
const MOST: usize = 40;
/// Cells have their counts up to so many classes.
const MOST_TEXTS: usize = 14;

/// How often each class was taken for each: rows are labels, columns predictions.
#[derive(Clone, PartialEq, Serialize)]
pub struct ConfusionMatrix {
    /// The names of the classes.
    pub label_names: Vec<String>,
    /// Row by row: `counts[label][predicted]`.
    pub counts: Vec<Vec<u64>>,
    /// What is counted: `example` or `word`.
    #[serde(skip)]
    noun: &'static str,
}

impl ConfusionMatrix {
    /// `None` where there is no class.
    pub fn new(counts: Vec<Vec<u64>>, label_names: &[String]) -> Option<Self> {
        let name = |class: usize| {
            let name = label_names.get(class).cloned();
            name.unwrap_or_else(|| class.to_string())
        };
        let label_names = (0..counts.len()).map(name).collect();
        (!counts.is_empty()).then_some(Self {
            label_names,
            counts,
            noun: "example",
        })
    }

    /// The same of words.
    pub fn of_words(self) -> Self {
        Self {
            noun: "word",
            ..self
        }
    }

    /// Examples with this label that were taken for `predicted`; `None` for a class that does not exist.
    pub fn get(&self, label: usize, predicted: usize) -> Option<u64> {
        self.counts.get(label)?.get(predicted).copied()
    }

    /// All examples, or words.
    pub fn examples(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// The share of examples on the diagonal; `None` without an example.
    pub fn accuracy(&self) -> Option<f64> {
        let right = (0..self.counts.len()).filter_map(|class| self.get(class, class));
        let all = self.examples();
        (all > 0).then(|| right.sum::<u64>() as f64 / all as f64)
    }

    /// The pairs of classes that are confused most often, most often first: label, prediction, examples.
    pub fn confusions(&self) -> Vec<(&str, &str, u64)> {
        let mut pairs = Vec::new();
        for (label, row) in self.counts.iter().enumerate() {
            for (predicted, &count) in row.iter().enumerate() {
                if label != predicted && count > 0 {
                    let names = &self.label_names;
                    pairs.push((names[label].as_str(), names[predicted].as_str(), count));
                }
            }
        }
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.2));
        pairs
    }

    fn title(&self) -> String {
        let accuracy = self
            .accuracy()
            .map_or_else(|| "undefined".to_owned(), number);
        format!(
            "confusion matrix of {}: lines are labels, columns predictions; accuracy {accuracy}",
            text::count(self.examples() as usize, self.noun)
        )
    }

    /// The picture as SVG: a cell is filled by its share of the examples with its label.
    pub fn svg(&self) -> String {
        let shown = self.counts.len().min(MOST);
        let cell = |label: usize, predicted: usize| {
            let count = self.get(label, predicted).unwrap_or(0);
            let all: u64 = self.counts[label].iter().sum();
            (
                count as f64 / all.max(1) as f64,
                text::thousands(count as usize),
            )
        };
        Grid {
            rows: &self.label_names[..shown],
            columns: &self.label_names[..shown],
            cell: &cell,
            has_texts: shown <= MOST_TEXTS,
            title: &self.title(),
        }
        .svg()
    }

    /// Picture and table as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        html += &picture(&self.svg(), &self.title());
        // Writing to a string cannot fail.
        html.push_str(
            "<details style=\"font-size:13px\"><summary style=\"cursor:pointer\">numbers</summary>\
             <table style=\"border-collapse:collapse;font-size:12px\"><thead><tr><th scope=\"col\">label ↓ prediction →</th>",
        );
        for name in self.label_names.iter().take(MOST) {
            let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
        }
        html.push_str("</tr></thead><tbody>");
        for (name, row) in self.label_names.iter().zip(&self.counts).take(MOST) {
            let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(name));
            for count in row.iter().take(MOST) {
                let _ = write!(html, "<td>{count}</td>");
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></details>");
        if self.counts.len() > MOST {
            let rest = self.counts.len() - MOST;
            let _ = write!(
                html,
                "<div style=\"font-size:12px\">{rest} more classes are not drawn</div>"
            );
        }
        html
    }

    /// The counts, a line a label, or the largest confusions where there are many classes.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title() + "\n";
        // Writing to a string cannot fail.
        if self.counts.len() > MOST_TEXTS {
            for (label, predicted, count) in self.confusions().into_iter().take(20) {
                let _ = writeln!(plain, "{count:>6}  {label} taken for {predicted}");
            }
            return plain;
        }
        let width = self
            .label_names
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0);
        let largest = self.counts.iter().flatten().max().copied().unwrap_or(0);
        let column = largest.to_string().len().max(2);
        for (name, row) in self.label_names.iter().zip(&self.counts) {
            let cells: Vec<String> = row
                .iter()
                .map(|count| format!("{count:>column$}"))
                .collect();
            let _ = writeln!(plain, "{name:>width$}  {}", cells.join("  "));
        }
        plain
    }
}

impl fmt::Display for ConfusionMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for ConfusionMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_labels() {
        let counts = vec![vec![3, 1], vec![0, 4]];
        let names = ["<ham>".to_owned()];
        let matrix = ConfusionMatrix::new(counts, &names).expect("two classes");
        assert_eq!((matrix.get(0, 1), matrix.get(2, 0)), (Some(1), None));
        assert_eq!((matrix.examples(), matrix.accuracy()), (8, Some(0.875)));
        assert_eq!(matrix.confusions(), [("<ham>", "1", 1)]);
        assert_eq!(matrix.to_plain().lines().nth(1), Some("<ham>   3   1"));
        let svg = matrix.svg();
        assert!(
            svg.contains("fill-opacity=\"0.75\"") && svg.contains("&lt;ham&gt; → 1: 1"),
            "{svg}"
        );
        let html = matrix.to_html();
        assert!(html.contains("<th scope=\"row\">&lt;ham&gt;</th>") && !html.contains("<svg"));
        assert!(ConfusionMatrix::new(Vec::new(), &names).is_none());
        let none = ConfusionMatrix::new(vec![vec![0]], &names).expect("a class");
        assert!(none.accuracy().is_none() && none.to_html().contains("undefined"));
    }

    #[test]
    fn many_classes_are_bounded() {
        let counts: Vec<Vec<u64>> = (0..100)
            .map(|row| (0..100).map(|it| row * it % 7).collect())
            .collect();
        let matrix = ConfusionMatrix::new(counts, &[]).expect("classes");
        assert!(matrix.to_html().contains("60 more classes") && matrix.to_html().len() < 1_500_000);
        assert_eq!(matrix.to_plain().lines().count(), 21);
    }
}
