//! [`DataMap`]: how sure training was of each example's label, and how much that changed from epoch to epoch.
//! Source: Swayamdipta et al. 2020, "Dataset Cartography". Suspected labels: the threshold of Northcutt et al. 2021,
//! "Confident Learning".

use std::fmt::{self, Write};

use stratoscope_render::chart::{Chart, Content, Scale, Series};
use stratoscope_render::html::{DATA_TABLE_STYLE, data_table, escape, picture};
use stratoscope_render::text;

use super::{notes_html, number, title_html};
use crate::html::{CELL, HEAD};

/// Points of a picture; of more examples every nth is drawn, and all that are suspected.
const MAX_POINTS: usize = 3000;
/// Suspected examples of a table; the others are counted.
const MOST_SUSPECTS: usize = 20;

/// What training passes have said of an example.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedExample {
    /// Its row in the data set of the run, counted from 0.
    pub row: usize,
    /// Its text, decoded; the features of a numeric example.
    pub text: String,
    /// The name of its label.
    pub label: String,
    /// The class of its label.
    pub class: usize,
    /// The mean over the epochs of the probability of its label.
    pub confidence: f64,
    /// The standard deviation of that probability over the epochs.
    pub variability: f64,
    /// The share of epochs in which its label was predicted.
    pub correctness: f64,
    /// The class that was predicted most often.
    pub predicted_class: usize,
    /// Its name.
    pub predicted: String,
    /// Whether training passes say that the label is wrong: another class was predicted in most epochs, and in the
    /// last one with a probability that examples of that class have on average.
    pub suspected: bool,
    /// In how many epochs it was seen.
    pub epochs: usize,
}

/// Examples by confidence and variability. Everything in it is evidence of the training passes themselves: with
/// dropout, while the weights changed, on examples that the model was fitted to.
#[derive(Clone, PartialEq)]
pub struct DataMap {
    /// The examples that were seen, in the order of their rows.
    pub examples: Vec<MappedExample>,
    /// How many epochs were recorded, an unfinished one included.
    pub epochs: usize,
    /// What is to be known beside the picture, a sentence each.
    pub notes: Vec<String>,
}

impl DataMap {
    /// Examples whose label is probably wrong, the least confident first.
    pub fn suspects(&self) -> Vec<&MappedExample> {
        self.ordered(|it| it.suspected, |it| it.confidence)
    }

    /// The examples that are learned from the beginning: the most confident first.
    pub fn easy(&self) -> Vec<&MappedExample> {
        self.ordered(|_| true, |it| -it.confidence)
    }

    /// The examples that are not learned: the least confident first.
    pub fn hard(&self) -> Vec<&MappedExample> {
        self.ordered(|_| true, |it| it.confidence)
    }

    /// The examples on which training changes its mind: the most variable first.
    pub fn ambiguous(&self) -> Vec<&MappedExample> {
        self.ordered(|_| true, |it| -it.variability)
    }

    fn ordered(
        &self,
        keep: impl Fn(&MappedExample) -> bool,
        by: impl Fn(&MappedExample) -> f64,
    ) -> Vec<&MappedExample> {
        let mut examples: Vec<_> = self.examples.iter().filter(|&it| keep(it)).collect();
        examples.sort_by(|a, b| by(a).total_cmp(&by(b)));
        examples
    }

    fn title(&self) -> String {
        let epochs = text::count(self.epochs, "epoch");
        let suspects = self.examples.iter().filter(|it| it.suspected).count();
        format!(
            "data map of {} over {epochs}: {suspects} with a label that training passes contradict",
            text::count(self.examples.len(), "example")
        )
    }

    /// The picture as SVG: a point for each example, suspected ones in orange and above the others.
    pub fn svg(&self) -> String {
        let step = self.examples.len().div_ceil(MAX_POINTS).max(1);
        let drawn = self.examples.iter().enumerate();
        let drawn = drawn.filter(|(index, it)| index % step == 0 || it.suspected);
        let (suspected, others): (Vec<_>, Vec<_>) = drawn
            .take(2 * MAX_POINTS)
            .map(|(_, it)| it)
            .partition(|it| it.suspected);
        let series = |name: &str, examples: Vec<&MappedExample>| {
            let points = examples.iter().map(|it| (it.variability, it.confidence));
            Series::new(name, points.collect())
        };
        let chart = Chart {
            x: "variability: standard deviation over epochs".to_owned(),
            y: "confidence: mean p(label)".to_owned(),
            // The standard deviation of numbers between 0 and 1 is at most a half.
            x_scale: Scale::Between(0.0, 0.5),
            y_scale: Scale::Between(0.0, 1.0),
            size: (400.0, 380.0),
            description: self.title(),
            ..Chart::of(Content::Points(vec![
                series("example", others),
                series("suspected label", suspected),
            ]))
        };
        chart.svg()
    }

