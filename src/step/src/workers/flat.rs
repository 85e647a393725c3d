//! Tensors of a network as one row of numbers, in the order in which the network is visited, and back.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use stratoscope_strategy::Checksum;
use stratoscope_workers::{Fault, Outcome};

use super::message::{KeptBy, StatePart};
use stratoscope_optim::{OptimizerState, StoredTensor};

/// A float variable of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub id: ParamId,
    pub length: usize,
    pub shape: Vec<usize>,
    pub trainable: bool,
}

/// The float variables, in their order.
pub(super) fn variables<M: Module>(network: &M) -> Vec<Variable> {
    struct Visit(Vec<Variable>);
    impl ModuleVisitor for Visit {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            self.0.push(Variable {
                id: param.id,
                length: value.shape().num_elements(),
                shape: value.dims().to_vec(),
                trainable: value.is_require_grad(),
            });
        }
    }
    let mut visit = Visit(Vec::new());
    network.visit(&mut visit);
    visit.0
}

/// Adds the elements of a tensor to a row.
fn append<const D: usize>(row: &mut Vec<f32>, tensor: Tensor<D>) -> Outcome<()> {
    let data = tensor.try_into_data().map_err(super::failed)?;
    let values = data.as_slice::<f32>();
    let values = values.map_err(|error| super::failed(format!("{error:?}")))?;
    row.extend_from_slice(values);
    Ok(())
}

/// The values of all variables and of what an optimizer keeps beside them, or the latter alone, one variable after the
/// other, and which tensors those are.
pub(super) fn values<M: Module>(
    network: &M,
    moments: &OptimizerState,
    part: StatePart,
) -> Outcome<(Vec<f32>, Vec<u8>)> {
    struct Read<'a> {
        part: StatePart,
        moments: &'a OptimizerState,
        row: Vec<f32>,
        kept: Vec<u8>,
        outcome: Outcome<()>,
    }
    impl ModuleVisitor for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let mut read = || -> Outcome<u8> {
                if self.part == StatePart::All {
                    append(&mut self.row, param.val().inner())?;
                }
                let mut bits = 0;
                for (bit, kept) in StoredTensor::ALL.into_iter().enumerate() {
                    if let Some(tensor) = self.moments.kept(param.id, kept) {
                        append(&mut self.row, tensor.clone())?;
                        bits |= 1 << bit;
                    }
                }
                Ok(bits)
            };
            match read() {
                Ok(bits) => self.kept.push(bits),
                Err(fault) => self.outcome = Err(fault),
            }
        }
    }
    let mut read = Read {
        part,
        moments,
        row: Vec::new(),
        kept: Vec::new(),
        outcome: Ok(()),
    };
    network.visit(&mut read);
    read.outcome.map(|()| (read.row, read.kept))
}

/// The numbers that [`values`] makes of such variables.
pub(super) fn length(variables: &[Variable], kept: &[u8], part: StatePart) -> usize {
    let own = usize::from(part == StatePart::All);
    let of_one = |(variable, &bits): (&Variable, &u8)| {
        let kept = StoredTensor::ALL.into_iter().enumerate();
        let kept = kept.filter(|(bit, _)| bits & (1 << bit) != 0);
        let beside = kept.map(|(_, kept)| kept.numbers(&variable.shape));
        variable.length * own + beside.sum::<usize>()
    };
    variables.iter().zip(kept).map(of_one).sum()
}

/// The network and the moments with the values of a row that [`values`] made of another process's.
pub(super) fn with_values<M: Module>(
    network: M,
    row: &[f32],
    kept: &KeptBy,
    part: StatePart,
    trainable: &[bool],
) -> (M, OptimizerState) {
    struct Write<'a> {
        values: HashMap<ParamId, (&'a [f32], bool)>,
    }
    impl ModuleMapper for Write<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some(&(values, trainable)) = self.values.get(&param.id) else {
                return param;
            };
            let (id, held, mapper) = param.consume();
            let data = TensorData::new(values.to_vec(), held.shape());
            let value = Tensor::from_data(data, (&held.device(), held.dtype()));
            let value = if trainable {
                value.require_grad()
            } else {
                value
            };
            Param::from_mapped_value(id, value, mapper)
        }
    }
    let mut moments = OptimizerState::after(kept.steps);
    let mut write = Write {
        values: HashMap::new(),
    };
    let mut rest = row;
    let device = first_device(&network);
    let variables = variables(&network);
    for ((variable, &bits), &trainable) in variables.iter().zip(&kept.tensors).zip(trainable) {
        if part == StatePart::All {
            let (own, after) = rest.split_at(variable.length);
            rest = after;
            write.values.insert(variable.id, (own, trainable));
        }
        for (bit, kept) in StoredTensor::ALL.into_iter().enumerate() {
            if bits & (1 << bit) != 0 {
                let (own, after) = rest.split_at(kept.numbers(&variable.shape));
                rest = after;
                let data = TensorData::new(own.to_vec(), [own.len()]);
                if let Some(device) = &device {
                    moments.keep(variable.id, kept, Tensor::from_data(data, device));
                }
            }
        }
    }
    (network.map(&mut write), moments)
}

/// The device of the variables, without autodiff: where gradients and moments are.
pub(super) fn first_device<M: Module>(network: &M) -> Option<burn::tensor::Device> {
    struct First(Option<burn::tensor::Device>);
    impl ModuleVisitor for First {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.get_or_insert_with(|| param.val().inner().device());
        }
    }
    let mut first = First(None);
    network.visit(&mut first);
    first.0
}

