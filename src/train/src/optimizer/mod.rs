//! Optimizers: how a gradient becomes a step.
//!
//! [`AdamW`], [`Adam`], [`SGD`], [`RMSprop`] and [`Lion`] are the builders that a cell writes, a file each; `builder` has the
//! methods that all share. They resolve to an [`Optimizer`], with all defaults filled in and all values checked. [`OptimizerState`]
//! holds the moments of one replica, on the device of its weights; `step` applies an update to its module, `kernel` does
//! the arithmetic.

#[macro_use]
mod builder;

mod adam;
mod adamw;
mod average;
mod change;
mod clip;
mod groups;
mod kernel;
mod lion;
mod norm;
mod on_gpu;
mod on_tensors;
mod rehearse;
mod rmsprop;
mod saved;
mod sgd;
mod step;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::arguments;
use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_strategy::strategy::StrategyId;
use stratoscope_strategy::{Strategy, scope};

pub use adam::Adam;
pub use adamw::AdamW;
pub use average::Averaging;
pub use clip::Clipping;
pub use lion::Lion;
pub use rmsprop::RMSprop;
pub use sgd::SGD;
pub use step::OptimizerState;

pub(crate) use change::{Change, Changes};
pub(crate) use groups::Group;
pub(crate) use norm::{Squares, global_norm, squares_on_device, sum_of_squares};
pub(crate) use on_gpu::changes_in_place;
pub(crate) use rehearse::rehearse;
pub(crate) use saved::Kept;
pub(crate) use step::{Update, apply, clip_each};

use crate::schedule::Schedule;

/// How one element moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum UpdateRule {
    /// Adam and AdamW.
    Adam(AdamRule),
    /// Stochastic gradient descent.
    Sgd(SgdRule),
    /// RMSprop.
    Rmsprop(RmspropRule),
    /// Lion.
    Lion(LionRule),
}

/// The numbers of Adam, and of AdamW where there is a decay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamRule {
    /// How slowly the mean of the gradients moves.
    pub beta_1: f64,
    /// How slowly the mean of the squared gradients moves.
    pub beta_2: f64,
    /// Added outside the square root.
    pub epsilon: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
    /// Whether biases and LayerNorm decay too.
    pub decay_all: bool,
    /// Whether the largest second moment so far stands in for the present one.
    pub amsgrad: bool,
}

/// The numbers of gradient descent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SgdRule {
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Whether to look ahead along the momentum.
    pub nesterov: bool,
}

/// The numbers of RMSprop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RmspropRule {
    /// How slowly the mean of the squared gradients moves.
    pub rho: f64,
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Added inside the square root.
    pub epsilon: f64,
    /// Whether the square of the mean gradient is taken from the mean square.
    pub centered: bool,
}

/// The numbers of Lion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LionRule {
    /// The share of the momentum in the direction of a step.
    pub beta_1: f64,
    /// How slowly the momentum moves.
    pub beta_2: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
    /// Whether biases and LayerNorm decay too.
    pub decay_all: bool,
}

/// A tensor that an optimizer keeps beside each trained weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The momentum of SGD and RMSprop.
    Velocity,
    /// Lion's momentum.
    Momentum,
    /// RMSprop's mean of the squared gradients.
    MeanSquare,
    /// RMSprop's mean of the gradients, where it is centered.
    MeanGradient,
    /// Adam's mean of the gradients.
    M,
    /// Adam's mean of the squared gradients.
    V,
    /// The largest second moment so far, for AMSGrad.
    LargestV,
    /// The moving average of the weight.
    Average,
}

impl Slot {
    /// Its name on a placement: `Adam m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Velocity => "velocity",
            Self::Momentum => "momentum",
            Self::MeanSquare => "mean square",
            Self::MeanGradient => "mean gradient",
            Self::M => "Adam m",
            Self::V => "Adam v",
            Self::LargestV => "largest v",
            Self::Average => "average",
        }
    }
}

