//! Whether loss, metrics and optimizer agree with the head and with each other: the errors and the warnings of
//! `compile!`. Rules: docs/keras-semantics.md §1.3 to §1.5.

use stratoscope_data::Label;
use stratoscope_diagnostics::rules::{
    AccuracyOnRegression, BinaryLossForManyClasses, DecayOfAllWeights, DoubleSoftmax,
    ImplicitBroadcast, LabelsNotOneHot, LearningRateOutOfRange, LossWithoutLogits, NoProbabilities,
    PerTensorClipping, Probabilities, ReluOnBinaryLogit, SoftmaxOverOneOutput,
};
use stratoscope_diagnostics::{Diagnostic, Rule};

use crate::loss::{Loss, own};
use crate::metric::{Answers, Metric};
use crate::optimizer::{Clipping, Optimizer, UpdateRule};
use crate::problem;
use stratoscope_arguments::StrategyChoice;
use stratoscope_network::Files;
use stratoscope_network::{Activation, Task};
use stratoscope_train::state::ModelState;

/// What the head cannot be trained or measured with.
pub(crate) fn errors(
    state: &ModelState,
    loss: Option<Loss>,
    metrics: &[Metric],
    choice: &StrategyChoice,
) -> Vec<Diagnostic> {
    let files = &*state.files;
    let activation = state.step.replicas.first().output_activation();
    let mut problems: Vec<Diagnostic> = loss
        .and_then(|loss| {
            if loss.compares_examples() {
                return of_comparison(loss, state, choice);
            }
            of_set(loss, files.task())
                .or_else(|| of_pairs(loss, files.task()))
                .or_else(|| of_loss(loss, files.classes(), files.task()))
                .or_else(|| of_activation(loss, files.classes(), activation))
                .or_else(|| of_own(loss, state, choice))
        })
        .into_iter()
        .collect();
    problems.extend(
        metrics
            .iter()
            .filter_map(|&metric| of_metric(metric, loss, files)),
    );
    problems.extend(of_names(metrics));
    problems
}

/// SC0103 for a loss that compares vectors, where the model has none, or where no process has those of a whole batch.
fn of_comparison(loss: Loss, state: &ModelState, choice: &StrategyChoice) -> Option<Diagnostic> {
    let refused = |expects: &str, why: &str| {
        Some(problem::bad_value("compile", "loss", loss, expects).why(why))
    };
    if state.files.task() != Task::Embedding {
        let expects = "a loss of what the model predicts";
        let why = "it compares vectors of texts, which a `BertForSentenceEmbedding` has";
        return refused(expects, why);
    }
    if !loss.needs_several() {
        return None;
    }
    let bound = state.step.replicas.strategy().cloned();
    let strategy = bound.or_else(|| state.to_be_bound(choice));
    let expects = "a loss of single examples, such as `MeanSquaredError` or `TripletMargin`";
    if strategy.is_some_and(|strategy| strategy.team().is_some()) {
        let why = "the negatives of an example are the other examples of its batch, and each worker process has only some of \
                   them; a `MirroredStrategy` uses all";
        return refused(expects, why);
    }
    if state.step.replicas.stages().is_some() {
        let why = "the negatives of an example are the other examples of its batch, which a pipeline divides into \
                   micro-batches; a `MirroredStrategy` uses all";
        return refused(expects, why);
    }
    None
}

/// SC0103 for several labels a text under a loss that does not decide each by itself.
fn of_set(loss: Loss, task: Task) -> Option<Diagnostic> {
    let fits = matches!(loss, Loss::BinaryCrossentropy(_));
    (task == Task::Set && !fits).then(|| {
        let expects = "`BinaryCrossentropy { from_logits: true }`";
        let problem = problem::bad_value("compile", "loss", loss.name(), expects);
        problem.why("a text can have several labels, and each is decided separately")
    })
}

/// SC0103 for pairs of texts under a loss that does not compare numbers.
fn of_pairs(loss: Loss, task: Task) -> Option<Diagnostic> {
    (task == Task::Embedding && !loss.is_regression()).then(|| {
        let expects =
            "a loss of numbers, such as `MeanSquaredError`, or one of texts that belong together, such as `MultipleNegativesRanking { scale: 20.0 }`";
        let problem = problem::bad_value("compile", "loss", loss.name(), expects);
        problem.why(
            "it learns from pairs of texts, each with the cosine that their vectors should have",
        )
    })
}

