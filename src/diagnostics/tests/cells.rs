//! What the text of a cell decides, over whole cells: valid ones have no finding, incorrect ones the right one, and its fixes
//! make them valid. The cells are those of `tests/cells/*.md`, the pages of the rules and of the book, and the notebooks.
//!
//! Tests with the kernel run a sample of the same cells. What only a run decides is tested there, and in
//! `src/models/tests/train/heads.rs`.

use stratoscope_diagnostics::check::{CellContext, check_cell, defined_in, is_rust};
use stratoscope_diagnostics::render::{self, Source, apply};
use stratoscope_diagnostics::rules::CATALOGUE;
use stratoscope_diagnostics::{Diagnostic, Profile, Severity};

#[path = "cells/files.rs"]
mod files;
#[path = "cells/programs.rs"]
mod programs;

use files::{Case, Section, notebooks, pages, sections};
use programs::programs;

fn codes(found: &[Diagnostic]) -> Vec<&str> {
    found.iter().map(|found| found.code.as_str()).collect()
}

/// The notebook after a cell that defines items and variables of these types.
fn after(cell: &str, variables: &[(&str, &str)]) -> CellContext {
    CellContext {
        defined: defined_in(cell),
        ..CellContext::with_variables(variables.iter().copied())
    }
}

/// The cases of a file, and the cell before them.
fn cases(name: &str) -> (String, Vec<Case>) {
    let sections = sections(name);
    let given = sections.iter().flat_map(|section| &section.before);
    let given = given.cloned().collect::<Vec<_>>().join("\n");
    let cases = sections.into_iter().flat_map(|section| section.cases);
    (given, cases.collect())
}

#[test]
fn valid_cells_have_no_finding() {
    let mut cells = programs();
    assert!(cells.len() >= 200, "{} programs", cells.len());
    for Section { before, cases } in sections("valid.md") {
        cells.extend(before);
        cells.extend(cases.into_iter().flat_map(|case| case.blocks));
    }
    assert!(cells.len() >= 300, "{} cells", cells.len());
    for cell in &cells {
        assert!(
            is_rust(cell),
            "not Rust, so that nothing is checked:\n{cell}"
        );
        for profile in [None, Some(Profile::Keras3)] {
            let context = CellContext {
                profile,
                ..CellContext::default()
            };
            let found = check_cell(cell, &context);
            assert!(found.is_empty(), "{found:?}\n{cell}");
        }
    }
}

/// The same programs with a slip are found: the checks above look at what is in the cells.
#[test]
fn the_same_programs_with_a_slip_have_one() {
    let mut seen = 0;
    for cell in programs() {
        let slipped = cell.replacen(
            "compile!(model, optimizer =",
            "compile!(model, optimiser =",
            9,
        );
        // What is in a macro's definition or a text is no call.
        if slipped == cell {
            continue;
        }
        let found = check_cell(&slipped, &CellContext::default());
        assert!(
            codes(&found).contains(&"SC0101"),
            "{:?}\n{slipped}",
            codes(&found)
        );
        seen += 1;
    }
    assert!(seen > 150, "{seen}");
}

/// An error is found in a cell of the book and the notebooks only if the cell shows one.
#[test]
fn documents_have_no_error_but_those_they_show() {
    let documents: Vec<_> = pages().into_iter().chain(notebooks()).collect();
    let mut in_the_main_one = Vec::new();
    let mut checked = 0;
    for document in &documents {
        let mut context = CellContext::default();
        for (cell, may_fail) in &document.cells {
            for found in check_cell(cell, &context) {
                let is_error = found.severity == Severity::Error;
                assert!(*may_fail || !is_error, "{}: {found}\n{cell}", document.name);
                if document.name == "fine_tune_bert.ipynb" {
                    in_the_main_one.push(found.one_line());
                }
            }
            context.defined.extend(defined_in(cell));
            checked += 1;
        }
    }
    assert!(checked > 400, "{checked} cells");
    assert_eq!(
        in_the_main_one,
        ["`compile!` has no argument `optimiser`; did you mean `optimizer`?"]
    );
}

/// The first fix of each finding in turn.
fn corrected(cell: &str, context: &CellContext) -> (String, Vec<Diagnostic>) {
    let mut text = cell.to_owned();
    let mut found = check_cell(&text, context);
    for _ in 0..8 {
        let mut fixes = found.iter().filter_map(|found| found.fixes.first());
        let Some(next) = fixes.find_map(|fix| apply(&text, fix)) else {
            break;
        };
        text = next;
        found = check_cell(&text, context);
    }
    (text, found)
}

