//! F1, the harmonic mean of precision and recall: 2·TP / (2·TP + FP + FN).

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// F1 of one class; undefined if it is neither there nor predicted.
fn of_class(tally: &Tally, class: usize) -> Option<f64> {
    let right = tally.count(class, class);
    ratio(
        2.0 * right as f64,
        (tally.labelled(class) + tally.predicted(class)) as f64,
    )
}

/// The mean over all classes, an undefined one counting as 0.
fn of_all_classes(tally: &Tally) -> Option<f64> {
    if tally.examples() == 0 {
        return None;
    }
    let sum: f64 = (0..tally.classes())
        .map(|class| of_class(tally, class).unwrap_or(0.0))
        .sum();
    ratio(sum, tally.classes() as f64)
}

/// [`f1`](super::f1()).
#[derive(Clone, Copy, Debug)]
pub(super) struct F1;

impl Measure for F1 {
    fn name(&self) -> &'static str {
        "f1"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        of_class(tally, 1)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::of_two_classes(answers, "`macro_f1()`, as there are more than two classes")
    }
}

/// [`macro_f1`](super::macro_f1()).
#[derive(Clone, Copy, Debug)]
pub(super) struct MacroF1;

impl Measure for MacroF1 {
    fn name(&self) -> &'static str {
        "macro_f1"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        match &tally.sets {
            Some(sets) => sets.macro_f1(),
            None => of_all_classes(tally),
        }
    }

    fn fit(&self, answers: Answers) -> Fit {
        let is_of_words = matches!(answers, Answers::Set | Answers::Words);
        Fit::when(answers.are_classes() || is_of_words)
    }
}
