//! Low-rank adapters (LoRA): a frozen dense layer gets a small trained one beside it. Variables
//! `….{query,value}.lora_A` and `….lora_B`, as in the files of Hugging Face's PEFT.
//! Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1; PEFT v0.17
//! `tuners/lora/layer.py`, `Linear.forward`.
//! Dimensions: B sequences, S positions, I inputs, O outputs, R the rank.
//!
//! `y = x·Wᵀ + b + (alpha / R) · dropout(x)·Aᵀ·Bᵀ`, where only A and B are trained. B begins with zeros, so that a model
//! computes at first what it computed without adapters, bit for bit.
//!
//! **Why beside the layer and not in it.** With `W + (alpha / R)·B·A` as the weight of the fused operation the backward
//! pass would need the gradient of that whole weight, a product over all tokens and a tensor of O·I numbers that W itself
//! does not need any more, and keep the sum of every adapted layer; and dropout of the adapter's input could not be
//! written. Beside the layer two products with R rows are all that is added, forward and backward, and the fused layer
//! computes the gradient of its input only, as its weight is frozen.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::mode::{DropoutSite, Mode};
use crate::names::{named_parameters, shared_parameters};
use crate::parameters::{Initial, Parameters, Store};
use crate::{operation, ops, taps};

/// The target that stands for every dense layer of the body.
pub const ALL_LINEAR: &str = "all-linear";

/// The adapters of a network: which layers have one, and of what kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoraConfig {
    /// R, the rows of A: at least 1, at most the smaller side of each adapted weight.
    pub rank: usize,
    /// The adapter's part of the output is multiplied by `alpha / rank`.
    pub alpha: f64,
    /// Dropout of the adapter's input in training; 0 up to, not including, 1.
    pub dropout: f64,
    /// The layers as they were asked for: `query`.
    pub targets: Vec<String>,
    /// The layers that have an adapter: `bert.encoder.layer.0.attention.self.query`.
    pub modules: BTreeSet<String>,
    /// Fixes the first values of A.
    pub seed: u64,
    /// The checkpoint that the frozen weights came from: a name, or a folder.
    pub base: String,
    /// Parameters that are or were trained beside the adapters. No other file has their values, so that they are written
    /// with the adapters, and trained again where these are read.
    #[serde(default)]
    pub trained: BTreeSet<String>,
}

impl LoraConfig {
    /// Whether a parameter is one of an adapter's.
    pub fn has(&self, parameter: &str) -> bool {
        let parts = parameter.rsplit_once('.');
        parts.is_some_and(|(module, matrix)| {
            matrix.starts_with("lora_") && self.modules.contains(module)
        })
    }
}

/// Whether a parameter belongs to the body of a checkpoint of its family, and not to the head: RoBERTa's head is two
/// layers, of which the first is BERT's pooler here.
pub fn is_of_body<N: BertNetwork>(parameter: &str, config: &BertConfig) -> bool {
    let in_file = config.family.tensor(parameter, N::ARCHITECTURE);
    in_file.is_none_or(|name| name.starts_with(config.family.prefix()))
}

/// More adapters than a network has whose layers share their parameters.
const MAX_SHARED: usize = 64;

/// A dense layer that can have an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its path, `bert.encoder.layer.0.attention.self.query`.
    pub module: String,
    /// What its family calls it, `distilbert.transformer.layer.0.attention.q_lin`.
    pub in_file: String,
    /// O and I.
    pub shape: [usize; 2],
}

/// The dense layers of the body of a network. Tables of embeddings are none, and the head is trained as a whole.
pub fn candidates<N: BertNetwork>(network: &N, config: &BertConfig) -> Vec<Candidate> {
    let of_family = |weight: &str| config.family.tensor(weight, N::ARCHITECTURE);
    let parameters = named_parameters(network).into_iter();
    let found = parameters.filter_map(|parameter| {
        let module = parameter.name.strip_suffix(".weight")?;
        let shape = <[usize; 2]>::try_from(parameter.shape).ok()?;
        if !module.starts_with("bert.") || module.starts_with("bert.embeddings.") {
            return None;
        }
        let in_file = of_family(&parameter.name)?;
        Some(Candidate {
            module: module.to_owned(),
            in_file: in_file.strip_suffix(".weight")?.to_owned(),
            shape,
        })
    });
    found.collect()
}

