//! [`Threshold`]: from which probability on an example is taken for the second of two classes.

use std::fmt;

use serde::Serialize;
use stratoscope_diagnostics::Result;

use crate::answer::Answer;
use crate::bad_value;

/// The probability of a class from which on taking it gives the best F1, on the examples that it was found on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// The class.
    pub label: String,
    /// From this probability on.
    pub probability: f64,
    /// F1 of the class with it.
    pub f1: f64,
    /// The share of examples taken for the class that have it.
    pub precision: f64,
    /// The share of examples with the class that are taken for it.
    pub recall: f64,
    /// F1 with 0.5.
    pub f1_at_half: f64,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} from {:.4} on: F1 {:.4} (precision {:.4}, recall {:.4}); from 0.5 on: F1 {:.4}. The threshold was chosen on \
             these examples: measure it on others",
            self.label, self.probability, self.f1, self.precision, self.recall, self.f1_at_half
        )
    }
}

impl Threshold {
    /// For the second of two classes.
    pub(crate) fn of(answers: &[Answer], names: &[String]) -> Result<Self> {
        let [_, label] = names else {
            let given = format!("{} classes", names.len());
            let expects = "two classes: a threshold decides between them".to_owned();
            return Err(bad_value("best_threshold", "data", given, expects));
        };
        let scored = answers.iter().map(|answer| {
            let score = answer.probabilities.get(1).copied();
            (score.unwrap_or(f64::NAN), answer.label == 1)
        });
        let mut scored: Vec<(f64, bool)> = scored.filter(|(score, _)| score.is_finite()).collect();
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let all = scored
            .iter()
            .filter(|(_, is_positive)| *is_positive)
            .count();
        if all == 0 {
            let expects = format!("an example with the label `{label}`");
            return Err(bad_value(
                "best_threshold",
                "data",
                "none".to_owned(),
                expects,
            ));
        }
        let f1 = |right: usize, taken: usize| 2.0 * right as f64 / (taken + all) as f64;
        let (mut right, mut best) = (0, (f64::NEG_INFINITY, 0, 0));
        for (index, &(score, is_positive)) in scored.iter().enumerate() {
            right += usize::from(is_positive);
            // Equal scores are on one side.
            let is_last = scored.get(index + 1).is_none_or(|next| next.0 < score);
            if is_last && f1(right, index + 1) > best.0 {
                best = (f1(right, index + 1), right, index + 1);
            }
        }
        let half = scored.iter().filter(|(score, _)| *score >= 0.5);
        let (right_at_half, taken_at_half) = half
            .fold((0, 0), |(right, taken), (_, is_positive)| {
                (right + usize::from(*is_positive), taken + 1)
            });
        let (f1_of_best, right, taken) = best;
        Ok(Self {
            label: label.clone(),
            probability: scored[taken - 1].0,
            f1: f1_of_best,
            precision: right as f64 / taken as f64,
            recall: right as f64 / all as f64,
            f1_at_half: f1(right_at_half, taken_at_half),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(scored: &[(f64, usize)]) -> Vec<Answer> {
        let of = |&(score, label): &(f64, usize)| Answer {
            row: 0,
            text: String::new(),
            pair: None,
            label,
            predicted: usize::from(score > 0.5),
            probabilities: vec![1.0 - score, score],
        };
        scored.iter().map(of).collect()
    }

    fn names() -> Vec<String> {
        vec!["ham".to_owned(), "spam".to_owned()]
    }

    #[test]
    fn the_threshold_with_the_best_f1() {
        let given = answers(&[(0.9, 1), (0.4, 1), (0.3, 1), (0.2, 0), (0.1, 0), (0.3, 0)]);
        let found = Threshold::of(&given, &names()).unwrap();
        // From 0.3 on: 3 right of 4 taken, of 3: F1 6/7. From 0.5 on: 1 of 1, of 3: F1 2/4.
        assert_eq!(
            (found.probability, found.precision, found.recall),
            (0.3, 0.75, 1.0)
        );
        assert!((found.f1 - 6.0 / 7.0).abs() < 1e-12);
        assert!((found.f1_at_half - 0.5).abs() < 1e-12);
    }

    #[test]
    fn it_needs_two_classes_and_an_example_of_the_second() {
        let three = ["a", "b", "c"].map(str::to_owned);
        for (given, names) in [
            (answers(&[(0.9, 1)]), three.as_slice()),
            (answers(&[(0.9, 0)]), &names()),
        ] {
            let problem = Threshold::of(&given, names).unwrap_err();
            assert_eq!(problem.code, "SC0103");
        }
    }
}
