//! The rules, a file each, and the catalogue: one line per rule, in the order of their codes.
//!
//! A new rule is a file here (facts, page, `diagnostic`), a `mod`, a `pub use` and a line in
//! [`CATALOGUE`]. A code is never used again for something else.

use crate::{Entry, Rule};

mod accuracy_of_a_regression;
mod architecture_mismatch;
mod argument_nobody_wrote;
mod argument_not_named;
mod argument_of_another_call;
mod backend_failed;
mod bad_argument_value;
mod bad_configuration;
mod bad_size;
mod batches_are_made_by_fit;
mod batches_are_padded;
mod binary_loss_of_many;
mod both_steps_per_execution;
mod call_as_in_keras;
mod callback_per_execution;
mod cannot_write;
mod cells_cannot_run;
mod checkpoint_not_found;
mod checkpoint_unreadable;
mod class_order_differs;
mod classes_as_numbers;
mod clip_per_tensor;
mod conflicting_arguments;
mod data_has_an_end;
mod data_unreadable;
mod decay_of_everything;
mod device_not_there;
mod devices_are_declared_any_time;
mod download_failed;
mod dropout_off;
mod duplicate_argument;
mod duplicate_column;
mod empty_data_set;
mod empty_texts;
mod evaluator_failed;
mod every_epoch_has_its_order;
mod examples_never_seen;
mod fit_in_another_scope;
mod float_class_labels;
mod frozen_after_compile;
mod head_is_new;
mod input_does_not_fit;
mod interrupted;
mod label_out_of_range;
mod labels_not_one_hot;
mod length_mismatch;
mod library_build_failed;
mod library_missing;
mod library_not_held;
mod library_stale;
mod logit_never_negative;
mod loss_without_logits;
mod lost_in_half_precision;
mod majority_baseline;
mod majority_collapse;
mod memory_will_not_do;
mod metric_of_a_batch;
mod micro_batches_lost;
mod missing_column;
mod missing_comma;
mod missing_labels;
mod missing_optimizer;
mod mixed_strategies;
mod model_in_use;
mod model_outside_scope;
mod named_value_in_a_call;
mod no_ignored_labels;
mod no_loss;
mod non_finite_loss;
mod not_compiled;
mod nothing_to_train;
mod older_models_hold_memory;
mod one_seed;
mod optimizer_of_another_model;
mod padding_is_masked;
mod padding_waste;
mod pair_without_segments;
mod python_cell;
mod python_spelling;
mod question_mark_without_result;
mod ragged_row;
mod rate_out_of_range;
mod replica_gradients_summed;
mod replicas_save_no_memory;
mod rustc_missing;
mod schedule_does_not_act;
mod scope_not_as_written;
mod shapes_would_broadcast;
mod shared;
mod small_share_of_a_batch;
mod softmax_over_one;
mod softmax_twice;
mod sources_unreadable;
mod splits_overlap;
mod steps_per_execution_saves_nothing;
mod steps_per_execution_without_scope;
mod strategy_not_available;
mod strategy_not_used;
mod tensor_mismatch;
mod text_too_long;
mod texts_are_values;
mod token_out_of_range;
mod tokenizer_unusable;
mod truncated_texts;
mod uneven_last_batch;
mod unfinished_code;
mod unknown_compile_argument;
mod unknown_evaluate_argument;
mod unknown_fit_argument;
mod unknown_history_name;
mod unknown_identifier;
mod unknown_label;
mod unknown_optimizer_argument;
mod unknown_strategy;
mod unknown_to_a_version;
mod unknown_tokens;
mod update_without_aggregation;
mod validation_of_other_classes;
mod variable_not_kept;
mod vocabulary_mismatch;
mod warm_up_too_long;
mod wrong_kind_of_value;
mod wrong_operands;

