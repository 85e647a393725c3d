//! Cohen's kappa: how much more often labels and predictions agree than by chance. Source: Cohen 1960, "A coefficient of agreement for
//! nominal scales": κ = (p_o − p_c) / (1 − p_c), where p_o is the share of examples that agree, and p_c the share that would agree by
//! chance. scikit-learn's `cohen_kappa_score`.

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// [`cohen_kappa`](super::cohen_kappa()).
#[derive(Clone, Copy, Debug)]
pub(super) struct CohenKappa;

impl Measure for CohenKappa {
    fn name(&self) -> &'static str {
        "cohen_kappa"
    }

    /// Undefined if all labels and all predictions are of one class. Both shares are multiplied with the square of the number of
    /// examples, so that the sums are whole numbers.
    fn value(&self, tally: &Tally) -> Option<f64> {
        let examples = tally.examples() as f64;
        let (mut agreed, mut by_chance) = (0.0, 0.0);
        for class in 0..tally.classes() {
            agreed += tally.count(class, class) as f64;
            by_chance += tally.labelled(class) as f64 * tally.predicted(class) as f64;
        }
        ratio(
            agreed * examples - by_chance,
            examples * examples - by_chance,
        )
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(answers.are_classes() || answers == Answers::Words)
    }
}

#[cfg(test)]
mod tests {
    use crate::metric::{Answers, Metric, Tally, cohen_kappa};

    fn tally(counts: [(usize, usize, u32); 4]) -> Tally {
        let mut tally = Tally::of_classes(2);
        for (label, predicted, count) in counts {
            (0..count).for_each(|_| tally.add_class(label, predicted));
        }
        tally
    }

    /// p_o = 35/50 and p_c = 1/2 · 3/5 + 1/2 · 2/5 = 1/2, so that κ = 0.4.
    #[test]
    fn agreement_beyond_chance() {
        let tally = tally([(1, 1, 20), (1, 0, 5), (0, 1, 10), (0, 0, 15)]);
        let kappa = cohen_kappa().value(&tally).expect("two classes");
        assert!((kappa - 0.4).abs() < 1e-12, "{kappa}");
    }

    #[test]
    fn chance_is_zero_and_one_class_is_undefined() {
        let chance = tally([(1, 1, 2), (1, 0, 2), (0, 1, 2), (0, 0, 2)]);
        assert_eq!(cohen_kappa().value(&chance), Some(0.0));
        let one_class = tally([(1, 1, 7), (1, 0, 0), (0, 1, 0), (0, 0, 0)]);
        assert_eq!(cohen_kappa().value(&one_class), None);
    }

    #[test]
    fn it_is_of_classes_and_has_a_text() {
        assert_eq!(cohen_kappa().objection(Answers::Classes(3)), None);
        assert!(cohen_kappa().objection(Answers::Number).is_some());
        assert_eq!(Metric::by_name("cohen_kappa"), Some(cohen_kappa()));
    }
}
