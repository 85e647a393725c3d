//! Answers one by one: `predictions[0].label`, `for row in &predictions`.

use std::ops::Index;
use std::slice::Iter;
use std::vec::IntoIter;

use stratoscope_render::text;

use super::{Prediction, Predictions};

impl Predictions {
    /// The answers in their order.
    pub fn iter(&self) -> Iter<'_, Prediction> {
        self.rows.iter()
    }
}

impl Index<usize> for Predictions {
    type Output = Prediction;

    /// # Panics
    /// There is no such answer.
    #[track_caller]
    fn index(&self, position: usize) -> &Prediction {
        self.rows.get(position).unwrap_or_else(|| {
            let rows = text::count(self.len(), "prediction");
            panic!("there are {rows}, counted from 0: there is no prediction {position}")
        })
    }
}

impl<'p> IntoIterator for &'p Predictions {
    type Item = &'p Prediction;
    type IntoIter = Iter<'p, Prediction>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Predictions {
    type Item = Prediction;
    type IntoIter = IntoIter<Prediction>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictions() -> Predictions {
        let rows = ["games", "libs"].map(|label| Prediction {
            label: label.to_owned(),
            ..Prediction::default()
        });
        Predictions {
            rows: rows.to_vec(),
            label_names: Vec::new(),
            cut: None,
        }
    }

    #[test]
    fn answers_are_taken_by_place_and_in_a_loop() {
        let all = predictions();
        assert_eq!(all[1].label, "libs");
        let labels = |rows: Vec<&Prediction>| -> Vec<String> {
            rows.into_iter().map(|row| row.label.clone()).collect()
        };
        assert_eq!(labels(all.iter().collect()), ["games", "libs"]);
        assert_eq!(labels((&all).into_iter().collect()), ["games", "libs"]);
        assert_eq!(all.into_iter().count(), 2);
    }

    #[test]
    #[should_panic(expected = "there are 2 predictions, counted from 0: there is no prediction 2")]
    fn an_answer_that_is_not_there_is_named() {
        let _ = &predictions()[2];
    }
}
