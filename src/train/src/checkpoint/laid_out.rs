//! How the state of a run is laid out: which rows of each variable each stored copy has, and how a step is computed. It is
//! written beside the tensors of a checkpoint, so that a run with another strategy can lay them out in its own way
//! ([`Relaid`](super::relaid::Relaid)).

use std::collections::{BTreeMap, HashMap};

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use stratoscope_strategy::variable::VariableRecord;
use stratoscope_strategy::{Checksum, CrossDeviceOps, StoredPart};

use crate::state::ModelState;
use stratoscope_render::text;
use stratoscope_step::StepSettings;
use stratoscope_step::exchange::ExchangeMode;

/// The name in the metadata of the file.
const NAME: &str = "laid_out";

/// How the state of a run is laid out and computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaidOut {
    /// Names, shapes and types of the variables, and which are trained: the same whatever the strategy.
    sum: Checksum,
    /// The strategy and its devices in words.
    pub devices: String,
    /// Replicas that divide a batch.
    pub replicas: usize,
    /// Into how many parts a pipeline divides a batch.
    pub micro_batches: Option<usize>,
    /// How many devices compute a layer together.
    slices: usize,
    /// The backends of the replicas, each once.
    backends: Vec<String>,
    /// How the gradients of replicas are added.
    sums: Option<String>,
    exchange: Exchange,
    pub(super) variables: BTreeMap<String, Variable>,
}

/// How replicas exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Exchange {
    /// All copies make the same update, with the mean of all gradients.
    Alike,
    /// Local SGD.
    Alone,
    /// Asynchronous workers.
    Push,
}

/// Where a variable is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub shape: Vec<usize>,
    pub parts: Vec<StoredPart>,
}

impl Variable {
    /// The shape of a part. A single number is a row.
    pub(super) fn shape_of(&self, part: &StoredPart) -> Vec<usize> {
        let mut shape = self.rows();
        shape[part.axis] = part.rows.len();
        shape
    }

    /// The shape of the whole variable, with at least one axis.
    pub(super) fn rows(&self) -> Vec<usize> {
        match self.shape.is_empty() {
            true => vec![1],
            false => self.shape.clone(),
        }
    }

    /// Whether its parts are along one axis and together all of it, each number once: a file may say anything.
    fn is_complete(&self) -> bool {
        let shape = self.rows();
        let Some(axis) = self.parts.first().map(|part| part.axis) else {
            return false;
        };
        let Some(&size) = shape.get(axis) else {
            return false;
        };
        let mut parts: Vec<&StoredPart> = self.parts.iter().collect();
        parts.sort_by_key(|part| part.rows.start);
        let mut end = 0;
        let follows = parts.iter().all(|part| {
            let follows = part.axis == axis && part.rows.start == end && part.rows.end >= end;
            end = part.rows.end;
            follows
        });
        let numbers = shape
            .iter()
            .try_fold(1_usize, |all, &size| all.checked_mul(size));
        follows && end == size && numbers.is_some()
    }
}

impl LaidOut {
    /// Of a model, in a run with these settings.
    pub(crate) fn of(state: &ModelState, settings: &StepSettings) -> Self {
        let replicas = &state.step.replicas;
        let records = replicas.records();
        let lines = records.iter().map(|record| {
            format!(
                "{} {:?} {} {}\n",
                record.name, record.shape, record.dtype, record.trainable
            )
        });
        let parts = records.iter().zip(replicas.stored_parts());
        let variable = |(record, parts): (&VariableRecord, Vec<StoredPart>)| {
            let shape = record.shape.clone();
            (record.name.clone(), Variable { shape, parts })
        };
        let backends = replicas.computing().iter();
        let mut backends: Vec<String> = backends
            .map(|device| device.backend.title().to_owned())
            .collect();
        backends.sort();
        backends.dedup();
        let strategy = replicas.strategy();
        Self {
            sum: Checksum::of(lines.collect::<String>().as_bytes()),
            devices: state.devices_in_words(),
            replicas: replicas.len(),
            micro_batches: strategy
                .and_then(|it| it.pipeline())
                .map(|it| it.micro_batches),
            slices: match replicas.sliced_over() {
                [] => 1,
                all => all.len() / replicas.len().max(1),
            },
            backends,
            sums: strategy.filter(|_| replicas.len() > 1).map(|it| {
                let order = match it.cross_device_ops() {
                    // One replica after the other, wherever they are added.
                    CrossDeviceOps::Centralized | CrossDeviceOps::Chain => "in their order",
                    ops => ops.title(),
                };
                format!("{order}, in {} bits", 8 * it.gradient_bytes())
            }),
            exchange: match settings.exchange {
                ExchangeMode::AllReduce => Exchange::Alike,
                ExchangeMode::LocalSgd { .. } => Exchange::Alone,
                ExchangeMode::Push => Exchange::Push,
            },
            variables: parts.map(variable).collect(),
        }
    }

