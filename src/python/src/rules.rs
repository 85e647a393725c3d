//! The rules of `diagnostics` over the text of a Python cell: the same codes, severities and words of TensorFlow; places and
//! fixes are those of the Python text.

use stratoscope_diagnostics::arguments::{self, CALLS};
use stratoscope_diagnostics::check::suggest;
use stratoscope_diagnostics::rules::{
    BuiltAt, DoubleSoftmax, DroppedMicroBatches, LabelsNotOneHot, LossWithoutLogits,
    MisplacedArgument, ModelOutsideScope, NoProbabilities, PerTensorClipping, Probabilities,
    SoftmaxOverOneOutput, StepsPerExecutionWithoutScope, StrategyName, StrategyNotUsed,
    TokenizerInMap, UnknownArgument, UnknownCompileArgument, UnknownEvaluateArgument,
    UnknownFitArgument, UnknownOptimizerArgument,
};
use stratoscope_diagnostics::{CellSpan, Diagnostic, Edit, Fix, FixKind, Label, Place, Rule};

use crate::model::Keyword;
use crate::translate::thing::{LossFacts, ModelFacts};

/// Puts a diagnostic at these places of the Python text, without the fixes that were made for Rust.
fn at(mut diagnostic: Diagnostic, labels: &[(CellSpan, &str)]) -> Diagnostic {
    diagnostic.labels = labels
        .iter()
        .map(|(span, text)| Label {
            place: Place::Span(*span),
            text: (*text).to_owned(),
        })
        .collect();
    diagnostic.fixes.clear();
    diagnostic.arguments.clear();
    diagnostic
}

fn edit(title: String, span: CellSpan, replacement: &str) -> Fix {
    Fix {
        kind: FixKind::Change,
        title,
        edits: vec![Edit {
            place: Place::Span(span),
            replacement: replacement.to_owned(),
        }],
    }
}

/// SC0102: `steps_per_execution` above 1 without a strategy.
pub(crate) fn steps_per_execution(
    steps: Option<i64>,
    span: CellSpan,
    drop: CellSpan,
    dropped: bool,
) -> Diagnostic {
    let facts = StepsPerExecutionWithoutScope::of_text(
        steps.and_then(|it| usize::try_from(it).ok()).unwrap_or(2),
        dropped,
    );
    let mut found = at(facts.diagnostic(), &[(span, "no strategy is active here")]);
    if steps.is_none() && !dropped {
        found.message = "`steps_per_execution` above 1 needs an active strategy scope".to_owned();
    }
    found
        .fixes
        .push(edit("drop the argument".to_owned(), drop, ""));
    found
        .fix("or build and compile the model inside `with strategy.scope():`; one device is enough")
}

/// SC0201: a model that was made outside of the scope.
pub(crate) fn model_outside(
    strategy: &str,
    model: CellSpan,
    call: CellSpan,
    facts: &ModelFacts,
    compile_inside: bool,
    line: usize,
) -> Diagnostic {
    let rule = ModelOutsideScope {
        strategy: StrategyName::of_variable(strategy),
        replicas: 1,
        bound: None,
        variables: 1,
        device: String::new(),
        compile_inside,
        is_named: false,
        built: BuiltAt::Unknown,
        figure: None,
    };
    let _ = call;
    let mut found = at(
        rule.diagnostic(),
        &[
            (model, "made outside of the scope"),
            (facts.span, "made here, outside of the scope"),
        ],
    );
    found.message = format!("the model is made outside of `{strategy}`'s scope, in line {line}");
    found.fix(format!("make the model inside `with {strategy}.scope():`"))
}