/// An optimizer with every default filled in and every value checked.
#[derive(Clone, Debug)]
pub struct Optimizer {
    /// The type as written: `AdamW`.
    pub name: &'static str,
    /// How one element moves.
    pub rule: UpdateRule,
    /// The learning rate by step.
    pub schedule: Schedule,
    /// What is done to the gradients first.
    pub clipping: Clipping,
    /// The moving average of the weights, if one is kept.
    pub averaging: Option<Averaging>,
    /// What the rate is multiplied with from each encoder layer to the one below.
    pub layer_decay: Option<f64>,
    /// Variables whose name contains one of these do not decay. `None`: BERT's exclusion, unless the
    /// rule says `decay_all`.
    pub excluded: Option<Vec<String>>,
    /// Named by a text, and so with Keras's default rate.
    pub(crate) by_name: bool,
    pub(crate) identity: Identity,
}

impl Optimizer {
    /// What is kept beside each trained weight: two moments for Adam, one for Lion and SGD with momentum, one to three for
    /// RMSprop, a third for AMSGrad, the average of the weights for `use_ema`.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = match self.rule {
            UpdateRule::Adam(rule) if rule.amsgrad => vec![Slot::M, Slot::V, Slot::LargestV],
            UpdateRule::Adam(_) => vec![Slot::M, Slot::V],
            UpdateRule::Sgd(SgdRule { momentum, .. }) if momentum != 0.0 => vec![Slot::Velocity],
            UpdateRule::Sgd(_) => Vec::new(),
            UpdateRule::Rmsprop(rule) => {
                let velocity = (rule.momentum != 0.0).then_some(Slot::Velocity);
                let mean = rule.centered.then_some(Slot::MeanGradient);
                let slots = [velocity, Some(Slot::MeanSquare), mean];
                slots.into_iter().flatten().collect()
            }
            UpdateRule::Lion(_) => vec![Slot::Momentum],
        };
        slots.extend(self.averaging.map(|_| Slot::Average));
        slots
    }

    /// The decay of the variables that are not excluded; 0 for optimizers without.
    pub fn weight_decay(&self) -> f64 {
        match self.rule {
            UpdateRule::Adam(rule) => rule.weight_decay,
            UpdateRule::Lion(rule) => rule.weight_decay,
            UpdateRule::Sgd(_) | UpdateRule::Rmsprop(_) => 0.0,
        }
    }

    /// Whether weight decay leaves this variable alone.
    pub(crate) fn excludes(&self, variable: &NamedParameter) -> bool {
        match (&self.excluded, self.rule) {
            (Some(names), _) => names.iter().any(|name| variable.name.contains(name)),
            (None, UpdateRule::Adam(AdamRule { decay_all, .. }))
            | (None, UpdateRule::Lion(LionRule { decay_all, .. }))
                if decay_all =>
            {
                false
            }
            (None, _) => variable.is_undecayed(),
        }
    }
}

impl fmt::Display for Optimizer {
    /// As it would be written, with what is in force: `AdamW::new(5e-5).weight_decay(0.01)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::new({})", self.name, self.schedule)?;
        let decay = |f: &mut fmt::Formatter<'_>, weight_decay: f64, all: bool| {
            write!(f, ".weight_decay({weight_decay})")?;
            if all {
                f.write_str(".decay_all_parameters(true)")?;
            }
            match &self.excluded {
                Some(names) => write!(f, ".exclude_from_weight_decay({names:?})"),
                None => Ok(()),
            }
        };
        match self.rule {
            UpdateRule::Adam(rule) if self.name == "AdamW" => {
                decay(f, rule.weight_decay, rule.decay_all)?;
            }
            UpdateRule::Lion(rule) if rule.weight_decay != 0.0 => {
                decay(f, rule.weight_decay, rule.decay_all)?;
            }
            UpdateRule::Rmsprop(rule) => {
                write!(f, ".rho({})", rule.rho)?;
                if rule.momentum != 0.0 {
                    write!(f, ".momentum({})", rule.momentum)?;
                }
                if rule.centered {
                    f.write_str(".centered(true)")?;
                }
            }
            UpdateRule::Sgd(SgdRule { momentum, nesterov }) if momentum != 0.0 => {
                write!(f, ".momentum({momentum})")?;
                if nesterov {
                    f.write_str(".nesterov(true)")?;
                }
            }
            _ => {}
        }
        if matches!(self.rule, UpdateRule::Adam(rule) if rule.amsgrad) {
            f.write_str(".amsgrad(true)")?;
        }
        if let Some(decay) = self.layer_decay {
            write!(f, ".layer_decay({decay})")?;
        }
        write!(f, "{}", self.clipping)?;
        match self.averaging {
            Some(averaging) => averaging.fmt(f),
            None => Ok(()),
        }
    }
}

