//! [`BertNetwork`]: what the networks with a BERT in them have in common: they are made of a configuration and of named
//! parameters, and have a name among transformers' classes.

use burn::module::Module;
use burn::tensor::Device;
use stratoscope_diagnostics::Result;

use crate::config::BertConfig;
use crate::parameters::{Parameters, Store};
use crate::sequence_classifier::SequenceClassifier;

/// A body with a head.
pub trait BertNetwork: Module + Sized {
    /// What transformers calls it, and `config.json` under `architectures`.
    const ARCHITECTURE: &'static str;

    /// Takes the parameters of the whole network.
    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self;

    /// A network with new weights, N(0, `initializer_range`), fixed by the seed on every device.
    ///
    /// # Errors
    /// SC0909 for a configuration with invalid values.
    fn init(config: &BertConfig, seed: u64, device: &Device) -> Result<Self> {
        config.check()?;
        let mut store = Store::new(device, config.initializer_range, seed);
        store = store.with_lora(config.lora.as_ref());
        Ok(Self::new(&mut store.root(), config))
    }
}

impl BertNetwork for SequenceClassifier {
    const ARCHITECTURE: &'static str = "BertForSequenceClassification";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        Self::new(parameters, config)
    }
}
