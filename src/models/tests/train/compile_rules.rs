//! What `compile!` refuses at run time, code by code; the scope rules are the table in docs/keras-semantics.md.

use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, CompileReceipt, FitArgs, accuracy, f1, none,
    pearson,
};
use stratoscope_strategy::{MirroredStrategy, OneDeviceStrategy, cpu, scope};

use crate::support::{cross_entropy, fixtures, load, plain_args, sentences, tiny_bert};

type Outcome = Result<CompileReceipt, Box<Diagnostic>>;

fn model() -> BertForSequenceClassification {
    load(&tiny_bert(0.0))
}

#[track_caller]
fn refused(outcome: Outcome, codes: &[&str]) -> Diagnostic {
    let finding = *outcome.expect_err("it is refused");
    let others = finding.related.iter().map(|other| other.code.as_str());
    let found: Vec<&str> = std::iter::once(finding.code.as_str())
        .chain(others)
        .collect();
    assert_eq!(found, codes, "{finding}");
    finding
}

#[test]
fn arguments_are_checked_together() {
    let model = model();
    refused(
        model.compile(CompileArgs::new().loss(cross_entropy())),
        &["SC0116"],
    );
    let args = CompileArgs::new()
        .optimizer("adma")
        .loss("sparse_categorical_crossentropi")
        .metrics(["acuracy", "accuracy"])
        .gradient_accumulation_steps(0);
    refused(
        model.compile(args),
        &["SC0105", "SC0105", "SC0105", "SC0103"],
    );
    refused(
        model.compile(plain_args().steps_per_execution(-4)),
        &["SC0103"],
    );
    refused(
        model.compile(plain_args().metrics([f1(), pearson()])),
        &["SC0103", "SC0103"],
    );
    model
        .compile(plain_args().metrics("accuracy").steps_per_execution(1))
        .expect("valid");
}

/// A `fit` after the error would train with the settings of the call before, so the error names them.
#[test]
fn a_refused_call_names_the_settings_that_stay() {
    let model = model();
    let in_force = || {
        let args = CompileArgs::new().optimizer("adma").loss(cross_entropy());
        let finding = refused(model.compile(args), &["SC0105"]);
        let mut evidence = finding.evidence.into_iter();
        evidence
            .find(|it| it.name == "still in force")
            .map(|it| it.value)
    };
    assert_eq!(in_force(), None, "no call has set anything");
    let args = CompileArgs::new().optimizer("sgd").loss(cross_entropy());
    model.compile(args.metrics([accuracy()])).expect("valid");
    let settings = in_force().expect("the model has settings");
    assert!(settings.starts_with("SGD::new("), "{settings}");
    for part in ["loss SparseCategoricalCrossentropy", "metrics accuracy"] {
        assert!(settings.contains(part), "{settings}");
    }
}