    /// Picture and suspected labels as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        html += &picture(&self.svg(), &self.title());
        let suspects = self.suspects();
        if !suspects.is_empty() {
            html += &data_table(DATA_TABLE_STYLE);
            html += "<caption \
                     style=\"text-align:left;font-size:13px\">Suspected labels (evidence of the training set)</caption>\
                     <thead><tr>";
            // Writing to a string cannot fail.
            for name in [
                "row",
                "example",
                "label",
                "predicted",
                "confidence",
                "variability",
            ] {
                let _ = write!(
                    html,
                    "<th scope=\"col\" style=\"{HEAD};text-align:left\">{name}</th>"
                );
            }
            html.push_str("</tr></thead><tbody>");
        }
        for it in suspects.iter().take(MOST_SUSPECTS) {
            let left = format!("{CELL};text-align:left");
            let _ = write!(
                html,
                "<tr><th scope=\"row\" style=\"{left};font-weight:400\">{}</th><td style=\"{left}\">{}</td>\
                 <td style=\"{left}\">{}</td><td style=\"{left};color:#c8641e;font-weight:600\">{}</td>\
                 <td style=\"{left}\">{}</td><td style=\"{left}\">{}</td></tr>",
                it.row,
                escape(&text::excerpt(&it.text, 100)),
                escape(&it.label),
                escape(&it.predicted),
                number(it.confidence),
                number(it.variability)
            );
        }
        if !suspects.is_empty() {
            html.push_str("</tbody></table>");
        }
        html + &notes_html(&self.all_notes(suspects.len()))
    }

    fn all_notes(&self, suspects: usize) -> Vec<String> {
        let mut notes = self.notes.clone();
        if suspects > MOST_SUSPECTS {
            let rest = suspects - MOST_SUSPECTS;
            notes.push(format!("{rest} more are suspected: `.suspects()` has all"));
        }
        notes
    }

    /// The suspected labels, a line each.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title() + "\n";
        let suspects = self.suspects();
        for it in suspects.iter().take(MOST_SUSPECTS) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                plain,
                "{:>5}  {} → {}?  confidence {}, variability {}  {}",
                it.row,
                it.label,
                it.predicted,
                number(it.confidence),
                number(it.variability),
                text::excerpt(&it.text, 80)
            );
        }
        for note in self.all_notes(suspects.len()) {
            plain += &note;
            plain.push('\n');
        }
        plain
    }
}

impl fmt::Display for DataMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for DataMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(row: usize, confidence: f64, suspected: bool) -> MappedExample {
        MappedExample {
            row,
            text: "<text>".to_owned(),
            label: "a&b".to_owned(),
            class: 0,
            confidence,
            variability: 0.1 * confidence,
            correctness: 0.0,
            predicted_class: 1,
            predicted: "c".to_owned(),
            suspected,
            epochs: 3,
        }
    }

    #[test]
    fn suspects_are_listed_the_least_confident_first() {
        let map = DataMap {
            examples: vec![
                example(0, 0.3, true),
                example(1, 0.9, false),
                example(2, 0.1, true),
            ],
            epochs: 3,
            notes: Vec::new(),
        };
        let rows =
            |examples: Vec<&MappedExample>| examples.iter().map(|it| it.row).collect::<Vec<_>>();
        assert_eq!(rows(map.suspects()), [2, 0]);
        assert_eq!(
            (rows(map.easy()), rows(map.hard())),
            (vec![1, 0, 2], vec![2, 0, 1])
        );
        assert_eq!(rows(map.ambiguous()), [1, 0, 2]);
        let html = map.to_html();
        assert!(
            html.contains("a&amp;b") && html.contains("&lt;text&gt;") && !html.contains("<text>")
        );
        assert!(html.contains("evidence of the training set") && !html.contains("<svg"));
        assert!(map.to_plain().contains("a&b → c?"), "{map}");
    }

    #[test]
    fn large_maps_are_bounded() {
        let examples = (0..50_000).map(|row| example(row, 0.5, false));
        let map = DataMap {
            examples: examples.collect(),
            epochs: 1,
            notes: Vec::new(),
        };
        assert!(map.to_html().len() < 200_000, "{}", map.to_html().len());
        let none = DataMap {
            examples: Vec::new(),
            ..map
        };
        assert!(none.to_html().contains("0 examples"));
    }
}
