//! The tables of what TensorFlow does: every row against what was measured or read in its sources, written out here
//! once more, argument by argument; and that cards and pages say nothing else.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use stratoscope_diagnostics::Profile;
use stratoscope_diagnostics::check::{CellContext, check_cell};
use stratoscope_diagnostics::rules::CATALOGUE;
use stratoscope_diagnostics::tensorflow::{
    self, ARGUMENTS, Does, Quote, SITUATIONS, Treatment, answer, treatment,
};

/// A letter per version (2.3, 2.4 to 2.6, tf_keras 2.18, Keras 3): a accepts, i accepts a name that sets nothing,
/// d accepts an old name, l ignores it with a log line, r raises words of its own, u does not know it,
/// ? was not tried.
fn letters(call: &str, name: &str) -> String {
    treatment(call, name)
        .into_iter()
        .map(|treatment| match treatment {
            Treatment::Accepts => 'a',
            Treatment::Ignores => 'i',
            Treatment::Deprecates => 'd',
            Treatment::IgnoresAndLogs(_) => 'l',
            Treatment::Raises(_) | Treatment::Missing(_) => 'r',
            Treatment::Unknown => 'u',
            Treatment::Unverified => '?',
        })
        .collect()
}

/// Names and letters, call by call.
const EXPECTED: &[(&str, &[(&str, &str)])] = &[
    (
        "compile",
        &[
            ("optimizer", "aaaa"),
            ("loss", "aaaa"),
            ("metrics", "aaaa"),
            ("loss_weights", "aaaa"),
            ("weighted_metrics", "aaaa"),
            ("run_eagerly", "aaaa"),
            ("steps_per_execution", "uaaa"),
            ("experimental_steps_per_execution", "addu"),
            ("jit_compile", "uuaa"),
            ("pss_evaluation_shards", "uuau"),
            ("auto_scale_loss", "uuua"),
            ("sample_weight_mode", "iiiu"),
            ("cloning", "iiiu"),
            ("experimental_run_tf_function", "iiiu"),
            ("distribute", "rrru"),
            ("target_tensors", "rrru"),
            ("from_serialized", "u?au"),
            // Of other calls, or of nothing.
            ("foo", "uuuu"),
            ("learning_rate", "uuuu"),
            ("epochs", "uuuu"),
            ("from_logits", "uuuu"),
            ("gradient_accumulation_steps", "uuuu"),
            ("sync_every", "uuuu"),
            ("drop_unsupported", "uuuu"),
            ("metric", "uuuu"),
        ],
    ),
    (
        "fit",
        &[
            ("x", "aaaa"),
            ("y", "aaaa"),
            ("batch_size", "aaaa"),
            ("epochs", "aaaa"),
            ("verbose", "aaaa"),
            ("callbacks", "aaaa"),
            ("validation_split", "aaaa"),
            ("validation_data", "aaaa"),
            ("shuffle", "aaaa"),
            ("class_weight", "aaaa"),
            ("sample_weight", "aaaa"),
            ("initial_epoch", "aaaa"),
            ("steps_per_epoch", "aaaa"),
            ("validation_steps", "aaaa"),
            ("validation_batch_size", "aaaa"),
            ("validation_freq", "aaaa"),
            ("max_queue_size", "aaau"),
            ("workers", "aaau"),
            ("use_multiprocessing", "aaau"),
            ("group_by_length", "uuuu"),
            ("learning_rate", "uuuu"),
            ("epoch", "uuuu"),
        ],
    ),
    (
        "evaluate",
        &[
            ("x", "aaaa"),
            ("y", "aaaa"),
            ("batch_size", "aaaa"),
            ("verbose", "aaaa"),
            ("sample_weight", "aaaa"),
            ("steps", "aaaa"),
            ("callbacks", "aaaa"),
            ("return_dict", "aaaa"),
            ("max_queue_size", "aaau"),
            ("workers", "aaau"),
            ("use_multiprocessing", "aaau"),
            ("epochs", "uuuu"),
        ],
    ),
    (
        "Adam",
        &[
            ("learning_rate", "aaaa"),
            ("beta_1", "aaaa"),
            ("beta_2", "aaaa"),
            ("epsilon", "aaaa"),
            ("amsgrad", "aaaa"),
            ("clipnorm", "aaaa"),
            ("clipvalue", "aaaa"),
            ("global_clipnorm", "?aaa"),
            ("weight_decay", "uuaa"),
            ("use_ema", "uuaa"),
            ("ema_momentum", "uuaa"),
            ("ema_overwrite_frequency", "uuaa"),
            ("loss_scale_factor", "uuua"),
            ("gradient_accumulation_steps", "uuua"),
            ("lr", "ddlu"),
            ("decay", "aarl"),
            ("momentum", "uuuu"),
            ("foo", "uuuu"),
        ],
    ),
    (
        "SGD",
        &[
            ("learning_rate", "aaaa"),
            ("momentum", "aaaa"),
            ("nesterov", "aaaa"),
            ("clipnorm", "aaaa"),
            ("clipvalue", "aaaa"),
            ("global_clipnorm", "?aaa"),
            ("weight_decay", "uuaa"),
            ("use_ema", "uuaa"),
            ("ema_momentum", "uuaa"),
            ("ema_overwrite_frequency", "uuaa"),
            ("loss_scale_factor", "uuua"),
            ("gradient_accumulation_steps", "uuua"),
            ("lr", "ddlu"),
            ("decay", "aarl"),
            ("beta_1", "uuuu"),
        ],
    ),
    (
        "RMSprop",
        &[
            ("learning_rate", "aaaa"),
            ("momentum", "aaaa"),
            ("rho", "aaaa"),
            ("epsilon", "aaaa"),
            ("centered", "aaaa"),
            ("clipnorm", "aaaa"),
            ("clipvalue", "aaaa"),
            ("global_clipnorm", "?aaa"),
            ("weight_decay", "uuaa"),
            ("use_ema", "uuaa"),
            ("ema_momentum", "uuaa"),
            ("ema_overwrite_frequency", "uuaa"),
            ("loss_scale_factor", "uuua"),
            ("gradient_accumulation_steps", "uuua"),
            ("lr", "ddlu"),
            ("decay", "aarl"),
            ("beta_1", "uuuu"),
        ],
    ),
    (
        // There is no AdamW before Keras 2.12.
        "AdamW",
        &[
            ("learning_rate", "rraa"),
            ("beta_1", "rraa"),
            ("beta_2", "rraa"),
            ("epsilon", "rraa"),
            ("amsgrad", "rraa"),
            ("weight_decay", "rraa"),
            ("clipnorm", "rraa"),
            ("clipvalue", "rraa"),
            ("global_clipnorm", "rraa"),
            ("use_ema", "rraa"),
            ("ema_momentum", "rraa"),
            ("ema_overwrite_frequency", "rraa"),
            ("loss_scale_factor", "rrua"),
            ("gradient_accumulation_steps", "rrua"),
            ("lr", "rrlu"),
            ("decay", "rrrl"),
            ("weight_decy", "rruu"),
        ],
    ),
    // These came after 2.6, and later versions were not tried.
    (
        "Lion",
        &[("lr", "rr??"), ("beta_1", "rr??"), ("foo", "rr??")],
    ),
    ("Lamb", &[("lr", "rr??")]),
    ("Adafactor", &[("lr", "rr??")]),
];

