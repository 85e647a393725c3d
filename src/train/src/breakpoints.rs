//! Breakpoints: conditions on the coming optimizer step under which a run stops before it.
//!
//! A condition is looked at when the loss and the gradient of a step are known and no weight has changed; if it holds,
//! the step is not made. What it looks at costs nothing: losses, norm and outputs are on the host at every step. Only
//! [`update_ratio`] computes something: the update itself, on pieces of copies, which reads what an update reads.

use std::fmt;
use std::ops::BitOr;
use std::rc::Rc;

use stratoscope_diagnostics::Result;

use crate::median::median;
use stratoscope_arguments::count::{Count, IntoCount};
use stratoscope_bert::pattern::matches;
use stratoscope_diagnostics::problem;
use stratoscope_report::run_report::{LayerRatio, StepNumbers, StepPoint};

/// Fewer steps say nothing about what a usual loss is.
const FEWEST: usize = 5;
/// The steps over which [`accuracy_drop`] takes the accuracy.
pub(crate) const ACCURACY_STEPS: usize = 10;
/// By how much the accuracy falls, unless [`by`](Condition::by) says otherwise.
const DROP: f64 = 0.1;

/// When a run stops. Conditions are joined by `|`.
#[derive(Clone)]
pub struct Condition(Vec<Test>);

#[derive(Clone)]
enum Test {
    NonFinite,
    Spike(f64),
    Above(Measure, f64),
    /// The update of the layers that a pattern names.
    LayerAbove(String, f64),
    Every(Count),
    AccuracyDrop(f64),
    Custom(Rc<dyn Fn(&StepNumbers) -> bool>),
}

/// A number of a step that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean loss over the examples of the step.
    Loss,
    /// The norm over all gradients, before clipping.
    GradientNorm,
    /// The largest ratio of a layer's update to its weights, `‖Δw‖/‖w‖`.
    UpdateRatio,
}

/// The loss or a gradient is infinite or no number.
pub fn nan() -> Condition {
    Condition(vec![Test::NonFinite])
}

/// The loss is more than `factor` times the median of the latest 20 steps; at least 5 must be made.
pub fn spike(factor: f64) -> Condition {
    Condition(vec![Test::Spike(factor)])
}

/// So many steps are made since the run began, or a multiple of it.
pub fn every(steps: impl IntoCount) -> Condition {
    Condition(vec![Test::Every(steps.into_count())])
}

/// The training accuracy of the latest 10 steps is at least 0.1 below the best one that 10 steps had;
/// [`by`](Condition::by) takes another distance.
pub fn accuracy_drop() -> Condition {
    Condition(vec![Test::AccuracyDrop(DROP)])
}

/// The closure returns `true`. It may read the model (`predict`, `evaluate!`); what would change it is SC0121.
pub fn custom(holds: impl Fn(&StepNumbers) -> bool + 'static) -> Condition {
    Condition(vec![Test::Custom(Rc::new(holds))])
}

/// `loss().above(3.0)`.
pub fn loss() -> Measure {
    Measure::Loss
}

/// `grad_norm().above(10.0)`.
pub fn grad_norm() -> Measure {
    Measure::GradientNorm
}

/// `update_ratio().above(0.1)`. The update of each step is rehearsed before it is made while this is watched.
pub fn update_ratio() -> Measure {
    Measure::UpdateRatio
}

impl Measure {
    /// It is above a limit, or no number.
    pub fn above(self, limit: f64) -> Condition {
        Condition(vec![Test::Above(self, limit)])
    }
}

impl Condition {
    /// For [`accuracy_drop`]: by how much the accuracy must have fallen.
    #[must_use]
    pub fn by(mut self, distance: f64) -> Self {
        for test in &mut self.0 {
            if let Test::AccuracyDrop(drop) = test {
                *drop = distance;
            }
        }
        self
    }

    /// For [`update_ratio`]: only layers that this pattern names, as in `Run::activations`, or the
    /// layer of the variable that it names.
    #[must_use]
    pub fn of(mut self, pattern: &str) -> Self {
        for test in &mut self.0 {
            if let Test::Above(Measure::UpdateRatio, limit) | Test::LayerAbove(_, limit) = test {
                *test = Test::LayerAbove(pattern.to_owned(), *limit);
            }
        }
        self
    }

