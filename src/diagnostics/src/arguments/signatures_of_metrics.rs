//! How Keras names the values of its metrics and callbacks.

use super::signatures::To::{Absent, Ignored, Method, Operand};
use super::signatures::{
    DTYPE, Form, NAME, Parameter, Signature, any, default, float, integer, missing,
};

const THRESHOLD: &str = "a class is predicted from a probability of 0.5 on; `predictions.assess(&data)?` has other thresholds";

const THRESHOLDS: Parameter = any("thresholds", Absent(THRESHOLD));

/// A metric without settings.
const fn metric(
    name: &'static str,
    written: &'static str,
    parameters: &'static [Parameter],
) -> Signature {
    Signature {
        name,
        written,
        form: Form::Function,
        places: &[],
        parameters,
        also: &[THRESHOLDS],
    }
}

/// Metrics: functions.
pub(super) const METRICS: &[Signature] = &[
    metric("SparseCategoricalAccuracy", "accuracy", &[NAME, DTYPE]),
    metric("CategoricalAccuracy", "accuracy", &[NAME, DTYPE]),
    metric(
        "BinaryAccuracy",
        "accuracy",
        &[NAME, DTYPE, float("threshold", Absent(THRESHOLD))],
    ),
    metric(
        "Precision",
        "precision",
        &[
            THRESHOLDS,
            any("top_k", Absent(THRESHOLD)),
            any("class_id", Absent(THRESHOLD)),
            NAME,
        ],
    ),
    metric(
        "Recall",
        "recall",
        &[
            THRESHOLDS,
            any("top_k", Absent(THRESHOLD)),
            any("class_id", Absent(THRESHOLD)),
            NAME,
        ],
    ),
    metric("RootMeanSquaredError", "rmse", &[NAME, DTYPE]),
    metric(
        "AUC",
        "auc",
        &[
            integer(
                "num_thresholds",
                Ignored("`auc` is exact, without thresholds"),
            ),
            any("curve", Absent("`auc` is the area under the ROC curve")),
            any("summation_method", Ignored("`auc` is exact")),
            NAME,
        ],
    ),
    Signature {
        name: "TopKCategoricalAccuracy",
        written: "top_k_accuracy",
        form: Form::Function,
        places: &[default("5")],
        parameters: &[integer("k", Operand(0)), NAME, DTYPE],
        also: &[],
    },
    Signature {
        name: "SparseTopKCategoricalAccuracy",
        written: "top_k_accuracy",
        form: Form::Function,
        places: &[default("5")],
        parameters: &[integer("k", Operand(0)), NAME, DTYPE],
        also: &[],
    },
    Signature {
        name: "top_k_accuracy",
        written: "top_k_accuracy",
        form: Form::Function,
        places: &[default("5")],
        parameters: &[integer("k", Operand(0))],
        also: &[integer("n", Operand(0)), NAME],
    },
];

const QUIET: Parameter = any("verbose", Ignored("`fit!` reports when it stops early"));

/// Callbacks.
pub(super) const CALLBACKS: &[Signature] = &[
    Signature {
        name: "EarlyStopping",
        written: "EarlyStopping",
        form: Form::New,
        places: &[],
        parameters: &[
            any("monitor", Method("monitor")),
            float("min_delta", Method("min_delta")),
            integer("patience", Method("patience")),
            QUIET,
            any(
                "mode",
                Ignored("whether a smaller or a larger value is better is known of each metric"),
            ),
            float(
                "baseline",
                Absent("it has no baseline: the first value is the one to improve"),
            ),
            any("restore_best_weights", Method("restore_best_weights")),
            integer(
                "start_from_epoch",
                Absent("it watches from the first epoch on: a larger `patience` waits longer"),
            ),
        ],
        also: &[],
    },
    Signature {
        name: "GradualUnfreezing",
        written: "GradualUnfreezing",
        form: Form::New,
        places: &[],
        parameters: &[integer("every", Method("every"))],
        also: &[integer("epochs", Method("every"))],
    },
    Signature {
        name: "TensorBoard",
        written: "TensorBoard",
        form: Form::NewOrError,
        places: &[default("\"logs\"")],
        parameters: &[
            any("log_dir", Operand(0)),
            any(
                "histogram_freq",
                Absent(
                    "it has no histograms: `start!(model, data)?.weights()?` shows statistics of the weights",
                ),
            ),
            any(
                "write_graph",
                Absent("it draws no graph: `model.summary()` shows the layers"),
            ),
            any("write_images", Absent("it writes no images")),
            any(
                "write_steps_per_second",
                Absent("it does not write the speed: the history has the seconds of each epoch"),
            ),
            any(
                "update_freq",
                Absent("the loss is written with each execution, the metrics with each epoch"),
            ),
        ],
        also: &[any("folder", Operand(0))],
    },
    Signature {
        name: "CSVLogger",
        written: "CsvLogger",
        form: Form::NewOrError,
        places: &[missing("\"log.csv\"")],
        parameters: &[
            any("filename", Operand(0)),
            any("separator", Absent("the columns are divided by commas")),
            any("append", Absent("the file is begun again")),
        ],
        also: &[],
    },
    Signature {
        name: "CsvLogger",
        written: "CsvLogger",
        form: Form::NewOrError,
        places: &[missing("\"log.csv\"")],
        parameters: &[any("path", Operand(0))],
        also: &[
            any("filename", Operand(0)),
            any("separator", Absent("the columns are divided by commas")),
            any("append", Absent("the file is begun again")),
        ],
    },
];