/// What `compile!` takes as its optimizer: one of the types, or a text that names one.
#[diagnostic::on_unimplemented(
    message = "expected an optimizer, got `{Self}`",
    label = "`AdamW::new(5e-5)`, `Adam::new(…)`, `SGD::new(…)`, `RMSprop::new(…)`, `Lion::new(…)`, or a text such as \"adamw\""
)]
pub trait IntoOptimizer {
    /// The optimizer, checked.
    ///
    /// # Errors
    /// SC0103 for a number out of its range, SC0118 for two kinds of clipping, SC0105 for a text
    /// that names none.
    fn into_optimizer(self) -> Result<Optimizer>;
}

impl IntoOptimizer for Optimizer {
    fn into_optimizer(self) -> Result<Optimizer> {
        Ok(self)
    }
}

impl IntoOptimizer for &str {
    /// With Keras's default rate: 0.001 for Adam, AdamW and RMSprop, 0.01 for SGD, 0.0001 for Lion.
    fn into_optimizer(self) -> Result<Optimizer> {
        let optimizer = match self.to_ascii_lowercase().as_str() {
            "adamw" => AdamW::new(KERAS_ADAM_RATE).into_optimizer(),
            "adam" => Adam::new(KERAS_ADAM_RATE).into_optimizer(),
            "sgd" => SGD::new(KERAS_SGD_RATE).into_optimizer(),
            "rmsprop" => RMSprop::new(KERAS_ADAM_RATE).into_optimizer(),
            "lion" => Lion::new(KERAS_LION_RATE).into_optimizer(),
            _ => Err(crate::problem::unknown_optimizer(self)),
        };
        optimizer.map(|optimizer| Optimizer {
            by_name: true,
            ..optimizer
        })
    }
}

impl IntoOptimizer for String {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.as_str().into_optimizer()
    }
}

/// Keras's default rate of Adam, AdamW and RMSprop.
const KERAS_ADAM_RATE: f64 = 1e-3;
/// Keras's default rate of SGD.
const KERAS_SGD_RATE: f64 = 1e-2;
/// Keras's default rate of Lion.
const KERAS_LION_RATE: f64 = 1e-4;

/// Which optimizer value this is: clones share it, a changed one has its own. It remembers the
/// model that trains with it, since moments belong to one model's variables, and the strategy in
/// whose scope it was made (SC0202).
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    owner: Arc<Mutex<Option<Owner>>>,
    /// The strategy whose scope was active: its id, so that it is not kept alive, and its label.
    made_under: Option<(StrategyId, String)>,
}

#[derive(Clone, Debug)]
struct Owner {
    model: Weak<()>,
    compiled_at: String,
}

impl Identity {
    /// A new optimizer, made in the scope that is active now.
    pub(crate) fn new() -> Self {
        let strategy = scope::current();
        Self {
            owner: Arc::default(),
            made_under: strategy.map(|strategy| (strategy.id(), strategy.label())),
        }
    }

    /// A changed copy: nobody trains with it yet.
    pub(crate) fn of_a_copy(&self) -> Self {
        Self {
            owner: Arc::default(),
            made_under: self.made_under.clone(),
        }
    }

    /// The label of the strategy in whose scope it was made, if that is not `strategy`.
    pub(crate) fn other_strategy(&self, strategy: &Strategy) -> Option<String> {
        let (id, label) = self.made_under.as_ref()?;
        (*id != strategy.id()).then(|| label.clone())
    }