#[test]
fn every_argument_is_treated_as_each_version_treats_it() {
    let mut written = HashSet::new();
    for (call, arguments) in EXPECTED {
        for (name, expected) in *arguments {
            assert_eq!(letters(call, name), *expected, "{call}: `{name}`");
            written.insert((*call, *name));
        }
    }
    for row in ARGUMENTS {
        let known = written.contains(&(row.call, row.name));
        assert!(
            known,
            "{}: `{}` is not written out here",
            row.call, row.name
        );
    }
    let names: HashSet<(&str, &str)> = ARGUMENTS.iter().map(|row| (row.call, row.name)).collect();
    assert_eq!(names.len(), ARGUMENTS.len(), "an argument has two rows");
}

/// docs/keras-semantics.md E1 to E9 and §1.3: the words of each version.
#[test]
fn each_version_is_quoted_word_for_word() {
    let check = |call: &str, name: &str, expected: [&str; 4]| {
        for (profile, expected) in Profile::ALL.into_iter().zip(expected) {
            let answer = answer(call, name, profile);
            let text = answer.says.unwrap_or(answer.does);
            assert!(
                text.starts_with(expected),
                "{call} {name}, {profile:?}: {text}"
            );
        }
    };
    check(
        "compile",
        "foo",
        [
            "TypeError: Invalid keyword argument(s) in `compile`: {'foo'}",
            "TypeError: Invalid keyword argument(s) in `compile`: {'foo'}",
            "TypeError: Invalid keyword argument(s) in `compile()`: ({'foo'},). Valid keyword arguments include \
         \"cloning\", \"experimental_run_tf_function\", \"distribute\", \"target_tensors\", or \"sample_weight_mode\".",
            "TypeError: Trainer.compile() got an unexpected keyword argument 'foo'",
        ],
    );
    check("compile", "run_eagerly", ["accepts this argument"; 4]);
    check(
        "compile",
        "jit_compile",
        [
            "TypeError: Invalid keyword argument(s) in `compile`: {'jit_compile'}",
            "TypeError: Invalid keyword argument(s) in `compile`: {'jit_compile'}",
            "accepts this argument",
            "accepts this argument",
        ],
    );
    check(
        "compile",
        "distribute",
        [
            "ValueError: Distribute argument in compile is not available in TF 2.0 please create the model under the \
         distribution strategy scope.",
            "ValueError: Distribute argument in compile is not available in TF 2.0 please create the model under the \
         distribution strategy scope.",
            "ValueError: `distribute` argument in compile is not available in TF 2.0. Please create the model under the \
         `strategy.scope()`. Received: ",
            "TypeError: Trainer.compile() got an unexpected keyword argument 'distribute'",
        ],
    );
    check(
        "fit",
        "learning_rate",
        [
            "TypeError: fit() got an unexpected keyword argument 'learning_rate'",
            "TypeError: fit() got an unexpected keyword argument 'learning_rate'",
            "TypeError: Model.fit() got an unexpected keyword argument 'learning_rate'",
            "TypeError: TensorFlowTrainer.fit() got an unexpected keyword argument 'learning_rate'",
        ],
    );
    check(
        "Adam",
        "foo",
        [
            "TypeError: Unexpected keyword argument passed to optimizer: foo",
            "TypeError: Unexpected keyword argument passed to optimizer: foo",
            "TypeError: foo is not a valid argument, kwargs should be empty  for `optimizer_experimental.Optimizer`.",
            "ValueError: Argument(s) not recognized: {'foo': …}",
        ],
    );
    check(
        "Adam",
        "lr",
        [
            "accepts it",
            "accepts it",
            "`lr` is deprecated in TF-Keras optimizer, please use `learning_rate` or use the legacy optimizer,",
            "ValueError: Argument(s) not recognized: {'lr': …}",
        ],
    );
    check(
        "AdamW",
        "weight_decay",
        [
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'AdamW'",
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'AdamW'",
            "accepts this argument",
            "accepts this argument",
        ],
    );
    check(
        "Lion",
        "lr",
        [
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'Lion'",
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'Lion'",
            "was not tried with this argument",
            "was not tried with this argument",
        ],
    );
}

