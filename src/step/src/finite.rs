//! Whether every gradient and every weight is a finite number, and which one is not.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use stratoscope_network::AnyNetwork;
use stratoscope_optim::Finiteness;

/// A variable with a value that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// The variable: `bert.encoder.layer.3.output.dense.weight`.
    pub name: String,
    /// Its first value that is not finite.
    pub value: f64,
}

/// Nothing where the norm over all gradients is finite; else the last variable, in the order of the
/// network, whose gradient is not. The backward pass goes from the last one to the first, so it was
/// there first.
pub(crate) fn gradients_are_finite(
    network: &AnyNetwork,
    gradients: &GradientsParams,
    norm: f64,
) -> Result<(), NonFinite> {
    if norm.is_finite() {
        return Ok(());
    }
    let mut found = None;
    visit(network, |id, value| {
        let gradient = value.gradient(gradients, id);
        if let Some(bad) = gradient.and_then(first_bad) {
            found = Some((id, bad));
        }
    });
    named(network, found)
}

/// Nothing; or the first variable with a weight that is not finite. On the CPU every weight is
/// looked at; on a GPU the sums of squares are, in one transfer.
pub fn weights_are_finite(network: &AnyNetwork) -> Result<(), NonFinite> {
    let mut finite = Finiteness::default();
    visit(network, |_, value| value.look(&mut finite));
    if finite.holds() {
        return Ok(());
    }
    let mut found = None;
    visit(network, |id, value| {
        if found.is_none()
            && let Some(bad) = first_bad(value.flat())
        {
            found = Some((id, bad));
        }
    });
    named(network, found)
}

/// The first variable with a weight that is not finite: what makes a loss NaN although no step was wrong.
pub fn first_non_finite(network: &AnyNetwork) -> Option<NonFinite> {
    weights_are_finite(network).err()
}

fn named(network: &AnyNetwork, found: Option<(ParamId, f64)>) -> Result<(), NonFinite> {
    let Some((id, value)) = found else {
        return Ok(());
    };
    let known = network.parameters();
    let name = known.into_iter().find(|known| known.id == id);
    let name = name.map_or_else(|| "a variable".to_owned(), |known| known.name);
    Err(NonFinite { name, value })
}

fn first_bad(flat: Tensor<1>) -> Option<f64> {
    let data = flat.into_data().convert::<f32>();
    let bad = data.iter::<f32>().find(|value| !value.is_finite());
    bad.map(f64::from)
}

/// What is asked of a parameter whatever its rank.
trait Value {
    /// Its elements, without autodiff.
    fn flat(&self) -> Tensor<1>;
    /// Adds its elements to those that are looked at together.
    fn look(&self, finite: &mut Finiteness);
    /// The elements of its gradient, if it has one.
    fn gradient(&self, gradients: &GradientsParams, id: ParamId) -> Option<Tensor<1>>;
}

struct OfRank<const D: usize>(Tensor<D>);

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape([count])
}

impl<const D: usize> Value for OfRank<D> {
    fn flat(&self) -> Tensor<1> {
        flat(self.0.clone())
    }

    fn look(&self, finite: &mut Finiteness) {
        finite.push(self.0.clone());
    }

    fn gradient(&self, gradients: &GradientsParams, id: ParamId) -> Option<Tensor<1>> {
        gradients.get::<D>(id).map(flat)
    }
}

fn visit<M: Module>(module: &M, look: impl FnMut(ParamId, &dyn Value)) {
    struct Visit<F>(F);
    impl<F: FnMut(ParamId, &dyn Value)> ModuleVisitor for Visit<F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let value = if value.device().is_autodiff() {
                value.inner()
            } else {
                value
            };
            (self.0)(param.id, &OfRank(value));
        }
    }
    module.visit(&mut Visit(look));
}
