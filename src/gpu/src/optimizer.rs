//! Operations over many variables at once, with as few launches as the device's bindings allow.

use burn::backend::Cube;
use burn::tensor::Tensor;
use burn_cubecl::tensor::CubeTensor;

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
pub struct Flat(CubeTensor);

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

/// How many tensors fit one launch that binds `each` buffers for every one of them.
fn group_size(of: &Flat, each: usize, most: usize) -> usize {
    let bindings = of.0.client.properties().hardware.max_bindings as usize;
    (bindings.saturating_sub(OTHER_BINDINGS) / each).clamp(1, most)
}

/// Σ x² of each tensor, in their order, in one tensor on the device, which is not waited for. `None` without tensors.
pub fn squares(tensors: Vec<Flat>) -> Option<Tensor<1>> {
    let size = group_size(tensors.first()?, 1, MOST_SQUARES);
    let mut sums = Vec::new();
    let mut tensors = tensors.into_iter().peekable();
    while tensors.peek().is_some() {
        let group = tensors.by_ref().take(size).map(|it| it.0);
        let of_group = of_squares::of_each(group.collect());
        sums.push(Tensor::<1>::from_primitive::<Cube>(of_group));
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
        let mut group = Vec::with_capacity(size);
        for slots in variables.by_ref().take(size) {
            match slots.gradient {
                Some(gradient) => group.push(Variable {
                    weights: slots.weights.0,
                    first: slots.first.0,
                    second: slots.second.0,
                    gradient: gradient.0,
                }),
                None => updated.push(slots),
            }
        }
        let results = adam::update(group, step).into_iter();
        updated.extend(results.map(|it| {
            let [weights, first, second] = it.map(Flat);
            Slots {
                weights,
                first,
                second,
                gradient: None,
            }
        }));
    }
    updated
}
