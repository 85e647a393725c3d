//! Intervals by resampling: the percentile bootstrap (Efron 1979, "Bootstrap methods: another look at the jackknife").
//!
//! A resample draws as many examples as there are, with replacement. The middle 95 % of its values is the interval.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;
use stratoscope_data::RandomStream;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

/// Resamples of an interval.
pub(crate) const RESAMPLES: usize = 1000;
/// Resamples between two looks at the interrupt button.
const STRIDE: usize = 20;
/// How often a resample is drawn of which a number is not known: of a few examples all may be the same.
const TRIES: usize = 10;
/// The share of resamples below an interval, and above it.
const TAIL: f64 = 0.025;

/// A value and where 95 of 100 resamples of the same examples have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Of the examples themselves.
    pub value: f64,
    /// 2.5 % of resamples are below.
    pub low: f64,
    /// 2.5 % of resamples are above.
    pub high: f64,
}

impl fmt::Display for Interval {
    /// `0.8600 (0.8200 to 0.9000)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ({:.4} to {:.4})", self.value, self.low, self.high)
    }
}

/// How often each of `count` examples is drawn does not matter, only what is drawn: `add` sees one after the other, and
/// `end` turns what it has gathered into values.
pub(crate) trait Statistic<const N: usize>: Sync {
    /// What is gathered of a resample.
    type Gathered: Default;
    /// One more example was drawn.
    fn add(&self, gathered: &mut Self::Gathered, example: usize);
    /// The values of a resample.
    fn end(&self, gathered: &Self::Gathered) -> [f64; N];
}

