//! Sharded modules: each parameter server has a module that contains the rows assigned to this server and no
//! others, under the same parameter identities. So an optimizer updates a server's rows as it updates
//! a full module, its moments cover these rows only, and no server holds a full variable.
//!
//! [`split`] cuts the float variables by rows, [`join`] concatenates the rows for computing and saving, and
//! [`scatter`] splits gradients like the variables they belong to. Values that are never trained stay in every module.

use std::collections::HashMap;
use std::ops::Range;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::device::LogicalDevice;
use crate::variable::Part;
use crate::{copy, problem};

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
        let rows = part(self.homes, param.id, self.home).map_or(0..0, |part| part.rows.clone());
        let held = param.val();
        match held.clone().try_into_data() {
            Ok(data) => replaced(param, rows_of(data, &rows), self.device),
            Err(error) => {
                self.problem
                    .get_or_insert_with(|| problem::backend_failed(&self.device.name, error));
                param
            }
        }
    }
}

/// Some rows of a tensor. The data is row-major, so they are contiguous.
fn rows_of(data: TensorData, rows: &Range<usize>) -> TensorData {
    let mut shape = data.shape().to_vec();
    let row = data.as_bytes().len() / shape[0].max(1);
    shape[0] = rows.len();
    let bytes = data.as_bytes()[rows.start * row..rows.end * row].to_vec();
    TensorData::from_bytes_vec(bytes, shape, data.dtype())
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

/// The full module, from those of the servers: a copy with storage of its own on `device`. `first` is
/// the first server's number.
///
/// # Errors
/// SC0907 if a value cannot be read.
pub(crate) fn join<M: Module>(
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
        device,
    };
    Ok(servers[0].clone().map(&mut join))
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
    device: &'a LogicalDevice,
}

impl ModuleMapper for Join<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(parts) = self.rows.get_mut(&param.id) else {
            return param;
        };
        parts.sort_by_key(|(start, _)| *start);
        let mut shape = param.lazy_shape().to_vec();
        shape[0] = parts
            .iter()
            .map(|(_, data)| data.shape().as_slice()[0])
            .sum();
        let size = parts.iter().map(|(_, data)| data.as_bytes().len()).sum();
        let mut bytes = Vec::with_capacity(size);
        for (_, data) in parts.iter() {
            bytes.extend_from_slice(data.as_bytes());
        }
        let dtype = param.val().dtype();
        let data = TensorData::from_bytes_vec(bytes, shape, dtype);
        replaced(param, data, self.device)
    }
}

/// The gradients of each server's rows, from the gradients of full variables. They are views: they share memory with
/// the gradients given.
pub(crate) fn scatter<M: Module>(
    structure: &M,
    homes: &Homes,
    first: usize,
    servers: usize,
    gradients: GradientsParams,
) -> Vec<GradientsParams> {
    let mut scatter = Scatter {
        homes,
        first,
        gradients,
        results: (0..servers).map(|_| GradientsParams::new()).collect(),
    };
    structure.visit(&mut scatter);
    scatter.results
}

struct Scatter<'a> {
    homes: &'a Homes,
    first: usize,
    gradients: GradientsParams,
    results: Vec<GradientsParams>,
}

impl ModuleVisitor for Scatter<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return;
        };
        for Part { home, rows } in self.homes.get(&param.id).into_iter().flatten() {
            let own = match rows.len() == gradient.dims()[0] {
                true => gradient.clone(),
                false => gradient.clone().narrow(0, rows.start, rows.len()),
            };
            self.results[home - self.first].register::<D>(param.id, own);
        }
    }
}
