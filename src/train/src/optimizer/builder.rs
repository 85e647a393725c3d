//! What is written the same way for every optimizer: clipping, the moving average of the weights, and
//! rates by layer and by name.

/// The methods, in an `impl` of a type with the fields `clip`, `ema`, `layer_decay`, `rates` and `identity`.
macro_rules! offered_by_every_optimizer {
    () => {
        /// Clips the norm of each tensor's gradient on its own.
        pub fn clipnorm(self, clipnorm: f64) -> Self {
            self.with(|own| own.clip.clipnorm = Some(clipnorm))
        }

        /// Clips the norm over all gradients: factor `max / (norm + 1e-6)`, at most 1. BERT uses 1.0.
        pub fn global_clipnorm(self, global_clipnorm: f64) -> Self {
            self.with(|own| own.clip.global_clipnorm = Some(global_clipnorm))
        }

        /// Clips each element of each gradient to ± this value.
        pub fn clipvalue(self, clipvalue: f64) -> Self {
            self.with(|own| own.clip.clipvalue = Some(clipvalue))
        }

        /// Keeps a moving average of the weights, which they are overwritten with when `fit!` ends. It costs the
        /// memory of the weights once more. Default: false.
        pub fn use_ema(self, use_ema: bool) -> Self {
            self.with(|own| own.ema.is_used = use_ema)
        }

        /// The share of the old average in the new one, from 0 to 1. Default: 0.99.
        pub fn ema_momentum(self, ema_momentum: f64) -> Self {
            self.with(|own| own.ema.momentum = ema_momentum)
        }

        /// After how many steps the weights are overwritten by their averages, beside the end of `fit!`. Default: none.
        pub fn ema_overwrite_frequency(self, steps: impl $crate::count::IntoCount) -> Self {
            let steps = $crate::count::IntoCount::into_count(steps);
            self.with(|own| own.ema.overwrite_frequency = Some(steps))
        }

        /// The rate of each encoder layer is that of the layer above times this, from 0 to 1. The head has the rate itself,
        /// the embeddings the least. Default: none, one rate for all.
        pub fn layer_decay(self, layer_decay: f64) -> Self {
            self.with(|own| own.layer_decay = Some(layer_decay))
        }

        /// The rate of the variables whose names match a pattern is multiplied with this, 0 or more: `("embeddings.*", 0.1)`.
        /// Of several calls the last one whose pattern matches holds for a variable. `*` stands for any text.
        pub fn rate_for(self, pattern: impl Into<String>, factor: f64) -> Self {
            self.with(|own| own.rates.push((pattern.into(), factor)))
        }

        /// Changed, and so another optimizer than the one it came from.
        fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            self.identity = self.identity.of_a_copy();
            change(&mut self);
            self
        }
    };
}

/// The methods that say which variables decay, in an `impl` of a type with the fields `rule`, `excluded` and `identity`.
macro_rules! offered_with_weight_decay {
    () => {
        /// Decays biases and LayerNorm too, as Keras does. Default: false.
        pub fn decay_all_parameters(self, decay_all: bool) -> Self {
            self.with(|own| own.rule.decay_all = decay_all)
        }

        /// Decays all variables but those whose name contains one of these, in place of biases and
        /// LayerNorm. Keras's method of the same name.
        pub fn exclude_from_weight_decay<S: Into<String>>(
            self,
            names: impl IntoIterator<Item = S>,
        ) -> Self {
            let names = names.into_iter().map(Into::into).collect();
            self.with(|own| own.excluded = Some(names))
        }
    };
}
