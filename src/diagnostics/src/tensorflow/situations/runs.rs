//! Training, memory, data and files: SC05 to SC09.

use super::Does::{Depends, Raises, RaisesLater, Silent, Warns};
use super::{NOTHING_IS_SAID, SAYS_NOTHING, SILENT, Situation, row};

pub(super) const RUNS: &[Situation] = &[
    row(
        "SC0501",
        "",
        SILENT,
        "no message; `optimizer='adam'` has the rate 1e-3",
        "There is no message: `optimizer='adam'` has the rate 1e-3, and `compile` without an optimizer takes \
         RMSprop at 1e-3.",
    ),
    row(
        "SC0502",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message. `PolynomialDecay(2e-5, 100)` rises from 2e-5 to 1e-4 in all versions.",
    ),
    row("SC0503", "", SILENT, SAYS_NOTHING, NOTHING_IS_SAID),
    row(
        "SC0504",
        "",
        [Depends; 4],
        "",
        "TensorFlow 2.3–2.6 take `lr` as an old name; tf_keras 2.18 ignores it and trains at the default rate, with a log \
         line; Keras 3: \"Argument(s) not recognized: {'lr': 0.001}\". `weight_decay` of Adam and SGD is refused by \
         2.3–2.6 and accepted later. Any other name raises when the optimizer is made.",
    ),
    row(
        "SC0505",
        "",
        SILENT,
        "`fit` goes on with `loss: nan` unless `TerminateOnNaN` is given",
        "`fit` goes on with `loss: nan` unless `TerminateOnNaN` is given; on 2.18 a ReLU model with NaN weights can even \
         show a finite loss.",
    ),
    row(
        "SC0506",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message: TensorFlow does not know how many micro-batches a Python loop has.",
    ),
    row(
        "SC0507",
        "",
        SILENT,
        "decays every variable that is not excluded by name, without a message",
        "Keras decays every variable, by 0.004, unless `exclude_from_weight_decay(var_names=[…])` is called before the \
         optimizer is built.",
    ),
    row(
        "SC0508",
        "",
        SILENT,
        "`clipnorm` has the same meaning; there is no message",
        "The same meaning, in all versions without a message.",
    ),
    row(
        "SC0509",
        "",
        SILENT,
        "no message: `model(x)` without `training=True` has no dropout",
        "A hand-written loop that calls `model(x)` without `training=True` runs without dropout without a message.",
    ),
    row(
        "SC0510",
        "",
        [Warns; 4],
        "transformers warns when it loads such a model, once",
        "transformers warns when it loads: \"Some weights of … were not initialized from the model checkpoint at … and are \
         newly initialized: […] You should probably TRAIN this model on a down-stream task to be able to use it for \
         predictions and inference.\"",
    ),
    row(
        "SC0511",
        "",
        SILENT,
        "a hand-written loop under `mixed_float16` without LossScaleOptimizer loses them, without a message",
        "`fit` under `mixed_float16` scales the loss by itself; a hand-written loop has to do it itself, and there is no message.",
    ),
    row(
        "SC0512",
        "",
        [Silent, Silent, Silent, RaisesLater],
        "biases this step (a gradient of 101.0 instead of 81.2 for 3 + 2); Keras 3 fails on it",
        "`fit` on 2.3 and tf_keras averages the replicas' means, and so biases this step, while the loss it shows is \
         right; Keras 3 fails: \"Inputs to operation AddN of type AddN must have the same size and shape.\"",
    ),
    row(
        "SC0513",
        "",
        SILENT,
        "the batch of `fit` is global, too; there is no message",
        "The same meaning: the batch of `fit` and of `Dataset.batch` is global. There is no message.",
    ),
    row(
        "SC0514",
        "",
        [Raises, Raises, Raises, Silent],
        "a loss with its default reduction raises a ValueError in a hand-written loop under a strategy; Keras 3 adds the \
         gradients up without a message",
        "Keras 2 raises a ValueError that asks for the reduction SUM or NONE where a loss with the default reduction is \
         used under a strategy outside of `fit`; Keras 3 gives no message. The documented way is \
         `tf.reduce_sum(per_example) / global_batch_size`.",
    ),
    row(
        "SC0515",
        "",
        SILENT,
        "each replica updates its own copy without a message: the copies differ from then on",
        "TensorFlow's documentation promises an error; 2.3, 2.6 and 2.18 let each replica update its own copy without a \
         message.",
    ),
    row(
        "SC0516",
        "",
        SILENT,
        "",
        "There is no message. BERT's README mentions a high variance on small data.",
    ),
    row(
        "SC0517",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message; the loss stays near ln(classes) and the accuracy at the share of one class.",
    ),
    row(
        "SC0518",
        "",
        [Raises; 4],
        "raises a KeyError that names only the key",
        "`history.history[\"val_loss\"]` raises a KeyError that names only the key.",
    ),
    row(
        "SC0520",
        "",
        [Raises; 4],
        "",
        "`KeyboardInterrupt`, at the current line of Python.",
    ),
    row(
        "SC0601",
        "",
        [Raises; 4],
        "ResourceExhaustedError: OOM when allocating tensor with shape…, in the first step",
        "\"ResourceExhaustedError: OOM when allocating tensor with shape…\" in the first step; `torch.OutOfMemoryError` in \
         PyTorch.",
    ),
    row(
        "SC0602",
        "",
        SILENT,
        "no message until memory runs out",
        "There is no message until memory runs out.",
    ),
    row("SC0603", "", SILENT, "", "The same without a message."),
    row(
        "SC0604",
        "",
        [Raises; 4],
        "",
        "\"RuntimeError: Virtual devices cannot be modified after being initialized\"; for memory growth \"Physical devices \
         cannot be modified after being initialized\".",
    ),
    row(
        "SC0607",
        "",
        [Raises; 4],
        "ResourceExhaustedError: OOM when allocating tensor with shape…",
        "\"ResourceExhaustedError: OOM when allocating tensor with shape…\"; `torch.OutOfMemoryError` in PyTorch. On the CPU \
         the operating system ends the process.",
    ),
    row(
        "SC0608",
        "",
        [Raises; 4],
        "ResourceExhaustedError: OOM when allocating tensor with shape…, and `fit` is over",
        "`fit` ends with \"ResourceExhaustedError: OOM when allocating tensor with shape…\". The trainer of Hugging Face \
         begins again with half the batch (`auto_find_batch_size`), which changes the global batch.",
    ),
    row("SC0701", "", SILENT, SAYS_NOTHING, NOTHING_IS_SAID),
    row(
        "SC0702",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message: sorted labels leave training all 0 and validation all 1.",
    ),
    row("SC0703", "", SILENT, SAYS_NOTHING, NOTHING_IS_SAID),
    row(
        "SC0704",
        "",
        [Raises; 4],
        "raises a ValueError in `fit`",
        "\"Data cardinality is ambiguous: x sizes: 16, y sizes: 8. Make sure all arrays contain the same number of \
         samples.\"",
    ),
    row(
        "SC0705",
        "",
        SILENT,
        "",
        "There is no message: `batch_size` is ignored beside a Dataset, on every version.",
    ),
    row(
        "SC0706",
        "",
        [Raises, Raises, Raises, Silent],
        "",
        "Keras 2: \"ValueError: When providing an infinite dataset, you must specify the number of steps to run\"; Keras 3 \
         never ends.",
    ),
    row(
        "SC0707",
        "too few",
        SILENT,
        SAYS_NOTHING,
        "Too few steps: there is no message. Too many: \"Your input ran out of data; interrupting training.\"",
    ),
    row(
        "SC0707",
        "too many",
        [Warns; 4],
        "warns, and ends the whole training",
        "",
    ),
    row(
        "SC0804",
        "",
        SILENT,
        "",
        "TensorFlow has a TPUStrategy; it needs a TPU.",
    ),
    row(
        "SC0805",
        "",
        [Depends; 4],
        "TensorFlow raises a ValueError for some of these; for the same address twice it waits, with no message",
        "An unknown task type, an index out of range and an unknown job are ValueErrors; the same address twice, or a worker \
         that is missing, waits without a message.",
    ),
    row(
        "SC0806",
        "",
        SILENT,
        "TensorFlow trains with one worker, and there is no message",
        "Without TF_CONFIG a MultiWorkerMirroredStrategy has one worker; there is no message.",
    ),
    row(
        "SC0807",
        "",
        SILENT,
        "TensorFlow waits, with no message",
        "It waits for the missing worker; there is no message.",
    ),
    row(
        "SC0901",
        "",
        [Raises; 4],
        "",
        "transformers: \"OSError: no-such-checkpoint is not a local folder and is not a valid model identifier listed on \
         'https://huggingface.co/models'\".",
    ),
    row(
        "SC0903",
        "",
        [Warns; 4],
        "transformers warns and goes on",
        "transformers warns (\"You are using a model of type longformer to instantiate a model of type bert. This is not \
         supported for all configurations of models and can yield errors.\") and goes on.",
    ),
    row(
        "SC0904",
        "",
        [Raises; 4],
        "",
        "transformers: a RuntimeError for a wrong shape, a warning only for a missing tensor (\"Some weights … were not \
         initialized from the model checkpoint\").",
    ),
    row(
        "SC0905",
        "",
        SILENT,
        "",
        "There is no message until an id is out of range.",
    ),
    row(
        "SC0906",
        "",
        [RaisesLater; 4],
        "constructs the strategy without a message, and fails at the first use",
        "Constructs the strategy without a message, and fails at the first use.",
    ),
    row(
        "SC0914",
        "",
        [Raises, Raises, Raises, Silent],
        "fails in `fit`; Keras 3 trains nothing without a message",
        "2.3: \"UnboundLocalError: local variable 'logs' referenced before assignment\"; 2.4 and 2.6: \"Expect x to be a \
         non-empty array or dataset.\"; tf_keras 2.18: \"Expected input data to be non-empty.\"; Keras 3: no error, an \
         empty history.",
    ),
    row(
        "SC0915",
        "",
        [Depends; 4],
        "",
        "Differs by argument; `batch_size = 0` trains anyway on TensorFlow 2.3 to 2.6 and Keras 3.",
    ),
];
