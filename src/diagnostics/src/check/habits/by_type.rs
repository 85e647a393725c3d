//! Which habits there are on the values and the functions of a type.

use super::{
    Habit, of_data, of_models, of_predictions, of_runs, of_strategies, of_tokenizers, of_types,
    of_values,
};

/// The habits on values of a type.
pub(super) fn habits_of(of_type: &str) -> Option<&'static [Habit]> {
    let mut of_type = of_type.trim_start_matches('&').trim_start_matches("mut ");
    for around in ["Box<", "std::sync::Arc<", "Arc<", "Rc<"] {
        of_type = of_type.strip_prefix(around).unwrap_or(of_type);
    }
    if of_type.starts_with('[') {
        return Some(of_values::LIST);
    }
    if of_type.starts_with('(') {
        return of_type
            .ends_with("TensorData)")
            .then_some(of_models::VARIABLE);
    }
    let name = of_type.split('<').next()?.rsplit("::").next()?;
    Some(match name {
        "Model" | "ModelOf" | "Sequential" => of_models::MODEL,
        _ if name.starts_with("BertFor") => of_models::MODEL,
        "SparseCategoricalCrossentropy" => of_models::SPARSE_LOSS,
        "History" => of_models::HISTORY,
        "Evaluation" => of_models::EVALUATION,
        "Predictions" => of_predictions::PREDICTIONS,
        "BertTokenizer" => of_tokenizers::TOKENIZER,
        "Layer" => of_types::LAYER,
        "Dataset" => of_data::DATASET,
        "Example" => of_data::EXAMPLE,
        "Vec" | "VecDeque" => of_values::LIST,
        "String" | "str" => of_values::TEXT,
        "{integer}" | "i32" | "i64" | "u32" | "u64" | "usize" => of_values::NUMBER,
        "Tensor" => of_values::TENSOR,
        "Run" => of_runs::RUN,
        "Interventions" => of_runs::INTERVENTIONS,
        "EpochRecord" => of_runs::EPOCH,
        "Prediction" => of_runs::PREDICTION,
        "Assessment" => of_runs::ASSESSMENT,
        "Option" if of_type.contains("Evaluation>") => of_runs::VALIDATION,
        "Device" => of_strategies::DEVICE,
        _ if name.ends_with("Strategy") => of_strategies::STRATEGY,
        _ => return None,
    })
}

/// The habits on the functions of a type that are there.
pub(super) fn functions_of(of_type: &str) -> Option<&'static [Habit]> {
    let mut types = of_strategies::FUNCTIONS_OF_TYPES.iter();
    types.find(|(name, _)| *name == of_type).map(|(_, it)| *it)
}