/// Which variables have gradients.
pub(super) fn present<M: Module>(network: &M, gradients: &GradientsParams) -> Vec<bool> {
    struct Look<'a>(&'a GradientsParams, Vec<bool>);
    impl ModuleVisitor for Look<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push(self.0.get::<D>(param.id).is_some());
        }
    }
    let mut look = Look(gradients, Vec::new());
    network.visit(&mut look);
    look.1
}

/// The gradients of these variables, each times `weight`. One that is missing counts as zeros.
pub(super) fn weighted<M: Module>(
    network: &M,
    gradients: GradientsParams,
    present: &[bool],
    weight: f32,
) -> Outcome<Vec<f32>> {
    struct Read<'a> {
        gradients: GradientsParams,
        present: std::slice::Iter<'a, bool>,
        row: Vec<f32>,
        outcome: Outcome<()>,
    }
    impl ModuleVisitor for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let is_present = self.present.next() == Some(&true);
            match self.gradients.remove::<D>(param.id) {
                Some(gradient) if is_present => {
                    if let Err(fault) = append(&mut self.row, gradient) {
                        self.outcome = Err(fault);
                    }
                }
                None if is_present => {
                    let zeros = param.lazy_shape().num_elements();
                    self.row.resize(self.row.len() + zeros, 0.0);
                }
                _ => {}
            }
        }
    }
    let mut read = Read {
        gradients,
        present: present.iter(),
        row: Vec::new(),
        outcome: Ok(()),
    };
    network.visit(&mut read);
    read.outcome?;
    for value in &mut read.row {
        *value *= weight;
    }
    Ok(read.row)
}

/// The numbers of the gradients of these variables.
pub(super) fn elements(variables: &[Variable], present: &[bool]) -> usize {
    let each = variables.iter().zip(present);
    each.filter(|(_, is_present)| **is_present)
        .map(|(variable, _)| variable.length)
        .sum()
}

/// The gradients of a row that [`weighted`] made.
///
/// # Errors
/// [`Fault::Failed`] for a row of another length.
pub(super) fn gradients<M: Module>(
    network: &M,
    row: &[f32],
    present: &[bool],
) -> Outcome<GradientsParams> {
    struct Write<'a> {
        rest: &'a [f32],
        present: std::slice::Iter<'a, bool>,
        gradients: GradientsParams,
    }
    impl ModuleVisitor for Write<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.present.next() != Some(&true) {
                return;
            }
            let value = param.val().inner();
            let (own, rest) = self.rest.split_at(value.shape().num_elements());
            self.rest = rest;
            let data = TensorData::new(own.to_vec(), value.shape());
            let gradient = Tensor::<D>::from_data(data, &value.device());
            self.gradients.register::<D>(param.id, gradient);
        }
    }
    if row.len() != elements(&variables(network), present) {
        return Err(Fault::Failed("gradients of another network".to_owned()));
    }
    let mut write = Write {
        rest: row,
        present: present.iter(),
        gradients: GradientsParams::new(),
    };
    network.visit(&mut write);
    Ok(write.gradients)
}

/// The values of the variables that training changes, each times `weight`.
pub(super) fn trainable<M: Module>(network: &M, weight: f32) -> Outcome<Vec<f32>> {
    struct Read(Vec<f32>, Outcome<()>);
    impl ModuleVisitor for Read {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            if value.is_require_grad()
                && let Err(fault) = append(&mut self.0, value.inner())
            {
                self.1 = Err(fault);
            }
        }
    }
    let mut read = Read(Vec::new(), Ok(()));
    network.visit(&mut read);
    let Read(mut row, outcome) = read;
    outcome?;
    match weight {
        // As where one process averages: a replica without examples adds zeros.
        0.0 => row.fill(0.0),
        weight => row.iter_mut().for_each(|value| *value *= weight),
    }
    Ok(row)
}

/// The network with the values of a row that [`trainable`] made.
///
/// # Errors
/// [`Fault::Failed`] for a row of another length.
pub(super) fn with_trainable<M: Module>(network: &M, row: &[f32]) -> Outcome<M> {
    struct Write<'a>(&'a [f32]);
    impl ModuleMapper for Write<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let held = param.val();
            if !held.is_require_grad() {
                return param;
            }
            let (own, rest) = self.0.split_at(held.shape().num_elements());
            self.0 = rest;
            let (id, held, mapper) = param.consume();
            let data = TensorData::new(own.to_vec(), held.shape());
            let value = Tensor::from_data(data, (&held.device(), held.dtype())).require_grad();
            Param::from_mapped_value(id, value, mapper)
        }
    }
    let trained = variables(network).into_iter().filter(|it| it.trainable);
    if row.len() != trained.map(|it| it.length).sum::<usize>() {
        return Err(Fault::Failed("weights of another network".to_owned()));
    }
    Ok(network.clone().map(&mut Write(row)))
}

/// The checksum of the bits of each variable.
pub(super) fn checksums<M: Module>(network: &M) -> Vec<(ParamId, u64)> {
    struct Sum(Vec<(ParamId, u64)>);
    impl ModuleVisitor for Sum {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let data = param.val().into_data();
            self.0.push((param.id, Checksum::of(data.as_bytes()).0));
        }
    }
    let mut sum = Sum(Vec::new());
    network.visit(&mut sum);
    sum.0
}
