//! The gradients of a batch as a value: what a training loop by hand adds, scales, looks at and applies.

use std::collections::HashMap;
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul};

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_render::text;
use stratoscope_strategy::device::name_of;
use stratoscope_strategy::origin;

use stratoscope_network::AnyNetwork;
use stratoscope_optim::schedule::short;
use stratoscope_optim::{Squares, sum_of_squares};
use stratoscope_report::held::Held;

/// What a loop by hand has done since its last step.
#[derive(Debug, Default)]
pub struct ByHand {
    /// Gradients for training computed since the model was made; each has a number of its own.
    pub computed: u64,
    /// How many there were at the last step.
    pub at_last_step: u64,
    /// How often replica 0's network was lent since a call last used all replicas, and in which cell.
    lent: (u32, Option<u64>),
}

/// How often replica 0's network is lent in one cell before that is taken for a loop.
const CALLS_OF_A_LOOP: u32 = 4;

impl ByHand {
    /// A call that uses all replicas begins.
    pub fn uses_all_replicas(&mut self) {
        self.lent = (0, None);
    }

    /// `with_network` lends the network of replica 0. Whether this makes a loop that leaves the other
    /// replicas idle (SC0203): true once per loop.
    pub fn lends(&mut self, replicas: usize) -> bool {
        let cell = origin::current_cell();
        if self.lent.1 != cell {
            self.lent = (0, cell);
        }
        self.lent.0 += 1;
        replicas > 1 && self.lent.0 == CALLS_OF_A_LOOP
    }
}

/// The gradient of a model's mean loss over a batch, or what was made of several: sums, multiples.
#[derive(Clone, Default)]
pub struct Gradients {
    /// By variable: its name, and the gradient's elements.
    values: Vec<(ParamId, String, Tensor<1>)>,
    /// The numbers of the batches in it.
    batches: Vec<u64>,
    /// What those were multiplied with, added up: 1 for one batch, and for the mean of several.
    weight: f64,
    /// The mean losses of those batches, in their order.
    losses: Vec<f64>,
    /// Computed without dropout.
    without_dropout: bool,
}

impl Gradients {
    /// Nothing yet: what a loop begins to add to.
    pub fn zeros() -> Self {
        Self::default()
    }

    /// The norm over all variables, √Σg².
    pub fn norm(&self) -> f64 {
        let squares = self.values.iter().map(|(_, _, value)| squares(value));
        squares.sum::<f64>().sqrt()
    }

    /// The mean of the losses of the batches in it.
    pub fn loss(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len() as f64
    }

    /// How many batches are in it.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Variable and norm of its gradient, in the order of the network.
    pub fn norms(&self) -> Vec<(String, f64)> {
        let norms = self.values.iter();
        norms
            .map(|(_, name, value)| (name.clone(), squares(value).sqrt()))
            .collect()
    }

    /// Of one batch, from the gradients of the network's parameters.
    pub fn of_batch(
        network: &AnyNetwork,
        gradients: GradientsParams,
        number: u64,
        loss: f64,
        without_dropout: bool,
    ) -> Self {
        let names = network.parameters().into_iter();
        let mut flat = Flat {
            gradients,
            names: names.map(|known| (known.id, known.name)).collect(),
            values: Vec::new(),
        };
        network.visit(&mut flat);
        Self {
            values: flat.values,
            batches: vec![number],
            weight: 1.0,
            losses: vec![loss],
            without_dropout,
        }
    }

    /// The numbers of the batches in it.
    pub fn batch_numbers(&self) -> &[u64] {
        &self.batches
    }

    /// What the gradients of its batches were multiplied by, added up.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether one of its batches was computed without dropout.
    pub fn is_without_dropout(&self) -> bool {
        self.without_dropout
    }

    /// What it holds, and where.
    pub fn held(&self) -> Held {
        let size = |value: &Tensor<1>| value.shape().num_elements() * value.dtype().size();
        let bytes: usize = self.values.iter().map(|(_, _, value)| size(value)).sum();
        let mut devices: Vec<String> = Vec::new();
        for (_, _, value) in &self.values {
            let name = name_of(&value.device());
            if !devices.contains(&name) {
                devices.push(name);
            }
        }
        Held {
            bytes: bytes as u64,
            devices,
        }
    }

    /// The elements of every gradient, read from the device.
    pub fn elements(&self) -> impl Iterator<Item = f32> {
        self.values.iter().flat_map(|(_, _, value)| {
            let data = value.clone().into_data().convert::<f32>();
            data.iter::<f32>().collect::<Vec<_>>()
        })
    }