impl Candidate {
    /// Whether a target names the layer: its path or the end of it, in BERT's words or in those of its family. A layer that is
    /// queries, keys and values in one is meant by the name of each of them.
    pub fn is_meant_by(&self, target: &str) -> bool {
        let is_joint = self.module.ends_with(".qkv");
        if is_joint && ["query", "key", "value"].contains(&target) {
            return true;
        }
        let ends = |path: &str| {
            let before = path.strip_suffix(target);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        target == ALL_LINEAR || ends(&self.module) || ends(&self.in_file)
    }

    /// What it can be called in every encoder layer: `query`, `self.query`, `attention.self.query`; and in its family.
    pub fn short_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for path in [&self.module, &self.in_file] {
            let starts = path.match_indices('.').map(|(at, _)| &path[at + 1..]);
            // Names with the number of a layer mean that one alone.
            let ends =
                starts.filter(|end| !end.split('.').any(|part| part.parse::<usize>().is_ok()));
            names.extend(ends);
        }
        names
    }
}

/// The adapter of a dense layer.
#[derive(Module, Debug)]
pub struct LowRank {
    /// A, [R, I]; key `lora_A`.
    pub lora_a: Param<Tensor<2>>,
    /// B, [O, R]; key `lora_B`.
    pub lora_b: Param<Tensor<2>>,
    #[module(skip)]
    scale: f64,
    #[module(skip)]
    dropout: f64,
    /// Its number among the adapters of the network: each has dropout masks of its own.
    #[module(skip)]
    site: usize,
}

impl LowRank {
    /// Takes the two matrices under the layer's name: A uniform, B zeros.
    pub(crate) fn new(
        parameters: &mut Parameters,
        config: &LoraConfig,
        [outputs, inputs]: [usize; 2],
        site: usize,
    ) -> Self {
        Self {
            lora_a: parameters.take("lora_A", [config.rank, inputs], Initial::Kaiming),
            lora_b: parameters.take("lora_B", [outputs, config.rank], Initial::Zeros),
            scale: config.alpha / config.rank as f64,
            dropout: config.dropout,
            site,
        }
    }

    /// Makes it the adapter of the same layer at another place of the encoder, counted from 0, where the encoder computes one
    /// layer several times: each time it has dropout masks of its own, as in PEFT.
    pub(crate) fn move_to(&mut self, place: usize) {
        self.site = self.site % MAX_SHARED + MAX_SHARED * place;
    }

    /// Adds the adapter's part to the output of its layer.
    ///
    /// # Shapes
    /// y [B, S, O], x [B, S, I] → [B, S, O]
    pub fn add_to(&self, y: Tensor<3>, x: Tensor<3>, mode: Mode) -> Tensor<3> {
        let device = x.device();
        let product = |name: &str, x: Tensor<3>, weight: Tensor<2>| {
            let [outputs, _] = weight.dims();
            taps::within(name, || {
                ops::linear(x, weight, Tensor::zeros([outputs], &device))
            })
        };
        let x = match mode.dropout(self.dropout, DropoutSite::Adapter(self.site)) {
            Some((rate, key)) => ops::dropout(x, rate, key),
            None => x,
        };
        let narrow = product("lora_A", x, self.lora_a.val()); // [B, S, R]
        // Here, where there are R numbers for a token and not O.
        let scaled = operation!("scale", [narrow], narrow * self.scale);
        let wide = product("lora_B", scaled, self.lora_b.val()); // [B, S, O]
        operation!("add adapter", [y, adapter = wide], y + adapter)
    }
}

/// The network with the adapters of `config.lora`, or without any. Parameters that `network` has are shared with it and
/// keep their identities; new ones have the values of `given`, else those that a new adapter begins with.
pub fn with_adapters<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    given: HashMap<String, Vec<f32>>,
) -> N {
    rebuilt::<N>(network, config, shared_parameters(network), given)
}