    /// As metadata of a file of tensors.
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        // Strings and numbers can always be written.
        let text = serde_json::to_string(self).unwrap_or_default();
        HashMap::from([(NAME.to_owned(), text)])
    }

    /// What a file says of itself. `None`: nothing, as those that earlier versions wrote, or nothing that can be true.
    pub(super) fn of_file(bytes: &[u8]) -> Option<Self> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
        let text = metadata.metadata().as_ref()?.get(NAME)?;
        let laid_out: Self = serde_json::from_str(text).ok()?;
        let is_complete = laid_out.variables.values().all(Variable::is_complete);
        is_complete.then_some(laid_out)
    }

    /// Whether the two have the same variables.
    pub(super) fn has_variables_of(&self, other: &Self) -> bool {
        self.sum == other.sum
    }

    /// Why a run cannot go on in another layout: its state is not that of one model.
    pub(super) fn why_not(&self, now: &Self) -> Option<String> {
        let (then, now) = (self.exchange, now.exchange);
        match (then, now) {
            (Exchange::Alike, Exchange::Alike) => None,
            (Exchange::Push, _) | (_, Exchange::Push) => Some(
                "the workers of an asynchronous strategy compute with weights of different steps, so which worker \
                 comes next is part of the run"
                    .to_owned(),
            ),
            _ => Some(
                "with `sync_every` each replica has its own weights and moments, and there is no way to divide them \
                 among other replicas"
                    .to_owned(),
            ),
        }
    }

    /// What is computed in another way now, beside the parts of a batch: name, then, now. Empty where a step has the same bits.
    pub(crate) fn differences(&self, now: &Self) -> Vec<(String, String, String)> {
        let mut found = Vec::new();
        let mut compare = |name: &str, then: String, now: String| {
            if then != now {
                found.push((name.to_owned(), then, now));
            }
        };
        let replicas = |it: &Self| text::count(it.replicas, "replica");
        let slices = |it: &Self| match it.slices {
            1 => "whole layers".to_owned(),
            count => format!("layers in {count} slices"),
        };
        compare("a batch is divided by", replicas(self), replicas(now));
        compare("products", slices(self), slices(now));
        if self.replicas == now.replicas {
            let sums = |it: &Self| it.sums.clone().unwrap_or_default();
            compare("gradients are added", sums(self), sums(now));
        }
        let backends = |it: &Self| it.backends.join(", ");
        compare("computed by", backends(self), backends(now));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(shape: &[usize], axis: usize, parts: &[(usize, usize)]) -> Variable {
        let part = |(module, &(start, end)): (usize, &(usize, usize))| StoredPart {
            module,
            rows: start..end,
            axis,
        };
        Variable {
            shape: shape.to_vec(),
            parts: parts.iter().enumerate().map(part).collect(),
        }
    }

    #[test]
    fn parts_that_are_not_the_whole_are_not_believed() {
        assert!(variable(&[5, 2], 0, &[(0, 3), (3, 5)]).is_complete());
        assert!(variable(&[5, 2], 0, &[(3, 5), (0, 3)]).is_complete());
        assert!(variable(&[5, 2], 1, &[(0, 1), (1, 2)]).is_complete());
        assert!(variable(&[], 0, &[(0, 1)]).is_complete());
        for (shape, axis, parts) in [
            (&[5, 2][..], 0, &[(0, 3), (2, 5)][..]),
            (&[5, 2], 0, &[(0, 3)]),
            (&[5, 2], 0, &[(0, 3), (3, 6)]),
            (&[5, 2], 2, &[(0, 5)]),
            (&[5, 2], 0, &[]),
            (&[usize::MAX, 2], 0, &[(0, usize::MAX)]),
        ] {
            assert!(
                !variable(shape, axis, parts).is_complete(),
                "{shape:?} {parts:?}"
            );
        }
    }
}