/// `classes`: the outputs of the head; `None` for one output.
fn of_loss(loss: Loss, classes: Option<usize>, task: Task) -> Option<Diagnostic> {
    let name = loss.name().to_owned();
    match classes {
        Some(outputs) if loss.is_regression() => Some(
            ImplicitBroadcast {
                outputs,
                loss: name,
            }
            .diagnostic(),
        ),
        Some(outputs) if loss.is_binary() && task != Task::Set => {
            let loss = name;
            Some(BinaryLossForManyClasses { outputs, loss }.diagnostic())
        }
        None if !loss.is_regression() && !loss.is_binary() => {
            let in_the_head = false;
            Some(
                SoftmaxOverOneOutput {
                    loss: name,
                    in_the_head,
                }
                .diagnostic(),
            )
        }
        _ => None,
    }
}

/// SC0103 for a loss of one's own that is none, or that would have to leave its process.
fn of_own(loss: Loss, state: &ModelState, choice: &StrategyChoice) -> Option<Diagnostic> {
    let Loss::Own(own) = loss else {
        return None;
    };
    // One that is bound by this very `compile!`, too.
    let bound = state.step.replicas.strategy().cloned();
    let strategy = bound.or_else(|| state.to_be_bound(choice));
    if strategy.is_some_and(|strategy| strategy.team().is_some()) {
        let expects = "a loss that all workers have";
        let why = "a function cannot be sent to worker processes; the other strategies accept it";
        return Some(problem::bad_value("compile", "loss", loss, expects).why(why));
    }
    let files = &*state.files;
    // A head of answers has an output a position.
    let outputs = match files.task() {
        Task::Span => 4,
        Task::Masked => files.vocabulary().unwrap_or(1),
        _ => files.classes().unwrap_or(1),
    };
    own.objection(outputs).map(|why| own::refused(loss, why))
}

/// SC0305 for a softmax over the only output, whatever the loss.
fn of_activation(
    loss: Loss,
    classes: Option<usize>,
    activation: Option<Activation>,
) -> Option<Diagnostic> {
    let is_constant = classes.is_none() && activation == Some(Activation::Softmax);
    let rule = SoftmaxOverOneOutput {
        loss: loss.name().to_owned(),
        in_the_head: true,
    };
    is_constant.then(|| rule.diagnostic())
}

/// What the loss takes the outputs for, against what they are: SC0302, SC0303, SC0315. Nothing where the
/// network does not say what its last layer does.
fn of_outputs(
    loss: Loss,
    classes: Option<usize>,
    activation: Option<Activation>,
) -> Option<Diagnostic> {
    let (from_logits, activation) = (loss.from_logits()?, activation?);
    let name = activation.name().to_owned();
    let finding = match (from_logits, activation.makes_probabilities()) {
        (false, true) => return None,
        (false, false) => LossWithoutLogits {
            loss: loss.name().to_owned(),
            binary: classes.is_none(),
            outputs: NoProbabilities::Activation(name),
        }
        .diagnostic(),
        (true, true) => DoubleSoftmax {
            loss: loss.name().to_owned(),
            classes: classes.unwrap_or(1),
            outputs: Probabilities::Activation(name),
        }
        .diagnostic(),
        (true, false) if classes.is_none() && activation == Activation::Relu => {
            ReluOnBinaryLogit.diagnostic()
        }
        (true, false) => return None,
    };
    Some(finding)
}

fn of_metric(metric: Metric, loss: Option<Loss>, files: &dyn Files) -> Option<Diagnostic> {
    if let Some(loss) = loss.filter(|loss| loss.compares_examples()) {
        let expects = format!("no metric with `{}`", loss.name());
        let why = "its examples have no label to compare with; `embed` and `nearest` on other data show what the vectors find";
        return Some(problem::bad_value("compile", "metrics", metric, expects).why(why));
    }
    // One output under a binary loss decides between two classes.
    let answers = match files.classes() {
        _ if files.task() == Task::Words => Answers::Words,
        _ if files.task() == Task::Span => Answers::Span,
        _ if files.task() == Task::Masked => Answers::Tokens,
        _ if files.task() == Task::Set => Answers::Set,
        Some(classes) => Answers::Classes(classes),
        None if loss.is_some_and(|loss| loss.is_binary()) => Answers::TwoClasses,
        None => Answers::Number,
    };
    if answers == Answers::Number && metric.is_of_classes() {
        let rule = AccuracyOnRegression {
            metric: metric.name().to_owned(),
            loss: loss.map(|loss| loss.name().to_owned()),
        };
        return Some(rule.diagnostic());
    }
    if let Some(expects) = metric.objection(answers) {
        let mut finding = problem::bad_value("compile", "metrics", metric, expects);
        if let (Metric::F1, Answers::Classes(classes)) = (metric, answers) {
            finding.fixes.clear();
            finding = finding.fix(format!(
                "write `metrics = [macro_f1()]`: `f1` is for two classes, here are {classes}"
            ));
        }
        return Some(finding);
    }
    let Metric::Own(own) = metric else {
        return None;
    };
    let why = match files.classes() {
        Some(classes) => own.objection(classes, Label::Class(0)),
        // Its labels may be classes or numbers.
        None if answers == Answers::TwoClasses => own
            .objection(1, Label::Class(0))
            .and_then(|_| own.objection(1, Label::Value(0.0))),
        None => own.objection(1, Label::Value(0.0)),
    };
    let expects = "a function of outputs and a label";
    Some(problem::bad_value("compile", "metrics", metric, expects).why(why?))
}