/// SC0101, SC0106, SC0114, SC0115: an argument that the call does not have. `Err`: Keras has it, and this product has not.
pub(crate) fn argument(call: &str, keyword: &Keyword) -> Result<Diagnostic, String> {
    let name = keyword.name.as_str();
    if let Some(why) = arguments::explained(call, name) {
        return Err(why.to_owned());
    }
    if let Some(other) = arguments::belongs_elsewhere(call, name)
        && call == "compile"
        && meant_by_letters(call, name).is_none()
    {
        let rule = MisplacedArgument {
            given: name.to_owned(),
            place: Place::Span(keyword.name_span),
            owner: other.owner.to_owned(),
            written: name.to_owned(),
            edits: Vec::new(),
            arguments: Vec::new(),
        };
        let label = format!("an argument of {}", other.owner);
        let found = at(rule.diagnostic(), &[(keyword.name_span, &label)]);
        return Ok(found.fix(format!("pass `{name}` to {}", other.owner)));
    }
    let similar = meant(call, name).map(str::to_owned).into_iter().collect();
    let facts = UnknownArgument {
        given: name.to_owned(),
        place: Place::Span(keyword.name_span),
        drop: Place::Span(keyword.drop_span),
        similar,
        hint: None,
        arguments: Vec::new(),
    };
    let is_unknown = facts.similar.is_empty();
    let mut found = match call {
        "compile" => UnknownCompileArgument(facts).diagnostic(),
        "evaluate" => UnknownEvaluateArgument(facts).diagnostic(),
        _ => UnknownFitArgument(facts).diagnostic(),
    };
    found.message = found.message.replace('!', "");
    // An argument of Keras that this product has not, in other letters.
    let of_keras = suggest::similar(name, OF_KERAS.iter().copied());
    let meant = of_keras.into_iter().next().filter(|_| is_unknown);
    if let Some((meant, why)) =
        meant.and_then(|it| arguments::explained(call, &it).map(|why| (it, why)))
    {
        found.why.push(why.to_owned());
        let title = format!("did you mean `{meant}`?");
        let fix = edit(title, keyword.name_span, &meant);
        found.fixes.insert(0, fix);
    }
    Ok(found)
}

/// Arguments of Keras that this product has not.
const OF_KERAS: &[&str] = &[
    "auto_scale_loss",
    "jit_compile",
    "loss_weights",
    "max_queue_size",
    "run_eagerly",
    "sample_weight",
    "use_multiprocessing",
    "validation_batch_size",
    "validation_freq",
    "validation_steps",
    "weighted_metrics",
    "workers",
];

/// The argument that a misspelt name stands for.
pub(crate) fn meant(call: &str, name: &str) -> Option<&'static str> {
    arguments::translated(call, name).or_else(|| meant_by_letters(call, name))
}

fn meant_by_letters(call: &str, name: &str) -> Option<&'static str> {
    let table = CALLS.iter().find(|table| table.name == call)?;
    let names: Vec<&'static str> = table.arguments.iter().map(|it| it.name).collect();
    let similar = suggest::similar(name, names.iter().copied());
    let first = similar.first()?;
    names.into_iter().find(|it| it == first)
}

/// SC0504: a misspelt argument of an optimizer.
pub(crate) fn unknown_optimizer_argument(
    optimizer: &str,
    keyword: &Keyword,
    names: &[&str],
) -> Diagnostic {
    let similar = match names {
        [one] => vec![(*one).to_owned()],
        names => suggest::similar(&keyword.name, names.iter().copied()),
    };
    let known = names.iter().map(|name| (*name).to_owned()).collect();
    let fixes = similar.iter().take(2).map(|name| Fix {
        kind: FixKind::Suggestion,
        ..edit(format!("did you mean `{name}`?"), keyword.name_span, name)
    });
    let rule = UnknownOptimizerArgument {
        optimizer: optimizer.to_owned(),
        given: keyword.name.clone(),
        place: Place::Span(keyword.name_span),
        fixes: fixes.collect(),
        known,
    };
    let mut found = rule.diagnostic();
    found.why = vec!["the rate and the decay decide the result of a run".to_owned()];
    found
}

/// SC0508: `clipnorm` clips each tensor for itself.
pub(crate) fn clipnorm(keyword: &Keyword) -> Diagnostic {
    let rule = PerTensorClipping {
        clipnorm: keyword.value.number().unwrap_or(1.0),
        tensors: 1,
    };
    let mut found = at(
        rule.diagnostic(),
        &[(keyword.span, "the norm of each tensor")],
    );
    found.message =
        "`clipnorm` clips each tensor separately; BERT uses `global_clipnorm`".to_owned();
    found.why =
        vec!["with n tensors the norm over all of them may still be √n times the limit".to_owned()];
    found.fixes.push(edit(
        "write `global_clipnorm` if the norm over all gradients was meant".to_owned(),
        keyword.name_span,
        "global_clipnorm",
    ));
    found
}

