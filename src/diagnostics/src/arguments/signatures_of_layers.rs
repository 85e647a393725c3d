//! How Keras names the values of its layers, and scikit-learn and others those of functions that make data and devices.

use super::signatures::To::{Absent, Ignored, Method, Operand};
use super::signatures::{
    DTYPE, Form, NAME, Parameter, Signature, any, default, float, integer, missing,
};

const BIAS: Parameter = any("use_bias", Absent("a layer always has its bias"));
const DRAWN: &str = "the weights are drawn as Keras's `glorot_uniform` does, the biases are 0";
const PENALTY: &str =
    "layers have no penalties: `AdamW::new(1e-3).weight_decay(0.01)` makes weights smaller";
const BOUNDS: &str = "weights have no bounds here";
const INPUT: Parameter = any("input_shape", Method("input_shape"));
const INPUT_DIM: Parameter = integer("input_dim", Method("input_shape"));
const SEED: Parameter = integer("seed", Method("seed"));

/// Layers.
pub(super) const LAYERS: &[Signature] = &[
    Signature {
        name: "Dense",
        written: "Dense",
        form: Form::Function,
        places: &[missing("8")],
        parameters: &[
            integer("units", Operand(0)),
            any("activation", Method("activation")),
            BIAS,
            any("kernel_initializer", Absent(DRAWN)),
            any("bias_initializer", Absent(DRAWN)),
            any("kernel_regularizer", Absent(PENALTY)),
            any("bias_regularizer", Absent(PENALTY)),
            any("activity_regularizer", Absent(PENALTY)),
            any("kernel_constraint", Absent(BOUNDS)),
            any("bias_constraint", Absent(BOUNDS)),
        ],
        also: &[
            INPUT,
            INPUT_DIM,
            SEED,
            NAME,
            DTYPE,
            integer("out_features", Operand(0)),
            integer("in_features", Method("input_shape")),
        ],
    },
    Signature {
        name: "Dropout",
        written: "Dropout",
        form: Form::Function,
        places: &[missing("0.1")],
        parameters: &[
            float("rate", Operand(0)),
            any("noise_shape", Absent("each number is dropped by itself")),
            SEED,
        ],
        also: &[float("p", Operand(0)), INPUT, INPUT_DIM, NAME, DTYPE],
    },
    Signature {
        name: "Embedding",
        written: "Embedding",
        form: Form::Function,
        places: &[missing("1000"), missing("16")],
        parameters: &[
            integer("input_dim", Operand(0)),
            integer("output_dim", Operand(1)),
            any("embeddings_initializer", Absent(DRAWN)),
            any("embeddings_regularizer", Absent(PENALTY)),
            any("embeddings_constraint", Absent(BOUNDS)),
            any("mask_zero", Absent("no number is masked")),
        ],
        also: &[
            integer("input_length", Method("input_shape")),
            INPUT,
            SEED,
            NAME,
            DTYPE,
            integer("num_embeddings", Operand(0)),
            integer("embedding_dim", Operand(1)),
        ],
    },
    Signature {
        name: "Flatten",
        written: "Flatten",
        form: Form::Function,
        places: &[],
        parameters: &[any(
            "data_format",
            Ignored("rows are made flat in their order"),
        )],
        also: &[INPUT, NAME, DTYPE],
    },
    Signature {
        name: "GlobalAveragePooling1D",
        written: "GlobalAveragePooling1D",
        form: Form::Function,
        places: &[],
        parameters: &[
            any("data_format", Ignored("the mean is over the positions")),
            any(
                "keepdims",
                Absent("the positions are no dimension of the result"),
            ),
        ],
        also: &[INPUT, NAME, DTYPE],
    },
];

const NO_FORM: &str = "the classes are clouds of points around centers that the seed draws, and have no other settings";
const NO_NOISE: &str = "the numbers have the noise that the seed draws";

/// Functions whose values have an order.
pub(super) const FUNCTIONS: &[Signature] = &[
    Signature {
        name: "make_classification",
        written: "make_classification",
        form: Form::Function,
        places: &[default("100"), default("20"), default("2"), missing("0")],
        parameters: &[
            integer("n_samples", Operand(0)),
            integer("n_features", Operand(1)),
            integer("n_classes", Operand(2)),
            integer("random_state", Operand(3)),
        ],
        also: &[
            integer("rows", Operand(0)),
            integer("samples", Operand(0)),
            integer("examples", Operand(0)),
            integer("n", Operand(0)),
            integer("columns", Operand(1)),
            integer("features", Operand(1)),
            integer("classes", Operand(2)),
            integer("num_classes", Operand(2)),
            integer("seed", Operand(3)),
            integer("n_informative", Absent(NO_FORM)),
            integer("n_redundant", Absent(NO_FORM)),
            integer("n_repeated", Absent(NO_FORM)),
            integer("n_clusters_per_class", Absent(NO_FORM)),
            any("weights", Absent(NO_FORM)),
            float("flip_y", Absent(NO_FORM)),
            float("class_sep", Absent(NO_FORM)),
            any("shuffle", Ignored("`fit!` shuffles the examples")),
        ],
    },
    Signature {
        name: "make_regression",
        written: "make_regression",
        form: Form::Function,
        places: &[default("100"), default("100"), missing("0")],
        parameters: &[
            integer("n_samples", Operand(0)),
            integer("n_features", Operand(1)),
            integer("random_state", Operand(2)),
        ],
        also: &[
            integer("rows", Operand(0)),
            integer("samples", Operand(0)),
            integer("n", Operand(0)),
            integer("columns", Operand(1)),
            integer("features", Operand(1)),
            integer("seed", Operand(2)),
            integer("n_informative", Absent(NO_NOISE)),
            integer(
                "n_targets",
                Absent("an example has one number as its target"),
            ),
            float("noise", Absent(NO_NOISE)),
            float("bias", Absent(NO_NOISE)),
            any("shuffle", Ignored("`fit!` shuffles the examples")),
        ],
    },
    Signature {
        name: "from_arrays",
        written: "from_arrays",
        form: Form::Function,
        places: &[missing("rows"), missing("labels")],
        parameters: &[any("x", Operand(0)), any("y", Operand(1))],
        also: &[
            any("X", Operand(0)),
            any("features", Operand(0)),
            any("rows", Operand(0)),
            any("inputs", Operand(0)),
            any("labels", Operand(1)),
            any("targets", Operand(1)),
            any("target", Operand(1)),
        ],
    },
    Signature {
        name: "from_rows",
        written: "from_rows",
        form: Form::Function,
        places: &[missing("texts"), missing("labels")],
        parameters: &[any("texts", Operand(0)), any("labels", Operand(1))],
        also: &[
            any("text", Operand(0)),
            any("x", Operand(0)),
            any("label", Operand(1)),
            any("y", Operand(1)),
        ],
    },
];
