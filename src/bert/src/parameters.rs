//! The source of a layer's parameters: a checkpoint, or a random number generator. A layer
//! requests a parameter by the last part of its checkpoint key; [`Parameters::enter`] adds the parts before it, so
//! the path through the modules *is* the key.

use std::f64::consts::TAU;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Shape, Tensor, TensorData};
use stratoscope_data::RandomStream;

use crate::checkpoint::{Filled, Loader};

/// The initial values of a parameter that is not in a checkpoint. Source: transformers v4.57.1
/// `modeling_bert.py`, `_init_weights`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// N(0, `initializer_range`).
    Normal,
    /// N(0, `initializer_range`), but zeros in one row.
    NormalExcept(Option<usize>),
    /// Biases.
    Zeros,
    /// Scales of LayerNorm.
    Ones,
}

/// All parameters of a network that is being built.
#[derive(Debug)]
pub struct Store<'a> {
    device: Device,
    standard_deviation: f64,
    seed: u64,
    loader: Option<&'a mut Loader>,
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
        }
    }

    /// Parameters from a checkpoint; new ones if the loader decides so.
    pub(crate) fn with_loader(self, loader: &'a mut Loader) -> Self {
        Self {
            loader: Some(loader),
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
        let filled = match &mut self.store.loader {
            Some(loader) => loader.fill(&name, &shape),
            None => Filled::New,
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

impl Store<'_> {
    fn initial_values(&self, name: &str, shape: &[usize], initial: Initial) -> Vec<f32> {
        let count = shape.iter().product();
        let skipped_row = match initial {
            Initial::Zeros => return vec![0.0; count],
            Initial::Ones => return vec![1.0; count],
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
    // FNV-1a, 64 bits.
    let stream = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = RandomStream::new(seed, stream);
    // 53 random bits as a number in (0, 1]; 0 is excluded because of the logarithm below.
    let mut uniform = || ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        // Box and Muller 1958: two uniform numbers make two normal ones.
        let radius = standard_deviation * (-2.0 * uniform().ln()).sqrt();
        let angle = TAU * uniform();
        values.push((radius * angle.cos()) as f32);
        values.push((radius * angle.sin()) as f32);
    }
    values.truncate(count);
    values
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
