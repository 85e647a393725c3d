//! `Model::average([&first, &second])?`: a model whose weights are the means of those of others. Source: Wortsman et al. 2022, "Model
//! soups" (the uniform soup); of checkpoints of one run, Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima".

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Tensor, TensorData};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;
use stratoscope_strategy::{Origin, scope};

use super::{Model, ModelOf};
use crate::problem;
use stratoscope_network::{AnyNetwork, Network};
use stratoscope_step::prepare::are_generic;

/// What can be averaged: models, with the type of their network or without.
pub trait Average: Sized {
    /// The model.
    fn model(&self) -> &Model;

    /// The mean of models like this one.
    fn of_mean(&self, mean: Model) -> Self;
}

impl Average for Model {
    fn model(&self) -> &Model {
        self
    }

    fn of_mean(&self, mean: Model) -> Self {
        mean
    }
}

impl<N: Network> Average for ModelOf<N> {
    fn model(&self) -> &Model {
        self
    }

    fn of_mean(&self, mean: Model) -> Self {
        Self::of_model(mean)
    }
}

impl Model {
    /// A new model whose weights are the means of those of several models that are built alike: of two runs, or of checkpoints that
    /// `from_pretrained` has loaded. Its labels, its tokenizer and its place (the strategy) are those of the first one. It was not
    /// compiled. A mean is rounded once, from float64.
    ///
    /// # Errors
    /// SC0103 without a model, for models with other variables, shapes or names of labels, and for models that are not built; SC0907 if a device
    /// fails.
    #[track_caller]
    pub fn average<'m, M: Average + 'm>(models: impl IntoIterator<Item = &'m M>) -> Result<M> {
        let origin = Origin::current();
        let models: Vec<&M> = models.into_iter().collect();
        let Some(first) = models.first() else {
            return Err(refused("none", "at least one model"));
        };
        let (network, sums) = sums(models.iter().map(|model| model.model()))?;
        let count = models.len() as f64;
        let state = first.model().state();
        let files = state.files.clone();
        let strategy = state.step.replicas.strategy().cloned();
        drop(state);
        let mean = |sum: Vec<f64>| sum.into_iter().map(|sum| (sum / count) as f32).collect();
        let means = sums.into_iter().map(|it| (it.id, mean(it.sum)));
        let means: HashMap<ParamId, Vec<f32>> = means.collect();
        let network = network.map(&mut Means(means));
        let _scope = strategy.as_ref().map(scope::enter).transpose()?;
        let mean = Self::placed(network, files, origin)?;
        Ok(first.of_mean(mean))
    }
}

/// A variable, and the sum of its values over models.
struct Summed {
    id: ParamId,
    name: String,
    shape: Vec<usize>,
    sum: Vec<f64>,
}

/// The network of the first model, and the values of each of its variables, added up over all models in float64.
///
/// # Errors
/// SC0103 for models that differ.
fn sums<'m>(models: impl Iterator<Item = &'m Model>) -> Result<(AnyNetwork, Vec<Summed>)> {
    let mut first: Option<(AnyNetwork, Vec<String>, Vec<Summed>)> = None;
    for (index, model) in models.enumerate() {
        let (network, labels) = built(model)?;
        let own = variables(&network);
        let Some((_, expected, sums)) = &mut first else {
            first = Some((network, labels, own));
            continue;
        };
        let is_named = |labels: &[String]| !are_generic(labels);
        if labels != *expected && is_named(&labels) && is_named(expected) {
            let given = format!("model {index} with the labels {}", text::names(&labels, 4));
            let expects = format!("the labels of model 0, {}", text::names(expected, 4));
            return Err(refused(&given, &expects));
        }
        if let Some((given, expects)) = difference(index, sums, &own) {
            return Err(refused(&given, &expects));
        }
        for (sum, own) in sums.iter_mut().zip(own) {
            for (sum, value) in sum.sum.iter_mut().zip(own.sum) {
                *sum += value;
            }
        }
    }
    let first = first.map(|(network, _, sums)| (network, sums));
    first.ok_or_else(|| refused("none", "at least one model"))
}

/// The network of a model, and the labels of its outputs.
///
/// # Errors
/// SC0103 for a model without variables, SC0907 if replicas cannot be averaged.
fn built(model: &Model) -> Result<(AnyNetwork, Vec<String>)> {
    let state = model.state();
    if !state.is_built() {
        let given = format!("a `{}` that is not built", state.files.model_name());
        return Err(refused(&given, "models whose variables exist"));
    }
    let replicas = state.settled()?;
    let network = replicas.independent_copy(replicas.first());
    Ok((network, state.files.label_names().to_vec()))
}

/// The variables of a network in the order of its fields, each with its values.
fn variables(network: &AnyNetwork) -> Vec<Summed> {
    let known = network.parameters().into_iter();
    let mut values = Values {
        names: known.map(|known| (known.id, known.name)).collect(),
        found: Vec::new(),
    };
    network.visit(&mut values);
    values.found
}

/// Reads variables.
struct Values {
    names: HashMap<ParamId, String>,
    found: Vec<Summed>,
}

impl ModuleVisitor for Values {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().into_data().convert::<f32>();
        self.found.push(Summed {
            id: param.id,
            name: self.names.get(&param.id).cloned().unwrap_or_default(),
            shape: param.lazy_shape().to_vec(),
            sum: data.iter::<f32>().map(f64::from).collect(),
        });
    }
}

/// The first variable that is another one in the model of this index, and what was expected.
fn difference(index: usize, sums: &[Summed], own: &[Summed]) -> Option<(String, String)> {
    if own.len() != sums.len() {
        let count = |variables: usize| text::count(variables, "variable");
        let given = format!("model {index} with {}", count(own.len()));
        return Some((given, format!("{}, as model 0", count(sums.len()))));
    }
    let mut each = sums.iter().zip(own);
    each.find_map(|(first, own)| {
        let differs = first.name != own.name || first.shape != own.shape;
        let given = format!("model {index} with `{}` {:?}", own.name, own.shape);
        differs.then(|| {
            let expects = format!("`{}` {:?}, as model 0", first.name, first.shape);
            (given, expects)
        })
    })
}

fn refused(given: &str, expects: &str) -> Box<Diagnostic> {
    let problem = problem::bad_value("average", "models", given, expects);
    Box::new(
        problem
            .why("a mean is of the same weights: models of one architecture with the same labels"),
    )
}

/// Variables with these values.
struct Means(HashMap<ParamId, Vec<f32>>);

impl ModuleMapper for Means {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(mean) = self.0.remove(&param.id) else {
            return param;
        };
        param.map(|value| {
            let (is_trained, device) = (value.is_require_grad(), value.device());
            let mean = TensorData::new(mean, value.shape());
            Tensor::from_data(mean, &device).set_require_grad(is_trained)
        })
    }
}
