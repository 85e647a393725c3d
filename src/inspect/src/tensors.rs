//! Statistics of gradients, weights and updates: `run.gradients()`, `run.weights()`, `run.updates()`.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;
use stratoscope_strategy::VariableRecord;

use super::Inspection;
use stratoscope_arguments::context::interrupt;

use stratoscope_report::inspection::{Statistics, TensorRow, TensorStatistics};
use stratoscope_step::exchange::{ExchangeMode, Exchanged};
use stratoscope_step::forward::interrupted;

/// Statistics by variable.
pub(super) type ById = HashMap<ParamId, Statistics>;

/// The elements of a tensor, on the host.
pub(super) fn statistics(elements: Tensor<1>) -> Statistics {
    let data = elements.into_data().convert::<f32>();
    match data.as_slice::<f32>() {
        Ok(elements) => Statistics::of(elements),
        Err(_) => Statistics::of(&data.iter::<f32>().collect::<Vec<_>>()),
    }
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape([count])
}

/// Calls a function with the values of each variable, without autodiff and without a copy.
fn values<M: Module>(module: &M, each: impl FnMut(ParamId, Tensor<1>)) {
    struct Values<F>(F);
    impl<F: FnMut(ParamId, Tensor<1>)> ModuleVisitor for Values<F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let value = match value.device().is_autodiff() {
                true => value.inner(),
                false => value,
            };
            (self.0)(param.id, flat(value));
        }
    }
    module.visit(&mut Values(each));
}

fn of_module<M: Module>(module: &M) -> ById {
    let mut found = ById::new();
    values(module, |id, elements| {
        found.insert(id, statistics(elements));
    });
    found
}

fn of_gradients<M: Module>(module: &M, gradients: &GradientsParams) -> ById {
    struct Each<'a>(&'a GradientsParams, ById);
    impl ModuleVisitor for Each<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                self.1.insert(param.id, statistics(flat(gradient)));
            }
        }
    }
    let mut each = Each(gradients, ById::new());
    module.visit(&mut each);
    each.1
}

/// The differences of two modules of the same variables, where any element differs in its bits or is not finite.
pub(super) fn of_differences<M: Module>(before: &M, after: &M) -> ById {
    let mut old: HashMap<ParamId, Tensor<1>> = HashMap::new();
    values(before, |id, elements| {
        old.insert(id, elements);
    });
    let mut found = ById::new();
    values(after, |id, elements| {
        if let Some(before) = old.remove(&id) {
            found.insert(id, statistics(elements - before));
        }
    });
    found
}

/// Adds up parts of the same variables.
pub(super) fn merged(parts: Vec<ById>) -> ById {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        for (id, statistics) in part {
            sum.entry(id)
                .or_insert_with(Statistics::empty)
                .merge(&statistics);
        }
    }
    sum
}

/// A row for each variable that has statistics. `by_replica` may be empty.
fn rows(records: &[VariableRecord], mut all: ById, by_replica: &[ById]) -> Vec<TensorRow> {
    let row = |record: &VariableRecord| {
        let own = |of: &ById| {
            let own = of.get(&record.param).cloned();
            own.unwrap_or_else(Statistics::empty)
        };
        Some(TensorRow {
            name: record.name.clone(),
            shape: record.shape.clone(),
            statistics: all.remove(&record.param)?,
            by_replica: by_replica.iter().map(own).collect(),
            compared_norm: None,
        })
    };
    records.iter().filter_map(row).collect()
}