    /// SC0105 for a pattern that names none of these layers.
    pub fn check_layers(&self, layers: &[&str]) -> Result<()> {
        for test in &self.0 {
            if let Test::LayerAbove(pattern, _) = test
                && !layers.iter().any(|layer| names(pattern, layer))
            {
                return Err(problem::unknown_tensor(pattern, layers.to_vec()));
            }
        }
        Ok(())
    }

    /// SC0103 for a number with which a condition could never hold, or would always.
    pub fn checked(self) -> Result<Self> {
        let finite = |value: f64, least: f64| value.is_finite() && value > least;
        for test in &self.0 {
            let expects = match test {
                Test::Spike(factor) if !finite(*factor, 1.0) => "a factor above 1",
                Test::Above(_, limit) | Test::LayerAbove(_, limit) if !limit.is_finite() => {
                    "a finite limit"
                }
                Test::AccuracyDrop(drop) if !(finite(*drop, 0.0) && *drop < 1.0) => {
                    "a distance above 0, below 1"
                }
                Test::Every(steps) => {
                    steps.at_least(1, "every", "steps")?;
                    continue;
                }
                _ => continue,
            };
            let given = test.to_string();
            let finding = problem::bad_value("break_when", "condition", given, expects);
            return Err(Box::new(finding));
        }
        Ok(self)
    }

    /// Whether it asks a closure, which may read the model.
    pub(crate) fn is_custom(&self) -> bool {
        self.0.iter().any(|test| matches!(test, Test::Custom(_)))
    }

    /// Whether it needs the update of the step.
    pub(crate) fn needs_update(&self) -> bool {
        let needs = |test: &Test| {
            matches!(
                test,
                Test::Above(Measure::UpdateRatio, _) | Test::LayerAbove(..)
            )
        };
        self.0.iter().any(needs)
    }

    /// The first of its conditions that holds. With `has_passed` the run has stopped here at [`every`] before, which then
    /// lets it go on.
    pub fn holds(
        &self,
        step: &StepNumbers,
        recent: &[StepPoint],
        has_passed: bool,
    ) -> Option<Found> {
        let is_periodic = |test: &Test| matches!(test, Test::Every(_));
        let tests = (self.0.iter()).filter(|test| !(has_passed && is_periodic(test)));
        let mut found = tests.filter_map(|test| {
            Some(Found {
                why: test.holds(step, recent)?,
                written: test.to_string(),
                is_periodic: is_periodic(test),
            })
        });
        found.next()
    }
}

/// A condition that holds.
pub struct Found {
    /// As it was written.
    pub written: String,
    /// What was found, with the numbers.
    pub why: String,
    /// It is about the number of the step alone, and holds once.
    pub is_periodic: bool,
}

impl Test {
    /// Why it holds, if it does.
    fn holds(&self, step: &StepNumbers, recent: &[StepPoint]) -> Option<String> {
        match self {
            Self::NonFinite => step.non_finite.clone(),
            Self::Spike(factor) => {
                let median = median(recent.iter().map(|point| point.loss))?;
                let holds = recent.len() >= FEWEST && exceeds(step.loss, factor * median);
                let times = step.loss / median;
                holds.then(|| {
                    format!(
                        "the loss {:.4} is {times:.1} times {median:.4}, the median of the last {} steps",
                        step.loss,
                        recent.len()
                    )
                })
            }
            Self::Above(measure, limit) => measure.exceeds(step, *limit),
            Self::LayerAbove(pattern, limit) => {
                let of = |it: &&LayerRatio| names(pattern, &it.layer);
                largest_above(step.update_ratios.iter().filter(of), *limit)
            }
            Self::Every(steps) => {
                let (made, steps) = (step.step - 1, steps.value()?);
                let holds = made > 0 && made.is_multiple_of(steps);
                holds.then(|| format!("{made} steps are done"))
            }
            Self::AccuracyDrop(drop) => {
                let now = accuracy(recent.iter().map(|it| it.accuracy).chain([step.accuracy]))?;
                let best = step.best_accuracy?;
                (best - now >= *drop).then(|| {
                    format!(
                        "the accuracy of the last {ACCURACY_STEPS} steps is {now:.3}; it was {best:.3} at best"
                    )
                })
            }
            Self::Custom(holds) => holds(step).then(|| "the closure returned `true`".to_owned()),
        }
    }
}