/// The values of all examples and their intervals. The n-th resample is a stream of its own, so that the result does not
/// depend on the number of threads.
///
/// # Errors
/// SC0520 if it is interrupted.
pub(crate) fn intervals<const N: usize, S: Statistic<N>>(
    statistic: &S,
    examples: usize,
) -> Result<[Interval; N]> {
    let mut whole = S::Gathered::default();
    (0..examples).for_each(|example| statistic.add(&mut whole, example));
    let values = statistic.end(&whole);
    let mut work = Work::begin(
        ("resampling", "resampled"),
        RESAMPLES,
        Unit::Things("resample"),
    );
    let mut drawn: Vec<[f64; N]> = Vec::with_capacity(RESAMPLES);
    while drawn.len() < RESAMPLES {
        work.reached(drawn.len())?;
        let first = drawn.len();
        let some: Vec<[f64; N]> = (first..(first + STRIDE).min(RESAMPLES))
            .into_par_iter()
            .map(|resample| {
                let mut random = RandomStream::new(0, resample as u64);
                let mut gathered = S::Gathered::default();
                for _ in 0..examples {
                    statistic.add(&mut gathered, random.below(examples));
                }
                statistic.end(&gathered)
            })
            .collect();
        drawn.extend(some);
    }
    work.finished();
    Ok(std::array::from_fn(|index| {
        let mut sorted: Vec<f64> = drawn.iter().map(|values| values[index]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let below = (TAIL * RESAMPLES as f64) as usize;
        Interval {
            value: values[index],
            low: sorted[below],
            high: sorted[RESAMPLES - 1 - below],
        }
    }))
}

/// The interval of a number that `measure` makes of examples, given by their indices; an example may be there several times. A resample of
/// which the number is not known (NaN) is drawn again as often as `TRIES` times, and left out then. `None` where the number of all examples
/// is not known.
///
/// # Errors
/// SC0520 if it is interrupted.
pub fn interval_of(
    examples: usize,
    measure: impl Fn(&[usize]) -> f64 + Sync,
) -> Result<Option<Interval>> {
    let value = measure(&(0..examples).collect::<Vec<_>>());
    if examples == 0 || value.is_nan() {
        return Ok(None);
    }
    let mut work = Work::begin(
        ("resampling", "resampled"),
        RESAMPLES,
        Unit::Things("resample"),
    );
    let mut drawn: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut begun = 0;
    while begun < RESAMPLES {
        work.reached(begun)?;
        let some: Vec<f64> = (begun..(begun + STRIDE).min(RESAMPLES))
            .into_par_iter()
            .filter_map(|resample| {
                let mut random = RandomStream::new(0, resample as u64);
                let mut tries = (0..TRIES).map(|_| {
                    let own: Vec<usize> = (0..examples).map(|_| random.below(examples)).collect();
                    measure(&own)
                });
                tries.find(|value| !value.is_nan())
            })
            .collect();
        drawn.extend(some);
        begun += STRIDE;
    }
    work.finished();
    drawn.sort_unstable_by(f64::total_cmp);
    let below = (TAIL * drawn.len() as f64) as usize;
    let ends = drawn.get(below).zip(
        drawn
            .len()
            .checked_sub(1 + below)
            .and_then(|at| drawn.get(at)),
    );
    Ok(ends.map(|(&low, &high)| Interval { value, low, high }))
}

/// Of each class: right answers, labels and predictions. Accuracy and macro F1 follow from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Vec<[u64; 3]>);

impl Counts {
    /// One more answer. `classes` is the number of all classes.
    pub fn add(&mut self, classes: usize, label: usize, predicted: usize) {
        self.0.resize(classes, [0; 3]);
        self.0[label][1] += 1;
        self.0[predicted][2] += 1;
        self.0[label][0] += u64::from(label == predicted);
    }

    /// The share of right answers.
    pub fn accuracy(&self) -> f64 {
        let right: u64 = self.0.iter().map(|class| class[0]).sum();
        let all: u64 = self.0.iter().map(|class| class[1]).sum();
        right as f64 / all as f64
    }

    /// The mean of F1 over the classes; a class that is neither there nor predicted counts as 0, as in the metric
    /// `macro_f1`.
    pub fn macro_f1(&self) -> f64 {
        let f1 = |[right, labels, predictions]: &[u64; 3]| match labels + predictions {
            0 => 0.0,
            both => 2.0 * *right as f64 / both as f64,
        };
        self.0.iter().map(f1).sum::<f64>() / self.0.len() as f64
    }

    /// Right answers, labels and predictions of each class.
    pub fn of_classes(&self) -> &[[u64; 3]] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mean(Vec<f64>);

    impl Statistic<1> for Mean {
        type Gathered = (f64, usize);

        fn add(&self, gathered: &mut (f64, usize), example: usize) {
            gathered.0 += self.0[example];
            gathered.1 += 1;
        }

        fn end(&self, gathered: &(f64, usize)) -> [f64; 1] {
            [gathered.0 / gathered.1 as f64]
        }
    }

    /// The interval of a share p of n is about p ± 1.96·√(p·(1 − p)/n).
    #[test]
    fn the_interval_of_a_share_is_that_of_the_normal_distribution() {
        for (right, examples) in [(860, 1000), (50, 100), (320, 400)] {
            let values = (0..examples).map(|it| f64::from(u8::from(it < right)));
            let [found] = intervals(&Mean(values.collect()), examples).unwrap();
            let share = right as f64 / examples as f64;
            let half = 1.96 * (share * (1.0 - share) / examples as f64).sqrt();
            assert_eq!(found.value, share);
            assert!((found.low - (share - half)).abs() < 0.2 * half, "{found}");
            assert!((found.high - (share + half)).abs() < 0.2 * half, "{found}");
        }
    }

    #[test]
    fn the_same_examples_have_the_same_interval_and_equal_ones_none() {
        let values = Mean((0..50).map(|it| f64::from(it % 7)).collect());
        assert_eq!(
            intervals(&values, 50).unwrap(),
            intervals(&values, 50).unwrap()
        );
        let [same] = intervals(&Mean(vec![0.5; 20]), 20).unwrap();
        assert_eq!((same.low, same.value, same.high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn a_number_that_is_not_known_of_a_resample_is_drawn_again() {
        let values: Vec<f64> = (0..50).map(|it| f64::from(it % 7)).collect();
        let mean = |own: &[usize]| own.iter().map(|&it| values[it]).sum::<f64>() / own.len() as f64;
        let [expected] = intervals(&Mean(values.clone()), 50).unwrap();
        assert_eq!(interval_of(50, mean).unwrap(), Some(expected));
        // Known only where both examples are drawn.
        let both = |own: &[usize]| match own.contains(&0) && own.contains(&1) {
            true => 1.0,
            false => f64::NAN,
        };
        let found = interval_of(2, both).unwrap().expect("the examples have it");
        assert_eq!((found.low, found.value, found.high), (1.0, 1.0, 1.0));
        assert_eq!(interval_of(2, |_| f64::NAN).unwrap(), None);
        assert_eq!(interval_of(0, |_| 1.0).unwrap(), None);
    }

    #[test]
    fn counts_give_accuracy_and_macro_f1() {
        let mut counts = Counts::default();
        for (label, predicted) in [(0, 0), (0, 1), (1, 1), (1, 1), (2, 0)] {
            counts.add(4, label, predicted);
        }
        assert_eq!(counts.accuracy(), 0.6);
        // F1: 2·1/(2 + 2), 2·2/(2 + 3), 0/(1 + 0), and 0 for the class that does not occur.
        let expected = (0.5 + 0.8 + 0.0 + 0.0) / 4.0;
        assert!((counts.macro_f1() - expected).abs() < 1e-12);
    }
}