    fn scaled(mut self, factor: f64) -> Self {
        for (_, _, value) in &mut self.values {
            *value = value.clone().mul_scalar(factor as f32);
        }
        self.weight *= factor;
        self
    }
}

fn squares(value: &Tensor<1>) -> f64 {
    match sum_of_squares(value.clone()) {
        Squares::Known(sum) => sum,
        Squares::OnDevice(sum) => f64::from(sum.into_scalar::<f32>()),
    }
}

impl Add for Gradients {
    type Output = Self;

    /// The sum, variable by variable. One that only one side has stays as it is.
    fn add(mut self, other: Self) -> Self {
        let mut added: HashMap<ParamId, (String, Tensor<1>)> = HashMap::new();
        let mut order = Vec::new();
        for (id, name, value) in other.values {
            order.push(id);
            added.insert(id, (name, value));
        }
        for (id, _, value) in &mut self.values {
            if let Some((_, other)) = added.remove(id) {
                *value = value.clone() + other;
            }
        }
        for id in order {
            if let Some((name, value)) = added.remove(&id) {
                self.values.push((id, name, value));
            }
        }
        self.batches.extend(other.batches);
        self.losses.extend(other.losses);
        self.weight += other.weight;
        self.without_dropout |= other.without_dropout;
        self
    }
}

impl AddAssign for Gradients {
    fn add_assign(&mut self, other: Self) {
        *self = std::mem::take(self) + other;
    }
}

impl Mul<f64> for Gradients {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        self.scaled(factor)
    }
}

impl Div<f64> for Gradients {
    type Output = Self;

    fn div(self, divisor: f64) -> Self {
        self.scaled(1.0 / divisor)
    }
}

impl fmt::Display for Gradients {
    /// `gradient of 4 batches, together × 1: norm 2.31, loss 2.0794`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = text::count(self.batches.len(), "batch");
        write!(
            f,
            "gradient of {count}, together × {:.4}: norm {:.4e}, loss {:.4}",
            self.weight,
            self.norm(),
            self.loss()
        )
    }
}

impl fmt::Debug for Gradients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A step that was made by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The norm of the gradient as it was given.
    pub norm: f64,
    /// What `global_clipnorm` multiplied it with; 1 where it did nothing.
    pub factor: f64,
    /// The learning rate.
    pub rate: f64,
    /// Batches in the gradient.
    pub batches: usize,
    /// Optimizer steps since `compile!`, this one included.
    pub step: u64,
}

impl fmt::Display for Applied {
    /// `step 1: gradient norm 3.2e0, clipped to 1e0 (× 0.3125), rate 5e-5, from 4 batches`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: gradient norm {:.4e}", self.step, self.norm)?;
        if self.factor < 1.0 {
            let clipped = self.norm * self.factor;
            write!(f, ", clipped to {clipped:.4e} (× {:.4})", self.factor)?;
        }
        let batches = text::count(self.batches, "batch");
        write!(f, ", rate {}, from {batches}", short(self.rate))
    }
}

/// Takes gradients apart into a list.
struct Flat {
    gradients: GradientsParams,
    names: HashMap<ParamId, String>,
    values: Vec<(ParamId, String, Tensor<1>)>,
}

impl ModuleVisitor for Flat {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let count = gradient.shape().num_elements();
            let name = self.names.get(&param.id).cloned().unwrap_or_default();
            self.values
                .push((param.id, name, gradient.reshape([count])));
        }
    }
}

/// The gradients as the optimizer takes them, each where its variable is.
pub fn as_parameters<M: Module>(module: &M, gradients: &Gradients) -> GradientsParams {
    struct Shaped<'a> {
        values: HashMap<ParamId, &'a Tensor<1>>,
        shaped: GradientsParams,
    }
    impl ModuleVisitor for Shaped<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(&value) = self.values.get(&param.id) {
                let value = value.clone().to_device(&param.lazy_device().inner());
                let shape = param.lazy_shape();
                self.shaped.register::<D>(param.id, value.reshape(shape));
            }
        }
    }
    let values = gradients.values.iter().map(|(id, _, value)| (*id, value));
    let mut shaped = Shaped {
        values: values.collect(),
        shaped: GradientsParams::new(),
    };
    module.visit(&mut shaped);
    shaped.shaped
}
