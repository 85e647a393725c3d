//! The trainable values of a module by identity, extracted and put back: what local SGD averages.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// The values of the trainable parameters, kept as gradients are: by identity.
pub(crate) fn of<M: Module>(module: &M) -> GradientsParams {
    let mut values = Values(GradientsParams::new());
    module.visit(&mut values);
    values.0
}

/// The module with these values; parameters without one stay as they are.
pub(crate) fn replaced<M: Module>(module: M, values: GradientsParams) -> M {
    module.map(&mut Values(values))
}

struct Values(GradientsParams);

impl ModuleVisitor for Values {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // Tensors are marked as requiring gradients in training mode only.
        let value = Module::train(param.clone()).val();
        if value.is_require_grad() {
            self.0.register::<D>(param.id, value.inner());
        }
    }
}

impl ModuleMapper for Values {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(value) = self.0.remove::<D>(param.id) else {
            return param;
        };
        let (id, old, mapper) = param.consume();
        let value = match old.is_require_grad() {
            true => Tensor::from_inner(value).require_grad(),
            false => value,
        };
        Param::from_mapped_value(id, value, mapper)
    }
}
