//! Layers that several devices compute together, each with slices of their weights: tensor parallelism.
//!
//! Both halves of an encoder layer are a product that widens, something that computes each head or each number alone, and a
//! product that narrows. With the weights [O, I] of the first cut by rows and those of the second by columns, device d computes
//!
//! ```text
//! y_d = f(x · W1_dᵀ + b1_d)        some heads, or some of the F numbers
//! z_d = y_d · W2_dᵀ                a partial product: of the size of the whole result
//! z   = Σ_d z_d + b2               one sum, on the first device
//! ```
//!
//! so that nothing is exchanged between the two products. The backward pass has one sum too: the gradient by x is the sum of what
//! comes back from all devices. All of it is one graph: sending a tensor to another device is an operation of it, whose
//! gradient is sent back, so that a device that uses x adds to the gradient by x, and no gradient is counted twice.
//! Sums are made in the order of the devices, so the bits are the same in each run.
//!
//! What is not cut (embeddings, LayerNorm, the residual connections, pooler, head) is computed once, on the first
//! device. A dropout mask has the same elements as on one device: for heads because their numbers in the layer count
//! ([`Heads`]), elsewhere because nothing is cut there.
//!
//! Source: Shoeybi et al. 2019, "Megatron-LM", section 3. There every device computes what is not cut, and each sum is an
//! all-reduce; here one process has all devices, and a sum goes to the first, which sends the next layer's input to the
//! others: as many bytes, without computing the same several times.
//!
//! The slices belong to a thread, as recomputation does ([`recompute`](crate::recompute)), which they work together with.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Gradients, Tensor};

use crate::attention::Attention;
use crate::config::Gelu;
use crate::layer::Layer;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::ops::{self, Heads};

thread_local! {
    static SLICES: RefCell<Option<Slices>> = const { RefCell::new(None) };
}

/// The axis along which each parameter is cut: 0 for rows, 1 for columns.
pub type Axes = HashMap<ParamId, usize>;

/// The slices that the devices after the first one have. The first one's are in the network itself.
#[derive(Clone, Default)]
pub struct Slices(Arc<Inner>);

#[derive(Default)]
struct Inner {
    matrices: HashMap<ParamId, (usize, Vec<Tensor<2>>)>,
    /// Cut along their only axis.
    vectors: HashMap<ParamId, Vec<Tensor<1>>>,
}

impl fmt::Debug for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.matrices.len() + self.0.vectors.len();
        write!(f, "Slices of {count} parameters")
    }
}

impl Slices {
    /// The slices of these parameters in the networks of the devices after the first one, in their order.
    pub fn of<M: Module>(others: &[M], axes: &Axes) -> Self {
        struct Found<'a>(Inner, &'a Axes);
        impl ModuleVisitor for Found<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let Some(&axis) = self.1.get(&param.id) else {
                    return;
                };
                // The very leaf that the backward pass leaves a gradient at.
                let value = param.val();
                let value: &dyn Any = &value;
                if let Some(vector) = value.downcast_ref::<Tensor<1>>() {
                    let vectors = self.0.vectors.entry(param.id).or_default();
                    vectors.push(vector.clone());
                } else if let Some(matrix) = value.downcast_ref::<Tensor<2>>() {
                    let matrices = self.0.matrices.entry(param.id);
                    let (_, parts) = matrices.or_insert((axis, Vec::new()));
                    parts.push(matrix.clone());
                }
            }
        }
        let mut found = Found(Inner::default(), axes);
        for network in others {
            network.visit(&mut found);
        }
        Self(Arc::new(found.0))
    }

    /// Runs a pass on this thread whose layers compute with these slices.
    pub fn during<T>(&self, pass: impl FnOnce() -> T) -> T {
        struct Restored(Option<Slices>);
        impl Drop for Restored {
            fn drop(&mut self) {
                SLICES.replace(self.0.take());
            }
        }
        let _restored = Restored(SLICES.replace(Some(self.clone())));
        pass()
    }

    /// Weight and bias on each device, of a layer that is cut by rows.
    fn by_rows(&self, layer: &Linear) -> Option<Vec<(Tensor<2>, Tensor<1>)>> {
        let (axis, weights) = self.0.matrices.get(&layer.weight.id)?;
        let bias = layer.bias.as_ref()?;
        let biases = self.0.vectors.get(&bias.id)?;
        let is_cut = *axis == 0 && layer.lora.is_none() && weights.len() == biases.len();
        let others = weights.iter().cloned().zip(biases.iter().cloned());
        let own = std::iter::once((layer.weight.val(), bias.val()));
        is_cut.then(|| own.chain(others).collect())
    }

    /// The weight on each device, of a layer that is cut by columns and whose bias is whole.
    fn by_columns(&self, layer: &Linear) -> Option<Vec<Tensor<2>>> {
        let (axis, weights) = self.0.matrices.get(&layer.weight.id)?;
        let bias = layer.bias.as_ref()?;
        let is_cut = *axis == 1 && layer.lora.is_none() && !self.0.vectors.contains_key(&bias.id);
        let own = std::iter::once(layer.weight.val());
        is_cut.then(|| own.chain(weights.iter().cloned()).collect())
    }
}

