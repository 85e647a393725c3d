//! How often a cell is parsed until it has run, or until it is known why it does not.

use stratoscope_cell_syntax::parsed_texts;
use stratoscope_session::CellOutcome;

use super::Notebook;

/// The fewest texts that are parsed for such a cell: another test of this process may parse something meanwhile.
fn parsed_for(notebook: &mut Notebook, code: &str, is_ok: bool) -> u64 {
    let mut once = || {
        let before = parsed_texts();
        let (outcome, seen) = notebook.run(code);
        assert_eq!(outcome == CellOutcome::Ok, is_ok, "{code}\n{seen}");
        parsed_texts() - before
    };
    once().min(once())
}

#[test]
fn a_cell_is_parsed_once() {
    let mut notebook = Notebook::open();
    for code in [
        "let a = 1;\na + 1",
        "fn twice(x: i32) -> i32 { 2 * x }\nlet b = twice(3);",
        "let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, { let c = 1; });",
        // The checks, the rewriting and the names all pass over the magic.
        "%time println!(\"{}\", 1 + 1)",
        // rustc's warning is looked up in the cell.
        "let parsed = \"1\".parse::<u8>();\n\"2\".parse::<u8>();",
    ] {
        assert_eq!(parsed_for(&mut notebook, code, true), 1, "{code}");
    }
    for (code, fixes) in [
        // Of an error, each fix with edits is tried: that is another text.
        ("compile!(model, optimiser = AdamW::new(5e-5))?;", 1),
        // rustc's own edit, and then the one that the card shows.
        ("let n: String = 1;", 2),
        // The function that the closure can be.
        ("let f = |x: i32| x + 1;", 1),
        ("let x = ", 0),
    ] {
        let parsed = parsed_for(&mut notebook, code, false);
        assert!((1..=1 + fixes).contains(&parsed), "{code}: {parsed}");
    }
}
