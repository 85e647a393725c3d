//! The rules of `diagnostics` over the text of a cell of the `Trainer` or of PyTorch: the same codes and severities; places and
//! fixes are those of the Python text.

use crate::translate::thing::LossFacts;
use stratoscope_diagnostics::rules::{
    DataOfOtherHead, DroppedMicroBatches, IgnoredLabelIndex, InvalidArgumentValue,
};
use stratoscope_diagnostics::{CellSpan, Diagnostic, Label, Place, Rule, Severity};

fn at(found: Diagnostic, message: &str, labels: &[(CellSpan, &str)]) -> Diagnostic {
    let labels = labels.iter().map(|(span, text)| Label {
        place: Place::Span(*span),
        text: (*text).to_owned(),
    });
    Diagnostic {
        message: message.to_owned(),
        labels: labels.collect(),
        why: Vec::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
        arguments: Vec::new(),
        ..found
    }
}

/// An activation of PyTorch in the cell.
pub(crate) struct Applied {
    /// Where it stands.
    pub span: CellSpan,
    /// Its name as it is written: `F.softmax`.
    pub written: String,
    /// What it gets; `None` for a module.
    pub of: Option<String>,
}

/// SC0302 and SC0303 in the words of a cell of PyTorch, where losses have no `from_logits`.
pub(crate) fn in_words_of_torch(
    found: &mut Diagnostic,
    loss: &LossFacts,
    called: &str,
    activation: &str,
    applied: Option<&Applied>,
) {
    let takes_logits = loss.from_logits == Some(true);
    let label = match takes_logits {
        true => format!("applies {activation} itself"),
        false => "takes probabilities".to_owned(),
    };
    found.labels = vec![Label {
        place: Place::Span(loss.span),
        text: label,
    }];
    found.evidence.clear();
    found.fixes.clear();
    if !takes_logits {
        found.message = "the loss takes probabilities, and the outputs are logits".to_owned();
        found.why = vec![format!(
            "`{called}` takes the logarithm of what it gets, and logits may be negative or greater than 1"
        )];
        let fixed = found
            .clone()
            .fix("use `nn.BCEWithLogitsLoss()`, which takes logits");
        *found = fixed.fix("or apply `torch.sigmoid` to the outputs");
        return;
    }
    found.why = vec![format!(
        "`{called}` applies {activation} to its input; of numbers between 0 and 1 the result is nearly the same for all classes, and the model learns slowly"
    )];
    if let Some(applied) = applied {
        found.labels.push(Label {
            place: Place::Span(applied.span),
            text: format!("{activation} is applied here too"),
        });
    }
    let title = match applied.map(|it| (&it.written, &it.of)) {
        Some((written, Some(of))) => {
            format!("write `{of}` without `{written}`: the network returns logits")
        }
        Some((written, None)) => format!("leave `{written}` out: the network returns logits"),
        None => format!("leave {activation} out: the network returns logits"),
    };
    let mut fixed = found.clone().fix(title);
    if activation == "sigmoid" {
        fixed = fixed.fix("or use `nn.BCELoss()`, which takes probabilities");
    }
    *found = fixed;
}

/// SC0103: an argument of a call of Python that needs something beside it.
fn value(message: &str, labels: &[(CellSpan, &str)]) -> Diagnostic {
    let rule = InvalidArgumentValue {
        call: "fit".to_owned(),
        argument: "validation_data".to_owned(),
        given: "…".to_owned(),
        expects: "validation data".to_owned(),
        place: Place::Span(labels[0].0),
        replacement: None,
        arguments: Vec::new(),
    };
    at(rule.diagnostic(), message, labels)
}

/// SC0103: `eval_strategy` without `eval_dataset`.
pub(crate) fn no_evaluation_data(strategy: CellSpan, trainer: CellSpan) -> Diagnostic {
    let labels = [
        (strategy, "asks for evaluations"),
        (trainer, "has no `eval_dataset`"),
    ];
    value("`eval_strategy` needs an `eval_dataset`", &labels)
        .why("the `Trainer` refuses a strategy of evaluation without data, before its first step")
        .fix("pass `eval_dataset=…` to the `Trainer`")
        .fix("or leave `eval_strategy` out")
}

/// SC0103: `load_best_model_at_end` without evaluations.
pub(crate) fn no_evaluation(flag: CellSpan) -> Diagnostic {
    let labels = [(flag, "nothing is evaluated during the run")];
    value("`load_best_model_at_end` needs an `eval_strategy`", &labels)
        .why("the best model is the one with the best evaluation; the default of `eval_strategy` is `\"no\"`")
        .fix("write `eval_strategy=\"epoch\", save_strategy=\"epoch\"`")
}