fn current() -> Option<Slices> {
    SLICES.with_borrow(Clone::clone)
}

/// Whether layers of this thread compute with slices.
pub(crate) fn is_active() -> bool {
    SLICES.with_borrow(Option::is_some)
}

/// `x` on another device; itself where it is there.
fn on<const D: usize>(x: Tensor<D>, device: &Device) -> Tensor<D> {
    match x.device().without_autodiff() == device.clone().without_autodiff() {
        true => x,
        false => x.to_device(device),
    }
}

/// A slice as a pass needs it: with a graph where `x` has one.
fn like<const D: usize, const E: usize>(x: &Tensor<E>, slice: Tensor<D>) -> Tensor<D> {
    match slice.device().is_autodiff() && !x.device().is_autodiff() {
        true => slice.inner(),
        false => slice,
    }
}

/// The sum of partial products: in the order of the devices, on that of `x`, the bias with the first.
fn summed(
    x: &Tensor<3>,
    layer: &Linear,
    parts: impl Iterator<Item = (Tensor<3>, Tensor<2>)>,
) -> Option<Tensor<3>> {
    let whole = layer.bias.as_ref()?;
    let products = parts.enumerate().map(|(number, (y, weight))| {
        let bias = match number {
            0 => whole.val(),
            _ => Tensor::zeros([weight.dims()[0]], (&weight.device(), weight.dtype())),
        };
        on(ops::linear(y, weight, bias), &x.device())
    });
    products.reduce(|sum, product| sum + product)
}

/// The heads and the projection after them, where the pass has slices of this attention: what comes before dropout, residual
/// connection and normalization.
///
/// # Shapes
/// x [B, S, H], mask [B, S] with 1 = token → [B, S, H]
pub(crate) fn attention(
    attention: &Attention,
    x: &Tensor<3>,
    mask: &Tensor<2>,
    mode: Mode,
) -> Option<Tensor<3>> {
    let slices = current()?;
    let heads = &attention.self_attention;
    let [queries, keys, values] = [&heads.query, &heads.key, &heads.value];
    let queries = slices.by_rows(queries)?;
    let (keys, values) = (slices.by_rows(keys)?, slices.by_rows(values)?);
    let projection = &attention.output.dense;
    let mixing = slices.by_columns(projection)?;
    let (of, dropout) = (heads.heads(), heads.dropout(mode));
    let rows: usize = queries.iter().map(|(weight, _)| weight.dims()[0]).sum();
    let size = rows / of;
    let mut first = 0;
    let each = queries.into_iter().zip(keys).zip(values).zip(mixing);
    let parts = each.map(|(((query, key), value), weight)| {
        let device = query.0.device();
        let count = query.0.dims()[0] / size;
        let own = Heads { count, first, of };
        first += count;
        let layers = [query, key, value].map(|(weight, bias)| (like(x, weight), like(x, bias)));
        let (here, mask) = (on(x.clone(), &device), on(mask.clone(), &device));
        let attended = ops::self_attention(here, layers, own, mask, dropout);
        (attended, like(x, weight))
    });
    summed(x, projection, parts)
}

/// The feed-forward part, where the pass has slices of this layer's: what comes before dropout, residual connection and
/// normalization.
///
/// # Shapes
/// x [B, S, H] → [B, S, H]
pub(crate) fn feed_forward(layer: &Layer, x: &Tensor<3>) -> Option<Tensor<3>> {
    let slices = current()?;
    let widening = slices.by_rows(&layer.intermediate.dense)?;
    let narrowing = slices.by_columns(&layer.output.dense)?;
    let parts = widening.into_iter().zip(narrowing);
    let parts = parts.map(|((weight, bias), narrow)| {
        let here = on(x.clone(), &weight.device());
        let (weight, bias) = (like(x, weight), like(x, bias));
        let widened = match layer.intermediate.gelu() {
            Gelu::Exact => ops::linear_gelu(here, weight, bias),
            Gelu::Tanh => ops::gelu_tanh(ops::linear(here, weight, bias)),
        };
        (widened, like(x, narrow))
    });
    summed(x, &layer.output.dense, parts)
}

