//! Habits on strategies and devices, and functions of our types that are given what others take.

use super::Habit;

pub(super) const STRATEGY: &[Habit] = &[
    Habit(
        "num_replicas_in_sync | num_replicas_in_sync() | num_replicas() | num_replicas | replica_count",
        "{it}.replicas().len()",
        "`replicas()` are the devices that train together",
    ),
    Habit(
        "devices | devices() | worker_devices | replicas",
        "{it}.replicas()",
        "`replicas()` are the devices that train together",
    ),
    Habit(
        "run(..) | experimental_run_v2(..) | call(..)",
        "",
        "`fit!` runs each step on all replicas; `scope!(strategy, { … });` makes variables there",
    ),
    Habit(
        "reduce(..) | gather(..) | all_reduce(..)",
        "",
        "`fit!` adds up the gradients of the replicas; `strategy.explain()` says what a step sends",
    ),
    Habit(
        "experimental_distribute_dataset(_) | distribute_dataset(_) | experimental_distribute_datasets_from_function(_)",
        "{0}",
        "`fit!` gives each replica its share of every batch",
    ),
];

pub(super) const DEVICE: &[Habit] = &[
    Habit(
        "::gpu()",
        "Device::cuda(0)",
        "the GPUs of NVIDIA are counted; `Device::wgpu(Default::default())` is any other",
    ),
    Habit(
        "::gpu(_)",
        "Device::cuda({0})",
        "the GPUs of NVIDIA are counted; `Device::wgpu(Default::default())` is any other",
    ),
    Habit(
        "::cpu() | ::cpu(_) | ::Cpu",
        "Device::flex()",
        "the CPU that computes where no device is named",
    ),
];

/// Functions of a type that are there and take other values.
pub(super) const FUNCTIONS_OF_TYPES: &[(&str, &[Habit])] = &[
    (
        "EarlyStopping",
        &[
            Habit(
                "::new(_)",
                "EarlyStopping::new().monitor({0})",
                "what is watched is a setting, `val_loss` unless it is named",
            ),
            Habit(
                "::new(_, _)",
                "EarlyStopping::new().monitor({0}).patience({1})",
                "what is watched and how long are settings",
            ),
        ],
    ),
    (
        "AdamW",
        &[Habit(
            "::new(_, _)",
            "AdamW::new({0}).weight_decay({1})",
            "the rate is the one argument, all else are settings",
        )],
    ),
    (
        "SGD",
        &[Habit(
            "::new(_, _)",
            "SGD::new({0}).momentum({1})",
            "the rate is the one argument, all else are settings",
        )],
    ),
    (
        "MultiWorkerMirroredStrategy",
        &[Habit(
            "::new(1)",
            "MultiWorkerMirroredStrategy::workers({0})?",
            "`workers` starts processes on this machine; `new()` reads the cluster from the environment",
        )],
    ),
    (
        "Sequential",
        &[Habit(
            "::new()",
            "~Sequential([Dense(8).activation(\"relu\").input_shape(4), …])?",
            "`Sequential` takes all its layers at once, and a model does not change afterwards",
        )],
    ),
    (
        "Dataset",
        &[Habit(
            "::from_texts(_, _)",
            "Dataset::from_rows({0}, {1})?",
            "`from_texts` takes texts without labels, `from_rows` both",
        )],
    ),
];
