//! Which layers each stage of a pipeline has.
//!
//! A stage has consecutive encoder layers; the first one has the embeddings too, and the last one the head. A step lasts as long
//! as its slowest stage, so the layers are divided such that the largest cost of a stage is as small as possible. The cost of
//! a layer is the number of multiplications for a token in its forward pass: one for each weight of its matrices. Of an
//! embedding table a token reads one row. A head counts as if it read every token, which it does in tagging.

use std::collections::HashMap;
use std::ops::Range;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor};
use stratoscope_diagnostics::rules::{NetworkNotInStages, StagesDoNotFit};
use stratoscope_diagnostics::{Result, Rule};

use super::PipelineSettings;
use crate::device::LogicalDevice;
use crate::strategy::Strategy;
use crate::variable::VariableRecord;

/// How many times the cost of the stages' mean a stage may have before it is called heavy.
pub const HEAVY: f64 = 1.5;

/// The stages of a module in a pipeline: the same in each replica.
#[derive(Clone, Debug)]
pub struct PipelineStages {
    /// The devices, in the order of the stages; of several replicas one after the other.
    pub devices: Vec<LogicalDevice>,
    /// The encoder layers of each stage.
    pub layers: Vec<Range<usize>>,
    /// The cost of each stage: multiplications for a token in a forward pass.
    pub costs: Vec<f64>,
    of: HashMap<ParamId, usize>,
}

impl PipelineStages {
    /// The stages of a module; `None` for a strategy that is no pipeline.
    ///
    /// # Errors
    /// SC0620 for stages that do not fit the layers, SC0624 for a module without encoder layers, or with a variable that two
    /// stages would need.
    pub(crate) fn of<M: Module>(strategy: Option<&Strategy>, module: &M) -> Result<Option<Self>> {
        let Some((strategy, settings)) = strategy.and_then(|it| Some((it, it.pipeline()?))) else {
            return Ok(None);
        };
        let mut found = Found::default();
        module.visit(&mut found);
        if found.costs.layers.is_empty() {
            return Err(NetworkNotInStages::WithoutLayers.error());
        }
        let counts = counts(&found.costs, &settings)?;
        let layers = ranges(&counts);
        let last = layers.len() - 1;
        let stage = |place: Place| match place {
            Place::Before => 0,
            Place::After => last,
            Place::Layer(layer) => layers
                .iter()
                .position(|own| own.contains(&layer))
                .unwrap_or(last),
        };
        let mut of: HashMap<ParamId, usize> = HashMap::new();
        for (param, name, place) in found.variables {
            let stage = stage(place);
            let known = *of.entry(param).or_insert(stage);
            if known != stage {
                let rule = NetworkNotInStages::Tied {
                    variable: name,
                    stages: (known, stage),
                };
                return Err(rule.error());
            }
        }
        let costs = layers.iter().enumerate();
        let costs = costs.map(|(stage, own)| found.costs.of(own.clone(), stage, last));
        Ok(Some(Self {
            costs: costs.collect(),
            devices: strategy.stages().to_vec(),
            layers,
            of,
        }))
    }

    /// How many a replica has.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// How many replicas have all stages.
    pub fn replicas(&self) -> usize {
        self.devices.len() / self.len().max(1)
    }

    /// The devices of the stages of a replica, in their order.
    ///
    /// # Panics
    /// If there are fewer replicas.
    pub fn of_replica(&self, replica: usize) -> &[LogicalDevice] {
        let first = replica * self.len();
        &self.devices[first..first + self.len()]
    }

    /// Always false: a pipeline has at least two stages.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The stage of a variable.
    pub fn stage_of(&self, variable: ParamId) -> usize {
        self.of.get(&variable).copied().unwrap_or(0)
    }

    /// What a stage has, in words: `the embeddings and layers 0 to 2`.
    pub fn words(&self, stage: usize) -> String {
        let own = &self.layers[stage];
        let layers = match own.len() {
            1 => format!("layer {}", own.start),
            _ => format!("layers {} to {}", own.start, own.end - 1),
        };
        match stage {
            0 => format!("the embeddings and {layers}"),
            last if last + 1 == self.len() => format!("{layers} and the head"),
            _ => layers,
        }
    }