/// SC0103: saving and evaluating at different times, with the best model to be loaded.
pub(crate) fn strategies_differ(
    (save, save_at): (&str, CellSpan),
    (evaluates, evaluates_at): (&str, CellSpan),
    flag: CellSpan,
) -> Diagnostic {
    let labels = [
        (flag, "loads the best checkpoint"),
        (
            save_at,
            "checkpoints are not written when the model is evaluated",
        ),
        (evaluates_at, "evaluates at other times"),
    ];
    // The setting that the cell has stays; the other one follows it.
    let (first, second) = match save {
        "no" => (format!("save_strategy=\"{evaluates}\""), None),
        save => (
            format!("eval_strategy=\"{save}\""),
            Some(match evaluates {
                "steps" => "save_strategy=\"steps\"`, with `save_steps` a multiple of `eval_steps"
                    .to_owned(),
                other => format!("save_strategy=\"{other}\""),
            }),
        ),
    };
    let found = value(
        "`load_best_model_at_end` needs checkpoints of the evaluated models",
        &labels,
    )
    .why("the `Trainer` refuses it unless `save_strategy` is `eval_strategy`, or \"best\"")
    .fix(format!("write `{first}`"));
    match second {
        Some(second) => found.fix(format!("or `{second}`")),
        None => found,
    }
}

/// SC0103: a metric over scores that gets classes.
pub(crate) fn classes_for_probabilities(scores: CellSpan, metric: CellSpan) -> Diagnostic {
    let labels = [
        (scores, "classes, by `argmax`"),
        (metric, "an area under a curve of scores"),
    ];
    value("the area under the ROC curve needs probabilities, not classes", &labels)
        .why("with classes the curve has a single point between its ends; the area is that of one threshold")
        .fix("pass the probability of the positive class: `softmax(logits, axis=1)[:, 1]`")
        .fix("`auc()` here takes the outputs of the model as they are")
}

/// SC0431: the collator of a `Trainer` is one for another head.
pub(crate) fn collator_of_another_head(
    class: &str,
    model: &str,
    collator: CellSpan,
    trainer: CellSpan,
) -> Diagnostic {
    let rule = DataOfOtherHead {
        model: model.to_owned(),
        wants: "its own batches",
        has: "batches of another head",
        reader: "",
        fitting: None,
        row: 1,
        source: String::new(),
        call: "fit".to_owned(),
    };
    let message = format!("`{class}` makes batches for another head: the model is {model}");
    let labels = [
        (collator, "made here"),
        (trainer, "the model is of another head"),
    ];
    at(rule.diagnostic(), &message, &labels)
        .why("a collator pads the inputs and makes the labels; labels of another shape end in an error or in a wrong loss")
        .fix("write the collator of the head: `DataCollatorWithPadding` for texts, `DataCollatorForTokenClassification` for tokens, `DataCollatorForLanguageModeling` for masked tokens")
        .fix("`fit!` here makes the batches that the model takes")
}

/// SC0312: a metric of tags that counts labels of −100.
pub(crate) fn ignored_labels_counted(metric: CellSpan) -> Diagnostic {
    let labels = [(metric, "counts the labels of −100")];
    let message = "tokens without a tag have the label −100, and this metric counts them";
    let mut found = at(IgnoredLabelIndex.diagnostic(), message, &labels);
    found.severity = Severity::Warning;
    found
        .why("no prediction is −100, so each of these tokens counts as wrong; special tokens and further pieces of words have this label")
        .fix("leave them out: `[(p, l) for p, l in zip(prediction, label) if l != -100]`")
        .fix("the metrics here count tagged words only")
}

/// SC0506: gradients that are never set to zero.
pub(crate) fn gradients_not_cleared(backward: CellSpan) -> Diagnostic {
    let rule = DroppedMicroBatches {
        computed: 2,
        applied: 2,
        weight: 2.0,
        norm: 0.0,
    };
    let labels = [(backward, "adds to the gradients of all batches before")];
    at(rule.diagnostic(), "the gradients are never set to zero: each step has those of all steps before", &labels)
        .why("`backward()` adds to the gradients; without `zero_grad()` their sum grows, and the step no longer follows the batch")
        .fix("call `optimizer.zero_grad()` after `optimizer.step()`")
}