/// SC0304: class numbers for a loss of one-hot rows.
pub(crate) fn labels_not_one_hot(
    loss: &LossFacts,
    labels: CellSpan,
    outputs: Option<i64>,
    text: &str,
) -> Diagnostic {
    let classes = outputs.and_then(|it| usize::try_from(it).ok()).unwrap_or(2);
    let rule = LabelsNotOneHot {
        classes,
        from_logits: loss.from_logits.unwrap_or(false),
    };
    let mut found = at(
        rule.diagnostic(),
        &[
            (loss.span, "takes one-hot rows"),
            (labels, "the numbers of the classes"),
        ],
    );
    if outputs.is_none() {
        found.message =
            "labels are class indices; the loss needs one-hot rows, and they are converted here"
                .to_owned();
    }
    found.why = vec![
        "Keras refuses it: the shapes of the labels and of the outputs differ. Here each number becomes its row, and the loss is the \
         same"
            .to_owned(),
    ];
    let written = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => format!("{quote}sparse_categorical_crossentropy{quote}"),
        _ => text.replace("CategoricalCrossentropy", "SparseCategoricalCrossentropy"),
    };
    if written == text || written.contains("SparseSparse") {
        return found.fix("write the sparse form of the loss");
    }
    found
        .fixes
        .push(edit(format!("write `{written}`"), loss.span, &written));
    found
}

/// SC0305: softmax over one class.
fn softmax_over_one(loss: &LossFacts, facts: &ModelFacts) -> Option<Diagnostic> {
    if facts.outputs != Some(1) {
        return None;
    }
    let in_the_head = facts.activation.as_deref() == Some("softmax");
    let is_of_classes = loss.name.ends_with("CategoricalCrossentropy");
    if !in_the_head && !is_of_classes {
        return None;
    }
    let rule = SoftmaxOverOneOutput {
        loss: loss.name.clone(),
        in_the_head,
    };
    let label = match in_the_head {
        true => "the head is one output with softmax, which is always 1",
        false => "a loss of several classes on a head with one output",
    };
    let found = at(rule.diagnostic(), &[(loss.span, label)]);
    let found = match in_the_head {
        true => found.fix(
            "for two classes: `Dense(1, activation='sigmoid')` with `loss='binary_crossentropy'`",
        ),
        false => {
            found.fix("for two classes with one output: `BinaryCrossentropy(from_logits=True)`")
        }
    };
    Some(found.fix("or an output for each class: `Dense(2, activation='softmax')` with `loss='sparse_categorical_crossentropy'`"))
}

/// SC0303 and SC0302: a loss that takes logits where there are probabilities, or the other way round.
pub(crate) fn loss_and_head(loss: &LossFacts, facts: &ModelFacts) -> Vec<Diagnostic> {
    if let Some(found) = softmax_over_one(loss, facts) {
        return vec![found];
    }
    let (Some(from_logits), Some(activation)) = (loss.from_logits, facts.activation.as_deref())
    else {
        return Vec::new();
    };
    if !loss.name.ends_with("Crossentropy") {
        return Vec::new();
    }
    let are_probabilities = matches!(activation, "sigmoid" | "softmax");
    let label = format!("the head ends in `{activation}`");
    if from_logits && are_probabilities {
        let classes = facts
            .outputs
            .and_then(|it| usize::try_from(it).ok())
            .unwrap_or(1)
            .max(1);
        let classes = if loss.name == "BinaryCrossentropy" {
            1
        } else {
            classes
        };
        let rule = DoubleSoftmax {
            loss: loss.name.clone(),
            classes,
            outputs: Probabilities::Activation(activation.to_owned()),
        };
        let mut found = at(rule.diagnostic(), &[(loss.span, &label)]);
        found.why = vec![format!(
            "`{}(from_logits=True)` applies {} itself, to numbers that are between 0 and 1 already",
            loss.name,
            if classes == 1 { "sigmoid" } else { "softmax" }
        )];
        let found = found.fix("write `from_logits=False`");
        return vec![found.fix(format!(
            "or remove `activation='{activation}'` from the last layer"
        ))];
    }
    if !from_logits && !are_probabilities {
        let rule = LossWithoutLogits {
            loss: loss.name.clone(),
            binary: loss.name == "BinaryCrossentropy",
            outputs: NoProbabilities::Activation(activation.to_owned()),
        };
        let found = at(
            rule.diagnostic(),
            &[(loss.span, "the outputs would be used as probabilities")],
        );
        return vec![found.fix(format!("write `{}(from_logits=True)`", loss.name))];
    }
    Vec::new()
}

