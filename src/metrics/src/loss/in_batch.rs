//! Losses that compare the examples of a batch with each other, by the vectors of their texts: `MultipleNegativesRanking`, its
//! symmetric form, `TripletMargin`. Those of sentence-transformers: `MultipleNegativesRankingLoss`,
//! `MultipleNegativesSymmetricRankingLoss` and `TripletLoss`, over vectors of length 1.
//!
//! Dimensions: B examples, T texts of each, H numbers of a vector.

use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_diagnostics::arguments::Interval;
use stratoscope_diagnostics::{Result, problem};

use super::Loss;
use super::criterion::{Criterion, Named};

/// The cross-entropy of finding the text that belongs to a text among the second texts of the whole batch, by cosines times
/// `scale`: −log softmax(`scale` · cos(aᵢ, cⱼ))ᵢ. The candidates c are the second texts of all B examples, then their further
/// texts, which are negatives of all of them. Source: Henderson et al. 2017, section 4.3; sentence-transformers'
/// `MultipleNegativesRankingLoss`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultipleNegativesRanking {
    /// What the cosines are multiplied with, above 0: the inverse of a temperature. sentence-transformers' is 20, as it is
    /// by the name `"multiple_negatives_ranking"`.
    pub scale: f64,
}

/// The mean of [`MultipleNegativesRanking`] and of the same in the other direction, where the first text is looked for among
/// the first texts of the batch. Source: sentence-transformers' `MultipleNegativesSymmetricRankingLoss`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultipleNegativesSymmetricRanking {
    /// What the cosines are multiplied with, above 0. sentence-transformers' is 20.
    pub scale: f64,
}

/// max(0, |a − p| − |a − n| + `margin`) for a text a, one that belongs to it p, and one that does not n, by the Euclidean
/// distances of their vectors; of several n the mean over them. Source: Reimers and Gurevych 2019, section 3; sentence-transformers'
/// `TripletLoss` and PyTorch's `TripletMarginLoss`, which add 1e-6 to each difference, as here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TripletMargin {
    /// How much farther the third text should be than the second, above 0. Vectors of length 1 are at most 2 apart.
    /// sentence-transformers' is 5, as it is by the name `"triplet_margin"`: then no triplet is far enough.
    pub margin: f64,
}

/// What PyTorch's `pairwise_distance` adds to a difference, so that the distance of equal vectors has a gradient.
const DISTANCE_EPSILON: f64 = 1e-6;

/// The first vectors, and all others: the second ones of all examples, then the third ones. `None` for labels of another kind,
/// and without a second text.
///
/// # Shapes
/// [B, T·H] → [B, H] and [(T − 1)·B, H]
fn vectors(outputs: Tensor<2>, labels: &Labels) -> Option<(Tensor<2>, Tensor<2>)> {
    let Labels::Apart { texts, .. } = *labels else {
        return None;
    };
    let [rows, width] = outputs.dims();
    if texts < 2 || !width.is_multiple_of(texts) {
        return None;
    }
    let own = width / texts;
    let first = outputs.clone().narrow(1, 0, own);
    let others = operation!("candidates", [outputs], {
        let others = (1..texts).map(|text| outputs.clone().narrow(1, text * own, own));
        Tensor::cat(others.collect(), 0)
    });
    debug_assert_eq!(others.dims(), [(texts - 1) * rows, own]);
    Some((first, others))
}

/// −log softmax of each row at the column of its own number.
///
/// # Shapes
/// [B, N], N ≥ B → [B, 1]
fn of_own_column(scores: Tensor<2>) -> Tensor<2> {
    let [rows, columns] = scores.dims();
    let mut own = vec![0.0_f32; rows * columns];
    for row in 0..rows {
        own[row * columns + row] = -1.0;
    }
    let own = Tensor::from_data(TensorData::new(own, [rows, columns]), &scores.device());
    let logarithms = operation!("log-softmax", [scores], log_softmax(scores, 1));
    operation!("pick its own", [logarithms], {
        (logarithms * own).sum_dim(1)
    })
}

