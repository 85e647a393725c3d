//! The rules, a file each, and the catalogue: one line per rule, in the order of their codes.
//!
//! A new rule is a file here (facts, page, `diagnostic`), a `mod`, a `pub use` and a line in
//! [`CATALOGUE`]. A code is never used again for something else.

use crate::{Entry, Rule};

mod accuracy_on_regression;
mod architecture_mismatch;
mod argument_added_by_library;
mod argument_not_named;
mod argument_type_mismatch;
mod automatic_batching;
mod automatic_padding;
mod backend_failed;
mod binary_loss_for_many_classes;
mod callback_per_execution;
mod checkpoint_not_found;
mod checkpoint_of_other_run;
mod checkpoint_of_other_version;
mod checkpoint_unreadable;
mod checkpoints_stopped;
mod class_order_differs;
mod classes_as_numbers;
mod conflicting_arguments;
mod damaged_checkpoint;
mod data_unreadable;
mod decay_of_all_weights;
mod device_not_found;
mod double_softmax;
mod download_failed;
mod dropout_off;
mod dropped_micro_batches;
mod duplicate_argument;
mod duplicate_column;
mod empty_dataset;
mod empty_texts;
mod evaluator_failed;
mod execution_unavailable;
mod finite_dataset;
mod fit_in_another_scope;
mod float_class_labels;
mod frozen_after_compile;
mod half_precision_underflow;
mod ignored_label_index;
mod implicit_broadcast;
mod ineffective_schedule;
mod input_shape_mismatch;
mod interrupted;
mod invalid_argument_value;
mod invalid_configuration;
mod invalid_scope_syntax;
mod invalid_size;
mod keras_call_syntax;
mod label_out_of_range;
mod labels_not_one_hot;
mod late_device_configuration;
mod learning_rate_out_of_range;
mod length_mismatch;
mod library_build_failed;
mod library_link_failed;
mod library_missing;
mod library_stale;
mod loss_without_logits;
mod majority_baseline;
mod majority_collapse;
mod memory_held_by_older_models;
mod misplaced_argument;
mod missing_column;
mod missing_comma;
mod missing_labels;
mod missing_optimizer;
mod mixed_strategies;
mod model_in_use;
mod model_outside_scope;
mod named_argument_in_call;
mod no_loss;
mod non_finite_loss;
mod not_compiled;
mod not_enough_memory;
mod nothing_to_train;
mod optimizer_of_other_model;
mod padding_is_masked;
mod padding_waste;
mod pair_without_segments;
mod per_batch_metric;
mod per_epoch_shuffling;
mod per_tensor_clipping;
mod python_cell;
mod python_spelling;
mod question_mark_without_result;
mod ragged_row;
mod relu_on_binary_logit;
mod replay_differs;
mod replica_gradients_summed;
mod replicas_save_no_memory;
mod run_is_over;
mod rustc_missing;
mod shared;
mod single_seed;
mod small_per_replica_batch;
mod softmax_over_one_output;
mod sources_unreadable;
mod splits_overlap;
mod steps_per_execution_saves_nothing;
mod steps_per_execution_without_scope;
mod strategy_not_available;
mod strategy_not_used;
mod tensor_mismatch;
mod text_too_long;
mod token_out_of_range;
mod tokenizer_in_map;
mod tokenizer_unusable;
mod truncated_texts;
mod two_steps_per_execution;
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
mod unknown_tokens;
mod unseen_examples;
mod untrained_head;
mod update_without_aggregation;
mod validation_class_mismatch;
mod variable_not_kept;
mod version_specific_argument;
mod vocabulary_mismatch;
mod warm_up_too_long;
mod write_failed;
mod wrong_operands;

