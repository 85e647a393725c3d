//! Losses of one's own: a function from outputs and labels to the loss of each example. Keras takes such a function as
//! `loss`, too.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_diagnostics::panics::panicked;
use stratoscope_diagnostics::{Diagnostic, problem};
use stratoscope_render::text;

use super::Loss;
use super::criterion::Criterion;
use super::labels::column;

/// A function as a loss, by [`Loss::of_classes`] or [`Loss::of_numbers`]. A copy is the same function, which is kept to
/// the end of the program: a model, its runs and its history all name it.
#[derive(Clone, Copy)]
pub struct OwnLoss(&'static Kept);

struct Kept {
    name: String,
    compute: Compute,
    /// What was wrong with it while it was trained with, until somebody asks.
    failed: Mutex<Option<String>>,
}

/// The loss of each example, `[B]`.
enum Compute {
    /// From outputs `[B, C]` and B classes.
    Classes(Box<dyn Fn(Tensor<2>, Tensor<1, Int>) -> Tensor<1> + Send + Sync>),
    /// From B outputs and B numbers.
    Numbers(Box<dyn Fn(Tensor<1>, Tensor<1>) -> Tensor<1> + Send + Sync>),
}

impl Loss {
    /// A loss of one's own for a model of classes: `compute` gets the outputs of the head and the classes, and returns the
    /// loss of each example. It is differentiated through the operations that it does with the outputs. Of tagged words,
    /// hidden tokens and answers it gets a row for each word, token, begin or end that counts.
    ///
    /// # Shapes
    /// outputs `[B, C]`, classes `[B]` → `[B]`
    ///
    /// ```
    /// use burn::tensor::{Int, Tensor, activation::log_softmax};
    /// use stratoscope_metrics::Loss;
    ///
    /// // Lin et al. 2017: what is right already counts less.
    /// let focal = Loss::of_classes("focal", |outputs: Tensor<2>, classes: Tensor<1, Int>| {
    ///     let logarithms = log_softmax(outputs, 1).gather(1, classes.unsqueeze_dim(1)).squeeze_dim(1);
    ///     let missing: Tensor<1> = logarithms.clone().exp().neg().add_scalar(1.0);
    ///     (missing.powi_scalar(2) * logarithms).neg()
    /// });
    /// assert_eq!(focal.to_string(), "focal");
    /// ```
    pub fn of_classes(
        name: impl Into<String>,
        compute: impl Fn(Tensor<2>, Tensor<1, Int>) -> Tensor<1> + Send + Sync + 'static,
    ) -> Self {
        OwnLoss::keep(name.into(), Compute::Classes(Box::new(compute)))
    }

    /// A loss of one's own for a model with one output: `compute` gets the outputs and the numbers to be predicted, and
    /// returns the loss of each example.
    ///
    /// # Shapes
    /// outputs `[B]`, numbers `[B]` → `[B]`
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use stratoscope_metrics::Loss;
    ///
    /// // To be too low costs nine times as much as to be too high.
    /// let quantile = Loss::of_numbers("quantile", |outputs: Tensor<1>, labels: Tensor<1>| {
    ///     let missing = labels - outputs;
    ///     missing.clone().mul_scalar(0.9).max_pair(missing.mul_scalar(-0.1))
    /// });
    /// assert!(quantile.is_regression());
    /// ```
    pub fn of_numbers(
        name: impl Into<String>,
        compute: impl Fn(Tensor<1>, Tensor<1>) -> Tensor<1> + Send + Sync + 'static,
    ) -> Self {
        OwnLoss::keep(name.into(), Compute::Numbers(Box::new(compute)))
    }
}

impl OwnLoss {
    fn keep(name: String, compute: Compute) -> Loss {
        // Losses are copied into every step of a run; one that is never freed is a few bytes.
        let failed = Mutex::default();
        Loss::Own(Self(Box::leak(Box::new(Kept {
            name,
            compute,
            failed,
        }))))
    }

    /// The loss of each example, or why there is none; `None` for labels of another kind.
    fn each(self, outputs: Tensor<2>, labels: &Labels) -> Option<Result<Tensor<1>, String>> {
        const OPERATION: &str = "loss of one's own";
        let ([rows, _], device) = (outputs.dims(), outputs.device());
        let losses = match (&self.0.compute, labels) {
            (Compute::Classes(compute), Labels::Classes(classes)) => {
                let classes = TensorData::new(classes.clone(), [classes.len()]);
                let classes = Tensor::<1, Int>::from_data(classes, &device.inner());
                caught(|| operation!(OPERATION, [outputs], compute(outputs, classes)))
            }
            (Compute::Numbers(compute), labels) => {
                let numbers = column(labels, &device, |number| number)?;
                let numbers = numbers.flatten(0, 1);
                caught(|| {
                    operation!(
                        OPERATION,
                        [outputs],
                        compute(outputs.flatten(0, 1), numbers)
                    )
                })
            }
            _ => return None,
        };
        let losses = losses.and_then(|losses| match losses.dims() {
            [found] if found == rows => Ok(losses),
            [1] => Err("makes one number: it adds up or averages, which the step does".to_owned()),
            [found] => Err(format!("makes {found} losses")),
        });
        Some(losses.map_err(|said| format!("of {} it {said}", text::count(rows, "example"))))
    }

    /// Why it cannot be trained with, by what it makes of one example and of several with so many outputs.
    pub fn objection(self, outputs: usize) -> Option<String> {
        // Not as many as outputs: a loss of each class would be taken for one of each example.
        let several = if outputs == 3 { 4 } else { 3 };
        [several, 1]
            .into_iter()
            .find_map(|rows| self.objection_to(rows, outputs))
    }

    fn objection_to(self, rows: usize, outputs: usize) -> Option<String> {
        let (outputs, labels) = match self.0.compute {
            Compute::Classes(_) => {
                let classes = (0..rows).map(|row| (row % outputs.max(1)) as i32);
                (outputs, Labels::Classes(classes.collect()))
            }
            Compute::Numbers(_) => (1, Labels::Values((0..rows).map(|row| row as f32).collect())),
        };
        let numbers = (0..rows * outputs).map(|at| 0.1 * (at % 7) as f32 - 0.2);
        let numbers = TensorData::new(numbers.collect::<Vec<_>>(), [rows, outputs]);
        let outputs = Tensor::<2>::from_data(numbers, &Device::flex().autodiff()).require_grad();
        let losses = match self.each(outputs.clone(), &labels)? {
            Ok(losses) => losses,
            Err(said) => return Some(said),
        };
        let gradient = losses.is_tracked().then(|| {
            let gradients = losses.sum().backward();
            outputs.grad(&gradients)
        });
        match gradient.flatten() {
            Some(_) => None,
            None => Some("it does not depend on the outputs by operations of tensors".to_owned()),
        }
    }
}

impl Criterion for OwnLoss {
    fn name(&self) -> &'static str {
        &self.0.name
    }

    /// The loss of each example, `[B, 1]`; not numbers where the function has failed, which [`failure`] tells.
    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let losses = match self.each(outputs.clone(), labels)? {
            Ok(losses) => losses,
            Err(said) => {
                let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(said);
                let rows: Tensor<1> = outputs.sum_dim(1).squeeze_dim(1);
                rows.mul_scalar(f32::NAN)
            }
        };
        Some(losses.unsqueeze_dim(1))
    }

    fn is_regression(&self) -> bool {
        matches!(self.0.compute, Compute::Numbers(_))
    }
}

