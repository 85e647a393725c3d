//! Arguments of the calls, and scopes: SC01 and SC02.

use super::Does::{Depends, Nothing, Raises, RaisesLater, Silent, Warns};
use super::{SILENT, Situation, row};

pub(super) const CALLS: &[Situation] = &[
    row(
        "SC0101",
        "",
        [Raises; 4],
        "",
        "A `TypeError` when the line runs. TensorFlow 2.3 to 2.6 name the arguments; tf_keras 2.18 also lists legacy \
         names, two of which raise errors themselves; Keras 3 names the first unknown argument only. Some \
         names that are unknown here are arguments of TensorFlow: `run_eagerly`, `loss_weights` and \
         `weighted_metrics` in every version, `jit_compile` since Keras 2.8. The card names the versions.",
    ),
    row(
        "SC0102",
        "",
        [Raises, Silent, Silent, Silent],
        "TensorFlow ≥ 2.4 accepts it on a single device without any strategy; TensorFlow 2.3 rejects the name \
         everywhere (there it is `experimental_steps_per_execution`)",
        "TensorFlow ≥ 2.4 accepts it on a single device without any strategy; TensorFlow 2.3 rejects the name everywhere, \
         inside a scope too (there it is `experimental_steps_per_execution`).",
    ),
    row(
        "SC0103",
        "steps_per_execution",
        [Raises, Depends, Depends, RaisesLater],
        "0 counts as 1 without a message on TensorFlow 2.4 to tf_keras 2.18; on Keras 3 it fails in `fit`. Other \
         wrong values fail in `compile` or only in `fit`, by version",
        "`steps_per_execution = 0` counts as 1 on TensorFlow 2.4 to tf_keras 2.18 without a message; on Keras 3 \
         it fails in `fit`. On 2.4 to tf_keras 2.18, −1 fails in `fit`, and 2.5 and '16' fail in `compile` with \
         \"Cannot convert 2.5 to EagerTensor of dtype int64\"; on Keras 3 the latter fail in `fit`. 2.3 does not \
         know the argument.",
    ),
    row(
        "SC0103",
        "batch_size",
        [Silent, Silent, Raises, Silent],
        "`batch_size = 0` trains anyway on TensorFlow 2.3 to 2.6 and on Keras 3; tf_keras 2.18 raises \
         \"Expected batch_size to be positive. Received is 0.\"",
        "",
    ),
    row(
        "SC0103",
        "learning_rate",
        SILENT,
        "accepts a negative rate without a message",
        "",
    ),
    row(
        "SC0104",
        "",
        [Raises; 4],
        "raises a TypeError in every version, about the name that the version does not have",
        "A `TypeError` in every version: 2.3 does not know `steps_per_execution`; 2.4 and later do not take \
         `experimental_steps_per_execution` beside it.",
    ),
    row(
        "SC0105",
        "optimizer",
        [Raises; 4],
        "raises a ValueError in `compile`",
        "A wrong optimizer fails in `compile` (\"Unknown optimizer: …\"), a wrong loss or metric compiles and fails at \
         the first batch of `fit`.",
    ),
    row(
        "SC0105",
        "fit",
        [RaisesLater; 4],
        "compiles, and fails at the first batch of `fit`",
        "",
    ),
    row(
        "SC0106",
        "",
        [Raises; 4],
        "raises a TypeError about an unknown argument, which does not say where it belongs",
        "A `TypeError` about an unknown argument, which does not say where it belongs.",
    ),
    row(
        "SC0107",
        "",
        SILENT,
        "",
        "The same: the argument changes neither gradients nor steps nor all-reduces, in every version that has it.",
    ),
    row(
        "SC0108",
        "",
        SILENT,
        "also calls it once per execution, without a message",
        "There is no message. `on_train_batch_end` runs once per execution with the number of its last batch: 3, \
         7, … for 4.",
    ),
    row(
        "SC0109",
        "",
        [Raises, Silent, Silent, Silent],
        "",
        "2.3 with transformers 4.17.0: TypeError: Invalid keyword argument(s) in `compile`: {'steps_per_execution'}. \
         transformers 4.18.0 on 2.3 fails in another way (\"initial_value must be specified.\") until a number is \
         given. A later TensorFlow fixes it; a strategy changes nothing.",
    ),
    row(
        "SC0110",
        "",
        SILENT,
        "",
        "There is no message; the documentation asks to compile again after `trainable` was changed.",
    ),
    row(
        "SC0111",
        "",
        [Silent, Silent, Silent, Warns],
        "Keras 2 trains without a message; Keras 3 warns",
        "Keras 2 trains without a message; Keras 3 warns: \"The model does not have any trainable weights.\"",
    ),
    row(
        "SC0112",
        "",
        [Raises; 4],
        "raises at the beginning of `fit` or `evaluate`",
        "Keras 2: \"You must compile your model before training/testing. Use `model.compile(optimizer, loss)`.\"; \
         Keras 3: \"You must call `compile()` before using the model.\"",
    ),
    row(
        "SC0113",
        "",
        [RaisesLater; 4],
        "compiles, and fails in `fit`; 2.3 to 2.6 blame the gradients for it",
        "TensorFlow 2.3–2.6: \"No gradients provided for any variable: […]\"; tf_keras 2.18: \"No loss found. You may \
         have forgotten to provide a `loss` argument in the `compile()` method.\"; Keras 3: \"No loss to compute. Provide \
         a `loss` argument in `compile()`.\"",
    ),
    row(
        "SC0114",
        "",
        [Raises; 4],
        "",
        "A `TypeError` when the line runs: `fit() got an unexpected keyword argument 'epoch'`. Some names that are \
         unknown here are arguments there, such as `sample_weight` and `validation_batch_size`; the card says so.",
    ),
    row(
        "SC0115",
        "",
        [Raises; 4],
        "",
        "A `TypeError` when the line runs: `evaluate() got an unexpected keyword argument 'batchsize'`. Some names that \
         are unknown here are arguments there, such as `sample_weight` and `return_dict`; the card says so.",
    ),
    row(
        "SC0116",
        "",
        SILENT,
        "uses RMSprop at 0.001 without a message",
        "Uses RMSprop at 0.001 without a message.",
    ),
    row(
        "SC0117",
        "",
        [Raises; 4],
        "raises a SyntaxError: Python refuses a repeated keyword argument",
        "A `SyntaxError`: Python refuses a repeated keyword argument.",
    ),
    row(
        "SC0118",
        "",
        [Nothing, Nothing, Depends, Depends],
        "",
        "Keras 3 ignores `validation_split` where `validation_data` is given. Of two kinds of gradient clipping, \
         TensorFlow 2.3 to tf_keras 2.18 accept `clipnorm` with `clipvalue`; tf_keras 2.18 refuses `clipnorm` with \
         `global_clipnorm`; Keras 3 refuses any two.",
    ),
    row(
        "SC0119",
        "",
        [Raises, Silent, Silent, Silent],
        "",
        "2.3 knows `experimental_steps_per_execution` only and raises a TypeError; from 2.4 on the name is accepted \
         everywhere.",
    ),
    row(
        "SC0120",
        "optimizer",
        [Raises; 4],
        "raises a ValueError in `compile`: Could not interpret optimizer identifier",
        "A value that is not an optimizer fails in `compile` (\"Could not interpret optimizer identifier\"); losses and \
         metrics are resolved at the first batch of `fit`.",
    ),
    row(
        "SC0120",
        "fit",
        [RaisesLater; 4],
        "compiles, and fails at the first batch of `fit`, where losses and metrics are resolved",
        "",
    ),
    row(
        "SC0121",
        "",
        SILENT,
        "",
        "`model.fit` and `model.compile` are not rejected in a callback: they run between two batches.",
    ),
    row("SC0129", "", [Raises; 4], "", "Raises a NameError."),
    row(
        "SC0201",
        "outside",
        SILENT,
        "TensorFlow would compile this and train on one device without a message",
        "With model and `compile` outside, every version compiles and trains on one device without a message. \
         With `compile` inside, Keras 2 raises a ValueError there, Keras 3 only in `fit`. A model that is not \
         built yet may be compiled inside the scope: Keras 2 then creates its variables under the strategy, \
         Keras 3 refuses it in `fit` with an InvalidArgumentError.",
    ),
    row(
        "SC0201",
        "inside",
        [Raises, Raises, Raises, RaisesLater],
        "raises a ValueError here; Keras 3 compiles, and fails only in `fit`",
        "",
    ),
    row(
        "SC0202",
        "",
        [Silent, Silent, RaisesLater, RaisesLater],
        "2.3 to 2.6 accept it without a message; later versions fail in `fit`",
        "TensorFlow 2.3 and 2.6 accept it without a message; tf_keras 2.18 raises a KeyError (\"The optimizer \
         cannot recognize variable …\") and Keras 3 a ValueError (\"Unknown variable: …\"), both in `fit`.",
    ),
    row(
        "SC0203",
        "",
        SILENT,
        "computes on one device without a message",
        "A loop that never calls `strategy.run` computes on one device without a message. Applying its gradients \
         outside of any scope raises a TypeError on 2.3 and 2.4 and updates the first replica only on 2.6; later versions \
         update all copies.",
    ),
    row(
        "SC0204",
        "",
        [Raises; 4],
        "raises a RuntimeError when the inner scope is entered",
        "\"RuntimeError: Mixing different tf.distribute.Strategy objects: … is not …\"",
    ),
    row(
        "SC0205",
        "",
        [Depends, Depends, Depends, Raises],
        "raises in `fit` or trains under the strategy: it differs by version and kind of model",
        "Keras 2 raises in `fit` when it makes the optimizer's slots; a model that was not built trains under the \
         strategy. Keras 3: \"RuntimeError: Mixing different tf.distribute.Strategy objects\".",
    ),
];