impl Measure {
    fn exceeds(self, step: &StepNumbers, limit: f64) -> Option<String> {
        let (what, value) = match self {
            Self::Loss => ("the loss".to_owned(), step.loss),
            Self::GradientNorm => ("the gradient norm".to_owned(), step.gradient_norm?),
            Self::UpdateRatio => return largest_above(step.update_ratios.iter(), limit),
        };
        exceeds(value, limit).then(|| format!("{what} is {}", short(value)))
    }
}

/// Whether a pattern names a layer, or a variable of it.
fn names(pattern: &str, layer: &str) -> bool {
    let in_layer = |rest: &str| rest.starts_with('.');
    matches(pattern, layer) || pattern.strip_prefix(layer).is_some_and(in_layer)
}

/// Why the largest update is too large, if it is.
fn largest_above<'a>(ratios: impl Iterator<Item = &'a LayerRatio>, limit: f64) -> Option<String> {
    let largest = ratios.max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    exceeds(largest.ratio, limit).then(|| {
        format!(
            "the update of `{}`, as a share of its weights, is {}",
            largest.layer,
            short(largest.ratio)
        )
    })
}

/// What is no number exceeds everything.
fn exceeds(value: f64, limit: f64) -> bool {
    value.is_nan() || value > limit
}

fn short(value: f64) -> String {
    match value.abs() {
        1e-3..1e4 => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

/// The mean accuracy of the latest [`ACCURACY_STEPS`] steps; `None` where there are fewer, or one has none.
pub(crate) fn accuracy(steps: impl DoubleEndedIterator<Item = Option<f64>>) -> Option<f64> {
    let latest: Option<Vec<f64>> = steps.rev().take(ACCURACY_STEPS).collect();
    let latest = latest.filter(|latest| latest.len() == ACCURACY_STEPS)?;
    Some(latest.iter().sum::<f64>() / ACCURACY_STEPS as f64)
}

impl BitOr for Condition {
    type Output = Self;

    /// One of both holds.
    fn bitor(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl fmt::Display for Test {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonFinite => f.write_str("nan()"),
            Self::Spike(factor) => write!(f, "spike({factor:?})"),
            Self::Above(Measure::Loss, limit) => write!(f, "loss().above({limit:?})"),
            Self::Above(Measure::GradientNorm, limit) => write!(f, "grad_norm().above({limit:?})"),
            Self::Above(Measure::UpdateRatio, limit) => {
                write!(f, "update_ratio().above({limit:?})")
            }
            Self::LayerAbove(pattern, limit) => {
                write!(f, "update_ratio().above({limit:?}).of({pattern:?})")
            }
            Self::Every(steps) => write!(f, "every({steps})"),
            Self::AccuracyDrop(drop) if *drop == DROP => f.write_str("accuracy_drop()"),
            Self::AccuracyDrop(drop) => write!(f, "accuracy_drop().by({drop:?})"),
            Self::Custom(_) => f.write_str("custom(…)"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tests: Vec<String> = self.0.iter().map(Test::to_string).collect();
        f.write_str(&tests.join(" | "))
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> StepNumbers {
        StepNumbers {
            step: 12,
            epoch: 0,
            batch: 11,
            loss: 1.0,
            gradient_norm: Some(2.0),
            learning_rate: 1e-3,
            accuracy: Some(0.5),
            best_accuracy: None,
            update_ratios: Vec::new(),
            non_finite: None,
            rows: Vec::new(),
        }
    }

    fn points(losses: &[f64]) -> Vec<StepPoint> {
        let point = |(index, &loss): (usize, &f64)| StepPoint {
            step: index as u64 + 1,
            loss,
            gradient_norm: 1.0,
            learning_rate: 1e-3,
            accuracy: Some(0.9),
        };
        losses.iter().enumerate().map(point).collect()
    }

    #[track_caller]
    fn check(condition: Condition, step: &StepNumbers, losses: &[f64], expected: Option<&str>) {
        let found = condition.holds(step, &points(losses), false);
        let found = found.map(|found| format!("{}: {}", found.written, found.why));
        assert_eq!(found.as_deref(), expected, "{condition}");
    }

    #[test]
    fn each_condition_holds_when_it_should() {
        let step = numbers();
        let usual = [1.0, 1.1, 0.9, 1.0, 1.2];
        check(nan(), &step, &usual, None);
        let broken = StepNumbers {
            loss: f64::NAN,
            gradient_norm: None,
            non_finite: Some("the loss is NaN".to_owned()),
            ..numbers()
        };
        check(nan(), &broken, &usual, Some("nan(): the loss is NaN"));
        check(
            loss().above(5.0),
            &broken,
            &usual,
            Some("loss().above(5.0): the loss is NaN"),
        );
        check(
            loss().above(0.9),
            &step,
            &[],
            Some("loss().above(0.9): the loss is 1.0000"),
        );
        check(loss().above(1.0), &step, &[], None);
        let norm = "grad_norm().above(1.5): the gradient norm is 2.0000";
        check(grad_norm().above(1.5), &step, &[], Some(norm));
        check(grad_norm().above(2.0), &step, &[], None);
        check(every(11), &step, &[], Some("every(11): 11 steps are done"));
        check(every(12), &step, &[], None);
        check(
            every(5),
            &StepNumbers {
                step: 1,
                ..numbers()
            },
            &[],
            None,
        );
        let high = StepNumbers {
            loss: 4.5,
            ..numbers()
        };
        let spiked =
            "spike(4.0): the loss 4.5000 is 4.5 times 1.0000, the median of the last 5 steps";
        check(spike(4.0), &high, &usual, Some(spiked));
        check(spike(4.0), &high, &usual[..4], None);
        check(spike(5.0), &high, &usual, None);
        let rate = custom(|step| step.learning_rate > 5e-4);
        check(
            rate,
            &step,
            &[],
            Some("custom(…): the closure returned `true`"),
        );
        check(custom(|step| step.step == 1), &step, &[], None);
    }

    #[test]
    fn the_first_that_holds_is_named() {
        let condition = nan() | every(7) | loss().above(0.5) | grad_norm().above(0.1);
        let found = condition
            .holds(&numbers(), &[], false)
            .expect("two of them hold");
        assert_eq!(found.written, "loss().above(0.5)");
        assert!(
            every(11).holds(&numbers(), &[], true).is_none(),
            "it was passed"
        );
        let all = "nan() | every(7) | loss().above(0.5) | grad_norm().above(0.1)";
        assert_eq!(condition.to_string(), all);
        assert!(!condition.needs_update() && !condition.is_custom());
        assert!((condition.clone() | custom(|_| false)).is_custom());
        assert!((condition | update_ratio().above(0.1)).needs_update());
    }

    #[test]
    fn the_accuracy_is_that_of_ten_steps() {
        let step = StepNumbers {
            accuracy: Some(0.0),
            best_accuracy: Some(0.95),
            ..numbers()
        };
        // Nine steps of 0.9 and one of 0.
        let why =
            "accuracy_drop(): the accuracy of the last 10 steps is 0.810; it was 0.950 at best";
        check(accuracy_drop(), &step, &[1.0; 12], Some(why));
        check(accuracy_drop().by(0.2), &step, &[1.0; 12], None);
        check(accuracy_drop(), &step, &[1.0; 8], None);
        let without = StepNumbers {
            best_accuracy: None,
            ..step
        };
        check(accuracy_drop(), &without, &[1.0; 12], None);
    }

    #[test]
    fn the_layer_that_moves_most_is_named() {
        let ratio = |layer: &str, ratio| LayerRatio {
            layer: layer.to_owned(),
            ratio,
        };
        let step = StepNumbers {
            update_ratios: vec![ratio("bert.embeddings", 0.01), ratio("classifier", 0.25)],
            ..numbers()
        };
        let why = "update_ratio().above(0.1): the update of `classifier`, as a share of its weights, is 0.2500";
        check(update_ratio().above(0.1), &step, &[], Some(why));
        check(update_ratio().above(0.3), &step, &[], None);
        check(update_ratio().above(0.1).of("embeddings"), &step, &[], None);
        let why = "update_ratio().above(0.1).of(\"classifier.weight\"): the update of `classifier`, as a share of its weights, is 0.2500";
        check(
            update_ratio().above(0.1).of("classifier.weight"),
            &step,
            &[],
            Some(why),
        );
    }

    #[test]
    fn what_can_never_hold_is_refused() {
        for condition in [
            spike(1.0),
            spike(f64::NAN),
            every(0),
            every(-3),
            loss().above(f64::NAN),
            accuracy_drop().by(0.0),
            accuracy_drop().by(1.5),
        ] {
            let problem = condition.checked().expect_err("it is refused");
            assert_eq!(problem.code, "SC0103");
        }
        assert!((spike(1.5) | every(3) | accuracy_drop()).checked().is_ok());
    }
}
