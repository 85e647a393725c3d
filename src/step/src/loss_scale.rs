//! Dynamic loss scaling under `mixed_float16`: Keras's `LossScaleOptimizer` with its defaults (Micikevicius et al.
//! 2018, "Mixed precision training"). float16 rounds small gradients to 0, so the loss is multiplied by a number
//! before the backward pass and the gradients are divided by it again. A step whose gradients overflow is skipped and
//! halves the scale; 2000 finite steps in a row double it.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use stratoscope_arguments::context::mixed_precision::{INITIAL_LOSS_SCALE, Policy};

/// After so many steps in a row with finite gradients it is doubled.
const GROWTH_STEPS: u64 = 2000;
/// Below this a gradient is not infinite because of the scale.
const LEAST_SCALE: f64 = 1.0;

/// What the loss is multiplied with, so that its gradients are numbers that float16 has: as Keras's
/// `LossScaleOptimizer` with its defaults. Always a power of two, so that nothing is rounded by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    scale: f64,
    /// Steps with finite gradients since it changed.
    finite: u64,
}

impl LossScale {
    /// Of a model under this policy.
    pub fn of(policy: Policy) -> Self {
        let scale = match policy {
            Policy::MixedFloat16 => INITIAL_LOSS_SCALE,
            Policy::Float32 | Policy::MixedBfloat16 => LEAST_SCALE,
        };
        Self { scale, finite: 0 }
    }

    /// The scale, and the steps with finite gradients since it changed.
    pub fn parts(&self) -> (f64, u64) {
        (self.scale, self.finite)
    }

    /// From [`Self::parts`].
    pub fn from_parts((scale, finite): (f64, u64)) -> Self {
        Self { scale, finite }
    }

    /// What the loss is multiplied with before the backward pass.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The scale, where the policy has one.
    pub fn in_force(&self, policy: Policy) -> Option<f64> {
        (policy == Policy::MixedFloat16).then_some(self.scale)
    }

    /// Whether a step with gradients that are not finite is to be skipped: under a scale they may be finite
    /// with a smaller one.
    pub fn skips(&self) -> bool {
        self.scale > LEAST_SCALE
    }

    /// A step was made. The scale is doubled after many, where there is one.
    pub fn stepped(&mut self, policy: Policy) {
        self.finite += 1;
        if policy == Policy::MixedFloat16 && self.finite == GROWTH_STEPS {
            *self = Self {
                scale: self.scale * 2.0,
                finite: 0,
            };
        }
    }

    /// A step was skipped.
    pub fn skipped(&mut self) {
        *self = Self {
            scale: (self.scale / 2.0).max(LEAST_SCALE),
            finite: 0,
        };
    }
}

/// The gradients of the loss itself, from those of the scaled loss.
pub(crate) fn unscaled<M: Module>(
    module: &M,
    gradients: GradientsParams,
    scale: f64,
) -> GradientsParams {
    struct Divide {
        gradients: GradientsParams,
        by: f32,
        divided: GradientsParams,
    }
    impl ModuleVisitor for Divide {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.remove::<D>(param.id) {
                self.divided
                    .register::<D>(param.id, gradient.div_scalar(self.by));
            }
        }
    }
    if scale == 1.0 {
        return gradients;
    }
    let mut divide = Divide {
        gradients,
        by: scale as f32,
        divided: GradientsParams::new(),
    };
    module.visit(&mut divide);
    divide.divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_keras() {
        let mut scale = LossScale::of(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 32_768.0);
        for _ in 0..1999 {
            scale.stepped(Policy::MixedFloat16);
        }
        assert_eq!(scale.scale(), 32_768.0);
        scale.stepped(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 65_536.0);
        // A skipped step halves it, and the steps are counted anew.
        for _ in 0..1999 {
            scale.stepped(Policy::MixedFloat16);
        }
        scale.skipped();
        assert_eq!(scale.scale(), 32_768.0);
        scale.stepped(Policy::MixedFloat16);
        assert_eq!(scale.scale(), 32_768.0);
        for _ in 0..20 {
            scale.skipped();
        }
        assert_eq!((scale.scale(), scale.skips()), (1.0, false));
        let mut none = LossScale::of(Policy::MixedBfloat16);
        for _ in 0..2000 {
            none.stepped(Policy::MixedBfloat16);
        }
        assert_eq!((none.scale(), none.skips()), (1.0, false));
    }
}