/// The cosines of the first texts and the candidates, times `scale`.
///
/// # Shapes
/// outputs [B, T·H] → [B, (T − 1)·B]
fn scores(outputs: Tensor<2>, labels: &Labels, scale: f64) -> Option<Tensor<2>> {
    let (first, candidates) = vectors(outputs, labels)?;
    Some(operation!("cosines", [first, candidates], {
        first.matmul(candidates.transpose()).mul_scalar(scale)
    }))
}

/// # Errors
/// SC0103 for a number that is not above 0.
fn check(loss: &dyn Criterion, number: f64, name: &str) -> Result<()> {
    if Interval::Positive.holds(number) {
        return Ok(());
    }
    let given = format!("{}{}", loss.name(), loss.written());
    let expects = format!("a finite `{name}` above 0");
    Err(Box::new(problem::bad_value(
        "compile", "loss", given, expects,
    )))
}

impl Named for MultipleNegativesRanking {
    const TEXT: &'static str = "multiple_negatives_ranking";

    fn named() -> Self {
        Self { scale: 20.0 }
    }
}

impl Criterion for MultipleNegativesRanking {
    fn name(&self) -> &'static str {
        "MultipleNegativesRanking"
    }

    fn written(&self) -> String {
        format!(" {{ scale: {:?} }}", self.scale)
    }

    fn check(&self) -> Result<()> {
        check(self, self.scale, "scale")
    }

    fn compares_examples(&self) -> bool {
        true
    }

    fn needs_several(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        Some(of_own_column(scores(outputs, labels, self.scale)?))
    }
}

impl Named for MultipleNegativesSymmetricRanking {
    const TEXT: &'static str = "multiple_negatives_symmetric_ranking";

    fn named() -> Self {
        Self { scale: 20.0 }
    }
}

impl Criterion for MultipleNegativesSymmetricRanking {
    fn name(&self) -> &'static str {
        "MultipleNegativesSymmetricRanking"
    }

    fn written(&self) -> String {
        format!(" {{ scale: {:?} }}", self.scale)
    }

    fn check(&self) -> Result<()> {
        check(self, self.scale, "scale")
    }

    fn compares_examples(&self) -> bool {
        true
    }

    fn needs_several(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let rows = outputs.dims()[0];
        let forward = scores(outputs, labels, self.scale)?;
        // Further texts belong to no first text.
        let backward = forward.clone().narrow(1, 0, rows).transpose();
        let both = of_own_column(forward) + of_own_column(backward);
        Some(both.mul_scalar(0.5))
    }
}

impl Named for TripletMargin {
    const TEXT: &'static str = "triplet_margin";

    fn named() -> Self {
        Self { margin: 5.0 }
    }
}

impl Criterion for TripletMargin {
    fn name(&self) -> &'static str {
        "TripletMargin"
    }

    fn written(&self) -> String {
        format!(" {{ margin: {:?} }}", self.margin)
    }

    fn check(&self) -> Result<()> {
        check(self, self.margin, "margin")
    }

    fn compares_examples(&self) -> bool {
        true
    }

    fn min_texts(&self) -> usize {
        3
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let (first, others) = vectors(outputs, labels)?;
        let rows = first.dims()[0];
        let distance = |of: usize| {
            let own = others.clone().narrow(0, of * rows, rows);
            let difference = (first.clone() - own).add_scalar(DISTANCE_EPSILON);
            difference.square().sum_dim(1).sqrt()
        };
        let negatives = others.dims()[0] / rows.max(1) - 1;
        let near = distance(0);
        let missing = (1..=negatives)
            .map(|of| relu((near.clone() - distance(of)).add_scalar(self.margin)))
            .reduce(|sum, own| sum + own)?;
        Some(missing.div_scalar(negatives as f64))
    }
}

impl Loss {
    /// Whether it compares the examples of a batch, or the texts of an example, by vectors: its labels are
    /// [`Labels::Apart`].
    pub fn compares_examples(&self) -> bool {
        self.criterion().compares_examples()
    }