impl Inspection<'_> {
    pub(super) fn computed(&self, call: &str) -> Result<Vec<GradientsParams>> {
        let stop = interrupt::at_once();
        let shares = self.shares();
        let gradients = (self.step).coming_gradients(
            self.settings,
            self.first_batch,
            self.batches,
            &shares,
            &stop,
        )?;
        gradients.ok_or_else(|| interrupted(call, 0, self.examples()))
    }

    /// The gradients that the coming step will apply, before clipping.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn gradients(&self) -> Result<TensorStatistics> {
        let title = self.title("gradients");
        if self.batches.is_empty() {
            return Ok(TensorStatistics::none(title));
        }
        let (replicas, shares) = (&self.step.replicas, self.shares());
        let own = self.computed("gradients")?;
        let by_replica: Vec<ById> = match own.len() {
            1 => Vec::new(),
            _ => (own
                .iter()
                .map(|own| of_gradients(replicas.structure(), own)))
            .collect(),
        };
        let reduced =
            (self.step).coming_exchange(own, ExchangeMode::AllReduce, self.settings, &shares)?;
        let norm = reduced.norm();
        let mean = reduced.gradients.first();
        let mean = mean
            .map(|mean| of_gradients(replicas.structure(), mean))
            .unwrap_or_default();
        let mut notes = self.gradient_notes(&mean, norm);
        if !by_replica.is_empty() {
            notes.push(match self.settings.exchange {
                ExchangeMode::AllReduce => "the statistics are of the mean over the replicas, which all of them \
                                            apply; beside it the norm of each replica's own gradient"
                    .to_owned(),
                _ => "replicas step alone: each applies its own gradient, whose norm stands beside the mean".to_owned(),
            });
        }
        let rows = rows(replicas.records(), mean, &by_replica);
        Ok(TensorStatistics::new(
            title,
            rows,
            self.replica_names(),
            notes,
        ))
    }

    /// Clipping, and variables without a gradient.
    fn gradient_notes(&self, found: &ById, norm: f64) -> Vec<String> {
        let clipping = self.settings.compiled.optimizer.clipping;
        let factor = clipping.global_factor(norm);
        let mut notes = Vec::new();
        if factor < 1.0 {
            notes.push(format!(
                "before clipping: the global norm {norm:.4e} is multiplied by {factor:.4}"
            ));
        }
        let records = self.step.replicas.records();
        let without = |trainable: bool| -> Vec<&str> {
            let without = records.iter().filter(|record| {
                record.trainable == trainable && !found.contains_key(&record.param)
            });
            without.map(|record| record.name.as_str()).collect()
        };
        let (unreached, frozen) = (without(true), without(false));
        if !unreached.is_empty() {
            notes.push(format!(
                "no gradient reaches {}: the loss does not depend on it",
                text::names(&unreached, 4)
            ));
        }
        if !frozen.is_empty() {
            notes.push(format!(
                "{} without a gradient: frozen",
                text::count(frozen.len(), "variable")
            ));
        }
        notes
    }

    /// The weights before the coming step.
    pub fn weights(&self) -> TensorStatistics {
        let replicas = &self.step.replicas;
        let copies = replicas.unsharded();
        let mut each: Vec<ById> = copies.iter().map(of_module).collect();
        let is_same = |copy: &ById| {
            let mut all = copy.iter();
            all.all(|(id, own)| each[0].get(id).is_some_and(|first| first.is_same(own)))
        };
        let differ = !each.iter().all(is_same);
        let (by_replica, names) = match differ {
            true => (each.clone(), self.replica_names()),
            false => (Vec::new(), Vec::new()),
        };
        let mut notes = Vec::new();
        if differ {
            notes.push(
                "replicas have stepped alone since their parameters were averaged: the statistics are of replica 0"
                    .to_owned(),
            );
        }
        let first = if each.is_empty() {
            ById::new()
        } else {
            each.swap_remove(0)
        };
        let rows = rows(replicas.records(), first, &by_replica);
        let title = format!("weights before step {}", self.number());
        TensorStatistics::new(title, rows, names, notes)
    }

    /// What the optimizer keeps beside each weight, before the coming step: `Adam m of classifier.weight`.
    pub fn moments(&self) -> TensorStatistics {
        let title = format!("what the optimizer keeps, before step {}", self.number());
        let replicas = &self.step.replicas;
        // The replicas have the same, or parts of it.
        let copy = self.step.moments.iter().take(replicas.modules_of_a_copy());
        let copy: Vec<_> = copy.collect();
        let mut rows = Vec::new();
        for slot in self.settings.compiled.optimizer.slots() {
            for record in replicas.records() {
                let kept = copy.iter().filter_map(|of| of.tensor(record.param, slot));
                let mut statistics = Statistics::empty();
                for tensor in kept {
                    statistics.merge(&self::statistics(tensor.clone()));
                }
                if statistics.elements > 0 {
                    rows.push(TensorRow {
                        name: format!("{} of {}", slot.name(), record.name),
                        shape: record.shape.clone(),
                        statistics,
                        by_replica: Vec::new(),
                        compared_norm: None,
                    });
                }
            }
        }
        let notes = match (rows.is_empty(), self.step.steps) {
            (false, _) => Vec::new(),
            (true, 0) => vec!["it keeps nothing before its first step".to_owned()],
            (true, _) => vec!["this optimizer keeps nothing".to_owned()],
        };
        TensorStatistics::new(title, rows, Vec::new(), notes)
    }

    /// What the coming step would add to the weights: the optimizer's update of copies of them.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn updates(&self) -> Result<TensorStatistics> {
        let title = self.title("updates");
        if self.batches.is_empty() {
            return Ok(TensorStatistics::none(title));
        }
        let (step, replicas) = (self.step, &self.step.replicas);
        let (mode, shares) = (self.settings.exchange, self.shares());
        let own = self.computed("updates")?;
        let exchanged = step.coming_exchange(own, mode, self.settings, &shares)?;
        let mut notes = self.update_notes(&exchanged);
        let after = step.coming_modules(exchanged, mode, self.settings);
        let before = replicas.modules();
        let each = before
            .iter()
            .zip(&after)
            .map(|(before, after)| of_differences(before, after));
        let mut each: Vec<ById> = each.collect();
        let weights = of_module(replicas.first());
        let (all, by_replica, names) = match mode {
            _ if replicas.is_sharded() => {
                each.truncate(replicas.modules_of_a_copy());
                (merged(each), Vec::new(), Vec::new())
            }
            ExchangeMode::LocalSgd { sync_every } => {
                notes.push(match step.local.steps + 1 == sync_every {
                    true => "the statistics are of replica 0; after this step the parameters are averaged, which is \
                             not in them"
                        .to_owned(),
                    false => "the statistics are of replica 0: replicas step alone".to_owned(),
                });
                (each[0].clone(), each, self.replica_names())
            }
            _ => (each.swap_remove(0), Vec::new(), Vec::new()),
        };
        let mut rows = rows(replicas.records(), all, &by_replica);
        // A variable that is not trained has no update.
        rows.retain(|row| {
            let mut records = replicas.records().iter();
            records.any(|record| record.name == row.name && record.trainable)
        });
        for row in &mut rows {
            let mut records = replicas.records().iter();
            let id = records
                .find(|record| record.name == row.name)
                .map(|record| record.param);
            row.compared_norm = id
                .and_then(|id| weights.get(&id))
                .map(|weights| weights.norm);
        }
        Ok(TensorStatistics::new(title, rows, names, notes))
    }

    fn update_notes(&self, exchanged: &Exchanged) -> Vec<String> {
        let optimizer = &self.settings.compiled.optimizer;
        let rate = self.step.rate(self.settings);
        let mut notes = vec![format!(
            "{} with the rate {}; weight decay is part of the update",
            optimizer.name,
            stratoscope_report::html::rate(rate)
        )];
        let norm = exchanged.norm();
        if !norm.is_finite() {
            notes.push(match self.step.loss_scale.skips() {
                true => "a gradient is not finite under the scale of the loss: the step will be skipped, and the scale \
                         halved"
                    .to_owned(),
                false => "a gradient is not finite: the step will not be made (SC0505)".to_owned(),
            });
        }
        notes
    }
}