/// The network without its adapters: each weight is `W + (alpha / rank)·B·A`, computed in float64 and rounded once.
/// `config` has the adapters.
///
/// # Errors
/// What a device says whose values cannot be read.
pub fn merged<N: BertNetwork>(network: &N, config: &BertConfig) -> Result<N, String> {
    let mut known = shared_parameters(network);
    let Some(lora) = &config.lora else {
        return Ok(network.clone());
    };
    let scale = lora.alpha / lora.rank as f64;
    for module in &lora.modules {
        let mut matrix = |name: &str| {
            let found = known.remove(&format!("{module}.{name}"))?;
            found.downcast::<Param<Tensor<2>>>().ok()
        };
        let (Some(weight), Some(a), Some(b)) =
            (matrix("weight"), matrix("lora_A"), matrix("lora_B"))
        else {
            continue;
        };
        let summed = sum(&weight, &a, &b, scale)?;
        known.insert(format!("{module}.weight"), Box::new(summed));
    }
    let mut config = config.clone();
    config.lora = None;
    Ok(rebuilt::<N>(network, &config, known, HashMap::new()))
}

/// `weight + scale·B·A`, with the weight's identity.
fn sum(
    weight: &Param<Tensor<2>>,
    a: &Param<Tensor<2>>,
    b: &Param<Tensor<2>>,
    scale: f64,
) -> Result<Param<Tensor<2>>, String> {
    let read = |param: &Param<Tensor<2>>| -> Result<Vec<f64>, String> {
        let data = param.val().try_into_data();
        let data = data.map_err(|error| error.to_string())?;
        Ok(data.iter::<f64>().collect())
    };
    let [outputs, inputs] = weight.val().dims();
    let [rank, _] = a.val().dims();
    let (mut values, a, b) = (read(weight)?, read(a)?, read(b)?);
    for (row, of_b) in values.chunks_mut(inputs).zip(b.chunks(rank)) {
        for (b, of_a) in of_b.iter().zip(a.chunks(inputs)) {
            let factor = scale * b;
            for (value, a) in row.iter_mut().zip(of_a) {
                *value += factor * a;
            }
        }
    }
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    let (id, old, mapper) = weight.clone().consume();
    let tensor = Tensor::from_data(TensorData::new(values, [outputs, inputs]), &old.device());
    let tensor = match old.is_require_grad() {
        true => tensor.require_grad(),
        false => tensor,
    };
    Ok(Param::from_mapped_value(id, tensor, mapper))
}

/// The network of a configuration made of these parameters.
fn rebuilt<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    known: HashMap<String, Box<dyn Any>>,
    given: HashMap<String, Vec<f32>>,
) -> N {
    let device = network.devices().into_iter().next().unwrap_or_default();
    let seed = config.lora.as_ref().map_or(0, |lora| lora.seed);
    let mut store = Store::new(&device, config.initializer_range, seed)
        .with_lora(config.lora.as_ref())
        .with_values(known, given);
    N::new(&mut store.root(), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_path_or_the_end_of_one() {
        let layer = Candidate {
            module: "bert.encoder.layer.1.attention.self.query".to_owned(),
            in_file: "distilbert.transformer.layer.1.attention.q_lin".to_owned(),
            shape: [4, 4],
        };
        for target in [
            "query",
            "self.query",
            "layer.1.attention.self.query",
            "bert.encoder.layer.1.attention.self.query",
            "q_lin",
            "all-linear",
        ] {
            assert!(layer.is_meant_by(target), "{target}");
        }
        for target in [
            "",
            "uery",
            "key",
            "layer.0.attention.self.query",
            "attention",
        ] {
            assert!(!layer.is_meant_by(target), "{target}");
        }
        let names = layer.short_names();
        assert_eq!(
            names,
            [
                "attention.self.query",
                "self.query",
                "query",
                "attention.q_lin",
                "q_lin"
            ]
        );
    }
}