    /// Whether the loss of an example depends on the other examples of its batch.
    pub fn needs_several(&self) -> bool {
        self.criterion().needs_several()
    }

    /// The fewest texts of an example.
    pub fn min_texts(&self) -> usize {
        self.criterion().min_texts()
    }

    /// The loss of each example of a batch, times its weight; `None` without labels of its kind.
    ///
    /// # Shapes
    /// outputs [B, T·H], B labels, B weights → [B, 1]
    pub fn of_each(
        &self,
        outputs: Tensor<2>,
        labels: &Labels,
        weights: Option<&[f32]>,
    ) -> Option<Tensor<2>> {
        let rows = self.criterion().rows(outputs, labels)?;
        Some(match weights {
            None => rows,
            Some(weights) => {
                let weights = TensorData::new(weights.to_vec(), [weights.len(), 1]);
                let weights = Tensor::from_data(weights, &rows.device());
                rows * weights
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::IntoLoss;

    const WIDTH: usize = 3;

    /// Vectors of length 1 for B examples of T texts.
    fn numbers(rows: usize, texts: usize) -> Vec<f32> {
        let each = (0..rows * texts).flat_map(|at| {
            let vector: [f64; WIDTH] =
                std::array::from_fn(|part| ((at * 7 + part * 5) % 11) as f64 - 4.3);
            let length = vector.iter().map(|it| it * it).sum::<f64>().sqrt();
            vector.map(|it| (it / length) as f32)
        });
        each.collect()
    }

    /// By the formula, in float64: the vector of text t of example b.
    struct ByHand<'a>(&'a [f64], usize);

    impl ByHand<'_> {
        fn rows(&self) -> usize {
            self.0.len() / (self.1 * WIDTH)
        }

        fn vector(&self, row: usize, text: usize) -> &[f64] {
            let start = (row * self.1 + text) * WIDTH;
            &self.0[start..start + WIDTH]
        }

        fn score(&self, (a, b): ((usize, usize), (usize, usize)), scale: f64) -> f64 {
            let (a, b) = (self.vector(a.0, a.1), self.vector(b.0, b.1));
            scale * a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
        }

        /// −log softmax of the first of these scores.
        fn cost(own: f64, all: &[f64]) -> f64 {
            let most = all.iter().copied().fold(f64::MIN, f64::max);
            most + all.iter().map(|it| (it - most).exp()).sum::<f64>().ln() - own
        }

        fn ranking(&self, scale: f64) -> f64 {
            let of_row = |row: usize| {
                let candidates =
                    (1..self.1).flat_map(|text| (0..self.rows()).map(move |of| (of, text)));
                let all: Vec<f64> = candidates
                    .map(|it| self.score(((row, 0), it), scale))
                    .collect();
                Self::cost(all[row], &all)
            };
            (0..self.rows()).map(of_row).sum()
        }

        fn symmetric(&self, scale: f64) -> f64 {
            let of_row = |row: usize| {
                let all: Vec<f64> = (0..self.rows())
                    .map(|of| self.score(((of, 0), (row, 1)), scale))
                    .collect();
                Self::cost(all[row], &all)
            };
            let backward: f64 = (0..self.rows()).map(of_row).sum();
            (self.ranking(scale) + backward) / 2.0
        }

        fn triplet(&self, margin: f64) -> f64 {
            let distance = |row: usize, text: usize| {
                let (a, b) = (self.vector(row, 0), self.vector(row, text));
                let squares = a.iter().zip(b).map(|(a, b)| (a - b + 1e-6).powi(2));
                squares.sum::<f64>().sqrt()
            };
            let of_row = |row: usize| {
                let missing = (2..self.1)
                    .map(|text| (distance(row, 1) - distance(row, text) + margin).max(0.0));
                missing.sum::<f64>() / (self.1 - 2) as f64
            };
            (0..self.rows()).map(of_row).sum()
        }
    }

    /// Value and gradient beside the formula and its differences.
    fn check_by_hand(loss: impl IntoLoss, texts: usize, definition: impl Fn(&ByHand<'_>) -> f64) {
        let loss = loss.into_loss().expect("a loss");
        let rows = 4;
        let numbers = numbers(rows, texts);
        let data = TensorData::new(numbers.clone(), [rows, texts * WIDTH]);
        let device = Device::flex().autodiff();
        let outputs = Tensor::<2>::from_data(data, &device).require_grad();
        let sum = loss.sum(outputs.clone(), &Labels::Apart { rows, texts });
        let gradients = sum.backward();
        let gradient = outputs.grad(&gradients).expect("it was required");
        let gradient = gradient.into_data();
        let exact: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        let of = |numbers: &[f64]| definition(&ByHand(numbers, texts));
        let near = |what: &str, found: f64, expected: f64| {
            let allowed = 5e-6 * expected.abs().max(1.0);
            assert!(
                (found - expected).abs() < allowed,
                "{what} of {loss} with {texts} texts: {found}, not {expected}"
            );
        };
        let found = f64::from(sum.into_scalar::<f32>());
        near("value", found, of(&exact));
        for (at, found) in gradient.iter::<f32>().enumerate() {
            let moved = |by: f64| {
                let mut numbers = exact.clone();
                numbers[at] += by;
                of(&numbers)
            };
            let step = 1e-5;
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            near("gradient", f64::from(found), slope);
        }
    }

    #[test]
    fn values_and_gradients_by_the_formulas() {
        for texts in [2, 3, 4] {
            for scale in [1.0, 20.0] {
                let ranking = MultipleNegativesRanking { scale };
                check_by_hand(ranking, texts, |by_hand| by_hand.ranking(scale));
                let symmetric = MultipleNegativesSymmetricRanking { scale };
                check_by_hand(symmetric, texts, |by_hand| by_hand.symmetric(scale));
            }
        }
        for texts in [3, 4] {
            for margin in [0.3, 5.0] {
                let triplet = TripletMargin { margin };
                check_by_hand(triplet, texts, |by_hand| by_hand.triplet(margin));
            }
        }
    }

    #[test]
    fn weights_of_examples_and_a_batch_of_one() {
        let loss = "multiple_negatives_ranking".into_loss().expect("a loss");
        assert_eq!(loss.to_string(), "MultipleNegativesRanking { scale: 20.0 }");
        let outputs = |rows: usize, texts: usize| {
            let data = TensorData::new(numbers(rows, texts), [rows, texts * WIDTH]);
            Tensor::<2>::from_data(data, &Device::flex())
        };
        let labels = |rows: usize| Labels::Apart { rows, texts: 2 };
        let each = loss.of_each(outputs(3, 2), &labels(3), None);
        let each: Vec<f32> = each
            .expect("labels of its kind")
            .into_data()
            .iter()
            .collect();
        let weights = [2.0, 0.0, 0.5];
        let weighted = loss.of_each(outputs(3, 2), &labels(3), Some(&weights));
        let weighted: Vec<f32> = weighted.expect("the same").into_data().iter().collect();
        for (at, weight) in weights.iter().enumerate() {
            assert_eq!(weighted[at], each[at] * weight);
        }
        // Nothing to tell it from.
        let alone = loss.sum(outputs(1, 2), &labels(1)).into_scalar::<f32>();
        assert_eq!(alone, 0.0);
        assert!(loss.of_each(outputs(1, 2), &Labels::Absent, None).is_none());
        assert!(loss.needs_several() && loss.compares_examples() && loss.min_texts() == 2);
        let triplet = "triplet_margin".into_loss().expect("a loss");
        assert!(!triplet.needs_several() && triplet.min_texts() == 3);
        for scale in [0.0, -1.0, f64::NAN] {
            let problem = MultipleNegativesRanking { scale }.into_loss();
            assert_eq!(problem.expect_err("no scale").code, "SC0103");
        }
    }
}
