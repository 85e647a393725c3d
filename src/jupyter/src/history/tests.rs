use std::path::Path;
use std::time::Duration;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn run(history: &History, cells: &[&str]) {
    for (line, input) in cells.iter().enumerate() {
        history.push(line as u64 + 1, (*input).to_owned());
        history.keep();
    }
    history.flush(LIMIT);
}

fn history() -> History {
    let history = History::start(Place::Off);
    run(&history, &["let a = 1;", "a + 1", "let b = 2;", "a + 1"]);
    history
}

fn lines(entries: Vec<Entry>) -> Vec<u64> {
    entries.into_iter().map(|entry| entry.line).collect()
}

/// Session and number.
fn numbers(entries: Vec<Entry>) -> Vec<(i64, u64)> {
    let number = |entry: Entry| (entry.session, entry.line);
    entries.into_iter().map(number).collect()
}

#[test]
fn tail_and_range() {
    let history = history();
    assert_eq!(lines(history.tail(2)), [3, 4]);
    assert_eq!(lines(history.tail(9)), [1, 2, 3, 4]);
    assert_eq!(lines(history.range(0, 2, Some(4))), [2, 3]);
    assert_eq!(lines(history.range(0, -1, None)), [4]);
    assert_eq!(lines(history.range(0, 3, None)), [3, 4]);
    assert_eq!(lines(history.range(0, 7, Some(2))), [0u64; 0]);
    assert_eq!(lines(history.range(5, 1, None)), [0u64; 0]);
    assert_eq!(
        lines(history.range(i64::MIN, i64::MIN, Some(i64::MIN))),
        [0u64; 0]
    );
}

#[test]
fn search() {
    let history = history();
    assert_eq!(lines(history.search("let*", None, false)), [1, 3]);
    assert_eq!(lines(history.search("*a + 1*", None, false)), [2, 4]);
    assert_eq!(lines(history.search("*a + 1*", None, true)), [4]);
    assert_eq!(lines(history.search("*", Some(3), false)), [2, 3, 4]);
    assert_eq!(lines(history.search("let ? = 2;", None, false)), [3]);
    assert_eq!(lines(history.search("let", None, false)), [0u64; 0]);
}

#[test]
fn a_hostile_pattern_ends() {
    let pattern: Vec<char> = "*a".repeat(200).chars().chain(['b']).collect();
    let text: Vec<char> = "a".repeat(5000).chars().collect();
    assert!(!matches(&pattern, &text));
}

#[test]
fn outputs_belong_to_their_cell() {
    let history = history();
    history.set_output(2, "2".to_owned());
    assert_eq!(history.range(0, 2, Some(3))[0].output.as_deref(), Some("2"));
    assert_eq!(history.range(0, 1, Some(2))[0].output, None);
}

fn in_file(folder: &Path) -> History {
    History::start(Place::File(folder.join("history.jsonl")))
}

#[test]
fn earlier_sessions_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    run(
        &in_file(folder.path()),
        &["let a = 1;", "a", " let secret = 2;"],
    );
    run(&in_file(folder.path()), &["let b = 1;"]);
    let third = in_file(folder.path());
    run(&third, &["a", "%history"]);
    assert_eq!(
        numbers(third.tail(9)),
        [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]
    );
    assert_eq!(numbers(third.tail(3)), [(2, 1), (3, 1), (3, 2)]);
    assert_eq!(numbers(third.search("a", None, false)), [(1, 2), (3, 1)]);
    assert_eq!(numbers(third.search("a", None, true)), [(3, 1)]);
    assert_eq!(numbers(third.range(0, 1, None)), [(0, 1), (0, 2)]);
    assert_eq!(numbers(third.range(1, 2, None)), [(1, 2)]);
    assert_eq!(numbers(third.range(-1, 1, None)), [(2, 1)]);
    // `tail` has given this number.
    assert_eq!(numbers(third.range(3, 1, Some(2))), [(3, 1)]);
    assert_eq!(numbers(third.range(0, 1, Some(2))), [(0, 1)]);

    let found = |pattern| {
        let found = third.find(pattern, 2, 2);
        let cells: Vec<_> = found
            .cells
            .into_iter()
            .map(|it| (it.session, it.number))
            .collect();
        (cells, found.total)
    };
    assert_eq!(found(None), (vec![(2, 1), (3, 1)], 4));
    assert_eq!(found(Some("let")), (vec![(1, 1), (2, 1)], 2));
    assert_eq!(found(Some("b*1")), (vec![(2, 1)], 1));
    assert_eq!(found(Some("?")), (vec![], 0));
}

#[test]
fn it_is_turned_off_and_cleared() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = in_file(folder.path());
    run(&history, &["first"]);
    history.change(HistoryChange::Off).expect("is off");
    assert_eq!(history.find(None, 9, 0).kept_in, None);
    run(&history, &["hidden"]);
    assert_eq!(
        history.search("hidden", None, false).len(),
        1,
        "this session has it"
    );
    history.change(HistoryChange::On).expect("is on");
    assert!(history.find(None, 9, 0).kept_in.is_some());
    run(&history, &["last"]);
    let other = in_file(folder.path());
    let texts: Vec<_> = other.tail(9).into_iter().map(|it| it.input).collect();
    assert_eq!(texts, ["first", "last"]);
    history.change(HistoryChange::Clear).expect("is cleared");
    assert_eq!(history.tail(9), []);
    assert_eq!(other.tail(9), []);
    assert!(!folder.path().join("history.jsonl").exists());
}

#[test]
fn a_place_that_cannot_be_used_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("writes");
    let history = in_file(&folder.path().join("file"));
    run(&history, &["a", "b"]);
    assert_eq!(
        numbers(history.tail(9)),
        [(0, 1), (0, 2)],
        "this session goes on"
    );
    let notice = history.find(None, 9, 0).notice.expect("is reported");
    assert!(notice.contains("STRATOSCOPE_HISTORY=off"), "{notice}");
}
