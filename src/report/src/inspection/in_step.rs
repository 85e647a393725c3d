//! [`InStep`]: where a run stands within its coming step, after a layer of a micro-batch forward or backward. It is what
//! `run.next_layer()` shows.

use std::fmt;
use std::sync::Arc;

use super::hindsight::{Direction, Probe};
use super::layers::layer_of;
use super::statistics::Statistics;
use super::tensors::{TensorRow, TensorStatistics};
use crate::stop::Stop;

/// A layer of a micro-batch, forward or backward, and what was seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPass {
    /// `bert.encoder.layer.3`, `classifier`, `loss`.
    pub layer: String,
    /// Forward or backward.
    pub direction: Direction,
    /// Its outputs; backward the gradients by them and by its parameters. In the order of computing, replica by replica.
    pub values: Vec<Probe>,
}

impl fmt::Display for LayerPass {
    /// `backward: classifier`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        write!(f, "{way}: {}", self.layer)
    }
}

/// The passes of a micro-batch in the order of computing: its values, put together by layer.
pub fn passes_of(values: Vec<Probe>) -> Vec<LayerPass> {
    let outputs: Vec<String> = {
        let forward = values
            .iter()
            .filter(|it| it.direction == Direction::Forward);
        forward.map(|it| it.name.clone()).collect()
    };
    let mut passes: Vec<LayerPass> = Vec::new();
    for value in values {
        // What a layer puts out has the name of the layer; a parameter has one name more.
        let layer = match outputs.contains(&value.name) {
            true => layer_of(&format!("{}.output", value.name)).to_owned(),
            false => layer_of(&value.name).to_owned(),
        };
        let known =
            |pass: &&mut LayerPass| pass.layer == layer && pass.direction == value.direction;
        match passes.iter_mut().find(known) {
            Some(pass) => pass.values.push(value),
            None => passes.push(LayerPass {
                layer,
                direction: value.direction,
                values: vec![value],
            }),
        }
    }
    passes
}

/// A place within a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Before its first layer.
    Before,
    /// After the pass with this number of the micro-batch.
    After(usize),
    /// All layers are through: what the update will add to the weights.
    Update(Box<TensorStatistics>),
    /// The step was made, or a condition has stopped it.
    Made(Box<Stop>),
}

/// Where a run stands within its coming step. Nothing of the run has changed until the step is made.
#[derive(Clone, PartialEq)]
pub struct InStep {
    /// The step, counted from 1.
    pub step: u64,
    /// How many steps the run has.
    pub steps: u64,
    /// The micro-batch, counted from 0.
    pub micro_batch: usize,
    /// How many micro-batches the step accumulates.
    pub micro_batches: usize,
    /// The devices of the replicas, where there are several.
    pub replicas: Vec<String>,
    /// The passes of the micro-batch.
    pub passes: Arc<[LayerPass]>,
    /// The place.
    pub place: Place,
}

impl InStep {
    /// The layer that was computed last.
    pub fn pass(&self) -> Option<&LayerPass> {
        match self.place {
            Place::After(at) => self.passes.get(at),
            _ => None,
        }
    }

    /// The layers that are computed of the micro-batch, the latest one last.
    pub fn computed(&self) -> &[LayerPass] {
        match self.place {
            Place::After(at) => self.passes.get(..=at).unwrap_or_default(),
            Place::Update(_) => &self.passes,
            Place::Before | Place::Made(_) => &[],
        }
    }

    /// A value of the layer by its name, or by the end of its name; of the first replica that has it.
    pub fn value(&self, name: &str) -> Option<&Probe> {
        let values = &self.pass()?.values;
        let ends = |value: &&Probe| {
            let rest = value.name.strip_suffix(name);
            rest.is_some_and(|rest| rest.ends_with('.'))
        };
        let exact = values.iter().find(|value| value.name == name);
        exact.or_else(|| values.iter().find(ends))
    }

    /// Statistics of the values of the layer, over all replicas; at the end those of the update.
    pub fn statistics(&self) -> TensorStatistics {
        if let Place::Update(updates) = &self.place {
            return (**updates).clone();
        }
        let mut rows: Vec<TensorRow> = Vec::new();
        for value in self.pass().map_or(&[][..], |pass| &pass.values) {
            let known = rows.iter().position(|row| row.name == value.name);
            let at = known.unwrap_or_else(|| {
                rows.push(TensorRow {
                    name: value.name.clone(),
                    shape: value.shape.clone(),
                    statistics: Statistics::empty(),
                    by_replica: vec![Statistics::empty(); self.replicas.len()],
                    compared_norm: None,
                });
                rows.len() - 1
            });
            rows[at].statistics.merge(&value.statistics);
            if let Some(own) = rows[at].by_replica.get_mut(value.replica) {
                own.merge(&value.statistics);
            }
        }
        TensorStatistics::new(self.headline(), rows, self.replicas.clone(), Vec::new())
    }

    /// `forward: bert.encoder.layer.3 (5 of 19)`
    pub fn place_in_words(&self) -> String {
        match &self.place {
            Place::Before => "before the first layer".to_owned(),
            Place::After(at) => {
                let pass = self.pass().map(ToString::to_string).unwrap_or_default();
                format!("{pass} ({} of {})", at + 1, self.passes.len())
            }
            Place::Update(_) => "the update of the weights".to_owned(),
            Place::Made(stop) => stop.headline(),
        }
    }

