//! Copies with storage of their own. A clone of a burn tensor shares its storage until one of the two is written, so the
//! replicas of a variable must not be clones: a placement report would count memory that does not exist.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Bool, Device, Int, Tensor};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::device::{BackendKind, LogicalDevice};
use crate::problem;

/// A copy of a module on a device: the same identities, autodiff like the original, storage of its own.
///
/// # Errors
/// SC0907 if the values cannot be read or written.
pub(crate) fn module<M: Module>(original: &M, device: &LogicalDevice) -> Result<M> {
    let mut mapper = CopyTo {
        device,
        problem: None,
    };
    let copy = original.clone().map(&mut mapper);
    match mapper.problem {
        Some(problem) => Err(problem),
        None => Ok(copy),
    }
}

/// A copy of a gradient on a device, with storage of its own.
pub(crate) fn tensor<const D: usize>(original: &Tensor<D>, device: &LogicalDevice) -> Tensor<D> {
    if original.device() != device.burn {
        return original.clone().to_device(&device.burn);
    }
    match device.backend {
        // `original` still exists, so `to_data` copies its bytes.
        BackendKind::Flex => Tensor::from_data(original.to_data(), &device.burn),
        // A kernel that writes a new buffer; x · 1 has the same bits as x.
        BackendKind::Wgpu | BackendKind::Cuda => original.clone().mul_scalar(1.0),
    }
}

struct CopyTo<'a> {
    device: &'a LogicalDevice,
    problem: Option<Box<Diagnostic>>,
}

/// Reads a value to the host while the parameter still holds it, so that the bytes are copied,
/// and writes it to the device. For all three element types.
macro_rules! copied {
    ($self:ident, $param:ident, $value:ident => $build:expr) => {{
        let held = $param.val();
        match held.clone().try_into_data() {
            Ok($value) => {
                let (id, _, mapper) = $param.consume();
                Param::from_mapped_value(id, $build(held), mapper)
            }
            Err(error) => {
                $self
                    .problem
                    .get_or_insert_with(|| problem::backend_failed(&$self.device.name, error));
                $param
            }
        }
    }};
}

impl ModuleMapper for CopyTo<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        copied!(self, param, data => |held: Tensor<D>| {
            let dtype = held.dtype();
            let device = like(&self.device.burn, &held.device());
            let copy = Tensor::from_data(data, (&device, dtype));
            if held.is_require_grad() { copy.require_grad() } else { copy }
        })
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        copied!(self, param, data => |held: Tensor<D, Int>| {
            Tensor::from_data(data, (&like(&self.device.burn, &held.device()), held.dtype()))
        })
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        copied!(self, param, data => |held: Tensor<D, Bool>| {
            Tensor::from_data(data, &like(&self.device.burn, &held.device()))
        })
    }
}

/// `device`, recording gradients if `model` does.
pub(crate) fn like(device: &Device, model: &Device) -> Device {
    if model.is_autodiff() {
        device.clone().autodiff()
    } else {
        device.clone()
    }
}
