//! How an audit and its parts are shown: as a page and as text.

use stratoscope_evaluation::page::{heads, sentence, table, table_text, title};
use stratoscope_render::html::picture;
use stratoscope_render::text::{count, excerpt};

use crate::audit::{Audit, Findings};
use crate::map::EmbeddingMap;
use crate::near_duplicates::{DuplicateGroup, NearDuplicates};
use crate::slices::Slices;

/// Rows of a part on the page of the whole audit, and of a part by itself.
const ROWS_OF_A_PART: usize = 8;
const ROWS: usize = 30;
/// Characters of a text in a table.
const EXCERPT: usize = 90;

/// A part of a page: a title, sentences, a table.
struct Part {
    title: String,
    sentences: Vec<String>,
    head: Vec<&'static str>,
    /// Columns of words; the others are numbers.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Part {
    fn html(&self) -> String {
        let mut html = title(&self.title);
        html.extend(self.sentences.iter().map(|it| sentence(it)));
        if !self.rows.is_empty() {
            html += &table(&heads(self.words, &self.head), &self.rows, None);
        }
        html
    }

    fn plain(&self) -> String {
        let mut plain = format!("{}\n", self.title);
        self.sentences
            .iter()
            .for_each(|it| plain += &format!("  {it}\n"));
        if !self.rows.is_empty() {
            plain += &table_text(&heads(self.words, &self.head), &self.rows);
        }
        stratoscope_render::text::visible(&plain)
    }
}

/// ` of 20 that are shown`, where some are not.
fn shown(all: usize, most: usize) -> String {
    if all > most {
        format!(", the first {most} below")
    } else {
        String::new()
    }
}

impl Findings {
    fn part(&self, most: usize) -> Part {
        let are_outliers = !self.z_scores.is_empty();
        let (noun, verb) = match (are_outliers, self.rows.len()) {
            (_, 0) => ("finding", ""),
            (true, _) => ("outlier", ": unlike the other rows"),
            (false, _) => (
                "suspicious label",
                ": a classifier that has not seen the row contradicts it",
            ),
        };
        let number = |share: f64| format!("{share:.3}");
        let rows = self.rows.iter().enumerate().take(most).map(|(at, row)| {
            let mut cells = vec![
                row.row.to_string(),
                excerpt(&row.text, EXCERPT),
                row.label.clone(),
            ];
            match self.z_scores.get(at) {
                Some(z) => cells.push(format!("{z:.1}")),
                None => cells.extend([
                    row.predicted.clone(),
                    number(row.of_label),
                    number(row.of_predicted),
                ]),
            }
            cells
        });
        Part {
            title: format!(
                "{} in {}{verb}{}",
                count(self.len(), noun),
                count(self.of, "row"),
                shown(self.len(), most)
            ),
            sentences: Vec::new(),
            head: match are_outliers {
                true => vec!["row", "text", "label", "robust z-score"],
                false => vec![
                    "row",
                    "text",
                    "label",
                    "suggestion",
                    "p(label)",
                    "p(suggestion)",
                ],
            },
            words: if are_outliers { 3 } else { 4 },
            rows: rows.collect(),
        }
    }

    /// The first rows as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        self.part(ROWS).html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.part(ROWS).plain()
    }
}

impl NearDuplicates {
    fn part(&self, most: usize) -> Part {
        let rows: usize = self.splits.iter().map(|(_, rows)| rows).sum();
        let mut sentences = Vec::new();
        if self.splits.len() > 1 {
            let between = self.between_splits().len();
            sentences.push(format!(
                "{} between splits: a model is measured with rows that it was trained on",
                groups(between)
            ));
        }
        let contradictory = self.contradictory().len();
        if contradictory > 0 {
            sentences.push(format!("{} with different labels: at least one label of each is wrong, or the text does not decide", groups(contradictory)));
        }
        let places = |group: &DuplicateGroup| {
            let places = group
                .rows
                .iter()
                .take(6)
                .map(|row| format!("{} {}", row.split, row.row));
            let mut places = places.collect::<Vec<_>>().join(", ");
            if group.rows.len() > 6 {
                places += &format!(" and {} more", group.rows.len() - 6);
            }
            places
        };
        let labels = |group: &DuplicateGroup| {
            let mut labels: Vec<&str> = group
                .rows
                .iter()
                .filter_map(|row| row.label.as_deref())
                .collect();
            labels.dedup();
            labels.sort_unstable();
            labels.dedup();
            labels.join(", ")
        };
        let table = self.groups.iter().take(most).map(|group| {
            let text = excerpt(&group.rows[0].text, EXCERPT);
            vec![
                places(group),
                text,
                labels(group),
                format!("{:.2}", group.similarity),
            ]
        });
        Part {
            title: format!(
                "{} of near-duplicates in {}{}",
                groups(self.groups.len()),
                count(rows, "row"),
                shown(self.groups.len(), most)
            ),
            sentences,
            head: vec!["rows", "first text", "labels", "similarity"],
            words: 3,
            rows: table.collect(),
        }
    }

