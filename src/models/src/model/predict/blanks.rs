//! Masks in texts, filled in: the most probable tokens for each.

use std::fmt::Write;

use stratoscope_data::{Example, Piece, Tokenize};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::{Blank, Prediction, Predictions};
use crate::report::html::{CELL, HEAD, escape};
use stratoscope_step::head::softmax;

/// Tokens that are kept for a mask.
const CHOICES: usize = 5;

/// What fills the masks of a data set.
pub(super) struct Filler<'a> {
    pub tokenizer: &'a dyn Tokenize,
    pub max_length: usize,
    /// V, the numbers of each mask.
    pub vocabulary: usize,
}

impl Filler<'_> {
    /// The answer for an example, by its outputs: V numbers for each of its masks in their order. What follows belongs to
    /// the masks that other examples of the batch have.
    ///
    /// # Errors
    /// Those of the tokenizer.
    pub fn answer(&self, example: Example, outputs: &[f32]) -> Result<Prediction> {
        let pair = example.pair.as_deref();
        let encoded = (self.tokenizer).encode_pieces(&example.text, pair, self.max_length)?;
        let (encoding, pieces) = encoded.unwrap_or_default();
        let mask = self.tokenizer.mask_id();
        let each = encoding.ids.iter().zip(pieces);
        let of_masks = each.filter_map(|(id, piece)| piece.filter(|_| Some(*id) == mask));
        let rows = outputs.chunks_exact(self.vocabulary.max(1));
        let blanks: Vec<Blank> = of_masks
            .zip(rows)
            .map(|(piece, row)| {
                let text = match piece.in_pair {
                    true => pair.unwrap_or_default(),
                    false => &example.text,
                };
                self.blank(&piece, text, row)
            })
            .collect();
        let scores = blanks.iter().filter_map(|blank| blank.choices.first());
        let score = scores.map(|(_, score)| *score).fold(1.0, f64::min);
        let of_text = blanks.iter().filter(|blank| !blank.in_pair);
        Ok(Prediction {
            label: with_the_best(
                &example.text,
                of_text,
                |it| it.to_owned(),
                |it| it.to_owned(),
            ),
            score,
            blanks,
            text: example.text,
            pair: example.pair,
            ..Prediction::default()
        })
    }

    /// What fills a mask of a text. A mask may take the blank before it as its own, which stays in the text.
    fn blank(&self, piece: &Piece, text: &str, outputs: &[f32]) -> Blank {
        let bytes = piece.trimmed(text);
        let probabilities = softmax(outputs);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        let better = |a: &usize, b: &usize| {
            let by_probability = probabilities[*b].total_cmp(&probabilities[*a]);
            by_probability.then(a.cmp(b))
        };
        if order.len() > CHOICES {
            order.select_nth_unstable_by(CHOICES - 1, better);
            order.truncate(CHOICES);
        }
        order.sort_by(better);
        let choice = |id: usize| (self.word(id as u32), probabilities[id]);
        Blank {
            start: bytes.start,
            end: bytes.end,
            in_pair: piece.in_pair,
            choices: order.into_iter().map(choice).collect(),
        }
    }

    /// A token as it is read; one that goes on with a word keeps its `##`.
    fn word(&self, id: u32) -> String {
        let token = self.tokenizer.tokens(&[id]).pop().unwrap_or_default();
        let decoded = self.tokenizer.decode(&[id]);
        match decoded.trim() {
            "" => token,
            _ if token.starts_with("##") => token,
            word => word.to_owned(),
        }
    }
}

/// A text with the best token at each mask. `plain` and `marked` write what stands between, and what was filled in.
fn with_the_best<'b>(
    text: &str,
    blanks: impl Iterator<Item = &'b Blank>,
    plain: impl Fn(&str) -> String,
    marked: impl Fn(&str) -> String,
) -> String {
    let (mut filled, mut end) = (String::new(), 0);
    for blank in blanks {
        let before = text.get(end..blank.start).unwrap_or_default();
        let best = blank.choices.first().map_or("", |(token, _)| token);
        match best.strip_prefix("##") {
            // It goes on with the word before it.
            Some(rest) => {
                filled.push_str(&plain(before.trim_end()));
                filled.push_str(&marked(rest));
            }
            None => {
                filled.push_str(&plain(before));
                filled.push_str(&marked(best));
            }
        }
        end = blank.end;
    }
    filled.push_str(&plain(text.get(end..).unwrap_or_default()));
    filled
}

