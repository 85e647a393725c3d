//! Habits on models and on what training, evaluation and prediction return.

use super::Habit;

pub(super) const SPARSE_LOSS: &[Habit] = &[Habit(
    "label_smoothing(_)",
    "~CategoricalCrossentropy { from_logits: true }.label_smoothing({0})",
    "both losses take class numbers here, and the categorical one can smooth them",
)];

/// On one of what `variables()` returns: a name and a tensor.
pub(super) const VARIABLE: &[Habit] = &[
    Habit(
        "shape | shape() | dims | dims() | size()",
        "{it}.1.shape().to_vec()",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
    Habit(
        "numpy() | value() | values() | data | tolist() | value | values | to_numpy() | detach() | item()",
        "{it}.1.iter::<f32>().collect::<Vec<_>>()",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
    Habit(
        "name | name()",
        "{it}.0",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
    Habit(
        "dtype | dtype()",
        "{it}.1.dtype()",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
    Habit(
        "numel() | num_elements() | len() | size",
        "{it}.1.num_elements()",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
];

pub(super) const MODEL: &[Habit] = &[
    Habit(
        "(_) | (..)",
        "{it}.predict({0})?",
        "a model is no function: `predict` takes a text, a list of texts or a data set",
    ),
    Habit(
        "what_if(_)",
        "~{it}.predict_with([\"…\"], {0})?",
        "`what_if` asks a run that `start!` began; a model predicts texts under a change",
    ),
    Habit(
        "tokenizer.encode(_, max_length = _) | tokenizer(_, max_length = _)",
        "{ let mut ids = {it}.tokenizer().ids({next})?; ids.truncate({max_length}); ids }",
        "`ids` returns the ids of the whole text, and `truncate` cuts them; `fit!` and `predict` cut and pad texts themselves, with \
           `max_length` of `fit!`",
    ),
    Habit(
        "tokenizer.encode(_) | tokenizer.encode(..) | tokenizer(\"\")",
        "{it}.tokenizer().ids({next})?",
        "a model has its tokenizer, and `ids` returns the ids of a text; `fit!` and `predict` take texts and encode them",
    ),
    Habit(
        "tokenizer.tokenize(_) | tokenizer.tokenize(..)",
        "{it}.tokenizer().pieces({next})?",
        "a model has its tokenizer, and `pieces` returns the pieces of a text",
    ),
    Habit(
        "tokenizer.decode(_) | tokenizer.decode(..)",
        "{it}.tokenizer().decode({next})",
        "a model has its tokenizer: `decode` takes the ids",
    ),
    Habit(
        "tokenizer(_) | tokenizer(..)",
        "~texts.iter().map(|text| {it}.tokenizer().ids(text)).collect::<Result<Vec<_>, _>>()?",
        "`fit!`, `evaluate!` and `predict` take texts, encode, truncate and pad them; the length is `max_length` of `fit!`",
    ),
    Habit(
        "tokenizer | tokenizer.",
        "{it}.tokenizer()",
        "a model has its tokenizer: `ids(text)?`, `pieces(text)?` and `decode(&ids)`",
    ),
    Habit(
        "::new(..)",
        "~Sequential([Dense(8).activation(\"relu\").input_shape(4), Dense(3)])?",
        "`Sequential` is a function that takes all its layers at once, as a list",
    ),
    Habit(
        "trainable = false | requires_grad = false | requires_grad_(false)",
        "{it}.freeze(\"\")?",
        "`freeze` takes the beginning of the names of variables, and `\"\"` is all of them; freeze before `compile!`",
    ),
    Habit(
        "trainable = true | requires_grad = true | requires_grad_(true)",
        "{it}.unfreeze(\"\")?",
        "`unfreeze` takes the beginning of the names of variables, and `\"\"` is all of them",
    ),
    Habit(
        "trainable | trainable = _ | requires_grad",
        "{it}.freeze(\"…\")?",
        "`freeze` and `unfreeze` take the beginning of the names of variables; `summary()` lists them",
    ),
    Habit(
        "get_weights()[_].shape() | get_weights()[_].shape | weights[_].shape() | weights[_].shape",
        "{it}.variables()[{index}].1.shape().to_vec()",
        "a variable is a pair, its name and its values: `.0` and `.1`",
    ),
    Habit(
        "layers() | get_layers()",
        "~{it}.variables()",
        "the layers of a model are not listed one by one: `summary()` shows them, and `variables()` has their weights as pairs, \
           with the name and the values of each",
    ),
    Habit(
        "get_weights() | weights() | state_dict() | layers[_].get_weights() | layers[_].weights | get_layer(..).get_weights()",
        "{it}.variables()",
        "the names of all variables, with their values",
    ),
    Habit(
        "layers[_] | get_layer(..)",
        "~{it}.freeze(\"{part}\")?",
        "a layer is known by the beginning of the names of its variables, which `summary()` lists",
    ),
    Habit(
        "layers | weights | variables | trainable_variables | non_trainable_variables | trainable_weights \
           | parameters() | named_parameters()",
        "{it}.summary()",
        "`summary()` lists the layers and the variables; a run shows statistics of them: `start!(model, data)?.weights()?`",
    ),
    Habit(
        "save(_, _) | save_model(_) | save_weights(_) | save_weights(_, _)",
        "{it}.save({folder})?",
        "a model is saved as a folder, with its layers and weights; `Sequential::load` or `BertFor…::from_pretrained` reads it",
    ),
    Habit(
        "load_weights(..) | load_state_dict(..) | load_model(..) | set_weights(..) | load(..)",
        "~Sequential::load({..})?",
        "a saved model is loaded as a new one, by its folder; a model of BERT by `BertFor…::from_pretrained(\"folder\", 2)?`",
    ),
    Habit(
        "optimizer.learning_rate = _ | optimizer.lr = _",
        "compile!({it}, optimizer = Adam::new(…), …)?",
        "the optimizer belongs to `compile!`; while a run of `start!` is paused, `run.set_learning_rate(pin(0.01))?` changes the rate",
    ),
    Habit(
        "optimizer.learning_rate | optimizer.lr | optimizer.get_lr() | optimizer.param_groups",
        "~history[\"learning_rate\"]",
        "the history that `fit!` returns has the rate of each epoch, and the receipt of `compile!` shows it over the run",
    ),
    Habit(
        "optimizer | optimizer = _ | learning_rate | learning_rate = _ | lr | lr = _",
        "compile!({it}, optimizer = Adam::new(…), …)?",
        "the optimizer belongs to `compile!`; while a run of `start!` is paused, `run.set_learning_rate(pin(0.01))?` changes the rate",
    ),
    Habit(
        "bert.freeze() | classifier.freeze() | encoder.freeze() | base_model.freeze()",
        "~{it}.freeze(\"bert\")?",
        "`freeze` and `unfreeze` take the beginning of the names of variables; `summary()` lists them",
    ),
    Habit(
        "tokenize(_) | encode(_)",
        "{it}.tokenizer().ids({0})?",
        "a model has its tokenizer: `ids` returns the numbers of the tokens, `tokens` their texts",
    ),
    Habit(
        "count_params() | num_params() | n_params | num_parameters",
        "{it}.num_parameters()",
        "the number of all weights",
    ),
    Habit(
        "to(..) | cuda() | cpu() | gpu() | to_device(..)",
        "%device cuda:0",
        "a model is created on the device of its strategy, or on the default device: choose it before the model is created",
    ),
    Habit(
        "train(..) | eval() | train_mode() | eval_mode()",
        "",
        "leave the line out: `fit!` uses dropout, `predict` and `evaluate!` do not",
    ),
    Habit(
        "zero_grad() | step() | backward() | zero_grad(..)",
        "{it}.apply({it}.gradients(&…)?)?",
        "`fit!` makes the steps; a step by hand is `gradients` of a data set and `apply`, and gradients start at zero by themselves",
    ),
    Habit(
        "train_on_batch(_) | train_step(_) | partial_fit(_)",
        "fit!({it}, {0}, epochs = 1)?",
        "`fit!` makes the batches; a step by hand is `{it}.apply({it}.gradients({0})?)?`",
    ),
    Habit(
        "train_on_batch(..) | train_step(..) | fit_generator(..) | partial_fit(..)",
        "fit!({it}, …, epochs = 1)?",
        "`fit!` makes the batches; a step by hand is `{it}.apply({it}.gradients(&data)?)?`",
    ),
    Habit(
        "test_on_batch(..) | test_step(..) | evaluate_generator(..) | score(..)",
        "evaluate!({it}, …)?",
        "`evaluate!` computes the loss and the metrics of `compile!`",
    ),
    Habit(
        "push_to_hub(..)",
        "{it}.save_pretrained(\"…\")?",
        "nothing is uploaded from here: `save_pretrained` writes the folder that Hugging Face's `hf upload` takes",
    ),
    Habit(
        "to_onnx(_) | onnx(_) | save_onnx(_) | onnx_export(_)",
        "{it}.export_onnx({0})?",
        "`export_onnx` writes a BERT or a `Sequential` as one file, which onnxruntime runs; `export_onnx_int8` with weights in 8 bits",
    ),
    Habit(
        "to_onnx(..) | onnx(..) | save_onnx(..) | onnx_export(..) | export(..)",
        "~{it}.export_onnx(\"model.onnx\")?",
        "`export_onnx` writes a BERT or a `Sequential` as one file, which onnxruntime runs; `export_onnx_int8` with weights in 8 bits",
    ),
    Habit(
        "to_tflite(..) | to_torchscript(..) | to_coreml(..) | to_openvino(..)",
        "~{it}.export_onnx(\"model.onnx\")?",
        "the format of other runtimes that is written here is ONNX; `save_pretrained` writes the folder that Hugging Face's exporters read",
    ),
    Habit(
        "to_json() | get_config() | to_yaml()",
        "{it}.summary()",
        "a model has no text form that it could be read from; `summary()` shows it",
    ),
    Habit(
        "predict_classes(_) | predict_proba(_) | predict_on_batch(_) | predict_step(_) | forward(_) | call(_) | transform(_)",
        "{it}.predict({0})?",
        "`predict` returns classes and probabilities: `labels()`, and `rows[0].probabilities`",
    ),
    Habit(
        "add(..) | append(..)",
        "~Sequential([Dense(8).activation(\"relu\").input_shape(4), …])?",
        "`Sequential` takes all its layers at once, and a model does not change afterwards",
    ),
    Habit(
        "metrics_names | metrics | metrics = _",
        "compile!({it}, metrics = [accuracy()], …)?",
        "the metrics belong to `compile!`; the results of `evaluate!` have their names",
    ),
    Habit(
        "config.",
        "~{it}.summary()",
        "`summary()` shows the layers, their sizes and their variables; the settings are in `config.json` of the checkpoint",
    ),
    Habit(
        "name | input_shape | output_shape | inputs | outputs | input | output | dtype | config | shape | built",
        "{it}.summary()",
        "`summary()` shows the layers, their shapes and their variables",
    ),
    Habit(
        "loss | history | stop_training | stop_training = _",
        "~let history = fit!({it}, …)?;",
        "`fit!` returns the history: `history[\"loss\"]` has one loss an epoch; `EarlyStopping` ends a run",
    ),
    Habit(
        "plot() | plot(..) | plot_model(..) | print_summary()",
        "{it}.summary()",
        "`summary()` shows the layers; `history.plot()` draws a run",
    ),
    Habit(
        "classes_ | id2label | labels | class_names | classes",
        "{it}.label_names()",
        "the names of the classes, in the order of the outputs",
    ),
    Habit(
        "num_labels | num_classes | num_labels() | n_classes_",
        "{it}.label_names().len()",
        "the names of the classes, in the order of the outputs",
    ),
    Habit(
        "device | is_cuda | device()",
        "{it}.placement()?",
        "the placement report shows which variable is on which device",
    ),
    Habit(
        "half() | bfloat16() | float()",
        "~set_global_policy(\"mixed_bfloat16\")?",
        "the precision is chosen before the model is created",
    ),
    Habit(
        "reset_states() | reset_metrics() | reset_state()",
        "",
        "leave the line out: `evaluate!` and each epoch of `fit!` start with new metrics",
    ),
    Habit(
        "generate(..)",
        "",
        "models of BERT do not generate texts; `BertForMaskedLM` fills blanks: `model.fill([\"a [MASK] day\"])?`",
    ),
    Habit(
        "gradient_checkpointing_enable() | enable_gradient_checkpointing()",
        "",
        "`fit!` takes `gradient_accumulation_steps` and small batches where memory is short; `memory_plan` shows what a step needs",
    ),
    Habit(
        "*",
        "~{it}.variables()",
        "a model has no fields of this name; its weights are variables with names such as `dense.weight`: `variables()` has their values, \
           `summary()` its layers",
    ),
];

pub(super) const HISTORY: &[Habit] = &[
    Habit(
        "history[\"_\"][-1]",
        "{it}[{index}].last().copied().unwrap_or(f64::NAN)",
        "the history is indexed by the name of what was measured; the last value is that of the last epoch",
    ),
    Habit(
        "history[_]",
        "{it}[{index}]",
        "the history is indexed by the name of what was measured",
    ),
    Habit(
        "history.",
        "~{it}[\"loss\"]",
        "the history is indexed by the name of what was measured, and `names()` lists the names",
    ),
    Habit(
        "history | history()",
        "{it}[\"loss\"]",
        "the history is indexed by the name of what was measured, and `names()` lists the names",
    ),
    Habit(
        "acc | accuracy",
        "{it}[\"accuracy\"]",
        "the values of all epochs, as in `history.history[\"accuracy\"]` of Keras",
    ),
    Habit(
        "val_acc | val_accuracy",
        "{it}[\"val_accuracy\"]",
        "the values of all epochs, as in `history.history[\"val_accuracy\"]` of Keras",
    ),
    Habit(
        "lr | learning_rate",
        "{it}[\"learning_rate\"]",
        "the learning rate at the end of each epoch",
    ),
    Habit(
        "loss | val_loss | val_* | f1 | mae | mse | auc | precision | recall",
        "{it}[\"{name}\"]",
        "the values of all epochs, as in `history.history` of Keras",
    ),
    Habit(
        "keys() | columns | keys | history.keys() | history.keys",
        "{it}.names()",
        "the names of what was measured",
    ),
    Habit("epoch", "{it}.epochs", "a record for each epoch"),
    Habit(
        "len() | num_epochs",
        "{it}.epochs.len()",
        "`epochs` has a record for each epoch",
    ),
    Habit(
        "last() | tail(..)",
        "{it}.epochs.last()",
        "`epochs` has a record for each epoch",
    ),
    Habit(
        "iter()",
        "{it}.epochs.iter()",
        "`epochs` has a record for each epoch",
    ),
    Habit(
        "for",
        "&{it}.epochs",
        "`epochs` has a record for each epoch",
    ),
    Habit(
        "[_]",
        "{it}.epochs[{index}]",
        "`epochs` has a record for each epoch; a name gives the values of all epochs: `history[\"loss\"]`",
    ),
    Habit(
        "items() | values() | to_csv(..) | save(..) | to_pandas() | to_json()",
        "~callbacks = [CsvLogger::new(\"log.csv\")?]",
        "`CsvLogger` writes an epoch a line while `fit!` runs",
    ),
    Habit(
        "plot_loss() | plot_history() | show() | draw() | plot(..)",
        "{it}.plot()",
        "`plot()` draws the loss and the metrics",
    ),
    Habit(
        "best_score | best | best_loss",
        "{it}.best_epoch",
        "the epoch with the best value of the monitor",
    ),
    Habit(
        "params | model | training_time",
        "{it}.seconds()",
        "the history has what was measured, and the seconds of the run",
    ),
];

pub(super) const EVALUATION: &[Habit] = &[
    Habit(
        "[\"loss\"] | [0] | loss()",
        "{it}.loss",
        "the loss is a field, and `metric(\"accuracy\")` finds a metric by its name",
    ),
    Habit(
        "[\"acc\"] | acc | accuracy | score | accuracy()",
        "{it}.metric(\"accuracy\").unwrap_or(f64::NAN)",
        "`metric` finds a metric of `compile!` by its name; it is `None` if it was not measured, for which NaN stands here",
    ),
    Habit(
        "[\"_\"]",
        "{it}.metric({index}).unwrap_or(f64::NAN)",
        "`metric` finds a metric of `compile!` by its name; it is `None` if it was not measured, for which NaN stands here",
    ),
    Habit(
        "[1]",
        "{it}.metrics[0].value.unwrap_or(f64::NAN)",
        "`metrics` has the metrics in the order of `compile!`; the loss is the field `loss`",
    ),
    Habit(
        "[2]",
        "{it}.metrics[1].value.unwrap_or(f64::NAN)",
        "`metrics` has the metrics in the order of `compile!`; the loss is the field `loss`",
    ),
    Habit(
        "[_]",
        "{it}.metrics[…].value.unwrap_or(f64::NAN)",
        "`metrics` has the metrics in the order of `compile!`; the loss is the field `loss`",
    ),
    Habit(
        "(_, _)",
        "({it}.loss, {it}.metrics[0].value.unwrap_or(f64::NAN))",
        "an evaluation is one value: its field `loss`, and `metric(\"accuracy\")` or `metrics`",
    ),
    Habit(
        "f1 | macro_f1 | precision | recall | auc | mae | mse | rmse | mcc | perplexity",
        "{it}.metric(\"{name}\").unwrap_or(f64::NAN)",
        "`metric` finds a metric of `compile!` by its name; it is `None` if it was not measured, for which NaN stands here",
    ),
    Habit(
        "items() | keys() | iter() | values() | to_dict()",
        "{it}.metrics.iter()",
        "`metrics` has the names and values of the metrics",
    ),
    Habit(
        "for",
        "&{it}.metrics",
        "`metrics` has the names and values of the metrics",
    ),
];
