//! The norm over all gradients of a module, √Σg², which `global_clipnorm` and the card need.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use burn_flex::{Flex, FlexTensor};
use stratoscope_gpu::{self as kernels, Flat};

use super::kernel;

/// √ of the sum of squares over every gradient, in the order of the module's fields.
///
/// On the CPU it is added up in f64; on a GPU per tensor in f32, and read once.
pub fn global_norm<M: Module>(module: &M, gradients: &GradientsParams) -> f64 {
    let sum = Sum::of(module, gradients, true);
    let mut total = sum.total;
    total += sum.elsewhere.read().into_iter().map(f64::from).sum::<f64>();
    total.sqrt()
}

/// Sums of squares that add up to the square of [`global_norm`], where all gradients are on one GPU: nothing waits, and
/// who reads them reads what [`global_norm`] reads. `None` elsewhere.
pub fn squares_on_device<M: Module>(
    module: &M,
    gradients: &GradientsParams,
) -> Option<Vec<Tensor<1>>> {
    let sum = Sum::of(module, gradients, false);
    match sum.is_on_cpu {
        true => None,
        false => Some(sum.elsewhere.queued()),
    }
}

struct Sum<'a> {
    gradients: &'a GradientsParams,
    /// Whether those on the CPU are wanted.
    sums_on_cpu: bool,
    total: f64,
    elsewhere: Queue,
    /// Whether a gradient is on the CPU.
    is_on_cpu: bool,
}

impl<'a> Sum<'a> {
    fn of<M: Module>(module: &M, gradients: &'a GradientsParams, sums_on_cpu: bool) -> Self {
        let mut sum = Self {
            gradients,
            sums_on_cpu,
            total: 0.0,
            elsewhere: Queue::default(),
            is_on_cpu: false,
        };
        module.visit(&mut sum);
        sum
    }
}

impl ModuleVisitor for Sum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        if is_flex(&gradient) {
            self.is_on_cpu = true;
            if self.sums_on_cpu {
                self.total += tensor_norm(gradient).powi(2);
            }
        } else {
            self.elsewhere.push(gradient);
        }
    }
}

/// Σ x² of a tensor.
pub enum Squares {
    /// On the CPU, where it costs one pass.
    Known(f64),
    /// Elsewhere a tensor of one element, to be read together with others.
    OnDevice(Box<Tensor<1>>),
}

/// Σ x² of a tensor, without waiting for a GPU.
pub fn sum_of_squares<const D: usize>(tensor: Tensor<D>) -> Squares {
    if !is_flex(&tensor) {
        return Squares::OnDevice(Box::new(tensor_squares(tensor)));
    }
    Squares::Known(match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) => kernel::sum_of_squares(&floats(&tensor.to_contiguous())),
        Err(_) => f64::NAN,
    })
}

/// Σ x² of each of several tensors that are not on the CPU, in as few launches as a GPU allows. The stages of a pipeline are on
/// several GPUs, and a kernel takes tensors of one.
#[derive(Default)]
struct Queue(Vec<(Device, OfDevice)>);

#[derive(Default)]
struct OfDevice {
    /// Those that a kernel squares and sums.
    flat: Vec<Flat>,
    /// Sums of squares of the others.
    sums: Vec<Tensor<1>>,
}

impl Queue {
    fn push<const D: usize>(&mut self, tensor: Tensor<D>) {
        let device = tensor.device();
        let known = self.0.iter().position(|(known, _)| *known == device);
        let at = known.unwrap_or_else(|| {
            self.0.push((device, OfDevice::default()));
            self.0.len() - 1
        });
        let own = &mut self.0[at].1;
        match flattened(tensor) {
            Ok(flat) => own.flat.push(flat),
            Err(tensor) => own.sums.push(kernels::sum(tensor.powi_scalar(2))),
        }
    }

    /// The sums, which nobody waits for.
    fn queued(self) -> Vec<Tensor<1>> {
        self.by_device().flatten().collect()
    }

    /// The sums of each device.
    fn by_device(self) -> impl Iterator<Item = Vec<Tensor<1>>> {
        self.0.into_iter().map(|(_, mut own)| {
            own.sums.extend(kernels::squares(own.flat));
            own.sums
        })
    }

    /// The sums, in one transfer from each device.
    fn read(self) -> Vec<f32> {
        let read = |sums: Vec<Tensor<1>>| {
            let sums = Tensor::cat(sums, 0).into_data().convert::<f32>();
            sums.iter::<f32>().collect::<Vec<_>>()
        };
        self.by_device().flat_map(read).collect()
    }
}

/// Whether tensors are all finite, by their sums of squares.
pub struct Finiteness {
    /// Whether those on the CPU are.
    on_cpu: bool,
    elsewhere: Queue,
}

impl Default for Finiteness {
    fn default() -> Self {
        Self {
            on_cpu: true,
            elsewhere: Queue::default(),
        }
    }
}

impl Finiteness {
    /// One more tensor, without autodiff.
    pub fn push<const D: usize>(&mut self, tensor: Tensor<D>) {
        match is_flex(&tensor) {
            true => self.on_cpu &= tensor_norm(tensor).is_finite(),
            false => self.elsewhere.push(tensor),
        }
    }

    /// Whether all of them are, read from a GPU in one transfer.
    pub fn holds(self) -> bool {
        self.on_cpu && self.elsewhere.read().into_iter().all(f32::is_finite)
    }
}

/// The tensor for a kernel, or itself where the kernels do not take it.
fn flattened<const D: usize>(tensor: Tensor<D>) -> Result<Flat, Box<Tensor<D>>> {
    match kernels::takes(&tensor) {
        true => Flat::new(tensor.clone()).ok_or_else(|| Box::new(tensor)),
        false => Err(Box::new(tensor)),
    }
}

/// Σ x² of a tensor that is not on the CPU.
fn tensor_squares<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let flat = flattened(tensor.clone()).ok();
    let sum = flat.and_then(|flat| kernels::squares(vec![flat]));
    sum.unwrap_or_else(|| kernels::sum(tensor.powi_scalar(2)))
}

/// The norm of one gradient.
pub(super) fn tensor_norm<const D: usize>(gradient: Tensor<D>) -> f64 {
    if !is_flex(&gradient) {
        return f64::from(tensor_squares(gradient).into_scalar::<f32>()).sqrt();
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