#[test]
fn a_row_becomes_a_sentence() {
    let check = |call: &str, name: &str, expected: &str| {
        assert_eq!(
            Quote::argument(call, name).text(),
            expected,
            "{call}: `{name}`"
        );
    };
    check(
        "compile",
        "foo",
        "raises a TypeError when the line runs, not before",
    );
    check("compile", "run_eagerly", "accepts this argument");
    check(
        "compile",
        "jit_compile",
        "TensorFlow 2.3 to 2.6 raise a TypeError; tf_keras 2.18 and Keras 3 accept it",
    );
    check(
        "compile",
        "experimental_steps_per_execution",
        "TensorFlow 2.3 accepts it; TensorFlow 2.4 to tf_keras 2.18 accept it as an old name; Keras 3 raises a TypeError",
    );
    check(
        "compile",
        "cloning",
        "Keras 2 accepts the name, which sets nothing; Keras 3 raises a TypeError",
    );
    check(
        "compile",
        "distribute",
        "Keras 2 raises a ValueError; Keras 3 raises a TypeError",
    );
    check(
        "fit",
        "workers",
        "Keras 2 accepts it; Keras 3 raises a TypeError",
    );
    check(
        "Adam",
        "weight_decay",
        "TensorFlow 2.3 to 2.6 raise an error; tf_keras 2.18 and Keras 3 accept it",
    );
    check(
        "Adam",
        "lr",
        "TensorFlow 2.3 to 2.6 accept it as an old name; tf_keras 2.18 ignores it and logs a line; Keras 3 raises an \
         error",
    );
    check("Adam", "foo", "raises an error when the optimizer is made");
    check(
        "AdamW",
        "weight_decy",
        "TensorFlow 2.3 to 2.6 have no `AdamW`; tf_keras 2.18 and Keras 3 raise an error",
    );
    check("Lion", "lr", "TensorFlow 2.3 to 2.6 have no `Lion`");
}