/// What a function makes, or the words of its panic.
fn caught(work: impl FnOnce() -> Tensor<1>) -> Result<Tensor<1>, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| format!("panicked: {}", panicked(panic.as_ref())))
}

/// SC0103 for a loss of one's own that has failed since it was asked the last time.
///
/// # Errors
/// SC0103.
pub fn failure(loss: Loss) -> stratoscope_diagnostics::Result<()> {
    let Loss::Own(OwnLoss(kept)) = loss else {
        return Ok(());
    };
    let said = kept
        .failed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    match said {
        Some(said) => Err(Box::new(refused(loss, said))),
        None => Ok(()),
    }
}

/// SC0103 for a function that is no loss.
pub fn refused(loss: Loss, why: String) -> Diagnostic {
    let expects = "a function that returns the loss of each example";
    problem::bad_value("compile", "loss", loss, expects).why(why)
}

/// The same function, not another one that does the same.
impl PartialEq for OwnLoss {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl fmt::Debug for OwnLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnLoss({})", self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::activation::log_softmax;

    use super::*;
    use crate::loss::labels::check_one_output;
    use crate::{IntoLoss, MeanSquaredError, SparseCategoricalCrossentropy};

    fn cross_entropy() -> Loss {
        Loss::of_classes("mine", |outputs, classes: Tensor<1, Int>| {
            let logarithms = log_softmax(outputs, 1);
            logarithms
                .gather(1, classes.unsqueeze_dim(1))
                .squeeze_dim::<1>(1)
                .neg()
        })
    }

