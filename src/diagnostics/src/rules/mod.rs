//! The rules, a file each, and the catalogue: one line per rule, in the order of their codes.
//!
//! A new rule is a file here (facts, page, `diagnostic`), a `mod`, a `pub use` and a line in
//! [`CATALOGUE`]. A code is never used again for something else.

use crate::{Entry, Rule};

mod architecture_mismatch;
mod argument_of_another_call;
mod backend_failed;
mod bad_argument_value;
mod bad_configuration;
mod bad_size;
mod both_steps_per_execution;
mod cannot_write;
mod cells_cannot_run;
mod checkpoint_not_found;
mod checkpoint_unreadable;
mod conflicting_arguments;
mod data_unreadable;
mod device_not_there;
mod download_failed;
mod duplicate_argument;
mod empty_data_set;
mod label_out_of_range;
mod length_mismatch;
mod library_build_failed;
mod library_missing;
mod library_stale;
mod loss_without_logits;
mod missing_column;
mod missing_optimizer;
mod mixed_strategies;
mod model_outside_scope;
mod no_loss;
mod non_finite_loss;
mod not_compiled;
mod optimizer_of_another_model;
mod ragged_row;
mod rustc_missing;
mod shared;
mod sources_unreadable;
mod steps_per_execution_without_scope;
mod strategy_not_available;
mod tensor_mismatch;
mod text_too_long;
mod token_out_of_range;
mod tokenizer_unusable;
mod truncated_texts;
mod unknown_compile_argument;
mod unknown_evaluate_argument;
mod unknown_fit_argument;
mod unknown_identifier;
mod unknown_label;
mod unknown_optimizer_argument;
mod variable_not_kept;
mod vocabulary_mismatch;

pub use architecture_mismatch::ArchitectureMismatch;
pub use argument_of_another_call::ArgumentOfAnotherCall;
pub use backend_failed::BackendFailed;
pub use bad_argument_value::BadArgumentValue;
pub use bad_configuration::BadConfiguration;
pub use bad_size::BadSize;
pub use both_steps_per_execution::BothStepsPerExecution;
pub use cannot_write::CannotWrite;
pub use cells_cannot_run::CellsCannotRun;
pub use checkpoint_not_found::CheckpointNotFound;
pub use checkpoint_unreadable::CheckpointUnreadable;
pub use conflicting_arguments::ConflictingArguments;
pub use data_unreadable::DataUnreadable;
pub use device_not_there::DeviceNotThere;
pub use download_failed::DownloadFailed;
pub use duplicate_argument::DuplicateArgument;
pub use empty_data_set::EmptyDataSet;
pub use label_out_of_range::LabelOutOfRange;
pub use length_mismatch::LengthMismatch;
pub use library_build_failed::LibraryBuildFailed;
pub use library_missing::LibraryMissing;
pub use library_stale::LibraryStale;
pub use loss_without_logits::LossWithoutLogits;
pub use missing_column::MissingColumn;
pub use missing_optimizer::MissingOptimizer;
pub use mixed_strategies::MixedStrategies;
pub use model_outside_scope::ModelOutsideScope;
pub use no_loss::NoLoss;
pub use non_finite_loss::NonFiniteLoss;
pub use not_compiled::NotCompiled;
pub use optimizer_of_another_model::OptimizerOfAnotherModel;
pub use ragged_row::RaggedRow;
pub use rustc_missing::RustcMissing;
pub use sources_unreadable::SourcesUnreadable;
pub use steps_per_execution_without_scope::StepsPerExecutionWithoutScope;
pub use strategy_not_available::{STRATEGIES, StrategyNotAvailable};
pub use tensor_mismatch::TensorMismatch;
pub use text_too_long::TextTooLong;
pub use token_out_of_range::TokenOutOfRange;
pub use tokenizer_unusable::TokenizerUnusable;
pub use truncated_texts::TruncatedTexts;
pub use unknown_compile_argument::UnknownCompileArgument;
pub use unknown_evaluate_argument::UnknownEvaluateArgument;
pub use unknown_fit_argument::UnknownFitArgument;
pub use unknown_identifier::UnknownIdentifier;
pub use unknown_label::UnknownLabel;
pub use unknown_optimizer_argument::UnknownOptimizerArgument;
pub use variable_not_kept::VariableNotKept;
pub use vocabulary_mismatch::VocabularyMismatch;

/// Every rule, in the order of the codes.
pub const CATALOGUE: &[Entry] = &[
    page::<UnknownCompileArgument>(),
    page::<StepsPerExecutionWithoutScope>(),
    page::<BadArgumentValue>(),
    page::<BothStepsPerExecution>(),
    page::<UnknownIdentifier>(),
    page::<ArgumentOfAnotherCall>(),
    page::<NotCompiled>(),
    page::<NoLoss>(),
    page::<UnknownFitArgument>(),
    page::<UnknownEvaluateArgument>(),
    page::<MissingOptimizer>(),
    page::<DuplicateArgument>(),
    page::<ConflictingArguments>(),
    page::<ModelOutsideScope>(),
    page::<OptimizerOfAnotherModel>(),
    page::<MixedStrategies>(),
    page::<LabelOutOfRange>(),
    page::<LossWithoutLogits>(),
    page::<MissingColumn>(),
    page::<TextTooLong>(),
    page::<TokenOutOfRange>(),
    page::<TruncatedTexts>(),
    page::<UnknownOptimizerArgument>(),
    page::<NonFiniteLoss>(),
    page::<LengthMismatch>(),
    page::<StrategyNotAvailable>(),
    page::<CheckpointNotFound>(),
    page::<CheckpointUnreadable>(),
    page::<ArchitectureMismatch>(),
    page::<TensorMismatch>(),
    page::<VocabularyMismatch>(),
    page::<DeviceNotThere>(),
    page::<BackendFailed>(),
    page::<CannotWrite>(),
    page::<BadConfiguration>(),
    page::<TokenizerUnusable>(),
    page::<DataUnreadable>(),
    page::<RaggedRow>(),
    page::<UnknownLabel>(),
    page::<EmptyDataSet>(),
    page::<BadSize>(),
    page::<DownloadFailed>(),
    page::<RustcMissing>(),
    page::<LibraryMissing>(),
    page::<LibraryStale>(),
    page::<SourcesUnreadable>(),
    page::<LibraryBuildFailed>(),
    page::<CellsCannotRun>(),
    page::<VariableNotKept>(),
];

/// The rule of a code, if there is one. Upper and lower case are the same.
pub fn explain(code: &str) -> Option<&'static Entry> {
    CATALOGUE
        .iter()
        .find(|entry| entry.page.code.eq_ignore_ascii_case(code.trim()))
}

const fn page<R: Rule>() -> Entry {
    Entry {
        page: R::PAGE,
        given: R::GIVEN,
        not_run: R::NOT_RUN,
    }
}
