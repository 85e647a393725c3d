//! The checkpoint's names of a module's parameters. Fields are named like the keys, so the path of
//! fields is the name, with exceptions: `LayerNorm` and `lora_A` are not conventional field names in Rust, `self` is a
//! keyword, and the field that holds a layer's adapter and the kind of an encoder layer are left out.

use std::any::Any;
use std::collections::{HashMap, HashSet};

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

/// A field's name → its part of the checkpoint's key.
fn key(field: &str) -> &str {
    match field {
        "layer_norm" => "LayerNorm",
        "self_attention" => "self",
        // The adapter of a layer stands beside its weight.
        "lora" => "",
        // A kind of encoder layer, a variant of `EncoderLayer`.
        "PostNorm" | "PreNorm" => "",
        "lora_a" => "lora_A",
        "lora_b" => "lora_B",
        same => same,
    }
}

/// A parameter with its name in the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedParameter {
    /// The checkpoint's key, such as `bert.encoder.layer.0.attention.self.query.weight`.
    pub name: String,
    /// The identity by which optimizers and gradients refer to it.
    pub id: ParamId,
    /// Its shape, which is also the checkpoint's.
    pub shape: Vec<usize>,
}

impl NamedParameter {
    /// Whether BERT's recipe excludes it from weight decay: biases, and the scales of LayerNorm.
    /// Source: google-research/bert@eedf571 `optimization.py`, `exclude_from_weight_decay`.
    pub fn is_undecayed(&self) -> bool {
        self.name.ends_with("bias") || self.name.contains("LayerNorm")
    }
}

/// The parameters of a network in the order of its checkpoint.
pub fn named_parameters<M: Module>(module: &M) -> Vec<NamedParameter> {
    let mut parameters = Vec::new();
    let mut visitor = Named::new(|name: String, id, shape: Vec<usize>, _: &dyn Values| {
        parameters.push(NamedParameter { name, id, shape });
    });
    module.visit(&mut visitor);
    parameters
}

/// The values of every parameter, read from the device, with names and in order.
pub fn named_values<M: Module>(module: &M) -> Vec<(String, TensorData)> {
    let mut values = Vec::new();
    let mut visitor = Named::new(|name: String, _, _: Vec<usize>, value: &dyn Values| {
        values.push((name, value.data()));
    });
    module.visit(&mut visitor);
    values
}

/// The values of the parameter with this identity, read from the device; `None` where the module has no such parameter.
pub fn value_of<M: Module>(module: &M, parameter: ParamId) -> Option<TensorData> {
    let mut found = None;
    let mut visitor = Named::new(|_: String, id, _: Vec<usize>, value: &dyn Values| {
        if id == parameter {
            found = Some(value.data());
        }
    });
    module.visit(&mut visitor);
    found
}

/// The gradient of the parameter with this name, read from the device; `None` where the module has
/// no such parameter or the parameter got no gradient.
pub fn gradient<M: Module>(
    module: &M,
    gradients: &GradientsParams,
    name: &str,
) -> Option<TensorData> {
    let mut found = None;
    let mut visitor = Named::new(|candidate: String, id, _: Vec<usize>, value: &dyn Values| {
        if candidate == name {
            found = value.gradient(gradients, id);
        }
    });
    module.visit(&mut visitor);
    found
}

/// Every parameter by its name, a `Param<Tensor<D>>` that shares its values with the module's.
pub(crate) fn shared_parameters<M: Module>(module: &M) -> HashMap<String, Box<dyn Any>> {
    let mut shared = HashMap::new();
    let mut visitor = Named::new(|name: String, _, _: Vec<usize>, value: &dyn Values| {
        shared.insert(name, value.shared());
    });
    module.visit(&mut visitor);
    shared
}

/// The names of the parameters that training changes.
pub(crate) fn trained_names<M: Module>(module: &M) -> HashSet<String> {
    let mut trained = HashSet::new();
    let mut visitor = Named::new(|name: String, _, _: Vec<usize>, value: &dyn Values| {
        if value.is_trained() {
            trained.insert(name);
        }
    });
    module.visit(&mut visitor);
    trained
}

/// Access to a parameter's values, independent of its rank.
trait Values {
    fn is_trained(&self) -> bool;
    fn shared(&self) -> Box<dyn Any>;
    fn data(&self) -> TensorData;
    fn gradient(&self, gradients: &GradientsParams, id: ParamId) -> Option<TensorData>;
}

impl<const D: usize> Values for Param<Tensor<D>> {
    fn is_trained(&self) -> bool {
        self.is_require_grad()
    }

    fn shared(&self) -> Box<dyn Any> {
        Box::new(self.clone())
    }

    fn data(&self) -> TensorData {
        self.val().into_data()
    }

    fn gradient(&self, gradients: &GradientsParams, id: ParamId) -> Option<TensorData> {
        gradients.get::<D>(id).map(Tensor::into_data)
    }
}

/// Calls a function for every parameter.
struct Named<F> {
    path: Vec<String>,
    each: F,
}

impl<F: FnMut(String, ParamId, Vec<usize>, &dyn Values)> Named<F> {
    fn new(each: F) -> Self {
        Self {
            path: Vec::new(),
            each,
        }
    }
}

impl<F: FnMut(String, ParamId, Vec<usize>, &dyn Values)> ModuleVisitor for Named<F> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(key(name).to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape().to_vec();
        let parts = self.path.iter().map(String::as_str);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        (self.each)(parts.join("."), param.id, shape, param);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_and_layer_norms_are_undecayed() {
        let undecayed = |name: &str| {
            let name = name.to_owned();
            NamedParameter {
                name,
                id: ParamId::new(),
                shape: vec![],
            }
            .is_undecayed()
        };
        assert!(undecayed("classifier.bias"));
        assert!(undecayed("bert.embeddings.LayerNorm.weight"));
        assert!(!undecayed("bert.embeddings.word_embeddings.weight"));
    }
}
