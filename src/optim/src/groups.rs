//! Groups of variables with learning rates of their own: `layer_decay` and `rate_for`. Source of the former: Howard and Ruder 2018, "Universal Language
//! Model Fine-tuning for Text Classification", section 3.2, with the numbering of ELECTRA's fine-tuning: what is above the
//! encoder has the rate, its top layer the rate times the decay, each layer below once more, the embeddings the least.

use std::collections::HashMap;
use std::ops::Not;

use burn::module::ParamId;
use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::arguments::Interval;
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use super::Optimizer;
use super::checks::{bad_text, check_number};
use stratoscope_bert::pattern::matches;

/// Variables that share a learning rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// `encoder layer 11`, or the pattern that its variables match.
    pub name: String,
    /// What the rate of the schedule is multiplied with.
    pub factor: f64,
    /// How many variables are in it.
    pub variables: usize,
    /// How many of them decay.
    pub decayed: usize,
}

/// How far each variable is below the head: 0 for what is above the encoder, 1 for its top layer, the most for the embeddings.
pub fn depths<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<usize> {
    let numbers = names.clone().filter_map(layer_of);
    let layers = numbers.max().map_or(0, |last| last + 1);
    names.map(|name| depth(name, layers)).collect()
}

/// Checks the number as written.
pub(super) fn check_layer_decay(optimizer: &str, layer_decay: Option<f64>) -> Result<Option<f64>> {
    if let Some(number) = layer_decay {
        check_number(optimizer, "layer_decay", number)?;
    }
    Ok(layer_decay)
}

