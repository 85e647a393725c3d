//! The tables of what TensorFlow does, as golden files: what was measured or read in its sources, argument by argument; and that
//! cards and pages say nothing else.

use std::collections::HashSet;
use std::fmt::Write;
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

/// Names that are arguments of some calls, and one that is none.
const NAMES: &[&str] = &[
    "foo",
    "batch_size",
    "beta_1",
    "drop_unsupported",
    "epoch",
    "epochs",
    "from_logits",
    "gradient_accumulation_steps",
    "group_by_length",
    "learning_rate",
    "lr",
    "metric",
    "momentum",
    "sync_every",
    "weight_decy",
];

/// Optimizers without a row: they came after 2.6, and later versions were not tried.
const LATE_OPTIMIZERS: &[&str] = &["Adafactor", "Lamb", "Lion"];

/// Compares a text with its golden file. Each is read when it changes: `docs/keras-semantics.md` says what was measured.
fn check_golden(name: &str, text: &str) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

/// The letters and the sentence of each argument, call by call.
#[test]
fn every_argument_is_treated_as_each_version_treats_it() {
    let names: HashSet<(&str, &str)> = ARGUMENTS.iter().map(|row| (row.call, row.name)).collect();
    assert_eq!(names.len(), ARGUMENTS.len(), "an argument has two rows");
    let mut calls: Vec<&str> = ARGUMENTS.iter().map(|row| row.call).collect();
    calls.dedup();
    calls.extend(LATE_OPTIMIZERS);
    let mut text = String::new();
    for call in calls {
        let listed = ARGUMENTS.iter().filter(|row| row.call == call);
        let listed = listed.map(|row| row.name);
        let others = NAMES.iter().copied();
        let others = others.filter(|name| !names.contains(&(call, *name)));
        let _ = writeln!(text, "{call}");
        for name in listed.chain(others) {
            let sentence = Quote::argument(call, name);
            let letters = letters(call, name);
            let _ = writeln!(text, "    {letters} {name}: {}", sentence.text());
        }
    }
    check_golden("tensorflow_arguments", &text);
}

/// The words of each version, for arguments of all kinds. docs/keras-semantics.md E1 to E9 and §1.3 have them.
#[test]
fn each_version_is_quoted_word_for_word() {
    let mut text = String::new();
    for (call, name) in [
        ("compile", "foo"),
        ("compile", "run_eagerly"),
        ("compile", "jit_compile"),
        ("compile", "cloning"),
        ("compile", "distribute"),
        ("compile", "experimental_steps_per_execution"),
        ("fit", "learning_rate"),
        ("fit", "workers"),
        ("evaluate", "epochs"),
        ("Adam", "foo"),
        ("Adam", "lr"),
        ("Adam", "weight_decay"),
        ("AdamW", "weight_decay"),
        ("AdamW", "weight_decy"),
        ("Lion", "lr"),
    ] {
        let _ = writeln!(text, "{call} {name}");
        for profile in Profile::ALL {
            let answer = answer(call, name, profile);
            let words = answer.says.unwrap_or(answer.does);
            let _ = writeln!(text, "    {}: {words}", profile.name());
        }
    }
    check_golden("tensorflow_words", &text);
}

/// What the cards of `answers.json` say that the text decides. `tests/test_rules.py` compares and writes the file.
#[test]
fn a_card_has_the_answers_of_all_versions() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cells/answers.json");
    let text = fs::read_to_string(path).expect("the file is there");
    let rows: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = rows.as_object().expect("with rows");
    let by_text = rows.values().filter(|row| row["found"] == "by the text");
    let mut seen = 0;
    for row in by_text {
        let cell = row["cell"].as_str().expect("a cell");
        for profile in Profile::ALL {
            let context = CellContext {
                profile: Some(profile),
                ..CellContext::default()
            };
            let found = check_cell(cell, &context);
            let found = found.iter().find(|found| found.code == row["code"]);
            let found = found.unwrap_or_else(|| panic!("no {} in {cell}", row["code"]));
            let answers = serde_json::to_value(&found.answers).expect("plain data");
            assert_eq!(answers, row["answers"], "{cell}");
        }
        seen += 1;
    }
    assert_eq!(seen, 4, "of {} rows", rows.len());
}

/// What the versions do in each situation, a letter each: s says nothing, w warns, r raises in this call, l in a later
/// one, d by value, device or model, - nothing is claimed. From the catalogue of failures and the tables of errors.
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
    let rows = || SITUATIONS.iter().copied().flatten();
    let mut cases = HashSet::new();
    let mut text = String::new();
    for row in rows() {
        assert!(
            cases.insert((row.code, row.case)),
            "{} {}",
            row.code,
            row.case
        );
        let letters: String = row.does.into_iter().map(letter).collect();
        let line = format!("{} {letters} {}", row.code, row.case);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    assert!(rows().is_sorted_by_key(|row| row.code));
    check_golden("tensorflow_situations", &text);
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

/// Rules about `keras.distribution`, which cuts variables on JAX alone: the tables are of TensorFlow.
const ON_JAX_ALONE: [&str; 3] = ["SC0625", "SC0626", "SC0628"];

/// Pages quote the table, and the sources of the rules have no sentence about TensorFlow of their own.
#[test]
fn pages_and_cards_quote_the_tables() {
    for entry in CATALOGUE {
        let code = entry.page.code;
        if ON_JAX_ALONE.contains(&code) {
            assert_eq!(tensorflow::page(code), "", "{code}");
            continue;
        }
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