/// Loss and metrics against the head: 3 outputs, then 1.
#[test]
fn losses_and_metrics_fit_the_head() {
    let three = model();
    let folder = tiny_bert(0.0);
    for file in ["config.json", "model.safetensors"] {
        let source = fixtures().join("regression").join(file);
        std::fs::copy(source, folder.path().join(file)).expect("the fixture's file");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    let one = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    let args = |loss: &str| CompileArgs::new().optimizer("sgd").loss(loss);
    let check =
        |model: &BertForSequenceClassification, args: CompileArgs, codes: &[&str]| match codes {
            [] => drop(model.compile(args).expect("it fits")),
            codes => drop(refused(model.compile(args), codes)),
        };
    check(&three, args("sparse_categorical_crossentropy"), &[]);
    check(&three, args("categorical_crossentropy"), &[]);
    check(&three, args("mse"), &["SC0309"]);
    check(&three, args("bce"), &["SC0306"]);
    check(&one, args("mse"), &[]);
    check(&one, args("bce"), &[]);
    check(&one, args("sparse_categorical_crossentropy"), &["SC0305"]);
    check(&one, args("categorical_crossentropy"), &["SC0305"]);
    // Accuracy of one output: by a threshold under a binary loss, nothing under another.
    let accuracy = ["sparse_categorical_accuracy"];
    check(
        &three,
        args("sparse_categorical_crossentropy").metrics(accuracy),
        &[],
    );
    check(&one, args("bce").metrics(["binary_accuracy", "f1"]), &[]);
    check(
        &one,
        args("mse").metrics(["accuracy", "f1"]),
        &["SC0310", "SC0310"],
    );
    check(&one, args("mse").metrics(["pearson"]), &[]);
    check(&one, args("bce").metrics(["pearson"]), &["SC0103"]);
    let both = args("mse").metrics(["pearson"]);
    check(&three, both, &["SC0309", "SC0103"]);
}

#[test]
fn steps_per_execution_needs_a_scope() {
    let args = || plain_args().steps_per_execution(16);
    let finding = refused(model().compile(args()), &["SC0102"]);
    assert_eq!(
        finding.message,
        "`steps_per_execution = 16` needs an active strategy scope"
    );
    let model = model();
    let receipt = model
        .compile(args().drop_unsupported(true))
        .expect("a warning, and 1");
    let steps = receipt
        .settings
        .iter()
        .find(|(name, _)| name == "steps_per_execution");
    assert_eq!(steps.map(|(_, value)| value.as_str()), Some("1"));

    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let guard = scope::enter(&one).expect("no scope is active");
    let inside = load(&tiny_bert(0.0));
    inside.compile(args()).expect("one device is enough");
    drop(guard);
    inside
        .compile(args())
        .expect("the model is bound to its strategy");
}

#[test]
fn the_truth_table_of_scopes() {
    let outside = model();
    outside.compile(plain_args()).expect("no strategy is alive");

    let mirrored = MirroredStrategy::logical(2).expect("two logical devices");
    let finding = refused(outside.compile(plain_args()), &["SC0201"]);
    assert!(
        finding
            .message
            .starts_with("the model was built outside the scope of `mirrored#"),
        "{finding}"
    );
    assert!(finding.message.ends_with("on cpu:0 only"), "{finding}");
    assert!(finding.figure.is_some(), "the grid shows the variables");
    let tensorflow = |finding: &Diagnostic| finding.tensorflow.clone().unwrap_or_default();
    assert!(
        tensorflow(&finding).contains("without a message"),
        "{finding:?}"
    );
    // Both at once: the whole cell in a scope fixes both.
    let args = || plain_args().steps_per_execution(16);
    refused(outside.compile(args()), &["SC0201", "SC0102"]);
    {
        let _scope = scope::enter(&mirrored).expect("no scope is active");
        let finding = refused(outside.compile(args()), &["SC0201"]);
        assert!(tensorflow(&finding).contains("ValueError"), "{finding:?}");
    }
    outside
        .compile(plain_args().strategy(none))
        .expect("on purpose");
    refused(outside.compile(args().strategy(none)), &["SC0102"]);
    refused(
        outside.compile(plain_args().strategy(&mirrored)),
        &["SC0201"],
    );

    let inside = {
        let _scope = scope::enter(&mirrored).expect("no scope is active");
        let inside = model();
        inside.compile(args()).expect("in, in");
        inside
    };
    inside.compile(args()).expect("in, out: the model is bound");
    inside
        .compile(args().strategy(&mirrored))
        .expect("its own strategy");
    refused(inside.compile(plain_args().strategy(none)), &["SC0103"]);
    let other = MirroredStrategy::logical(3).expect("three logical devices");
    {
        let _scope = scope::enter(&other).expect("no scope is active");
        refused(inside.compile(plain_args()), &["SC0201"]);
    }
    inside
        .compile(plain_args())
        .expect("another strategy that is alive does not matter");
    drop((mirrored, other));
    inside
        .compile(args())
        .expect("the model keeps its strategy usable");
    outside
        .compile(plain_args())
        .expect("no strategy is alive any more");
}

#[test]
fn an_optimizer_trains_one_model() {
    let optimizer = AdamW::new(1e-3);
    let args = || {
        CompileArgs::new()
            .loss(cross_entropy())
            .metrics([accuracy()])
    };
    let (first, second) = (model(), model());
    first
        .compile(args().optimizer(optimizer.clone()))
        .expect("nobody's yet");
    first
        .compile(args().optimizer(optimizer.clone()))
        .expect("its own");
    refused(
        second.compile(args().optimizer(optimizer.clone())),
        &["SC0202"],
    );
    drop(first);
    second
        .compile(args().optimizer(optimizer))
        .expect("its model is gone");
}

#[test]
fn an_optimizer_of_another_strategy_is_refused() {
    let args = |optimizer: &AdamW| {
        CompileArgs::new()
            .loss(cross_entropy())
            .optimizer(optimizer.clone())
    };
    let outside = AdamW::new(1e-3);
    let first = MirroredStrategy::logical(2).expect("two logical devices");
    let second = MirroredStrategy::logical(3).expect("three logical devices");
    let of_the_first = {
        let _scope = scope::enter(&first).expect("no scope is active");
        AdamW::new(1e-3)
    };
    let _scope = scope::enter(&second).expect("no scope is active");
    let model = model();
    refused(model.compile(args(&of_the_first)), &["SC0202"]);
    refused(
        model.compile(args(&of_the_first.clone().weight_decay(0.1))),
        &["SC0202"],
    );
    // Keras 2 accepts this as well, and replicates it.
    model.compile(args(&outside)).expect("made in no scope");
    model
        .compile(args(&AdamW::new(1e-3)))
        .expect("made in the model's scope");
}

#[test]
fn an_error_leaves_the_model_as_it_was() {
    let model = model();
    model.compile(plain_args()).expect("valid arguments");
    refused(
        model.compile(plain_args().steps_per_execution(0)),
        &["SC0103"],
    );
    let args = FitArgs::new().batch_size(4).verbose(false);
    model
        .fit(&sentences(4), args)
        .expect("it is still compiled");
}