/// SC0103 for metrics of one's own that would be taken for something else, or for each other.
fn of_names(metrics: &[Metric]) -> Vec<Diagnostic> {
    const TAKEN: [&str; 5] = [
        "loss",
        "learning_rate",
        "epoch",
        "seconds",
        "sequences_per_second",
    ];
    let own = metrics.iter().enumerate();
    let own = own.filter(|(_, metric)| matches!(metric, Metric::Own(_)));
    let found = own.filter_map(|(at, metric)| {
        let name = metric.name();
        let is_plain = |sign: char| sign.is_alphanumeric() || "_-@.".contains(sign);
        let why = if name.is_empty() || !name.chars().all(is_plain) {
            "its name is a column of tables and files: letters, digits, `_`, `-`, `.` and `@`"
        } else if Metric::by_name(name).is_some()
            || TAKEN.contains(&name)
            || name.starts_with("val_")
        {
            "this name stands for something else in histories, files and for early stopping"
        } else if metrics[..at].iter().any(|other| other.name() == name) {
            "two metrics have this name"
        } else {
            return None;
        };
        let expects = "a metric with a name of its own";
        Some(problem::bad_value("compile", "metrics", format!("{name:?}"), expects).why(why))
    });
    found.collect()
}

/// What will work, and is probably not what was meant.
pub(crate) fn warnings(
    state: &ModelState,
    optimizer: &Optimizer,
    loss: Option<Loss>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some(loss) = loss {
        let activation = state.step.replicas.first().output_activation();
        found.extend(of_outputs(loss, state.files.classes(), activation));
        // With smoothing it is the one that is needed.
        if let (Loss::CategoricalCrossentropy(smoothed), Some(classes)) =
            (loss, state.files.classes())
            && smoothed.share == 0.0
        {
            let from_logits = smoothed.loss.from_logits;
            let rule = LabelsNotOneHot {
                classes,
                from_logits,
            };
            found.push(rule.diagnostic());
        }
    }
    found.extend(rate(state, optimizer));
    found.extend(decay(state, optimizer));
    if let Clipping::PerTensor(clipnorm) = optimizer.clipping {
        let tensors = state.trainable().count();
        found.push(PerTensorClipping { clipnorm, tensors }.diagnostic());
    }
    found
}

/// SC0501. What is new may be trained at any usual rate, and so may a head alone.
fn rate(state: &ModelState, optimizer: &Optimizer) -> Option<Diagnostic> {
    let is_adam = matches!(optimizer.rule, UpdateRule::Adam(_));
    let pretrained = state.files.source().is_some();
    let elements = |shape: &[usize]| shape.iter().product::<usize>();
    let trained: usize = state
        .trainable()
        .map(|record| elements(&record.shape))
        .sum();
    let most_is_trained = 2 * trained > state.num_parameters();
    let rate = optimizer.schedule.named_rate();
    let usual = (LearningRateOutOfRange::LOW..LearningRateOutOfRange::HIGH).contains(&rate);
    let is_fine = match pretrained && most_is_trained {
        true => usual,
        false => rate < LearningRateOutOfRange::HIGHEST,
    };
    if !is_adam || is_fine {
        return None;
    }
    let rule = LearningRateOutOfRange {
        optimizer: optimizer.to_string(),
        rate,
        by_name: optimizer.by_name,
        is_pretrained: pretrained && most_is_trained,
    };
    Some(rule.diagnostic())
}

/// SC0507.
fn decay(state: &ModelState, optimizer: &Optimizer) -> Option<Diagnostic> {
    if optimizer.weight_decay() == 0.0 {
        return None;
    }
    let parameters = state.step.replicas.first().parameters();
    let also: Vec<String> = parameters
        .iter()
        .filter(|known| known.is_undecayed() && !optimizer.excludes(known))
        .map(|known| known.name.clone())
        .collect();
    let rule = DecayOfAllWeights {
        decay: optimizer.weight_decay(),
        variables: parameters.len(),
        also,
    };
    (!rule.also.is_empty()).then(|| rule.diagnostic())
}
