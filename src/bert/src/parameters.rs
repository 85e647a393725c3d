//! The source of a layer's parameters: a checkpoint, or a random number generator. A layer
//! requests a parameter by the last part of its checkpoint key; [`Parameters::enter`] adds the parts before it, so
//! the path through the modules *is* the key.

use std::any::Any;
use std::collections::HashMap;
use std::f64::consts::TAU;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Shape, Tensor, TensorData};
use stratoscope_data::RandomStream;

use crate::checkpoint::{Filled, Loader};
use crate::lora::{LoraConfig, LowRank};

/// The initial values of a parameter that is not in a checkpoint. Source: transformers v4.57.1
/// `modeling_bert.py`, `_init_weights`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// N(0, `initializer_range`).
    Normal,
    /// N(0, `initializer_range`), but zeros in one row.
    NormalExcept(Option<usize>),
    /// N(0, `deviation`) without the numbers that are more than `cutoff` deviations from 0. ModernBERT's.
    Truncated {
        /// The standard deviation before the numbers are left out.
        deviation: f64,
        /// More than 0.
        cutoff: f64,
    },
    /// Biases.
    Zeros,
    /// Scales of LayerNorm.
    Ones,
    /// U(−1/√I, 1/√I) for I columns, which keeps the size of what is multiplied. Source: He et al. 2015; PEFT takes
    /// PyTorch's `kaiming_uniform_(a=√5)` for the first matrix of an adapter, which is this.
    Kaiming,
}

/// All parameters of a network that is being built.
#[derive(Debug)]
pub struct Store<'a> {
    device: Device,
    standard_deviation: f64,
    seed: u64,
    loader: Option<&'a mut Loader>,
    /// The adapters that dense layers are to have.
    lora: Option<&'a LoraConfig>,
    /// How many adapters there are by now.
    adapters: usize,
    /// Parameters of another network that are taken as they are, by name.
    known: HashMap<String, Box<dyn Any>>,
    /// Values of parameters, by name; they come before `known`.
    given: HashMap<String, Vec<f32>>,
}

impl<'a> Store<'a> {
    /// Parameters that are all new.
    pub fn new(device: &Device, initializer_range: f64, seed: u64) -> Self {
        let device = device.clone();
        Self {
            device,
            standard_deviation: initializer_range,
            seed,
            loader: None,
            lora: None,
            adapters: 0,
            known: HashMap::new(),
            given: HashMap::new(),
        }
    }

    /// Parameters from a checkpoint; new ones if the loader decides so.
    pub(crate) fn with_loader(self, loader: &'a mut Loader) -> Self {
        Self {
            loader: Some(loader),
            ..self
        }
    }

    /// Dense layers get these adapters.
    pub(crate) fn with_lora(self, lora: Option<&'a LoraConfig>) -> Self {
        Self { lora, ..self }
    }

    /// Parameters that exist, a `Param<Tensor<D>>` each, and values that come before theirs.
    pub(crate) fn with_values(
        self,
        known: HashMap<String, Box<dyn Any>>,
        given: HashMap<String, Vec<f32>>,
    ) -> Self {
        Self {
            known,
            given,
            ..self
        }
    }

    /// The top of the tree of keys.
    pub fn root(&mut self) -> Parameters<'_, 'a> {
        Parameters {
            store: self,
            prefix: String::new(),
        }
    }
}

/// The parameters below one key.
#[derive(Debug)]
pub struct Parameters<'s, 'a> {
    store: &'s mut Store<'a>,
    prefix: String,
}

impl<'a> Parameters<'_, 'a> {
    /// The parameters one level further down.
    pub fn enter(&mut self, name: &str) -> Parameters<'_, 'a> {
        let prefix = format!("{}{name}.", self.prefix);
        Parameters {
            store: self.store,
            prefix,
        }
    }

    /// One parameter. Never fails: the loader records parameters that the checkpoint lacks or has in another shape,
    /// and reports them together. The network is dropped then, and the parameter returned for it
    /// allocates no memory.
    pub fn take<const D: usize>(
        &mut self,
        name: &str,
        shape: [usize; D],
        initial: Initial,
    ) -> Param<Tensor<D>> {
        let name = format!("{}{name}", self.prefix);
        let given = self.store.given.remove(&name);
        let known = self.store.known.remove(&name);
        let known = known.and_then(|known| known.downcast::<Param<Tensor<D>>>().ok());
        let filled = match (given, known, &mut self.store.loader) {
            (Some(values), _, _) => Filled::Values(values),
            (None, Some(known), _) => return *known,
            (None, None, Some(loader)) => loader.fill(&name, &shape),
            (None, None, None) => Filled::New,
        };
        let device = &self.store.device;
        match filled {
            Filled::Values(values) => Param::from_data(TensorData::new(values, shape), device),
            Filled::New => {
                let values = self.store.initial_values(&name, &shape, initial);
                Param::from_data(TensorData::new(values, shape), device)
            }
            Filled::Refused => Param::uninitialized(
                ParamId::new(),
                move |device, _| Tensor::zeros(shape, device),
                device.clone(),
                false,
                Shape::new(shape),
            ),
        }
    }
}

impl Parameters<'_, '_> {
    /// The adapter of the dense layer with a weight [O, I] at this place, if it is to have one.
    pub(crate) fn take_adapter(&mut self, shape: [usize; 2]) -> Option<LowRank> {
        let config = self.store.lora?;
        let module = self.prefix.trim_end_matches('.');
        if !config.modules.contains(module) {
            return None;
        }
        let site = self.store.adapters;
        self.store.adapters += 1;
        Some(LowRank::new(self, config, shape, site))
    }
}

