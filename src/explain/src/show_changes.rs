//! How changed predictions and maps of patching are shown: tables, a heat map, text.

use stratoscope_evaluation::page::{heads, sentence, table, table_text, title};
use stratoscope_render::chart::Grid;
use stratoscope_render::html::picture;
use stratoscope_render::text::{count, excerpt, names, visible};

use crate::intervention::{Answer, ChangedPredictions};
use crate::patching::PatchMap;

/// Letters of a text that are shown.
const MAX_LETTERS: usize = 60;
/// Texts of the table.
const MAX_TEXTS: usize = 40;
/// Logits that are shown one by one.
const MAX_LOGITS: usize = 4;
/// Layers and heads up to which cells have their numbers.
const MAX_WITH_NUMBERS: usize = 12;

const COLUMNS: [&str; 4] = ["text", "prediction", "with the change", "logits"];

impl ChangedPredictions {
    fn title(&self) -> String {
        format!(
            "predictions with {}",
            names(&self.changes, 4).replace('`', "")
        )
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let both = self.before.iter().zip(&self.after);
        let rows = self.texts.iter().zip(both).take(MAX_TEXTS);
        rows.map(|(text, (before, after))| {
            vec![
                excerpt(text, MAX_LETTERS),
                answer(before),
                answer(after),
                logits(before, after),
            ]
        })
        .collect()
    }

    fn sentences(&self) -> Vec<String> {
        let both = self.before.iter().zip(&self.after);
        let other = both.filter(|(before, after)| before.label != after.label);
        let mut sentences = vec![format!(
            "{} of {} with another prediction",
            other.count(),
            count(self.texts.len(), "text")
        )];
        if self.texts.len() > MAX_TEXTS {
            sentences.push(format!("the first {MAX_TEXTS} are listed"));
        }
        sentences
    }

    /// Static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title(&self.title());
        html += &table(&heads(4, &COLUMNS), &self.rows(), None);
        html.extend(self.sentences().iter().map(|it| sentence(it)));
        html
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let rows = table_text(&heads(4, &COLUMNS), &self.rows());
        let mut plain = format!("{}\n{rows}", self.title());
        for sentence in self.sentences() {
            plain += &format!("{sentence}\n");
        }
        visible(&plain)
    }
}

fn answer(answer: &Answer) -> String {
    format!("{} {:.3}", answer.label, answer.probability())
}

/// Before and after; of many logits the one that has changed most.
fn logits(before: &Answer, after: &Answer) -> String {
    let list = |logits: &[f64]| {
        let logits = logits.iter().map(|it| format!("{it:.3}"));
        logits.collect::<Vec<_>>().join(" ")
    };
    if before.logits.len() <= MAX_LOGITS {
        return format!("{} → {}", list(&before.logits), list(&after.logits));
    }
    let pairs = before.logits.iter().zip(&after.logits).enumerate();
    let largest =
        pairs.max_by(|(_, (a, b)), (_, (c, d))| (*a - *b).abs().total_cmp(&(*c - *d).abs()));
    largest.map_or_else(String::new, |(class, (old, new))| {
        format!("class {class}: {old:.3} → {new:.3}")
    })
}

impl PatchMap {
    fn title(&self) -> String {
        let method = match self.is_estimate {
            true => "attribution patching",
            false => "activation patching",
        };
        format!("{method}: {}", self.score)
    }

    /// A column for each head, and one for the whole layer.
    fn columns(&self) -> Vec<String> {
        let count = self.heads.first().map_or(0, Vec::len);
        let heads = (0..count).map(|head| format!("head {head}"));
        heads.chain(["layer".to_owned()]).collect()
    }

    fn names_of_rows(&self) -> Vec<String> {
        (0..self.layers.len())
            .map(|layer| format!("layer {layer}"))
            .collect()
    }

    fn get(&self, layer: usize, column: usize) -> f64 {
        let head = self.heads.get(layer).and_then(|heads| heads.get(column));
        head.or(self.layers.get(layer)).copied().unwrap_or(0.0)
    }

    /// The head with the largest number, whatever its sign.
    fn largest(&self) -> Option<(usize, usize, f64)> {
        let all = self.heads.iter().enumerate().flat_map(|(layer, heads)| {
            let heads = heads.iter().enumerate();
            heads.map(move |(head, number)| (layer, head, *number))
        });
        all.max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()))
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!(
            "clean text: {:+.4}, corrupted text: {:+.4}. Each number is what the score of the corrupted text gains from the \
             clean activation of that place{}",
            self.clean,
            self.corrupted,
            match self.is_estimate {
                true => ", to first order (gradient × difference)",
                false => "",
            }
        )];
        if let Some((layer, head, number)) = self.largest() {
            sentences.push(format!(
                "largest: layer {layer}, head {head} with {number:+.4}"
            ));
        }
        sentences
    }

    /// The heat map as SVG: blue raises the score, orange lowers it; the darker the more. Heads have a scale of their own,
    /// since a whole layer does more than one head.
    pub fn svg(&self) -> String {
        let (rows, columns) = (self.names_of_rows(), self.columns());
        let most = |numbers: &mut dyn Iterator<Item = &f64>| {
            numbers.fold(1e-30_f64, |most, number| most.max(number.abs()))
        };
        let of_heads = most(&mut self.heads.iter().flatten());
        let of_layers = most(&mut self.layers.iter());
        let cell = |row: usize, column: usize| {
            let number = self.get(row, column);
            let most = match column + 1 == columns.len() {
                true => of_layers,
                false => of_heads,
            };
            (number / most, format!("{number:+.2}"))
        };
        Grid {
            rows: &rows,
            columns: &columns,
            cell: &cell,
            has_texts: columns.len() <= MAX_WITH_NUMBERS + 1,
            title: &self.title(),
        }
        .svg()
    }

    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let columns = self.columns();
        let rows = self.names_of_rows().into_iter().enumerate();
        let rows = rows.map(|(layer, name)| {
            let numbers =
                (0..columns.len()).map(|column| format!("{:+.4}", self.get(layer, column)));
            std::iter::once(name).chain(numbers).collect()
        });
        let rows = rows.collect();
        (
            std::iter::once(String::new()).chain(columns).collect(),
            rows,
        )
    }

    /// The heat map and its numbers, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title(&self.title());
        html += &picture(&self.svg(), &self.title());
        html.extend(self.sentences().iter().map(|it| sentence(it)));
        let (columns, rows) = self.table();
        html +=
            "<details style=\"font-size:13px\"><summary style=\"cursor:pointer\">numbers</summary>";
        html + &table(&heads(1, &columns), &rows, None) + "</details>"
    }

    /// The numbers as text.
    pub fn to_plain(&self) -> String {
        let (columns, rows) = self.table();
        let mut plain = format!(
            "{}\n{}",
            self.title(),
            table_text(&heads(1, &columns), &rows)
        );
        for sentence in self.sentences() {
            plain += &format!("{sentence}\n");
        }
        visible(&plain)
    }
}
