//! Gradient checkpointing: what a layer computes is not kept for the backward pass, but computed once more in it.
//! Source: Chen et al. 2016, "Training deep nets with sublinear memory cost", section 3.
//!
//! In a pass inside of [`Recorded::during`], each `part` computes without a graph and keeps its input only. The
//! backward pass then goes from part to part, the last one first: a part runs forward again from its input, with a graph
//! this time, and backward with the gradient of its output. So at any time the graph of one part exists. Dropout masks
//! are functions of numbers ([`Mode`](crate::Mode)) and every sum has a fixed order, so that on the CPU the gradients
//! have the bits that they have without recomputing.
//!
//! The backward pass is made of several graphs, one after another, and not of one graph with an operation of ours in it:
//! an operation would have to run a graph of its own inside of the backward pass of another, for each backend. This way
//! all that is needed are tensors, and any backend does.
//!
//! A part whose parameters are [`Shards`] gathers them before it computes and drops them afterwards, in either direction, so
//! that the parameters of one part are there at any time. Source: Rajbhandari et al. 2020, "ZeRO", section 7.2.2 (P_p); PyTorch's
//! `fully_shard` with `reshard_after_forward` and checkpointing of each layer.
//!
//! The recording belongs to a thread, as `ops::Precision` does, because replicas compute on threads of their own. Where
//! somebody looks at the layers ([`taps`]), nothing is recorded, so that each output is seen once.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Shape, Tensor};

use crate::{parallel, taps};

thread_local! {
    static RECORDING: RefCell<Option<Vec<Part>>> = const { RefCell::new(None) };
    static SHARDS: RefCell<Option<Shards>> = const { RefCell::new(None) };
}

/// The backward pass of a part: from the gradients of what comes after it to its own. It moves those of its parameters out.
/// `None` where its output had no influence on the loss.
type Part = Box<dyn FnOnce(&mut [Gradients], &mut GradientsParams) -> Option<Gradients>>;

/// The pieces of parameters that nobody has as a whole, in their order: each some consecutive rows, as a vector.
#[derive(Clone, Debug, Default)]
pub struct Shards(pub Arc<HashMap<ParamId, Vec<Tensor<1>>>>);

impl Shards {
    /// The module with whole parameters, on the device of its own: each that is in pieces is put together in new memory.
    fn gathered<M: Module>(&self, module: M) -> M {
        module.map(&mut Gather(self))
    }
}

struct Gather<'a>(&'a Shards);

impl ModuleMapper for Gather<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(pieces) = self.0.0.get(&param.id) else {
            return param;
        };
        let (id, held, mapper) = param.consume();
        let device = held.device();
        let pieces = pieces.iter();
        let pieces = pieces.map(|it| it.clone().to_device(&device.clone().without_autodiff()));
        let whole = Tensor::cat(pieces.collect(), 0);
        let mut shape: Shape = held.shape();
        let row: usize = shape.as_slice()[1..].iter().product();
        shape.as_mut_slice()[0] = whole.dims()[0] / row.max(1);
        let whole: Tensor<D> = whole.reshape(shape);
        let whole = match device.is_autodiff() {
            true => Tensor::from_inner(whole).set_require_grad(held.is_require_grad()),
            false => whole,
        };
        Param::from_mapped_value(id, whole, mapper)
    }
}

/// The parameters of the parts of a network: those that a pass over [`Shards`] gathers part by part. Others have to be whole.
pub fn parameters_of_parts<M: Module>(network: &M) -> HashSet<ParamId> {
    #[derive(Default)]
    struct OfParts {
        /// Fields from the network down to here, and how many of them were there at an encoder's layers.
        depth: usize,
        layers: Option<usize>,
        found: HashSet<ParamId>,
    }
    impl ModuleVisitor for OfParts {
        fn enter_module(&mut self, name: &str, container_type: &str) {
            self.depth += 1;
            if name == "layer" && container_type.ends_with("Encoder") {
                self.layers.get_or_insert(self.depth);
            }
        }
        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            if self.layers == Some(self.depth) {
                self.layers = None;
            }
            self.depth -= 1;
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.layers.is_some() {
                self.found.insert(param.id);
            }
        }
    }
    let mut parts = OfParts::default();
    network.visit(&mut parts);
    parts.found
}

/// The parts of a forward pass that are to be computed again, in their order.
#[derive(Default)]
pub struct Recorded(Vec<Part>);

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorded({} parts)", self.0.len())
    }
}

impl Recorded {
    /// Runs a forward pass on this thread, and records its parts if `recompute` says so.
    pub fn during<T>(recompute: bool, pass: impl FnOnce() -> T) -> (T, Self) {
        Self::gathering(recompute, None, pass)
    }

