//! Sharded modules: each parameter server, or each replica that divides the state of training with the others, has a module
//! that contains the rows assigned to it and no others, under the same parameter identities. So an optimizer updates these
//! rows as it updates a full module, and its moments cover these rows only.
//!
//! [`split`] cuts the float variables by rows, [`join`] concatenates the rows for computing and saving, and
//! [`scatter`] splits gradients like the variables they belong to. Values that are never trained stay in every module.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use burn::backend::DispatchDevice;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::device::LogicalDevice;
use crate::variable::Part;
use crate::{copy, problem, threads};

/// Where the parts of every variable are.
pub(crate) type Homes = HashMap<ParamId, Vec<Part>>;

/// The part of a variable that is on a device.
fn part(homes: &Homes, param: ParamId, home: usize) -> Option<&Part> {
    homes.get(&param)?.iter().find(|part| part.home == home)
}

/// The rows of a module that are assigned to device `home`, with storage of their own.
///
/// # Errors
/// SC0907 if a value cannot be read.
pub(crate) fn split<M: Module>(
    module: &M,
    homes: &Homes,
    home: usize,
    device: &LogicalDevice,
) -> Result<M> {
    let mut split = Split {
        homes,
        home,
        device,
        problem: None,
    };
    let module = module.clone().map(&mut split);
    match split.problem {
        Some(problem) => Err(problem),
        None => Ok(module),
    }
}

struct Split<'a> {
    homes: &'a Homes,
    home: usize,
    device: &'a LogicalDevice,
    problem: Option<Box<Diagnostic>>,
}

impl ModuleMapper for Split<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let own = part(self.homes, param.id, self.home);
        let (axis, rows) = own.map_or((0, 0..0), |part| (part.axis, part.rows.clone()));
        let held = param.val();
        match held.clone().try_into_data() {
            Ok(data) => replaced(param, slice_of(data, axis, &rows), self.device),
            Err(error) => {
                self.problem
                    .get_or_insert_with(|| problem::backend_failed(&self.device.name, error));
                param
            }
        }
    }
}

/// Some rows of a tensor, or columns, along an axis. The data is row-major, so rows are contiguous.
fn slice_of(data: TensorData, axis: usize, rows: &Range<usize>) -> TensorData {
    let mut shape = data.shape().to_vec();
    let before: usize = shape[..axis].iter().product();
    let row = data.as_bytes().len() / (before * shape[axis]).max(1);
    let whole = shape[axis] * row;
    shape[axis] = rows.len();
    let mut bytes = Vec::with_capacity(before * rows.len() * row);
    for start in (0..before).map(|number| number * whole) {
        let own = start + rows.start * row..start + rows.end * row;
        bytes.extend_from_slice(&data.as_bytes()[own]);
    }
    TensorData::from_bytes_vec(bytes, shape, data.dtype())
}

/// Pieces of a tensor put together along an axis, in their order.
fn joined(pieces: &[(usize, TensorData)], axis: usize, mut shape: Vec<usize>) -> TensorData {
    let size = |piece: &TensorData| piece.shape().as_slice()[axis];
    shape[axis] = pieces.iter().map(|(_, piece)| size(piece)).sum();
    let before: usize = shape[..axis].iter().product();
    let all = pieces.iter().map(|(_, piece)| piece.as_bytes().len()).sum();
    let mut bytes = Vec::with_capacity(all);
    for number in 0..before {
        for (_, piece) in pieces {
            let each = piece.as_bytes().len() / before.max(1);
            bytes.extend_from_slice(&piece.as_bytes()[number * each..(number + 1) * each]);
        }
    }
    let dtype = pieces
        .first()
        .map_or(DType::F32, |(_, piece)| piece.dtype());
    TensorData::from_bytes_vec(bytes, shape, dtype)
}

/// A parameter with other values, whose number of rows may differ.
fn replaced<const D: usize>(
    param: Param<Tensor<D>>,
    data: TensorData,
    device: &LogicalDevice,
) -> Param<Tensor<D>> {
    let held = param.val();
    let (id, _, mapper) = param.consume();
    let device = copy::like(&device.burn, &held.device());
    let dtype = held.dtype();
    let value: Tensor<D> = match data.num_elements() {
        0 => Tensor::zeros(data.shape().clone(), (&device, dtype)),
        _ => Tensor::from_data(data, (&device, dtype)),
    };
    let value = match held.is_require_grad() {
        true => value.require_grad(),
        false => value,
    };
    Param::from_mapped_value(id, value, mapper)
}

