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
//! The recording belongs to a thread, as `ops::Precision` does, because replicas compute on threads of their own. Where
//! somebody looks at the layers ([`taps`]), nothing is recorded, so that each output is seen once.

use std::cell::RefCell;
use std::fmt;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};

use crate::taps;

thread_local! {
    static RECORDING: RefCell<Option<Vec<Part>>> = const { RefCell::new(None) };
}

/// The backward pass of a part: from the gradients of what comes after it to its own. `None` where its output had no
/// influence on the loss.
type Part = Box<dyn FnOnce(&mut [Gradients]) -> Option<Gradients>>;

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
        struct Restored(Option<Vec<Part>>);
        impl Drop for Restored {
            fn drop(&mut self) {
                RECORDING.replace(self.0.take());
            }
        }
        let records = recompute && !taps::is_active();
        let _restored = Restored(RECORDING.replace(records.then(Vec::new)));
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
        let mut after = vec![loss.backward()];
        let mut of_module = GradientsParams::new();
        collect(module, &mut after, &mut of_module);
        for part in self.0.into_iter().rev() {
            if let Some(own) = part(&mut after) {
                after.push(own);
                collect(module, &mut after, &mut of_module);
            }
        }
        of_module
    }
}

/// A part of a network that can be computed again: `forward` of the module and `x`. It is called a second time in the
/// backward pass, so that it must depend on nothing that changes until then. The input may be used by this part alone, or
/// be the output of another part.
///
/// `module` and `x` have a graph in one call of `forward` and none in the other; tensors that `forward` captures should
/// have none.
pub(crate) fn part<M: Module + 'static, const D: usize>(
    module: &M,
    x: Tensor<D>,
    forward: impl Fn(&M, Tensor<D>) -> Tensor<D> + 'static,
) -> Tensor<D> {
    let records = RECORDING.with_borrow(Option::is_some);
    if !records || !(x.is_tracked() || is_trained(module)) {
        return forward(module, x);
    }
    let y = forward(&module.valid(), x.clone().inner());
    let output = Tensor::from_inner(y).require_grad();
    let (module, own) = (module.clone(), output.clone());
    let part: Part = Box::new(move |after| {
        let parts = after.iter_mut().filter_map(|it| own.grad_remove(it));
        let gradient = parts.reduce(|sum, part| sum + part)?;
        drop(own);
        let y = forward(&module, x);
        // A pass that is canceled on its way has no graph.
        if !y.is_tracked() {
            return None;
        }
        // The gradient of Σ y·g by y is 1·g: the very bits of g.
        Some((y * Tensor::from_inner(gradient)).sum().backward())
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

/// Moves the gradients of a module's parameters out of the last of `after`. One that is there already, because several
/// parts use the parameter, is added to.
fn collect<M: Module>(module: &M, after: &mut [Gradients], into: &mut GradientsParams) {
    struct Collected<'a>(&'a mut Gradients, &'a mut GradientsParams);
    impl ModuleVisitor for Collected<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Some(new) = param.val().grad_remove(self.0) else {
                return;
            };
            let sum = match self.1.remove::<D>(param.id) {
                Some(old) => old + new,
                None => new,
            };
            self.1.register::<D>(param.id, sum);
        }
    }
    if let Some(latest) = after.last_mut() {
        module.visit(&mut Collected(latest, into));
    }
}