    /// The share of the whole cost that each stage has.
    pub fn shares(&self) -> Vec<f64> {
        let all: f64 = self.costs.iter().sum();
        self.costs.iter().map(|cost| cost / all.max(1.0)).collect()
    }

    /// The stage with the largest cost, where that is [`HEAVY`] times the mean or more, and its share.
    pub fn heavy(&self) -> Option<(usize, f64)> {
        let shares = self.shares().into_iter().enumerate();
        let (stage, share) = shares.max_by(|left, right| left.1.total_cmp(&right.1))?;
        (share * self.len() as f64 >= HEAVY).then_some((stage, share))
    }

    /// Writes into the records of the module's variables on which stage each is.
    pub(crate) fn assign(&self, label: &str, records: &mut [VariableRecord]) {
        let replicas = self.replicas();
        let of_each = match replicas {
            1 => String::new(),
            replicas => format!(" of each of its {replicas} replicas"),
        };
        for record in records {
            let stage = self.stage_of(record.param);
            record.homes = (0..replicas).map(|it| it * self.len() + stage).collect();
            let has = self.words(stage);
            record.why =
                format!("made in the scope of `{label}`: stage {stage}{of_each} has {has}");
        }
    }
}

/// How many layers each stage has.
fn counts(costs: &Costs, settings: &PipelineSettings) -> Result<Vec<usize>> {
    let layers = costs.layers.len();
    let does_not_fit = match &settings.layers {
        None => settings.stages > layers,
        Some(given) => given.iter().sum::<usize>() != layers,
    };
    if does_not_fit {
        let rule = StagesDoNotFit {
            stages: settings.stages,
            layers,
            given: settings.layers.clone(),
        };
        return Err(rule.error());
    }
    let given = settings.layers.clone();
    Ok(given.unwrap_or_else(|| balanced(costs, settings.stages)))
}

fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let mut start = 0;
    let range = |&count: &usize| {
        let own = start..start + count;
        start = own.end;
        own
    };
    counts.iter().map(range).collect()
}

/// What the parts of a network cost.
#[derive(Debug, Default)]
struct Costs {
    /// The embeddings.
    before: f64,
    layers: Vec<f64>,
    /// The head.
    after: f64,
}

impl Costs {
    /// Of a stage with these layers.
    fn of(&self, layers: Range<usize>, stage: usize, last: usize) -> f64 {
        let own: f64 = self.layers[layers].iter().sum();
        let before = if stage == 0 { self.before } else { 0.0 };
        let after = if stage == last { self.after } else { 0.0 };
        own + before + after
    }
}

/// The numbers of layers with the smallest cost of the most expensive stage; at least one each. Among equal ones later stages
/// have more, as they keep fewer activations.
fn balanced(costs: &Costs, stages: usize) -> Vec<usize> {
    let layers = costs.layers.len();
    // For the first stages: by the number of layers that they have, the cost of the most expensive, and where its last one begins.
    let mut rows: Vec<Vec<(f64, usize)>> = Vec::with_capacity(stages);
    for stage in 0..stages {
        let best = |end: usize| {
            let begin = |start: usize| {
                let own = costs.of(start..end, stage, stages - 1);
                match stage {
                    0 => own,
                    _ => own.max(rows[stage - 1][start].0),
                }
            };
            let starts = match stage {
                0 => 0..usize::from(end > 0),
                _ => stage..end,
            };
            let options = starts.map(|start| (begin(start), start));
            let none = (f64::INFINITY, 0);
            options.fold(none, |best, it| if it.0 < best.0 { it } else { best })
        };
        let row = (0..=layers).map(best).collect();
        rows.push(row);
    }
    let mut counts = vec![0; stages];
    let mut end = layers;
    for stage in (0..stages).rev() {
        let start = rows[stage][end].1;
        counts[stage] = end - start;
        end = start;
    }
    counts
}

/// Where in a network a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Layer(usize),
    After,
}

/// The variables of a module in the order of its fields, and what its parts cost. The layers are those of the first encoder.
#[derive(Default)]
struct Found {
    path: Vec<String>,
    /// The number of fields from the network down to the layers of its encoder.
    layers_at: Option<usize>,
    is_past: bool,
    costs: Costs,
    variables: Vec<(ParamId, String, Place)>,
}