pub use accuracy_on_regression::AccuracyOnRegression;
pub use architecture_mismatch::ArchitectureMismatch;
pub use argument_added_by_library::ArgumentAddedByLibrary;
pub use argument_not_named::{ArgumentNotNamed, Unnamed};
pub use argument_type_mismatch::ArgumentTypeMismatch;
pub use automatic_batching::AutomaticBatching;
pub use automatic_padding::AutomaticPadding;
pub use backend_failed::BackendFailed;
pub use binary_loss_for_many_classes::BinaryLossForManyClasses;
pub use callback_per_execution::CallbackPerExecution;
pub use checkpoint_not_found::CheckpointNotFound;
pub use checkpoint_of_other_run::CheckpointOfOtherRun;
pub use checkpoint_of_other_version::CheckpointOfOtherVersion;
pub use checkpoint_unreadable::CheckpointUnreadable;
pub use checkpoints_stopped::CheckpointsStopped;
pub use class_order_differs::ClassOrderDiffers;
pub use classes_as_numbers::ClassesAsNumbers;
pub use conflicting_arguments::ConflictingArguments;
pub use damaged_checkpoint::DamagedCheckpoint;
pub use data_unreadable::DataUnreadable;
pub use decay_of_all_weights::DecayOfAllWeights;
pub use device_not_found::DeviceNotFound;
pub use double_softmax::{DoubleSoftmax, Probabilities};
pub use download_failed::DownloadFailed;
pub use dropout_off::DropoutOff;
pub use dropped_micro_batches::DroppedMicroBatches;
pub use duplicate_argument::DuplicateArgument;
pub use duplicate_column::DuplicateColumn;
pub use empty_dataset::EmptyDataset;
pub use empty_texts::EmptyTexts;
pub use evaluator_failed::EvaluatorFailed;
pub use execution_unavailable::ExecutionUnavailable;
pub use finite_dataset::FiniteDataset;
pub use fit_in_another_scope::FitInAnotherScope;
pub use float_class_labels::FloatClassLabels;
pub use frozen_after_compile::FrozenAfterCompile;
pub use half_precision_underflow::HalfPrecisionUnderflow;
pub use ignored_label_index::IgnoredLabelIndex;
pub use implicit_broadcast::ImplicitBroadcast;
pub use ineffective_schedule::{IneffectiveSchedule, ScheduleFault};
pub use input_shape_mismatch::{Examples, InputShapeMismatch};
pub use interrupted::Interrupted;
pub use invalid_argument_value::InvalidArgumentValue;
pub use invalid_configuration::InvalidConfiguration;
pub use invalid_scope_syntax::InvalidScopeSyntax;
pub use invalid_size::InvalidSize;
pub use keras_call_syntax::KerasCallSyntax;
pub use label_out_of_range::{HeadWritten, LabelOutOfRange};
pub use labels_not_one_hot::LabelsNotOneHot;
pub use late_device_configuration::LateDeviceConfiguration;
pub use learning_rate_out_of_range::LearningRateOutOfRange;
pub use length_mismatch::LengthMismatch;
pub use library_build_failed::LibraryBuildFailed;
pub use library_link_failed::LibraryLinkFailed;
pub use library_missing::LibraryMissing;
pub use library_stale::LibraryStale;
pub use loss_without_logits::{LossWithoutLogits, NoProbabilities};
pub use majority_baseline::MajorityBaseline;
pub use majority_collapse::MajorityCollapse;
pub use memory_held_by_older_models::MemoryHeldByOlderModels;
pub use misplaced_argument::MisplacedArgument;
pub use missing_column::MissingColumn;
pub use missing_comma::MissingComma;
pub use missing_labels::MissingLabels;
pub use missing_optimizer::MissingOptimizer;
pub use mixed_strategies::MixedStrategies;
pub use model_in_use::{ModelHolder, ModelInUse};
pub use model_outside_scope::ModelOutsideScope;
pub use named_argument_in_call::NamedArgumentInCall;
pub use no_loss::NoLoss;
pub use non_finite_loss::NonFiniteLoss;
pub use not_compiled::NotCompiled;
pub use not_enough_memory::NotEnoughMemory;
pub use nothing_to_train::NothingToTrain;
pub use optimizer_of_other_model::{OptimizerOfOtherModel, OptimizerOwner};
pub use padding_is_masked::PaddingIsMasked;
pub use padding_waste::PaddingWaste;
pub use pair_without_segments::PairWithoutSegments;
pub use per_batch_metric::PerBatchMetric;
pub use per_epoch_shuffling::PerEpochShuffling;
pub use per_tensor_clipping::PerTensorClipping;
pub use python_cell::PythonCell;
pub use python_spelling::PythonSpelling;
pub use question_mark_without_result::QuestionMarkWithoutResult;
pub use ragged_row::RaggedRow;
pub use relu_on_binary_logit::ReluOnBinaryLogit;
pub use replay_differs::ReplayDiffers;
pub use replica_gradients_summed::ReplicaGradientsSummed;
pub use replicas_save_no_memory::ReplicasSaveNoMemory;
pub use run_is_over::RunIsOver;
pub use rustc_missing::RustcMissing;
pub use shared::UnknownArgument;
pub use single_seed::SingleSeed;
pub use small_per_replica_batch::SmallPerReplicaBatch;
pub use softmax_over_one_output::SoftmaxOverOneOutput;
pub use sources_unreadable::SourcesUnreadable;
pub use splits_overlap::SplitsOverlap;
pub use steps_per_execution_saves_nothing::StepsPerExecutionSavesNothing;
pub use steps_per_execution_without_scope::StepsPerExecutionWithoutScope;
pub use strategy_not_available::{STRATEGIES, StrategyNotAvailable};
pub use strategy_not_used::StrategyNotUsed;
pub use tensor_mismatch::TensorMismatch;
pub use text_too_long::TextTooLong;
pub use token_out_of_range::TokenOutOfRange;
pub use tokenizer_in_map::TokenizerInMap;
pub use tokenizer_unusable::TokenizerUnusable;
pub use truncated_texts::TruncatedTexts;
pub use two_steps_per_execution::TwoStepsPerExecution;
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
pub use unknown_tokens::UnknownTokens;
pub use unseen_examples::UnseenExamples;
pub use untrained_head::UntrainedHead;
pub use update_without_aggregation::UpdateWithoutAggregation;
pub use validation_class_mismatch::ValidationClassMismatch;
pub use variable_not_kept::VariableNotKept;
pub use version_specific_argument::VersionSpecificArgument;
pub use vocabulary_mismatch::VocabularyMismatch;
pub use warm_up_too_long::WarmUpTooLong;
pub use write_failed::WriteFailed;
pub use wrong_operands::WrongOperands;