/// `base` with the full variables that `homes` names, from the rows of the servers, with storage of their own on `device`.
/// `first` is the first server's number.
///
/// # Errors
/// SC0907 if a value cannot be read.
pub(crate) fn join<M: Module>(
    base: &M,
    servers: &[M],
    homes: &Homes,
    first: usize,
    device: &LogicalDevice,
) -> Result<M> {
    let mut gather = Gather {
        homes,
        home: first,
        rows: HashMap::new(),
        problem: None,
    };
    for server in servers {
        server.visit(&mut gather);
        gather.home += 1;
    }
    if let Some(reason) = gather.problem {
        return Err(problem::backend_failed(&device.name, reason));
    }
    let mut join = Join {
        rows: gather.rows,
        homes,
        device,
    };
    Ok(base.clone().map(&mut join))
}

/// Reads the rows that each server has.
struct Gather<'a> {
    homes: &'a Homes,
    home: usize,
    /// Each with the number of its first row.
    rows: HashMap<ParamId, Vec<(usize, TensorData)>>,
    problem: Option<String>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(part) = part(self.homes, param.id, self.home) else {
            return;
        };
        match param.val().try_into_data() {
            Ok(data) => {
                let rows = self.rows.entry(param.id).or_default();
                // A parameter of two fields is visited twice.
                if rows.iter().all(|(start, _)| *start != part.rows.start) {
                    rows.push((part.rows.start, data));
                }
            }
            Err(error) => self.problem = Some(error.to_string()),
        }
    }
}

struct Join<'a> {
    rows: HashMap<ParamId, Vec<(usize, TensorData)>>,
    homes: &'a Homes,
    device: &'a LogicalDevice,
}

impl ModuleMapper for Join<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(parts) = self.rows.get_mut(&param.id) else {
            return param;
        };
        parts.sort_by_key(|(start, _)| *start);
        let first = self.homes.get(&param.id).and_then(|parts| parts.first());
        let axis = first.map_or(0, |part| part.axis);
        let data = joined(parts, axis, param.lazy_shape().to_vec());
        replaced(param, data, self.device)
    }
}

/// The gradients of each device's rows, from the gradients of full variables. On one device they are views: they share memory
/// with the gradients given.
pub(crate) fn scatter<M: Module>(
    structure: &M,
    homes: &Homes,
    first: usize,
    devices: &[LogicalDevice],
    gradients: GradientsParams,
) -> Vec<GradientsParams> {
    let mut scatter = Scatter {
        homes,
        first,
        devices,
        gradients,
        results: devices.iter().map(|_| GradientsParams::new()).collect(),
    };
    structure.visit(&mut scatter);
    scatter.results
}

struct Scatter<'a> {
    homes: &'a Homes,
    first: usize,
    devices: &'a [LogicalDevice],
    gradients: GradientsParams,
    results: Vec<GradientsParams>,
}

impl ModuleVisitor for Scatter<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return;
        };
        for part in self.homes.get(&param.id).into_iter().flatten() {
            let Part { home, rows, axis } = part;
            let own = match rows.len() == gradient.dims()[*axis] {
                true => gradient.clone(),
                false => gradient.clone().narrow(*axis, rows.start, rows.len()),
            };
            let index = home - self.first;
            let own = own.to_device(&self.devices[index].burn);
            self.results[index].register::<D>(param.id, own);
        }
    }
}

/// The rows of a full module that are assigned to device `home`, as views: in the memory of the module, until they are
/// changed.
pub(crate) fn view<M: Module>(module: &M, homes: &Homes, home: usize) -> M {
    struct View<'a>(&'a Homes, usize);
    impl ModuleMapper for View<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let rows = part(self.0, param.id, self.1).map_or(0..0, |part| part.rows.clone());
            if rows.len() == param.lazy_shape().as_slice()[0] {
                return param;
            }
            let (id, held, mapper) = param.consume();
            let (is_trained, is_autodiff) = (held.is_require_grad(), held.device().is_autodiff());
            let held = match is_autodiff {
                true => held.inner(),
                false => held,
            };
            let view = match rows.is_empty() {
                true => {
                    let mut shape = held.shape();
                    shape.as_mut_slice()[0] = 0;
                    Tensor::zeros(shape, (&held.device(), held.dtype()))
                }
                false => held.narrow(0, rows.start, rows.len()),
            };
            let view = match is_autodiff {
                true => Tensor::from_inner(view).set_require_grad(is_trained),
                false => view,
            };
            Param::from_mapped_value(id, view, mapper)
        }
    }
    module.clone().map(&mut View(homes, home))
}

