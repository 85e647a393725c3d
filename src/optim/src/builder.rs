//! What is written the same way for every optimizer: the rate, clipping, the moving average of the weights, rates by layer
//! and by name, and which variables decay.

use stratoscope_diagnostics::Result;

use super::average::Ema;
use super::checks::{check_number, check_schedule};
use super::clip::Clip;
use super::decay::Decay;
use super::groups::{check_layer_decay, check_rates};
use super::{Identity, Optimizer, UpdateRule};
use crate::schedule::{IntoSchedule, Schedule};

/// What every builder has beside the numbers of its rule.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub schedule: Schedule,
    pub clip: Clip,
    pub ema: Ema,
    pub layer_decay: Option<f64>,
    pub rates: Vec<(String, f64)>,
    /// Only the optimizers with weight decay have methods that change it.
    pub decay: Decay,
    pub identity: Identity,
}

impl Common {
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            schedule: learning_rate.into_schedule(),
            clip: Clip::default(),
            ema: Ema::default(),
            layer_decay: None,
            rates: Vec::new(),
            decay: Decay::default(),
            identity: Identity::new(),
        }
    }

    /// The optimizer of this name, checked with the numbers of its rule.
    pub fn resolve(self, name: &'static str, rule: UpdateRule) -> Result<Optimizer> {
        check_schedule(name, &self.schedule)?;
        for (argument, number) in rule.as_rule().numbers() {
            check_number(name, argument, number)?;
        }
        Ok(Optimizer {
            name,
            rule,
            schedule: self.schedule,
            clipping: self.clip.resolve(name)?,
            averaging: self.ema.resolve(name)?,
            layer_decay: check_layer_decay(name, self.layer_decay)?,
            rates: check_rates(name, self.rates)?,
            decay_exclusion: self.decay.resolve(name)?,
            by_name: false,
            identity: self.identity,
        })
    }
}

/// The methods of every optimizer, in an `impl` of a type with the field `common`.
macro_rules! offered_by_every_optimizer {
    () => {
        /// Clips the norm of each tensor's gradient on its own.
        pub fn clipnorm(self, clipnorm: f64) -> Self {
            self.with(|own| own.common.clip.clipnorm = Some(clipnorm))
        }

        /// Clips the norm over all gradients: factor `max / (norm + 1e-6)`, at most 1. BERT uses 1.0.
        pub fn global_clipnorm(self, global_clipnorm: f64) -> Self {
            self.with(|own| own.common.clip.global_clipnorm = Some(global_clipnorm))
        }

        /// Clips each element of each gradient to ± this value.
        pub fn clipvalue(self, clipvalue: f64) -> Self {
            self.with(|own| own.common.clip.clipvalue = Some(clipvalue))
        }

        /// Keeps a moving average of the weights, which they are overwritten with when `fit!` ends. It costs the
        /// memory of the weights once more. Default: false.
        pub fn use_ema(self, use_ema: bool) -> Self {
            self.with(|own| own.common.ema.is_used = use_ema)
        }

        /// The share of the old average in the new one, from 0 to 1. Default: 0.99.
        pub fn ema_momentum(self, ema_momentum: f64) -> Self {
            self.with(|own| own.common.ema.momentum = ema_momentum)
        }

        /// After how many steps the weights are overwritten by their averages, beside the end of `fit!`. Default: none.
        pub fn ema_overwrite_frequency(self, steps: impl $crate::IntoCount) -> Self {
            let steps = $crate::IntoCount::into_count(steps);
            self.with(|own| own.common.ema.overwrite_frequency = Some(steps))
        }

        /// The rate of each encoder layer is that of the layer above times this, from 0 to 1. The head has the rate itself,
        /// the embeddings the least. Default: none, one rate for all.
        pub fn layer_decay(self, layer_decay: f64) -> Self {
            self.with(|own| own.common.layer_decay = Some(layer_decay))
        }

        /// The rate of the variables whose names match a pattern is multiplied with this, 0 or more: `("embeddings.*", 0.1)`.
        /// Of several calls the last one whose pattern matches holds for a variable. `*` stands for any text.
        pub fn rate_for(self, pattern: impl Into<String>, factor: f64) -> Self {
            self.with(|own| own.common.rates.push((pattern.into(), factor)))
        }

        /// Changed, and so another optimizer than the one it came from.
        fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            self.common.identity = self.common.identity.without_owner();
            change(&mut self);
            self
        }
    };
}

/// The methods that say which variables decay, of the optimizers with weight decay.
macro_rules! offered_with_weight_decay {
    () => {
        /// Decays biases and LayerNorm too, as Keras does. Default: false.
        pub fn decay_all_parameters(self, decay_all: bool) -> Self {
            self.with(|own| own.common.decay.decay_all = Some(decay_all))
        }

        /// Decays all variables but those whose name contains one of these, in place of biases and
        /// LayerNorm. Keras's method of the same name.
        pub fn exclude_from_weight_decay<S: Into<String>>(
            self,
            names: impl IntoIterator<Item = S>,
        ) -> Self {
            let names = names.into_iter().map(Into::into).collect();
            self.with(|own| own.common.decay.excluded = Some(names))
        }
    };
}