/// Every rule, in the order of the codes.
pub const CATALOGUE: &[Entry] = &[
    page::<UnknownCompileArgument>(),
    page::<StepsPerExecutionWithoutScope>(),
    page::<InvalidArgumentValue>(),
    page::<TwoStepsPerExecution>(),
    page::<UnknownIdentifier>(),
    page::<MisplacedArgument>(),
    page::<StepsPerExecutionSavesNothing>(),
    page::<CallbackPerExecution>(),
    page::<ArgumentAddedByLibrary>(),
    page::<FrozenAfterCompile>(),
    page::<NothingToTrain>(),
    page::<NotCompiled>(),
    page::<NoLoss>(),
    page::<UnknownFitArgument>(),
    page::<UnknownEvaluateArgument>(),
    page::<MissingOptimizer>(),
    page::<DuplicateArgument>(),
    page::<ConflictingArguments>(),
    page::<VersionSpecificArgument>(),
    page::<ArgumentTypeMismatch>(),
    page::<ModelInUse>(),
    page::<MissingComma>(),
    page::<ArgumentNotNamed>(),
    page::<WrongOperands>(),
    page::<NamedArgumentInCall>(),
    page::<KerasCallSyntax>(),
    page::<PythonSpelling>(),
    page::<InvalidScopeSyntax>(),
    page::<UnknownStrategy>(),
    page::<ModelOutsideScope>(),
    page::<OptimizerOfOtherModel>(),
    page::<StrategyNotUsed>(),
    page::<MixedStrategies>(),
    page::<FitInAnotherScope>(),
    page::<LabelOutOfRange>(),
    page::<LossWithoutLogits>(),
    page::<DoubleSoftmax>(),
    page::<LabelsNotOneHot>(),
    page::<SoftmaxOverOneOutput>(),
    page::<BinaryLossForManyClasses>(),
    page::<FloatClassLabels>(),
    page::<ClassesAsNumbers>(),
    page::<ImplicitBroadcast>(),
    page::<AccuracyOnRegression>(),
    page::<PerBatchMetric>(),
    page::<IgnoredLabelIndex>(),
    page::<MissingColumn>(),
    page::<ClassOrderDiffers>(),
    page::<ReluOnBinaryLogit>(),
    page::<TextTooLong>(),
    page::<TokenOutOfRange>(),
    page::<UnknownTokens>(),
    page::<PaddingIsMasked>(),
    page::<PairWithoutSegments>(),
    page::<AutomaticPadding>(),
    page::<TruncatedTexts>(),
    page::<TokenizerInMap>(),
    page::<EmptyTexts>(),
    page::<PaddingWaste>(),
    page::<InputShapeMismatch>(),
    page::<MissingLabels>(),
    page::<DuplicateColumn>(),
    page::<LearningRateOutOfRange>(),
    page::<IneffectiveSchedule>(),
    page::<WarmUpTooLong>(),
    page::<UnknownOptimizerArgument>(),
    page::<NonFiniteLoss>(),
    page::<DroppedMicroBatches>(),
    page::<DecayOfAllWeights>(),
    page::<PerTensorClipping>(),
    page::<DropoutOff>(),
    page::<UntrainedHead>(),
    page::<HalfPrecisionUnderflow>(),
    page::<UnevenLastBatch>(),
    page::<SmallPerReplicaBatch>(),
    page::<ReplicaGradientsSummed>(),
    page::<UpdateWithoutAggregation>(),
    page::<SingleSeed>(),
    page::<MajorityCollapse>(),
    page::<UnknownHistoryName>(),
    page::<Interrupted>(),
    page::<RunIsOver>(),
    page::<CheckpointsStopped>(),
    page::<DamagedCheckpoint>(),
    page::<CheckpointOfOtherRun>(),
    page::<CheckpointOfOtherVersion>(),
    page::<ReplayDiffers>(),
    page::<NotEnoughMemory>(),
    page::<MemoryHeldByOlderModels>(),
    page::<ReplicasSaveNoMemory>(),
    page::<LateDeviceConfiguration>(),
    page::<SplitsOverlap>(),
    page::<ValidationClassMismatch>(),
    page::<MajorityBaseline>(),
    page::<LengthMismatch>(),
    page::<AutomaticBatching>(),
    page::<FiniteDataset>(),
    page::<UnseenExamples>(),
    page::<PerEpochShuffling>(),
    page::<StrategyNotAvailable>(),
    page::<EvaluatorFailed>(),
    page::<CheckpointNotFound>(),
    page::<CheckpointUnreadable>(),
    page::<ArchitectureMismatch>(),
    page::<TensorMismatch>(),
    page::<VocabularyMismatch>(),
    page::<DeviceNotFound>(),
    page::<BackendFailed>(),
    page::<WriteFailed>(),
    page::<InvalidConfiguration>(),
    page::<TokenizerUnusable>(),
    page::<DataUnreadable>(),
    page::<RaggedRow>(),
    page::<UnknownLabel>(),
    page::<EmptyDataset>(),
    page::<InvalidSize>(),
    page::<DownloadFailed>(),
    page::<RustcMissing>(),
    page::<LibraryMissing>(),
    page::<LibraryStale>(),
    page::<SourcesUnreadable>(),
    page::<LibraryBuildFailed>(),
    page::<ExecutionUnavailable>(),
    page::<LibraryLinkFailed>(),
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