/// Writes rows that devices have updated, the [`pieces`] of variables, into full copies of the module, one on each device. On
/// the CPU they are written where the copy lies, unless somebody else shares its memory.
pub(crate) fn gather<M: Module + 'static>(
    pieces: Pieces,
    copies: Vec<M>,
    devices: &[LogicalDevice],
) -> Vec<M> {
    let inputs = copies.into_iter().zip(devices.iter().cloned()).collect();
    threads::for_each(inputs, move |_, (copy, device): (M, LogicalDevice)| {
        copy.map(&mut Fill {
            pieces: &pieces,
            device: &device,
        })
    })
}

/// The rows of variables as vectors, in their order.
pub(crate) type Pieces = HashMap<ParamId, Vec<Tensor<1>>>;

/// The rows of some variables; views, without gradients.
pub(crate) fn pieces<M: Module>(modules: &[M], homes: &Homes, of: &HashSet<ParamId>) -> Pieces {
    struct Flat<'a> {
        homes: &'a Homes,
        home: usize,
        of: &'a HashSet<ParamId>,
        pieces: HashMap<ParamId, Vec<(usize, Tensor<1>)>>,
    }
    impl ModuleVisitor for Flat<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let own = part(self.homes, param.id, self.home);
            let Some(own) = own.filter(|_| self.of.contains(&param.id)) else {
                return;
            };
            let value = param.val();
            let value = match value.device().is_autodiff() {
                true => value.inner(),
                false => value,
            };
            let count = value.shape().num_elements();
            let pieces = self.pieces.entry(param.id).or_default();
            // A parameter of two fields is visited twice.
            if pieces.iter().all(|(start, _)| *start != own.rows.start) {
                pieces.push((own.rows.start, value.reshape([count])));
            }
        }
    }
    let mut flat = Flat {
        homes,
        home: 0,
        of,
        pieces: HashMap::new(),
    };
    for module in modules {
        module.visit(&mut flat);
        flat.home += 1;
    }
    let in_order = |(id, mut pieces): (ParamId, Vec<(usize, Tensor<1>)>)| {
        pieces.sort_by_key(|(start, _)| *start);
        (id, pieces.into_iter().map(|(_, piece)| piece).collect())
    };
    flat.pieces.into_iter().map(in_order).collect()
}

struct Fill<'a> {
    pieces: &'a Pieces,
    device: &'a LogicalDevice,
}

impl ModuleMapper for Fill<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(pieces) = self.pieces.get(&param.id) else {
            return param;
        };
        let (id, held, mapper) = param.consume();
        let is_autodiff = held.device().is_autodiff();
        let filled = filled(held.inner(), pieces, self.device);
        let filled = match is_autodiff {
            true => Tensor::from_inner(filled).require_grad(),
            false => filled,
        };
        Param::from_mapped_value(id, filled, mapper)
    }
}

/// The tensor with these rows.
fn filled<const D: usize>(
    held: Tensor<D>,
    pieces: &[Tensor<1>],
    device: &LogicalDevice,
) -> Tensor<D> {
    fn is_flex<const D: usize>(one: &Tensor<D>) -> bool {
        one.dtype() == DType::F32 && matches!(one.device().as_dispatch(), DispatchDevice::Flex(_))
    }
    if !is_flex(&held) || !pieces.iter().all(is_flex) {
        let pieces = pieces.iter();
        let pieces = pieces.map(|piece| piece.clone().to_device(&device.burn));
        return Tensor::cat(pieces.collect(), 0).reshape(held.shape());
    }
    let Ok(held) = held.try_into_primitive::<Flex>() else {
        unreachable!("the device and the element type were checked");
    };
    let mut held: FlexTensor = held.to_contiguous();
    let mut rest = held.storage_mut::<f32>();
    for piece in pieces {
        let Ok(piece) = piece.clone().try_into_primitive::<Flex>() else {
            unreachable!("the device and the element type were checked");
        };
        let piece = piece.to_contiguous();
        let piece: &[f32] = piece.storage();
        let (own, after) = rest.split_at_mut(piece.len());
        own.copy_from_slice(piece);
        rest = after;
    }
    Tensor::from_primitive::<Flex>(held)
}