/// What the versions do in each situation, a letter each: s says nothing, w warns, r raises in this call, l in a later
/// one, d by value, device or model, - nothing is claimed. From the catalogue of failures and the tables of errors.
const SITUATIONS_EXPECTED: &[(&str, &str, &str)] = &[
    ("SC0101", "", "rrrr"),
    ("SC0102", "", "rsss"),
    ("SC0103", "steps_per_execution", "rddl"),
    ("SC0103", "batch_size", "ssrs"),
    ("SC0103", "learning_rate", "ssss"),
    ("SC0104", "", "rrrr"),
    ("SC0105", "optimizer", "rrrr"),
    ("SC0105", "fit", "llll"),
    ("SC0106", "", "rrrr"),
    ("SC0107", "", "ssss"),
    ("SC0108", "", "ssss"),
    ("SC0109", "", "rsss"),
    ("SC0110", "", "ssss"),
    ("SC0111", "", "sssw"),
    ("SC0112", "", "rrrr"),
    ("SC0113", "", "llll"),
    ("SC0114", "", "rrrr"),
    ("SC0115", "", "rrrr"),
    ("SC0116", "", "ssss"),
    ("SC0117", "", "rrrr"),
    ("SC0118", "", "--dd"),
    ("SC0119", "", "rsss"),
    ("SC0120", "optimizer", "rrrr"),
    ("SC0120", "fit", "llll"),
    ("SC0121", "", "ssss"),
    ("SC0129", "", "rrrr"),
    ("SC0201", "outside", "ssss"),
    ("SC0201", "inside", "rrrl"),
    ("SC0202", "", "ssll"),
    ("SC0203", "", "ssss"),
    ("SC0204", "", "rrrr"),
    ("SC0205", "", "dddr"),
    ("SC0301", "", "dddd"),
    ("SC0302", "", "ssss"),
    ("SC0303", "", "sdww"),
    ("SC0303", "sigmoid", "sd--"),
    ("SC0304", "", "llll"),
    ("SC0305", "", "dddd"),
    ("SC0306", "", "llll"),
    ("SC0307", "", "ssss"),
    ("SC0308", "", "ssss"),
    ("SC0309", "", "sssl"),
    ("SC0310", "", "ssss"),
    ("SC0311", "", "ssss"),
    ("SC0312", "", "ssss"),
    ("SC0313", "", "llll"),
    ("SC0314", "", "ssss"),
    ("SC0401", "", "dddd"),
    ("SC0402", "", "--r-"),
    ("SC0403", "", "ssss"),
    ("SC0404", "", "ssss"),
    ("SC0405", "", "ssss"),
    ("SC0406", "", "rrrr"),
    ("SC0407", "", "ssss"),
    ("SC0408", "", "rrrr"),
    ("SC0409", "", "ssss"),
    ("SC0410", "", "ssss"),
    ("SC0411", "", "rrrr"),
    ("SC0501", "", "ssss"),
    ("SC0502", "", "ssss"),
    ("SC0503", "", "ssss"),
    ("SC0504", "", "dddd"),
    ("SC0505", "", "ssss"),
    ("SC0506", "", "ssss"),
    ("SC0507", "", "ssss"),
    ("SC0508", "", "ssss"),
    ("SC0509", "", "ssss"),
    ("SC0510", "", "wwww"),
    ("SC0511", "", "ssss"),
    ("SC0512", "", "sssl"),
    ("SC0513", "", "ssss"),
    ("SC0514", "", "rrrs"),
    ("SC0515", "", "ssss"),
    ("SC0516", "", "ssss"),
    ("SC0517", "", "ssss"),
    ("SC0518", "", "rrrr"),
    ("SC0520", "", "rrrr"),
    ("SC0601", "", "rrrr"),
    ("SC0602", "", "ssss"),
    ("SC0603", "", "ssss"),
    ("SC0604", "", "rrrr"),
    ("SC0607", "", "rrrr"),
    ("SC0608", "", "rrrr"),
    ("SC0701", "", "ssss"),
    ("SC0702", "", "ssss"),
    ("SC0703", "", "ssss"),
    ("SC0704", "", "rrrr"),
    ("SC0705", "", "ssss"),
    ("SC0706", "", "rrrs"),
    ("SC0707", "too few", "ssss"),
    ("SC0707", "too many", "wwww"),
    ("SC0804", "", "ssss"),
    ("SC0805", "", "dddd"),
    ("SC0806", "", "ssss"),
    ("SC0807", "", "ssss"),
    ("SC0901", "", "rrrr"),
    ("SC0903", "", "wwww"),
    ("SC0904", "", "rrrr"),
    ("SC0905", "", "ssss"),
    ("SC0906", "", "llll"),
    ("SC0914", "", "rrrs"),
    ("SC0915", "", "dddd"),
];

