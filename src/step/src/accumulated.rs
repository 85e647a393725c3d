//! What the gradients of a step's batches add up to.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use stratoscope_optim::add_to;

/// The sum of the gradients of one replica so far.
#[derive(Default)]
pub struct Accumulated(GradientsParams);

impl Accumulated {
    /// A sum that is there already.
    pub fn of(gradients: GradientsParams) -> Self {
        Self(gradients)
    }

    /// Adds the gradients of a batch, variable by variable.
    pub fn add<M: Module>(&mut self, module: &M, gradients: GradientsParams) {
        if self.0.is_empty() {
            self.0 = gradients;
            return;
        }
        struct Add<'a>(&'a mut GradientsParams, GradientsParams);
        impl ModuleVisitor for Add<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let Self(sums, added) = self;
                let Some(added) = added.remove::<D>(param.id) else {
                    return;
                };
                let sum = match sums.remove::<D>(param.id) {
                    Some(sum) => add_to(sum, added),
                    None => added,
                };
                sums.register::<D>(param.id, sum);
            }
        }
        module.visit(&mut Add(&mut self.0, gradients));
    }

    /// The same sum once more, in the same memory until one of the two changes.
    pub fn copied<M: Module>(&self, module: &M) -> Self {
        struct Copied<'a>(&'a GradientsParams, GradientsParams);
        impl ModuleVisitor for Copied<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(sum) = self.0.get::<D>(param.id) {
                    self.1.register::<D>(param.id, sum);
                }
            }
        }
        let mut copied = Copied(&self.0, GradientsParams::new());
        module.visit(&mut copied);
        Self(copied.1)
    }

    /// The sum; nothing is left.
    pub fn take(&mut self) -> GradientsParams {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use burn::module::ParamId;
    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::{Device, TensorData};

    use super::*;

    fn gradients(layer: &Linear, weight: f32, bias: Option<f32>) -> GradientsParams {
        let mut gradients = GradientsParams::new();
        let full = |value: f32| Tensor::<2>::full([3, 2], value, &Device::flex());
        gradients.register(layer.weight.id, full(weight));
        if let Some((id, value)) = id_of_bias(layer).zip(bias) {
            gradients.register(id, Tensor::<1>::full([2], value, &Device::flex()));
        }
        gradients
    }

    fn id_of_bias(layer: &Linear) -> Option<ParamId> {
        layer.bias.as_ref().map(|bias| bias.id)
    }

    /// A variable that only one batch has, values that somebody else holds too, and a view.
    #[test]
    fn gradients_add_up_and_leave_what_others_hold() {
        let layer = LinearConfig::new(3, 2).init(&Device::flex());
        let mut sum = Accumulated::default();
        sum.add(&layer, gradients(&layer, 1.5, None));
        let held = sum.0.get::<2>(layer.weight.id).expect("it is there");
        sum.add(&layer, gradients(&layer, 0.25, Some(2.0)));
        let numbers = TensorData::from([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let turned = Tensor::<2>::from_data(numbers, &Device::flex()).transpose();
        let mut view = GradientsParams::new();
        view.register(layer.weight.id, turned);
        sum.add(&layer, view);
        let mut all = sum.take();
        let found = all.remove::<2>(layer.weight.id).expect("it is there");
        let found: Vec<f32> = found.into_data().iter::<f32>().collect();
        assert_eq!(found, [2.75, 5.75, 3.75, 6.75, 4.75, 7.75]);
        let bias = id_of_bias(&layer).and_then(|id| all.remove::<1>(id));
        let bias: Vec<f32> = bias
            .expect("it is there")
            .into_data()
            .iter::<f32>()
            .collect();
        assert_eq!(bias, [2.0, 2.0]);
        let held: Vec<f32> = held.into_data().iter::<f32>().collect();
        assert_eq!(held, [1.5; 6]);
        assert!(sum.take().is_empty());
    }
}