/// Checks the factors as written.
pub(super) fn check_rates(
    optimizer: &str,
    rates: Vec<(String, f64)>,
) -> Result<Vec<(String, f64)>> {
    for (pattern, factor) in &rates {
        if let Some(expects) = Interval::NotNegative.refuses(*factor) {
            let given = format!("({pattern:?}, {factor})");
            let expects = format!("a pattern and {expects}");
            return Err(bad_text(optimizer, "rate_for", given, &expects));
        }
    }
    Ok(rates)
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

/// Whether a part of a variable's name is the embeddings, or the layer that makes an encoder's input of them.
fn is_embeddings_part(part: &str) -> bool {
    matches!(part, "embeddings" | "embeddings_project")
}

/// The place of a variable below the head, which is 0: `layers` for the lowest layer, one more for the embeddings.
fn depth(name: &str, layers: usize) -> usize {
    match layer_of(name) {
        Some(layer) => layers - layer,
        None if name.split('.').any(is_embeddings_part) => layers + 1,
        None => 0,
    }
}

impl Optimizer {
    /// What the rate of each variable is multiplied with, where it is not 1.
    pub fn layer_factors(&self, variables: &[NamedParameter]) -> HashMap<ParamId, f64> {
        let layers = layers(variables);
        let factors = variables.iter().map(|known| {
            let factor = self.factor(
                self.depth(&known.name, layers),
                self.last_match(&known.name),
            );
            (known.id, factor)
        });
        factors.filter(|(_, factor)| *factor != 1.0).collect()
    }

    /// The number of the last call of `rate_for` whose pattern matches a variable.
    fn last_match(&self, name: &str) -> Option<usize> {
        let matches = |(pattern, _): &(String, f64)| matches(pattern, name);
        self.rates.iter().rposition(matches)
    }

    /// [`depth`], or 0 without `layer_decay`.
    fn depth(&self, name: &str, layers: usize) -> usize {
        self.layer_decay.map_or(0, |_| depth(name, layers))
    }

    /// What the rate is multiplied with at a depth, by a call of `rate_for`. A product in a fixed order, so that every
    /// processor has the same bits.
    fn factor(&self, depth: usize, rate: Option<usize>) -> f64 {
        let decay = self.layer_decay.unwrap_or(1.0);
        let own = rate.map_or(1.0, |at| self.rates[at].1);
        (0..depth).fold(1.0, |factor, _| factor * decay) * own
    }

    /// The groups from the head down to the embeddings, at each depth first what no pattern matches, then the patterns as
    /// written; none without `layer_decay` and `rate_for`.
    pub fn groups(&self, variables: &[NamedParameter]) -> Vec<Group> {
        if self.layer_decay.is_none() && self.rates.is_empty() {
            return Vec::new();
        }
        let layers = layers(variables);
        let deepest = self.layer_decay.map_or(0, |_| layers + 1);
        let rates = || std::iter::once(None).chain((0..self.rates.len()).map(Some));
        let group = |(at, rate): (usize, Option<usize>)| {
            let of_it = |known: &&NamedParameter| {
                self.depth(&known.name, layers) == at && self.last_match(&known.name) == rate
            };
            let decays = |known: &&NamedParameter| !self.excludes(known);
            let members = || variables.iter().filter(of_it);
            let variables = members().count();
            let place = match at {
                _ if self.layer_decay.is_none() => None,
                0 => Some("head".to_owned()),
                at if at > layers => Some("embeddings".to_owned()),
                at => Some(format!("encoder layer {}", layers - at)),
            };
            let pattern = rate.map(|rate| format!("`{}`", self.rates[rate].0));
            let name = match (place, pattern) {
                (Some(place), Some(pattern)) => format!("{place}, {pattern}"),
                (Some(name), None) | (None, Some(name)) => name,
                (None, None) => "other variables".to_owned(),
            };
            let decayed = match self.weight_decay() == 0.0 {
                true => 0,
                false => members().filter(decays).count(),
            };
            (variables == 0).not().then(|| Group {
                name,
                factor: self.factor(at, rate),
                variables,
                decayed,
            })
        };
        let places = (0..=deepest).flat_map(|at| rates().map(move |rate| (at, rate)));
        places.filter_map(group).collect()
    }

    /// SC0103 for each pattern of `rate_for` that matches no variable, with names that look like it.
    pub fn rates_for_nothing(
        &self,
        variables: &[NamedParameter],
        place: &Place,
    ) -> Vec<Diagnostic> {
        let is_used = |pattern: &str| variables.iter().any(|it| matches(pattern, &it.name));
        let unused = (self.rates.iter()).filter(|(pattern, _)| !is_used(pattern));
        let found = unused.map(|(pattern, _)| {
            let rule = InvalidArgumentValue {
                call: format!("{}::new", self.name),
                argument: "rate_for".to_owned(),
                given: format!("{pattern:?}"),
                expects: format!(
                    "a pattern that matches the name of a variable, such as {}",
                    near(pattern, variables)
                ),
                place: place.clone(),
                replacement: None,
                arguments: Vec::new(),
            };
            rule.diagnostic()
        });
        found.collect()
    }

    /// SC0103 for `layer_decay` of a model without encoder layers.
    pub fn layers_missing(&self, variables: &[NamedParameter]) -> Option<Diagnostic> {
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

/// Patterns of existing names that look like a pattern, or some of the names.
fn near(pattern: &str, variables: &[NamedParameter]) -> String {
    /// As many are listed.
    const MOST: usize = 3;
    let mut known: Vec<String> = Vec::new();
    for variable in variables {
        let name = &variable.name;
        known.push(name.clone());
        for (at, _) in name.match_indices('.') {
            known.push(format!("{}.*", &name[..at]));
            known.push(format!("*{}", &name[at..]));
        }
    }
    known.sort_unstable();
    known.dedup();
    let mut listed = similar(pattern, known.iter().map(String::as_str));
    if listed.is_empty() {
        listed = variables.iter().map(|it| it.name.clone()).collect();
    }
    let listed = listed.iter().take(MOST).map(|name| format!("`{name}`"));
    listed.collect::<Vec<_>>().join(", ")
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
            "bert.embeddings_project.weight",
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
        let expected = [0.125, 0.125, 0.25, 0.5, 0.5].map(Some);
        let expected = expected.into_iter().chain([None, None]);
        assert!(factors.eq(expected), "{optimizer}");
        let groups = optimizer.groups(&variables);
        let groups = groups
            .iter()
            .map(|it| (it.name.as_str(), it.factor, it.variables, it.decayed));
        let expected = [
            ("head", 1.0, 2, 1),
            ("encoder layer 1", 0.5, 2, 1),
            ("encoder layer 0", 0.25, 1, 1),
            ("embeddings", 0.125, 2, 2),
        ];
        assert_eq!(groups.collect::<Vec<_>>(), expected);
        assert!(optimizer.layers_missing(&variables).is_none());
        let plain = AdamW::new(1e-3).into_optimizer().expect("valid");
        assert!(plain.layer_factors(&variables).is_empty());
        assert!(plain.groups(&variables).is_empty());
    }

    #[test]
    fn the_last_pattern_that_matches_holds() {
        let variables = variables(&[
            "bert.embeddings.word_embeddings.weight",
            "bert.encoder.layer.0.output.dense.weight",
            "bert.encoder.layer.0.output.dense.bias",
            "classifier.weight",
            "classifier.bias",
        ]);
        let check = |optimizer: AdamW, factors: [f64; 5], groups: &[(&str, f64, usize, usize)]| {
            let optimizer = optimizer.into_optimizer().expect("valid");
            let found = optimizer.layer_factors(&variables);
            let found = variables.iter().map(|it| found.get(&it.id).copied());
            let found: Vec<f64> = found.map(|it| it.unwrap_or(1.0)).collect();
            assert_eq!(found, factors, "{optimizer}");
            let found = optimizer.groups(&variables);
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.name.as_str(), it.factor, it.variables, it.decayed))
                .collect();
            assert_eq!(found, groups, "{optimizer}");
            let place = Place::argument("compile", "optimizer");
            assert!(optimizer.rates_for_nothing(&variables, &place).is_empty());
        };
        let plain = || AdamW::new(1e-3);
        check(plain(), [1.0; 5], &[]);
        check(
            plain().rate_for("bert.*", 0.5).rate_for("*.bias", 2.0),
            [0.5, 0.5, 2.0, 1.0, 2.0],
            &[
                ("other variables", 1.0, 1, 1),
                ("`bert.*`", 0.5, 2, 2),
                ("`*.bias`", 2.0, 2, 0),
            ],
        );
        check(
            plain().rate_for("*.bias", 2.0).rate_for("bert", 0.5),
            [0.5, 0.5, 0.5, 1.0, 2.0],
            &[
                ("other variables", 1.0, 1, 1),
                ("`*.bias`", 2.0, 1, 0),
                ("`bert`", 0.5, 3, 2),
            ],
        );
        check(
            plain().layer_decay(0.5).rate_for("*.bias", 0.0),
            [0.25, 0.5, 0.0, 1.0, 0.0],
            &[
                ("head", 1.0, 1, 1),
                ("head, `*.bias`", 0.0, 1, 0),
                ("encoder layer 0", 0.5, 1, 1),
                ("encoder layer 0, `*.bias`", 0.0, 1, 0),
                ("embeddings", 0.25, 1, 1),
            ],
        );
    }

    #[test]
    fn patterns_that_match_nothing_and_factors_out_of_range_are_refused() {
        let variables = variables(&["bert.embeddings.weight", "classifier.bias"]);
        let optimizer = SGD::new(0.1)
            .rate_for("bert.embedings.*", 0.1)
            .rate_for("classifier", 2.0)
            .rate_for("decoder.*", 0.1);
        let optimizer = optimizer.into_optimizer().expect("valid");
        let found = optimizer.rates_for_nothing(&variables, &Place::call("fit"));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(found.iter().all(|it| it.code.as_str() == "SC0103"));
        assert!(texts[0].contains("`bert.embeddings.*`"), "{}", texts[0]);
        assert!(texts[1].contains("decoder.*"), "{}", texts[1]);
        assert!(texts[1].contains("`classifier.bias`"), "{}", texts[1]);
        for factor in [-0.1, f64::NAN, f64::INFINITY] {
            let refused = SGD::new(0.1).rate_for("*", factor).into_optimizer();
            assert_eq!(refused.expect_err("refused").code.as_str(), "SC0103");
        }
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