const BY_TEXT: &str = ", found by the text";
const BY_RUSTC: &str = ", found by rustc";

/// All that is wrong with the cases of a file.
fn check_all(cases: &[Case], check: impl Fn(&Case) -> Result<(), String>) {
    let wrong = cases.iter().filter_map(|case| {
        let problem = check(case).err()?;
        Some(format!("{}: {problem}\n{}", case.name, case.blocks[0]))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A condition of a case.
fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// What rustc has to find, the text does not show.
fn check_left_to_rustc(found: &[Diagnostic]) -> Result<(), String> {
    ensure(found.is_empty(), || {
        format!("the text shows {:?}", codes(found))
    })
}

#[test]
fn an_incorrect_call_has_its_card_and_a_fix_that_works() {
    let (given, cases) = cases("calls.md");
    assert!(cases.len() >= 58, "{} cases", cases.len());
    let data = "stratoscope_data::Dataset";
    let context = after(
        &given,
        &[("model", "ModelOf<Layers>"), ("train", data), ("dev", data)],
    );
    check_all(&cases, |case| {
        let cell = &case.blocks[0];
        let found = check_cell(cell, &context);
        if case.expected.ends_with(BY_RUSTC) {
            return check_left_to_rustc(&found);
        }
        let first = codes(&found).first().copied();
        ensure(first == Some(&case.expected), || format!("{found:#?}"))?;
        for found in &found {
            let is_complete = !found.labels.is_empty() && !found.fixes.is_empty();
            ensure(is_complete, || format!("no label or no fix: {found:#?}"))?;
        }
        let Some(expected) = case.blocks.get(1) else {
            return Ok(());
        };
        let (fixed, rest) = corrected(cell, &context);
        ensure(fixed == *expected, || format!("becomes\n{fixed}"))?;
        ensure(is_rust(&fixed), || format!("is not Rust:\n{fixed}"))?;
        ensure(rest.is_empty(), || format!("{rest:#?}"))
    });
}

/// A mistake that the text shows has a finding with its code, line and words; in others nothing is found, so that rustc's
/// error is shown.
#[test]
fn a_mistake_is_found_in_the_text_or_left_to_rustc() {
    let (given, cases) = cases("mistakes.md");
    assert!(cases.len() >= 100, "{} cases", cases.len());
    let variables = [
        ("n", "i32"),
        ("v", "Vec<i32>"),
        ("name", "String"),
        ("point", "Point"),
    ];
    let context = after(&given, &variables);
    check_all(&cases, |case| {
        let cell = &case.blocks[0];
        let found = check_cell(cell, &context);
        let Some(expected) = case.expected.strip_suffix(BY_TEXT) else {
            ensure(case.expected.ends_with(BY_RUSTC), || case.expected.clone())?;
            return check_left_to_rustc(&found);
        };
        let first = found.first().ok_or("no finding")?;
        let source = Source {
            text: cell,
            name: "Cell In[2]",
        };
        let line = &render::json(first, &source)["positions"][0]["line"];
        let place = format!("{} in line {line}", first.code);
        ensure(place == expected, || place.clone())?;
        let shown = one_line(&(first.one_line() + " " + &render::plain(first, &source)));
        for words in &case.words {
            ensure(shown.contains(&one_line(words)), || {
                format!("`{words}` is not in: {shown}")
            })?;
        }
        Ok(())
    });
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The cell after an edit of the card is Rust and has not that finding.
#[test]
fn the_fixes_of_a_page_make_its_cell_valid() {
    let mut applied = 0;
    for entry in CATALOGUE {
        let profile = entry
            .given
            .iter()
            .find_map(|cell| cell.strip_prefix("%profile "));
        let context = CellContext {
            profile: profile.and_then(Profile::parse),
            ..CellContext::default()
        };
        let bad = entry.page.bad;
        for found in check_cell(bad, &context) {
            for fix in found.fixes.iter().filter(|fix| !fix.edits.is_empty()) {
                let fixed =
                    apply(bad, fix).unwrap_or_else(|| panic!("{}: {}", found.code, fix.title));
                let rest = check_cell(&fixed, &context);
                assert!(
                    is_rust(&fixed) && !codes(&rest).contains(&found.code.as_str()),
                    "{}: {}\n{fixed}\n{rest:#?}",
                    found.code,
                    fix.title
                );
                applied += 1;
            }
        }
    }
    assert!(applied >= 20, "{applied} fixes");
}