    #[test]
    fn values_and_gradients_of_numbers() {
        let loss = Loss::of_numbers("square", |outputs, labels| {
            (outputs - labels).powi_scalar(2)
        });
        let cases = [(0.25, 1.0), (-2.0, 1.0), (3.0, 0.0)];
        check_one_output(&loss, |output, label| (output - label).powi(2), &cases);
        assert!(loss.is_regression() && !loss.is_binary());
        assert_ne!(loss, MeanSquaredError.into_loss().expect("a loss"));
        assert_eq!(loss, loss);
    }

    #[test]
    fn a_cross_entropy_of_ones_own_is_the_usual_one() {
        let usual = SparseCategoricalCrossentropy { from_logits: true };
        let usual = usual.into_loss().expect("a loss");
        let numbers = (0..12)
            .map(|at| 0.3 * (at * at % 7) as f32)
            .collect::<Vec<_>>();
        let sum = |loss: &Loss| {
            let outputs =
                Tensor::<2>::from_data(TensorData::new(numbers.clone(), [4, 3]), &Device::flex());
            loss.sum(outputs, &Labels::Classes(vec![2, 0, 1, 1]))
                .into_scalar::<f32>()
        };
        let (own, usual) = (sum(&cross_entropy()), sum(&usual));
        assert!((own - usual).abs() < 1e-6, "{own} {usual}");
    }

    #[test]
    fn what_is_no_loss_is_found_before_training() {
        let objection = |loss: Loss, outputs: usize| match loss {
            Loss::Own(own) => own.objection(outputs),
            other => panic!("{other}"),
        };
        assert_eq!(objection(cross_entropy(), 3), None);
        assert_eq!(objection(cross_entropy(), 30_000), None);
        let mean = Loss::of_numbers("mean", |outputs, labels| (outputs - labels).abs().mean());
        let said = objection(mean, 1).expect("it is one number");
        assert!(said.contains("one number"), "{said}");
        let constant = Loss::of_numbers("constant", |_, labels| labels);
        let said = objection(constant, 1).expect("it has no gradient");
        assert!(said.contains("does not depend"), "{said}");
        let wrong = Loss::of_classes("wrong", |outputs, _| {
            outputs.clone().matmul(outputs).flatten(0, 1)
        });
        let said = objection(wrong, 3).expect("it panics");
        assert!(said.contains("it panicked"), "{said}");
        // As many losses as classes, and none for a single example.
        let of_classes =
            Loss::of_classes("classes", |outputs, _| outputs.mean_dim(0).squeeze_dim(0));
        let said = objection(of_classes, 2).expect("they are of classes");
        assert!(said.contains("of 3 examples it makes 2 losses"), "{said}");
        let of_several = Loss::of_classes("several", |outputs, classes: Tensor<1, Int>| {
            outputs.gather(1, classes.unsqueeze_dim(1)).squeeze::<1>()
        });
        let said = objection(of_several, 3).expect("one example is none");
        assert!(said.contains("of 1 example it panicked"), "{said}");
    }
}
