//! Results of the same training several times: a row for each, their mean and how much they differ.

use stratoscope_render::text;

use crate::page::{heads, sentence, table, table_text, title};
use crate::scores::{Scores, names, number};

/// Numbered results.
pub(crate) struct Spread<'a> {
    /// What a number is: `seed`.
    pub noun: &'static str,
    pub runs: &'a [(u64, Scores)],
}

impl Spread<'_> {
    fn values(&self, name: &str) -> Vec<f64> {
        let values = self.runs.iter().filter_map(|(_, scores)| scores.get(name));
        values.collect()
    }

    pub fn mean(&self, name: &str) -> Option<f64> {
        let values = self.values(name);
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// With n − 1; `None` for fewer than two.
    pub fn deviation(&self, name: &str) -> Option<f64> {
        let (values, mean) = (self.values(name), self.mean(name)?);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
    }

    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let names = names(self.runs.iter().map(|(_, scores)| scores));
        let row = |first: String, value: &dyn Fn(&str) -> Option<f64>| {
            let values = names.iter().map(|name| number(value(name)));
            std::iter::once(first)
                .chain(values)
                .collect::<Vec<String>>()
        };
        let runs = self.runs.iter();
        let mut rows: Vec<Vec<String>> = runs
            .map(|(own, scores)| row(own.to_string(), &|name| scores.get(name)))
            .collect();
        rows.push(row("mean".to_owned(), &|name| self.mean(name)));
        rows.push(row("deviation".to_owned(), &|name| self.deviation(name)));
        let head = std::iter::once(self.noun.to_owned()).chain(names).collect();
        (head, rows)
    }

    fn title(&self) -> String {
        let mut title = format!("{}: ", text::count(self.runs.len(), self.noun));
        let names = names(self.runs.iter().map(|(_, scores)| scores));
        let of = |name: &String| {
            let mean = number(self.mean(name));
            match self.deviation(name) {
                Some(deviation) => format!("{name} {mean} ± {deviation:.4}"),
                None => format!("{name} {mean}"),
            }
        };
        title += &names.iter().map(of).collect::<Vec<_>>().join(", ");
        title
    }

    /// Of those that failed, and how many were not run.
    pub fn notes(&self, failed: &[(u64, String)], left_out: usize) -> Vec<String> {
        let noun = self.noun;
        let failed = failed.iter();
        let mut notes: Vec<String> = failed
            .map(|(own, message)| format!("{noun} {own} ended with an error: {message}"))
            .collect();
        if left_out > 0 {
            let left_out = text::count(left_out, noun);
            notes.push(format!("interrupted: {left_out} not run"));
        }
        notes
    }

    /// A row for each, mean and deviation, as static HTML with inline styles only.
    pub fn to_html(&self, notes: &[String]) -> String {
        let (head, rows) = self.table();
        let notes: String = notes.iter().map(|note| sentence(note)).collect();
        title(&self.title()) + &table(&heads(1, &head), &rows, Some(self.runs.len())) + &notes
    }

    /// The same as text.
    pub fn to_plain(&self, notes: &[String]) -> String {
        let (head, rows) = self.table();
        let text = table_text(&heads(1, &head), &rows);
        let notes = notes.iter().map(|note| format!("{note}\n"));
        std::iter::once(format!("{}\n{text}", self.title()))
            .chain(notes)
            .collect()
    }
}
