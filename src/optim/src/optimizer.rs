//! [`Optimizer`]: an optimizer as it is used, and [`IntoOptimizer`]: what `compile!` takes as one.

use std::fmt;

use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::{Result, problem};

use crate::identity::Identity;
use crate::list::named;
use crate::schedule::Schedule;
use crate::{Averaging, Clipping, DecayExclusion, Slot, UpdateRule};

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
    /// Patterns of names, and what the rate of the variables is multiplied with whose last match it is.
    pub rates: Vec<(String, f64)>,
    /// Which variables weight decay leaves alone.
    pub decay_exclusion: DecayExclusion,
    /// Named by a text, and so with Keras's default rate.
    pub by_name: bool,
    /// Which value this is, and whose.
    pub identity: Identity,
}

impl Optimizer {
    /// What is kept beside each trained weight: two moments for Adam and LAMB, one for Lion and SGD with momentum, one to three for
    /// RMSprop, a third for AMSGrad, means of rows and columns for Adafactor, the average of the weights for `use_ema`.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = self.rule.as_rule().slots();
        slots.extend(self.averaging.map(|_| Slot::Average));
        slots
    }

    /// How many numbers it keeps beside a variable of this shape.
    pub fn kept_numbers(&self, shape: &[usize]) -> u64 {
        let numbers = self.slots().into_iter().map(|slot| slot.numbers(shape));
        numbers.sum::<usize>() as u64
    }

    /// Their bytes: all are float32.
    pub fn kept_bytes(&self, shape: &[usize]) -> u64 {
        self.kept_numbers(shape) * size_of::<f32>() as u64
    }

    /// The decay of the variables that are not excluded; 0 for optimizers without.
    pub fn weight_decay(&self) -> f64 {
        self.rule.as_rule().weight_decay()
    }

    /// Whether it is one with a weight decay.
    pub fn offers_weight_decay(&self) -> bool {
        // Adam and AdamW are one rule.
        self.name == "AdamW" || self.rule.as_rule().offers_weight_decay()
    }

    /// Sets the decay of the variables that are not excluded; of an optimizer without decay nothing changes.
    pub fn set_weight_decay(&mut self, decay: f64) {
        self.rule.as_rule_mut().set_weight_decay(decay);
    }

    /// Whether weight decay leaves this variable alone.
    pub fn excludes(&self, variable: &NamedParameter) -> bool {
        self.decay_exclusion.excludes(variable)
    }

    /// Whether an update needs all elements of a variable at once, so that servers cannot have its rows.
    pub fn needs_whole_variables(&self) -> bool {
        self.rule.as_rule().needs_whole_variables()
    }
}

impl fmt::Display for Optimizer {
    /// As it would be written, with what is in force: `AdamW::new(5e-5).weight_decay(0.01)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::new({})", self.name, self.schedule)?;
        if self.name == "AdamW" || self.weight_decay() != 0.0 {
            let (decay, exclusion) = (self.weight_decay(), &self.decay_exclusion);
            write!(f, ".weight_decay({decay}){exclusion}")?;
        }
        self.rule.as_rule().show(f)?;
        if let Some(decay) = self.layer_decay {
            write!(f, ".layer_decay({decay})")?;
        }
        for (pattern, factor) in &self.rates {
            write!(f, ".rate_for({pattern:?}, {factor})")?;
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
    label = "`AdamW::new(5e-5)`, `Adam::new(…)`, `SGD::new(…)`, `RMSprop::new(…)`, `Lion::new(…)`, `Lamb::new(…)`, `Adafactor::new(…)`, or a text such as \"adamw\""
)]
pub trait IntoOptimizer {
    /// The optimizer, checked.
    ///
    /// # Errors
    /// SC0103 for a number out of its range, SC0118 for two methods that exclude each other, SC0105 for a text
    /// that names none.
    fn into_optimizer(self) -> Result<Optimizer>;
}

impl IntoOptimizer for Optimizer {
    fn into_optimizer(self) -> Result<Optimizer> {
        Ok(self)
    }
}