    /// [`Self::during`] with a network whose parts have shards, if there are any; then all parts are recorded.
    pub fn gathering<T>(
        recompute: bool,
        shards: Option<Shards>,
        pass: impl FnOnce() -> T,
    ) -> (T, Self) {
        struct Restored(Option<Vec<Part>>, Option<Shards>);
        impl Drop for Restored {
            fn drop(&mut self) {
                RECORDING.replace(self.0.take());
                SHARDS.replace(self.1.take());
            }
        }
        let records = shards.is_some() || recompute && !taps::looks_at_values();
        let _restored = Restored(
            RECORDING.replace(records.then(Vec::new)),
            SHARDS.replace(shards),
        );
        let value = pass();
        (value, Self(RECORDING.take().unwrap_or_default()))
    }

    /// How many parts were recorded.
    pub fn parts(&self) -> usize {
        self.0.len()
    }

    /// The gradients of a module's parameters, from the loss that the forward pass led to. It must run under what the
    /// forward pass ran under: the same `Precision`, the same `Stop`.
    pub fn backward<M: Module>(self, loss: &Tensor<1>, module: &M) -> GradientsParams {
        self.backward_to(loss, module, None).0
    }

    /// [`Self::backward`] of a segment of a network: also the gradient by the input of the segment, a leaf, where it is asked
    /// for and the input had an influence.
    pub fn backward_to<M: Module>(
        self,
        loss: &Tensor<1>,
        module: &M,
        input: Option<&Tensor<3>>,
    ) -> (GradientsParams, Option<Tensor<3>>) {
        let mut of_loss = loss.backward();
        let mut of_module = GradientsParams::new();
        collect(module, &mut of_loss, &mut of_module);
        let mut after = vec![of_loss];
        for part in self.0.into_iter().rev() {
            if let Some(mut own) = part(&mut after, &mut of_module) {
                // The graph of a part goes on into what made its input, where that is no part.
                collect(module, &mut own, &mut of_module);
                after.push(own);
            }
        }
        let of_input = input.and_then(|input| {
            let parts = after.iter_mut().filter_map(|it| input.grad_remove(it));
            parts.reduce(|sum, part| sum + part)
        });
        (of_module, of_input)
    }
}

/// A part of a network that can be computed again: `forward` of the module and `x`. It is called a second time in the
/// backward pass, so that it must depend on nothing that changes until then. The input may be used by this part alone, or
/// be the output of another part.
///
/// `module` and `x` have a graph in one call of `forward` and none in the other; tensors that `forward` captures should
/// have none.
pub(crate) fn part<M: Module + 'static, const D: usize>(
    module: M,
    x: Tensor<D>,
    forward: impl Fn(&M, Tensor<D>) -> Tensor<D> + 'static,
) -> Tensor<D> {
    let records = RECORDING.with_borrow(Option::is_some);
    let shards = SHARDS.with_borrow(Clone::clone);
    let whole = move |module: M| match &shards {
        Some(shards) => shards.gathered(module),
        None => module,
    };
    if !records || !(x.is_tracked() || is_trained(&module)) {
        return forward(&whole(module), x);
    }
    let y = forward(&whole(module.valid()), x.clone().inner());
    let output = Tensor::from_inner(y).require_grad();
    let own = output.clone();
    let part: Part = Box::new(move |after, of_module| {
        let parts = after.iter_mut().filter_map(|it| own.grad_remove(it));
        let gradient = parts.reduce(|sum, part| sum + part)?;
        drop(own);
        let module = whole(module);
        let y = forward(&module, x);
        // A pass that is canceled on its way has no graph.
        if !y.is_tracked() {
            return None;
        }
        // The gradient of Σ y·g by y is 1·g: the very bits of g.
        let mut own = (y * Tensor::from_inner(gradient)).sum().backward();
        collect(&module, &mut own, of_module);
        Some(own)
    });
    RECORDING.with_borrow_mut(|recording| {
        if let Some(parts) = recording {
            parts.push(part);
        }
    });
    output
}

/// Whether any parameter is trained.
fn is_trained<M: Module>(module: &M) -> bool {
    struct Trained(bool);
    impl ModuleVisitor for Trained {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 |= param.is_require_grad();
        }
    }
    let mut trained = Trained(false);
    module.visit(&mut trained);
    trained.0
}

/// Moves the gradients of a module's parameters out of others. One that is there already, because several parts use the
/// parameter, is added to.
fn collect<M: Module>(module: &M, from: &mut Gradients, into: &mut GradientsParams) {
    struct Collected<'a>(&'a mut Gradients, &'a mut GradientsParams);
    impl ModuleVisitor for Collected<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Some(new) = parallel::gradient(param, self.0) else {
                return;
            };
            let sum = match self.1.remove::<D>(param.id) {
                Some(old) => old + new,
                None => new,
            };
            self.1.register::<D>(param.id, sum);
        }
    }
    module.visit(&mut Collected(from, into));
}