/// Moves the gradient of a parameter out of others: that of the whole parameter, on the device of the network, where it is cut.
pub(crate) fn gradient<const D: usize>(
    param: &Param<Tensor<D>>,
    from: &mut Gradients,
) -> Option<Tensor<D>> {
    let own = param.val().grad_remove(from);
    let Some(slices) = current() else {
        return own;
    };
    let own = own?;
    let device = own.device();
    if let Some((axis, others)) = slices.0.matrices.get(&param.id) {
        let parts = others.iter().map(|part| part.grad_remove(from));
        let parts: Option<Vec<_>> = parts.collect();
        return parts.map(|parts| joined(own, parts, *axis, &device));
    }
    if let Some(others) = slices.0.vectors.get(&param.id) {
        let parts = others.iter().map(|part| part.grad_remove(from));
        let parts: Option<Vec<_>> = parts.collect();
        return parts.map(|parts| joined(own, parts, 0, &device));
    }
    Some(own)
}

/// The slices one after the other.
fn joined<const D: usize, const E: usize>(
    own: Tensor<D>,
    others: Vec<Tensor<E>>,
    axis: usize,
    device: &Device,
) -> Tensor<D> {
    let others = others.into_iter().map(|part| {
        let shape = part.shape();
        on(part, device).reshape(shape)
    });
    Tensor::cat(std::iter::once(own).chain(others).collect(), axis)
}

/// Which of the parameters that are cut are in layers that compute with slices: those of the attentions and of the feed-forward
/// parts all of whose weights are cut as above. Others are to be put together before a pass.
pub fn computed_in_slices<M: Module>(network: &M, axes: &Axes) -> HashSet<ParamId> {
    /// The first product of each half with what is beside it, and the second, by their names in a layer.
    const HALVES: [(&[&str], &str); 2] = [
        (
            &[
                "attention.self_attention.query",
                "attention.self_attention.key",
                "attention.self_attention.value",
            ],
            "attention.output.dense",
        ),
        (&["intermediate.dense"], "output.dense"),
    ];
    let names = Names::of(network);
    let has_adapter = |layer: &str| {
        let adapter = format!("{layer}.lora");
        names.0.keys().any(|name| name.starts_with(&adapter))
    };
    let cut = |name: String| {
        let param = *names.0.get(&name)?;
        Some((param, *axes.get(&param)?))
    };
    let mut all = HashSet::new();
    let beginnings = names.0.keys().filter_map(|name| {
        let layer = name.strip_suffix(".intermediate.dense.weight")?;
        layer.contains("encoder.layer.").then_some(layer)
    });
    for layer in beginnings {
        for (wide, narrow) in HALVES {
            let wide = wide.iter().map(|name| format!("{layer}.{name}"));
            let narrow = format!("{layer}.{narrow}");
            let rows = wide
                .clone()
                .flat_map(|it| [format!("{it}.weight"), format!("{it}.bias")]);
            let rows: Option<Vec<_>> = rows.map(&cut).collect();
            let columns = cut(format!("{narrow}.weight"));
            let bias = cut(format!("{narrow}.bias"));
            let (Some(rows), Some(columns), None) = (rows, columns, bias) else {
                continue;
            };
            let fits = rows.iter().all(|(_, axis)| *axis == 0) && columns.1 == 1;
            if fits && !wide.chain([narrow]).any(|it| has_adapter(&it)) {
                all.extend(rows.iter().chain([&columns]).map(|(param, _)| *param));
            }
        }
    }
    all
}

/// The parameters of a network by the paths of their fields.
struct Names(HashMap<String, ParamId>);

impl Names {
    fn of<M: Module>(network: &M) -> Self {
        #[derive(Default)]
        struct Paths {
            path: Vec<String>,
            found: HashMap<String, ParamId>,
        }
        impl ModuleVisitor for Paths {
            fn enter_module(&mut self, name: &str, _container_type: &str) {
                self.path.push(name.to_owned());
            }
            fn exit_module(&mut self, _name: &str, _container_type: &str) {
                self.path.pop();
            }
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.found.insert(self.path.join("."), param.id);
            }
        }
        let mut paths = Paths::default();
        network.visit(&mut paths);
        Self(paths.found)
    }
}

#[cfg(test)]
mod tests;
