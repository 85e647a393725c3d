//! [`AttentionMap`]: how much each word piece of an example attends to each other, by one head of one layer.

use std::fmt::{self, Write};

use stratoscope_render::chart::Grid;
use stratoscope_render::html::picture;
use stratoscope_render::text;

use super::{notes_html, number, percent, title_html};

/// Word pieces of a picture; of longer examples the first ones are drawn.
const MOST: usize = 48;
/// Word pieces of the text form.
const MOST_PLAIN: usize = 12;

/// The attention probabilities of one head for one example, before dropout: row `i` says how the position `i` weighs
/// the values of all positions. Padding is left out; what it gets is 0.
#[derive(Clone, PartialEq)]
pub struct AttentionMap {
    /// The encoder layer, counted from 0.
    pub layer: usize,
    /// The head, counted from 0.
    pub head: usize,
    /// The example's row in the data set of the run.
    pub row: usize,
    /// The word pieces without padding.
    pub pieces: Vec<String>,
    /// Row by row, as many as there are pieces; each adds up to 1.
    pub probabilities: Vec<Vec<f64>>,
    /// What is to be known beside the picture, a sentence each.
    pub notes: Vec<String>,
}

impl AttentionMap {
    /// How much `from` attends to `to`; `None` beyond the word pieces.
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        self.probabilities.get(from)?.get(to).copied()
    }

    /// The entropy of each row in bits: 0 where a position attends to one piece, log₂ of their number where it attends
    /// to all alike.
    pub fn entropy(&self) -> Vec<f64> {
        let bits = |share: &f64| {
            if *share > 0.0 {
                -share * share.log2()
            } else {
                0.0
            }
        };
        let rows = self.probabilities.iter();
        rows.map(|row| row.iter().map(bits).sum()).collect()
    }

    fn title(&self) -> String {
        format!(
            "attention of layer {}, head {}, for row {}: each line adds up to 1",
            self.layer, self.head, self.row
        )
    }

    /// What is attended to most: piece, other piece, share.
    fn strongest(&self) -> Option<(&str, &str, f64)> {
        let pieces = &self.pieces;
        let all = self.probabilities.iter().enumerate();
        let all = all.flat_map(|(from, row)| row.iter().enumerate().map(move |it| (from, it)));
        let best = all.max_by(|a, b| a.1.1.total_cmp(b.1.1))?;
        let (from, (to, share)) = best;
        Some((pieces.get(from)?, pieces.get(to)?, *share))
    }

    /// The picture as SVG: a cell for each pair of word pieces, the darker the more.
    pub fn svg(&self) -> String {
        let shown = self.pieces.len().min(MOST);
        let cell = |row: usize, column: usize| {
            let share = self.get(row, column).unwrap_or(0.0);
            (share, number(share))
        };
        let mut title = self.title();
        if let Some((from, to, share)) = self.strongest() {
            // Writing to a string cannot fail.
            let _ = write!(title, "; most: `{from}` to `{to}`, {}", number(share));
        }
        Grid {
            rows: &self.pieces[..shown],
            columns: &self.pieces[..shown],
            cell: &cell,
            has_texts: false,
            title: &title,
        }
        .svg()
    }

    fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if let Some((from, to, share)) = self.strongest() {
            notes.push(format!(
                "most: `{from}` attends to `{to}` with {}",
                number(share)
            ));
        }
        if self.pieces.len() > MOST {
            let rest = text::count(self.pieces.len() - MOST, "word piece");
            notes.push(format!(
                "{rest} more are not drawn: `.probabilities` has all"
            ));
        }
        notes
    }

    /// Picture and numbers as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        html += &picture(&self.svg(), &self.title());
        html += &self.table_html();
        html + &notes_html(&self.all_notes())
    }

    /// The numbers for who does not see the picture.
    fn table_html(&self) -> String {
        use stratoscope_render::html::escape;
        let shown = self.pieces.len().min(MOST_PLAIN);
        let mut html = String::from(
            "<details style=\"font-size:13px\"><summary style=\"cursor:pointer\">numbers</summary>\
             <table style=\"border-collapse:collapse;font-size:12px\"><thead><tr><th scope=\"col\">from ↓ to →</th>",
        );
        // Writing to a string cannot fail.
        for piece in &self.pieces[..shown] {
            let _ = write!(html, "<th scope=\"col\">{}</th>", escape(piece));
        }
        html.push_str("</tr></thead><tbody>");
        for (piece, row) in self.pieces.iter().zip(&self.probabilities).take(shown) {
            let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(piece));
            for share in row.iter().take(shown) {
                let _ = write!(html, "<td>{}</td>", number(*share));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></details>");
        html
    }

    /// What each word piece attends to most, a line each.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title() + "\n";
        let width = self
            .pieces
            .iter()
            .map(|piece| piece.chars().count())
            .max()
            .unwrap_or(0);
        for (piece, row) in self.pieces.iter().zip(&self.probabilities).take(MOST) {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let most = order.iter().take(3).map(|&to| {
                let share = percent((row[to] * 1000.0).round() as u64, 1000);
                format!("{} {share}", self.pieces[to])
            });
            // Writing to a string cannot fail.
            let _ = writeln!(
                plain,
                "{piece:>width$} → {}",
                most.collect::<Vec<_>>().join(", ")
            );
        }
        for note in self.all_notes() {
            plain += &note;
            plain.push('\n');
        }
        plain
    }
}

impl fmt::Display for AttentionMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for AttentionMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_a_picture_numbers_and_text() {
        let map = AttentionMap {
            layer: 1,
            head: 2,
            row: 7,
            pieces: vec!["<a>".to_owned(), "b".to_owned()],
            probabilities: vec![vec![0.25, 0.75], vec![0.5, 0.5]],
            notes: Vec::new(),
        };
        assert_eq!((map.get(0, 1), map.get(2, 0)), (Some(0.75), None));
        assert!((map.entropy()[1] - 1.0).abs() < 1e-12);
        let svg = map.svg();
        assert!(svg.contains("<title>&lt;a&gt; → b: 0.7500</title>") && !svg.contains("<a>"));
        assert_eq!(svg.matches("<rect").count(), 4);
        let html = map.to_html();
        assert!(html.contains("<th scope=\"row\">&lt;a&gt;</th>") && !html.contains("<svg"));
        assert!(map.to_plain().contains("<a> → b 75 %, <a> 25 %"), "{map}");
        let empty = AttentionMap {
            pieces: Vec::new(),
            probabilities: Vec::new(),
            ..map
        };
        assert!(empty.to_html().contains("layer 1") && empty.entropy().is_empty());
    }
}