fn letter(does: Does) -> char {
    match does {
        Does::Silent => 's',
        Does::Warns => 'w',
        Does::Raises => 'r',
        Does::RaisesLater => 'l',
        Does::Depends => 'd',
        Does::Nothing => '-',
    }
}

#[test]
fn every_situation_is_what_was_measured() {
    let mut expected: HashMap<(&str, &str), &str> = HashMap::new();
    for (code, case, letters) in SITUATIONS_EXPECTED {
        expected.insert((code, case), letters);
    }
    for row in SITUATIONS.iter().copied().flatten() {
        let letters: String = row.does.into_iter().map(letter).collect();
        let known = expected.remove(&(row.code, row.case));
        assert_eq!(known, Some(letters.as_str()), "{} {}", row.code, row.case);
    }
    assert!(expected.is_empty(), "no row for {expected:?}");
    let codes: Vec<&str> = SITUATIONS
        .iter()
        .copied()
        .flatten()
        .map(|row| row.code)
        .collect();
    assert!(codes.is_sorted());
}

/// The sentence agrees with the row: what never raises is not said to, and what raises somewhere is said to.
#[test]
fn sentences_say_what_the_rows_say() {
    for row in SITUATIONS.iter().copied().flatten() {
        let about = format!("{} {}: {}", row.code, row.case, row.card);
        let raises = row
            .does
            .iter()
            .any(|does| matches!(does, Does::Raises | Does::RaisesLater | Does::Depends));
        let words = [
            "raise", "fail", "Error", "reject", "refuse", "an error", "blame",
        ];
        let says_so = words.iter().any(|word| row.card.contains(word));
        // "no error" and what is only warned about.
        if !row.card.is_empty()
            && raises
            && row.does != [Does::Silent, Does::Depends, Does::Warns, Does::Warns]
            && row.does != [Does::Silent, Does::Depends, Does::Nothing, Does::Nothing]
        {
            let by_version = row.card.contains("by version");
            assert!(says_so || by_version, "{about}");
        }
        if !raises {
            assert!(!says_so, "{about}");
        }
        let warns = row.does.contains(&Does::Warns);
        if warns && !row.card.is_empty() {
            assert!(row.card.contains("warn"), "{about}");
        }
        let all_same = row.does.iter().all(|does| *does == row.does[0]);
        if !all_same && !row.card.is_empty() && !row.does.contains(&Does::Nothing) {
            let names_one = [
                "2.3",
                "2.4",
                "2.6",
                "Keras 2",
                "Keras 3",
                "tf_keras",
                "by version",
            ];
            assert!(
                names_one.iter().any(|name| row.card.contains(name)),
                "{about}"
            );
        }
        assert!(
            !row.card.ends_with('.') && !row.card.contains("without a word"),
            "{about}"
        );
    }
}

