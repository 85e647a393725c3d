//! Which variables weight decay leaves alone.

use std::fmt;

use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::Result;

use super::Optimizer;
use super::checks::conflict;

/// As written: up to two values, of which one may be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Decay {
    pub decay_all: Option<bool>,
    pub excluded: Option<Vec<String>>,
}

/// Which variables weight decay leaves alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DecayExclusion {
    /// Biases and LayerNorm, as for BERT.
    #[default]
    BiasesAndNorms,
    /// None: every variable decays (`decay_all_parameters(true)`).
    Nothing,
    /// Those whose name contains one of these (`exclude_from_weight_decay`).
    Named(Vec<String>),
}

impl Decay {
    /// `decay_all_parameters(false)` is the default, which excludes what a list excludes anyway.
    pub fn resolve(self, optimizer: &str) -> Result<DecayExclusion> {
        const ALL: &str = "decay_all_parameters";
        const EXCLUDED: &str = "exclude_from_weight_decay";
        match (self.decay_all, self.excluded) {
            (Some(true), Some(_)) => Err(conflict(optimizer, ALL, EXCLUDED)),
            (_, Some(names)) => Ok(DecayExclusion::Named(names)),
            (Some(true), None) => Ok(DecayExclusion::Nothing),
            (_, None) => Ok(DecayExclusion::BiasesAndNorms),
        }
    }
}

impl DecayExclusion {
    /// Whether weight decay leaves this variable alone.
    pub fn excludes(&self, variable: &NamedParameter) -> bool {
        match self {
            Self::BiasesAndNorms => variable.is_undecayed(),
            Self::Nothing => false,
            Self::Named(names) => names.iter().any(|name| variable.name.contains(name)),
        }
    }

    /// The names as written, if there are any.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::Named(names) => Some(names),
            Self::BiasesAndNorms | Self::Nothing => None,
        }
    }
}

impl fmt::Display for DecayExclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BiasesAndNorms => Ok(()),
            Self::Nothing => f.write_str(".decay_all_parameters(true)"),
            Self::Named(names) => write!(f, ".exclude_from_weight_decay({names:?})"),
        }
    }
}

impl Optimizer {
    /// The numbers of rule, schedule and average to the last bit, as a checkpoint records them. `decay_all` was a field of
    /// each rule with a decay, behind `weight_decay`; it stays in the text so that runs from before can be resumed.
    pub fn recorded_numbers(&self) -> String {
        let numbers = format!("{:?}", (self.rule, self.schedule, self.averaging));
        let decay_all = self.decay_exclusion == DecayExclusion::Nothing;
        let decay = format!("weight_decay: {:?}", self.weight_decay());
        // Rules without a decay do not contain it.
        numbers.replacen(&decay, &format!("{decay}, decay_all: {decay_all}"), 1)
    }
}

#[cfg(test)]
mod tests {
    use burn::module::ParamId;

    use super::super::{Adafactor, Adam, AdamW, IntoOptimizer, Lamb, Lion, RMSprop, SGD};
    use super::*;

    #[test]
    fn both_methods_on_one_optimizer_are_refused() {
        let check = |optimizer: Result<Optimizer>| {
            let refused = optimizer.expect_err("refused");
            assert_eq!(refused.code.as_str(), "SC0118");
            let text = format!("{refused:?}");
            for part in [
                "`decay_all_parameters` and `exclude_from_weight_decay` exclude each other",
                "one decays every variable, the other excludes some",
                "remove `exclude_from_weight_decay`",
                "remove `decay_all_parameters`",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        };
        let each = |all: bool| {
            [
                AdamW::new(5e-5)
                    .decay_all_parameters(all)
                    .exclude_from_weight_decay(["bias"])
                    .into_optimizer(),
                Lion::new(1e-5)
                    .exclude_from_weight_decay(["bias"])
                    .decay_all_parameters(all)
                    .into_optimizer(),
                Lamb::new(1e-3)
                    .decay_all_parameters(all)
                    .exclude_from_weight_decay(["bias"])
                    .into_optimizer(),
                Adafactor::new(1e-3)
                    .decay_all_parameters(all)
                    .exclude_from_weight_decay(["bias"])
                    .into_optimizer(),
            ]
        };
        each(true).into_iter().for_each(check);
        for optimizer in each(false) {
            let optimizer = optimizer.expect("no contradiction");
            assert_eq!(
                optimizer.decay_exclusion.names(),
                Some(&["bias".to_owned()][..])
            );
        }
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
        check(adamw().decay_all_parameters(false), [true, true, false]);
        check(
            adamw().exclude_from_weight_decay(["bias"]),
            [false, true, false],
        );
        check(
            adamw().exclude_from_weight_decay(["dense"]),
            [false, false, true],
        );
        check(
            adamw().exclude_from_weight_decay(Vec::<String>::new()),
            [false; 3],
        );
    }

    #[test]
    fn numbers_are_recorded_as_in_checkpoints_from_before() {
        let check = |optimizer: Result<Optimizer>, rule: &str, names: &str| {
            let optimizer = optimizer.expect("valid");
            let recorded = optimizer.recorded_numbers();
            let rest = format!("{:?}, {:?})", optimizer.schedule, optimizer.averaging);
            assert_eq!(recorded, format!("({rule}, {rest}"));
            assert_eq!(format!("{:?}", optimizer.decay_exclusion.names()), names);
        };
        check(
            AdamW::new(5e-5).into_optimizer(),
            "Adam(AdamRule { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.01, decay_all: false, \
             amsgrad: false })",
            "None",
        );
        check(
            Adam::new(5e-5).amsgrad(true).use_ema(true).into_optimizer(),
            "Adam(AdamRule { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decay_all: false, \
             amsgrad: true })",
            "None",
        );
        check(
            Lion::new(1e-5)
                .weight_decay(0.1)
                .decay_all_parameters(true)
                .into_optimizer(),
            "Lion(LionRule { beta_1: 0.9, beta_2: 0.99, weight_decay: 0.1, decay_all: true })",
            "None",
        );
        check(
            Lamb::new(1e-3)
                .exclude_from_weight_decay(["bias"])
                .into_optimizer(),
            "Lamb(LambRule { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, weight_decay: 0.0, decay_all: false })",
            "Some([\"bias\"])",
        );
        check(
            Adafactor::new(1e-3).into_optimizer(),
            "Adafactor(AdafactorRule { beta_2_decay: -0.8, epsilon_1: 1e-30, epsilon_2: 0.001, clip_threshold: 1.0, \
             relative_step: true, weight_decay: 0.0, decay_all: false })",
            "None",
        );
        check(
            SGD::new(0.1).into_optimizer(),
            "Sgd(SgdRule { momentum: 0.0, nesterov: false })",
            "None",
        );
        check(
            RMSprop::new(0.1).into_optimizer(),
            "Rmsprop(RmspropRule { rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false })",
            "None",
        );
    }
}
