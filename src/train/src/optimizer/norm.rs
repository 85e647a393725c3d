//! The norm over all gradients of a module, √Σg², which `global_clipnorm` and the card need.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};
use burn_flex::{Flex, FlexTensor};

use super::kernel;

/// √ of the sum of squares over every gradient, in the order of the module's fields.
///
/// On the CPU it is added up in f64; on a GPU per tensor in f32, and read once.
pub(crate) fn global_norm<M: Module>(module: &M, gradients: &GradientsParams) -> f64 {
    let mut sum = Sum {
        gradients,
        total: 0.0,
        on_device: Vec::new(),
    };
    module.visit(&mut sum);
    let Sum {
        mut total,
        on_device,
        ..
    } = sum;
    if !on_device.is_empty() {
        let data = Tensor::cat(on_device, 0).into_data().convert::<f32>();
        total += data.iter::<f32>().map(f64::from).sum::<f64>();
    }
    total.sqrt()
}

struct Sum<'a> {
    gradients: &'a GradientsParams,
    total: f64,
    on_device: Vec<Tensor<1>>,
}

impl ModuleVisitor for Sum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        if is_flex(&gradient) {
            self.total += of_tensor(gradient).powi(2);
        } else {
            self.on_device.push(gradient.powi_scalar(2).sum());
        }
    }
}

/// Σ x² of a tensor.
pub(crate) enum Squares {
    /// On the CPU, where it costs one pass.
    Known(f64),
    /// Elsewhere a tensor of one element, to be read together with others.
    OnDevice(Box<Tensor<1>>),
}

/// Σ x² of a tensor, without waiting for a GPU.
pub(crate) fn sum_of_squares<const D: usize>(tensor: Tensor<D>) -> Squares {
    if !is_flex(&tensor) {
        return Squares::OnDevice(Box::new(tensor.powi_scalar(2).sum()));
    }
    Squares::Known(match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) => kernel::sum_of_squares(&floats(&tensor.to_contiguous())),
        Err(_) => f64::NAN,
    })
}

/// The norm of one gradient.
pub(super) fn of_tensor<const D: usize>(gradient: Tensor<D>) -> f64 {
    if !is_flex(&gradient) {
        return f64::from(gradient.powi_scalar(2).sum().into_scalar::<f32>()).sqrt();
    }
    match gradient.try_into_primitive::<Flex>() {
        Ok(gradient) => kernel::sum_of_squares(&floats(&gradient.to_contiguous())).sqrt(),
        Err(_) => f64::NAN,
    }
}

/// Whether a tensor is float32 on the CPU backend, without autodiff, so that its slice can be used.
pub(super) fn is_flex<const D: usize>(tensor: &Tensor<D>) -> bool {
    use burn::backend::DispatchDevice;
    tensor.dtype() == DType::F32 && matches!(tensor.device().as_dispatch(), DispatchDevice::Flex(_))
}

/// The elements of a contiguous float32 tensor.
pub(super) fn floats(tensor: &FlexTensor) -> std::borrow::Cow<'_, [f32]> {
    match tensor.as_slice::<f32>() {
        Some(slice) => std::borrow::Cow::Borrowed(slice),
        // A part of a larger buffer, such as a row that was cut out.
        None => {
            let data = tensor.clone().into_data();
            std::borrow::Cow::Owned(data.iter::<f32>().collect())
        }
    }
}