    /// Where another model that still lives was compiled with this optimizer, if there is one.
    pub(crate) fn other_owner(&self, model: &Arc<()>) -> Option<String> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owner.as_ref()?;
        let other = owner.model.upgrade()?;
        (!Arc::ptr_eq(&other, model)).then(|| owner.compiled_at.clone())
    }

    /// From now on this optimizer is the model's.
    pub(crate) fn claim(&self, model: &Arc<()>, compiled_at: String) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        *owner = Some(Owner {
            model: Arc::downgrade(model),
            compiled_at,
        });
    }
}

/// SC0103 for a number of an optimizer.
fn bad_value(optimizer: &str, argument: &str, given: f64, expects: &str) -> Box<Diagnostic> {
    bad_text(optimizer, argument, given.to_string(), expects)
}

/// The same for a value as it is shown.
fn bad_text(optimizer: &str, argument: &str, given: String, expects: &str) -> Box<Diagnostic> {
    let rule = InvalidArgumentValue {
        call: format!("{optimizer}::new"),
        argument: argument.to_owned(),
        given,
        expects: expects.to_owned(),
        place: Place::argument("compile", "optimizer"),
        replacement: None,
        arguments: Vec::new(),
    };
    rule.error()
}

/// Checks the rate of an optimizer.
fn check_schedule(optimizer: &str, schedule: &Schedule) -> Result<()> {
    match schedule.problem() {
        Some((argument, given, expects)) => Err(bad_value(optimizer, argument, given, expects)),
        None => Ok(()),
    }
}

/// Checks the numbers that Adam and AdamW share.
fn check_adam(optimizer: &str, rule: &AdamRule) -> Result<()> {
    check_number(optimizer, "beta_1", rule.beta_1)?;
    check_number(optimizer, "beta_2", rule.beta_2)?;
    check_number(optimizer, "epsilon", rule.epsilon)?;
    check_number(optimizer, "weight_decay", rule.weight_decay)
}