/// Pages quote the table, and the sources of the rules have no sentence about TensorFlow of their own.
#[test]
fn pages_and_cards_quote_the_tables() {
    for entry in CATALOGUE {
        let code = entry.page.code;
        assert_eq!(entry.page.tensorflow, tensorflow::page(code), "{code}");
    }
    for row in SITUATIONS.iter().copied().flatten() {
        let known = CATALOGUE.iter().any(|entry| entry.page.code == row.code);
        assert!(known, "{} is no rule", row.code);
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    let mut quotes = 0;
    for entry in fs::read_dir(folder).expect("the rules are there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path()).expect("a rule is text");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, _) in text.match_indices(".tensorflow(") {
            let quoted = text[at + ".tensorflow(".len()..].trim_start();
            assert!(
                quoted.starts_with("Quote::"),
                "{name}: a sentence of its own"
            );
            quotes += 1;
        }
        for call in ["Quote::of(", "Quote::case(", "Quote::with("] {
            for (at, _) in text.match_indices(call) {
                let rest = text[at + call.len()..].trim_start();
                let code = rest.split('"').nth(1).unwrap_or_default();
                let has_card =
                    |row: &&tensorflow::Situation| row.code == code && !row.card.is_empty();
                assert!(
                    SITUATIONS
                        .iter()
                        .copied()
                        .flatten()
                        .any(|row| has_card(&row)),
                    "{name}: {code} has no card"
                );
            }
        }
    }
    assert!(quotes > 50, "only {quotes} cards quote the tables");
}

/// The names that are refused here and are Keras's own: no card says that TensorFlow refuses them.
#[test]
fn the_card_of_a_keras_argument_says_that_keras_takes_it() {
    for (call, name, value) in [
        ("compile", "run_eagerly", "true"),
        ("compile", "jit_compile", "true"),
        ("compile", "loss_weights", "[1.0]"),
        ("compile", "weighted_metrics", "[accuracy()]"),
        ("compile", "auto_scale_loss", "true"),
        ("compile", "cloning", "true"),
        ("fit", "sample_weight", "w"),
        ("fit", "validation_batch_size", "8"),
        ("fit", "workers", "4"),
        ("fit", "x", "x"),
        ("evaluate", "return_dict", "true"),
        ("evaluate", "sample_weight", "w"),
    ] {
        let text = match call {
            "compile" => format!("compile!(model, optimizer = o, {name} = {value})?;"),
            call => format!("{call}!(model, data, {name} = {value})?;"),
        };
        let found = check_cell(&text, &CellContext::default());
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        let card = found[0].tensorflow.clone().unwrap_or_default();
        assert!(card.contains("accept"), "{text}: {card}");
        let accepts = |profile: Profile| {
            let answer = found[0]
                .answers
                .iter()
                .find(|answer| answer.profile == profile);
            answer.is_some_and(|answer| answer.does.contains("accept"))
        };
        for (profile, letter) in Profile::ALL.into_iter().zip(letters(call, name).chars()) {
            assert_eq!(
                accepts(profile),
                "aid".contains(letter),
                "{text}, {profile:?}"
            );
        }
    }
}
