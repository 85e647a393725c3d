//! [`Hindsight`]: what a closure made of the values of past steps, as a table and small curves. [`Probe`] is what the
//! closure gets.

use std::fmt::{self, Write};
use std::ops::Deref;

use stratoscope_render::chart::{Series, Sparkline};
use stratoscope_render::html::{DATA_TABLE_STYLE, code, data_table, picture};
use stratoscope_render::text;

use super::statistics::Statistics;
use super::{notes_html, number, title_html};
use crate::html::{CELL, HEAD};

/// Rows of the table; the others are counted.
const MOST_ROWS: usize = 60;
/// Names of outputs that are listed where nothing was collected.
const MOST_NAMES: usize = 12;
/// Width and height of a curve.
const CURVE_SIZE: (f64, f64) = (160.0, 28.0);

/// In which pass a value was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// What a layer puts out.
    Forward,
    /// The gradient of the step's loss by it, or by a parameter.
    Backward,
}

impl Direction {
    fn words(self) -> &'static str {
        match self {
            Self::Forward => "output",
            Self::Backward => "gradient",
        }
    }
}

/// A value of a step that is replayed. Its numbers are its [`Statistics`]: `tap.norm`, `tap.max`.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// What puts it out: `bert.encoder.layer.3.output`; for the gradient of a parameter, its name.
    pub name: String,
    /// The step, counted from 1 as in the history.
    pub step: u64,
    /// The output, or its gradient.
    pub direction: Direction,
    /// Which of the batches that the step accumulates.
    pub micro_batch: usize,
    /// The replica that computes it.
    pub replica: usize,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements in their order.
    pub elements: Vec<f32>,
    /// What is to be known of its elements.
    pub statistics: Statistics,
}

impl Deref for Probe {
    type Target = Statistics;

    fn deref(&self) -> &Statistics {
        &self.statistics
    }
}

/// What a closure of `hindsight` returns: a number, or nothing of a value that is of no interest.
#[diagnostic::on_unimplemented(
    message = "`hindsight` collects numbers, not `{Self}`",
    label = "a number, `Some(number)`, or nothing: end with `;`"
)]
pub trait IntoCollected {
    /// The number that is collected, if any.
    fn into_collected(self) -> Option<f64>;
}

impl IntoCollected for () {
    fn into_collected(self) -> Option<f64> {
        None
    }
}

impl IntoCollected for f64 {
    fn into_collected(self) -> Option<f64> {
        Some(self)
    }
}

impl IntoCollected for f32 {
    fn into_collected(self) -> Option<f64> {
        Some(f64::from(self))
    }
}

impl IntoCollected for u64 {
    fn into_collected(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl IntoCollected for usize {
    fn into_collected(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl IntoCollected for bool {
    fn into_collected(self) -> Option<f64> {
        Some(f64::from(u8::from(self)))
    }
}

impl<T: IntoCollected> IntoCollected for Option<T> {
    fn into_collected(self) -> Option<f64> {
        self.and_then(T::into_collected)
    }
}

/// A number that the closure returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    /// The step, counted from 1.
    pub step: u64,
    /// Of what.
    pub name: String,
    /// In which pass.
    pub direction: Direction,
    /// Which of the batches that the step accumulates.
    pub micro_batch: usize,
    /// The replica.
    pub replica: usize,
    /// The number.
    pub value: f64,
}

/// What a closure made of the values of past steps.
#[derive(Clone, PartialEq)]
pub struct Hindsight {
    /// The first step that was asked for and the last one, counted from 1.
    pub steps: (u64, u64),
    /// What the closure returned, in the order of computing.
    pub values: Vec<Collected>,
    /// The names of the outputs that the closure was called with, in the order of computing.
    pub outputs: Vec<String>,
    /// What is to be known beside the table, a sentence each.
    pub notes: Vec<String>,
}

/// What is collected of one name in one direction: by step, the mean over micro-batches and replicas.
struct Row<'a> {
    name: &'a str,
    direction: Direction,
    points: Vec<(u64, f64)>,
}

impl Hindsight {
    /// The names of which something was collected, in the order of computing.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for value in &self.values {
            if !names.contains(&value.name.as_str()) {
                names.push(&value.name);
            }
        }
        names
    }

    /// What was collected of one name: step and number, the mean where a step has several batches or replicas.
    pub fn of(&self, name: &str, direction: Direction) -> Vec<(u64, f64)> {
        let rows = self.rows();
        let row = rows
            .into_iter()
            .find(|row| row.name == name && row.direction == direction);
        row.map(|row| row.points).unwrap_or_default()
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut counts: Vec<Vec<u32>> = Vec::new();
        let mut known = std::collections::HashMap::new();
        for value in &self.values {
            let key = (value.name.as_str(), value.direction);
            let at = *known.entry(key).or_insert_with(|| {
                rows.push(Row {
                    name: &value.name,
                    direction: value.direction,
                    points: Vec::new(),
                });
                counts.push(Vec::new());
                rows.len() - 1
            });
            let (points, counts) = (&mut rows[at].points, &mut counts[at]);
            match points.last_mut() {
                Some((step, sum)) if *step == value.step => {
                    *sum += value.value;
                    if let Some(count) = counts.last_mut() {
                        *count += 1;
                    }
                }
                _ => {
                    points.push((value.step, value.value));
                    counts.push(1);
                }
            }
        }
        for (row, counts) in rows.iter_mut().zip(counts) {
            for ((_, sum), count) in row.points.iter_mut().zip(counts) {
                *sum /= f64::from(count);
            }
        }
        rows
    }