/// SC0103 for a number outside the interval that the table of arguments has for it.
fn check_number(optimizer: &str, argument: &str, number: f64) -> Result<()> {
    match arguments::outside_interval(optimizer, argument, number) {
        Some(expects) => Err(bad_value(optimizer, argument, number, expects)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use burn::module::ParamId;

    use super::*;
    use crate::schedule::warmup_linear;

    #[track_caller]
    fn check(optimizer: impl IntoOptimizer, expected: Result<&str, &str>) {
        let found = optimizer.into_optimizer();
        match (found, expected) {
            (Ok(found), expected) => assert_eq!(Ok(found.to_string().as_str()), expected),
            (Err(found), expected) => assert_eq!(Err(found.code.as_str()), expected),
        }
    }

    #[test]
    fn what_is_in_force_can_be_read() {
        check(AdamW::new(5e-5), Ok("AdamW::new(5e-5).weight_decay(0.01)"));
        let recipe = AdamW::new(warmup_linear(5e-5, 0.1))
            .weight_decay(0.1)
            .global_clipnorm(1.0);
        let written = "AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.1).global_clipnorm(1.0)";
        check(recipe, Ok(written));
        check(
            SGD::new(0.1).momentum(0.9),
            Ok("SGD::new(1e-1).momentum(0.9)"),
        );
        check(
            AdamW::new(5e-5).exclude_from_weight_decay(["bias"]),
            Ok("AdamW::new(5e-5).weight_decay(0.01).exclude_from_weight_decay([\"bias\"])"),
        );
        check(
            Adam::new(1e-3).amsgrad(true).clipnorm(1.0).use_ema(true),
            Ok("Adam::new(1e-3).amsgrad(true).clipnorm(1.0).use_ema(true).ema_momentum(0.99)"),
        );
        check(
            SGD::new(0.1)
                .use_ema(true)
                .ema_momentum(1.0)
                .ema_overwrite_frequency(100),
            Ok("SGD::new(1e-1).use_ema(true).ema_momentum(1.0).ema_overwrite_frequency(100)"),
        );
        check(
            SGD::new(0.1).layer_decay(0.9),
            Ok("SGD::new(1e-1).layer_decay(0.9)"),
        );
        check("AdamW", Ok("AdamW::new(1e-3).weight_decay(0.01)"));
        check("sgd", Ok("SGD::new(1e-2)"));
        check("RMSprop", Ok("RMSprop::new(1e-3).rho(0.9)"));
        let centered = RMSprop::new(0.1).momentum(0.5).centered(true);
        let written = "RMSprop::new(1e-1).rho(0.9).momentum(0.5).centered(true)";
        check(centered, Ok(written));
        check("lion", Ok("Lion::new(1e-4)"));
        let decayed = Lion::new(1e-5)
            .weight_decay(0.1)
            .exclude_from_weight_decay(["bias"]);
        let written = "Lion::new(1e-5).weight_decay(0.1).exclude_from_weight_decay([\"bias\"])";
        check(decayed, Ok(written));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        check(AdamW::new(-5e-5), Err("SC0103"));
        check(AdamW::new(f64::NAN), Err("SC0103"));
        check(AdamW::new(5e-5).beta_1(1.0), Err("SC0103"));
        check(Adam::new(5e-5).epsilon(0.0), Err("SC0103"));
        check(AdamW::new(5e-5).weight_decay(-0.1), Err("SC0103"));
        check(SGD::new(0.1).momentum(1.5), Err("SC0103"));
        check(Adam::new(0.1).global_clipnorm(0.0), Err("SC0103"));
        check(
            Adam::new(0.1).global_clipnorm(1.0).clipnorm(1.0),
            Err("SC0118"),
        );
        check("adma", Err("SC0105"));
        check(RMSprop::new(0.1).rho(1.0), Err("SC0103"));
        check(RMSprop::new(0.1).epsilon(0.0), Err("SC0103"));
        check(Lion::new(0.1).beta_2(-0.1), Err("SC0103"));
        check(Lion::new(0.1).weight_decay(f64::NAN), Err("SC0103"));
        check(SGD::new(0.1).ema_momentum(1.01), Err("SC0103"));
        check(SGD::new(0.1).ema_momentum(f64::NAN), Err("SC0103"));
        check(Adam::new(0.1).ema_overwrite_frequency(0), Err("SC0103"));
        check(AdamW::new(0.1).ema_overwrite_frequency(-3), Err("SC0103"));
    }

    #[test]
    fn who_is_left_alone_by_decay() {
        let names = ["a.LayerNorm.weight", "a.bias", "a.dense.weight"];
        let check = |optimizer: AdamW, expected: [bool; 3]| {
            let optimizer = optimizer.into_optimizer().expect("valid");
            let excluded = names.map(|name| {
                optimizer.excludes(&NamedParameter {
                    name: name.to_owned(),
                    id: ParamId::new(),
                    shape: vec![1],
                })
            });
            assert_eq!(excluded, expected, "{optimizer}");
        };
        let adamw = || AdamW::new(5e-5);
        check(adamw(), [true, true, false]);
        check(adamw().decay_all_parameters(true), [false; 3]);
        check(
            adamw().exclude_from_weight_decay(["bias"]),
            [false, true, false],
        );
        check(
            adamw().exclude_from_weight_decay(Vec::<String>::new()),
            [false; 3],
        );
    }

    #[test]
    fn an_optimizer_belongs_to_one_living_model() {
        let optimizer = AdamW::new(5e-5);
        let copy = optimizer.clone().into_optimizer().expect("valid");
        let changed = optimizer
            .clone()
            .weight_decay(0.5)
            .into_optimizer()
            .expect("valid");
        let optimizer = optimizer.into_optimizer().expect("valid");
        let (first, second) = (Arc::new(()), Arc::new(()));
        optimizer.identity.claim(&first, "cell 3".to_owned());
        assert_eq!(optimizer.identity.other_owner(&first), None);
        assert_eq!(
            copy.identity.other_owner(&second),
            Some("cell 3".to_owned())
        );
        assert_eq!(changed.identity.other_owner(&second), None);
        drop(first);
        assert_eq!(
            copy.identity.other_owner(&second),
            None,
            "its model is gone"
        );
    }
}
