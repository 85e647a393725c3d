//! [`Calibration`]: whether a probability of 0.8 is right 8 times out of 10.

use serde::Serialize;
use stratoscope_render::chart::{Chart, Content, Series};

use crate::answer::Answer;

/// Ranges of probability, of equal width (Guo et al. 2017, "On calibration of modern neural networks").
const BINS: usize = 10;

/// Answers whose probabilities are in one range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Where the range begins; it is a tenth wide.
    pub from: f64,
    /// Answers in it.
    pub answers: usize,
    /// The mean probability of what was predicted.
    pub confidence: f64,
    /// The share of right ones.
    pub accuracy: f64,
}

/// How the probabilities of predictions agree with how often they are right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The ranges with an answer, in their order.
    pub bins: Vec<Bin>,
    /// The mean probability of what was predicted.
    pub confidence: f64,
    /// The share of right answers.
    pub accuracy: f64,
    /// The expected calibration error: the mean of |confidence − accuracy| over the ranges, weighted by their answers.
    pub error: f64,
}

impl Calibration {
    /// Of answers that each have a probability; `None` without one.
    pub(crate) fn of(answers: &[Answer]) -> Option<Self> {
        let mut sums = [(0_usize, 0.0_f64, 0_usize); BINS];
        for answer in answers {
            let confidence = answer.confidence();
            if !(0.0..=1.0).contains(&confidence) {
                continue;
            }
            let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
            sums[bin].0 += 1;
            sums[bin].1 += confidence;
            sums[bin].2 += usize::from(answer.is_right());
        }
        let all: usize = sums.iter().map(|bin| bin.0).sum();
        if all == 0 {
            return None;
        }
        let filled = sums.iter().enumerate().filter(|(_, bin)| bin.0 > 0);
        let bins: Vec<Bin> = filled
            .map(|(index, &(answers, confidence, right))| Bin {
                from: index as f64 / BINS as f64,
                answers,
                confidence: confidence / answers as f64,
                accuracy: right as f64 / answers as f64,
            })
            .collect();
        let mean = |value: &dyn Fn(&Bin) -> f64| {
            let sum: f64 = bins.iter().map(|bin| value(bin) * bin.answers as f64).sum();
            sum / all as f64
        };
        Some(Self {
            confidence: mean(&|bin| bin.confidence),
            accuracy: mean(&|bin| bin.accuracy),
            error: mean(&|bin| (bin.confidence - bin.accuracy).abs()),
            bins,
        })
    }

    /// `calibration error 0.0421: the model is surer than it is right, by 3.1 points on average`.
    pub fn summary(&self) -> String {
        let points = 100.0 * (self.confidence - self.accuracy);
        let words = match points {
            1.0.. => {
                format!("the model is surer than it is right, by {points:.1} points on average")
            }
            ..=-1.0 => format!(
                "the model is less sure than it is right, by {:.1} points on average",
                -points
            ),
            _ => "on average the model is as sure as it is right".to_owned(),
        };
        format!("calibration error {:.4}: {words}", self.error)
    }

    /// Share of right answers over the probability, beside the line on which they are equal.
    pub(crate) fn chart(&self) -> Chart {
        let points = self.bins.iter().map(|bin| (bin.confidence, bin.accuracy));
        let first = self.bins.first().map_or(0.0, |bin| bin.confidence);
        Chart {
            title: "calibration".to_owned(),
            x: "probability of the prediction".to_owned(),
            y: "share of right ones".to_owned(),
            ..Chart::of(Content::Lines(vec![
                Series::new("model", points.collect()),
                Series::new("calibrated", vec![(first, first), (1.0, 1.0)]),
            ]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(confidence: f64, is_right: bool) -> Answer {
        Answer {
            row: 0,
            text: String::new(),
            pair: None,
            label: usize::from(!is_right),
            predicted: 0,
            probabilities: vec![confidence, 1.0 - confidence],
        }
    }

    #[test]
    fn the_error_is_the_weighted_distance_from_the_diagonal() {
        let mut answers = vec![answer(0.95, true), answer(0.95, false)];
        answers.extend([answer(0.65, true), answer(0.65, true)]);
        let found = Calibration::of(&answers).unwrap();
        // 2 of 4 at |0.95 − 0.5|, 2 of 4 at |0.65 − 1|.
        assert!((found.error - 0.4).abs() < 1e-12);
        assert_eq!(found.bins.len(), 2);
        assert!((found.accuracy - 0.75).abs() < 1e-12);
        assert!(
            found.summary().contains("by 5.0 points"),
            "{}",
            found.summary()
        );
        assert!(found.summary().contains("surer than it is right"));
    }

    #[test]
    fn a_probability_of_one_is_in_the_last_range_and_nan_in_none() {
        let found = Calibration::of(&[answer(1.0, true), answer(f64::NAN, true)]).unwrap();
        assert_eq!(
            (found.bins.len(), found.bins[0].from, found.error),
            (1, 0.9, 0.0)
        );
        assert!(Calibration::of(&[answer(f64::NAN, true)]).is_none());
    }
}