    /// `step 3 of 16, micro-batch 1 of 2, forward: classifier (9 of 19)`
    pub fn headline(&self) -> String {
        let place = self.place_in_words();
        match &self.place {
            Place::Made(_) => place,
            Place::Update(_) => format!("step {} of {}, {place}", self.step, self.steps),
            _ => format!(
                "step {} of {}, {}, {place}",
                self.step,
                self.steps,
                self.micro_batch_in_words()
            ),
        }
    }

    /// `micro-batch 1 of 2`
    pub fn micro_batch_in_words(&self) -> String {
        format!(
            "micro-batch {} of {}",
            self.micro_batch + 1,
            self.micro_batches
        )
    }

    /// A line a value.
    pub fn to_plain(&self) -> String {
        match &self.place {
            Place::Before => self.headline() + "\n",
            Place::Made(stop) => stop.to_plain(),
            Place::After(_) => self.statistics().to_plain_by_tensor(),
            Place::Update(updates) => format!("{}\n{}", self.headline(), updates.to_plain()),
        }
    }

    /// The values as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        match &self.place {
            Place::Before => super::title_html(&self.headline()),
            Place::Made(stop) => stop.to_html(),
            Place::After(_) => self.statistics().to_html_by_tensor(),
            Place::Update(updates) => super::title_html(&self.headline()) + &updates.to_html(),
        }
    }
}

impl fmt::Debug for InStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for InStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, direction: Direction, replica: usize, elements: &[f32]) -> Probe {
        Probe {
            name: name.to_owned(),
            step: 3,
            direction,
            micro_batch: 0,
            replica,
            shape: vec![elements.len()],
            elements: elements.to_vec(),
            statistics: Statistics::of(elements),
        }
    }

    fn at(place: Place, values: Vec<Probe>) -> InStep {
        InStep {
            step: 3,
            steps: 16,
            micro_batch: 0,
            micro_batches: 2,
            replicas: Vec::new(),
            passes: passes_of(values).into(),
            place,
        }
    }

    fn of_bert() -> Vec<Probe> {
        use Direction::{Backward, Forward};
        [
            ("bert.embeddings", Forward),
            ("bert.encoder.layer.0.attention.self", Forward),
            ("bert.encoder.layer.0", Forward),
            ("bert.pooler", Forward),
            ("classifier", Forward),
            ("outputs", Forward),
            ("loss", Forward),
            ("classifier", Backward),
            ("classifier.weight", Backward),
            ("bert.pooler.dense.weight", Backward),
            ("bert.encoder.layer.0", Backward),
            ("bert.encoder.layer.0.output.dense.bias", Backward),
            ("bert.embeddings.LayerNorm.weight", Backward),
        ]
        .map(|(name, direction)| value(name, direction, 0, &[1.0, -2.0]))
        .to_vec()
    }

    #[test]
    fn values_are_put_together_by_layer_and_direction() {
        let passes = passes_of(of_bert());
        let shown: Vec<(&str, Direction, usize)> = (passes.iter())
            .map(|it| (it.layer.as_str(), it.direction, it.values.len()))
            .collect();
        use Direction::{Backward, Forward};
        assert_eq!(
            shown,
            [
                ("bert.embeddings", Forward, 1),
                ("bert.encoder.layer.0", Forward, 2),
                ("bert.pooler", Forward, 1),
                ("classifier", Forward, 1),
                ("outputs", Forward, 1),
                ("loss", Forward, 1),
                ("classifier", Backward, 2),
                ("bert.pooler", Backward, 1),
                ("bert.encoder.layer.0", Backward, 2),
                ("bert.embeddings", Backward, 1),
            ]
        );
    }

    #[test]
    fn a_place_says_where_it_is_and_what_is_computed() {
        let place = at(Place::After(1), of_bert());
        assert_eq!(
            place.headline(),
            "step 3 of 16, micro-batch 1 of 2, forward: bert.encoder.layer.0 (2 of 10)"
        );
        assert_eq!(place.computed().len(), 2);
        let found = place.value("attention.self").expect("it is of this layer");
        assert_eq!(found.elements, [1.0, -2.0]);
        assert!(place.value("classifier").is_none(), "of another layer");
        let plain = place.to_plain();
        assert!(
            plain.contains("bert.encoder.layer.0.attention.self"),
            "{plain}"
        );
        let before = at(Place::Before, of_bert());
        assert!(before.computed().is_empty() && before.statistics().is_empty());
        assert_eq!(
            before.to_plain(),
            "step 3 of 16, micro-batch 1 of 2, before the first layer\n"
        );
    }

    #[test]
    fn replicas_are_added_up_and_stand_beside_one_another() {
        let mut values = of_bert();
        values.push(value("bert.embeddings", Direction::Forward, 1, &[2.0, 4.0]));
        let place = InStep {
            replicas: vec!["cpu:0".to_owned(), "cpu:1".to_owned()],
            ..at(Place::After(0), values)
        };
        let statistics = place.statistics();
        let row = &statistics["bert.embeddings"];
        assert_eq!((row.elements, row.by_replica.len()), (4, 2));
        assert_eq!((row.by_replica[0].max, row.by_replica[1].max), (1.0, 4.0));
    }
}
