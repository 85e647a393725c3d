//! Groups of variables with learning rates of their own: `layer_decay`. Source: Howard and Ruder 2018, "Universal Language
//! Model Fine-tuning for Text Classification", section 3.2, with the numbering of ELECTRA's fine-tuning: what is above the
//! encoder has the rate, its top layer the rate times the decay, each layer below once more, the embeddings the least.

use std::collections::HashMap;
use std::ops::Not;

use burn::module::ParamId;
use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use super::{Optimizer, check_number};

/// Variables that share a learning rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// `encoder layer 11`.
    pub name: String,
    /// What the rate of the schedule is multiplied with.
    pub factor: f64,
    /// How many variables are in it.
    pub variables: usize,
    /// How many of them decay.
    pub decayed: usize,
}

/// Checks the number as written.
pub(super) fn check_layer_decay(optimizer: &str, layer_decay: Option<f64>) -> Result<Option<f64>> {
    if let Some(number) = layer_decay {
        check_number(optimizer, "layer_decay", number)?;
    }
    Ok(layer_decay)
}

/// The number of the encoder layer that a variable belongs to: 3 for `bert.encoder.layer.3.output.dense.weight`.
fn layer_of(name: &str) -> Option<usize> {
    let mut parts = name.split('.').skip_while(|part| *part != "layer");
    parts.nth(1)?.parse().ok()
}

/// How many encoder layers the variables have.
fn layers(variables: &[NamedParameter]) -> usize {
    let numbers = variables.iter().filter_map(|known| layer_of(&known.name));
    numbers.max().map_or(0, |last| last + 1)
}

/// The place of a variable below the head, which is 0: `layers` for the lowest layer, one more for the embeddings.
fn depth(name: &str, layers: usize) -> usize {
    match layer_of(name) {
        Some(layer) => layers - layer,
        None if name.split('.').any(|part| part == "embeddings") => layers + 1,
        None => 0,
    }
}

impl Optimizer {
    /// What the rate of each variable is multiplied with, where it is not 1.
    pub(crate) fn layer_factors(&self, variables: &[NamedParameter]) -> HashMap<ParamId, f64> {
        let Some(decay) = self.layer_decay else {
            return HashMap::new();
        };
        let layers = layers(variables);
        let factors = variables.iter().map(|known| {
            let depth = depth(&known.name, layers);
            (known.id, factor(decay, depth))
        });
        factors.filter(|(_, factor)| *factor != 1.0).collect()
    }

    /// The groups from the head down to the embeddings; none without `layer_decay`.
    pub(crate) fn groups(&self, variables: &[NamedParameter]) -> Vec<Group> {
        let Some(decay) = self.layer_decay else {
            return Vec::new();
        };
        let layers = layers(variables);
        let group = |at: usize| {
            let of_it = |known: &&NamedParameter| depth(&known.name, layers) == at;
            let decays = |known: &&NamedParameter| !self.excludes(known);
            let members = || variables.iter().filter(of_it);
            let variables = members().count();
            let name = match at {
                0 => "head".to_owned(),
                at if at > layers => "embeddings".to_owned(),
                at => format!("encoder layer {}", layers - at),
            };
            let decayed = match self.weight_decay() == 0.0 {
                true => 0,
                false => members().filter(decays).count(),
            };
            (variables == 0).not().then(|| Group {
                name,
                factor: factor(decay, at),
                variables,
                decayed,
            })
        };
        (0..=layers + 1).filter_map(group).collect()
    }

    /// SC0103 for `layer_decay` of a model without encoder layers.
    pub(crate) fn layers_missing(&self, variables: &[NamedParameter]) -> Option<Diagnostic> {
        let decay = self.layer_decay.filter(|_| layers(variables) == 0)?;
        let mut names: Vec<String> = variables
            .iter()
            .take(4)
            .map(|known| format!("`{}`", known.name))
            .collect();
        if variables.len() > names.len() {
            names.push("…".to_owned());
        }
        let rule = InvalidArgumentValue {
            call: format!("{}::new", self.name),
            argument: "layer_decay".to_owned(),
            given: decay.to_string(),
            expects: format!(
                "a model with encoder layers, whose variables are named `….layer.0.…`; this one has {}",
                names.join(", ")
            ),
            place: Place::argument("compile", "optimizer"),
            replacement: None,
            arguments: Vec::new(),
        };
        Some(rule.diagnostic())
    }
}

/// A product in a fixed order, so that every processor has the same bits.
fn factor(decay: f64, depth: usize) -> f64 {
    (0..depth).fold(1.0, |factor, _| factor * decay)
}

#[cfg(test)]
mod tests {
    use super::super::{AdamW, IntoOptimizer, SGD};
    use super::*;

    fn variables(names: &[&str]) -> Vec<NamedParameter> {
        let named = |name: &&str| NamedParameter {
            name: (*name).to_owned(),
            id: ParamId::new(),
            shape: vec![1],
        };
        names.iter().map(named).collect()
    }

    #[test]
    fn the_head_has_the_rate_and_the_embeddings_the_least() {
        let variables = variables(&[
            "bert.embeddings.word_embeddings.weight",
            "bert.encoder.layer.0.output.dense.weight",
            "bert.encoder.layer.1.output.dense.weight",
            "bert.encoder.layer.1.output.dense.bias",
            "bert.pooler.dense.weight",
            "classifier.bias",
        ]);
        let optimizer = AdamW::new(1e-3).layer_decay(0.5).into_optimizer();
        let optimizer = optimizer.expect("valid");
        let factors = optimizer.layer_factors(&variables);
        let factors = variables.iter().map(|it| factors.get(&it.id).copied());
        let expected = [Some(0.125), Some(0.25), Some(0.5), Some(0.5), None, None];
        assert_eq!(factors.collect::<Vec<_>>(), expected);
        let groups = optimizer.groups(&variables);
        let groups = groups
            .iter()
            .map(|it| (it.name.as_str(), it.factor, it.variables, it.decayed));
        let expected = [
            ("head", 1.0, 2, 1),
            ("encoder layer 1", 0.5, 2, 1),
            ("encoder layer 0", 0.25, 1, 1),
            ("embeddings", 0.125, 1, 1),
        ];
        assert_eq!(groups.collect::<Vec<_>>(), expected);
        assert!(optimizer.layers_missing(&variables).is_none());
        let plain = AdamW::new(1e-3).into_optimizer().expect("valid");
        assert!(plain.layer_factors(&variables).is_empty());
        assert!(plain.groups(&variables).is_empty());
    }

    #[test]
    fn a_model_without_layers_and_numbers_out_of_range_are_refused() {
        let variables = variables(&["dense.kernel", "dense.bias"]);
        let optimizer = SGD::new(0.1).layer_decay(0.9).into_optimizer();
        let found = optimizer.expect("valid").layers_missing(&variables);
        let found = found.expect("a diagnostic");
        assert_eq!(found.code.as_str(), "SC0103");
        assert!(found.to_string().contains("`dense.kernel`"), "{found}");
        for number in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let refused = SGD::new(0.1).layer_decay(number).into_optimizer();
            assert_eq!(refused.expect_err("refused").code.as_str(), "SC0103");
        }
    }
}
