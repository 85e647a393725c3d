//! Operations over many variables at once, with as few launches as the device's bindings allow. Their number of inputs
//! is not fixed, so that they enter burn's queue of operations by hand.

use burn::backend::Cube;
use burn::backend::fusion::custom::{
    CustomOpIr, HandleContainer, OperationFn, OperationIr, StreamId, TensorIr,
};
use burn::backend::fusion::{ExecutionError, FusionTensor};
use burn::backend::wgpu::CubeBackend;
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::fusion::{CubeFusionHandle, FusionCubeRuntime};

pub use crate::kernels::adam::AdamStep;
use crate::kernels::adam::{self, Variable};
use crate::kernels::squares as of_squares;

/// The most variables of one launch: more make a shader that takes long to compile.
const MOST_VARIABLES: usize = 8;
/// The most tensors of one sum of squares.
const MOST_SQUARES: usize = 24;
/// Bindings of a launch beside its tensors: scalars and shapes.
const OTHER_BINDINGS: usize = 4;

/// A tensor of any rank on a GPU, out of its place in a module.
pub struct Flat(FusionTensor<FusionCubeRuntime>);

impl Flat {
    /// `None` for a tensor that [`crate::takes`] refuses.
    pub fn new<const D: usize>(tensor: Tensor<D>) -> Option<Self> {
        match crate::takes(&tensor) {
            true => tensor.try_into_primitive::<Cube>().ok().map(Self),
            false => None,
        }
    }

    /// The tensor again; its rank must be what it was.
    pub fn into_tensor<const D: usize>(self) -> Tensor<D> {
        Tensor::from_primitive::<Cube>(self.0)
    }
}

/// What an update changes and what it is made of: equally many elements each.
pub struct Slots {
    /// The variable itself.
    pub weights: Flat,
    /// The first moment.
    pub first: Flat,
    /// The second moment.
    pub second: Flat,
    /// Its gradient; `None` after the update.
    pub gradient: Option<Flat>,
}

type Handles = HandleContainer<CubeFusionHandle>;

/// Queues one operation; returns its outputs, of the given shapes.
fn queue(
    name: &str,
    inputs: Vec<FusionTensor<FusionCubeRuntime>>,
    outputs: Vec<Shape>,
    work: impl Fn(&mut Handles, &[TensorIr], &[TensorIr]) + Send + Sync + 'static,
) -> Vec<FusionTensor<FusionCubeRuntime>> {
    let Some(client) = inputs.first().map(|input| input.client.clone()) else {
        return Vec::new();
    };
    let inputs: Vec<TensorIr> = inputs.into_iter().map(FusionTensor::into_ir).collect();
    let outputs = outputs.into_iter();
    let outputs: Vec<TensorIr> = outputs
        .map(|shape| TensorIr::uninit(client.create_empty_handle(), shape, DType::F32))
        .collect();
    let operation = OperationIr::Custom(CustomOpIr {
        id: name.to_owned(),
        inputs: inputs.clone(),
        outputs: outputs.clone(),
        scalars: Vec::new(),
    });
    let run = OperationFn(move |handles: &mut Handles| {
        work(handles, &inputs, &outputs);
        Ok::<(), ExecutionError>(())
    });
    client.register(StreamId::current(), operation, run)
}

/// How many tensors fit one launch that binds `each` buffers for every one of them.
fn group_size(of: &Flat, each: usize, most: usize) -> usize {
    let bindings =
        of.0.client
            .device()
            .client()
            .properties()
            .hardware
            .max_bindings as usize;
    (bindings.saturating_sub(OTHER_BINDINGS) / each).clamp(1, most)
}

/// Σ x² of each tensor, in their order, in one tensor on the device, which is not waited for. `None` without tensors.
pub fn squares(tensors: Vec<Flat>) -> Option<Tensor<1>> {
    let size = group_size(tensors.first()?, 1, MOST_SQUARES);
    let mut sums = Vec::new();
    let mut tensors = tensors.into_iter().peekable();
    while tensors.peek().is_some() {
        let group: Vec<_> = tensors.by_ref().take(size).map(|it| it.0).collect();
        let shape = Shape::new([group.len()]);
        let made = queue("squares", group, vec![shape], |handles, inputs, outputs| {
            let inputs = inputs.iter();
            let inputs = inputs.map(|input| handles.get_float_tensor::<CubeBackend>(input));
            let sums = of_squares::of_each(inputs.collect());
            handles.register_float_tensor::<CubeBackend>(&outputs[0].id, sums);
        });
        let made = made.into_iter().map(Tensor::<1>::from_primitive::<Cube>);
        sums.extend(made);
    }
    match sums.len() {
        0 | 1 => sums.pop(),
        _ => Some(Tensor::cat(sums, 0)),
    }
}

/// Adam's update of all variables, which share the step's numbers. They come back in their order, without gradients.
pub fn adam(variables: Vec<Slots>, step: AdamStep) -> Vec<Slots> {
    let Some(size) = variables
        .first()
        .map(|it| group_size(&it.weights, 4, MOST_VARIABLES))
    else {
        return Vec::new();
    };
    let mut updated = Vec::with_capacity(variables.len());
    let mut variables = variables.into_iter().peekable();
    while variables.peek().is_some() {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for slots in variables.by_ref().take(size) {
            let Some(gradient) = slots.gradient else {
                updated.push(slots);
                continue;
            };
            let kept = [slots.weights.0, slots.first.0, slots.second.0];
            outputs.extend(kept.iter().map(|tensor| tensor.shape.clone()));
            inputs.extend(kept);
            inputs.push(gradient.0);
        }
        let made = queue("adam", inputs, outputs, move |handles, inputs, outputs| {
            run_group(handles, inputs, outputs, step);
        });
        let mut made = made.into_iter().map(Flat);
        while let (Some(weights), Some(first), Some(second)) =
            (made.next(), made.next(), made.next())
        {
            updated.push(Slots {
                weights,
                first,
                second,
                gradient: None,
            });
        }
    }
    updated
}

fn run_group(handles: &mut Handles, inputs: &[TensorIr], outputs: &[TensorIr], step: AdamStep) {
    let mut tensor = |at: &TensorIr| handles.get_float_tensor::<CubeBackend>(at);
    let variables = inputs.chunks_exact(4).map(|slots| Variable {
        weights: tensor(&slots[0]),
        first: tensor(&slots[1]),
        second: tensor(&slots[2]),
        gradient: tensor(&slots[3]),
    });
    let results = adam::update(variables.collect(), step);
    for (tensor, output) in results.into_iter().flatten().zip(outputs) {
        handles.register_float_tensor::<CubeBackend>(&output.id, tensor);
    }
}
