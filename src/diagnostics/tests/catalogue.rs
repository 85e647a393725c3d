//! Checks over the whole catalogue: codes, pages, and that the examples on the pages tell the truth.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use stratoscope_diagnostics::check::check_cell;
use stratoscope_diagnostics::rules::{CATALOGUE, explain};
use stratoscope_diagnostics::{Entry, RulePage, Severity, Stage, pages};

mod common;

use common::context;

fn pages_of_all() -> impl Iterator<Item = &'static RulePage> {
    CATALOGUE.iter().map(|entry| &entry.page)
}

fn codes(cell: &str, entry: &Entry) -> Vec<String> {
    check_cell(cell, &context(entry))
        .into_iter()
        .map(|found| found.code)
        .collect()
}

#[test]
fn codes_are_sorted_unique_and_well_formed() {
    assert!(!CATALOGUE.is_empty());
    assert!(
        CATALOGUE.is_sorted_by(|a, b| a.page.code < b.page.code),
        "a code is out of order or taken twice"
    );
    let names: HashSet<&str> = pages_of_all().map(|page| page.name).collect();
    assert_eq!(names.len(), CATALOGUE.len(), "a name is taken twice");
    for page in pages_of_all() {
        let digits = page.code.strip_prefix("SC").unwrap_or_default();
        assert!(
            digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()),
            "{}",
            page.code
        );
        assert!(
            page.name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
            "{}",
            page.name
        );
        assert_eq!(
            explain(&page.code.to_lowercase()).map(|found| found.page.name),
            Some(page.name)
        );
    }
}

#[test]
fn pages_are_complete() {
    for RulePage {
        code,
        finds,
        why,
        bad,
        good,
        ..
    } in pages_of_all()
    {
        for (part, text) in [("finds", finds), ("why", why), ("bad", bad), ("good", good)] {
            assert!(!text.trim().is_empty(), "{code}: {part} is empty");
        }
        assert_ne!(bad, good, "{code}: both cells are the same");
        assert!(
            finds.ends_with('.') && why.ends_with('.'),
            "{code}: sentences end with a dot"
        );
    }
}

#[test]
fn what_the_text_decides_is_found_in_the_bad_cell_and_not_in_the_good_one() {
    let mut seen = 0;
    for entry in CATALOGUE {
        let page = &entry.page;
        let good = codes(page.good, entry);
        assert!(good.is_empty(), "{}: the good cell has {good:?}", page.code);
        let bad: HashSet<String> = codes(page.bad, entry).into_iter().collect();
        if page.stage == Stage::Text {
            seen += 1;
            assert_eq!(bad, HashSet::from([page.code.to_owned()]), "{}", page.code);
        } else {
            assert!(
                bad.is_empty(),
                "{}: the bad cell has {bad:?} in its text",
                page.code
            );
        }
    }
    assert!(seen >= 10, "only {seen} rules are decided by the text");
}

#[test]
fn a_finding_has_its_rules_severity_a_label_and_a_way_out() {
    let decided_by_the_text = |entry: &&Entry| entry.page.stage == Stage::Text;
    for entry in CATALOGUE.iter().filter(decided_by_the_text) {
        let page = &entry.page;
        for found in check_cell(page.bad, &context(entry)) {
            assert_eq!(found.severity, page.severity, "{}", page.code);
            assert!(
                !found.labels.is_empty() && !found.fixes.is_empty(),
                "{}",
                page.code
            );
            let lower = found
                .message
                .starts_with(|c: char| c == '`' || !c.is_uppercase());
            assert!(lower && !found.message.ends_with('.'), "{}", found.message);
            assert!(!found.message.contains('\n'), "{}", found.message);
        }
        assert!(
            page.severity != Severity::Note
                || context(entry).profile.is_some()
                // A cell that does nothing.
                || page.code == "SC1016",
            "{}: a note of the text is one that was asked for",
            page.code
        );
    }
}

/// `docs/diagnostics/` says what the rules say. `UPDATE_DOCS=1` writes it.
#[test]
fn the_docs_are_the_pages() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnostics");
    let mut files: Vec<(String, String)> = CATALOGUE
        .iter()
        .map(|entry| (format!("{}.md", entry.page.code), pages::markdown(entry)))
        .collect();
    files.push(("README.md".to_owned(), pages::index()));
    files.push(("arguments.md".to_owned(), pages::arguments()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(&folder).expect("the docs folder can be made");
        for (name, text) in &files {
            fs::write(folder.join(name), text).expect("the docs can be written");
        }
    }
    for (name, text) in &files {
        let written = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(
            written == *text,
            "docs/diagnostics/{name} is stale: run the tests with UPDATE_DOCS=1"
        );
    }
    let expected: HashSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for entry in fs::read_dir(&folder)
        .expect("the docs folder is there")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            expected.contains(name.as_str()),
            "docs/diagnostics/{name} belongs to no rule"
        );
    }
}

/// Every code that the sources raise has a page, and only a rule's own file makes a diagnostic of it.
/// Test modules may do as they like.
#[test]
fn no_code_is_raised_without_its_rule() {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pending = vec![sources];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder of the sources can be read");
            pending.extend(entries.flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    assert!(files.len() > 100, "only {} files found", files.len());
    for file in files {
        let shown = file.display().to_string();
        let is_test = ["/tests/", "tests.rs", "/examples/", "toy.rs"]
            .iter()
            .any(|part| shown.contains(part));
        if is_test {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source is text");
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        // Comments tell which rule is meant; a code in quotes is used.
        for line in text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            for (at, _) in line.match_indices("\"SC") {
                let code: String = line[at + 1..].chars().take(6).collect();
                let is_code =
                    code.len() == 6 && code[2..].bytes().all(|byte| byte.is_ascii_digit());
                if !is_code {
                    continue;
                }
                assert!(explain(&code).is_some(), "{shown}: {code} has no page");
                let in_a_rule = ["/diagnostics/src/rules/", "/diagnostics/src/tensorflow/"]
                    .iter()
                    .any(|folder| shown.contains(folder));
                let raises =
                    line.contains("Diagnostic::new") || line.trim() == format!("\"{code}\",");
                assert!(
                    in_a_rule || !raises,
                    "{shown}: {code} is raised past its rule"
                );
            }
        }
    }
}