/// What was filled in, in color.
fn in_color(token: &str) -> String {
    format!(
        "<span style=\"background-color:#4caf7055;border-radius:4px;padding:2px 5px\">{}</span>",
        escape(token)
    )
}

impl Predictions {
    /// Whether masks were filled in.
    pub(super) fn are_filled(&self) -> bool {
        self.rows.iter().any(|row| !row.blanks.is_empty())
    }

    /// The texts with the best tokens in color, and the tokens of each mask, as static HTML with inline styles only.
    pub(super) fn filled_to_html(&self) -> String {
        const BAR: &str =
            "display:inline-block;height:9px;background-color:#3b82c4;border-radius:2px";
        let mut html = String::from("<div style=\"font-size:13px;line-height:1.9\">");
        for row in &self.rows {
            let of = |in_pair: bool| row.blanks.iter().filter(move |it| it.in_pair == in_pair);
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<div style=\"margin:4px 0\">{}",
                with_the_best(&row.text, of(false), escape, in_color)
            );
            if let Some(pair) = &row.pair {
                let pair = with_the_best(pair, of(true), escape, in_color);
                let _ = write!(html, "<br>{pair}");
            }
            html.push_str("</div>");
            for (number, blank) in row.blanks.iter().enumerate() {
                let name = match row.blanks.len() {
                    1 => "token".to_owned(),
                    _ => format!("token at mask {}", number + 1),
                };
                let _ = write!(
                    html,
                    "<table style=\"border-collapse:collapse;font-size:13px;margin:2px 0 10px 0\">\
                     <tr><th style=\"{HEAD};text-align:left\">{name}</th>\
                     <th style=\"{HEAD};text-align:left\">probability</th></tr>"
                );
                for (token, score) in &blank.choices {
                    let _ = write!(
                        html,
                        "<tr><td style=\"{CELL};text-align:left\">{}</td><td style=\"{CELL};text-align:left\">\
                         <span style=\"{BAR};width:{:.0}px\"></span> {:.1} %</td></tr>",
                        escape(token),
                        120.0 * score,
                        100.0 * score
                    );
                }
                html.push_str("</table>");
            }
        }
        html.push_str("</div>");
        html
    }

    /// The filled text, and below it the tokens of each mask.
    pub(super) fn filled_to_plain(&self) -> String {
        let mut plain = String::new();
        for row in &self.rows {
            let of = |in_pair: bool| row.blanks.iter().filter(move |it| it.in_pair == in_pair);
            let bracketed = |token: &str| format!("[{token}]");
            plain += &with_the_best(&row.text, of(false), str::to_owned, bracketed);
            if let Some(pair) = &row.pair {
                plain += " | ";
                plain += &with_the_best(pair, of(true), str::to_owned, bracketed);
            }
            plain.push('\n');
            for blank in &row.blanks {
                let choices = blank.choices.iter();
                let choices =
                    choices.map(|(token, score)| format!("{token} {:.1} %", 100.0 * score));
                let choices: Vec<String> = choices.collect();
                // Writing to a string cannot fail.
                let _ = writeln!(plain, "  {}", choices.join(", "));
            }
        }
        text::visible(&plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_tokens_stand_in_the_text() {
        let blank = |start: usize, choices: &[(&str, f64)]| Blank {
            start,
            end: start + 6,
            in_pair: false,
            choices: choices
                .iter()
                .map(|(token, score)| ((*token).to_owned(), *score))
                .collect(),
        };
        let text = "a [MASK] <b> serv [MASK].";
        let blanks = vec![
            blank(2, &[("mail", 0.75), ("web", 0.125)]),
            blank(18, &[("##er", 0.5)]),
        ];
        let label = with_the_best(text, blanks.iter(), str::to_owned, str::to_owned);
        assert_eq!(label, "a mail <b> server.");
        let row = Prediction {
            text: text.to_owned(),
            label,
            blanks,
            ..Prediction::default()
        };
        let predictions = Predictions {
            rows: vec![row],
            label_names: Vec::new(),
            cut: None,
        };
        assert_eq!(
            predictions.to_plain(),
            "a [mail] <b> serv[er].\n  mail 75.0 %, web 12.5 %\n  ##er 50.0 %\n"
        );
        let html = predictions.to_html();
        assert!(
            html.contains("&lt;b&gt;") && html.contains("token at mask 2"),
            "{html}"
        );
        assert!(!html.contains("<b>") && !html.contains("class="));
    }
}