pub use accuracy_of_a_regression::AccuracyOfARegression;
pub use architecture_mismatch::ArchitectureMismatch;
pub use argument_nobody_wrote::ArgumentNobodyWrote;
pub use argument_not_named::{ArgumentNotNamed, Unnamed};
pub use argument_of_another_call::ArgumentOfAnotherCall;
pub use backend_failed::BackendFailed;
pub use bad_argument_value::BadArgumentValue;
pub use bad_configuration::BadConfiguration;
pub use bad_size::BadSize;
pub use batches_are_made_by_fit::BatchesAreMadeByFit;
pub use batches_are_padded::BatchesArePadded;
pub use binary_loss_of_many::BinaryLossOfMany;
pub use both_steps_per_execution::BothStepsPerExecution;
pub use call_as_in_keras::CallAsInKeras;
pub use callback_per_execution::CallbackPerExecution;
pub use cannot_write::CannotWrite;
pub use cells_cannot_run::CellsCannotRun;
pub use checkpoint_not_found::CheckpointNotFound;
pub use checkpoint_unreadable::CheckpointUnreadable;
pub use class_order_differs::ClassOrderDiffers;
pub use classes_as_numbers::ClassesAsNumbers;
pub use clip_per_tensor::ClipPerTensor;
pub use conflicting_arguments::ConflictingArguments;
pub use data_has_an_end::DataHasAnEnd;
pub use data_unreadable::DataUnreadable;
pub use decay_of_everything::DecayOfEverything;
pub use device_not_there::DeviceNotThere;
pub use devices_are_declared_any_time::DevicesAreDeclaredAnyTime;
pub use download_failed::DownloadFailed;
pub use dropout_off::DropoutOff;
pub use duplicate_argument::DuplicateArgument;
pub use duplicate_column::DuplicateColumn;
pub use empty_data_set::EmptyDataSet;
pub use empty_texts::EmptyTexts;
pub use evaluator_failed::EvaluatorFailed;
pub use every_epoch_has_its_order::EveryEpochHasItsOrder;
pub use examples_never_seen::ExamplesNeverSeen;
pub use fit_in_another_scope::FitInAnotherScope;
pub use float_class_labels::FloatClassLabels;
pub use frozen_after_compile::FrozenAfterCompile;
pub use head_is_new::HeadIsNew;
pub use input_does_not_fit::{Examples, InputDoesNotFit};
pub use interrupted::Interrupted;
pub use label_out_of_range::{HeadWritten, LabelOutOfRange};
pub use labels_not_one_hot::LabelsNotOneHot;
pub use length_mismatch::LengthMismatch;
pub use library_build_failed::LibraryBuildFailed;
pub use library_missing::LibraryMissing;
pub use library_not_held::LibraryNotHeld;
pub use library_stale::LibraryStale;
pub use logit_never_negative::LogitNeverNegative;
pub use loss_without_logits::{LossWithoutLogits, NoProbabilities};
pub use lost_in_half_precision::LostInHalfPrecision;
pub use majority_baseline::MajorityBaseline;
pub use majority_collapse::MajorityCollapse;
pub use memory_will_not_do::MemoryWillNotDo;
pub use metric_of_a_batch::MetricOfABatch;
pub use micro_batches_lost::MicroBatchesLost;
pub use missing_column::MissingColumn;
pub use missing_comma::MissingComma;
pub use missing_labels::MissingLabels;
pub use missing_optimizer::MissingOptimizer;
pub use mixed_strategies::MixedStrategies;
pub use model_in_use::ModelInUse;
pub use model_outside_scope::ModelOutsideScope;
pub use named_value_in_a_call::NamedValueInACall;
pub use no_ignored_labels::NoIgnoredLabels;
pub use no_loss::NoLoss;
pub use non_finite_loss::NonFiniteLoss;
pub use not_compiled::NotCompiled;
pub use nothing_to_train::NothingToTrain;
pub use older_models_hold_memory::OlderModelsHoldMemory;
pub use one_seed::OneSeed;
pub use optimizer_of_another_model::{OptimizerOfAnotherModel, OptimizerOwner};
pub use padding_is_masked::PaddingIsMasked;
pub use padding_waste::PaddingWaste;
pub use pair_without_segments::PairWithoutSegments;
pub use python_cell::PythonCell;
pub use python_spelling::PythonSpelling;
pub use question_mark_without_result::QuestionMarkWithoutResult;
pub use ragged_row::RaggedRow;
pub use rate_out_of_range::RateOutOfRange;
pub use replica_gradients_summed::ReplicaGradientsSummed;
pub use replicas_save_no_memory::ReplicasSaveNoMemory;
pub use rustc_missing::RustcMissing;
pub use schedule_does_not_act::{ScheduleDoesNotAct, ScheduleFault};
pub use scope_not_as_written::ScopeNotAsWritten;
pub use shapes_would_broadcast::ShapesWouldBroadcast;
pub use small_share_of_a_batch::SmallShareOfABatch;
pub use softmax_over_one::SoftmaxOverOne;
pub use softmax_twice::{Probabilities, SoftmaxTwice};
pub use sources_unreadable::SourcesUnreadable;
pub use splits_overlap::SplitsOverlap;
pub use steps_per_execution_saves_nothing::StepsPerExecutionSavesNothing;
pub use steps_per_execution_without_scope::StepsPerExecutionWithoutScope;
pub use strategy_not_available::{STRATEGIES, StrategyNotAvailable};
pub use strategy_not_used::StrategyNotUsed;
pub use tensor_mismatch::TensorMismatch;
pub use text_too_long::TextTooLong;
pub use texts_are_values::TextsAreValues;
pub use token_out_of_range::TokenOutOfRange;
pub use tokenizer_unusable::TokenizerUnusable;
pub use truncated_texts::TruncatedTexts;
pub use uneven_last_batch::UnevenLastBatch;
pub use unfinished_code::UnfinishedCode;
pub use unknown_compile_argument::UnknownCompileArgument;
pub use unknown_evaluate_argument::UnknownEvaluateArgument;
pub use unknown_fit_argument::UnknownFitArgument;
pub use unknown_history_name::UnknownHistoryName;
pub use unknown_identifier::UnknownIdentifier;
pub use unknown_label::UnknownLabel;
pub use unknown_optimizer_argument::UnknownOptimizerArgument;
pub use unknown_strategy::UnknownStrategy;
pub use unknown_to_a_version::UnknownToAVersion;
pub use unknown_tokens::UnknownTokens;
pub use update_without_aggregation::UpdateWithoutAggregation;
pub use validation_of_other_classes::ValidationOfOtherClasses;
pub use variable_not_kept::VariableNotKept;
pub use vocabulary_mismatch::VocabularyMismatch;
pub use warm_up_too_long::WarmUpTooLong;
pub use wrong_kind_of_value::WrongKindOfValue;
pub use wrong_operands::WrongOperands;