    fn title(&self) -> String {
        let (first, last) = self.steps;
        match first == last {
            true => format!("hindsight: step {first}"),
            false => format!("hindsight: steps {first} to {last}"),
        }
    }

    /// As static HTML with inline styles only: a row for each name, with a curve over the steps.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        let rows = self.rows();
        if !rows.is_empty() {
            html += &(data_table(DATA_TABLE_STYLE) + "<thead><tr>");
            for name in ["value", "of its", "first", "last", "min", "max", "by step"] {
                // Writing to a string cannot fail.
                let _ = write!(html, "<th scope=\"col\" style=\"{HEAD}\">{name}</th>");
            }
            html.push_str("</tr></thead><tbody>");
        }
        for row in rows.iter().take(MOST_ROWS) {
            let _ = write!(
                html,
                "<tr><th scope=\"row\" style=\"{CELL};font-weight:400\">{}</th><td style=\"{CELL}\">{}</td>",
                code(row.name),
                row.direction.words()
            );
            for cell in row.numbers() {
                let _ = write!(html, "<td style=\"{CELL}\">{}</td>", number(cell));
            }
            let _ = write!(html, "<td style=\"{CELL}\">{}</td></tr>", row.curve());
        }
        if !rows.is_empty() {
            html.push_str("</tbody></table>");
        }
        html + &notes_html(&self.all_notes(rows.len()))
    }

    fn all_notes(&self, rows: usize) -> Vec<String> {
        let mut notes = self.notes.clone();
        if rows == 0 {
            notes.push(format!(
                "nothing was collected: the closure returned no number. It was called with the gradients of all variables, \
                 and with the outputs {}",
                text::names(&self.outputs, MOST_NAMES)
            ));
        }
        if rows > MOST_ROWS {
            let more = text::count(rows - MOST_ROWS, "row");
            notes.push(format!("{more} more; `.values` has all"));
        }
        notes
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title() + "\n";
        let rows = self.rows();
        for row in rows.iter().take(MOST_ROWS) {
            let [first, last, least, most] = row.numbers().map(number);
            // Writing to a string cannot fail.
            let _ = writeln!(
                plain,
                "  {} {}: {first} to {last}, from {least} to {most}",
                row.direction.words(),
                row.name
            );
        }
        for note in self.all_notes(rows.len()) {
            plain.push_str(&note);
            plain.push('\n');
        }
        plain
    }
}

impl Row<'_> {
    /// The first, the last, the least and the most.
    fn numbers(&self) -> [f64; 4] {
        let values = || self.points.iter().map(|point| point.1);
        let end = |found: Option<f64>| found.unwrap_or(f64::NAN);
        [
            end(values().next()),
            end(values().next_back()),
            values().fold(f64::NAN, f64::min),
            values().fold(f64::NAN, f64::max),
        ]
    }

    /// A line through the finite numbers, with a dot at the last one.
    fn curve(&self) -> String {
        let [_, _, least, most] = self.numbers();
        let words = format!(
            "{}: {} from {} to {}",
            self.name,
            text::count(self.points.len(), "step"),
            number(least),
            number(most)
        );
        let points = self.points.iter();
        let points = points.map(|&(step, value)| (step as f64, value));
        let sparkline = Sparkline {
            series: &Series::new("", points.collect()),
            size: CURVE_SIZE,
            color: 0,
            is_last_planned: false,
            title: &words,
        };
        picture(&sparkline.svg(), &words)
    }
}

impl fmt::Display for Hindsight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for Hindsight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(step: u64, name: &str, micro_batch: usize, value: f64) -> Collected {
        Collected {
            step,
            name: name.to_owned(),
            direction: Direction::Forward,
            micro_batch,
            replica: 0,
            value,
        }
    }

    #[test]
    fn a_row_for_each_name_with_the_means_of_its_steps() {
        let hindsight = Hindsight {
            steps: (4, 5),
            values: vec![
                collected(4, "a<b>", 0, 1.0),
                collected(4, "c", 0, 7.0),
                collected(4, "a<b>", 1, 3.0),
                collected(5, "a<b>", 0, 8.0),
                collected(5, "c", 0, f64::NAN),
            ],
            outputs: vec!["embeddings".to_owned(), "pooler".to_owned()],
            notes: vec!["a note".to_owned()],
        };
        assert_eq!(hindsight.names(), ["a<b>", "c"]);
        assert_eq!(
            hindsight.of("a<b>", Direction::Forward),
            [(4, 2.0), (5, 8.0)]
        );
        assert!(hindsight.of("a<b>", Direction::Backward).is_empty());
        let html = hindsight.to_html();
        for part in [
            "a&lt;b&gt;",
            "data:image/svg+xml",
            "steps 4 to 5",
            "a note",
            "NaN",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<b>") && !html.contains("<script"));
        let plain = hindsight.to_plain();
        assert!(
            plain.contains("output a<b>: 2.000 to 8.000, from 2.000 to 8.000"),
            "{plain}"
        );
        let nothing = Hindsight {
            values: Vec::new(),
            ..hindsight
        };
        assert!(!nothing.to_html().contains("<table"));
        let plain = nothing.to_plain();
        assert!(plain.contains("nothing was collected"), "{plain}");
        assert!(plain.contains("`embeddings` and `pooler`"), "{plain}");
    }

    #[test]
    fn what_a_closure_may_return() {
        assert_eq!(().into_collected(), None);
        assert_eq!(true.into_collected(), Some(1.0));
        assert_eq!(Some(2_u64).into_collected(), Some(2.0));
        assert_eq!(None::<f64>.into_collected(), None);
        assert_eq!(0.5_f32.into_collected(), Some(0.5));
        assert_eq!(3_usize.into_collected(), Some(3.0));
    }
}
