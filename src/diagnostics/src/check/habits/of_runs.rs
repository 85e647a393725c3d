//! Habits on runs of `start!`, on what they return, and on one prediction.

use super::Habit;

pub(super) const RUN: &[Habit] = &[
    Habit(
        "loss | loss() | last_loss | current_loss | losses.last() | losses[-1]",
        "{it}.history()?.steps.last().map(|step| step.loss)",
        "the history of a run has the loss and the rate of each step that was made",
    ),
    Habit(
        "losses | losses()",
        "{it}.history()?.steps.iter().map(|step| step.loss).collect::<Vec<_>>()",
        "the history of a run has the loss and the rate of each step that was made",
    ),
    Habit(
        "global_step | current_step | step_count | iteration | iterations | global_steps | num_steps",
        "{it}.history()?.steps.len()",
        "the history of a run has an entry for each step that was made",
    ),
    Habit(
        "lr | lr() | learning_rate | learning_rate() | get_lr()",
        "{it}.history()?.steps.last().map(|step| step.learning_rate)",
        "the history of a run has the loss and the rate of each step that was made",
    ),
    Habit(
        "history.loss | history.losses",
        "{it}.history()?[\"loss\"]",
        "`history()` returns what was measured; a name gives the values of all epochs",
    ),
    Habit(
        "set_lr(_) | set_rate(_)",
        "{it}.set_learning_rate({0})?",
        "`pin(1e-5)` fixes the rate, `scale(0.5)` multiplies that of the schedule",
    ),
    Habit(
        "step() | next() | advance() | step_once() | train_step() | train_on_batch(..) | training_step() | optimizer_step()",
        "{it}.step(1)?",
        "`step` takes how many optimizer steps are made",
    ),
    Habit(
        "steps(_) | next(_) | advance(_) | forward(_)",
        "{it}.step({0})?",
        "`step` takes how many optimizer steps are made",
    ),
    Habit(
        "goto(_) | go_to(_) | run_to(_) | continue_to(_) | run_until(_) | seek(_)",
        "{it}.until({0})?",
        "`until` goes on to a step, and `rewind` back to one",
    ),
    Habit(
        "back() | undo() | step_back() | previous() | back(_) | undo(_) | step_back(_)",
        "~{it}.rewind(…)?",
        "`rewind` takes the number of the step that the run goes back to, with the same bits",
    ),
    Habit(
        "resume() | continue_() | cont() | go() | run() | train() | fit() | play()",
        "{it}.finish()?",
        "`finish` goes on to the end, or to a condition of `break_when`",
    ),
    Habit(
        "pause() | interrupt() | halt()",
        "",
        "between two cells a run stands; while a cell trains, the button Interrupt pauses the run, and `step`, `until` or `finish` \
           go on",
    ),
    Habit(
        "watch(_)",
        "~{it}.break_when(update_ratio().above(1e-2).of({0}))?",
        "a condition stops the run: of a variable, how much a step changes it",
    ),
    Habit(
        "break_when(\"\") | break_at(_) | stop_when(_) | breakpoint(_)",
        "~{it}.break_when(loss().above(2.0))?",
        "conditions are `loss()`, `grad_norm()` and `update_ratio()` with `above`, `spike(2.0)`, `nan()`, `every(10)` and \
           `accuracy_drop()`; `|` joins them",
    ),
    Habit(
        "weights(_) | gradients(_) | updates(_) | weight(_) | gradient(_)",
        "~{it}.weights()?",
        "`weights`, `gradients` and `updates` show all layers; `model.variables()` has the values",
    ),
    Habit(
        "explain() | diagnose() | explain | diagnose",
        "{it}.why()?",
        "`why` says what the coming step depends on and what went wrong in the last one",
    ),
    Habit(
        "evaluate(_) | eval(_) | test(_) | validate(_)",
        "~evaluate!(model, {0})?",
        "between two steps the model of the run can be evaluated and predicts as it stands",
    ),
    Habit(
        "predict(_)",
        "~model.predict({0})?",
        "between two steps the model of the run can be evaluated and predicts as it stands",
    ),
    Habit(
        "state() | status() | info() | summary() | state | status",
        "{it}.report()?",
        "`report` has the step, the losses, the conditions and the snapshots",
    ),
    Habit(
        "save(_) | save_checkpoint(_) | checkpoint(_) | save_pretrained(_)",
        "~model.save_pretrained({0})?",
        "between two steps the model of the run can be saved; `checkpoint = \"folder\"` of `start!` saves it on the way, with the \
           optimizer",
    ),
    Habit(
        "memory() | memory | memory_usage()",
        "~placement(&model)",
        "the placement has the bytes of each device, by kind",
    ),
    Habit(
        "profile() | profiler()",
        "{it}.profile(3)?",
        "`profile` takes how many steps are made and measured",
    ),
    Habit(
        "fork(_)",
        "{it}.fork()?",
        "a fork has a number; the variable that it is bound to is its name",
    ),
    Habit(
        "model | model()",
        "",
        "the model of a run is the variable that `start!` was given: between two steps it can be read",
    ),
    Habit(
        "gradients | weights | updates | batch | why | report | history | epoch | finish | data_map",
        "{it}.{name}()?",
        "it is a method",
    ),
];