/// Every rule, in the order of the codes.
pub const CATALOGUE: &[Entry] = &[
    page::<UnknownCompileArgument>(),
    page::<StepsPerExecutionWithoutScope>(),
    page::<BadArgumentValue>(),
    page::<BothStepsPerExecution>(),
    page::<UnknownIdentifier>(),
    page::<ArgumentOfAnotherCall>(),
    page::<StepsPerExecutionSavesNothing>(),
    page::<CallbackPerExecution>(),
    page::<ArgumentNobodyWrote>(),
    page::<FrozenAfterCompile>(),
    page::<NothingToTrain>(),
    page::<NotCompiled>(),
    page::<NoLoss>(),
    page::<UnknownFitArgument>(),
    page::<UnknownEvaluateArgument>(),
    page::<MissingOptimizer>(),
    page::<DuplicateArgument>(),
    page::<ConflictingArguments>(),
    page::<UnknownToAVersion>(),
    page::<WrongKindOfValue>(),
    page::<ModelInUse>(),
    page::<MissingComma>(),
    page::<ArgumentNotNamed>(),
    page::<WrongOperands>(),
    page::<NamedValueInACall>(),
    page::<CallAsInKeras>(),
    page::<PythonSpelling>(),
    page::<ScopeNotAsWritten>(),
    page::<UnknownStrategy>(),
    page::<ModelOutsideScope>(),
    page::<OptimizerOfAnotherModel>(),
    page::<StrategyNotUsed>(),
    page::<MixedStrategies>(),
    page::<FitInAnotherScope>(),
    page::<LabelOutOfRange>(),
    page::<LossWithoutLogits>(),
    page::<SoftmaxTwice>(),
    page::<LabelsNotOneHot>(),
    page::<SoftmaxOverOne>(),
    page::<BinaryLossOfMany>(),
    page::<FloatClassLabels>(),
    page::<ClassesAsNumbers>(),
    page::<ShapesWouldBroadcast>(),
    page::<AccuracyOfARegression>(),
    page::<MetricOfABatch>(),
    page::<NoIgnoredLabels>(),
    page::<MissingColumn>(),
    page::<ClassOrderDiffers>(),
    page::<LogitNeverNegative>(),
    page::<TextTooLong>(),
    page::<TokenOutOfRange>(),
    page::<UnknownTokens>(),
    page::<PaddingIsMasked>(),
    page::<PairWithoutSegments>(),
    page::<BatchesArePadded>(),
    page::<TruncatedTexts>(),
    page::<TextsAreValues>(),
    page::<EmptyTexts>(),
    page::<PaddingWaste>(),
    page::<InputDoesNotFit>(),
    page::<MissingLabels>(),
    page::<DuplicateColumn>(),
    page::<RateOutOfRange>(),
    page::<ScheduleDoesNotAct>(),
    page::<WarmUpTooLong>(),
    page::<UnknownOptimizerArgument>(),
    page::<NonFiniteLoss>(),
    page::<MicroBatchesLost>(),
    page::<DecayOfEverything>(),
    page::<ClipPerTensor>(),
    page::<DropoutOff>(),
    page::<HeadIsNew>(),
    page::<LostInHalfPrecision>(),
    page::<UnevenLastBatch>(),
    page::<SmallShareOfABatch>(),
    page::<ReplicaGradientsSummed>(),
    page::<UpdateWithoutAggregation>(),
    page::<OneSeed>(),
    page::<MajorityCollapse>(),
    page::<UnknownHistoryName>(),
    page::<Interrupted>(),
    page::<MemoryWillNotDo>(),
    page::<OlderModelsHoldMemory>(),
    page::<ReplicasSaveNoMemory>(),
    page::<DevicesAreDeclaredAnyTime>(),
    page::<SplitsOverlap>(),
    page::<ValidationOfOtherClasses>(),
    page::<MajorityBaseline>(),
    page::<LengthMismatch>(),
    page::<BatchesAreMadeByFit>(),
    page::<DataHasAnEnd>(),
    page::<ExamplesNeverSeen>(),
    page::<EveryEpochHasItsOrder>(),
    page::<StrategyNotAvailable>(),
    page::<EvaluatorFailed>(),
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
    page::<LibraryNotHeld>(),
    page::<VariableNotKept>(),
    page::<UnfinishedCode>(),
    page::<PythonCell>(),
    page::<QuestionMarkWithoutResult>(),
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
        once: R::ONCE,
        tolerates: R::TOLERATES,
    }
}
