//! What the optimizer keeps beside the variables, read from `state.safetensors`.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Device, Tensor};

use super::convert::Refused;
use super::reading::{Tensors, tensor};
use super::tensors::Layout;

use stratoscope_optim::{OptimizerState, StoredTensor};
use stratoscope_step::SavedStep;

/// What the optimizer keeps beside each copy; `steps`: of each copy.
pub(super) fn moments_from(
    state: &SavedStep,
    steps: &[u64],
    layout: &Layout<'_>,
    tensors: &mut Tensors<'_>,
) -> Result<Vec<OptimizerState>, Refused> {
    let mut all = Vec::new();
    for (copy, (module, &steps)) in state.values.modules.iter().zip(steps).enumerate() {
        let mut moments = OptimizerState::after(steps);
        let mut places = Places(HashMap::new());
        module.visit(&mut places);
        for record in layout.records {
            let Some((device, dtype, shape)) = places.0.get(&record.param) else {
                continue;
            };
            for kept in StoredTensor::ALL {
                let written = copy % layout.copies;
                let name = format!("{}.{written}.{}", kept.name(), record.name);
                let count = kept.numbers(shape);
                if count == 0 || !tensors.has(&name) {
                    continue;
                }
                let bytes = tensors.take(&name, *dtype, &[count])?;
                moments.keep(
                    record.param,
                    kept,
                    tensor(bytes, vec![count], *dtype, device),
                );
            }
        }
        all.push(moments);
    }
    Ok(all)
}

/// Where the variables of a module are, their type and their shape.
struct Places(HashMap<ParamId, (Device, DType, Vec<usize>)>);

impl ModuleVisitor for Places {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        // Moments do not record gradients.
        let device = value.device().inner();
        let shape = value.dims().to_vec();
        self.0.insert(param.id, (device, value.dtype(), shape));
    }
}
