//! [`Difference`]: whether one model is better than another on the same examples.

use std::fmt;

use serde::Serialize;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::answer::{Answer, check};
use crate::bad_value;
use crate::bootstrap::{Counts, Interval, Statistic, intervals};
use crate::page::{sentence, title};

/// Two models that have answered the same examples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Examples.
    pub examples: usize,
    /// Examples that only the first has right.
    pub only_first: u64,
    /// Examples that only the second has right.
    pub only_second: u64,
    /// Accuracy of the first minus that of the second.
    pub accuracy: Interval,
    /// Macro F1 of the first minus that of the second.
    pub macro_f1: Interval,
    /// How probable a difference in right answers at least this large is, if both models are equally good: McNemar's test,
    /// exact and two-sided (McNemar 1947, "Note on the sampling error of the difference between correlated proportions").
    pub p_value: f64,
}

/// Both models' answers, example by example.
struct Pairs<'a> {
    first: &'a [Answer],
    second: &'a [Answer],
    classes: usize,
}

impl Statistic<2> for Pairs<'_> {
    type Gathered = [Counts; 2];

    fn add(&self, gathered: &mut [Counts; 2], example: usize) {
        let both = [self.first, self.second];
        for (counts, answers) in gathered.iter_mut().zip(both) {
            counts.add(
                self.classes,
                answers[example].label,
                answers[example].predicted,
            );
        }
    }

    fn end(&self, [first, second]: &[Counts; 2]) -> [f64; 2] {
        [
            first.accuracy() - second.accuracy(),
            first.macro_f1() - second.macro_f1(),
        ]
    }
}

impl Difference {
    /// Of answers to the same examples in the same order, of the same classes.
    ///
    /// # Errors
    /// SC0103 where the examples differ; SC0520 if it is interrupted.
    pub fn of(first: &[Answer], second: &[Answer], classes: usize) -> Result<Self> {
        for answers in [first, second] {
            check("difference", answers, classes)?;
        }
        let labels = |answers: &[Answer]| answers.iter().map(|it| it.label).collect::<Vec<_>>();
        if labels(first) != labels(second) {
            let given = format!("answers to {}", text::count(second.len(), "other example"));
            let expects =
                "answers of both models to the same examples, in the same order".to_owned();
            return Err(bad_value("difference", "other", given, expects));
        }
        let only = |is_first: bool| {
            let pairs = first.iter().zip(second);
            let own = pairs.filter(|(a, b)| a.is_right() == is_first && b.is_right() != is_first);
            own.count() as u64
        };
        let pairs = Pairs {
            first,
            second,
            classes,
        };
        let [accuracy, macro_f1] = intervals(&pairs, first.len())?;
        let (only_first, only_second) = (only(true), only(false));
        Ok(Self {
            examples: first.len(),
            only_first,
            only_second,
            accuracy,
            macro_f1,
            p_value: mcnemar(only_first, only_second),
        })
    }

    /// Whether chance alone would rarely give such a difference: p below 0.05.
    pub fn is_significant(&self) -> bool {
        self.p_value < 0.05
    }

    fn lines(&self) -> [String; 4] {
        let signed = |interval: Interval| {
            let Interval { value, low, high } = interval;
            format!("{value:+.4} ({low:+.4} to {high:+.4} in 95 % of 1000 resamples)")
        };
        let verdict = match (self.is_significant(), self.only_first > self.only_second) {
            (true, true) => "the first model is better on these examples",
            (true, false) => "the second model is better on these examples",
            (false, _) => "the difference can be chance",
        };
        [
            format!("accuracy {}", signed(self.accuracy)),
            format!("macro F1 {}", signed(self.macro_f1)),
            format!(
                "only the first is right {}, only the second {}",
                times(self.only_first),
                times(self.only_second)
            ),
            match self.p_value {
                ..1e-4 => format!("p < 0.0001 (McNemar, exact): {verdict}"),
                p => format!("p = {p:.4} (McNemar, exact): {verdict}"),
            },
        ]
    }

    fn title(&self) -> String {
        let examples = text::count(self.examples, "example");
        format!("first model minus second model, on the same {examples}")
    }

    /// Static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let lines = self.lines();
        title(&self.title()) + &lines.iter().map(|line| sentence(line)).collect::<String>()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        format!("{}\n  {}", self.title(), self.lines().join("\n  "))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

fn times(count: u64) -> String {
    text::count(count as usize, "time")
}

/// Twice the probability of at most the smaller count among as many fair coins, 1 at most.
fn mcnemar(first: u64, second: u64) -> f64 {
    let (coins, fewer) = (first + second, first.min(second));
    // The logarithms of the binomial coefficients, as the coefficients and 2⁻ⁿ leave the range of a number.
    let (mut term, mut sum) = (-(coins as f64) * std::f64::consts::LN_2, 0.0_f64);
    for heads in 0..=fewer {
        if heads > 0 {
            term += ((coins - heads + 1) as f64 / heads as f64).ln();
        }
        sum += term.exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_is_the_exact_binomial_test() {
        // 2·Σ C(n, i)·2⁻ⁿ for i ≤ k, in integers.
        for (first, second, expected) in [
            (0, 0, 1.0),
            (5, 5, 1.0),
            (1, 9, 0.021_484_375),
            (9, 1, 0.021_484_375),
            (0, 6, 0.031_25),
            (10, 25, 0.016_673_847_800_120_71),
        ] {
            let found = mcnemar(first, second);
            assert!(
                (found - expected).abs() < 1e-12,
                "{first} {second}: {found}"
            );
        }
        // 2⁻⁴⁰⁰⁰ is no number of its own.
        let many = mcnemar(2000, 2000);
        assert!((many - 1.0).abs() < 1e-9, "{many}");
        let some = mcnemar(1900, 2100);
        assert!((some - 0.001_649_266_375_135_699_8).abs() < 1e-12, "{some}");
    }

    fn answers(rows: &[(usize, usize)]) -> Vec<Answer> {
        let of = |&(label, predicted): &(usize, usize)| Answer {
            row: 0,
            text: String::new(),
            pair: None,
            label,
            predicted,
            probabilities: Vec::new(),
        };
        rows.iter().map(of).collect()
    }

    #[test]
    fn what_only_one_has_right() {
        let first = answers(&[(0, 0), (1, 1), (1, 0), (0, 0)]);
        let second = answers(&[(0, 0), (1, 0), (1, 1), (0, 1)]);
        let found = Difference::of(&first, &second, 2).unwrap();
        assert_eq!((found.only_first, found.only_second), (2, 1));
        assert_eq!(found.accuracy.value, 0.25);
        assert!(!found.is_significant());
        assert!(found.to_plain().contains("the difference can be chance"));
        let turned = Difference::of(&second, &first, 2).unwrap();
        assert_eq!(turned.accuracy.value, -0.25);
        assert_eq!(turned.p_value, found.p_value);
    }

    #[test]
    fn other_examples_are_an_error() {
        let (first, other) = (answers(&[(0, 0), (1, 1)]), answers(&[(1, 0), (1, 1)]));
        for second in [&other[..], &first[..1], &[]] {
            let problem = Difference::of(&first, second, 2).unwrap_err();
            assert_eq!(problem.code, "SC0103");
        }
    }
}