/// SC0506: the accumulator is created in every step.
pub(crate) fn sum_made_anew(at_span: CellSpan, steps: Option<i64>) -> Diagnostic {
    let count = steps
        .and_then(|it| usize::try_from(it).ok())
        .filter(|it| *it > 1);
    let rule = DroppedMicroBatches {
        computed: count.unwrap_or(2),
        applied: 1,
        weight: 1.0,
        norm: 0.0,
    };
    let mut found = at(
        rule.diagnostic(),
        &[(
            at_span,
            "made anew in every step: what was added before is lost",
        )],
    );
    found.evidence.clear();
    found.message = match count {
        Some(count) => format!("{} of {count} micro-batches are discarded", count - 1),
        None => "all micro-batches but the last one are discarded".to_owned(),
    };
    found.fix("create the sum before the loop, and again only after `apply_gradients`")
}

/// SC0506: a sum of gradients that is not divided.
pub(crate) fn sum_not_divided(at_span: CellSpan, steps: Option<i64>) -> Diagnostic {
    let count = steps
        .and_then(|it| usize::try_from(it).ok())
        .filter(|it| *it > 1);
    let rule = DroppedMicroBatches {
        computed: count.unwrap_or(2),
        applied: count.unwrap_or(2),
        weight: count.unwrap_or(2) as f64,
        norm: 0.0,
    };
    let mut found = at(
        rule.diagnostic(),
        &[(at_span, "added, and divided nowhere")],
    );
    found.evidence.clear();
    found.message = match count {
        Some(count) => {
            format!(
                "{count} gradients are added but not divided: the step is {count} times too large"
            )
        }
        None => {
            "gradients are added but not divided: the step is too large by their number".to_owned()
        }
    };
    found.fix("divide each gradient, or the loss, by the number of accumulated steps")
}

/// SC0203: a loop by hand that never gives its batches to the replicas.
pub(crate) fn strategy_not_used(span: CellSpan, strategy: &str) -> Diagnostic {
    let rule = StrategyNotUsed {
        replicas: 2,
        device: String::new(),
    };
    let label = format!("`{strategy}` takes no part in these steps");
    let mut found = at(rule.diagnostic(), &[(span, &label)]);
    found.evidence.clear();
    found.message = "the loop runs on one device: the other replicas do nothing".to_owned();
    found.why = vec![
        "a scope places variables; only `strategy.run` with a distributed data set, or `fit`, uses all replicas"
            .to_owned(),
    ];
    found.fix("let `fit` run the steps").fix(format!(
        "or call the step by `{strategy}.run` on batches of `{strategy}.experimental_distribute_dataset(…)`"
    ))
}

/// SC0408: a tokenizer in a compiled map.
pub(crate) fn tokenizer_in_map(tokenizer: CellSpan, map: CellSpan) -> Diagnostic {
    let mut found = at(
        TokenizerInMap.diagnostic(),
        &[
            (tokenizer, "gets symbolic tensors, no texts"),
            (map, "traced once"),
        ],
    );
    found.message = "a tokenizer of Python reads no texts inside of `map`".to_owned();
    found.why = vec![
        "TensorFlow traces the function of `map` once, with tensors that have no text yet"
            .to_owned(),
    ];
    found.fix("tokenize the texts before they become a `tf.data.Dataset`")
}