    /// The first groups as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        self.part(ROWS).html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.part(ROWS).plain()
    }
}

fn groups(number: usize) -> String {
    count(number, "group")
}

impl Slices {
    fn part(&self, most: usize) -> Part {
        let worse = self.worse();
        let rows = self
            .all
            .iter()
            .take(worse.len().clamp(3, most))
            .map(|slice| {
                vec![
                    slice.name.clone(),
                    slice.rows.len().to_string(),
                    format!("{:.1} %", 100.0 * slice.error()),
                    format!("{:.1} %", 100.0 * slice.error_of_rest),
                    probability(slice.p_value),
                    probability(slice.adjusted),
                ]
            });
        let verdict = match worse.len() {
            0 => "no part of the data is worse than the rest".to_owned(),
            1 => "1 part of the data is worse than the rest".to_owned(),
            number => format!("{number} parts of the data are worse than the rest"),
        };
        Part {
            title: format!("{verdict}: {} tested, {} in {}", count(self.all.len(), "part"), count(self.errors, "error"), count(self.rows, "row")),
            sentences: vec![
                "Fisher's exact test, one-sided; p is corrected for all tests by Holm's method, which allows for parts that overlap"
                    .to_owned(),
            ],
            head: vec!["part", "rows", "error", "error of the rest", "p", "p corrected"],
            words: 1,
            rows: rows.collect(),
        }
    }

    /// The parts that are worse, and at least three, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        self.part(ROWS).html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.part(ROWS).plain()
    }
}

fn probability(p: f64) -> String {
    if p < 1e-4 {
        "< 0.0001".to_owned()
    } else {
        format!("{p:.4}")
    }
}

impl EmbeddingMap {
    /// The picture as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let chart = self.chart();
        title(&self.title()) + &picture(&chart.svg(), &self.title())
    }

    /// The same as text: what is marked, and how much of the variance is seen.
    pub fn to_plain(&self) -> String {
        let seen = 100.0 * (self.explained[0] + self.explained[1]);
        format!(
            "{}\n  {seen:.1} % of the variance is in these two directions\n",
            self.title()
        )
    }
}

impl Audit {
    fn head(&self) -> Part {
        let noise = 100.0 * self.confident_learning().noise();
        Part {
            title: format!("audit of {}", count(self.rows().len(), "row")),
            sentences: vec![
                format!(
                    "answers by {}: {:.1} % agree with their label",
                    self.origin,
                    100.0 * self.accuracy()
                ),
                format!("estimated share of wrong labels: {noise:.1} % (confident learning)"),
            ],
            head: Vec::new(),
            words: 0,
            rows: Vec::new(),
        }
    }

    fn parts(&self) -> [Part; 4] {
        let found = self.outliers().len();
        let mut outliers = self
            .farthest(found.clamp(3, ROWS_OF_A_PART))
            .part(ROWS_OF_A_PART);
        let rows = count(self.rows().len(), "row");
        outliers.title = match found {
            0 => format!("no outlier in {rows}; the rows that are farthest from the others"),
            found => format!(
                "{} in {rows}: unlike the other rows{}",
                count(found, "outlier"),
                shown(found, ROWS_OF_A_PART)
            ),
        };
        let mut labels = self.wrong_labels().part(ROWS_OF_A_PART);
        if self.wrong_labels().is_empty() {
            labels.title = format!("0 suspicious labels in {rows}");
        }
        [
            labels,
            self.duplicates().part(ROWS_OF_A_PART),
            outliers,
            self.slices().part(ROWS_OF_A_PART),
        ]
    }

    /// The page: static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = self.head().html();
        html.extend(self.parts().iter().map(Part::html));
        html + &self.map().to_html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let mut plain = self.head().plain();
        self.parts()
            .iter()
            .for_each(|part| plain += &format!("\n{}", part.plain()));
        plain + "\n" + &self.map().to_plain()
    }
}