/// Of the argument of the closure that `what_if` takes.
pub(super) const INTERVENTIONS: &[Habit] = &[
    Habit(
        "learning_rate(_) | lr(_) | set_learning_rate(_) | rate(_)",
        "",
        "a what-if changes what the coming step sees and computes: `label`, `example_weight`, `dropout`, `weights`, `gradients`, \
           `layer`, `head`; for another rate, `let other = run.fork()?;` and `other.set_learning_rate(1e-3)?;`",
    ),
    Habit(
        "relabel(_, _) | set_label(_, _)",
        "{it}.label({0}, {1})",
        "the row of the coming batch and its label",
    ),
    Habit(
        "set_dropout(_)",
        "{it}.dropout({0})",
        "the rate of all dropout of the coming step",
    ),
];

pub(super) const EPOCH: &[Habit] = &[
    Habit(
        "val_loss",
        "{it}.validation.as_ref().map(|it| it.loss)",
        "`validation` has the loss and the metrics of the validation data, if there were any",
    ),
    Habit(
        "accuracy | acc | f1 | macro_f1 | mae | rmse | perplexity | metric(_)",
        "~history[\"{name}\"]",
        "`metrics` has the metrics of an epoch with their names; of all epochs, `history[\"accuracy\"]`",
    ),
    Habit(
        "val_*",
        "~history[\"{name}\"]",
        "`validation` has the metrics of an epoch; of all epochs, `history[\"val_accuracy\"]`",
    ),
    Habit(
        "lr | rate",
        "{it}.learning_rate",
        "the rate of the last step of the epoch",
    ),
    Habit(
        "time | duration",
        "{it}.seconds",
        "how long the epoch trained",
    ),
];

pub(super) const PREDICTION: &[Habit] = &[
    Habit(
        "item() | value | output | value() | numpy()",
        "{it}.score",
        "of a class its probability, of a regression the number; `probabilities` has those of all classes",
    ),
    Habit(
        "argmax() | argmax(..) | class_id | index | predicted | class()",
        "{it}.class",
        "`label` is the name of the likeliest class and `class` its number, `None` for a regression",
    ),
    Habit(
        "label() | name | class_name | answer_text | label_name",
        "{it}.label",
        "`label` is the name of the likeliest class and `class` its number, `None` for a regression",
    ),
    Habit(
        "probability | prob | confidence | score() | max()",
        "{it}.score",
        "the probability of the label; `probabilities` has those of all classes",
    ),
    Habit(
        "[\"score\"] | [\"label\"] | [\"class\"] | [\"probabilities\"]",
        "{it}.{key}",
        "a prediction has fields: `label`, `class`, `score` and `probabilities`",
    ),
    Habit(
        "scores[\"_\"] | probabilities[\"_\"] | probs[\"_\"]",
        "~{it}.probabilities[…]",
        "the probabilities are in the order of the classes, `predictions.label_names`",
    ),
    Habit(
        "scores | probs | proba | softmax() | distribution",
        "{it}.probabilities",
        "the probability of each class, in the order of `label_names`",
    ),
    Habit(
        "logits | logits()",
        "~{it}.probabilities",
        "`predict` returns probabilities, after the softmax; the logits are not kept: `probability.ln()` differs from a logit by \
           one number for all classes",
    ),
];

/// Of the validation of an epoch, which there may be or not.
pub(super) const VALIDATION: &[Habit] = &[
    Habit(
        "loss | val_loss",
        "{it}.as_ref().map(|it| it.loss)",
        "an epoch has a validation if `fit!` was given data for it",
    ),
    Habit(
        "acc",
        "{it}.as_ref().and_then(|it| it.metric(\"accuracy\"))",
        "an epoch has a validation if `fit!` was given data for it",
    ),
    Habit(
        "accuracy | f1 | macro_f1 | precision | recall | auc | mae | rmse | perplexity",
        "{it}.as_ref().and_then(|it| it.metric(\"{name}\"))",
        "an epoch has a validation if `fit!` was given data for it",
    ),
];

pub(super) const ASSESSMENT: &[Habit] = &[
    Habit(
        "f1 | f1() | f1_score | f1_score() | macro_f1",
        "{it}.macro_f1()",
        "the mean of the F1 of all classes, with an interval; `classes()` has those of each",
    ),
    Habit(
        "accuracy",
        "{it}.accuracy()",
        "it is a method, and has an interval",
    ),
    Habit(
        "precision | recall | precision() | recall() | per_class | report",
        "{it}.classes()",
        "precision, recall and F1 of each class",
    ),
];
