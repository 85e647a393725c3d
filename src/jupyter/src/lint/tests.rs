use stratoscope_session::toy;

use super::*;

fn comms() -> LintComms {
    let sealer = super::super::envelope::Sealer::new(super::super::signature::Signer::new(b""));
    let (iopub, _) = Iopub::new(<zeromq::XPubSocket as zeromq::Socket>::new(), sealer);
    LintComms::new(iopub, toy::failing_starter().linter())
}

fn asked(sequence: u64, cell: &str, text: &str) -> Asked {
    Asked {
        sequence,
        cell: cell.to_owned(),
        text: text.to_owned(),
        strategy_elsewhere: true,
    }
}

fn waiting(asked: Asked) -> Waiting {
    Waiting {
        parent: Arc::new(json!({})),
        comm_id: "c".to_owned(),
        asked,
    }
}

/// The text between two places of UTF-16.
fn cut(text: &str, range: &Value) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let place = |name: &str| {
        let units = range[name].as_u64().expect("a number");
        usize::try_from(units).expect("a place")
    };
    String::from_utf16(&units[place("from")..place("to")]).expect("whole characters")
}

#[test]
fn a_misspelled_argument_is_found_at_its_place_with_its_fix_and_page() {
    let text = "// 😀 größe\ncompile!(model, optimiser = AdamW::new(5e-5))?;";
    let answer = comms().answer(&asked(7, "a", text));
    assert_eq!(
        (&answer["sequence"], &answer["cell"]),
        (&json!(7), &json!("a"))
    );
    let range = &answer["ranges"][0];
    assert_eq!(range["code"], "SC0101");
    assert_eq!(range["severity"], "error");
    assert_eq!(cut(text, range), "optimiser");
    let edit = &range["fixes"][0]["edits"][0];
    assert_eq!(
        (cut(text, edit).as_str(), &edit["insert"]),
        ("optimiser", &json!("optimizer"))
    );
    assert_eq!(range["page"]["name"], "unknown-compile-argument");
    assert!(
        range["page"]["finds"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    );
}

#[test]
fn steps_without_a_strategy_are_found_where_no_cell_makes_one() {
    let text = "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 4)?;";
    let codes = |strategy_elsewhere| {
        let asked = Asked {
            strategy_elsewhere,
            ..asked(1, "a", text)
        };
        let answer = comms().answer(&asked);
        let ranges = answer["ranges"].as_array().cloned().unwrap_or_default();
        ranges.iter().any(|range| range["code"] == "SC0102")
    };
    assert!(codes(false) && !codes(true));
}

#[test]
fn a_panic_in_a_check_is_an_answer_without_ranges() {
    let answer = comms().answer(&asked(1, "a", "panic"));
    assert_eq!(answer["ranges"], json!([]));
}

#[test]
fn a_long_text_is_not_looked_at() {
    let text = format!("compile!(model, optimiser = 1)?;{}", " ".repeat(MOST_TEXT));
    let answer = comms().answer(&asked(1, "a", &text));
    assert_eq!(answer["ranges"], json!([]));
}

#[test]
fn a_newer_request_takes_the_place_of_the_one_of_its_cell() {
    let mut state = State::default();
    for (sequence, cell) in [(1, "a"), (2, "b"), (4, "a"), (3, "a")] {
        state.push(waiting(asked(sequence, cell, "text")));
    }
    let order: Vec<_> = std::iter::from_fn(|| state.pop())
        .map(|it| (it.asked.sequence, it.asked.cell))
        .collect();
    assert_eq!(order, [(4, "a".to_owned()), (2, "b".to_owned())]);
    assert_eq!(state.bytes, 0);
}

#[test]
fn what_waits_is_bounded() {
    let mut state = State::default();
    for sequence in 0..3000 {
        state.push(waiting(asked(sequence, &sequence.to_string(), "x")));
    }
    assert_eq!(
        (state.waiting.len(), state.bytes),
        (MOST_WAITING, MOST_WAITING)
    );
    assert_eq!(
        state.pop().map(|it| it.asked.sequence),
        Some(3000 - MOST_WAITING as u64)
    );
    let long = "x".repeat(MOST_TEXT);
    for sequence in 0..40 {
        state.push(waiting(asked(sequence, &format!("l{sequence}"), &long)));
    }
    assert!(state.bytes <= MOST_WAITING_BYTES);
    state.comms.open("c".to_owned());
    assert!(state.close("c") && state.waiting.is_empty() && state.bytes == 0);
}

#[test]
fn edits_that_overlap_are_not_offered() {
    let edit = |start, end| Edit {
        place: Place::span(start, end),
        replacement: String::new(),
    };
    let utf16 = Utf16::of("0123456789");
    assert_eq!(edits(&[edit(5, 6), edit(1, 3)], &utf16).len(), 2);
    assert!(edits(&[edit(1, 3), edit(2, 4)], &utf16).is_empty());
    assert!(edits(&[edit(1, 30)], &utf16).is_empty());
    assert!(
        edits(
            &[Edit {
                place: Place::Line(1),
                ..edit(0, 0)
            }],
            &utf16
        )
        .is_empty()
    );
}