impl IntoOptimizer for &str {
    /// With Keras's default rate: 0.001 for Adam, AdamW, RMSprop, Lamb and Adafactor, 0.01 for SGD, 0.0001 for Lion.
    fn into_optimizer(self) -> Result<Optimizer> {
        let optimizer = named(&self.to_ascii_lowercase());
        let optimizer = optimizer.unwrap_or_else(|| Err(problem::unknown_optimizer(self)));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schedule::warmup_linear;
    use crate::{Adafactor, Adam, AdamW, Lamb, Lion, RMSprop, SGD};

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
        check(
            SGD::new(0.1).rate_for("bias", 2.0).rate_for("a.*", 0.1),
            Ok("SGD::new(1e-1).rate_for(\"bias\", 2).rate_for(\"a.*\", 0.1)"),
        );
        check("AdamW", Ok("AdamW::new(1e-3).weight_decay(0.01)"));
        check("sgd", Ok("SGD::new(1e-2)"));
        check("RMSprop", Ok("RMSprop::new(1e-3).rho(0.9)"));
        let centered = RMSprop::new(0.1).momentum(0.5).centered(true);
        let written = "RMSprop::new(1e-1).rho(0.9).momentum(0.5).centered(true)";
        check(centered, Ok(written));
        check("lion", Ok("Lion::new(1e-4)"));
        check("LAMB", Ok("Lamb::new(1e-3)"));
        check("Adafactor", Ok("Adafactor::new(1e-3)"));
        let fixed = Adafactor::new(0.01).relative_step(false).weight_decay(0.1);
        let written = "Adafactor::new(1e-2).weight_decay(0.1).relative_step(false)";
        check(fixed, Ok(written));
        check(
            Lamb::new(1e-3).weight_decay(0.1).decay_all_parameters(true),
            Ok("Lamb::new(1e-3).weight_decay(0.1).decay_all_parameters(true)"),
        );
        let decayed = Lion::new(1e-5)
            .weight_decay(0.1)
            .exclude_from_weight_decay(["bias"]);
        let written = "Lion::new(1e-5).weight_decay(0.1).exclude_from_weight_decay([\"bias\"])";
        check(decayed, Ok(written));
    }

    #[test]
    fn a_decay_is_set_where_there_is_one() {
        let set = |optimizer: Result<Optimizer>| {
            let mut optimizer = optimizer.expect("valid");
            let offers = optimizer.offers_weight_decay();
            optimizer.set_weight_decay(0.25);
            (offers, optimizer.weight_decay())
        };
        assert_eq!(
            set(AdamW::new(0.1).weight_decay(0.0).into_optimizer()),
            (true, 0.25)
        );
        assert_eq!(set(Lion::new(0.1).into_optimizer()), (true, 0.25));
        assert_eq!(set(Lamb::new(0.1).into_optimizer()), (true, 0.25));
        assert_eq!(set(Adafactor::new(0.1).into_optimizer()), (true, 0.25));
        assert_eq!(set(SGD::new(0.1).into_optimizer()), (false, 0.0));
        assert_eq!(set(RMSprop::new(0.1).into_optimizer()), (false, 0.0));
        // Adam has AdamW's rule, and no method that sets a decay.
        assert_eq!(set(Adam::new(0.1).into_optimizer()), (false, 0.25));
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
        for exponent in [0.0, 0.8, -1.1, f64::NAN] {
            let optimizer = Adafactor::new(0.1).beta_2_decay(exponent);
            check(optimizer, Err("SC0103"));
        }
        check(Adafactor::new(0.1).epsilon_1(0.0), Err("SC0103"));
        check(Adafactor::new(0.1).epsilon_2(-1.0), Err("SC0103"));
        check(Adafactor::new(0.1).clip_threshold(0.9), Err("SC0103"));
        check(Adafactor::new(0.1).weight_decay(-0.1), Err("SC0103"));
        check(Lamb::new(0.1).beta_1(1.0), Err("SC0103"));
        check(Lamb::new(0.1).beta_2(f64::NAN), Err("SC0103"));
        check(Lamb::new(0.1).epsilon(0.0), Err("SC0103"));
        check(Lamb::new(0.1).weight_decay(-1.0), Err("SC0103"));
        check(Lamb::new(f64::INFINITY), Err("SC0103"));
        check(Lion::new(0.1).weight_decay(f64::NAN), Err("SC0103"));
        check(SGD::new(0.1).ema_momentum(1.01), Err("SC0103"));
        check(SGD::new(0.1).ema_momentum(f64::NAN), Err("SC0103"));
        check(Adam::new(0.1).ema_overwrite_frequency(0), Err("SC0103"));
        check(AdamW::new(0.1).ema_overwrite_frequency(-3), Err("SC0103"));
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

    #[test]
    fn every_text_of_the_table_names_something() {
        use stratoscope_diagnostics::arguments::OPTIMIZER_NAMES;
        assert!(
            OPTIMIZER_NAMES
                .iter()
                .all(|name| name.into_optimizer().is_ok())
        );
    }
}
