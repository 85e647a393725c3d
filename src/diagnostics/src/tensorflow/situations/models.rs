//! Heads, losses, labels and texts: SC03 and SC04.

use super::Does::{Depends, Nothing, Raises, RaisesLater, Silent, Warns};
use super::{NOTHING_IS_SAID, SAYS_NOTHING, SILENT, Situation, row};

pub(super) const MODELS: &[Situation] = &[
    row(
        "SC0301",
        "",
        [Depends; 4],
        "fails at the first bad batch on the CPU; on a GPU the loss is NaN, no error",
        "On the CPU, at the first bad batch: \"Received a label value of 2 which is outside the valid range of [0, 2).\" \
         On a GPU: NaN, no error.",
    ),
    row(
        "SC0302",
        "",
        SILENT,
        "trains without a message (loss 2.65 instead of 0.69 on a fresh 2-class BERT)",
        "Trains without a message: on a fresh 2-class BERT the loss was 2.65 instead of 0.69. There \
         `from_logits` is false by default, in the text form `'sparse_categorical_crossentropy'` too; here that \
         text means `from_logits: true`.",
    ),
    row(
        "SC0303",
        "",
        [Silent, Depends, Warns, Warns],
        "2.3 and 2.4 give no message; later versions warn where the last layer is a softmax",
        "TensorFlow 2.3 and 2.4 give no message; from 2.6 on a warning: \"`sparse_categorical_crossentropy` \
         received `from_logits=True`, but the `output` argument was produced by a sigmoid or softmax activation \
         and thus does not represent logits. Was this intended?\"",
    ),
    row(
        "SC0303",
        "sigmoid",
        [Silent, Depends, Nothing, Nothing],
        "2.3 and 2.4 give no message; 2.6 warns where the last layer is a sigmoid or a softmax",
        "",
    ),
    row(
        "SC0304",
        "",
        [RaisesLater; 4],
        "Keras 2 raises in `fit`: Shapes (None, 1) and (None, {classes}) are incompatible; Keras 3 raises another \
         ValueError",
        "Integers with the categorical loss, Keras 2: \"ValueError: Shapes (None, 1) and (None, 3) are incompatible\"; \
         Keras 3: \"Arguments `target` and `output` must have the same rank (ndim).\" One-hot rows with the sparse loss, \
         Keras 2: \"logits and labels must have the same first dimension, got logits shape [16,3] and labels shape \
         [48]\".",
    ),
    row(
        "SC0305",
        "",
        [Depends; 4],
        "if all labels are 0 it trains without a message: loss 0.0, accuracy 1.0; with other labels it fails on \
         the CPU",
        "With labels that are all 0 it trains without a message, loss 0.0 and accuracy 1.0; otherwise \"Received \
         a label value of 1 which is outside the valid range of [0, 1).\"",
    ),
    row(
        "SC0306",
        "",
        [RaisesLater; 4],
        "raises a ValueError in `fit`: the shapes (None, {outputs}) and (None, 1) differ",
        "TensorFlow 2.3 to 2.6: \"ValueError: logits and labels must have the same shape ((None, 2) vs (None, 1))\"; \
         tf_keras 2.18: \"ValueError: `logits` and `labels` must have the same shape, received ((None, 2) vs (None, \
         1)).\"; Keras 3: \"Arguments `target` and `output` must have the same rank (ndim).\"",
    ),
    row(
        "SC0307",
        "",
        SILENT,
        "Keras uses them as classes without a message; transformers on PyTorch takes floats for several labels at once",
        "Keras uses them as classes without a message. transformers on PyTorch takes floats for several labels \
         at once, and fails later: \"Target size (…) must be the same as input size (…)\".",
    ),
    row(
        "SC0308",
        "",
        SILENT,
        "transformers gives no message: one label selects the squared error",
        "There is no message: `num_labels = 1` of transformers selects the mean squared error.",
    ),
    row(
        "SC0309",
        "",
        [Silent, Silent, Silent, RaisesLater],
        "Keras 2 broadcasts without a message; Keras 3 raises in `fit`: Incompatible shapes",
        "Keras 2 broadcasts without a message; Keras 3: \"Incompatible shapes: [16] vs. [16,2]\".",
    ),
    row(
        "SC0310",
        "",
        SILENT,
        "computes it without a message: 0.0 on most regressions; on one logit with threshold 0.5",
        "Computes it without a message: 0.0 on most regressions. On one logit it takes the threshold 0.5, so \
         that logits of 0.3 and 0.9 with the label 1 have accuracy 0.5.",
    ),
    row(
        "SC0311",
        "",
        SILENT,
        "",
        "A function given as a metric is averaged over batches. `F1Score` counts over the split since Keras 2.13; Keras \
         3's `PearsonCorrelation` averages per example and is NaN on one output.",
    ),
    row(
        "SC0312",
        "",
        SILENT,
        "",
        "transformers divides 0 by 0 when no label of a batch is left: the loss is NaN without a message.",
    ),
    row(
        "SC0313",
        "",
        [RaisesLater; 4],
        "compiles, and fails in `fit`; 2.3 to 2.6 blame the gradients for it",
        "TensorFlow 2.3–2.6 blames the gradients (\"No gradients provided for any variable\"); tf_keras 2.18: \"Target data \
         is missing. Your model was compiled with loss=…\"; Keras 3: \"None values not supported.\"",
    ),
    row(
        "SC0314",
        "",
        SILENT,
        "counts each of these as another class without a message",
        "There is no message: labels are numbers, and the accuracy is that of other classes.",
    ),
    row(
        "SC0401",
        "",
        [Depends; 4],
        "on the CPU an error: indices[0,{limit}] = {limit} is not in [0, {limit}); on a GPU zeros, no error",
        "CPU: \"indices[0,512] = 512 is not in [0, 512)\"; GPU: zeros, no error.",
    ),
    row(
        "SC0402",
        "",
        [Nothing, Nothing, Raises, Nothing],
        "transformers raises: The maximum value of input_ids must be smaller than the embedding layer's input \
         dimension",
        "transformers: \"The maximum value of input_ids (…) must be smaller than the embedding layer's input dimension \
         (…). The likely cause is some problem at tokenization time.\"",
    ),
    row("SC0403", "", SILENT, SAYS_NOTHING, NOTHING_IS_SAID),
    row(
        "SC0404",
        "",
        SILENT,
        "",
        "There is no message. PyTorch warns once: \"We strongly recommend passing in an `attention_mask` since \
         your input_ids may be padded.\"",
    ),
    row(
        "SC0405",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message. A type id of 2 or more fails on the CPU: \"indices[0,1] = 2 is not in [0, 2)\".",
    ),
    row(
        "SC0406",
        "",
        [Raises; 4],
        "",
        "The tokenizer of transformers: \"ValueError: Unable to create tensor, you should probably activate \
         truncation and/or padding with 'padding=True' 'truncation=True' to have batched tensors with the same \
         length. …\" With NumPy output there is no message.",
    ),
    row(
        "SC0407",
        "",
        SILENT,
        "",
        "There is no message; the tokenizer warns once where truncation was not asked for.",
    ),
    row(
        "SC0408",
        "",
        [Raises; 4],
        "",
        "transformers: \"ValueError: text input must be of type `str` (single example), `list[str]` (batch or single \
         pretokenized example) …\"",
    ),
    row(
        "SC0409",
        "",
        SILENT,
        "trains on them without a message",
        "An empty text trains as [CLS] [SEP] without a message; a NaN of pandas fails in the tokenizer.",
    ),
    row(
        "SC0410",
        "",
        SILENT,
        SAYS_NOTHING,
        "There is no message; `padding=\"max_length\"`, the habit of most scripts, pads every batch to the limit.",
    ),
    row(
        "SC0411",
        "",
        [Raises; 4],
        "raises a ValueError at the first batch",
        "TensorFlow 2.4 and 2.6: \"ValueError: Input 0 of layer sequential is incompatible with the layer: expected axis \
         -1 of input shape to have value 8 but received input with shape (None, 5)\"; tf_keras 2.18: \"… expected \
         shape=(None, 8), found shape=(None, 5)\"",
    ),
];
