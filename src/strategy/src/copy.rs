//! Real copies. A clone of a burn tensor shares its storage until one of the two is written; the
//! replicas of a variable must not share anything, or a report of copies would be a fiction.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Bool, Device, Int, Tensor};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::device::{BackendKind, LogicalDevice};
use crate::problem;

/// A copy of a module on a device: the same identities, autodiff as the original has it, storage of
/// its own.
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
        // `original` is still held, so the data is a copy of its bytes.
        BackendKind::Flex => Tensor::from_data(original.to_data(), &device.burn),
        // A kernel that writes a new buffer: the bits of x · 1 are those of x.
        BackendKind::Wgpu | BackendKind::Cuda => original.clone().mul_scalar(1.0),
    }
}

struct CopyTo<'a> {
    device: &'a LogicalDevice,
    problem: Option<Box<Diagnostic>>,
}

/// Reads a value through the host while the parameter still holds it, so that the bytes are new,
/// and writes it to the device. The same three lines for three element types.
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
