//! How an assessment is shown: as a page and as text.

use stratoscope_render::html::picture;
use stratoscope_render::text;

use super::{Assessment, WrongAnswers};
use crate::page::{heads, sentence, table, table_text, title};

/// Wrong answers on the page of an assessment.
const ERRORS: usize = 5;
/// Characters of a text in a table.
const EXCERPT: usize = 120;

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
}

impl Assessment {
    fn summary(&self) -> Vec<String> {
        let mut lines = vec![
            format!("accuracy {}", self.accuracy),
            format!("macro F1 {}", self.macro_f1),
        ];
        lines.extend(self.calibration().map(|it| it.summary()));
        lines.push(
            "in parentheses: where 95 % of 1000 resamples of these examples have it. Another seed of the training may differ more"
                .to_owned(),
        );
        lines
    }

    fn title(&self) -> String {
        format!("assessment on {}", text::count(self.examples(), "example"))
    }

    fn class_rows(&self) -> Vec<Vec<String>> {
        let row = |class: super::ClassScore| {
            vec![
                class.label,
                text::thousands(class.examples as usize),
                share(class.precision),
                share(class.recall),
                share(class.f1),
            ]
        };
        self.classes().into_iter().map(row).collect()
    }

    /// The page: static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title(&self.title());
        for line in self.summary() {
            html += &sentence(&line);
        }
        html += &table(&heads(1, &CLASS_HEADS), &self.class_rows(), None);
        if let Some(calibration) = self.calibration() {
            let chart = calibration.chart();
            html += &picture(&chart.svg(), &calibration.summary());
        }
        let errors = self.errors(ERRORS);
        if errors.of > 0 {
            html += &errors.to_html();
        }
        html
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("{}\n  {}\n\n", self.title(), self.summary().join("\n  "));
        plain += &table_text(&heads(1, &CLASS_HEADS), &self.class_rows());
        let errors = self.errors(ERRORS);
        if errors.of > 0 {
            plain += &format!("\n{}", errors.to_plain());
        }
        plain
    }
}

const CLASS_HEADS: [&str; 5] = ["class", "examples", "precision", "recall", "F1"];
const ERROR_HEADS: [&str; 5] = ["row", "text", "label", "prediction", "probability"];

impl WrongAnswers {
    fn title(&self) -> String {
        match (self.rows.len(), self.of) {
            (_, 0) => "no wrong answer".to_owned(),
            (shown, of) if shown == of => text::count(of, "wrong answer"),
            (shown, of) => format!(
                "{} of {}, the ones with the highest probability first",
                shown,
                text::count(of, "wrong answer")
            ),
        }
    }

    fn table_rows(&self) -> Vec<Vec<String>> {
        let name = |class: usize| self.label_names.get(class).cloned().unwrap_or_default();
        let rows = self.rows.iter().map(|answer| {
            let mut words = text::excerpt(&answer.text, EXCERPT);
            if let Some(pair) = &answer.pair {
                words += &format!(" ⏐ {}", text::excerpt(pair, EXCERPT));
            }
            vec![
                answer.row.to_string(),
                words,
                name(answer.label),
                name(answer.predicted),
                format!("{:.4}", answer.confidence()),
            ]
        });
        rows.collect()
    }

    /// A row for each as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let rows = self.table_rows();
        match rows.is_empty() {
            true => title(&self.title()),
            false => title(&self.title()) + &table(&heads(4, &ERROR_HEADS), &rows, None),
        }
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let rows = self.table_rows();
        match rows.is_empty() {
            true => self.title(),
            false => format!(
                "{}\n{}",
                self.title(),
                table_text(&heads(4, &ERROR_HEADS), &rows)
            ),
        }
    }
}