impl Found {
    fn place(&self) -> Place {
        let layer = self.layers_at.and_then(|at| self.path.get(at));
        match layer.and_then(|name| name.parse().ok()) {
            Some(layer) => Place::Layer(layer),
            None if self.is_past => Place::After,
            None => Place::Before,
        }
    }

    fn add(&mut self, param: ParamId, shape: &[usize]) {
        let place = self.place();
        self.variables.push((param, self.path.join("."), place));
        let is_table = self.path.iter().any(|name| name == "embeddings") && shape.len() == 2;
        let read = if is_table { &shape[1..] } else { shape };
        let cost = read.iter().product::<usize>() as f64;
        match place {
            Place::Before => self.costs.before += cost,
            Place::After => self.costs.after += cost,
            Place::Layer(layer) => {
                let layers = &mut self.costs.layers;
                layers.resize(layers.len().max(layer + 1), 0.0);
                layers[layer] += cost;
            }
        }
    }
}

impl ModuleVisitor for Found {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push(name.to_owned());
        let begins = name == "layer" && container_type.ends_with("Encoder");
        if begins && self.layers_at.is_none() && !self.is_past {
            self.layers_at = Some(self.path.len());
        }
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        if self.layers_at == Some(self.path.len()) {
            self.layers_at = None;
            self.is_past = true;
        }
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(param.id, &param.lazy_shape().to_vec());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.variables
            .push((param.id, self.path.join("."), self.place()));
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.variables
            .push((param.id, self.path.join("."), self.place()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn costs(before: f64, layers: &[f64], after: f64) -> Costs {
        Costs {
            before,
            layers: layers.to_vec(),
            after,
        }
    }

    #[test]
    fn equal_layers_are_divided_evenly() {
        let twelve = costs(0.01, &[1.0; 12], 0.08);
        assert_eq!(balanced(&twelve, 2), [6, 6]);
        assert_eq!(balanced(&twelve, 3), [4, 4, 4]);
        assert_eq!(balanced(&costs(0.0, &[1.0; 7], 0.0), 3), [2, 2, 3]);
        assert_eq!(balanced(&costs(0.0, &[1.0; 3], 0.0), 3), [1, 1, 1]);
        // The head of a tagger with many tags.
        assert_eq!(balanced(&costs(0.0, &[1.0; 6], 2.0), 2), [4, 2]);
        assert_eq!(balanced(&costs(2.0, &[1.0; 6], 0.0), 2), [2, 4]);
    }

    #[test]
    fn layers_that_differ_are_divided_by_their_cost() {
        assert_eq!(balanced(&costs(0.0, &[4.0, 1.0, 1.0, 1.0], 0.0), 2), [1, 3]);
        assert_eq!(ranges(&[1, 3]), [0..1, 1..4]);
    }

    proptest! {
        /// Against all divisions.
        #[test]
        fn no_other_division_is_better(
            layers in prop::collection::vec(1_u32..9, 2..8), stages in 2..5_usize, before in 0_u32..9, after in 0_u32..9
        ) {
            prop_assume!(stages <= layers.len());
            let layers: Vec<f64> = layers.into_iter().map(f64::from).collect();
            let costs = costs(f64::from(before), &layers, f64::from(after));
            let worst = |counts: &[usize]| {
                let own = ranges(counts).into_iter().enumerate();
                own.map(|(stage, own)| costs.of(own, stage, stages - 1)).fold(0.0, f64::max)
            };
            fn divisions(layers: usize, stages: usize) -> Vec<Vec<usize>> {
                if stages == 1 {
                    return vec![vec![layers]];
                }
                let first = 1..=layers - (stages - 1);
                first.flat_map(|own| divisions(layers - own, stages - 1).into_iter().map(move |mut rest| {
                    rest.insert(0, own);
                    rest
                })).collect()
            }
            let found = balanced(&costs, stages);
            prop_assert_eq!(found.iter().sum::<usize>(), layers.len());
            prop_assert!(found.iter().all(|&own| own > 0));
            let best = divisions(layers.len(), stages).iter().map(|it| worst(it)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(worst(&found), best);
        }
    }
}
