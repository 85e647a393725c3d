//! A model as a debugger sees it: without waiting for it, and without keeping it alive.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use burn::tensor::TensorData;
use stratoscope_bert::names::value_of;
use stratoscope_strategy::VariableRecord;

use super::Model;
use stratoscope_arguments::context::RunContext;
use stratoscope_network::AnyNetwork;
use stratoscope_report::history::History;
use stratoscope_train::state::SharedModel;

/// A model that is not kept alive.
#[derive(Clone)]
pub struct WeakModel(Weak<SharedModel>);

impl WeakModel {
    /// The model; `None` if it was dropped.
    pub fn upgrade(&self) -> Option<Model> {
        let shared = self.0.upgrade()?;
        Some(Model { shared })
    }
}

impl fmt::Debug for WeakModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WeakModel")
    }
}

impl Model {
    /// A handle that does not keep the model alive.
    pub fn downgrade(&self) -> WeakModel {
        WeakModel(Arc::downgrade(&self.shared))
    }

    /// The model in one line, and its variables in the order of its fields, without their values; `None` while a call has it,
    /// such as a training step. Unlike [`look`](Self::look) it gathers nothing that is in pieces on several devices.
    pub fn outline(&self) -> Option<(String, Vec<VariableRecord>)> {
        let records = self.shared.try_state()?.step.replicas.records().to_vec();
        Some((format!("{self:?}"), records))
    }

    /// The values of the model at this moment; `None` while a call has it.
    pub fn look(&self) -> Option<ModelLook> {
        let state = self.shared.try_state()?;
        Some(ModelLook {
            network: state.step.replicas.first().clone(),
            history: self.shared.history_so_far(),
        })
    }

    /// Whether a call trains the model at this moment.
    pub fn is_in_training(&self) -> bool {
        self.shared.occupied.has_call()
    }
}

/// The values of a model at one moment, as handles.
pub struct ModelLook {
    network: AnyNetwork,
    /// What the run that trains it has measured so far.
    pub history: Option<History>,
}

impl ModelLook {
    /// The values of replica 0's copy of a variable, read from the device.
    pub fn values(&self, variable: &VariableRecord) -> Option<TensorData> {
        value_of(&self.network, variable.param)
    }
}

impl fmt::Debug for ModelLook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ModelLook")
    }
}

/// Another handle of the model in this value: a [`Model`], or a [`ModelOf`](super::ModelOf) a network of which a model was
/// made in this context.
pub fn model_in(value: &dyn Any) -> Option<Model> {
    if let Some(model) = value.downcast_ref::<Model>() {
        return Some(model.clone());
    }
    let handle = RunContext::current().handle(value.type_id())?;
    handle(value)?.downcast().ok().map(|model| *model)
}

#[cfg(test)]
mod tests {
    use crate::model::sequential::{Dense, Sequential};

    use super::*;

    #[test]
    fn a_model_is_seen_by_its_variables() {
        let model = Sequential([Dense(3).input_shape(2)]).expect("a valid model");
        let seen = model_in(&model).expect("a model");
        let (line, records) = seen.outline().expect("no call has it");
        let names: Vec<&str> = records.iter().map(|it| it.name.as_str()).collect();
        let kernel = &records[0];
        let look = seen.look().expect("no call has it");
        let values = look.values(kernel).expect("it has values");
        assert_eq!(
            (names.len(), values.shape().to_vec()),
            (2, kernel.shape.clone())
        );
        assert!(line.contains("9 parameters"), "{line}");
        assert!(model_in(&7_u8).is_none());
    }

    #[test]
    fn a_model_in_use_is_not_waited_for_and_not_kept() {
        let model = Sequential([Dense(3).input_shape(2)]).expect("a valid model");
        let weak = model.downgrade();
        {
            let _state = model.state();
            assert!(model.look().is_none());
        }
        assert!(weak.upgrade().is_some());
        drop(model);
        assert!(weak.upgrade().is_none());
    }
}
