//! What a value of this project holds in memory, for `%vars`: bytes, and the devices that they are on.

use std::any::{Any, TypeId};

use stratoscope_bert::BertTokenizer;
use stratoscope_data::{Dataset, Example};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, LogicalDevice, MirroredStrategy, ModelParallel,
    OneDeviceStrategy, ParameterServerStrategy, PipelineStrategy, Strategy, TpuStrategy,
    VariableRecord,
};

use crate::model::predict::{Prediction, Predictions};
use crate::model::{Model, ModelOf};
use stratoscope_arguments::context::{Handle, RunContext};

use crate::optimizer::Optimizer;
pub use crate::report::held::Held;
use crate::report::held::Look;
use crate::report::history::{EpochRecord, ExecutionRecord, History, StepRecord};
use stratoscope_network::Network;
use stratoscope_run::handle::Run;
use stratoscope_step::gradients::Gradients;
use stratoscope_train::state::ModelState;

/// What the value holds, where its type is known.
pub fn held(value: &dyn Any) -> Option<Held> {
    if let Some(look) = RunContext::current().look(value.type_id()) {
        return look(value);
    }
    if let Some(model) = value.downcast_ref::<Model>() {
        return model.held();
    }
    if let Some(run) = value.downcast_ref::<Run>() {
        return Some(run.held());
    }
    let bytes = |bytes: usize| Held {
        bytes: bytes as u64,
        devices: Vec::new(),
    };
    if let Some(data) = value.downcast_ref::<Dataset>() {
        return Some(bytes(of_data(data)));
    }
    if let Some(history) = value.downcast_ref::<History>() {
        return Some(bytes(of_history(history)));
    }
    if let Some(predictions) = value.downcast_ref::<Predictions>() {
        return Some(bytes(of_predictions(predictions)));
    }
    if let Some(tokenizer) = value.downcast_ref::<BertTokenizer>() {
        return Some(bytes(tokenizer.bytes()));
    }
    if let Some(gradients) = value.downcast_ref::<Gradients>() {
        return Some(gradients.held());
    }
    of_strategy(value)
}

/// Models of this network are known in this context from now on.
pub(crate) fn register<N: Network>(context: &RunContext) {
    let look: Look = |value| value.downcast_ref::<ModelOf<N>>()?.held();
    let handle: Handle = |value| {
        let model: &Model = value.downcast_ref::<ModelOf<N>>()?;
        Some(Box::new(model.clone()))
    };
    context.register(TypeId::of::<ModelOf<N>>(), (look, handle));
}

/// The variables of a model with all their copies, and what its optimizer keeps beside them.
pub(crate) fn of_state(state: &ModelState) -> Held {
    let records = state.step.replicas.records();
    let weights: u64 = records.iter().map(copies).sum();
    let compiled = state.compiled.as_ref();
    let compiled = compiled.filter(|_| state.step.steps_since_compile() > 0);
    let kept = compiled.map_or(0, |compiled| {
        let beside = |record| kept(&compiled.optimizer, record);
        state.trainable().map(beside).sum()
    });
    let devices = match state.step.replicas.strategy() {
        Some(strategy) => names(&strategy.devices()),
        None => names(state.step.replicas.devices()),
    };
    Held {
        bytes: weights + kept,
        devices,
    }
}

/// The bytes of all copies of a variable, or of all its parts.
fn copies(record: &VariableRecord) -> u64 {
    record.bytes * record.copies() as u64
}

/// The bytes of what an optimizer keeps beside all copies of a variable, or beside all its parts.
fn kept(optimizer: &Optimizer, record: &VariableRecord) -> u64 {
    optimizer.kept_bytes(&record.shape) * record.copies() as u64
}

/// Each name once.
fn names(devices: &[LogicalDevice]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for device in devices {
        if !names.contains(&device.name) {
            names.push(device.name.clone());
        }
    }
    names
}

fn of_strategy(value: &dyn Any) -> Option<Held> {
    macro_rules! strategies {
        ($($kind:ty)*) => {
            $(if let Some(strategy) = value.downcast_ref::<$kind>() {
                let devices = names(&strategy.strategy().devices());
                return Some(Held { bytes: 0, devices });
            })*
        };
    }
    strategies!(
        Strategy MirroredStrategy CentralStorageStrategy ParameterServerStrategy OneDeviceStrategy TpuStrategy
        PipelineStrategy ModelParallel
    );
    None
}

fn of_data(data: &Dataset) -> usize {
    let of_example = |example: &Example| {
        let pair = example.pair.as_ref().map_or(0, String::len);
        let numbers = size_of_val::<[f32]>(&example.features);
        size_of::<Example>() + example.text.len() + pair + numbers
    };
    let examples: usize = data.examples.iter().map(of_example).sum();
    examples + texts(&data.label_names) + data.source.len()
}

fn of_history(history: &History) -> usize {
    history.epochs.len() * size_of::<EpochRecord>()
        + history.executions.len() * size_of::<ExecutionRecord>()
        + history.steps.len() * size_of::<StepRecord>()
}

fn of_predictions(predictions: &Predictions) -> usize {
    let of_row = |row: &Prediction| {
        let pair = row.pair.as_ref().map_or(0, String::len);
        let numbers = size_of_val::<[f64]>(&row.probabilities);
        size_of::<Prediction>() + row.text.len() + pair + row.label.len() + numbers
    };
    let rows: usize = predictions.rows.iter().map(of_row).sum();
    rows + texts(&predictions.label_names)
}

fn texts(texts: &[String]) -> usize {
    size_of_val(texts) + texts.iter().map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::scope;

    use super::*;
    use crate::model::sequential::{Dense, Sequential};

    #[test]
    fn a_model_holds_its_copies_on_its_devices() {
        let build = || Sequential([Dense(3).input_shape(2)]).expect("a valid model");
        // 2 · 3 weights and 3 biases.
        let alone = held(&build()).expect("a known type");
        assert_eq!((alone.bytes, alone.devices), (36, vec!["cpu:0".to_owned()]));
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let mirrored = {
            let _scope = scope::enter(&strategy).expect("no scope is open");
            build()
        };
        let two = held(&mirrored).expect("a known type");
        assert_eq!(two.bytes, 72);
        assert_eq!(two.devices, ["cpu:0", "cpu:1"]);
        assert_eq!(held(&strategy).expect("a known type").devices, two.devices);
    }

    #[test]
    fn data_holds_its_texts() {
        let short = held(&Dataset::from_texts(["a"])).expect("a known type");
        let long = held(&Dataset::from_texts(["a".repeat(101)])).expect("a known type");
        assert_eq!(long.bytes - short.bytes, 100);
        assert!(held(&"text".to_owned()).is_none());
    }
}