impl Store<'_> {
    fn initial_values(&self, name: &str, shape: &[usize], initial: Initial) -> Vec<f32> {
        let count = shape.iter().product();
        let skipped_row = match initial {
            Initial::Zeros => return vec![0.0; count],
            Initial::Ones => return vec![1.0; count],
            Initial::Kaiming => {
                let columns = shape.last().copied().unwrap_or(1).max(1);
                return uniform(self.seed, name, 1.0 / (columns as f64).sqrt(), count);
            }
            Initial::Truncated { deviation, cutoff } => {
                return truncated(self.seed, name, (deviation, cutoff), count);
            }
            Initial::Normal => None,
            Initial::NormalExcept(row) => row,
        };
        let mut values = normal(self.seed, name, self.standard_deviation, count);
        if let (Some(row), Some(width)) = (skipped_row, shape.last())
            && let Some(row) = values.get_mut(row * width..(row + 1) * width)
        {
            row.fill(0.0);
        }
        values
    }
}

/// Normally distributed numbers, determined by the seed and the parameter's name: a parameter starts
/// with the same values in every network and on every device.
fn normal(seed: u64, name: &str, standard_deviation: f64, count: usize) -> Vec<f32> {
    let mut random = stream(seed, name);
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let pair = normal_pair(&mut random, standard_deviation);
        values.extend(pair.map(|number| number as f32));
    }
    values.truncate(count);
    values
}

/// Numbers as [`normal`] draws them, of which those beyond `cutoff` deviations are left out.
fn truncated(seed: u64, name: &str, (deviation, cutoff): (f64, f64), count: usize) -> Vec<f32> {
    let mut random = stream(seed, name);
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let pair = normal_pair(&mut random, deviation).into_iter();
        let within = pair.filter(|number| number.abs() <= cutoff * deviation);
        values.extend(within.map(|number| number as f32));
    }
    values.truncate(count);
    values
}

/// Box and Muller 1958: two uniform numbers make two normally distributed ones.
fn normal_pair(random: &mut RandomStream, standard_deviation: f64) -> [f64; 2] {
    let radius = standard_deviation * (-2.0 * positive_share(random).ln()).sqrt();
    let angle = TAU * positive_share(random);
    [radius * angle.cos(), radius * angle.sin()]
}

/// Numbers from −`bound` to `bound`, each as likely, determined as [`normal`] ones are.
fn uniform(seed: u64, name: &str, bound: f64, count: usize) -> Vec<f32> {
    let mut random = stream(seed, name);
    let mut number = || (bound * (2.0 * positive_share(&mut random) - 1.0)) as f32;
    (0..count).map(|_| number()).collect()
}

/// The random numbers of a parameter.
fn stream(seed: u64, name: &str) -> RandomStream {
    // FNV-1a, 64 bits.
    let stream = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    RandomStream::new(seed, stream)
}

/// 53 random bits as a number in (0, 1]; 0 is excluded because a logarithm may be taken of it.
fn positive_share(random: &mut RandomStream) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_their_moments_and_their_seed() {
        let values = normal(1, "classifier.weight", 0.02, 40_001);
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 40_001.0;
        let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 40_001.0;
        // Five standard errors: 0.02/√n for the mean, about σ/√(2n) for the deviation.
        assert!(mean.abs() < 5e-4, "{mean}");
        assert!((square.sqrt() - 0.02).abs() < 4e-4, "{}", square.sqrt());
        assert_eq!(values[..8], normal(1, "classifier.weight", 0.02, 8));
        assert_ne!(values[..8], normal(2, "classifier.weight", 0.02, 8));
        assert_ne!(values[..8], normal(1, "classifier.bias", 0.02, 8));
    }

    #[test]
    fn truncated_numbers_have_their_bound_and_their_moments() {
        let values = truncated(1, "classifier.weight", (0.1, 2.0), 40_000);
        assert_eq!(values.len(), 40_000);
        assert!(values.iter().all(|value| value.abs() <= 0.2));
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 40_000.0;
        let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 40_000.0;
        // The variance of N(0, 1) within ±2 is 1 − 4·φ(2)/(2·Φ(2) − 1) = 0.7737; five standard errors.
        assert!(mean.abs() < 2.5e-3, "{mean}");
        assert!((square - 0.007_737).abs() < 2e-4, "{square}");
        let most = values.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        assert!(most > 0.19, "{most}");
        // A deviation of 0 ends, too.
        assert_eq!(truncated(1, "a", (0.0, 2.0), 3), [0.0; 3]);
    }

    #[test]
    fn uniform_numbers_have_their_bound_and_their_moments() {
        let values = uniform(1, "query.lora_A", 0.25, 40_000);
        assert!(values.iter().all(|value| value.abs() <= 0.25));
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 40_000.0;
        let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 40_000.0;
        // The variance of U(−b, b) is b²/3; five standard errors.
        assert!(mean.abs() < 4e-3, "{mean}");
        assert!((square - 0.0625 / 3.0).abs() < 5e-4, "{square}");
        assert_ne!(values[..8], uniform(1, "value.lora_A", 0.25, 8));
    }

    #[test]
    fn the_padding_row_starts_at_zero() {
        let device = Device::flex();
        let store = Store::new(&device, 0.02, 3);
        let values = store.initial_values("table", &[4, 3], Initial::NormalExcept(Some(1)));
        assert!(values[3..6].iter().all(|&value| value == 0.0));
        assert!(
            values[0..3]
                .iter()
                .chain(&values[6..])
                .all(|&value| value != 0.0)
        );
    }
}
