//! How a sweep is shown: a table, best trial first, and a picture.

use stratoscope_render::html;

use super::{Sweep, Trial, picture};
use crate::page::{heads, sentence, table, table_text, title};
use crate::scores::number;

impl Sweep {
    /// The best trial first; those without a result last.
    fn ordered(&self) -> Vec<&Trial> {
        let mut trials: Vec<&Trial> = self.trials.iter().collect();
        if let Some(name) = self.main_score() {
            let is_smaller = self.is_smaller_better(&name);
            let key = |trial: &Trial| {
                let score = trial
                    .result
                    .as_ref()
                    .ok()
                    .and_then(|scores| scores.get(&name));
                let score = score.filter(|score| !score.is_nan());
                let sign = if is_smaller { 1.0 } else { -1.0 };
                score.map_or(f64::INFINITY, |score| sign * score)
            };
            trials.sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
        trials
    }

    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let scores = self.score_names();
        let settings = self.axes.iter().map(|axis| axis.name.clone());
        let mut head: Vec<String> = std::iter::once("trial".to_owned())
            .chain(settings)
            .collect();
        head.extend(scores.iter().cloned());
        head.push("s".to_owned());
        let has_errors = self.trials.iter().any(|trial| trial.result.is_err());
        if has_errors {
            head.push("error".to_owned());
        }
        let row = |trial: &Trial| {
            let values = self.axes.iter().zip(&trial.chosen);
            let values = values.map(|(axis, &value)| axis.values[value].clone());
            let mut row: Vec<String> = std::iter::once(trial.number.to_string())
                .chain(values)
                .collect();
            let own = trial.result.as_ref().ok();
            row.extend(
                scores
                    .iter()
                    .map(|name| number(own.and_then(|own| own.get(name)))),
            );
            row.push(format!("{:.1}", trial.seconds));
            if has_errors {
                row.push(trial.result.as_ref().err().cloned().unwrap_or_default());
            }
            row
        };
        (head, self.ordered().into_iter().map(row).collect())
    }

    /// Table and parallel coordinates as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let (head, rows) = self.table();
        let bold = self.main_score().map(|_| 0);
        let mut page =
            title(&self.title()) + &table(&heads(1 + self.axes.len(), &head), &rows, bold);
        if let Some((svg, words)) = picture::parallel_coordinates(self) {
            page += &html::picture(&svg, &words);
        }
        page + &self
            .notes()
            .iter()
            .map(|note| sentence(note))
            .collect::<String>()
    }

    /// The table as text.
    pub fn to_plain(&self) -> String {
        let (head, rows) = self.table();
        let mut plain = format!(
            "{}\n{}",
            self.title(),
            table_text(&heads(1 + self.axes.len(), &head), &rows)
        );
        for note in self.notes() {
            plain += &format!("{note}\n");
        }
        plain
    }
}
