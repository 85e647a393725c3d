//! Habits on what `predict` returns.

use super::Habit;

pub(super) const PREDICTIONS: &[Habit] = &[
    Habit(
        "op >(_) | op >=(_) | op <(_) | op <=(_)",
        "{it}.rows.iter().map(|row| row.score {op} {0}).collect::<Vec<_>>()",
        "predictions are rows, and each has its `score`: the probability of its label, or the number of a regression",
    ),
    Habit(
        "[..]",
        "{it}.rows[{index}].to_vec()",
        "predictions are rows, and a range of `rows` is a part of them",
    ),
    Habit(
        "to_csv(_) | save(_) | write_csv(_)",
        "std::fs::write({0}, {it}.rows.iter().map(|row| format!(\"{},{}\\n\", row.label, row.score)).collect::<String>())?",
        "each of `rows` has the text, the label and its probability",
    ),
    Habit(
        "argmax() | argmax(..) | classes | predicted | labels | label | astype(..) | predicted_classes",
        "{it}.labels()",
        "`labels()` are the names of the likeliest classes; the number of one is `rows[0].class`",
    ),
    Habit(
        "enumerate()",
        "{it}.rows.iter().enumerate()",
        "each prediction is one of `rows`",
    ),
    Habit(
        "first() | first",
        "{it}.rows.first()",
        "each prediction is one of `rows`",
    ),
    Habit(
        "shape | shape() | probabilities.shape | probabilities.shape() | probs.shape() | proba.shape()",
        "[{it}.len(), {it}.label_names.len()]",
        "there is a row for each example and a probability for each class",
    ),
    Habit(
        "count() | size | length | size() | length()",
        "{it}.len()",
        "the number of predictions",
    ),
    Habit(
        "logits",
        "~{it}.rows.iter().map(|row| row.probabilities.clone()).collect::<Vec<_>>()",
        "`predict` returns probabilities, after the softmax; the logits are not kept: `probability.ln()` differs from a logit by one number \
           for all classes of a row",
    ),
    Habit(
        "numpy() | tolist() | to_numpy() | probabilities | probs | proba | values | scores | softmax(..) | predictions",
        "{it}.rows.iter().map(|row| row.probabilities.clone()).collect::<Vec<_>>()",
        "each of `rows` has the probabilities of all classes",
    ),
    Habit(
        "max() | max(..) | score | confidence",
        "{it}.rows.iter().map(|row| row.score).collect::<Vec<_>>()",
        "the score is the probability of the label",
    ),
    Habit(
        "class_names | names | id2label",
        "{it}.label_names",
        "the names of the classes, in the order of the probabilities",
    ),
    Habit(
        "round() | flatten() | squeeze() | reshape(..) | squeeze(..) | mean(..) | mean() | detach() | cpu()",
        "{it}.rows",
        "predictions are rows: `rows[0].label`, `rows[0].score`, `rows[0].probabilities`",
    ),
    Habit(
        "head(_)",
        "&{it}.rows[..{0}]",
        "each prediction is one of `rows`",
    ),
    Habit(
        "classification_report(_)",
        "{it}.confusion_matrix({0})?",
        "the matrix counts how often each class was predicted as each; `assess` has precision, recall and F1",
    ),
    Habit(
        "accuracy(_) | score(_) | evaluate(_)",
        "{it}.assess({0})?",
        "`assess` compares the predictions with labels, with intervals",
    ),
    Habit(
        "text | pair | class | probability",
        "{it}.rows[0].…",
        "each prediction is one of `rows`",
    ),
];
